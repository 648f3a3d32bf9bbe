"""Lags: never more than the nearest call in question is behind, whatever the tree; as many as that where it matters."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.proof.races import calls, check_races
from isam.schedule.tree import Bound, Deal, Issue, Loop, Operand, Place, Schedule, Seq, Tile, distinct
from isam.scheduler.waits import for_results, with_waits
from isam.scheduler.waits.look import Met
from isam.scheduler.waits.within import Within
from tests.random_groups import Groups
from tests.random_streams import Boxes, Dealt, Trees, nearest
from tests.unit.scheduler.test_tokens import changed

SEEDS = 180


@cache
def marked(seed: int) -> Schedule:
    return with_waits(Trees(seed).schedule())


@pytest.mark.parametrize("block", range(6))
def test_no_lag_is_too_long_on_random_trees(block):
    """Judged by looking at all pairs of calls, and by the judge of races."""
    for seed in range(block * SEEDS // 6, (block + 1) * SEEDS // 6):
        schedule = marked(seed)
        exact = nearest(schedule, calls(schedule.call, {}))
        issues = {id(n): n for n in distinct(schedule.call) if isinstance(n, Issue)}
        for (call, stream), lag in exact.items():
            mine = {w.stream: w.lag for w in issues[call].after}
            if len({n.unit for n in issues.values()}) > 1:
                assert mine.get(stream, lag + 1) <= lag, (seed, issues[call])
        assert len({n.unit for n in issues.values()}) < 2 or not check_races(schedule, {}, 1), seed


@pytest.mark.parametrize("drawn", [Groups, Dealt])
def test_what_is_passed_by_unseen_holds_nobody_new(drawn: type, monkeypatch: pytest.MonkeyPatch):
    """A look back ends, and passes by loops, where whoever may be met there was met: looking on finds the same."""
    schedules = [drawn(seed).schedule() for seed in range(30)]
    short = [with_waits(s) for s in schedules]
    streams, touches = Within.streams, Within._touches

    def endless(*given: Any) -> Any:
        places = touches(*given)
        for touched in (t for by_place in places for t in by_place.values()):
            touched.streams |= {Met("nobody")}
        return places

    monkeypatch.setattr(Within, "streams", lambda *given: streams(*given) | {Met("nobody")})
    monkeypatch.setattr(Within, "_touches", endless)
    assert all(a == with_waits(s) for a, s in zip(short, schedules, strict=True))


@pytest.mark.parametrize("still", [True, False])
def test_waits_for_results_are_told_from_those_for_room(still):
    """A wait is for a result where no call in question is nearer than the nearest whose result is read."""
    told = {True: 0, False: 0}
    for seed in range(70):
        schedule = with_waits(Trees(seed, still).schedule())
        every, read = (nearest(schedule, calls(schedule.call, {}), reads) for reads in (False, True))
        results = for_results(schedule)
        for i in (n for n in distinct(schedule.call) if isinstance(n, Issue)):
            for w in i.after:
                exact = every.get((id(i), w.stream)) == w.lag
                found = w in results[id(i)]
                if read.get((id(i), w.stream)) == w.lag:
                    assert found, (seed, i, w)
                elif exact and still:
                    assert not found, (seed, i, w)
                told[found] += exact
    assert min(told.values()) > 50, told


@pytest.mark.parametrize("block", range(3))
def test_boxes_of_rows(block):
    """Never too long a lag, wherever boxes lie beside each other, overlap or wrap around the end of a row."""
    waits = 0
    for seed in range(240 + block * 40, 280 + block * 40):
        schedule = with_waits(Boxes(seed).schedule())
        exact = nearest(schedule, calls(schedule.call, {}))
        issues = {id(n): n for n in distinct(schedule.call) if isinstance(n, Issue)}
        if len({n.unit for n in issues.values()}) < 2:
            continue
        assert not check_races(schedule, {}, 1), seed
        for (call, stream), lag in exact.items():
            assert {w.stream: w.lag for w in issues[call].after}.get(stream, lag + 1) <= lag, (seed, issues[call])
        waits += len(exact)
    assert waits > 200


@pytest.mark.parametrize(
    ("start", "rows", "waits"),
    [(8, 0, False), (7, 0, True), (-8, 0, False), (8, 1, False), (24, 0, False), (28, 0, True), (28, 5, False)],
    ids=["beside", "overlapping", "wrapped below", "beside in later rows", "far beside", "wrapped", "rows below"],
)
def test_boxes_beside_each_other(start: int, rows: int, waits: bool):
    """Of two units, one writes columns 0 to 8 of rows 0 to 3 in every iteration, the other from ``start`` on."""
    made = Boxes(0)
    calls = [box_call(made, "u0", 0, "i", 0), box_call(made, "u1", start, "i", rows)]
    tree = Loop("i", (Bound(Affine()),), (Bound(Affine((), 2)),), 1, Seq(tuple(calls)))
    done = with_waits(replace(made.schedule(), call=Seq((tree,))))
    second = [n for n in distinct(done.call) if isinstance(n, Issue) and n.unit == "u1"]
    assert any(w.stream == "u0" for w in second[0].after) is waits
    assert not check_races(done, {}, 1)


@pytest.mark.parametrize("odd", range(9))
def test_one_of_many_boxes_lies_elsewhere(odd: int):
    """Nine boxes of one unit below each other, all but one in columns 0 to 8: who touches that one's bytes waits."""
    made = Boxes(0)
    many = Seq(tuple(box_call(made, "u0", 16 if k == odd else 0, "i", 10 * k) for k in range(9)))
    tree = Loop("i", (Bound(Affine()),), (Bound(Affine((), 4)),), 1, many)
    second = [box_call(made, "u1", column, "j", 10 * odd) for column in (16, 8)]
    after = Loop("j", (Bound(Affine()),), (Bound(Affine((), 4)),), 1, Seq(tuple(second)))
    done = with_waits(replace(made.schedule(), call=Seq((tree, after))))
    marked = [n for n in distinct(done.call) if isinstance(n, Issue) and n.unit == "u1"]
    assert any(w.stream == "u0" for w in marked[0].after)
    assert not check_races(done, {}, 1)


def box_call(made: Boxes, unit: str, column: int, row: str, below: int) -> Issue:
    """Writes 3 rows of 8 columns, from row ``row + below`` on."""
    tile = Tile("x", (Affine(), Affine()), (3, 8), (1, 1))
    at = (Affine.of(row) + below + 8) * made.PITCH + column
    source, target = Place("n", "", Affine(), (made.PITCH, 1)), Place("m", "", at, (made.PITCH, 1))
    operands = Operand("S", tile, source, (0, 1)), Operand("D", tile, target, (0, 1))
    return Issue(unit, "copy", (("M", 3), ("N", 8)), operands)


def test_boxes_that_begin_and_end_alike_do_not_meet_the_same():
    """Behind a call on columns 8 to 16: in a loop, one beside them and one on all bytes between the same two."""
    made = Boxes(0)
    before, beside = box_call(made, "u0", 8, "i", 0), box_call(made, "u1", 0, "i", 0)
    tile, at = Tile("x", (Affine(), Affine()), (3, 24), (1, 1)), Affine((), 8 * made.PITCH)
    places = Place("n", "", Affine(), (24, 1)), Place("m", "", at, (24, 1))
    operands = tuple(Operand(n, tile, p, (0, 1)) for n, p in zip("SD", places, strict=True))
    rows = Issue("u1", "copy", (("M", 3), ("N", 24)), operands)
    still = [replace(n, operands=tuple(replace(o, place=replace(o.place, offset=o.place.offset.substitute({"i": 0})))
                                       for o in n.operands)) for n in (before, beside)]  # fmt: skip
    tree = Loop("i", (Bound(Affine()),), (Bound(Affine((), 2)),), 1, Seq((still[1], rows)))
    done = with_waits(replace(made.schedule(), call=Seq((still[0], tree))))
    assert not check_races(done, {}, 1)


@pytest.mark.parametrize("seed", range(100))
def test_lags_are_exact_where_addresses_stand_still(seed):
    schedule = with_waits(Trees(seed, still=True).schedule())
    exact = nearest(schedule, calls(schedule.call, {}))
    issues = [n for n in distinct(schedule.call) if isinstance(n, Issue)]
    assert {(id(n), w.stream): w.lag for n in issues for w in n.after} == exact


def test_in_most_of_these_somebody_waits():
    trees = [with_waits(Trees(seed, still=True).schedule()) for seed in range(100)]
    assert sum(any(n.after for n in distinct(t.call) if isinstance(n, Issue)) for t in trees) > 50


def test_a_longer_lag_is_found_by_the_judge_of_races():
    """Every wait that stands alone between two calls is needed: the judge finds its weakening."""
    found = weakened = 0
    for seed in range(0, SEEDS, 3):
        schedule, rng = marked(seed), random.Random(seed)
        exact = nearest(schedule, calls(schedule.call, {}))
        tight = [(n, w) for n in distinct(schedule.call) if isinstance(n, Issue) for w in n.after
                 if exact.get((id(n), w.stream)) == w.lag]  # fmt: skip
        if not tight:
            continue
        n, w = rng.choice(tight)
        weaker = tuple(replace(x, lag=x.lag + 1) if x is w else x for x in n.after)
        weakened += 1
        found += bool(check_races(replace(schedule, call=changed(schedule.call, n, weaker)), {}, 1))
    assert found > weakened / 3, (found, weakened)  # the others are implied by what else is waited for


@pytest.mark.parametrize("block", range(3))
def test_dealt_loops_do_not_race(block):
    """On random trees of dealt loops, kept loops and calls at home: every instance has its streams and its memory."""
    every = 0
    for seed in range(block * 60, block * 60 + 60):
        schedule = with_waits(Dealt(seed).schedule())
        assert not check_races(schedule, {}, 1), seed
        every += any(w.every for n in distinct(schedule.call) if isinstance(n, Issue) for w in n.after)
    assert every > 12


@pytest.mark.parametrize(("step", "every"), [(1, False), (3, True)])
def test_equal_numbers_of_iterations_of_other_steps(step: int, every: bool):
    """Slot 3 is written by the fourth instance and read, where the second loop goes in steps of 3, by the second."""
    made = Dealt(0)

    def dealt(var: str, step: int, calls: list[Issue]) -> Loop:
        ends = (Bound(Affine()),), (Bound(Affine((), 4 * step)),)
        return Loop(var, *ends, step, Seq(tuple(calls)), deal=Deal("core", 0, 1))

    near = Place("l", "", Affine(), (1,))
    slots = {v: Place("m", "", Affine.of(v, made.SLOT), (1,)) for v in ("i", "j")}
    write, load = made.move("dma", near, slots["i"]), made.move("dma", slots["j"], near)
    tree = Seq((dealt("i", 1, [write]), dealt("j", step, [load])))
    done = with_waits(replace(made.schedule(), call=tree))
    read = [n for n in distinct(done.call) if isinstance(n, Issue)][-1]
    assert any(w.every for w in read.after) is every
    assert not check_races(done, {}, 1)


@pytest.mark.parametrize("trip", [1, 2, 3, 9])
def test_a_loop_outside_is_one_instance_for_all_others(trip: int):
    """Slots are written by the first instance, however long ago in its loop, and read by whoever a loop is dealt to."""
    made = Dealt(0)
    near = Place("l", "", Affine(), (1,))
    slots = {v: Place("m", "", Affine.of(v, made.SLOT), (1,)) for v in ("i", "j")}
    write, load = made.move("dma", near, slots["i"]), made.move("dma", slots["j"], near)
    before = Loop("i", (Bound(Affine()),), (Bound(Affine((), trip)),), 1, Seq((write,)))
    after = Loop("j", (Bound(Affine()),), (Bound(Affine((), 2)),), 1, Seq((load,)), deal=Deal("core", 0, 1))
    done = with_waits(replace(made.schedule(), call=Seq((before, after))))
    read = [n for n in distinct(done.call) if isinstance(n, Issue)][-1]
    assert any(w.every for w in read.after)
    assert not check_races(done, {}, 1)
