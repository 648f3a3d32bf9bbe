"""Loops of one iteration at most (``isam.proof.context.runs_once``)."""

from __future__ import annotations

import random

from isam.ir.affine import Affine
from isam.proof.context import runs_once
from isam.schedule.tree import Bound, Loop, Seq

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
