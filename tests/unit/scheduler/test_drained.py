"""Sums over part of a box in accumulators that are only zeroed, added to and drained (SYS-6, SCH-4)."""

from __future__ import annotations

import pytest

from isam.codegen.simulator import Figures
from isam.compiler import Refused
from isam.ir.text import parse_kernel
from isam.schedule.tree import Loop, Schedule, distinct
from isam.system.graph import System
from tests.machines.small import CLIP, PRODUCT, ZERO, instruction, small
from tests.pipeline import compiled, judge

HOMES = "homes: {A: [spad], B: [spad], C: [acc]}"
MXU = instruction("mxu(M <= 4, N <= 4, K <= 4)", PRODUCT, HOMES, "cost: {issue: 4 cycles, latency: 12 cycles}")
MZERO = instruction("mzero(M <= 4, N <= 4)", ZERO, "homes: [acc]", "cost: {issue: 4 cycles}")
ADD = instruction("add(M <= 4, N <= 32)", """
  in  A: f32[M, N]
  in  B: f32[M, N]
  out D: f32[M, N]
  forall i < M, j < N
    D[i, j] = A[i, j] + B[i, j]
""", "homes: [spad]")  # fmt: skip
CLIPPED = instruction("clip(M <= 4, N <= 32)", CLIP, "homes: [spad]")
BYTES, CELLS, ROWS = "capacity: 1 KiB", "cells: 6, cell: 64 B", "capacity: 1 KiB, row: 16 B, align: 16 B"
BEGIN = "  forall i < M, j < N\n    C[i, j] = 0\n"
KERNEL = """kernel mm(M, N, K)
  in A: f32[M, K]
  in B: f32[K, N]
  {role} C: f32[M, N]
{permits}{begin}  forall i < M, j < N, k < K where {where}
    C[i, j] += A[i, k] * B[k, j]
"""
WHERE = ["k <= i", "k >= i", "k < i", "j <= i", "i <= j", "j > i", "k <= i, k + 5 >= i", "k <= 2*i", "i + k < K",
         "j + k <= M", "k >= 3", "i >= 2"]  # fmt: skip


def machine(accumulators: str, *more: str, memories: dict[str, str] | None = None,
            moves: tuple[str, ...] = ("dram <-> spad",)) -> System:  # fmt: skip
    near = {**(memories or {}), "spad": "capacity: 16 KiB", "acc": accumulators}
    return small("drained", near, [*moves, "acc -> spad"], MXU, MZERO, *more)


def text(where: str, role: str = "out", begin: str = BEGIN, permits: str = "") -> str:
    return KERNEL.format(where=where, role=role, begin=begin, permits=permits)


def right(source: str, sizes: tuple[int, ...], system: System) -> tuple[Schedule, Figures]:
    kernel, numbers = parse_kernel(source), dict(zip("MNK", sizes, strict=True))
    done = compiled(kernel, numbers, system, check=True)
    assert done.schedule is not None
    return done.schedule, judge(kernel, numbers, done)


@pytest.mark.parametrize("accumulators", range(4), ids=["bytes", "cells", "rows", "registers"])
@pytest.mark.parametrize("where", range(len(WHERE)))
def test_sums_over_part_of_a_box_are_right(accumulators: int, where: int):
    """Every condition with every kind of accumulators and all sizes, every kind with all sizes."""
    sizes = [(16, 16, 16), (13, 9, 17), (1, 5, 1)][(accumulators + where) % 3]
    kind = [BYTES, CELLS, ROWS, "kind: counted, cells: 8, cell: 64 B"][accumulators]
    right(text(WHERE[where]), sizes, machine(kind))


@pytest.mark.parametrize("accumulators", [BYTES, CELLS])
@pytest.mark.parametrize("where", ["k <= i", "k >= i", "j <= i"])
def test_their_terms_are_added_in_order_where_that_counts(accumulators: str, where: str):
    right(text(where, permits="  permits exact\n"), (13, 9, 17), machine(accumulators))


def test_all_but_the_edge_are_calls_as_large_as_those_of_a_box():
    """Blocks of sixteen rows: whole squares below them in a loop, at the edge four rows at a time, then each."""
    schedule, figures = right(text("k <= i"), (64, 4, 64), machine(BYTES))
    squares = 16 * 15 // 2
    assert figures.calls["mxu"] == squares + 16 * 4
    assert figures.moved["acc", "spad"] == 64 * 4 * 4
    assert sum(isinstance(n, Loop) for n in distinct(schedule.call)) == 2


@pytest.mark.parametrize("accumulators", [BYTES, CELLS])
def test_what_they_go_on_from_is_added_afterwards(accumulators: str):
    right(text("k <= i", role="inout", begin=""), (13, 9, 17), machine(accumulators, ADD))


def test_they_are_read_by_what_follows():
    source = text("k <= i", role="temp").replace("K]\n", "K]\n  out y: f32[M, N]\n", 1)
    source += "  forall i < M, j < N\n    y[i, j] = max(C[i, j], 0)\n"
    right(source, (13, 9, 17), machine(BYTES, CLIPPED))


def test_they_leave_by_way_of_two_memories():
    near = {"buf": "capacity: 64 KiB"}
    right(text("k <= i"), (20, 12, 20), machine(BYTES, memories=near, moves=("dram <-> buf", "buf <-> spad")))


def test_windows_over_the_edges_of_an_image():
    right("""kernel conv(M, N, K)
  in X: f32[M, K]
  in W: f32[3, K, N]
  out C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, r < 3, k < K where i + r >= 1, i + r <= M
    C[i, j] += X[i + r - 1, k] * W[r, k, j]
""", (13, 9, 6), machine(BYTES))  # fmt: skip


@pytest.mark.parametrize("where", ["j >= i, k <= j", "i + j + k < M"])
def test_conditions_that_tie_three_axes_are_refused(where: str):
    with pytest.raises(Refused, match="no way leads there, it holds what begins in the same loops"):
        compiled(parse_kernel(text(where)), {"M": 12, "N": 12, "K": 12}, machine(BYTES))
