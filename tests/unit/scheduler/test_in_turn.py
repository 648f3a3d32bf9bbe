"""Results of blocks take places in turn where there is room, so that none waits for the ones before (SCH-6)."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, distinct
from tests.machines.small import PRODUCT, ZERO, instruction, small
from tests.pipeline import compiled, judge

MXU = instruction("mxu(M <= 8, N <= 8, K <= 8)", PRODUCT, "homes: {A: [la], B: [lb], C: [lc]}",
                  "cost: {issue: 8 cycles, latency: 8 cycles}")  # fmt: skip
MZERO = instruction("mzero(M <= 8, N <= 8)", ZERO, "homes: [lc]", "cost: {issue: 1 cycle, latency: 1 cycle}")
KERNEL = parse_kernel("""kernel mm(M, N, K)
  in  A: f32[M, K]
  in  B: f32[K, N]
  out C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
""")
SIZES = {"M": 32, "N": 32, "K": 32}


def places(tiles: int) -> set[str]:
    """Where calls find their results, in a memory that holds so many tiles."""
    memories = {"spad": "capacity: 32 KiB", "la": "capacity: 1 KiB", "lb": "capacity: 1 KiB",
                "lc": f"capacity: {tiles * 256} B"}  # fmt: skip
    moves = ["dram <-> spad", "spad -> la", "spad -> lb", "lc -> spad"]
    job = compiled(KERNEL, SIZES, small("turns", memories, moves, MXU, MZERO), check=True)
    judge(KERNEL, SIZES, job)
    calls = (n for n in distinct(job.schedule.call) if isinstance(n, Issue) and n.instruction == "mxu")
    return {str(n.operands[2].place.offset) for n in calls}


@pytest.mark.parametrize("tiles", [1, 2, 4])
def test_all_room_for_results_is_used(tiles: int) -> None:
    assert len(places(tiles)) == tiles
