"""Which nests Greedy lets share loops beyond those between which whole tiles flow: what passes through memory in any
case, and what is written over."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_kernel
from isam.schedule.tree import Loop, Schedule, distinct
from tests.pipeline import compiled, judge, simulated

ROUNDED = parse_kernel("""
kernel rounded(M, N, K)
  in    A: bf16[M, K]
  const B: bf16[K, N]
  out   C: bf16[M, N]
  permits contract, reassociate, flush
  forall i < M, j < N
    S[i, j] = 0
  forall i < M, j < N, k < K
    S[i, j] += f32(A[i, k]) * f32(B[k, j])
  forall i < M, j < N
    C[i, j] = bf16(S[i, j])
""")
FILLED = parse_kernel("""
kernel filled(N, M)
  in  x: f32[N, M]
  out y: f32[N, M + 11]
  forall i < N, j < M + 11
    y[i, j] = 0
  forall i < N, j < M
    y[i, j] = 2 * x[i, j]
""")


def made(kernel, sizes: dict[str, int], on: str) -> Schedule:
    """With its proof, and judged."""
    job = compiled(kernel, sizes, simulated(on), check=True)
    assert job.schedule is not None
    judge(kernel, sizes, job)
    return job.schedule


def room(schedule: Schedule, slot: str) -> int:
    return next(s.bytes for s in schedule.workspace if s.name == slot)


@pytest.mark.parametrize("sizes", [(256, 256, 64), (128, 128, 64)])
def test_what_tiles_leave_is_rounded_while_it_is_near(sizes) -> None:
    """There is room for a block of sums."""
    schedule = made(ROUNDED, dict(zip("MNK", sizes, strict=True)), "sapphire-rapids")
    assert room(schedule, "S") == 32 * 32 * 4


def loops(schedule: Schedule) -> int:
    """Over rows."""
    return sum(isinstance(n, Loop) and n.axis == "i" for n in distinct(schedule.call))


@pytest.mark.parametrize(("rows", "over"), [(400, 1), (40, 2)])
def test_what_is_filled_and_written_over_goes_row_by_row(rows, over) -> None:
    """Rows of 43 elements: 400 of them, 68 KB, leave the nearest cache."""
    assert loops(made(FILLED, {"N": rows, "M": 32}, "host-avx512")) == over
