"""Statements of one call that touch the same array: what one call must take whole, what it may not do at all."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_instruction
from isam.mapper import Matches, match
from tests.blocks import initial, run_kernel, run_mapped, visible
from tests.unit.mapper.catalogue import instruction, kernel
from tests.unit.mapper.test_sizes import TWO

HEAD = "(M, N)\n  in A: f32[M, N]\n  in B: f32[M, N]\n  inout D: f32[M]\n  inout E: f32[M, N]\n"
WHOLE = {  # two statements over i and j; the axes that one call takes whole
    "D[i] += A[i, j]; D[i] += B[i, j]": "",
    "D[i] += A[i, j]; D[i] max= B[i, j]": "j",
    "D[i] max= A[i, j]; D[i] max= B[i, j]": "",
    "D[i] += A[i, j]; E[i, j] = A[i, j] * D[i]": "j",
    "E[i, j] = A[i, j] * D[i]; D[i] += B[i, j]": "j",
    "E[i, j] = A[i, j] * B[i, j]; D[i] += E[i, j]": "",
    "E[i, j] = A[i, j] * B[i, 0]; D[i] += E[i, j]": "",
    "D[i] += A[i, j]; E[i, j] = D[i]": "j",
    "D[i] += A[i, j]; E[i, j] += D[i]": "j",
    "E[i, j] += D[i]; D[i] += B[i, j]": "j",
    "D[i] += A[i, j]; E[i, j] max= D[i]": "j",
    "E[i, j] max= D[i]; D[i] += B[i, j]": "j",
}


@pytest.mark.parametrize("outer", ["", "b"])
@pytest.mark.parametrize("text", WHOLE)
def test_what_one_call_takes_whole(text: str, outer: str):
    one, two = text.split("; ")
    body = "".join(f"  forall i < M, j < N\n    {s}\n" for s in (one, two))
    used = [b for b in "ABDE" if f"{b}[" in body]
    own = "".join(f"{x}\n" for x in HEAD.split("\n") if not x.startswith("  ") or x.split(":")[0][-1] in used)
    i = parse_instruction(f"instruction i{own.rstrip()}\n{body}")
    wide = body.replace("[i", f"[{outer}, i") if outer else body
    buffers = own.replace("(M, N)", "").replace("f32[M", "f32[3, M" if outer else "f32[M").strip("\n")
    k = kernel(f"k()\n{buffers}\n{wide}".replace("forall ", "forall b < 3, " if outer else "forall ").replace("  ", " ")
               .replace("   ", "  ").replace("M", "4").replace("N", "5").rstrip())  # fmt: skip
    found = [m for m in match(k, i) or () if not outer or m.outer == ("b",)]
    assert found, str(match(k, i))
    for m in found:
        assert m.whole == tuple(WHOLE[text]), str(m)
        want, got = run_kernel(k, initial(k, 1)), run_mapped(k, m, initial(k, 1), 1)
        assert visible(k, m, got) == visible(k, m, want)


def pairs(*statements: str):
    names = sorted({c for s in statements for c in s if c in "uvwxyz"})
    return kernel("k()\n" + "\n".join(f" inout {n}: f32[6]" for n in names)
                  + "".join(f"\n forall i < 6\n  {s}" for s in statements))  # fmt: skip


@pytest.mark.parametrize(("statements", "fits"), [
    (("y[i] = exp(x[i])", "z[i] = tanh(w[i])"), True),
    (("z[i] = tanh(w[i])", "y[i] = exp(x[i])"), True),
    (("y[i] = exp(x[i])", "z[i] = tanh(y[i])"), False),  # written as D before it is read as B
    (("z[i] = tanh(w[i])", "y[i] = exp(z[i])"), False),  # written as E before it is read as A
    (("z[i] = tanh(y[i])", "y[i] = exp(x[i])"), True),
    (("y[i] = exp(z[i])", "z[i] = tanh(w[i])"), True),
    (("y[i] = exp(x[i])", "y[i] = tanh(w[i])"), False),  # both write it
    (("y[i] = exp(x[i])", "z[i] = tanh(x[i])"), True),
    (("y[i] = exp(y[i])", "z[i] = tanh(w[i])"), True),
    (("y[i] = exp(x[i])", "x[i] = v[i] * 2", "z[i] = tanh(w[i])"), True),
    (("y[i] = exp(x[i])", "w[i] = y[i] * 2", "z[i] = tanh(w[i])"), False),  # needs one and feeds the other
    (("y[i] = exp(x[i])", "v[i] = y[i] * 2", "w[i] = v[i] * 2", "z[i] = tanh(w[i])"), False),
    (("y[i] = exp(x[i])", "x[i] = v[i] * 2", "w[i] = x[i] * 2", "z[i] = tanh(w[i])"), False),
    (("y[i] = exp(x[i])", "v[i] = w[i] * 2", "w[i] = u[i] * 2", "z[i] = tanh(w[i])"), True),
    (("y[i] = exp(x[i])", "v[i] = y[i] * 2", "u[i] = w[i] * 2", "z[i] = tanh(w[i])"), True),
])  # fmt: skip
def test_two_statements_that_are_one_call(statements: tuple[str, ...], fits: bool):
    k = pairs(*statements)
    found = match(k, parse_instruction(TWO))
    assert bool(found) == fits, str(found)
    for m in found or ():
        want, got = run_kernel(k, initial(k, 1)), run_mapped(k, m, initial(k, 1), 1)
        assert visible(k, m, got) == visible(k, m, want)


def test_sums_into_one_array_stand_in_any_order():
    i = parse_instruction("instruction i(N)\n  in A: f32[N]\n  inout D: f32[N]\n  forall i < N\n    D[i] += A[i]\n"
                          "  forall i < N\n    D[i] += 1\n")  # fmt: skip
    for one, two in (("y[i] += x[i]", "y[i] += 1"), ("y[i] += 1", "y[i] += x[i]")):
        assert match(pairs(one, two), i)


def test_different_points_have_different_results():
    """Rows of two axes each tell nothing: that an assignment writes no element twice does."""
    k = kernel("k()\n inout y: f32[8]\n forall i < 4, j < 2\n  y[2 * i + j] = max(y[2 * i + j], 0)")
    found = match(k, instruction("relu_in_place"))
    assert [(m.axis_map, m.outer, m.whole) for m in found or ()] == [({"i": "j"}, ("i",), ())]


def test_rows_that_others_decide():
    i = parse_instruction("instruction i(M, N)\n  in A: f32[M, N]\n  inout D: f32[M]\n  out E: f32[M]\n"
                          "  forall i < M, j < N\n    D[i] += A[i, j]\n  forall i < M\n"
                          "    E[i] = exp(D[i])\n")  # fmt: skip
    for row in ("p + q, q", "q, p + q", "p, q"):
        k = kernel("k()\n in x: f32[3, 2, 4, 5]\n inout y: f32[5, 5, 4]\n out z: f32[3, 2, 4]\n"
                   f" forall p < 3, q < 2, i < 4, j < 5\n  y[{row}, i] += x[p, q, i, j]\n"
                   f" forall p < 3, q < 2, i < 4\n  z[p, q, i] = exp(y[{row}, i])")  # fmt: skip
        found = match(k, i)
        assert (("p", "q"), ("j",)) in [(m.outer, m.whole) for m in found or ()], str(found)


@pytest.mark.parametrize("column", ["j + 1", "j"])
def test_a_sum_does_not_read_what_it_writes(column: str):
    k = kernel(f"k()\n inout y: f32[4, 6]\n forall i < 4, j < 5\n  y[i, 0] += y[i, {column}]")
    assert not isinstance(match(k, instruction("row_sum"), normalise=False), Matches)


def test_a_size_that_only_a_condition_names_is_unknown():
    i = parse_instruction("instruction i(N, M)\n  in A: f32[N]\n  inout D: f32[N]\n  forall i < N where i < M\n"
                          "    D[i] = exp(A[i])\n")  # fmt: skip
    k = kernel("k(N, M)\n in x: f32[N]\n inout y: f32[N]\n forall i < N where i < M\n  y[i] = exp(x[i])")
    report = match(k, i)
    assert not isinstance(report, Matches)
    assert report.kind == "extent"


@pytest.mark.parametrize(("one", "two", "fits"), [
    ("t + 1", "t", True), ("t", "t + 2", True), ("1", "0", True), ("t + 1", "i", False), ("2*t", "t", False),
])  # fmt: skip
def test_other_rows_of_one_array_do_not_meddle(one: str, two: str, fits: bool):
    """Where they are others in every iteration of the loop around; its counter stands still in each."""
    k = kernel(f"k()\n inout y: f32[9, 9]\n loop t < 4\n  forall i < 4\n   y[{one}, i + 1] = exp(y[{two}, i])")
    i = parse_instruction("instruction exp(N)\n in x: f32[N]\n out d: f32[N]\n forall i < N\n  d[i] = exp(x[i])")
    assert bool(match(k, i)) == fits
