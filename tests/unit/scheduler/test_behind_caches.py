"""Caches before home serve those who read there: what comes by way of a scratchpad is not laid out anew for them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from isam.ir.text import parse_kernel
from isam.system.load import parse_system
from tests.pipeline import compiled, judge

MACHINE = """isam: 1
system: behind
backend: simulator
memories:
  dram: {{kind: managed, capacity: 1 GiB, home: true}}
  l1:   {{kind: cached, capacity: 1 KiB, of: dram}}
{memories}
units:
  mm:  {{runs: [mm4, zero], clock: 1 GHz}}
  dma: {{runs: [copy], clock: 1 GHz}}
moves:
{moves}
instructions:
  mm4:
    body: |
      instruction mm4(M <= 4, N <= 4, K <= 4)
        in    A: f32[M, K]
        in    B: f32[K, N]
        inout C: f32[M, N]
        forall i < M, j < N, k < K
          C[i, j] += A[i, k] * B[k, j]
    homes: [{home}]
    cost: {{issue: 4 cycles, latency: 12 cycles}}
  zero:
    body: |
      instruction zero(M <= 4, N <= 4)
        out C: f32[M, N]
        forall i < M, j < N
          C[i, j] = 0
    homes: [{home}]
  copy:
    body: |
      instruction copy(M, N)
        in  S: any[M, N]
        out D: any[M, N]
        forall i < M, j < N
          D[i, j] = S[i, j]
    cost: {{setup: 10 cycles, bandwidth: 16 B/cycle}}
"""
CHAINS = {
    "a scratchpad": {"sp": "capacity: 64 KiB, align: 16 B"},
    "registers behind one": {"sp": "capacity: 64 KiB, align: 16 B", "rf": "cells: 8, cell: 64 B"},
    "registers behind one in cells": {"sp": "cells: 64, cell: 64 B", "rf": "cells: 8, cell: 64 B"},
    "registers": {"rf": "cells: 8, cell: 64 B"},
}


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("role", ["in   ", "const"])
@pytest.mark.parametrize("sizes", [(16, 16, 16), (13, 40, 33)])
def test_a_product_is_right_whatever_stands_behind_caches(chain, role, sizes):
    there = CHAINS[chain]
    names = ["dram", *there]
    moves = [f"  - {{from: {a}, to: {b}, by: copy, issuer: dma, both_ways: true}}"
             for a, b in pairwise(names)]  # fmt: skip
    memories = "\n".join(f"  {n}: {{kind: managed, {what}}}" for n, what in there.items())
    machine = parse_system(MACHINE.format(memories=memories, moves="\n".join(moves), home=names[-1]))
    kernel = parse_kernel(f"""kernel product(M, N, K)
  in    a: f32[M, K]
  {role} b: f32[K, N]
  out   c: f32[M, N]
  forall i < M, j < N
    c[i, j] = 0
  forall i < M, j < N, k < K
    c[i, j] += a[i, k] * b[k, j]
""")
    given = dict(zip("MNK", sizes, strict=True))
    judge(kernel, given, compiled(kernel, given, machine, check=True))
