"""Which sizes count a batch, and what is said of the others; that they do, tests/property/test_batches.py shows."""

from __future__ import annotations

import pytest

from isam.ir.batch import not_a_batch, rows_of
from isam.ir.text import parse_kernel

PRODUCT = """kernel product(M, N, K)
  in    A: f32[M, K]
  const B: f32[K, N]
  out   C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""


def said(text: str, size: str = "M") -> list[str]:
    return [d.message for d in not_a_batch(parse_kernel(text), size)]


def test_rows_of_a_product() -> None:
    kernel = parse_kernel(PRODUCT)
    assert not_a_batch(kernel, "M") == []
    assert rows_of(kernel, "M") == {"A", "C"}
    assert said(PRODUCT, "K")[0] == "rows of 'A' do not lie together: K is its dimension 1, counted from 0"
    assert any("'C' is written and has no K rows" in s for s in said(PRODUCT, "K"))
    (_, hint) = ((d.message, d.hint) for d in not_a_batch(kernel, "N")).__next__()
    assert hint == "declare it as f32[N, ...]"


@pytest.mark.parametrize(("statement", "says"), [
    ("forall i < M\n    Y[i] = x[M - 1 - i]", "x[M - i - 1] is no row of the batch alone"),
    ("forall i < M - 1\n    Y[i] = x[i + 1]", "'forall i < M - 1' is no walk over M rows"),
    ("forall i < M\n    Y[i] = x[0]", "x[0] is no row of the batch alone"),
    ("forall j < 1\n    Y[j] = x[j]", "Y[j] is the same row for all"),
    ("forall i < M, j < M\n    Y[i] max= x[j]", "'forall i < M, j < M' is no walk over M rows"),
    ("forall i < M\n    Y[i] = 0\n  forall i < M where i < M - 1\n    Y[i] = x[i]", "a condition depends on the row"),
    ("forall i < M\n    Y[i] = 0\n  forall i < M where i < 3\n    Y[i] = x[i]", "a condition depends on the row"),
    ("forall i < M, j < 4\n    Y[i] = 0\n  forall i < M, j < 4 where j < M\n    Y[i] max= x[i]", "a condition depends"),
    ("forall i < M\n    Y[i] = x[i] + c[M - 1]", "c[M - 1] depends on which row it is"),
    ("s = 0\n  forall i < M\n    s += x[i]\n  forall i < M\n    Y[i] = s", "s[] brings rows together"),
    ("forall i < M\n    Y[i] = x[i] + c[i]", "c[i] depends on which row it is"),
])  # fmt: skip
def test_what_does_more_with_a_row_is_told(statement: str, says: str) -> None:
    text = f"kernel f(1 <= M <= 9)\n  in x: f32[M]\n  in c: f32[9]\n  out Y: f32[M]\n  {statement}\n"
    assert any(says in s for s in said(text)), said(text)


def test_shapes_that_have_more_to_do_with_it() -> None:
    text = "kernel f(M)\n  in x: f32[M + 1]\n  out Y: f32[M]\n  forall i < M\n    Y[i] = x[i]\n"
    assert said(text)[0] == "'x' has the shape [M + 1], which has more to do with M than so many rows"
    square = "kernel f(M)\n  in x: f32[M, M]\n  out Y: f32[M]\n  forall i < M\n    Y[i] = x[i, i]\n"
    assert "[M, M]" in said(square)[0]


def test_a_written_argument_without_rows_is_refused_a_temporary_is_not() -> None:
    text = """kernel f(M)
  in x: f32[M]
  {} s: f32[4]
  out Y: f32[M]
  forall j < 4
    s[j] = 1
  forall i < M
    Y[i] = x[i] + s[2]
"""
    assert said(text.format("out")) == ["'s' is written and has no M rows: each call would write all of it"]
    assert said(text.format("temp")) == []


SOME = "kernel f({})\n  in x: f32[M]\n  inout s: f32[4]\n  out Y: f32[M]\n  forall i < M\n    Y[i] = x[i]\n"


def test_what_is_updated_in_place_needs_rows_too() -> None:
    text = SOME.format("M") + "  forall j < 4\n    s[j] += 1\n"
    assert said(text) == ["'s' is written and has no M rows: each call would write all of it"]


def test_sizes_that_follow_are_no_rows() -> None:
    text = SOME.format("M, Q = M // 2").replace("inout s: f32[4]", "in s: f32[4]")
    assert said(text) == ["the size Q follows from M"]


def test_steps_of_a_recurrent_loop_follow_each_other() -> None:
    text = """kernel f(M, N)
  in x: f32[M, N]
  out Y: f32[M, N]
  temp h: f32[N]
  forall j < N
    h[j] = 0
  loop t < M
    forall j < N
      h[j] += x[t, j]
    forall j < N
      Y[t, j] = h[j]
"""
    loop = "the steps of 'loop t' follow each other, M of them"
    assert said(text) == [loop]
    fixed = text.replace("Y[t, j] = h[j]", "Y[t, j] = h[j] + x[0, j]").replace("kernel f(M, N)", "kernel f(1 <= M, N)")
    assert [s for s in said(fixed) if s != loop] == ["x[0, j] is the same row for all"]
