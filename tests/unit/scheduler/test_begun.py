"""Memories that no move leads to: instructions begin data there, sums go on, results leave (SYS-6, SCH-4)."""

from __future__ import annotations

import pytest

from isam.compiler import Refused
from isam.diagnostics import IsamError
from isam.ir.text import parse_kernel
from isam.system.check import check
from isam.system.graph import System
from tests.machines.small import PRODUCT, ZERO, instruction, small
from tests.pipeline import compiled, judge

MXU = instruction("mxu(M <= 4, N <= 4, K <= 4)", PRODUCT, "homes: {A: [spad], B: [spad], C: [acc]}",
                  "cost: {issue: 4 cycles, latency: 12 cycles}")  # fmt: skip
MZERO = instruction("mzero(M <= 4, N <= 4)", ZERO, "homes: [acc]", "cost: {issue: 4 cycles, latency: 4 cycles}")
FED, DRAINED = "dram <-> spad", "acc -> spad"
BEGIN = "  forall i < M, j < N\n    C[i, j] = 0\n"
KERNEL = """kernel mm(M, N, K)
  in A: f32[M, K]
  in B: f32[K, N]
  {role} C: f32[M, N]
{begin}  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""


def machine(moves: list[str], *instructions: str) -> System:
    """No move leads to the accumulators."""
    return small("drained", {"spad": "capacity: 16 KiB", "acc": "cells: 6, cell: 64 B"}, moves, *instructions)


@pytest.fixture
def drained() -> System:
    return machine([FED, DRAINED], MXU, MZERO)


def test_accumulators_that_are_zeroed_and_drained_are_accepted(drained: System):
    assert check(drained) == []


@pytest.mark.parametrize("sizes", [(4, 4, 4), (13, 9, 17), (40, 24, 8), (1, 30, 3)])
def test_sums_that_begin_there_are_right(drained: System, sizes: tuple[int, ...]):
    kernel, numbers = parse_kernel(KERNEL.format(role="out", begin=BEGIN)), dict(zip("MNK", sizes, strict=True))
    judge(kernel, numbers, compiled(kernel, numbers, drained, check=True))


def test_a_sum_that_goes_on_from_home_is_refused_with_the_reason(drained: System):
    kernel = parse_kernel(KERNEL.format(role="inout", begin=""))
    with pytest.raises(Refused, match=r"'acc' needs moves of f32 from 'dram' for C.*no way leads there") as no:
        compiled(kernel, {"M": 8, "N": 8, "K": 8}, drained)
    assert any((d.loc.file, d.loc.line) == ("drained.yaml", 6) for d in no.value.diagnostics)


def test_without_a_beginning_data_cannot_get_there():
    with pytest.raises(IsamError, match="'C' of 'mxu' is read in 'acc', but no moves lead from 'dram' to 'acc'"):
        machine([FED, DRAINED], MXU)


def test_results_have_to_leave():
    with pytest.raises(IsamError, match="is written in 'acc', but no moves lead from 'acc' to 'dram'"):
        machine([FED], MXU, MZERO)
