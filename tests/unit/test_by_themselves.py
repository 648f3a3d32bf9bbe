"""Sums that begin with a bias which is not where they are made: in accumulators that no move leads to, made there from
zero, also where others can; in tiles, as well."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, distinct
from tests.machines.small import PRODUCT, ZERO, instruction, small
from tests.pipeline import compiled, judge, simulated

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


TILES = parse_kernel("""kernel tiles(M, N, K)
  in    x: bf16[M, K]
  const w: bf16[K, N]
  const b: f32[N]
  out   y: bf16[M, N]
  permits reassociate, contract, flush
  forall i < M, j < N
    s[i, j] = b[j]
  forall i < M, j < N, k < K
    s[i, j] += f32(x[i, k]) * f32(w[k, j])
  forall i < M, j < N
    y[i, j] = bf16(max(s[i, j], 0))
""")


def test_tiles_begin_with_zero_and_the_bias_is_added_as_they_leave() -> None:
    """Brought to tiles, it would be written and read for every block."""
    sizes = {"M": 64, "N": 64, "K": 128}
    job = compiled(TILES, sizes, simulated("sapphire-rapids"), check=True)
    assert job.schedule is not None
    moves = {n.instruction for n in distinct(job.schedule.call) if isinstance(n, Issue) and n.is_move}
    assert {m.instruction.name for m in job.schedule.cover.mappings} >= {"tile_zero_f32", "tile_dot2_bf16"}
    assert "tilestore_f32" in moves
    assert "tileload_f32" not in moves
    judge(TILES, sizes, job)
