"""Blocks of rows whose data all lie in a memory that calls work in: boxes of what any nest reads, results and what
groups hand on (SCH-11)."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache

import pytest

from isam.approach.choice import Choice
from isam.approach.shipped.greedy import Greedy
from isam.compiler.job import Job, Refused
from isam.cost.floor import floor
from isam.cost.timeline import timeline
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.proof.races import check_races
from isam.schedule.tree import Issue, Schedule, distinct
from isam.scheduler.infeasible import Infeasible
from isam.system.graph import System
from isam.system.load import parse_system
from tests.pipeline import compiled, judge, simulated

BLOCKS = "blocks that stay near"  # what such a schedule is called
MACHINE = """
isam: 1
system: blocks
backend: simulator
memories:
  dram: {kind: managed, capacity: 1 GiB, home: true}
  sp:   {kind: managed, capacity: 64 KiB, align: 4 B}
  acc:  {kind: managed, cells: 4, cell: 256 B}
units:
  din:  {runs: [fetch], clock: 1 GHz}
  dout: {runs: [put], clock: 1 GHz}
  pe:   {runs: [mm, mz], clock: 1 GHz}
  dr:   {runs: [drain], clock: 1 GHz}
  vec:  {runs: [v*], clock: 1 GHz}
moves:
  - {from: dram, to: sp, by: fetch, issuer: din}
  - {from: sp, to: dram, by: put, issuer: dout}
  - {from: acc, to: sp, by: drain, issuer: dr}
instructions:
  "{by}":
    for: {by: [fetch, put]}
    body: |
      instruction {by}(M <= 32, N <= 32)
        in  S: any[M, N]
        out D: any[M, N]
        forall i < M, j < N
          D[i, j] = S[i, j]
    strides: {S: [free, 1], D: [free, 1]}
    cost: {setup: 100 cycles, bandwidth: 16 B/cycle}
  drain:
    body: |
      instruction drain(M <= 8, N <= 8)
        in  S: f32[M, N]
        out D: f32[M, N]
        forall i < M, j < N
          D[i, j] = S[i, j]
    strides: {S: [free, 1], D: [free, 1]}
    cost: {setup: 4 cycles, bandwidth: 32 B/cycle}
  mz:
    body: |
      instruction mz(M <= 8, N <= 8)
        out C: f32[M, N]
        forall i < M, j < N
          C[i, j] = 0
    homes: {C: [acc]}
    cost: {issue: 4 cycles, latency: 4 cycles}
  mm:
    body: |
      instruction mm(M <= 8, N <= 8, K <= 8)
        in    A: f32[M, K]
        in    B: f32[K, N]
        inout C: f32[M, N]
        permits reassociate, contract
        forall i < M, j < N, k < K
          C[i, j] += A[i, k] * B[k, j]
    homes: {A: [sp], B: [sp], C: [acc]}
    strides: {A: [free, free], B: [free, free]}
    cost: {issue: 8 cycles, latency: 24 cycles}
  v{op}_vv:
    for: {op: {sub: {e: "A[j] - B[j]"}, mul: {e: "A[j] * B[j]"}, add: {e: "A[j] + B[j]"}}}
    body: |
      instruction v{op}_vv(N <= 32)
        in  A: f32[N]
        in  B: f32[N]
        out D: f32[N]
        forall j < N
          D[j] = {e}
    homes: [sp]
    cost: {issue: 2 cycles, latency: 8 cycles}
  v{op}_vs:
    for: {op: {sub: {e: "A[j] - B[]"}, mul: {e: "A[j] * B[]"}, add: {e: "A[j] + B[]"}}}
    body: |
      instruction v{op}_vs(N <= 32)
        in  A: f32[N]
        in  B: f32
        out D: f32[N]
        forall j < N
          D[j] = {e}
    homes: [sp]
    cost: {issue: 2 cycles, latency: 8 cycles}
  v{f}:
    for: {f: {exp: {e: "exp(A[j])"}, recip: {e: "1 / A[j]"}, rsqrt: {e: "rsqrt(A[j])"}}}
    body: |
      instruction v{f}(N <= 32)
        in  A: f32[N]
        out D: f32[N]
        forall j < N
          D[j] = {e}
    homes: [sp]
    cost: {issue: 4 cycles, latency: 16 cycles}
  vfill:
    body: |
      instruction vfill(N <= 32)
        in  A: f32
        out D: f32[N]
        forall j < N
          D[j] = A[]
    homes: [sp]
    cost: {issue: 2 cycles, latency: 8 cycles}
  v{op}:
    for: {op: {rmax: {a: "max="}, rsum: {a: "+="}}}
    body: |
      instruction v{op}(N <= 32)
        in    A: f32[N]
        inout D: f32
        permits reassociate
        forall j < N
          D[] {a} A[j]
    homes: [sp]
    cost: {issue: 2 cycles, latency: 12 cycles}
  vrdot:
    body: |
      instruction vrdot(N <= 32)
        in    A: f32[N]
        in    B: f32[N]
        inout D: f32
        permits reassociate, contract
        forall j < N
          D[] += A[j] * B[j]
    homes: [sp]
    cost: {issue: 2 cycles, latency: 12 cycles}
"""
SOFTMAX = parse_kernel("""kernel softmax(M, N)
  in  x: f32[M, N]
  out y: f32[M, N]
  forall i < M
    m[i] = -inf
  forall i < M, j < N
    m[i] max= x[i, j]
  forall i < M, j < N
    e[i, j] = exp(x[i, j] - m[i])
  forall i < M
    s[i] = 0
  forall i < M, j < N
    s[i] += e[i, j]
  forall i < M
    r[i] = 1 / s[i]
  forall i < M, j < N
    y[i, j] = e[i, j] * r[i]
""")
HEAD = parse_kernel("""kernel head(T, D)
  in  Q: f32[T, D]
  in  K: f32[T, D]
  in  V: f32[T, D]
  out O: f32[T, D]
  forall i < T, j < T
    p[i, j] = 0
  forall i < T, j < T, d < D
    p[i, j] += Q[i, d] * K[j, d]
  forall i < T
    m[i] = -inf
  forall i < T, j < T
    m[i] max= p[i, j]
  forall i < T, j < T
    e[i, j] = exp(p[i, j] - m[i])
  forall i < T
    s[i] = 0
  forall i < T, j < T
    s[i] += e[i, j]
  forall i < T
    r[i] = 1 / s[i]
  forall i < T, v < D
    a[i, v] = 0
  forall i < T, v < D, j < T
    a[i, v] += e[i, j] * V[j, v]
  forall i < T, v < D
    O[i, v] = a[i, v] * r[i]
""")
NORM = parse_kernel("""kernel norm(M, N)
  in x: f32[M, N]
  in scale: f32
  in g: f32[N]
  out y: f32[M, N]
  forall i < M
    s[i] = 0
    q[i] = 0
  forall i < M, j < N
    s[i] += x[i, j]
  forall i < M
    mean[i] = s[i] * scale
  forall i < M, j < N
    d[i, j] = x[i, j] - mean[i]
  forall i < M, j < N
    q[i] += d[i, j] * d[i, j]
  forall i < M
    r[i] = rsqrt(q[i] * scale)
  forall i < M, j < N
    y[i, j] = d[i, j] * r[i] * g[j]
""")
ADDED = parse_kernel("""kernel added(M, N)
  in    x: f32[M, N]
  inout s: f32[M]
  forall i < M, j < N
    s[i] += x[i, j]
""")
SHIFTED = parse_kernel("""kernel shifted(M, N)
  in  x: f32[M, N]
  out y: f32[M, N]
  temp t: f32[M + 1, N]
  forall i < M + 1, j < N
    t[i, j] = 1
  forall i < M, j < N
    t[i + 1, j] = x[i, j] * x[i, j]
  forall i < M, j < N
    y[i, j] = x[i, j] - t[i, j]
""")
TURNED = parse_kernel("""kernel turned(M, N)
  in  x: f32[M, N]
  out y: f32[M]
  temp t: f32[M, N]
  forall i < M, j < N
    t[i, j] = x[i, j] * x[i, j]
  forall i < M
    y[i] = 0
  forall i < M, j < N
    y[i] += x[i, j] * t[M - 1 - i, j]
""")


NAMES = {"softmax": "MN", "norm": "MN", "added": "MN", "shifted": "MN", "turned": "MN", "head": "TD"}


class Apart(Greedy):
    """Takes no blocks."""

    name = "apart"

    def variant(self, choice: Choice):
        left = [o for o in choice.options if BLOCKS not in o.ahead]
        costs = [c for o, c in zip(choice.options, choice.costs or (), strict=True) if o in left]
        return super().variant(replace(choice, options=left, costs=costs))


class InBlocks(Greedy):
    """Takes blocks wherever there are some."""

    name = "in-blocks"

    def variant(self, choice: Choice):
        return next((o for o in choice.options if BLOCKS in o.ahead), None) or super().variant(choice)


@cache
def machine(capacity: int = 1 << 16, align: int = 4) -> System:
    system = parse_system(MACHINE)
    sp = replace(system.memories["sp"], capacity=capacity, align=align)
    return replace(system, memories={**system.memories, "sp": sp})


def made(kernel: Kernel, sizes: dict[str, int], on: System | None = None, approach: Greedy | None = None) -> Job:
    job = compiled(kernel, sizes, on or machine(), approach, check=True)
    assert not job.unproved
    judge(kernel, sizes, job, 1)
    return job


def schedule_of(job: Job) -> Schedule:
    assert job.schedule is not None
    return job.schedule


def in_blocks(job: Job) -> bool:
    assert job.taken is not None
    return BLOCKS in job.taken.ahead


def seconds(job: Job) -> float:
    return timeline(schedule_of(job)).seconds


def at_home(schedule: Schedule) -> set[str]:
    """What moves bring from home, or take there."""
    calls = (n for n in distinct(schedule.call) if isinstance(n, Issue) and n.is_move)
    return {o.tile.buffer for n in calls for o in n.operands if o.place.memory == "dram"}


@pytest.mark.parametrize(("kernel", "sizes", "most"), [
    (SOFTMAX, {"M": 96, "N": 128}, 2.0),
    (SOFTMAX, {"M": 60, "N": 100}, 2.5),
    (NORM, {"M": 96, "N": 64}, 2.5),
    (HEAD, {"T": 40, "D": 16}, 4.0),
])  # fmt: skip
def test_rows_stay_near_from_the_first_nest_to_the_last(kernel: Kernel, sizes: dict[str, int], most: float) -> None:
    job = made(kernel, sizes)
    assert in_blocks(job)
    arguments = {b.name for b in kernel.arguments}
    assert {b for b in at_home(schedule_of(job)) if not b.startswith("#")} == arguments
    assert seconds(job) < most * floor(schedule_of(job)).seconds
    assert seconds(job) < 0.9 * seconds(made(kernel, sizes, approach=Apart()))


def test_one_block_is_worked_on_while_others_come_and_leave() -> None:
    """Calls and moves overlap: boxes of a block, and its results, have other places than those of the next one."""
    job = made(SOFTMAX, {"M": 256, "N": 64})
    assert seconds(job) < 1.5 * floor(schedule_of(job)).seconds


def test_rows_longer_than_the_memory_come_in_parts() -> None:
    job = made(SOFTMAX, {"M": 12, "N": 600}, machine(4096))
    assert in_blocks(job)
    assert seconds(job) < 0.8 * seconds(made(SOFTMAX, {"M": 12, "N": 600}, machine(4096), Apart()))


@pytest.mark.parametrize(("columns", "home"), [(500, {"s", "x", "p", "#f32:0"}), (50, {"s", "x"})])
def test_a_sum_that_was_begun_goes_on(columns: int, home: set[str]) -> None:
    """With the rows of a block comes what was summed so far; a row that is too long is summed in parts."""
    job = made(ADDED, {"M": 40, "N": columns}, machine(4096), InBlocks())
    assert in_blocks(job)
    assert at_home(schedule_of(job)) == home


@pytest.mark.parametrize("kernel", [SHIFTED, TURNED])
@pytest.mark.parametrize(("capacity", "home"), [(8192, True), (1 << 16, False)])
def test_groups_that_read_another_row_keep_to_themselves(kernel: Kernel, capacity: int, home: bool) -> None:
    """A row of the temporary is read where another one is worked on: it is no block's own. Where all of it has no room
    in the near memory, it goes home in between."""
    job = made(kernel, {"M": 40, "N": 64}, machine(capacity), InBlocks())
    assert in_blocks(job)
    assert ("t" in at_home(schedule_of(job))) is home


def test_nobody_is_asked_where_calls_work_in_registers() -> None:
    job = compiled(SOFTMAX, {"M": 64, "N": 64}, simulated("toy"))
    assert "cascade" not in {d.point for d in job.trace.decisions}


@pytest.mark.parametrize("seed", range(40))
def test_whatever_fits_is_right(seed: int) -> None:
    """Sizes, capacities and alignments at random: proved, simulated and searched for races."""
    choose = random.Random(seed)
    kernel = choose.choice([SOFTMAX, NORM, HEAD, ADDED, SHIFTED])
    sizes = {s: choose.randint(1, 40) for s in NAMES[kernel.name]}
    on = machine(choose.choice([2048, 4096, 8192, 1 << 14, 1 << 16]), choose.choice([1, 4, 16, 64]))
    try:
        job = made(kernel, sizes, on)
    except Refused as no:
        if no.diagnostics[0].code != "infeasible":
            raise
        return
    answers = [c.answer for c in job.candidates if BLOCKS in c.ahead]
    assert not any(isinstance(a, Infeasible) for a in answers)
    assert not check_races(schedule_of(job), {}, 1)
