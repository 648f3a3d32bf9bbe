"""A tile that is written has bytes of its own for every element: else one overwrites the other within the step."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from operator import mul
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.proof.flat import check_flat
from isam.proof.legal import Legality
from isam.proof.points import check_points
from isam.proof.tree import check_tree
from isam.schedule.tree import Issue, Loop, Node, Operand, Place, Seq, Tile
from tests.unit.proof.handmade import tiny_matmul

SIZE = 4


def test_elements_that_share_bytes() -> None:
    """Of random shapes, strides and steps; where it is said that none do, none do."""
    lg, told = Legality(tiny_matmul()), []
    for shape, steps in product(product((1, 2, 3), repeat=2), ((1, 1), (2, 1), (1, 3))):
        for strides in product((-16, -8, -4, 0, 2, 4, 8, 12, 16, 24), repeat=2):
            o = Operand("D", Tile("A", (Affine(), Affine()), shape, steps), Place("sp", "", Affine(), strides), (0, 1))
            at = [sum(map(mul, map(mul, e, steps), strides)) for e in product(*map(range, shape))]
            true = all(abs(a - b) >= SIZE for n, a in enumerate(at) for b in at[:n])
            said = lg.own_bytes(o)
            assert true or not said
            told.append((said, true))
    assert [told.count(x) for x in ((True, True), (False, True), (False, False))] == [1840, 70, 790]


def pitched(by: int, of: tuple[str, ...]) -> Any:
    """The scratchpad's rows of A so many bytes apart, where operands of these names lie there."""

    def edit(n: Node) -> Node:
        if isinstance(n, Issue):
            mine = [o.place.memory == "sp" and o.tile.buffer == "A" and o.name in of for o in n.operands]
            return replace(n, operands=tuple(replace(o, place=replace(o.place, strides=(by, 4))) if m else o
                                             for o, m in zip(n.operands, mine, strict=True)))  # fmt: skip
        if isinstance(n, Seq):
            return Seq(tuple(map(edit, n.children)))
        return replace(n, body=edit(n.body), enter=edit(n.enter), exit=edit(n.exit))

    s = tiny_matmul()
    assert isinstance(s.call, Loop)
    return replace(s, call=edit(s.call))


@pytest.mark.parametrize(("by", "right"), [(16, True), (12, False), (-16, False), (0, False)])
def test_rows_that_overlap_are_no_tile(by: int, right: bool) -> None:
    s = pitched(by, ("S", "D"))
    assert (check_flat(s) == []) == right
    for check in (check_points, check_tree):
        assert (check(s) == []) == right
    message = "operand D: elements of A[m:+4, p:+4] share bytes"
    assert ((9, message) in {(v.obligation, v.message) for v in check_tree(s)}) == (by in (0, 12))
    assert not any("share bytes" in v.message for v in check_tree(pitched(by, ("S",))))  # which only reads
