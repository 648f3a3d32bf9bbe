"""Nests that hand tiles on in a near memory, with calls of unequal sizes: smaller ones that agree keep them there."""

from __future__ import annotations

import pytest

from isam.approach.choice import Approach
from isam.compiler.stages import new_job, run_stages
from isam.cost.compared import seconds
from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, distinct
from tests.machines.small import CLIP, FREE, PRODUCT, SAME, ZERO, instruction, small
from tests.pipeline import compiled, judge

LAYER = parse_kernel("""kernel layer(M, N, K)
  in    x: f32[M, K]
  const w: f32[K, N]
  out   y: f32[M, N]
  forall i < M, j < N
    y[i, j] = 0
  forall i < M, j < N, k < K
    y[i, j] += x[i, k] * w[k, j]
  forall i < M, j < N
    y[i, j] = max(y[i, j], 0)
""")
ROWS = parse_kernel("""kernel rows(T, M, N, K)
  in    x: f32[T, M, K]
  const w: f32[K, N]
  temp  a: f32[M, N]
  out   y: f32[T, M, N]
  loop t < T
    forall i < M, j < N
      a[i, j] = 0
    forall i < M, j < N, k < K
      a[i, j] += x[t, i, k] * w[k, j]
    forall i < M, j < N
      y[t, i, j] = max(a[i, j], 0)
""")
SIZES = {"M": 4, "N": 16, "K": 16}
RAGGED, ONE, NONE = {"M": 5, "N": 19, "K": 7}, {"M": 1, "N": 1, "K": 1}, {"M": 0, "N": 4, "K": 2}


def machine(tile: str = "M <= 1, N <= 16", mac: int = 8, near: str = "cells: 16, cell: 64 B"):
    """A matrix unit of 2 x 8, and what takes a ``tile`` at a time; ``mac``: cycles of a product."""
    step = "cost: {issue: 1 cycle, latency: 1 cycle}"
    return small(
        "own",
        {"acts": near, "weights": "cells: 8, cell: 256 B"},
        ["dram <-> [acts, weights]"],
        instruction("mac(M <= 2, N <= 8, K <= 8)", PRODUCT, "homes: {A: [acts], B: [weights], C: [acts]}",
                    f"cost: {{issue: {mac} cycles, latency: {mac} cycles}}"),
        instruction(f"zero({tile})", ZERO, "homes: [acts]", step),
        instruction(f"clip({tile})", CLIP, "homes: [acts]", step),
        copy=instruction("copy(M, N)", SAME, FREE, "cost: {setup: 20 cycles, bandwidth: 8 B/cycle}"),
        clock="500 MHz",
    )  # fmt: skip


class AsLargeAsTheyMay(Approach):
    """Decides as ``greedy``, and never takes the second schedule."""

    def decide(self, choice):
        from isam.approach.shipped.greedy import Greedy

        return choice.options[0] if choice.point == "variant" else Greedy().decide(choice)


def brought(job, buffer: str) -> int:
    """Distinct moves of a buffer from home."""
    moves = [n for n in distinct(job.schedule.call) if isinstance(n, Issue) and n.is_move]
    sources = [o for n in moves for o in n.operands if o.name == "S" and o.place.memory == "dram"]
    return sum(o.tile.buffer == buffer for o in sources)


def agreements(job) -> list[tuple[int, str]]:
    return [(d.chosen, d.label) for d in job.schedule.trace.decisions if d.point == "agree"]


@pytest.mark.parametrize("near", ["cells: 16, cell: 64 B", "capacity: 1 KiB, align: 16 B"])
@pytest.mark.parametrize("sizes", [SIZES, RAGGED, ONE, NONE], ids=["whole", "ragged", "one", "none"])
def test_sums_stay_where_they_are_made(near, sizes):
    system = machine(near=near)
    job = compiled(LAYER, sizes, system, check=True)
    judge(LAYER, sizes, job)
    large = compiled(LAYER, sizes, system, AsLargeAsTheyMay(), check=True)
    judge(LAYER, sizes, large)
    assert seconds(job.schedule) <= seconds(large.schedule)
    if sizes is SIZES:
        assert [chosen for chosen, _ in agreements(large)] == [0]
        assert agreements(job) == [(1, "8 of j in 0, 1 of i in 1, 8 of j in 2")]
        assert brought(large, "y")
        assert not brought(job, "y")
        assert seconds(job.schedule) < 0.9 * seconds(large.schedule)


@pytest.mark.parametrize(("tile", "mac"), [("M <= 2, N <= 8", 8), ("M <= 1, N <= 16", 4000), ("M <= 1, N = 16", 8)],
                         ids=["equal already", "smaller products cost more", "cannot take less"])  # fmt: skip
def test_it_is_not_offered_where_nothing_is_won(tile, mac):
    job = compiled(LAYER, SIZES, machine(tile, mac), check=True)
    judge(LAYER, SIZES, job)
    assert not agreements(job)


def test_inside_a_time_loop():
    sizes = {"T": 3, **SIZES}
    job = compiled(ROWS, sizes, machine(), check=True)
    judge(ROWS, sizes, job)
    assert [chosen for chosen, _ in agreements(job)] == [1]
    assert not brought(job, "a")


def test_the_trace_replays_what_was_taken():
    for approach in (None, AsLargeAsTheyMay()):
        job = run_stages(new_job(LAYER, machine(), SIZES, approach, check=False), "schedule")
        again = run_stages(new_job(LAYER, machine(), SIZES, approach, check=False, replay=job.trace), "schedule")
        assert again.trace.to_json() == job.trace.to_json()
        assert again.schedule is not None
        assert again.schedule.call == job.schedule.call


def test_the_approach_is_asked_which_of_both():
    class Asked(AsLargeAsTheyMay):
        seen: tuple[tuple[str, ...], ...] = ()

        def decide(self, choice):
            if choice.point == "variant":
                Asked.seen += (tuple(o.label() for o in choice.options),)
            return super().decide(choice)

    compiled(LAYER, SIZES, machine(), Asked())
    assert Asked.seen == (("as written", "smaller calls that agree"),)
