"""Waits judged on the tree, for all trips: whoever may start too early is seen, call after call being the judge; and
what the scheduler makes is shown, however its trees look."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Sym
from isam.proof import certificate, pairs, waits
from isam.proof.dealt import Dealt as DealtLoops
from isam.proof.facts import Facts
from isam.proof.filled import with_boxes
from isam.proof.legal import Legality
from isam.proof.races import calls, check_races
from isam.proof.sets import Isl
from isam.proof.violation import Findings, Violation
from isam.schedule.tree import Bound, Deal, Issue, Loop, Node, Operand, Place, Schedule, Seq, Wait
from isam.scheduler.waits import with_waits
from isam.system.graph import Unit
from tests.campaign_waits import KINDS, apart, changed, judged, one
from tests.random_streams import Trees, nearest
from tests.unit.proof.handmade import loop, seq, tiny_matmul
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.test_races import cells, pair, scratch
from tests.unit.proof.test_side_by_side import replicated, trees
from tests.unit.proof.test_walks import racers

V = Affine.of


def beside(s: Schedule) -> list[Violation]:
    """What two iterations of a dealt loop may meet in."""
    told, out = with_boxes(s), Findings()
    DealtLoops(told, Facts(Legality(told), Isl(), False), out).check()
    return out.found


@pytest.mark.parametrize("block", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_what_the_scheduler_makes_is_shown_and_less_is_seen(kind: str, block: int) -> None:
    """A sample of ``python -m tests.campaign_waits``."""
    many = {"dealt": 12, "boxes": 3, "trees": 5}[kind]
    found = sum((one(kind, seed) for seed in range(1000 + block * many, 1000 + (block + 1) * many)), Counter[str]())
    assert found["shown"] == many
    assert not found["race, not seen"]
    assert found["race, refused"] > 2


@pytest.mark.parametrize("block", range(4))
def test_every_call_that_may_start_too_early_is_refused(block: int) -> None:
    """A sample of the fourth kind of trees there: groups dealt into each other, clusters, commands, sizes."""
    found = sum((apart(seed) for seed in range(block * 14, block * 14 + 14)), Counter[str]())
    assert not found["race, not seen"]
    assert found["race, refused"] > 20
    assert found["refused, no race"] < found["race, refused"]
    assert found["accepted, no race"] > 20


@pytest.mark.parametrize("kind", ["one", "cores", "threads"])
def test_who_may_start_too_early_is_seen_whatever_is_waited_for(kind: str) -> None:
    """Waits drawn at random, most of them of no use: cells, rows side by side, elements apart, peeled loops, cores."""
    s, said = tiny_matmul() if kind == "one" else replicated("ra", threads=kind == "threads"), Counter[str]()
    units = {**s.system.units, "more": Unit("more", ("copy",), 1e9)}
    s = replace(s, system=replace(s.system, units=units))
    for part in range(200 if kind == "one" else 260):
        choose = random.Random(f"waits {kind} {part}")
        made = replace(s, call=racers(choose) if kind == "one" else trees(choose))
        if kind != "one" and beside(made):
            continue  # iterations of one dealt loop meet: nothing that waits are for
        raced, found = bool(check_races(made, {}, 1)), bool(judged(made))
        assert found or not raced, part
        said["race" if raced else "refused" if found else "shown"] += 1
    assert said["race"] > 12
    assert said["shown"] > 12
    assert said["refused"] < said["race"]  # some wait for a call that has waited for the other


@pytest.mark.parametrize("writes", [True, False])
@pytest.mark.parametrize(("first", "second", "meet"), [
    (cells(0), cells(0), True), (cells(0), cells(1), False), (cells(0), cells(0, memory="rb"), False),
    (cells(0, 64), cells(1), True), (cells(0, 64), cells(2), False), (cells(3), cells(2, 128), True),
    (scratch(0), scratch(0), True), (scratch(0), scratch(16), False), (scratch(0), scratch(12), True),
    (scratch(0, 32), scratch(8, 32), False), (scratch(8, 32), scratch(0, 32), False),
    (scratch(0, 32), scratch(4, 32), True), (scratch(40, -32), scratch(8), True),
    (scratch(40, -32), scratch(24), False),
])  # fmt: skip
def test_what_meets_must_wait(first: Place, second: Place, meet: bool, writes: bool) -> None:
    assert bool(judged(pair(first, second, writes))) == meet
    assert not judged(pair(first, second, writes, waits=True))


# sizes that are given at run time -------------------------------------------------------------------------------------
def streamed(ahead: int, lag: int, back: int = 8, slots: bool = False) -> Schedule:
    """``dma`` fills what ``more`` reads ``ahead`` steps later, each at its own place, for any number of steps."""
    s = pair(scratch(0), scratch(0), writes=False)
    units = {**s.system.units, "more": Unit("more", ("copy",), 1e9)}
    sym = Sym("T", 1 + ahead)
    kernel = replace(s.kernel, syms=(sym,))
    put, use = s.call.children
    apart = 0 if slots else 32

    def placed(n: Issue, name: str, at: Affine) -> tuple[Operand, ...]:
        return tuple(replace(o, place=replace(o.place, offset=at)) if o.place.memory == "sp" else o for o in n.operands)

    assert isinstance(put, Issue)
    assert isinstance(use, Issue)
    after = (Wait("more", back), Wait("dma", 0)) if slots else ()
    fill = replace(put, operands=placed(put, "D", V("t") * apart), after=after)
    first = [replace(put, operands=placed(put, "D", lit(n * apart)), after=after) for n in range(ahead)]
    take = replace(use, unit="more", instruction="copy", nest=None, after=(Wait("dma", lag), Wait("more", 0)),
                   operands=tuple(replace(o, name={"X": "S", "Y": "D"}[o.name])
                                  for o in placed(use, "X", (V("t") - ahead) * apart)))  # fmt: skip
    body = loop("t", lit(ahead), V("T"), 1, seq(fill, take))
    return replace(s, kernel=kernel, system=replace(s.system, units=units), call=seq(*first, body),
                   cover=replace(s.cover, kernel=kernel, original=kernel))  # fmt: skip


@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_what_runs_ahead_of_a_loop_whose_trip_is_not_known(ahead: int) -> None:
    """As many calls lie between as it runs ahead; one more may be the one that is waited for."""
    for lag in range(ahead + 3):
        s = streamed(ahead, lag)
        assert bool(judged(s)) == (lag > ahead), lag
        assert bool(check_races(s, {"T": ahead + 5})) == (lag > ahead), lag


def test_what_comes_round_waits_for_who_reads_it_still() -> None:
    for back in (0, 1, 2):
        s = streamed(0, 0, back, slots=True)
        assert bool(judged(s)) == (back > 0) == bool(check_races(s, {"T": 6})), back


# numbers of instances -------------------------------------------------------------------------------------------------
def on_cores(*parts: tuple[tuple[Deal, int], ...]) -> Schedule:
    """A loop twice around loops that are dealt in given ways, each with two calls on its scratchpad; waits as the
    scheduler gives them."""
    s = replicated("sp")
    choose = random.Random(str(parts))
    rows: list[Node] = []
    for n, deals in enumerate(parts):
        body: Node = seq(*(work(choose) for _ in range(2)))
        for depth, (deal, trip) in reversed(list(enumerate(deals))):
            body = replace(loop(f"d{n}_{depth}", 0, trip, 1, body), deal=deal)
        rows.append(body)
    made = replace(s, call=loop("t", 0, 2, 1, seq(*rows)))
    assert isinstance(made.call, Loop)
    return with_waits(made)


def work(choose: random.Random) -> Issue:
    s = pair(scratch(choose.choice((0, 16))), scratch(0))
    put = s.call.children[0]
    assert isinstance(put, Issue)
    return put


def test_loops_that_deal_in_different_ways_meet_where_their_instances_do() -> None:
    one, two, far = (Deal("core", 0, 1), 2), (Deal("core", 0, 2), 2), (Deal("core", 2, 1), 2)
    grid = two, one
    for parts in ([(one,), (far,)], [(one,), grid], [grid, (one,), grid], [(far,), grid, (one,)]):
        s = on_cores(*parts)
        assert not judged(s)
        assert not check_races(s)
        without = changed(s, lambda n: ())
        assert judged(without)
        assert check_races(without)


def test_what_one_instance_does_is_not_counted_for_another() -> None:
    """Of a loop dealt inside another one: its begin is not that of an outermost one, and others' calls are not one's
    own."""
    one, two = Deal("core", 0, 1), Deal("core", 0, 2)
    s, choose = replicated("sp"), random.Random(1)
    put = work(choose)
    late = replace(put, after=(Wait("dma", 1),))
    own = replace(loop("a", 0, 2, 1, put), deal=one)
    between = replace(loop("b", 0, 2, 1, replace(loop("c", 0, 2, 1, replace(put, unit="mm")), deal=one)), deal=two)
    for after, races in (((Wait("dma", 0),), False), ((Wait("dma", 1),), True), ((Wait("dma", 0, True),), False),
                         ((Wait("dma", 1, True),), False), ((Wait("dma", 2, True),), True)):  # fmt: skip
        nothing = replace(loop("b", 0, 2, 1, replace(loop("c", 0, 2, 1, seq()), deal=one)), deal=two)
        last = replace(loop("e", 0, 2, 1, replace(late, after=after)), deal=one)
        made = replace(s, call=seq(own, nothing, last))
        assert bool(check_races(made)) == races, after
        assert bool(judged(made)) == races, after
    assert judged(replace(s, call=seq(own, between)))


def test_what_the_first_instance_does_is_not_counted_for_others() -> None:
    """What is dealt to nobody is on instance 0; in one of two loops that are dealt, on the first of a few."""
    one, two = Deal("core", 0, 1), Deal("core", 0, 2)
    s, put = replicated("sp"), work(random.Random(1))
    far = tuple(replace(o, place=replace(o.place, offset=o.place.offset + 512)) for o in put.operands)
    away = replace(put, operands=far)

    def dealt(name: str, body: Node, deal: Deal) -> Loop:
        return replace(loop(name, 0, 2, 1, body), deal=deal)

    for lag, races in ((0, False), (1, True)):
        late = replace(put, after=(Wait("dma", lag),))
        alone = seq(dealt("a", put, one), away, dealt("b", late, one))
        grid = seq(dealt("a", dealt("c", put, one), two), dealt("d", away, two), dealt("b", dealt("c", late, one), two))
        for call in (alone, grid):
            assert bool(judged(replace(s, call=call))) == bool(check_races(replace(s, call=call))) == races, lag
    more = seq(dealt("a", dealt("c", put, one), two), dealt("b", dealt("c", seq(away, late), one), two))
    assert not judged(replace(s, call=more))


def test_what_is_dealt_to_others_is_not_counted() -> None:
    """A loop that deals to fewer instances, to others, or otherwise in one that is dealt alike; one whose own first
    iteration is on the instance that the call stands on by itself."""
    s, put = replicated("sp", count=8), work(random.Random(1))
    far = tuple(replace(o, place=replace(o.place, offset=o.place.offset + 512)) for o in put.operands)
    late, away = replace(put, after=(Wait("dma", 1),)), replace(put, operands=far)

    def dealt(body: Node, *deals: tuple[int, int, int]) -> Node:
        for n, (first, stride, trip) in reversed(list(enumerate(deals))):
            body = replace(loop(f"d{n}", 0, trip, 1, body), deal=Deal("core", first, stride))
        return body

    one, grid, alone = ((0, 1, 2),), ((0, 2, 2), (0, 1, 2)), ()
    for here, there, races in (
        (one, one, False), (((0, 1, 4),), one, True), (one, ((2, 1, 2),), True),
        (one, ((1, 1, 2),), True), (one, ((0, 2, 2),), True), (grid, grid, False), (grid, ((0, 2, 2), (0, 1, 1)), True),
        (grid, ((0, 4, 2), (0, 1, 2)), True), (grid, ((0, 2, 2), (1, 1, 1)), True), (alone, one, False),
        (alone, ((1, 1, 2),), True), (alone, grid, False), (alone, ((0, 2, 2), (1, 1, 1)), True),
        (one, ((0, 1, 0),), True), (((0, 2, 2),), grid, False),
    ):  # fmt: skip
        made = replace(s, call=seq(dealt(put, *here), dealt(away, *there), dealt(late, *here)))
        assert bool(check_races(made)) == bool(judged(made)) == races, (here, there)


# numbers of calls -----------------------------------------------------------------------------------------------------
PARTS = ("before", "enter", "first", "body", "last", "exit", "after")


def counting(early: str, late: str, form: Loop) -> Callable[[int], Schedule]:
    """``dma`` has some calls in every part of a loop, before and behind it. In one part it puts what ``more`` uses in
    another one, which waits with the given lag."""
    s = pair(scratch(0), scratch(0), writes=False)
    put, use = s.call.children
    assert isinstance(put, Issue)
    assert isinstance(use, Issue)
    units = {**s.system.units, "more": Unit("more", ("copy",), 1e9)}
    s = replace(s, system=replace(s.system, units=units))
    put = put.waiting((Wait("dma", 0), Wait("more", 0)))
    away = put.waiting((Wait("dma", 0),))
    far = tuple(replace(o, place=replace(o.place, offset=o.place.offset + 1024)) for o in put.operands)
    away = replace(away, operands=far)
    named = tuple(replace(o, name={"X": "S", "Y": "D"}[o.name]) for o in use.operands)
    use = replace(use, unit="more", instruction="copy", nest=None, operands=named)

    def made(lag: int) -> Schedule:
        def part(n: int, name: str) -> Seq:
            mine: list[Node] = [put] if name == early else []
            mine = [*mine, away, use.waiting((Wait("dma", lag), Wait("more", 0)))] if name == late else mine
            return seq(away, *mine, *[away] * (n % 3))

        parts = {p: part(n, p) for n, p in enumerate(PARTS)}
        there = {p: parts[p] for p in PARTS[1:-1] if p in ("enter", "body", "exit") or getattr(form, p) is not None}
        return replace(s, call=loop("w", 0, 2, 1, seq(parts["before"], replace(form, **there), parts["after"])))

    return made


def between(s: Schedule) -> int:
    """The least number of calls of ``dma`` from the last that puts something to one that uses it."""
    since, least = 1 << 20, 1 << 20
    for issue, _ in calls(s.call, {}):
        if issue.unit == "dma":
            since = 1 if issue.after == (Wait("dma", 0), Wait("more", 0)) else since + 1
        else:
            least = min(least, since)
    return least


FORMS = (loop("t", 0, 4, 1, seq()), loop("t", 1, 8, 2, seq()), loop("t", 0, 4, 1, seq(), first=seq(), last=seq()),
         loop("t", 3, 17, 3, seq(), first=seq()), loop("t", 0, 9, 2, seq(), last=seq()),
         loop("t", 0, 1, 1, seq()))  # fmt: skip


@pytest.mark.parametrize("form", range(len(FORMS)))
def test_as_many_calls_are_counted_as_there_are(form: int) -> None:
    """From every part of a loop to every other one, and round again, the nearest call may be as near as it is."""
    for early, late in product(PARTS, PARTS):
        made = counting(early, late, FORMS[form])
        there = {i.unit for i, _ in calls(made(0).call, {})}
        least = between(made(0))
        if "more" not in there or least == 1 << 20:
            continue
        assert least > 1
        assert not judged(made(least - 1)), (early, late)
        assert judged(made(least)), (early, late)
        assert check_races(made(least)), (early, late)


@pytest.mark.parametrize(("lo", "hi"), [
    (((0, 1), (2, 1)), ((5, 1),)), (((2, 1), (0, 1)), ((5, 1),)), (((-3, 2),), ((3, 1),)), (((5, 2),), ((6, 1),)),
    (((0, 1),), ((9, 1), (3, 1))), (((0, 1),), ((7, 2),)), (((0, 1),), ((2, 1), (9, 2))),
    (((-7, 3), (-5, 1)), ((5, 2),)),
])  # fmt: skip
def test_no_more_calls_are_counted_than_there_are(lo: tuple[tuple[int, int], ...],
                                                  hi: tuple[tuple[int, int], ...]) -> None:  # fmt: skip
    """Where several bounds or quotients say how often a loop runs."""
    form = Loop("t", *(tuple(Bound(lit(n), div) for n, div in side) for side in (lo, hi)), 1, seq())
    for early, late in product(PARTS, PARTS):
        made = counting(early, late, form)
        least = between(made(0))
        if least < 1 << 20:
            assert not judged(made(0)), (early, late)
            assert judged(made(least)), (early, late)
            assert check_races(made(least)), (early, late)


# what the tree does not show ------------------------------------------------------------------------------------------
def test_what_is_not_shown_is_followed_call_by_call() -> None:
    """With waits for exactly the nearest call in question, which may be more than the tree shows to be between."""
    followed = 0
    for seed in range(20):
        s = Trees(seed).schedule()
        exact = nearest(s, calls(s.call, {}))
        s = changed(s, lambda n, e=exact: tuple(Wait(t, lag) for (c, t), lag in e.items() if c == id(n)))
        lg = Legality(with_boxes(s))
        assert not check_races(s)
        assert not certificate.waited(lg.schedule, Isl(), lg), seed
        followed += bool(judged(s))
    assert followed > 2


def test_what_is_too_long_to_be_followed_stays_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    s = Trees(2).schedule()
    exact = nearest(s, calls(s.call, {}))
    s = changed(s, lambda n: tuple(Wait(t, lag) for (c, t), lag in exact.items() if c == id(n)))
    lg = Legality(with_boxes(s))
    monkeypatch.setattr(certificate, "STEPS", 3)
    assert judged(s)
    assert {v.kind for v in certificate.waited(lg.schedule, Isl(), lg)} == {"race"}


@pytest.mark.parametrize("kind", KINDS)
def test_where_pairs_are_many_the_same_are_found(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that lie within ranges, a few at a time, in the place of all."""
    trees_of = [with_waits(KINDS[kind](seed).schedule()) for seed in range(2000, 2002)]
    drawn = [s for s in trees_of for s in (s, changed(s, lambda n: n.after[1:]), changed(s, lambda n: ()))]
    plain = [judged(s) for s in drawn]
    monkeypatch.setattr(waits, "FEW", 0)
    monkeypatch.setattr(pairs, "FEW", 0)
    monkeypatch.setattr(pairs, "MANY", 20)
    assert [set(judged(s)) for s in drawn] == [set(found) for found in plain]
    assert {len(found) > 0 for found in plain} == {True, False}


def test_a_long_row_is_looked_at_in_few_pairs() -> None:
    """A slot that is written and read thousands of times, each time behind the last: neither all pairs nor their
    squares of bytes."""
    s = pair(scratch(0), scratch(0), writes=False)
    put, use = s.call.children
    n = 4000
    row = tuple(x for _ in range(n) for x in (put.waiting((Wait("mm", 0), Wait("dma", 0))),
                                              use.waiting((Wait("dma", 0), Wait("mm", 0)))))  # fmt: skip
    begin = time.process_time()
    assert not judged(replace(s, call=Seq(row)))
    assert time.process_time() - begin < 5
    late = (*row[:-1], use.waiting((Wait("dma", 1), Wait("mm", 0))))
    assert len(judged(replace(s, call=Seq(late)))) == 1


def test_numbers_beyond_machine_words() -> None:
    """Steps that have no small common multiple, and addresses that no machine has."""
    s = pair(scratch(0), scratch(0))
    put, use = s.call.children
    body: Node = put
    for n, step in enumerate((999983, 999979, 999961, 999959)):
        body = loop(f"v{n}", 0, 3 * step, step, body)
    body = changed(replace(s, call=body), lambda n: (Wait("dma", 0),)).call
    far = loop("w", 0, 3 << 70, 1 << 70, replace(put, operands=tuple(
        replace(o, place=replace(o.place, offset=V("w") + (1 << 71))) if o.place.memory == "sp" else o
        for o in put.operands)))  # fmt: skip
    assert judged(replace(s, call=seq(body, use)))
    assert not judged(replace(s, call=seq(far, use)))
    assert not judged(replace(s, call=seq(body, use.waiting((Wait("dma", 0),)))))


def test_bounds_with_divisors_are_bounds() -> None:
    """A loop that goes to a floor begins and ends where numbers say, not before."""
    s = pair(scratch(0), scratch(0))
    put, use = s.call.children
    moved = tuple(replace(o, place=replace(o.place, offset=V("t") * 16)) if o.place.memory == "sp" else o
                  for o in put.operands)  # fmt: skip
    for low, meets in ((-1, True), (0, True), (1, False), (2, False)):
        body = Loop("t", (Bound(lit(low), 2),), (Bound(lit(9), 2),), 1, replace(put, operands=moved))
        made = replace(s, call=Seq((body, use)))
        assert bool(check_races(made)) == meets == bool(judged(made)), low


def at_home_from(step: int, begin: int, after: tuple[Wait, ...], var: str) -> Issue:
    """A call of an instance's ``dma`` that writes eight bytes in main memory, by the number of its instance."""
    s = pair(scratch(0), scratch(0))
    put = s.call.children[0]
    assert isinstance(put, Issue)
    tile = put.operands[0].tile._replace(shape=(1, 2))
    own = Place("dram", "A", V(var) * step + begin if var else lit(begin), (48, 4))
    far = Place("sp", "", lit(0), (8, 4))
    operands = tuple(replace(o, tile=tile, place=own if o.name == "D" else far) for o in put.operands)
    return replace(put, operands=operands, after=after)


@pytest.mark.parametrize("by", [-8, 8, 0])
def test_what_another_instance_has_written_is_waited_for_with_all_of_them(by: int) -> None:
    """What a lower one, a higher one or the same has written: a wait for one's own stream is for the last alone."""
    one = Deal("core", 0, 1)
    first = replace(loop("a", 0, 4, 1, at_home_from(8, 16, (), "a")), deal=one)
    for after, enough in (((Wait("dma", 0),), by == 0), ((Wait("dma", 0, True),), True)):
        second = replace(loop("b", 0, 4, 1, at_home_from(8, 16 + by, after, "b")), deal=one)
        made = replace(replicated("sp"), call=seq(first, second))
        assert bool(check_races(made)) == (not enough) == bool(judged(made)), after


def test_what_is_dealt_to_nobody_waits_for_all_instances() -> None:
    one = Deal("core", 0, 1)
    first = replace(loop("a", 0, 4, 1, at_home_from(8, 16, (), "a")), deal=one)
    for after, enough in (((Wait("dma", 0),), False), ((Wait("dma", 0, True),), True)):
        made = replace(replicated("sp"), call=seq(first, at_home_from(0, 24, after, "")))
        assert bool(check_races(made)) == (not enough) == bool(judged(made)), after


def test_a_long_row_comes_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first call of an iteration meets the last one of the iteration before, in rows that are looked at in part."""
    monkeypatch.setattr(waits, "FEW", 0)
    monkeypatch.setattr(pairs, "FEW", 0)
    s = pair(scratch(0), scratch(0), writes=False)
    put, use = s.call.children
    assert isinstance(put, Issue)
    assert isinstance(use, Issue)
    for after, races in (((Wait("mm", 0), Wait("dma", 0)), False), ((Wait("dma", 0),), True)):
        row = seq(put.waiting(after), *(use.waiting((Wait("dma", 0), Wait("mm", 0))) for _ in range(3)))
        made = replace(s, call=loop("t", 0, 3, 1, row))
        assert bool(check_races(made)) == races == bool(judged(made)), after
