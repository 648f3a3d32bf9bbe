"""Memories that no move leads to: instructions begin data there, sums go on, results leave (SYS-6, SCH-4)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.compiler import Refused
from isam.diagnostics import IsamError
from isam.ir.text import parse_kernel
from isam.system.check import check
from isam.system.graph import System
from isam.system.load import parse_system
from tests.pipeline import compiled, judge

DRAINED = """isam: 1
system: drained
memories:
  hbm:  {kind: managed, capacity: 2 GiB, home: true}
  spad: {kind: managed, capacity: 16 KiB}
  acc:  {kind: managed, cells: 6, cell: 64 B}
units:
  array: {runs: [mxu, mzero], clock: 1 GHz}
  dma:   {runs: [copy], clock: 1 GHz}
moves:
  - {from: hbm, to: spad, by: copy, issuer: dma, both_ways: true}
  - {from: acc, to: spad, by: copy, issuer: dma}
instructions:
  mxu:
    body: |
      instruction mxu(M <= 4, N <= 4, K <= 4)
        in    A: f32[M, K]
        in    W: f32[K, N]
        inout C: f32[M, N]
        forall i < M, j < N, k < K
          C[i, j] += A[i, k] * W[k, j]
    homes: {A: [spad], W: [spad], C: [acc]}
    cost: {issue: 4 cycles, latency: 12 cycles}
  mzero:
    body: |
      instruction mzero(M <= 4, N <= 4)
        out D: f32[M, N]
        forall i < M, j < N
          D[i, j] = 0
    homes: [acc]
    cost: {issue: 4 cycles, latency: 4 cycles}
  copy:
    body: |
      instruction copy(M, N)
        in  S: any[M, N]
        out D: any[M, N]
        forall i < M, j < N
          D[i, j] = S[i, j]
    cost: {setup: 10 cycles, bandwidth: 16 B/cycle}
"""
BEGIN = "  forall i < M, j < N\n    C[i, j] = 0\n"
PRODUCT = """kernel mm(M, N, K)
  in A: f32[M, K]
  in B: f32[K, N]
  {role} C: f32[M, N]
{begin}  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""


@pytest.fixture
def drained() -> System:
    return replace(parse_system(DRAINED), backend="simulator")


def test_accumulators_that_are_zeroed_and_drained_are_accepted(drained: System):
    assert check(drained) == []


@pytest.mark.parametrize("sizes", [(4, 4, 4), (13, 9, 17), (40, 24, 8), (1, 30, 3)])
def test_sums_that_begin_there_are_right(drained: System, sizes: tuple[int, ...]):
    kernel, numbers = parse_kernel(PRODUCT.format(role="out", begin=BEGIN)), dict(zip("MNK", sizes, strict=True))
    judge(kernel, numbers, compiled(kernel, numbers, drained, check=True))


def test_a_sum_that_goes_on_from_home_is_refused_with_the_reason(drained: System):
    kernel = parse_kernel(PRODUCT.format(role="inout", begin=""))
    with pytest.raises(Refused, match=r"'acc' needs moves of f32 from 'hbm' for C.*no way leads there") as no:
        compiled(kernel, {"M": 8, "N": 8, "K": 8}, drained)
    assert any(d.loc.line == 6 for d in no.value.diagnostics)


def test_without_a_beginning_data_cannot_get_there():
    at = DRAINED.index("  mzero:\n")
    text = DRAINED[:at] + DRAINED[DRAINED.index("  copy:\n") :]
    with pytest.raises(IsamError, match="'C' of 'mxu' is read in 'acc', but no moves lead from 'hbm' to 'acc'"):
        parse_system(text.replace("runs: [mxu, mzero]", "runs: [mxu]"))


def test_results_have_to_leave():
    with pytest.raises(IsamError, match="is written in 'acc', but no moves lead from 'acc' to 'hbm'"):
        parse_system(DRAINED.replace("  - {from: acc, to: spad, by: copy, issuer: dma}\n", ""))
