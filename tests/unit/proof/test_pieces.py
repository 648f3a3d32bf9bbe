"""A tile with steps that is brought piece by piece, each with steps too, and used at once."""

from __future__ import annotations

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import PERMITS_DEFAULT, Literal, Statement
from isam.ir.mapping import Cover, Mapping, OperandMap
from isam.proof.flat import check_flat
from isam.proof.points import check_points
from isam.proof.tree import check_tree
from isam.schedule.tree import Issue, Nest, Place, Schedule, Seq, Tile
from tests.unit.proof.handmade import at_home, cell, home, move, op, seq, tile
from tests.unit.proof.handmade_machines import acc, buf, dom, kern, lit, tiny


def even(*pieces: tuple[int, int, int], rows: int = 8, last: int = 4) -> Schedule:
    """``y[i, :] = max(x[2 i, :], 0)`` for four rows: pieces (first row, number of rows, byte in the scratchpad) are
    brought one by one, all rows go on together. ``rows``: bytes between rows of ``x`` there; ``last``: columns."""
    k = kern("even", [buf("x", "in", 8, 4), buf("y", "out", 4, 4)], [
        Statement(dom(i=4, j=4), acc("y", "i", "j"), "max", (acc("x", Affine.of("i", 2), "j"), Literal(0)))],
        permits=PERMITS_DEFAULT)  # fmt: skip
    s = tiny()
    homes = {b: home(k, "dram", b) for b in "xy"}
    steps = []
    for first, count, at in pieces:
        t = Tile("x", (lit(first), lit(0)), (count, last), (2 if count > 1 else 1, 1))
        steps.append(move("dma", "copy", t, at_home(homes["x"], t), Place("sp", "", lit(at), (rows, 4))))
    tx, ty = Tile("x", (lit(0), lit(0)), (4, 4), (2, 1)), tile("y", [0, 0], [4, 4])
    ra, rb, sp = cell("ra", 0, [4, 4]), cell("rb", 0, [4, 4]), Place("sp", "", lit(256), (16, 4))
    ra = Place("ra", "", lit(0), (8, 4), ra.cell)
    point = (("i", lit(0)), ("j", lit(0)))
    steps += [
        move("dma", "copy", tx, Place("sp", "", lit(0), (8, 4)), ra),
        Issue("mm", "relu4", (("M", 4), ("N", 4)), (op("X", tx, ra), op("Y", ty, rb)), 0, point),
        move("dma", "copy", ty, rb, sp), move("dma", "copy", ty, sp, at_home(homes["y"], ty)),
    ]  # fmt: skip
    x, y = acc("x", Affine.of("i", 2), "j"), acc("y", "i", "j")
    m = Mapping(s.instructions["relu4"], (0,), (
        OperandMap("X", "x", x.index, (0, 1), (2, 1)), OperandMap("Y", "y", y.index, (0, 1), (1, 1))),
        (("i", "i"), ("j", "j")), ())  # fmt: skip
    nest = Nest(0, (("i", lit(4)), ("j", lit(4))))
    return Schedule(k, s, Cover(k, k, (m,)), (nest,), Seq(), seq(*steps), (), homes)


RIGHT = {
    "at once": even((0, 4, 0)),
    "in halves": even((0, 2, 0), (4, 2, 32)),
    "three and one": even((0, 3, 0), (6, 1, 48)),
    "with a row twice": even((0, 3, 0), (4, 2, 32)),
}
WRONG = {
    "a row is missing": even((0, 2, 0), (6, 1, 48)),
    "odd rows": even((0, 2, 0), (5, 2, 32)),
    "the second half elsewhere": even((0, 2, 0), (4, 2, 64)),
    "the second half over the first": even((0, 2, 0), (4, 2, 16)),
    "rows further apart": even((0, 2, 0), (4, 2, 32), rows=16),
    "a column is missing": even((0, 2, 0), (4, 2, 32), last=3),
}


@pytest.mark.parametrize("what", RIGHT)
def test_pieces_that_make_the_tile(what: str) -> None:
    assert check_flat(RIGHT[what]) == check_points(RIGHT[what]) == check_tree(RIGHT[what]) == []


@pytest.mark.parametrize("what", WRONG)
def test_pieces_that_do_not(what: str) -> None:
    assert {"stale", "absent"} & {v.kind for v in check_flat(WRONG[what])}
    assert "stale" in {v.kind for v in check_tree(WRONG[what])}
