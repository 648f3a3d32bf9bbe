"""The other half of the corpus on toy: compiled, simulated strictly, equal to the oracle."""

from __future__ import annotations

import pytest

from tests.corpus import CASES
from tests.pipeline import compiled, judge, simulated

TOY = simulated("toy")
NAMES = list(CASES)


@pytest.mark.parametrize("name", NAMES[1::2])
def test_second_half(name):
    case = CASES[name]
    sizes = case.small[0]
    judge(case.load(), sizes, compiled(case.load(), sizes, TOY), seed=3)
