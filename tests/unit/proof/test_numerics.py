"""Obligation 3: terms may be added in another order only where the kernel permits it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import PERMITS_DEFAULT
from isam.proof import check_flat, check_points, check_tree
from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq
from tests.unit.proof.handmade import vec_matmul
from tests.unit.proof.handmade_machines import V


def at(node: Node, name: str, value: Affine) -> Node:
    """The steps below a node with a loop variable replaced by a value."""
    if isinstance(node, Seq):
        return Seq(tuple(at(c, name, value) for c in node.children))
    assert isinstance(node, Issue)
    by = {name: value}
    operands = tuple(
        replace(
            o,
            tile=o.tile._replace(start=tuple(s.substitute(by) for s in o.tile.start)),
            place=replace(o.place, offset=o.place.offset.substitute(by)),
        )
        for o in node.operands
    )
    return replace(node, operands=operands, point=tuple((n, p.substitute(by)) for n, p in node.point))


def reordered(node: Node, order: list[int]) -> Node:
    """The loop over ``p`` unrolled in the given order."""
    if isinstance(node, Seq):
        return Seq(tuple(reordered(c, order) for c in node.children))
    if not isinstance(node, Loop):
        return node
    if node.var == "p" and node.enter != Seq():
        return Seq((node.enter, *(at(node.body, "p", V("kb") + i) for i in order), node.exit))
    names = ("enter", "first", "body", "last", "exit")
    return replace(node, **{n: reordered(p, order) for n in names if (p := getattr(node, n)) is not None})


def made(order: list[int], permits: frozenset[str]) -> Schedule:
    s = vec_matmul(permits=permits)
    return replace(s, call=reordered(s.call, order))


@pytest.mark.parametrize("permits", [PERMITS_DEFAULT, frozenset({"exact"})])
def test_order_is_free_only_where_permitted(permits):
    free = "reassociate" in permits
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [0, 2, 1, 3, 4]):
        s = made(order, permits)
        allowed = free or order == sorted(order)
        assert (check_flat(s) == []) == allowed
        assert (check_points(s) == []) == allowed
        assert check_tree(s) == []
        if not allowed:
            assert {v.obligation for v in check_points(s)} == {v.obligation for v in check_flat(s)} == {3}


def test_blocks_of_a_reduction_count_too():
    """The second block of K before the first: nothing wrong but the order of the terms."""
    for permits in (PERMITS_DEFAULT, frozenset({"exact"})):
        s = vec_matmul(permits=permits)
        loop = s.call
        assert isinstance(loop, Loop)
        assert loop.first is not None

        def moved(node: Node, value: int) -> Node:
            if isinstance(node, Seq):
                return Seq(tuple(moved(c, value) for c in node.children))
            if isinstance(node, Issue):
                return at(node, "kb", Affine((), value))
            by = {"kb": Affine((), value)}
            bounds = {n: tuple(b._replace(expr=b.expr.substitute(by)) for b in getattr(node, n)) for n in ("lo", "hi")}
            parts = {n: moved(p, value) for n in ("enter", "body", "exit") if (p := getattr(node, n)) is not None}
            return replace(node, **bounds, **parts)

        backwards = replace(s, call=Seq((moved(loop.first, 5), moved(loop.body, 0))))
        free = "reassociate" in permits
        assert (check_flat(backwards) == []) == free
        assert (check_points(backwards) == []) == free
        assert check_tree(backwards) == []


def in_one(node: Node | None) -> Node:
    """Sequences in a sequence as one, in loops too."""
    assert node is not None
    if isinstance(node, Loop):
        return replace(node, body=in_one(node.body))
    if isinstance(node, Issue):
        return node
    parts = [in_one(c) if isinstance(c, Loop | Seq) else c for c in node.children]
    return Seq(tuple(x for c in parts for x in (c.children if isinstance(c, Seq) else (c,))))


@pytest.mark.parametrize("order", [[4, 3, 2, 1, 0], [0, 2, 1, 3, 4], [0, 1, 2, 4, 3]])
def test_steps_in_one_sequence_are_judged_one_by_one(order):
    """A small product, whose terms stand one after the other without a loop."""
    for permits, right in ((PERMITS_DEFAULT, True), (frozenset({"exact"}), False)):
        s = vec_matmul(1, 8, 5, permits=permits)
        assert isinstance(s.call, Loop)
        one = replace(s, call=replace(s.call, body=in_one(reordered(s.call.body, order)),
                                      first=in_one(reordered(s.call.first, order))))  # fmt: skip
        assert (check_points(one) == []) is right
        assert right or {v.kind for v in check_points(one)} == {v.kind for v in check_flat(one)} == {"reassociate"}
        assert check_points(replace(s, call=reordered(s.call, sorted(order)))) == []
