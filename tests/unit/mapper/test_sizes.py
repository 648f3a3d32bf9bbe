"""Sizes that an instruction computes with, and axes that its statements have in common: one number each."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_instruction
from isam.mapper import Matches, match
from tests.unit.mapper.catalogue import instruction, kernel

TWO = ("instruction two(N)\n  in A: f32[N]\n  in B: f32[N]\n  out D: f32[N]\n  out E: f32[N]\n  forall i < N\n"
       "    D[i] = exp(A[i])\n  forall i < N\n    E[i] = tanh(B[i])\n")  # fmt: skip
HALVES = ("instruction halves(N)\n  in A: f32[2 * N]\n  out D: f32[2 * N]\n  forall i < 2 * N\n"
          "    D[i] = A[i] * A[N]\n")  # fmt: skip
LESS = "instruction less(N)\n  in A: f32[N]\n  out D: f32[N]\n  forall i < N - 1\n    D[i] = A[i] * A[N - 1]\n"
LATER = ("instruction later(N, M)\n  in A: f32[N, M]\n  in B: f32[M]\n  out D: f32[N]\n  out E: f32[M]\n"
         "  forall i < N\n    D[i] = exp(A[i, M - 1])\n  forall j < M\n    E[j] = tanh(B[j])\n")  # fmt: skip


@pytest.mark.parametrize(("first", "second", "fits"), [("N", "N", True), ("N", "M", False), ("4", "4", True),
                                                       ("4", "5", False), ("N", "N + 1", False)])  # fmt: skip
def test_an_axis_of_two_statements_has_one_extent(first: str, second: str, fits: bool):
    k = kernel(f"k(N, M)\n in x: f32[{first}]\n in w: f32[{second}]\n out y: f32[{first}]\n out z: f32[{second}]\n"
               f" forall a < {first}\n  y[a] = exp(x[a])\n forall b < {second}\n  z[b] = tanh(w[b])")  # fmt: skip
    assert bool(match(k, parse_instruction(TWO))) == fits


@pytest.mark.parametrize("at", ["P", "2 * P"])
def test_a_size_that_no_axis_gives_is_unknown(at: str):
    k = kernel(f"k(P)\n in x: f32[2 * P + 1]\n out y: f32[2 * P]\n forall i < 2 * P\n  y[i] = x[i] * x[{at}]")
    report = match(k, parse_instruction(HALVES))
    assert not isinstance(report, Matches)
    assert report.kind == "extent"


def test_a_size_is_more_than_the_axis_by_what_the_instruction_says():
    k = kernel("k()\n in x: f32[5]\n out y: f32[5]\n forall i < 4\n  y[i] = x[i] * x[4]")
    (m, *_) = match(k, parse_instruction(LESS))
    assert [str(r) for r in m.operand("A").index] == ["i"]
    other = kernel("k()\n in x: f32[5]\n out y: f32[5]\n forall i < 4\n  y[i] = x[i] * x[3]")
    assert not match(other, parse_instruction(LESS))


def test_a_size_that_only_a_later_statement_gives_is_not_known_in_time():
    """Where the first one begins would be told in sizes of the instruction."""
    k = kernel("k(P, Q)\n in x: f32[P, Q]\n in w: f32[Q]\n out y: f32[P]\n out z: f32[Q]\n forall i < P\n"
               "  y[i] = exp(x[i, Q - 1])\n forall j < Q\n  z[j] = tanh(w[j])")  # fmt: skip
    report = match(k, parse_instruction(LATER))
    assert not isinstance(report, Matches), str(list(report))
    assert report.kind == "extent"


@pytest.mark.parametrize("axes", ["i < N, r < R", "r < R, i < N"])
@pytest.mark.parametrize("row", ["i + r", "r + i"])
def test_the_order_of_axes_is_nothing(axes: str, row: str):
    k = kernel("f(N, R)\n in x: f32[N + R]\n in w: f32[R]\n inout y: f32[N]\n"
               f" forall {axes}\n  y[i] += x[{row}] * w[r]")  # fmt: skip
    for strided in (False, True):
        (m,) = match(k, instruction("fir"), strided=strided)
        assert m.axis_map == {"i": "i", "r": "r"}
