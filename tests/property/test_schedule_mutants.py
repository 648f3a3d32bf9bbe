"""A sample of ``python -m tests.campaign_mutants``: planted faults are refused, or shown to do no harm."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from tests import campaign_mutants
from tests.campaign_mutants import judged, mutants
from tests.cases import SOURCES
from tests.faults import faults
from tests.harm import Case

SEED = 5  # every source has a schedule at this one
QUICK = [s for s in SOURCES if "casestudy" not in s]  # its memories are large: seconds each


MANY = 2  # mutants of a case; the campaign judges thousands


@cache
def case(source: str) -> Case:
    found = SOURCES[source](SEED)
    assert found is not None
    return found


@pytest.mark.parametrize("source", QUICK)
def test_what_is_accepted_does_no_harm(source: str) -> None:
    c = case(source)
    found = Counter(judged(c, make())[0] for _, make in mutants(c, SEED, MANY))
    assert found.total() == MANY
    assert not found["accepted, harmful"]
    assert not found["crash"]


def test_there_are_faults_of_many_kinds() -> None:
    kinds = {kind for source in ("toy", "crowd", "recurrence", "gemmini") for kind, _ in faults(case(source).schedule)}
    assert len(kinds) > 110


def test_a_blind_checker_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    c = case("toy")
    made = [make() for kind, make in mutants(c, SEED, 1000) if "left out" in kind]
    seen = Counter(judged(c, m)[0] for m in made)
    assert seen["refused"] > len(made) // 2 > 1
    monkeypatch.setattr(campaign_mutants, "examine", lambda s: (None, []))
    found = [judged(c, m) for m in made]
    assert any(column == "accepted, harmful" and harm for column, harm in found)
    assert campaign_mutants.report({"x": Counter(c for c, _ in found)}, Counter(toy=1), 1, 0.0) == 1
