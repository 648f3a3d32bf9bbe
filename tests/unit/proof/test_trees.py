"""Random trees of moves and computations in loops, peeled, dealt or not, followed by facts and byte by byte (`trees`):
what is accepted holds; how much is, on record."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.unit.proof.trees import Trees, accepted, schedule
from tests.unit.proof.verdicts import on_record

EACH = 20


@pytest.mark.parametrize("part", range(12))
def test_what_is_accepted_holds(part: int) -> None:
    said, count = list[object](), Counter[tuple[bool, bool]]()
    for seed in range(EACH * part, EACH * (part + 1)):
        s = schedule(Trees(random.Random(seed)).tree())
        for _, found, followed, right in accepted(s, f"tree {seed}"):
            count[followed, right] += 1
            said.append(sorted(set(found)))
    assert count[True, True] > 15 > count[False, True]
    assert count[False, False]
    on_record(f"trees: {part}", said)
