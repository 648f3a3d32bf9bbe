"""Recurrent loops along rows: some rows from the first step to the last, then others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isam
from isam.approach.choice import Approach, Choice
from isam.approach.shipped.greedy import Greedy
from isam.ir.text import parse_kernel
from isam.schedule.tree import Loop, distinct
from isam.scheduler.interchange import AS_WRITTEN, ROWS_OUTSIDE
from tests.pipeline import compiled, judge, simulated

RUNNING = """kernel running(M, N)
  in  x: {T}[M, N]
  out y: {T}[M, N]
  forall i < M
    s[i] = 0
  loop j < N
    forall i < M
      s[i] += x[i, j]
      y[i, j] = s[i]
"""
BATCHES = """kernel batches(B, M, N)
  in  x: f32[B, M, N]
  out y: f32[B, M, N]
  forall b < B, i < M
    s[b, i] = 0
  loop j < N
    forall b < B, i < M
      s[b, i] max= x[b, i, j]
      y[b, i, j] = s[b, i]
"""
NEIGHBOURS = """kernel neighbours(M, N)
  in  x: f32[M + 1, N]
  out y: f32[M, N]
  forall i < M + 1
    s[i] = 0
  loop j < N
    forall i < M
      t[i] = s[i + 1] + x[i, j]
    forall i < M
      s[i] = t[i]
      y[i, j] = s[i]
"""
COLUMNS = """kernel columns(M, N)
  in  x: f32[M, N]
  out z: f32[N]
  forall j < N
    z[j] = 0
  forall i < M
    s[i] = 0
  loop j < N
    forall i < M
      s[i] += x[i, j]
    forall i < M
      z[j] += s[i]
"""
ACROSS = RUNNING.replace("x[i, j]", "x[j, i]").replace("y[i, j]", "y[j, i]").replace("[M, N]", "[N, M]")


class AsWritten(Greedy):
    asked: tuple[str, ...] = ()

    def interchange(self, choice: Choice) -> Any:
        self.asked = tuple(choice.options)
        return choice.options[0]


def made(text: str, on: str = "host-avx512", approach: Approach | None = None, **sizes: int) -> Any:
    return compiled(parse_kernel(text.replace("{T}", "f32")), sizes, simulated(on), approach or Greedy())


def nested(job: Any) -> list[tuple[str, str]]:
    """The axes of loops one directly or not inside of the other."""
    loops = [n for n in distinct(job.schedule.call) if isinstance(n, Loop)]
    return [(n.axis, m.axis) for n in loops for m in distinct(n.body) if isinstance(m, Loop)]


@pytest.mark.parametrize(("m", "n", "several"), [(48, 9, True), (50, 7, True), (16, 5, False), (5, 6, False)])
def test_rows_go_outside(m, n, several):
    """Blocks of 16 rows, and the rest; none around a single block."""
    job = made(RUNNING, M=m, N=n)
    assert (("i", "j") in nested(job)) == several
    assert ("j", "i") not in nested(job)
    assert [d.label for d in job.trace.decisions if d.point == "interchange"] == [ROWS_OUTSIDE]
    judge(parse_kernel(RUNNING.replace("{T}", "f32")), {"M": m, "N": n}, job, 1)


def test_the_axis_in_lanes_goes_outside():
    job = made(BATCHES, B=2, M=40, N=6)
    assert ("i", "j") in nested(job)
    judge(parse_kernel(BATCHES), {"B": 2, "M": 40, "N": 6}, job, 2)


@pytest.mark.parametrize("text", [NEIGHBOURS, COLUMNS, ACROSS], ids=["neighbours", "columns", "across"])
def test_rows_that_meet_or_lie_side_by_side_stay_inside(text):
    job = made(text, M=48, N=5)
    assert not any(d.point == "interchange" for d in job.trace.decisions)
    judge(parse_kernel(text.replace("{T}", "f32")), {"M": 48, "N": 5}, job, 3)


def test_an_approach_may_leave_it_as_it_is_written():
    approach = AsWritten()
    job = made(RUNNING, approach=approach, M=48, N=9)
    assert approach.asked == (AS_WRITTEN, ROWS_OUTSIDE)
    assert ("i", "j") not in nested(job)


def test_machines_without_caches_are_not_asked():
    job = made(RUNNING, "toy", M=48, N=5)
    assert not any(d.point == "interchange" for d in job.trace.decisions)


@pytest.mark.parametrize("T", ["f32", "f64", "i32", "i8"])
@pytest.mark.parametrize(("m", "n"), [(64, 64), (50, 37), (17, 5), (3, 40)])
def test_native_code_agrees(T, m, n):
    x = np.random.default_rng(m).integers(-3, 4, (m, n)).astype({"f32": "f4", "f64": "f8", "i32": "i4", "i8": "i1"}[T])
    y = isam.compile(RUNNING.replace("{T}", T), sizes={"M": m, "N": n}, check=n < 40, cache=False)(x)
    np.testing.assert_array_equal(y, np.cumsum(x, 1, dtype=x.dtype))


def test_rows_that_a_loop_around_goes_along_have_no_length_of_their_own():
    text = """kernel steps(M, N)
  in    h: f32[M + 2, 3, 3*N + 6]
  inout z: f32[3*N + 6, M]
  loop j < N
    forall i < M, l < 3
      z[j, i] += h[i, l, j]
      z[j + 1, i] += h[i, l, 2*j + 1]
"""
    judge(parse_kernel(text), {"M": 8, "N": 2}, made(text, "host-avx2", M=8, N=2), 4)
