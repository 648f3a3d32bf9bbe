"""A slot of the workspace that every instance has for itself: brought in one dealt loop, used in the next."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.kernel import PERMITS_DEFAULT, Literal, Statement
from isam.ir.mapping import Cover
from isam.proof.flat import check_flat
from isam.proof.points import check_points
from isam.proof.tree import check_tree
from isam.schedule.tree import Deal, Issue, Loop, Nest, Place, Schedule, Seq, Slot
from isam.system.groups import Replica
from tests.unit.proof.handmade import at_home, cell, home, loop, mapping_of, move, op, seq, tile
from tests.unit.proof.handmade_machines import V, acc, buf, dom, kern, lit, tiny

CORES = Replica("core", 4, ("sp", "ra", "rb"), ("mm", "dma"))


def relu(
    use: Deal | None = None, at: int = 0, size: int = 64, count: int = 2, between: str = "", taken: int = 4
) -> Schedule:
    """``y = max(x, 0)``, in blocks of four rows: loop ``d`` brings them to the slot W of its instances, loop ``e``
    takes them from there, from byte ``at`` of a slot of ``size``, so many rows at once. ``use``: how ``e`` is dealt;
    ``between``: what overwrites the slots: ``all`` of them, or that of ``one`` instance."""
    rows = 4 * count
    k = kern("relu", [buf("x", "in", rows, 4), buf("y", "out", rows, 4)], [
        Statement(dom(i=rows, j=4), acc("y", "i", "j"), "max", (acc("x", "i", "j"), Literal(0)))],
        permits=PERMITS_DEFAULT)  # fmt: skip
    s = replace(tiny(), replicas={"core": CORES})
    homes = {b: home(k, "dram", b) for b in "xy"}
    tx, slot = tile("x", ["d", 0], [4, 4]), Place("sp", "W", lit(at), (16, 4))
    first = move("dma", "copy", tx, at_home(homes["x"], tx), slot)
    second = []
    for row in range(0, 4, taken):
        ra, rb = (cell("ra", n, [taken, 4]) for n in (0, 1))
        mine, ty = (tile(b, [V("e") + row, 0], [taken, 4]) for b in "xy")
        point, back = (("i", V("e") + row), ("j", lit(0))), Place("sp", "", lit(0), (16, 4))
        second += [
            move("dma", "copy", mine, replace(slot, offset=slot.offset + 16 * row), ra),
            Issue("mm", "relu4", (("M", taken), ("N", 4)), (op("X", mine, ra), op("Y", ty, rb)), 0, point),
            move("dma", "copy", ty, rb, back), move("dma", "copy", ty, back, at_home(homes["y"], ty)),
        ]  # fmt: skip
    m = mapping_of(s, "relu4", (0,), [("X", acc("x", "i", "j")), ("Y", acc("y", "i", "j"))], {"i": "i", "j": "j"}, ())
    loops: list[Loop] = [replace(loop("d", 0, rows, 4, first), deal=Deal("core", 0, 1))]
    if between:
        zero = tile("x", [0, 0], [4, 4])
        over = move("dma", "copy", zero, at_home(homes["x"], zero), slot)
        trip, start = (count, 0) if between == "all" else (1, 1)
        loops.append(replace(loop("f", 0, trip, 1, over), deal=Deal("core", start, 1)))
    loops.append(replace(loop("e", 0, rows, 4, seq(*second)), deal=use or Deal("core", 0, 1)))
    nest = Nest(0, (("i", lit(rows)), ("j", lit(4))))
    return Schedule(k, s, Cover(k, k, (m,)), (nest,), Seq(), seq(*loops), (Slot("W", "sp", size),), homes)


@pytest.mark.parametrize(
    "s", [relu(), relu(at=16, size=80), relu(count=4), relu(count=3, size=200), relu(taken=2), relu(taken=1)]
)
def test_each_instance_finds_its_own(s: Schedule) -> None:
    assert check_points(s) == check_tree(s) == check_flat(s) == []


WRONG = {
    "the others' slots": relu(Deal("core", 1, 1)),
    "one instance for all": relu(Deal("core", 0, 0)),
    "every second instance": relu(Deal("core", 0, 2)),
    "two instances on": relu(Deal("core", 2, 1)),
    "a slot that is too small": relu(size=60),
    "a place behind the slot": relu(at=16),
    "overwritten in all": relu(between="all"),
    "overwritten in one": relu(between="one"),
    "the others' slots, row by row": relu(Deal("core", 1, 1), taken=1),
    "overwritten in one, two rows at a time": relu(between="one", taken=2),
    "an instance too many": relu(Deal("core", 3, 1)),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_another_instance_holds_is_not_here(what: str) -> None:
    s = WRONG[what]
    assert check_points(s) or check_tree(s), what
    assert check_flat(s), what
