"""The table of MAP-10: by the mapper and by brute force, both against the literal numbers."""

from __future__ import annotations

import pytest

from isam.ir.text import parse, parse_instruction
from isam.mapper import count, match
from tests.brute_force import brute_count

INSTRUCTIONS = {
    "GEMM": """instruction gemm(M, N, K)
  in A: f32[M, K]
  in B: f32[K, N]
  inout C: f32[M, N]
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
""",
    "GEMV": """instruction gemv(M, K)
  in A: f32[M, K]
  in x: f32[K]
  inout y: f32[M]
  forall i < M, k < K
    y[i] += A[i, k] * x[k]
""",
    "DOT": """instruction dot(K)
  in a: f32[K]
  in b: f32[K]
  inout s: f32[]
  forall k < K
    s[] += a[k] * b[k]
""",
    "GER": """instruction ger(M, N)
  in x: f32[M]
  in y: f32[N]
  inout C: f32[M, N]
  forall i < M, j < N
    C[i, j] += x[i] * y[j]
""",
}


def conv2d(stride: int = 1, dilation: int = 1) -> str:
    return f"""kernel conv2d(N, C, H, W, K, R, S)
  in x: f32[N, C, {stride} * H + {dilation} * R, {stride} * W + {dilation} * S]
  in w: f32[K, C, R, S]
  inout y: f32[N, K, H, W]
  forall n < N, k < K, h < H, v < W, c < C, r < R, s < S
    y[n, k, h, v] += x[n, c, {stride} * h + {dilation} * r, {stride} * v + {dilation} * s] * w[k, c, r, s]
"""


KERNELS = {
    "matmul": """kernel matmul(M, N, K)
  in A: f32[M, K]
  in B: f32[K, N]
  inout C: f32[M, N]
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
""",
    "matmul, A transposed": """kernel matmul(M, N, K)
  in A: f32[K, M]
  in B: f32[K, N]
  inout C: f32[M, N]
  forall i < M, j < N, k < K
    C[i, j] += A[k, i] * B[k, j]
""",
    "matmul, batched": """kernel matmul(Q, M, N, K)
  in A: f32[Q, M, K]
  in B: f32[Q, K, N]
  inout C: f32[Q, M, N]
  forall q < Q, i < M, j < N, k < K
    C[q, i, j] += A[q, i, k] * B[q, k, j]
""",
    "conv1d NCW": """kernel conv1d(N, C, W, K, S)
  in x: f32[N, C, W + S]
  in w: f32[K, C, S]
  inout y: f32[N, K, W]
  forall n < N, k < K, v < W, c < C, s < S
    y[n, k, v] += x[n, c, v + s] * w[k, c, s]
""",
    "conv2d stride 1": conv2d(),
    "conv2d stride 2": conv2d(stride=2),
    "conv2d dilation 2": conv2d(dilation=2),
    "grouped conv2d": """kernel grouped(N, G, C, H, W, K, R, S)
  in x: f32[N, G, C, H + R, W + S]
  in w: f32[G, K, C, R, S]
  inout y: f32[N, G, K, H, W]
  forall n < N, g < G, k < K, h < H, v < W, c < C, r < R, s < S
    y[n, g, k, h, v] += x[n, g, c, h + r, v + s] * w[g, k, c, r, s]
""",
    "depthwise conv2d": """kernel depthwise(N, C, H, W, R, S)
  in x: f32[N, C, H + R, W + S]
  in w: f32[C, R, S]
  inout y: f32[N, C, H, W]
  forall n < N, c < C, h < H, v < W, r < R, s < S
    y[n, c, h, v] += x[n, c, h + r, v + s] * w[c, r, s]
""",
    "1x1 conv": """kernel pointwise(N, C, H, W, K)
  in x: f32[N, C, H, W]
  in w: f32[K, C]
  inout y: f32[N, K, H, W]
  forall n < N, k < K, h < H, v < W, c < C
    y[n, k, h, v] += x[n, c, h, v] * w[k, c]
""",
    "conv3d": """kernel conv3d(N, C, D, H, W, K, Q, R, S)
  in x: f32[N, C, D + Q, H + R, W + S]
  in w: f32[K, C, Q, R, S]
  inout y: f32[N, K, D, H, W]
  forall n < N, k < K, d < D, h < H, v < W, c < C, q < Q, r < R, s < S
    y[n, k, d, h, v] += x[n, c, d + q, h + r, v + s] * w[k, c, q, r, s]
""",
    "matrix-vector": """kernel matvec(M, K)
  in A: f32[M, K]
  in x: f32[K]
  inout y: f32[M]
  forall i < M, k < K
    y[i] += A[i, k] * x[k]
""",
}

#                       GEMM      GEMV     DOT     GER     GEMM, strided rows ok
TABLE = {
    "matmul":               ((2, 1), (2, 1), (2, 1), (2, 1), 2),
    "matmul, A transposed": ((2, 1), (2, 1), (2, 1), (2, 1), 2),
    "matmul, batched":      ((2, 1), (2, 1), (2, 1), (2, 1), 2),
    "conv1d NCW":           ((6, 3), (5, 3), (4, 2), (4, 2), 6),
    "conv2d stride 1":      ((14, 7), (10, 7), (6, 3), (6, 3), 14),
    "conv2d stride 2":      ((6, 3), (6, 3), (6, 3), (2, 1), 14),
    "conv2d dilation 2":    ((6, 3), (4, 3), (2, 1), (6, 3), 14),
    "grouped conv2d":       ((14, 7), (10, 7), (6, 3), (6, 3), 14),
    "depthwise conv2d":     ((0, 0), (4, 4), (4, 2), (0, 0), 0),
    "1x1 conv":             ((6, 3), (4, 3), (2, 1), (6, 3), 6),
    "conv3d":               ((26, 13), (17, 13), (8, 4), (8, 4), 26),
    "matrix-vector":        ((0, 0), (1, 1), (2, 1), (0, 0), 0),
}  # fmt: skip

COUNTERS = {"mapper": count, "brute force": brute_count}


def test_the_table_is_complete():
    assert TABLE.keys() == KERNELS.keys()


@pytest.mark.parametrize("kernel", TABLE)
@pytest.mark.parametrize("by", COUNTERS)
def test_counts(kernel: str, by: str):
    counter, k = COUNTERS[by], parse(KERNELS[kernel])
    got = [
        (counter(k, g, swap=True), counter(k, g, swap=False)) for g in map(parse_instruction, INSTRUCTIONS.values())
    ]
    strided = counter(k, parse_instruction(INSTRUCTIONS["GEMM"]), strided=True)
    assert (*got, strided) == TABLE[kernel]


def test_depthwise_on_gemm_says_which_row_depends_on_what():
    no = match(parse(KERNELS["depthwise conv2d"]), parse_instruction(INSTRUCTIONS["GEMM"]))
    assert not no
    assert no.kind == "extra-dependence"
    assert (no.about("operand"), no.about("buffer"), no.about("axis")) == ("A", "x", "c")
    assert no.about("instruction_axis") == "j"
    assert "row c (dimension 1) of x[n, c, h + r, s + v], which depends on axis c, and is also an index of w" in no.have
    assert "A[i, k] that does not depend on axis j" in no.need


def test_matrix_vector_on_gemm_lacks_an_axis():
    no = match(parse(KERNELS["matrix-vector"]), parse_instruction(INSTRUCTIONS["GEMM"]))
    assert (no.kind, no.about("instruction_axis")) == ("axis-missing", "j")
    assert set(no.about("lacking")) >= {"B"}
