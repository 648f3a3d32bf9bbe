"""Every second kernel of the corpus on toy: compiled, simulated strictly, equal to the oracle."""

from __future__ import annotations

import pytest

from tests.corpus import CASES
from tests.pipeline import judge, of_corpus

NAMES = list(CASES)


@pytest.mark.parametrize("name", NAMES[::2])
def test_first_half(name):
    case = CASES[name]
    judge(case.load(), case.small[0], of_corpus(name), seed=3)
