"""Recurrent loops whose number of steps is known at run time only: what does not depend on the state is done for so
many steps at once where that takes less time (REC-1 to REC-3, TR-1)."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import isam
from isam.compiler.job import Job
from isam.cost.timeline import timeline
from isam.ir.interp import run
from isam.ir.text import parse
from isam.proof import check_flat, verify
from isam.proof.races import check_races
from isam.schedule.serial import from_json, to_json
from isam.system.load import load_system
from tests.pipeline import compiled, judge
from tests.systems.test_recurrent import AsWritten

TEXT = """kernel cell(T, B, X, H)
  in    x: bf16[T, B, X]
  const w: bf16[X, H]
  inout h: f32[B, H]
  out   ys: f32[T, B, H]
  loop t < T
    forall i < B, j < H
      a[i, j] = 0
    forall i < B, j < H, k < X
      a[i, j] += f32(x[t, i, k]) * f32(w[k, j])
    forall i < B, j < H
      h[i, j] = tanh(a[i, j] + h[i, j])
      ys[t, i, j] = h[i, j]
"""
CELL = parse(TEXT)
SIZES = {"B": 32, "X": 256, "H": 32}


@cache
def cell() -> Job:
    job = compiled(CELL, SIZES, load_system("casestudy"), check=True)
    assert job.cover is not None
    assert [s.split()[0] for s in job.cover.steps] == ["parts", "hoist"]
    return job


@pytest.mark.parametrize("steps", [0, 1, 2, 31, 32, 33, 64, 67])
def test_one_schedule_for_fewer_steps_than_a_part_and_for_any_number_of_parts(steps: int) -> None:
    judge(CELL, SIZES, cell(), seed=steps, run_time={"T": steps})


def test_it_is_proved_executed_and_read_again() -> None:
    job = cell()
    assert job.schedule is not None
    for steps in (0, 2, 33):
        assert not check_flat(job.schedule, {"T": steps})
        assert not check_races(job.schedule, {"T": steps})
    again = from_json(to_json(job.schedule))
    assert again.kernel == job.schedule.kernel
    assert not verify(job.certificate.to_json(), again)


def test_whole_parts_take_less_time_and_fewer_steps_hardly_more() -> None:
    written = compiled(CELL, SIZES, load_system("casestudy"), AsWritten()).schedule
    parts = cell().schedule
    assert written is not None
    assert parts is not None

    def ratio(steps: int) -> float:
        return timeline(parts, {"T": steps}).seconds / timeline(written, {"T": steps}).seconds

    assert ratio(128) < 0.9
    assert ratio(31) < 1.25, "no whole part: what is left over is as it was written, but waits for the loop before it"


def test_the_loop_stays_as_written_where_parts_would_take_longer() -> None:
    job = compiled(CELL, {**SIZES, "B": 1, "X": 16}, load_system("casestudy"))
    assert job.cover is not None
    assert len(job.others) == 1, "parts were offered"
    assert not job.cover.steps


def test_products_of_whole_parts_lie_where_their_steps_read_them() -> None:
    """With the groups of a part on one instance, parts of a single row take less time, too."""
    sizes = {**SIZES, "B": 1, "X": 64}
    job = compiled(CELL, sizes, load_system("casestudy"), check=True)
    assert job.taken is not None
    assert job.taken.ahead[-1] == "groups dealt alike"
    for steps in (0, 2, 31, 67):
        judge(CELL, sizes, job, seed=steps, run_time={"T": steps})


def test_sizes_worked_out_from_others_are_sizes_of_compiled_code() -> None:
    """The compiler of this CPU's code, and a kernel that is written in parts."""
    kernel = parse("""kernel sums(T, M, Q = T // 4)
      in    x: f32[T, M]
      inout h: f32[M]
      out   y: f32[T, M]
      loop c < Q
        loop s < 4
          forall i < M
            h[i] = h[i] * 2 + x[4*c + s, i]
            y[4*c + s, i] = h[i]
      loop r < T - 4*Q
        forall i < M
          h[i] = h[i] * 3 - x[4*Q + r, i]
          y[4*Q + r, i] = h[i]
    """)
    fn = isam.compile(kernel, sizes={"M": 5}, on="host")
    assert [s.name for s in fn.artifact.sizes] == ["T"]
    for steps in (0, 1, 3, 4, 5, 11):
        x = np.random.default_rng(steps).integers(-9, 9, (steps, 5)).astype(np.float32)
        want = run(kernel, {"x": x, "h": np.ones(5, np.float32)})
        h = np.ones(5, np.float32)
        np.testing.assert_array_equal(fn(x, h), want["y"])
        np.testing.assert_array_equal(h, want["h"])
