"""A block computed at once and brought home piece by piece: what the iterations of a loop store is known after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import PERMITS_DEFAULT, Literal, Statement
from isam.ir.mapping import Cover
from isam.proof.flat import check_flat
from isam.proof.points import check_points
from isam.proof.tree import check_tree
from isam.schedule.tree import Issue, Nest, Node, Place, Schedule, Seq
from tests.unit.proof.handmade import at_home, cell, home, loop, mapping_of, move, op, seq, tile
from tests.unit.proof.handmade_machines import V, acc, buf, dom, kern, lit, tiny

Pieces = Callable[[Affine], list[tuple[Affine, int, int, int]]]  # first row, first column, rows, columns


def relu(pieces: Pieces, trips: int = 2, step: int = 2) -> Schedule:
    """``y = max(x, 0)`` in two blocks of four rows: each is brought to the scratchpad as a whole, from there a loop
    stores the pieces that are given. (There are two blocks, so that no store is of the whole of ``y``.)"""
    k = kern("relu", [buf("x", "in", 8, 4), buf("y", "out", 8, 4)], [
        Statement(dom(i=8, j=4), acc("y", "i", "j"), "max", (acc("x", "i", "j"), Literal(0)))],
        permits=PERMITS_DEFAULT)  # fmt: skip
    s = tiny()
    s = replace(s, memories={**s.memories, "sp": replace(s.memories["sp"], align=8)})
    homes = {b: home(k, "dram", b) for b in "xy"}
    ra, rb, sp = cell("ra", 0, [4, 4]), cell("rb", 0, [4, 4]), Place("sp", "", lit(0), (16, 4))
    call: list[Node] = []
    for first in (0, 4):
        tx, ty = (tile(b, [first, 0], [4, 4]) for b in "xy")
        stores = []
        for row, column, rows, columns in pieces(V("d")):
            t = tile("y", [row + first, column], [rows, columns])
            there = Place("sp", "", row * 16 + 4 * column, (16, 4))
            stores.append(move("dma", "copy", t, there, at_home(homes["y"], t)))
        point = (("i", lit(first)), ("j", lit(0)))
        call += [
            move("dma", "copy", tx, at_home(homes["x"], tx), sp), move("dma", "copy", tx, sp, ra),
            Issue("mm", "relu4", (("M", 4), ("N", 4)), (op("X", tx, ra), op("Y", ty, rb)), 0, point),
            move("dma", "copy", ty, rb, sp), loop("d", 0, step * trips, step, seq(*stores)),
        ]  # fmt: skip
    m = mapping_of(s, "relu4", (0,), [("X", acc("x", "i", "j")), ("Y", acc("y", "i", "j"))], {"i": "i", "j": "j"}, ())
    nest = Nest(0, (("i", lit(8)), ("j", lit(4))))
    return Schedule(k, s, Cover(k, k, (m,)), (nest,), Seq(), seq(*call), (), homes)


RIGHT = {
    "rows": relu(lambda d: [(d, 0, 2, 4)]),
    "two halves of rows": relu(lambda d: [(d, 0, 2, 2), (d, 2, 2, 2)]),
    "from the last row on": relu(lambda d: [(3 - d, 0, 1, 4)], 4, 1),
    "rows that overlap": relu(lambda d: [(d, 0, 2, 4)], 3, 1),
}
WRONG = {
    "half of the rows": relu(lambda d: [(d, 0, 1, 4)]),
    "half of the columns": relu(lambda d: [(d, 0, 2, 2)]),
    "an iteration too few": relu(lambda d: [(d, 0, 2, 2), (d, 2, 2, 2)], 1),
    "always the same": relu(lambda d: [(lit(0), 0, 2, 4)]),
    "a corner is missing": relu(lambda d: [(d, 0, 2, 2), (d, 2, 1, 2)]),
}


@pytest.mark.parametrize("what", RIGHT)
def test_what_all_iterations_store_together_is_at_home(what: str) -> None:
    s = RIGHT[what]
    assert check_flat(s) == check_points(s) == check_tree(s) == []


@pytest.mark.parametrize("what", WRONG)
def test_what_no_iteration_stores_is_not(what: str) -> None:
    s = WRONG[what]
    assert "final" in {v.kind for v in check_flat(s)}
    assert "final" in {v.kind for v in check_tree(s)}


@pytest.mark.parametrize(
    ("last", "rows", "right"), [(True, 4, True), (True, 3, False), (False, 4, True), (False, 3, False)]
)
def test_the_last_iteration_uses_what_all_have_brought(last: bool, rows: int, right: bool) -> None:
    """Rows are brought one by one; the last iteration, or what comes behind the loop, takes all of them."""
    s = relu(lambda d: [(d, 0, 2, 4)])
    assert isinstance(s.call, Seq)
    bring, use, *rest = s.call.children
    assert isinstance(bring, Issue)
    row = tile("x", ["d", 0], [1, 4])
    one = move("dma", "copy", row, at_home(s.homes["x"], row), Place("sp", "", V("d") * 16, (16, 4)))
    missing = 4 - rows
    loops = loop("d", missing, 4, 1, one, **({"last": seq(one, use)} if last else {"exit": use}))
    changed = replace(s, call=Seq((loops, *rest)), system=replace(s.system, memories={
        n: replace(m, align=4 if n == "sp" else m.align) for n, m in s.system.memories.items()}))  # fmt: skip
    judges = {n: judge(changed) for n, judge in (("flat", check_flat), ("tree", check_tree), ("points", check_points))}
    assert (judges["flat"] == []) is (judges["tree"] == []) is right, judges
    assert judges["points"] == []


def alternate(*stored: tuple[int, int]) -> Schedule:
    """``y = max(x, 0)`` by a loop whose iterations make two blocks of four rows each. What that leaves stale at home is
    said block by block, of all iterations: rows 0 to 12, and 4 to 16. Then ``stored`` (first row, rows) is brought."""
    k = kern("relu", [buf("x", "in", 16, 4), buf("y", "out", 16, 4)], [
        Statement(dom(i=16, j=4), acc("y", "i", "j"), "max", (acc("x", "i", "j"), Literal(0)))],
        permits=PERMITS_DEFAULT)  # fmt: skip
    s = tiny()
    homes = {b: home(k, "dram", b) for b in "xy"}
    ra, rb = cell("ra", 0, [4, 4]), cell("rb", 0, [4, 4])
    made: list[Node] = []
    for first in (0, 4):
        row = V("d") + first
        tx, ty = (tile(b, [row, 0], [4, 4]) for b in "xy")
        point = (("i", row), ("j", lit(0)))
        came, went = Place("sp", "", lit(256), (16, 4)), Place("sp", "", row * 16, (16, 4))
        made += [
            move("dma", "copy", tx, at_home(homes["x"], tx), came), move("dma", "copy", tx, came, ra),
            Issue("mm", "relu4", (("M", 4), ("N", 4)), (op("X", tx, ra), op("Y", ty, rb)), 0, point),
            move("dma", "copy", ty, rb, went),
        ]  # fmt: skip
    stores: list[Node] = []
    for first, rows in stored:
        t = tile("y", [first, 0], [rows, 4])
        stores.append(move("dma", "copy", t, Place("sp", "", lit(first * 16), (16, 4)), at_home(homes["y"], t)))
    call = seq(loop("d", 0, 16, 8, seq(*made)), *stores)
    m = mapping_of(s, "relu4", (0,), [("X", acc("x", "i", "j")), ("Y", acc("y", "i", "j"))], {"i": "i", "j": "j"}, ())
    nest = Nest(0, (("i", lit(16)), ("j", lit(4))))
    return Schedule(k, s, Cover(k, k, (m,)), (nest,), Seq(), call, (), homes)


ALTERNATE = [
    (((0, 4), (4, 4), (8, 4), (12, 4)), True),
    (((12, 4), (8, 4), (4, 4), (0, 4)), True),
    (((8, 4), (0, 8), (12, 4)), True),
    (((4, 8), (0, 4), (12, 4)), True),
    (((0, 4), (4, 4), (8, 4)), False),
    (((0, 4), (8, 4), (12, 4)), False),
    (((8, 4), (4, 4), (12, 4)), False),
    (((0, 4), (4, 4), (8, 4), (8, 4)), False),
    (((0, 4), (4, 4), (8, 4), (12, 3)), False),
]


@pytest.mark.parametrize(("stored", "right"), ALTERNATE)
def test_what_is_stale_by_halves_is_stored_in_rows(stored: tuple[tuple[int, int], ...], right: bool) -> None:
    s = alternate(*stored)
    assert check_points(s) == []
    for judge in (check_flat, check_tree):
        assert [v.kind for v in judge(s)] == ([] if right else ["final"])
