"""What every step of a recurrent loop finds stays where calls work, where one block has all of a step (SCH-10)."""

from __future__ import annotations

import pytest

from isam.cost.floor import floor
from isam.cost.timeline import timeline
from isam.ir.text import parse_kernel
from isam.scheduler.plans.kept import STEP
from tests.unit.scheduler.test_beside import machine, moves, scheduled

ADDED = parse_kernel("""kernel added(M, N)
  in  x: f32[M, N]
  in  a: f32[N]
  in  g: f32[N]
  out y: f32[M, N]
  temp h: f32[N]
  forall j < N
    h[j] = g[j]
  loop i < M
    forall j < N
      h[j] = (h[j] + a[j]) + x[i, j]
    forall j < N
      y[i, j] = h[j]
""")
REVERSED = parse_kernel("""kernel reversed(M, N)
  in    x: f32[M, N]
  inout h: f32[N]
  loop i < M
    forall j < N
      h[j] = h[j] + x[i, N - j - 1]
""")
CHAIN = parse_kernel("""kernel chain(M, N)
  in    x: f32[M, N]
  in    a: f32[N]
  inout h: f32[N]
  loop i < M
    forall j < N
      h[j] = ((h[j] + x[i, j]) + (a[j] + a[j])) + (h[j] + a[j])
""")


def test_what_is_the_same_in_every_step_is_brought_once():
    schedule = scheduled(ADDED, machine(100), 16, 256)
    brought, left = moves(schedule, "dram", "pad"), moves(schedule, "pad", "dram")
    assert brought["a"] <= 256 // 16, "before the first step"
    assert brought["x"] == left["y"] == 16, "one move a step"
    assert "h" not in left
    assert timeline(schedule).seconds < 4 * floor(schedule).seconds


@pytest.mark.parametrize("capacity", ["2 KiB", "512 B", "256 B"])
def test_where_there_is_no_room_it_is_brought_again(capacity: str):
    schedule = scheduled(ADDED, machine(100, capacity), 6, 256)
    assert sum(moves(schedule, "dram", "pad").values()) > 6


@pytest.mark.parametrize("capacity", ["1 KiB", "2 KiB"])
def test_tiles_that_begin_far_apart_fill_more_room(capacity: str):
    """Of 64 bytes each, every 256: what a step makes on its way stays where blocks are no larger than that."""
    schedule = scheduled(CHAIN, machine(100, capacity, align="D: 256 B"), 4, 64)
    assert set(moves(schedule, "pad", "dram")) == {"h"}


def test_steps_of_many_calls_have_loops():
    n = 16 * STEP
    schedule = scheduled(ADDED, machine(100), 2, n)
    assert moves(schedule, "dram", "pad")["a"] >= 2 * 2, "block by block, in every step"


@pytest.mark.parametrize("size", [(0, 16), (0, 1), (3, 0), (3, 40)])
def test_what_is_laid_out_ahead_of_no_steps(size: tuple[int, int]):
    scheduled(REVERSED, machine(100), *size)
