"""What the mapper must refuse, and the kind of report it gives (MAP-2, MAP-3, MAP-8)."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_instruction
from isam.mapper import Matches, match
from tests.unit.mapper.catalogue import instruction, kernel

REFUSED = {
    "another operation": ("k(N)\n in a: f32[N]\n in b: f32[N]\n out d: f32[N]\n forall i < N\n  d[i] = a[i] - b[i]",
                          "vadd", "operation"),
    "a difference turned round is not a difference": (
        "k(N)\n in a: f32[N]\n out d: f32[N]\n forall i < N\n  d[i] = 1 - a[i]", "vsub", "literal"),
    "another accumulation": ("k(M, N)\n in x: f32[M, N]\n inout s: f32[M]\n forall i < M, j < N\n  s[i] max= x[i, j]",
                             "row_sum", "operation"),
    "overwriting is not accumulating": ("k(N)\n in a: f32[N]\n in x: f32[N]\n out y: f32[N]\n forall i < N\n"
                                        "  y[i] = a[i] * x[i]", "axpy", "escapes"),
    "another number": ("k(N)\n in a: f32[N]\n out d: f32[N]\n forall i < N\n  d[i] = max(a[i], 1)", "relu", "literal"),
    "an array for a number": ("k(N)\n in a: f32[N]\n in b: f32[N]\n out d: f32[N]\n forall i < N\n"
                              "  d[i] = max(a[i], b[i])", "relu", "literal"),
    "a number for an array": ("k(N)\n in a: f32[N]\n out d: f32[N]\n forall i < N\n  d[i] = a[i] + 1", "vadd",
                              "literal"),
    "another dtype": ("k(N)\n in a: f64[N]\n in b: f64[N]\n out d: f64[N]\n forall i < N\n  d[i] = a[i] + b[i]",
                      "vadd", "dtype"),
    "any is one dtype": ("k(M, N)\n in a: i8[M, N]\n out d: i16[M, N]\n forall i < M, j < N\n  d[i, j] = i16(a[i, j])",
                         "copy", "operation"),
    "a diagonal is not a matrix": ("k(N, K)\n in a: f32[N, N]\n in b: f32[N, K]\n inout c: f32[N, K]\n"
                                   " forall i < N, k < K\n  c[i, k] += a[i, i] * b[i, k]", "gemm", "axis-missing"),
    "a diagonal is not a vector": ("k(N)\n in a: f32[N, N]\n in b: f32[N]\n out d: f32[N]\n forall i < N\n"
                                   "  d[i] = a[i, i] + b[i]", "vadd", "extra-dependence"),
    "two axes in one row": ("k(M, N)\n in a: f32[M + N]\n out d: f32[M, N]\n forall i < M, j < N\n  d[i, j] = a[i + j]",
                            "copy", "extra-dependence"),
    "too few axes": ("k(N)\n in a: f32[N]\n out d: f32[N]\n forall i < N\n  d[i] = a[i]", "copy", "axis-missing"),
    "reversal": ("k(N)\n in a: f32[N]\n in b: f32[N]\n out d: f32[N]\n forall i < N\n  d[i] = a[N - 1 - i] + b[i]",
                 "vadd", "coefficient"),
    "a product that is used again": (
        "k(M, N, K)\n in A: f32[M, K]\n in B: f32[K, N]\n inout C: f32[M, N]\n out P: f32[M, N, K]\n"
        " forall i < M, j < N, k < K\n  t[i, j, k] = A[i, k] * B[k, j]\n  C[i, j] += t[i, j, k]\n"
        "  P[i, j, k] = exp(t[i, j, k])", "gemm", "escapes"),
    "a product that the caller sees": (
        "k(M, N, K)\n in A: f32[M, K]\n in B: f32[K, N]\n inout C: f32[M, N]\n out P: f32[M, N, K]\n"
        " forall i < M, j < N, k < K\n  P[i, j, k] = A[i, k] * B[k, j]\n  C[i, j] += P[i, j, k]", "gemm", "escapes"),
    "the same array where it must be": ("k(N)\n in a: f32[N]\n in b: f32[N]\n out d: f32[N]\n forall i < N\n"
                                        "  d[i] = a[i] * b[i]", "square", "aliasing"),
    "a factor that the sum overwrites": (
        "k(M)\n in B: f32[M, M]\n inout C: f32[M, M]\n forall i < M, j < M, k < M\n  C[i, j] += C[i, k] * B[k, j]",
        "gemm", "aliasing"),
    "a factor that the sum overwrites along an outer axis": (
        "k(M, R)\n in z: f32[M, R]\n in a: f32[R]\n inout y: f32[M]\n forall i < M, r < R\n  y[i] += a[r] * y[i]",
        "axpy", "aliasing"),
    "a statement in between": (
        "k(M, N)\n in x: f32[M, N]\n out e: f32[M, N]\n inout s: f32[M]\n forall i < M, j < N\n"
        "  e[i, j] = exp(x[i, j])\n forall i < M, j < N\n  e[i, j] = e[i, j] * 2\n"
        " forall i < M, j < N\n  s[i] += e[i, j]", "exp_sum", "domain"),
    "another order": (
        "k(M, N)\n in x: f32[M, N]\n inout e: f32[M, N]\n inout s: f32[M]\n forall i < M, j < N\n  s[i] += e[i, j]\n"
        " forall i < M, j < N\n  e[i, j] = exp(x[i, j])", "exp_sum", "domain"),
    "a shifted use": (
        "k(M, N)\n in x: f32[M, N + 1]\n inout e: f32[M, N + 1]\n inout s: f32[M]\n forall i < M, j < N\n"
        "  e[i, j] = exp(x[i, j])\n forall i < M, j < N\n  s[i] += e[i, j + 1]", "exp_sum", "domain"),
    "an initialisation over fewer rows": (
        "k(M, N, K)\n in A: f32[M, K]\n in B: f32[K, N]\n inout C: f32[M, N]\n forall i < M - 1, j < N\n  C[i, j] = 0\n"
        " forall i < M, j < N, k < K\n  C[i, j] += A[i, k] * B[k, j]", "gemm0", "domain"),
    "a condition on one statement only": (
        "k(M, N, K)\n in A: f32[M, K]\n in B: f32[K, N]\n inout C: f32[M, N]\n forall i < M, j < N\n  C[i, j] = 0\n"
        " forall i < M, j < N, k < K where i <= j\n  C[i, j] += A[i, k] * B[k, j]", "gemm0", "domain"),
    "the instruction's condition": ("k(N)\n in A: f32[N, N]\n inout s: f32[N]\n forall i < N, j < N\n  s[i] += A[i, j]",
                                    "lower", "domain"),
    "another condition": ("k(N)\n in A: f32[N, N]\n inout s: f32[N]\n forall i < N, j < N where j + 1 <= i\n"
                          "  s[i] += A[i, j]", "lower", "domain"),
    "an accumulator left half done": ("k(M, N, R)\n in x: f32[M, N, R]\n out s: f32[M]\n forall i < M\n  s[i] = 0\n"
                                      " forall i < M, j < N, r < R\n  s[i] += x[i, j, r]", "sum0", "domain"),
}  # fmt: skip

SUM0 = ("instruction sum0(M, N)\n  in x: f32[M, N]\n  out s: f32[M]\n  forall i < M\n    s[i] = 0\n"
        "  forall i < M, j < N\n    s[i] += x[i, j]\n")  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str):
    text, name, kind = REFUSED[case]
    i = parse_instruction(SUM0) if name == "sum0" else instruction(name)
    report = match(kernel(text), i)
    assert not isinstance(report, Matches), str(list(report))
    assert kind is None or report.kind == kind, str(report)
    assert report.instruction == i.name
    assert report.need
    assert report.have
    assert report.kernel_loc.line > 0
    assert report.instruction_loc.line > 0


def test_a_recurrent_body_is_not_joined_with_what_is_outside():
    k = kernel("k(T, M, N, K)\n in A: f32[T, M, K]\n in B: f32[K, N]\n out C: f32[M, N]\n forall i < M, j < N\n"
               "  C[i, j] = 0\n loop t < T\n  forall i < M, j < N, k < K\n"
               "    C[i, j] += A[t, i, k] * B[k, j]")  # fmt: skip
    assert len(match(k, instruction("gemm"))) == 2
    assert not match(k, instruction("gemm0"))
