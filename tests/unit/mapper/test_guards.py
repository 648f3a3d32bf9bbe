"""Conditions of a kernel on axes that one call takes whole: what they leave is a box that begins at the first step."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_instruction
from isam.mapper import Matches, match
from tests.blocks import initial, run_kernel, run_mapped, visible
from tests.unit.mapper.catalogue import kernel

SCALED = ("instruction scaled(M, N)\n  in A: f32[M, N]\n  out D: f32[M, N]\n  forall i < M, j < N\n"
          "    D[i, j] = A[i, j] * A[i, 0]\n")  # fmt: skip
TURNED = ("instruction turned(N)\n  in A: f32[N, N]\n  out D: f32[N, N]\n  forall i < N, j < N\n"
          "    D[i, j] = A[i, j] * A[j, i]\n")  # fmt: skip
LAST = ("instruction last(M, N)\n  in A: f32[M, N]\n  out D: f32[M, N]\n  forall i < M, j < N\n"
        "    D[i, j] = A[i, N - 1 - j]\n")  # fmt: skip


def masked(value: str, where: str):
    text = f"k()\n in A: f32[4, 4]\n inout D: f32[4, 4]\n forall i < 4, j < 4 {where}\n  D[i, j] = {value}"
    return kernel(text)


@pytest.mark.parametrize("where", ["where j <= i", "where i + j <= 4", "where j <= 2", "where j <= i, i + j <= 4"])
def test_what_is_left_of_a_whole_axis_is_one_smaller_call(where: str):
    k = masked("A[i, j] * A[i, 0]", where)
    found = match(k, parse_instruction(SCALED))
    assert isinstance(found, Matches), str(found)
    for m in found:
        assert (m.whole, len(m.guards)) == (("j",), where.count("<="))
        want, got = run_kernel(k, initial(k, 3)), run_mapped(k, m, initial(k, 3), 3)
        assert visible(k, m, got) == visible(k, m, want)


@pytest.mark.parametrize(("value", "text", "where"), [
    ("A[i, j] * A[j, i]", TURNED, "where j <= i"),  # no box
    ("A[i, j] * A[i, 0]", SCALED, "where i <= j"),  # A[i, 0] would be another element
    ("A[i, 3 - j]", LAST, "where j <= i"),  # N - 1 would be another number
])  # fmt: skip
def test_a_call_that_would_be_something_else_is_refused(value: str, text: str, where: str):
    instruction = parse_instruction(text)
    assert match(masked(value, ""), instruction)
    report = match(masked(value, where), instruction)
    assert not isinstance(report, Matches)
    assert (report.kind, report.about("relation")) == ("domain", "guard")


def test_a_condition_on_an_axis_that_calls_may_cut_is_a_guard():
    """Of an axis of open length: of others it is where they begin (``isam.ir.normal_ends``)."""
    k = kernel("k(N)\n in A: f32[N, 4]\n inout D: f32[N, 4]\n"
               " forall i < N, j < 4 where 1 <= i\n  D[i, j] = A[i, j] * A[i, 0]")  # fmt: skip
    (m,) = match(k, parse_instruction(SCALED))
    assert (m.whole, [str(g) for g in m.guards]) == (("j",), ["i - 1"])


TRIANGLE = ("instruction triangle(N)\n  in A: f32[N, N]\n  inout s: f32[N]\n  forall i < N, j < N where i + j < N\n"
            "    s[i] += A[i, j]\n")  # fmt: skip


@pytest.mark.parametrize(("columns", "where", "fits"), [
    ("P", "i + j < P", True), ("P", "i + j < P - 1", False), ("P", "j <= i", False), ("P", "2 * i + j < P", False),
    ("Q", "i + j < P", False), ("Q", "i + j < Q", False),
])  # fmt: skip
def test_a_size_in_a_condition_of_the_instruction_is_one_number(columns: str, where: str, fits: bool):
    k = kernel(f"k(P, Q)\n in A: f32[P, {columns}]\n inout s: f32[P]\n in z: f32[Q]\n forall i < P, j < {columns}"
               f" where {where}\n  s[i] += A[i, j]")  # fmt: skip
    found = match(k, parse_instruction(TRIANGLE))
    assert bool(found) == fits, str(found)
    if fits:
        assert [(m.whole, m.guards) for m in found] == [(("i", "j"), ())]


PAIR = ("instruction pair(M, N)\n  in A: f32[M, N]\n  in B: f32[M, N]\n  out D: f32[M, N]\n  out E: f32[M, N]\n"
        "  forall i < M, j < N\n    D[i, j] = exp(A[i, j])\n"
        "  forall i < M, j < N\n    E[i, j] = tanh(B[i, j])\n")  # fmt: skip


@pytest.mark.parametrize(("first", "second", "guards"), [
    ("", "", 0), ("where j <= i", "where j <= i", 1), ("where j <= i", "", None), ("", "where j <= i", None),
    ("where j <= i", "where i <= j", 1),  # the second one turned round
    ("where j <= i, i <= 2", "where j <= i, i <= 2", 2),
    ("where j <= i, i <= 2", "where j <= i", None), ("where j <= i", "where j <= i, i <= 2", None),
])  # fmt: skip
def test_one_domain_for_what_is_seen(first: str, second: str, guards: int | None):
    k = kernel("k()\n in x: f32[4, 4]\n in w: f32[4, 4]\n inout y: f32[4, 4]\n inout z: f32[4, 4]\n"
               f" forall i < 4, j < 4 {first}\n  y[i, j] = exp(x[i, j])\n"
               f" forall i < 4, j < 4 {second}\n  z[i, j] = tanh(w[i, j])")  # fmt: skip
    found = match(k, parse_instruction(PAIR), normalise=False)
    assert bool(found) == (guards is not None), str(found)
    for m in found or ():
        assert len(m.guards) == guards


@pytest.mark.parametrize(("first", "second"), [("", "where j <= i"), ("where j <= i", "where j <= i"), ("", "")])
def test_a_temporary_may_be_made_where_it_is_not_needed(first: str, second: str):
    k = kernel("k()\n in x: f32[4, 4]\n inout s: f32[4]\n"
               f" forall i < 4, j < 4 {first}\n  t[i, j] = exp(x[i, j])\n"
               f" forall i < 4, j < 4 {second}\n  s[i] += t[i, j]")  # fmt: skip
    i = parse_instruction("instruction i(M, N)\n  in A: f32[M, N]\n  inout S: f32[M]\n  forall i < M, j < N\n"
                          "    t[i, j] = exp(A[i, j])\n    S[i] += t[i, j]\n")  # fmt: skip
    found = match(k, i, normalise=False)
    assert [len(m.guards) for m in found or ()] == [1 if second else 0], str(found)


@pytest.mark.parametrize("limit", ["", " <= 4", " <= 8", " <= 3"])
def test_a_condition_on_a_whole_axis_with_a_limit(limit: str):
    text = SCALED.replace("(M, N)", f"(M, N{limit})")
    assert bool(match(masked("A[i, j] * A[i, 0]", "where j <= i"), parse_instruction(text))) == (limit != " <= 3")
