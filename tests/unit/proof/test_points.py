"""Obligations 1 to 7 on the tree: hand-made schedules are accepted for all trips."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from isam.ir.kernel import Sym
from isam.proof.flat import check_flat
from isam.proof.points import check_loop, check_points
from isam.proof.sets import Isl
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Deal, Loop, Seq
from tests.clock import quickest
from tests.schedules import matmul_on_tiny
from tests.unit.proof.handmade import ended, loop, running_sum, seq, tiny_matmul, vec_matmul
from tests.unit.proof.handmade_machines import V

MADE = {
    "tiny": tiny_matmul,
    "tiny peeled": lambda: tiny_matmul(peeled=True),
    "tiny, nothing but the peeled body": lambda: tiny_matmul(4, 4, 4, peeled=True),
    "tiny, the last body apart": lambda: ended(False),
    "tiny, the first and the last body apart": lambda: ended(True),
    "vec": vec_matmul,
    "vec bound": lambda: vec_matmul(bound=True),
    "vec exact": lambda: vec_matmul(permits=frozenset({"exact"})),
    "recurrence": running_sum,
    "ragged": lambda: matmul_on_tiny(9, 7, 5),
    "pipelined": lambda: matmul_on_tiny(8, 8, 12, True),
}


@pytest.mark.parametrize("name", MADE)
def test_accepts(name):
    assert check_points(MADE[name]()) == []


def wrapped(schedule, node, hi, **parts):
    return replace(schedule, call=loop("once", 0, hi, 1, node, **parts))


def test_order_within_a_loop_of_one_iteration():
    s = tiny_matmul()
    inner = s.call.body.body
    backwards = seq(replace(inner, enter=seq(), exit=seq()), inner.enter, inner.exit)
    for body in (backwards, loop("once", 0, 1, 1, backwards)):
        broken = replace(s, call=replace(s.call, body=replace(s.call.body, body=body)))
        assert {v.obligation for v in check_points(broken)} == {4}
        assert check_flat(broken)
    assert check_points(wrapped(s, s.call, 1)) == []


def test_a_loop_that_may_not_run_executes_nothing_for_sure():
    s = running_sum()
    trip = V("T")
    once = tiny_matmul()
    kernel = replace(once.kernel, syms=(Sym("T"),))
    once = replace(once, kernel=kernel, cover=replace(once.cover, kernel=kernel, original=kernel))
    for maybe in (wrapped(once, seq(), trip, enter=once.call), wrapped(once, seq(), trip, exit=once.call)):
        assert check_flat(maybe, {"T": 2}) == []
        assert {v.obligation for v in check_flat(maybe, {"T": 0})} == {1}
        assert {v.obligation for v in check_points(maybe)} == {1}
    assert {v.obligation for v in check_points(wrapped(once, once.call, trip))} == {1}
    assert check_points(s) == []


def test_work_does_not_depend_on_trips():
    isl = Isl()
    assert check_points(vec_matmul(900, 800, 500), isl) == []
    assert isl.queries < 10
    assert quickest(lambda: check_points(vec_matmul(900, 800, 500)), 1.0) < 1.0


def test_the_form_of_loops() -> None:
    """A positive step and bounds; a first value that is affine where more is said of the values than their bounds; and
    iterations enough for the peeled bodies."""
    two = (Bound(V("a")), Bound(V("b")))
    lows, highs = ((), (Bound(V("a")),), two, (Bound(V("a"), 2),), (Bound(V("a"), 0),)), (*bounds_above(), ())
    for lo, hi, step, first, last, dealt in product(lows, highs, (0, 1, 2), *[(False, True)] * 3):
        n = Loop("v", lo, hi, step, Seq(), first=Seq() if first else None, last=Seq() if last else None)
        if dealt:
            n = replace(n, deal=Deal("core", 0, 1))
        out, affine, peeled = Findings(), len(lo) == 1 and lo[0].div == 1, first + last
        check_loop(n, out)
        bounded = step > 0 and lo and hi and all(b.div > 0 for b in (*lo, *hi))
        if not bounded or (not affine and (step > 1 or peeled or dealt)):
            want = ["form"]
        else:
            want = ["trip"] if peeled and (n.trip is None or n.trip < peeled) else []
        assert [(v.obligation, v.kind) for v in out.found] == [(11, k) for k in want]


def bounds_above() -> list[tuple[Bound, ...]]:
    """Of no iteration, one, two and a number that is not known, from ``a`` on."""
    ends = ([V("a")], [V("a") + 1], [V("a") + 2], [V("a") + 5], [V("T")], [V("a") + 2, V("T")])
    return [tuple(Bound(e, div) for e in some) for some in ends for div in (1, 0)]
