"""Where each axis of a statement stands alone in some index, points write elements of their own: isl would say so."""

from __future__ import annotations

import pytest

from isam.ir.kernel import Statement, recurrences
from isam.ir.poly_domain import domain_set
from isam.ir.relation import Region, Rel
from isam.ir.text import parse
from isam.proof.execution import told_apart

TEXT = """kernel k(N, M=8)
  in  x: f32[N, M]
  out y: f32[{shape}]
  temp t: f32[{shape}]
  forall i < N, j < M
    t[{index}] = x[i, j]
  forall {over}
    y[{same}] = t[{same}]
"""
IN_LOOP = """kernel k(N, M=8)
  inout y: f32[N, M + N]
  loop k < N
    forall j < M
      y[{row}, {column}] = 1.0
"""


def apart(s: Statement) -> tuple[bool, bool]:
    over = Region.of(domain_set(s.domain, ()))
    return told_apart(s), Rel.affine(s.domain.names, s.dest.index, over).is_injective()


@pytest.mark.parametrize(("shape", "index", "plain", "true"), [
    ("N, M", "i, j", True, True), ("M, N", "j, i", True, True), ("N + 1, 2 * M", "i + 1, 2 * j + 1", True, True),
    ("N, N", "N - 1 - i, 0", False, False), ("N + 7", "i + j", False, False), ("8 * N", "8 * i + j", False, True),
    ("N, N + 7", "i, i + j", False, True), ("M, N, M", "j, i, j", True, True), ("N", "i", False, False),
    ("M + N, M + N", "i + j, i + j", False, False),
])  # fmt: skip
def test_what_is_told_apart_is_apart(shape, index, plain, true):
    zeros = ", ".join("0" for _ in shape.split(","))
    text = TEXT.format(shape=shape, index=index, over="a < N", same=zeros)
    assert apart(parse(text).statements[0]) == (plain, true)


@pytest.mark.parametrize(("row", "column", "plain"), [("0", "j", True), ("k", "j + k", True), ("k", "k", False)])
def test_counters_of_loops_around_are_no_axes(row, column, plain):
    (s,) = next(recurrences(parse(IN_LOOP.format(row=row, column=column)).body)).body
    assert isinstance(s, Statement)
    assert apart(s) == (plain, plain)
