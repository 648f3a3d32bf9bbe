"""Instructions and kernels that the mapper's tests share."""

from __future__ import annotations

from isam.ir.text import parse, parse_instruction

_I = {
    "gemm": "(M, N, K)\n in A: f32[M, K]\n in B: f32[K, N]\n inout C: f32[M, N]\n forall i < M, j < N, k < K\n"
            "  C[i, j] += A[i, k] * B[k, j]",
    "gemm0": "(M, N, K)\n in A: f32[M, K]\n in B: f32[K, N]\n out C: f32[M, N]\n forall i < M, j < N\n  C[i, j] = 0\n"
             " forall i < M, j < N, k < K\n  C[i, j] += A[i, k] * B[k, j]",
    "gemm_bias_relu": "(M, N, K)\n in A: f32[M, K]\n in B: f32[K, N]\n in b: f32[N]\n out C: f32[M, N]\n"
                      " forall i < M, j < N\n  C[i, j] = b[j]\n forall i < M, j < N, k < K\n"
                      "  C[i, j] += A[i, k] * B[k, j]\n forall i < M, j < N\n  C[i, j] = max(C[i, j], 0)",
    "exp_sum": "(M, N)\n in x: f32[M, N]\n out e: f32[M, N]\n inout s: f32[M]\n forall i < M, j < N\n"
               "  e[i, j] = exp(x[i, j])\n  s[i] += e[i, j]",
    "exp_shift_sum": "(M, N)\n in x: f32[M, N]\n in m: f32[M]\n out e: f32[M, N]\n inout s: f32[M]\n"
                     " forall i < M, j < N\n  e[i, j] = exp(x[i, j] - m[i])\n  s[i] += e[i, j]",
    "vadd": "(N)\n in A: f32[N]\n in B: f32[N]\n out D: f32[N]\n forall i < N\n  D[i] = A[i] + B[i]",
    "vmul": "(N)\n in A: f32[N]\n in B: f32[N]\n out D: f32[N]\n forall i < N\n  D[i] = A[i] * B[i]",
    "scale": "(N)\n in a: f32[]\n in A: f32[N]\n out D: f32[N]\n forall i < N\n  D[i] = A[i] * a[]",
    "double": "(N)\n in A: f32[N]\n out D: f32[N]\n forall i < N\n  D[i] = 2 * A[i]",
    "vsub": "(N)\n in A: f32[N]\n in B: f32[N]\n out D: f32[N]\n forall i < N\n  D[i] = A[i] - B[i]",
    "square": "(N)\n in A: f32[N]\n out D: f32[N]\n forall i < N\n  D[i] = A[i] * A[i]",
    "relu": "(N)\n in S: f32[N]\n out D: f32[N]\n forall i < N\n  D[i] = max(S[i], 0)",
    "relu_in_place": "(N)\n inout D: f32[N]\n forall i < N\n  D[i] = max(D[i], 0)",
    "axpy": "(N)\n in a: f32[]\n in x: f32[N]\n inout y: f32[N]\n forall i < N\n  y[i] += a[] * x[i]",
    "fill0": "(N)\n out D: f32[N]\n forall i < N\n  D[i] = 0",
    "fill": "(N)\n in a: f32[]\n out D: f32[N]\n forall i < N\n  D[i] = a[]",
    "copy": "(M, N)\n in S: any[M, N]\n out D: any[M, N]\n forall i < M, j < N\n  D[i, j] = S[i, j]",
    "transpose": "(M, N)\n in S: any[M, N]\n out D: any[N, M]\n forall i < M, j < N\n  D[j, i] = S[i, j]",
    "row_sum": "(M, N)\n in x: f32[M, N]\n inout s: f32[M]\n forall i < M, j < N\n  s[i] += x[i, j]",
    "dot": "(K)\n in a: f32[K]\n in b: f32[K]\n inout s: f32[]\n forall k < K\n  s[] += a[k] * b[k]",
    "fir": "(N, R)\n in x: f32[N + R]\n in w: f32[R]\n inout y: f32[N]\n forall i < N, r < R\n"
           "  y[i] += x[i + r] * w[r]",
    "gemm8": "(M, N, K)\n in A: i8[M, K]\n in B: i8[K, N]\n inout C: i32[M, N]\n forall i < M, j < N, k < K\n"
             "  C[i, j] += i32(A[i, k]) * i32(B[k, j])",
    "lower": "(N)\n in A: f32[N, N]\n inout s: f32[N]\n forall i < N, j < N where j <= i\n  s[i] += A[i, j]",
    "softmax_row": "(N)\n in x: f32[N]\n out y: f32[N]\n m[] = -inf\n s[] = 0\n forall j < N\n"
                   "  m[] max= x[j]\n forall j < N\n  e[j] = exp(x[j] - m[])\n  s[] += e[j]\n forall j < N\n"
                   "  y[j] = e[j] / s[]",
}  # fmt: skip


def _shaped(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(" " * (len(line) - len(line.lstrip(" "))) + line for line in lines) + "\n"


def instruction(name: str):
    """An instruction of the catalogue, parsed."""
    return parse_instruction(f"instruction {name}{_shaped(_I[name])}")


def instruction_names() -> list[str]:
    return list(_I)


def kernel(text: str):
    """A kernel from a compact text: head without the keyword, one space before declarations, two before statements."""
    return parse(f"kernel {_shaped(text)}")


_C = ("(N, C, H, W, K, R, S)\n in x: f32[N, C, {p} * H + {q} * R, {p} * W + {q} * S]\n in w: f32[K, C, R, S]\n"
      " in b: f32[K]\n out y: f32[N, K, H, W]\n forall n < N, k < K, h < H, v < W\n  y[n, k, h, v] = b[k]\n"
      " forall n < N, k < K, h < H, v < W, c < C, r < R, s < S\n"
      "  y[n, k, h, v] += x[n, c, {p} * h + {q} * r, {p} * v + {q} * s] * w[k, c, r, s]\n"
      " forall n < N, k < K, h < H, v < W\n  y[n, k, h, v] = max(y[n, k, h, v], 0)")  # fmt: skip

KERNELS = {
    "matmul": "matmul(M, N, K)\n in A: f32[M, K]\n in B: f32[K, N]\n out C: f32[M, N]\n forall i < M, j < N\n"
              "  C[i, j] = 0\n forall i < M, j < N, k < K\n  C[i, j] += A[i, k] * B[k, j]",
    "square": "square(M)\n in A: f32[M, M]\n inout C: f32[M, M]\n forall i < M, j < M, k < M\n"
              "  C[i, j] += A[i, k] * A[k, j]",
    "mlp": "mlp(M, N, K)\n in A: f32[M, K]\n in B: f32[K, N]\n in b: f32[N]\n out C: f32[M, N]\n"
           " forall p < M, q < N\n  C[p, q] = b[q]\n forall i < M, j < N, k < K\n  C[i, j] += A[i, k] * B[k, j]\n"
           " forall u < M, v < N\n  C[u, v] = max(C[u, v], 0)",
    "conv": "conv" + _C.format(p=1, q=1),
    "conv_strided": "conv" + _C.format(p=2, q=1),
    "pointwise": "pointwise(N, C, H, W, K)\n in x: f32[N, C, H, W]\n in w: f32[K, C]\n in b: f32[K]\n"
                 " out y: f32[N, K, H, W]\n forall n < N, k < K, h < H, v < W\n  y[n, k, h, v] = b[k]\n"
                 " forall n < N, k < K, h < H, v < W, c < C\n  y[n, k, h, v] += x[n, c, h, v] * w[k, c]\n"
                 " forall n < N, k < K, h < H, v < W\n  y[n, k, h, v] = max(y[n, k, h, v], 0)",
    "conv_same": "conv_same(N, C, H, W, K)\n in x: f32[N, H, W, C]\n in w: f32[3, 3, C, K]\n out y: f32[N, H, W, K]\n"
                 " forall n < N, h < H, v < W, k < K\n  y[n, h, v, k] = 0\n"
                 " forall n < N, h < H, v < W, k < K, r < 3, s < 3, c < C where 0 <= h + r - 1, h + r - 1 < H,"
                 " 0 <= v + s - 1, v + s - 1 < W\n  y[n, h, v, k] += x[n, h + r - 1, v + s - 1, c] * w[r, s, c, k]",
    "softmax": "softmax(M, N)\n in x: f32[M, N]\n out y: f32[M, N]\n forall i < M\n  m[i] = -inf\n  s[i] = 0\n"
               " forall i < M, j < N\n  m[i] max= x[i, j]\n forall i < M, j < N\n  e[i, j] = exp(x[i, j] - m[i])\n"
               "  s[i] += e[i, j]\n forall i < M, j < N\n  y[i, j] = e[i, j] / s[i]",
    "row_sums": "row_sums(M, N)\n in x: f32[M, N]\n out s: f32[M]\n forall i < M\n  s[i] = 0\n forall i < M, j < N\n"
                "  s[i] += x[i, j]",
    "cumulate": "cumulate(T, B, N)\n in x: f32[T, B, N]\n inout h: f32[B, N]\n out y: f32[T, B, N]\n loop t < T\n"
                "  forall b < B, n < N\n    h[b, n] = h[b, n] + x[t, b, n]\n    y[t, b, n] = h[b, n]",
    "scaled": "scaled(M, N)\n in x: f32[M, N]\n out y: f32[M, N]\n forall i < M, j < N\n  y[i, j] = x[i, j] * 2",
    "axpys": "axpys(M, N)\n in a: f32[M]\n in x: f32[M, N]\n inout y: f32[N]\n forall i < M, j < N\n"
             "  y[j] += a[i] * x[i, j]",
    "fir2": "fir2(B, N, R)\n in x: f32[B, N + R]\n in w: f32[R]\n inout y: f32[B, N]\n forall b < B, i < N, r < R\n"
            "  y[b, i] += x[b, i + r] * w[r]",
    "lower": "lower(B, N)\n in A: f32[B, N, N]\n inout s: f32[B, N]\n forall b < B, i < N, j < N where j <= i\n"
             "  s[b, i] += A[b, i, j]",
    "gemm8": "gemm8(M, N, K)\n in A: i8[M, K]\n in B: i8[K, N]\n inout C: i32[M, N]\n forall i < M, j < N, k < K\n"
             "  C[i, j] += i32(A[i, k]) * i32(B[k, j])",
}  # fmt: skip


def named(name: str):
    """A kernel of the catalogue, parsed."""
    return kernel(KERNELS[name])
