"""The structural hash: blind to names, not to anything else."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from isam.ir.hashing import structural_hash
from isam.ir.text import parse

TEXT = """kernel k(M, N % 8, K <= 64)
  in A: f32[M, K]
  in B: f32[K, N]
  out C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K where i <= j
    t[i, j, k] = A[i, k] * B[k, j]
    C[i, j] += t[i, j, k]
"""


def rewrite(**words: str) -> str:
    return re.sub(r"\w+", lambda m: words.get(m.group(), m.group()), TEXT)


def test_names_do_not_count():
    other = rewrite(k="p", i="q", j="i", A="left", B="A", C="x1", M="P", N="Q", K="M", t="product")
    assert structural_hash(parse(other)) == structural_hash(parse(TEXT))


def test_operand_order_of_products_does_not_count():
    other = TEXT.replace("A[i, k] * B[k, j]", "B[k, j] * A[i, k]")
    assert structural_hash(parse(other)) == structural_hash(parse(TEXT))


@pytest.mark.parametrize(("old", "new"), [
    ("N % 8", "N % 4"), ("N % 8", "N"), ("K <= 64", "K <= 65"), ("A[i, k] * B", "A[i, k] + B"), ("+= t", "max= t"),
    ("C[i, j] = 0", "C[i, j] = 1"), ("C[i, j] = 0", "C[i, j] = -0.0"), ("where i <= j", "where j <= i"),
    ("where i <= j", ""), ("f32", "f64"), ("out C", "inout C"), ("[M, K]", "[K, M]"),
    ("in A: f32[M, K]\n  in B: f32[K, N]", "in B: f32[K, N]\n  in A: f32[M, K]"), ("out C", "permits exact\n  out C"),
    ("A[i, k]", "A[k, i]"), ("A[i, k] * B[k, j]", "A[i, k] / B[k, j]"), ("in A", "const A"),
])
def test_everything_else_counts(old, new):
    assert old in TEXT
    assert structural_hash(parse(TEXT.replace(old, new))) != structural_hash(parse(TEXT))


def test_quotients_do_not_commute():
    one = TEXT.replace("A[i, k] * B[k, j]", "A[i, k] / B[k, j]")
    assert structural_hash(parse(one)) != structural_hash(parse(one.replace("A[i, k] / B[k, j]", "B[k, j] / A[i, k]")))


def test_the_same_in_another_process():
    code = "import sys; from isam.ir.text import parse; from isam.ir.hashing import structural_hash as h; " \
           "print(h(parse(sys.stdin.read())))"
    out = subprocess.run([sys.executable, "-c", code], input=TEXT, capture_output=True, text=True, check=True,
                         env={"PYTHONHASHSEED": "77", "PYTHONPATH": "."})
    assert out.stdout.strip() == structural_hash(parse(TEXT))
