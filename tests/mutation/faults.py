"""More of the planted faults of ``tests.unit.proof.test_mutants`` than every run has time for."""

from __future__ import annotations

import pytest

from tests.unit.proof.test_mutants import SMALL, judged

PER_KIND = 4


@pytest.mark.parametrize("name", SMALL)
def test_both_judges_agree_on_more(name: str) -> None:
    _, _, missed, stricter = judged(name, PER_KIND)
    assert not missed
    assert not stricter
