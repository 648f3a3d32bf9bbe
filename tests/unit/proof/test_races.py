"""Two calls on two units that touch the same cells or bytes, or do not: with and without a wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.proof.races import calls, check_races
from isam.schedule.tree import Issue, Place, Schedule, Wait
from tests.unit.proof.handmade import loop, op, seq, tile, tiny_matmul
from tests.unit.proof.handmade_machines import lit

FEW = (("M", 2), ("N", 2))


def pair(first: Place, second: Place, writes: bool = True, waits: bool = False, dtype: str = "f32") -> Schedule:
    """``dma`` puts two rows of two elements in ``first``; ``mm`` then takes two in ``second``, or overwrites them."""
    s = tiny_matmul()
    k = replace(s.kernel, buffers=tuple(replace(b, dtype=dtype) for b in s.kernel.buffers))
    a, c = tile("A", [0, 0], [2, 2]), tile("C", [0, 0], [2, 2])
    put = Issue("dma", "copy", FEW, (op("S", a, Place("dram", "A", lit(0), (48, 4))), op("D", a, first)))
    far = Place("rb", "", lit(0), (8, 4), 7)
    x, y = (far, second) if writes else (second, far)
    after = (Wait("dma", 0),) if waits else ()
    use = Issue("mm", "relu4", FEW, (op("X", c, x), op("Y", c, y)), 0, (), after)
    return replace(s, kernel=k, cover=replace(s.cover, kernel=k, original=k), call=seq(put, use))


def cells(number: int, row: int = 8, memory: str = "ra") -> Place:
    return Place(memory, "", lit(0), (row, 4), number)


def scratch(at: int, row: int = 8) -> Place:
    return Place("sp", "", lit(at), (row, 4))


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize(("first", "second", "meet"), [
    (cells(0), cells(0), True), (cells(0), cells(1), False), (cells(0), cells(0, memory="rb"), False),
    (cells(0, 64), cells(1), True), (cells(0, 64), cells(2), False), (cells(1), cells(0, 64), True),
    (cells(3), cells(2, 128), True), (cells(0, 16), cells(0, 8), True),
    (scratch(0), scratch(0), True), (scratch(0), scratch(16), False), (scratch(0), scratch(12), True),
    (scratch(12), scratch(0), True), (scratch(0, 32), scratch(8, 32), False), (scratch(8, 32), scratch(0, 32), False),
    (scratch(0, 32), scratch(4, 32), True), (scratch(0, 32), scratch(16), False), (scratch(0, 32), scratch(24), True),
    (scratch(40, -32), scratch(8), True), (scratch(40, -32), scratch(24), False),
])  # fmt: skip
def test_what_meets_must_wait(first: Place, second: Place, meet: bool, writes: bool) -> None:
    for dtype in ("f32", "i8"):
        if dtype == "i8" and first.cell is None:
            continue  # the places above are counted in elements of four bytes
        assert bool(check_races(pair(first, second, writes, dtype=dtype))) == meet
        assert not check_races(pair(first, second, writes, waits=True, dtype=dtype))


def test_readers_do_not_race_and_every_iteration_is_looked_at() -> None:
    s = pair(scratch(0), scratch(0), writes=False)
    put, use = s.call.children
    both = replace(put, operands=tuple(replace(o, name={"S": "D", "D": "S"}[o.name]) for o in put.operands))
    assert not check_races(replace(s, call=seq(both, use)))
    moving = replace(put, operands=(put.operands[0], replace(put.operands[1], place=scratch(96))))
    drift = tuple(replace(o, place=replace(o.place, offset=lit("t") * -32 + 96)) if o.name == "D" else o
                  for o in moving.operands)  # fmt: skip
    for trip, races in ((3, False), (4, True)):
        body = loop("t", 0, trip, 1, replace(moving, operands=drift))
        assert bool(check_races(replace(s, call=seq(body, use)))) == races


@pytest.mark.parametrize("part", ["first", "last", "body", "enter", "exit"])
def test_every_part_of_a_loop_is_looked_at_when_it_runs(part: str) -> None:
    """What touches the scratchpad stands in one part; the others do nothing."""
    s = pair(scratch(0), scratch(0))
    put, use = s.call.children
    nothing = seq()
    parts = dict.fromkeys(("first", "last", "enter", "exit"), nothing)
    for trip in (0, 2, 3):  # at the least what is peeled, or nothing
        runs = trip > (2 if part == "body" else 0)
        own = {**parts, "body": nothing, part: put}
        one = loop("t", 0, trip, 1, own.pop("body"), **own)
        assert bool(check_races(replace(s, call=seq(one, use)))) == runs, trip
        touched = [i for i, _ in calls(one, {}) if i is put]
        assert len(touched) == runs


def test_what_was_waited_for_once_is_done_for_all_that_follows() -> None:
    s = pair(scratch(0), scratch(0))
    put, use = s.call.children
    elsewhere = pair(scratch(0), scratch(512)).call.children[1]
    waiting = replace(elsewhere, after=(Wait("dma", 0),))
    assert check_races(replace(s, call=seq(put, elsewhere, use)))
    assert not check_races(replace(s, call=seq(put, waiting, use)))
    far = [pair(scratch(0), scratch(1024 + 64 * n)).call.children[1] for n in range(2)]
    assert not check_races(replace(s, call=seq(put, far[0], waiting, far[1], use)))
    assert check_races(replace(s, call=seq(put, far[0], waiting, far[1], put, use)))


def test_one_command_does_its_calls_one_after_the_other_and_a_cluster_side_by_side() -> None:
    s = pair(scratch(0), scratch(512))
    put = s.call.children[0]
    assert isinstance(put, Issue)
    far = [replace(o, place=scratch(4)) if o.name == "D" else o for o in put.operands]
    for unit, races in (("dma", False), ("mm", True)):
        more = replace(put, unit=unit, operands=tuple(far), joined=True)
        assert bool(check_races(replace(s, call=seq(put, more)))) == races
