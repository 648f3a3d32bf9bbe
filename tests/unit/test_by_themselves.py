"""Sums in accumulators that no move leads to, which begin with a bias: made there from zero, also where others can."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_kernel
from tests.machines.small import PRODUCT, ZERO, instruction, small
from tests.pipeline import compiled, judge

FILL = """
  in  A: f32[N]
  out D: f32[M, N]
  forall i < M, j < N
    D[i, j] = A[j]
"""
ADD = """
  in  A: f32[M, N]
  in  B: f32[M, N]
  out D: f32[M, N]
  forall i < M, j < N
    D[i, j] = A[i, j] + B[i, j]
"""
ROW = """
  in    A: f32[]
  in    B: f32[N]
  inout D: f32[N]
  forall j < N
    D[j] += A[] * B[j]
"""
BIASED = parse_kernel("""kernel biased(M, N, K)
  in    x: f32[M, K]
  const w: f32[K, N]
  const b: f32[N]
  out   y: f32[M, N]
  forall i < M, j < N
    y[i, j] = b[j]
  forall i < M, j < N, k < K
    y[i, j] += x[i, k] * w[k, j]
""")
CALLERS = parse_kernel("""kernel callers(M, N, K)
  in    x: f32[M, K]
  in    w: f32[K, N]
  inout y: f32[M, N]
  forall i < M, j < N, k < K
    y[i, j] += x[i, k] * w[k, j]
""")
SIZES = {"M": 24, "N": 20, "K": 40}


def machine(*further: str):
    """Blocks of products in accumulators; ``further``: instructions on what lies in the pad."""
    homes = "homes: {A: [pad], B: [pad], C: [acc]}"
    mm = instruction("mm(M <= 8, N <= 8, K <= 8)", PRODUCT, homes, "cost: {issue: 8 cycles}")
    zero = instruction("zero(M <= 8, N <= 8)", ZERO, "homes: [acc]", "cost: {issue: 1 cycle}")
    fill, add = (instruction(f"{n}(M <= 8, N <= 32)", body, "homes: [pad]", "cost: {issue: 8 cycles}")
                 for n, body in (("fill", FILL), ("add", ADD)))  # fmt: skip
    return small("biased", {"pad": "capacity: 64 KiB", "acc": "cells: 8, cell: 256 B"}, ("dram <-> pad", "acc -> pad"),
                 mm, zero, fill, add, *further)  # fmt: skip


def row(cycles: int) -> str:
    """A number with a row, added to one that lies in the pad."""
    return instruction("row(N <= 32)", ROW, "homes: [pad]", f"cost: {{issue: {cycles} cycles}}")


@pytest.mark.parametrize("kernel", [BIASED, CALLERS], ids=lambda k: k.name)
@pytest.mark.parametrize("further", [(), (row(4),)], ids=["alone", "beside"])
def test_blocks_are_taken_whether_or_not_rows_could_go_on_from_the_bias(kernel, further) -> None:
    job = compiled(kernel, SIZES, machine(*further), check=True)
    assert job.schedule is not None
    taken = {m.instruction.name for m in job.schedule.cover.mappings}
    assert {"mm", "zero", "add"} <= taken
    assert "row" not in taken
    judge(kernel, SIZES, job)


def test_rows_are_taken_where_they_are_quicker() -> None:
    sizes = {"M": 1, "N": 32, "K": 1}
    job = compiled(BIASED, sizes, machine(row(1)), check=True)
    assert job.schedule is not None
    assert "row" in {m.instruction.name for m in job.schedule.cover.mappings}
    judge(BIASED, sizes, job)
