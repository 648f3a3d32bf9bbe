"""What is said to help where no move carries what lies apart: a contract with free strides, tried before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from isam.compiler import Refused
from isam.ir.text import parse_kernel
from isam.system.load import parse_system
from tests.pipeline import compiled, judge

OUTER = """isam: 1
system: outer
backend: simulator
memories:
  dram: {kind: managed, capacity: 1 MiB, home: true}
  sram: {kind: managed, capacity: 32 KiB}
  xb: {kind: managed, cells: 16, cell: 32 B}
  yb: {kind: managed, cells: 16, cell: 32 B}
  ob: {kind: managed, cells: 4, cell: 256 B}
units:
  op: {runs: [outer, zero], clock: 1 GHz}
  ld: {runs: [row, block], clock: 1 GHz}
moves:
  - {from: dram, to: sram, by: block, issuer: ld, both_ways: true}
  - {from: sram, to: xb, by: row, issuer: ld}
  - {from: sram, to: yb, by: row, issuer: ld}
  - {from: ob, to: sram, by: block, issuer: ld}
instructions:
  outer:
    body: |
      instruction outer(M <= 8, N <= 8)
        in    A: f32[M]
        in    B: f32[N]
        inout C: f32[M, N]
        forall i < M, j < N
          C[i, j] += A[i] * B[j]
    homes: {A: [xb], B: [yb], C: [ob]}
    cost: {issue: 1 cycle}
  zero:
    body: |
      instruction zero(M <= 8, N <= 8)
        out D: f32[M, N]
        forall i < M, j < N
          D[i, j] = 0
    homes: [ob]
    cost: {issue: 1 cycle}
  row:
    body: |
      instruction row(N <= WIDTH)
        in  S: f32[N]
        out D: f32[N]
        forall i < N
          D[i] = S[i]
    cost: {issue: 1 cycle}
  block:
    body: |
      instruction block(M, N)
        in  S: f32[M, N]
        out D: f32[M, N]
        forall i < M, j < N
          D[i, j] = S[i, j]
    cost: {issue: 8 cycles}
"""
KERNEL = parse_kernel("""kernel product(M, N, K)
  in  A: f32[M, K]
  in  B: f32[K, N]
  out C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
""")
SIZES = {"M": 16, "N": 16, "K": 16}


def machine(width: int) -> Any:
    return parse_system(OUTER.replace("WIDTH", str(width)), "outer.yaml")


def test_columns_that_a_move_takes_side_by_side_only_want_free_strides():
    with pytest.raises(Refused) as no:
        compiled(KERNEL, SIZES, machine(8))
    reason = no.value.answer
    assert reason.path == ("sram", "xb")
    assert reason.levers == ("'strides: {S: [free]}' of 'row', which takes elements side by side only",)
    before = machine(8)
    row = before.instructions["row"]
    free = replace(row, operands={**row.operands, "S": replace(row.contract("S"), strides=(None,))})
    after = replace(before, instructions={**before.instructions, "row": free})
    judge(KERNEL, SIZES, compiled(KERNEL, SIZES, after), 3)


def test_what_free_strides_would_not_help_does_not_name_them():
    with pytest.raises(Refused) as no:
        compiled(KERNEL, SIZES, machine(4))
    assert no.value.answer.levers == (), "a row of eight takes two moves, and a cell is filled by one"
