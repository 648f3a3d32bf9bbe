"""The number of mappings of every instruction shipped, by the mapper and by brute force (MAP-10)."""

from __future__ import annotations

import pytest

from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.text import parse
from isam.mapper import count
from isam.system.load import load_system
from tests.brute_force import brute_count

KERNELS = [
    """kernel layer(M, N, K)
  in  A: f32[M, K]
  in  B: f32[K, N]
  in  b: f32[N]
  out C: f32[M, N]
  forall i < M, j < N
    C[i, j] = b[j]
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
  forall i < M, j < N
    C[i, j] = max(C[i, j], 0)
""",
    """kernel conv(N, C, W, K, S)
  in  x: f32[N, C, 2 * W + S]
  in  w: f32[K, C, S]
  out y: f32[N, K, W]
  forall n < N, k < K, v < W
    y[n, k, v] = 0
  forall n < N, k < K, v < W, c < C, s < S
    y[n, k, v] += x[n, c, 2 * v + s] * w[k, c, s]
""",
    """kernel depthwise(C, W, S)
  in  x: f32[C, W + S]
  in  w: f32[C, S]
  out y: f32[C, W]
  forall c < C, v < W
    y[c, v] = 0
  forall c < C, v < W, s < S
    y[c, v] += x[c, v + s] * w[c, s]
""",
    """kernel softmax(M, N)
  in  x: f32[M, N]
  out y: f32[M, N]
  forall i < M
    m[i] = -inf
    s[i] = 0
  forall i < M, j < N
    m[i] max= x[i, j]
  forall i < M, j < N
    e[i, j] = exp(x[i, j] - m[i])
    s[i] += e[i, j]
  forall i < M, j < N
    y[i, j] = e[i, j] / s[i]
""",
    """kernel mixed(M, N)
  in  a: i8[M, N]
  in  b: f32[N, M]
  out c: bool[M, N]
  out d: f32[M, N]
  inout e: f32[M]
  forall i < M, j < N
    f[i, j] = f32(a[i, j])
    c[i, j] = f[i, j] < b[j, i]
    g[i, j] = select(c[i, j], f[i, j], 2 * b[j, i])
    d[i, j] = abs(g[i, j])
  forall i < M, j < N
    e[i] min= d[i, j]
  forall i < M
    e[i] = e[i] * e[i]
""",
]


def structure(k: Kernel) -> str:
    """The body without dtypes and limits: what the rule of MAP-10 looks at."""
    return str([(s.domain.names, s.dest.buffer, s.dest.index, s.op, s.accumulate, [str(x) for x in s.sources],
                 s.domain.where) for s in k.statements])  # fmt: skip


def distinct(system: str) -> list[Instruction]:
    found: dict[str, Instruction] = {}
    for i in (i for i in load_system(system).instructions.values() if i.body.body):  # others only configure
        found.setdefault(structure(i.body), i)
    return list(found.values())


@pytest.mark.parametrize("system", ["tiny", "toy", "host", "blas"])
def test_every_instruction_shipped(system: str):
    total = 0
    for text in KERNELS:
        kernel = parse(text)
        for i in distinct(system):
            for strided in (False, True):
                got = count(kernel, i, strided=strided)
                assert got == brute_count(kernel, i, strided=strided), f"{i.name} on {kernel.name}, {strided}"
                total += got
    assert total > 10
