"""Caches before home serve those who read there: what comes by way of a scratchpad is not laid out anew for them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from isam.ir.text import parse_kernel
from tests.machines.small import PRODUCT, ZERO, instruction, small
from tests.pipeline import compiled, judge

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
    near, home = CHAINS[chain], f"homes: [{list(CHAINS[chain])[-1]}]"
    machine = small(
        "behind",
        {"l1": "kind: cached, capacity: 1 KiB, of: dram", **near},
        [f"{a} <-> {b}" for a, b in pairwise(["dram", *near])],
        instruction("mm4(M <= 4, N <= 4, K <= 4)", PRODUCT, home, "cost: {issue: 4 cycles, latency: 12 cycles}"),
        instruction("zero(M <= 4, N <= 4)", ZERO, home),
    )
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
