"""Planted faults face both judges: what one refuses the other refuses."""

from __future__ import annotations

import random

import pytest

from isam.proof.flat import check_flat
from isam.proof.points import check_points
from isam.proof.tree import check_tree
from isam.schedule.tree import Schedule
from tests.unit.proof.handmade import running_sum, tiny_matmul, vec_matmul
from tests.unit.proof.mutants import mutants
from tests.unit.proof.verdicts import on_record

SMALL = {
    "tiny": lambda: tiny_matmul(8, 8, 12),
    "tiny peeled": lambda: tiny_matmul(8, 4, 12, peeled=True),
    "vec": lambda: vec_matmul(7, 8, 10),
    "vec bound": lambda: vec_matmul(4, 8, 10, bound=True),
    "recurrence": lambda: running_sum(8),
}


def flat_faults(s: Schedule) -> list:
    """The flat judge on every small trip."""
    syms = [y.name for y in s.cover.kernel.syms]
    for trip in (3, 1, 0) if syms else (0,):
        found = check_flat(s, dict.fromkeys(syms, trip))
        if found:
            return found
    return []


KINDS = {
    0: "form", 1: "coverage domain nest point", 2: "access address buffer dims literal move operand shape",
    3: "axes dtype instruction numerics operands operation reassociate write", 4: "order", 5: "order", 6: "escapes",
    7: "address bounds buffer rank", 8: "absent base bind final foreign read-only stale",
    9: "alias align apart base capacity cell home memory sizes slot stride", 10: "edge instruction move unit",
    11: "closed form scope trip",
}  # fmt: skip  (what is found belongs to its obligation)
# A mutant per kind and schedule; every one of them by running this file: python -m tests.unit.proof.test_mutants
PER_KIND = 1


def judged(name: str, per_kind: int | None) -> tuple[int, int, list[str], list[str]]:
    """(mutants, refused by the flat judge, refused by it alone, refused by the tree judge alone)."""
    chosen: dict[str, list[Schedule]] = {}
    for what, s in mutants(SMALL[name]()):
        chosen.setdefault(what, []).append(s)
    missed, stricter, refused, total = [], [], 0, 0
    said: list[object] = []
    for what, all_of_them in chosen.items():
        some = (
            all_of_them
            if per_kind is None
            else random.Random(what + name).sample(all_of_them, min(per_kind, len(all_of_them)))
        )
        for s in some:
            total += 1
            flat = flat_faults(s)
            tree = check_points(s) or check_tree(s)
            said += [what, *flat, *tree]
            refused += bool(flat)
            assert all(v.kind in KINDS[v.obligation].split() for v in (*flat, *tree))
            if flat and not tree:
                missed.append(f"{what}: {flat[0]}")
            if tree and not flat:
                stricter.append(f"{what}: {tree[0]}")
    if per_kind == PER_KIND:
        on_record(f"planted: {name}", said)
    return total, refused, missed, stricter


@pytest.mark.parametrize("name", SMALL)
def test_both_judges_agree(name):
    total, refused, missed, stricter = judged(name, PER_KIND)
    assert not missed
    assert not stricter
    assert refused > 0.8 * total > 30


if __name__ == "__main__":
    for name in SMALL:
        total, refused, missed, stricter = judged(name, None)
        print(
            f"{name}: {total} mutants, {refused} refused by check_flat, {len(missed)} only by it, {len(stricter)} not"
        )
        print(*missed, *stricter, sep="\n")
