"""Loops of one iteration at most, and of one at least (``isam.proof.context``)."""

from __future__ import annotations

import random

from isam.ir.affine import Affine
from isam.proof.context import Context, Var, runs_once, runs_surely
from isam.schedule.tree import Bound, Loop, Seq
from tests.unit.proof.handmade import loop, seq
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.test_trees_by_hand import PITCH, at, home, judged, made, part, step, wrong

K = Affine.of("k")


def test_what_is_said_to_run_once_never_runs_twice() -> None:
    r, said = random.Random(1), 0
    for _ in range(2000):
        c, div = r.randint(-2, 2), r.choice((1, 1, 3, 4))
        lo = tuple(Bound(K * c + r.randint(-9, 9), r.choice((div, div, 2))) for _ in range(r.randint(1, 2)))
        hi = tuple(Bound(K * c + r.randint(-9, 9), r.choice((div, div, 2))) for _ in range(r.randint(1, 2)))
        loop = Loop("v", lo, hi, r.choice((1, 1, 2)), Seq())
        if runs_once(loop):
            said += 1
            assert all(len(loop.values({"k": k})) <= 1 for k in range(-20, 20)), loop
    assert said > 200


def test_the_block_at_a_line_is_said_to_be_one() -> None:
    between = K - 40
    assert runs_once(Loop("v", (Bound(between, 16),), (Bound(Affine((), 1)), Bound(between + 31, 16)), 1, Seq()))
    assert not runs_once(Loop("v", (Bound(between, 16),), (Bound(between + 32, 16),), 1, Seq()))


def test_what_one_iteration_has_made_stale_is_stale_behind_it() -> None:
    """A copy of two rows, of which one is computed anew elsewhere, is no copy of both behind the loop either."""
    v = Affine.of("v")
    bring = step(home(part("C", v, 2)), at(part("C", v, 2), offset=v * PITCH))
    spoil = step(home(part("A", v + 1, 1)), home(part("C", v + 1, 1)), compute=True)
    use = step(at(part("C", 0, 2)), at(part("C", 0, 2), offset=256))
    for last in ((), (Bound(Affine.of("u")),)):  # known to run once, and to do so at most
        once = Loop("v", (Bound(lit(0)),), (Bound(lit(1)), *last), 1, seq(bring, spoil))
        s = made(loop("u", 1, 3, 1, seq(once, use)))
        assert wrong(s, {})[0]
        assert judged(s) == judged(s, cuts=True) == {"stale"}


def test_what_is_said_to_run_surely_runs() -> None:
    r, said = random.Random(2), 0
    for _ in range(4000):
        c = r.randint(-2, 2)
        lo = tuple(Bound(K * c + r.randint(-9, 9), r.choice((1, 1, 2, 3, 4))) for _ in range(r.randint(1, 2)))
        hi = tuple(Bound(K * c + r.randint(-9, 30), r.choice((1, 1, 2, 3, 4))) for _ in range(r.randint(1, 2)))
        one = Loop("v", lo, hi, r.choice((1, 1, 2)), Seq())
        if runs_surely(one, Context((Var("k", (Bound(lit(-6)),), (Bound(lit(6)),)),))):
            said += 1
            assert all(one.values({"k": k}) for k in range(-6, 7)), one
    assert said > 200


def test_a_loop_up_to_the_half_of_one_has_no_iteration() -> None:
    bring = step(home(part("C")), at(part("C")))
    half = Loop("v", (Bound(lit(0)),), (Bound(Affine.of("u"), 2),), 1, bring)
    for first in (1, 2):
        s = made(loop("u", first, first + 1, 1, seq(half, step(at(part("C")), at(part("C"), offset=256)))))
        assert wrong(s, {})[0] == (judged(s) != set()) == (first == 1)
