"""One fault, one diagnostic: what follows from it is not told, what is independent of it is."""

from __future__ import annotations

import pytest

from isam.diagnostics import IsamError
from isam.ir.text import parse_file
from isam.ir.verify import verify

TEXT = """kernel matmul(M, N, K)
  in  A: f32[M, K]
  in  B: f32[K, N]
  out C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""
PAIR = """kernel k(N)
  in x: f32[N]
  out z: f32[N]
  forall i < N
    t[i] = x[i]
    z[i] = t[i]
"""


LOOP = """kernel k(T, N)
  in    x: f32[T, N]
  inout h: f32[N]
  out   y: f32[T, N]
  loop t < T
    forall i < N
      h[i] = 3 * h[i]
    forall i < N
      h[i] += x[t, i]
      y[t, i] = h[i]
    forall i < N
      h[i] = 2 * h[i]
"""


def told(text: str) -> list[str]:
    try:
        return [d.code for k in parse_file(text).kernels for d in verify(k)]
    except IsamError as e:
        return [f"{d.loc.line} {d.code}" for d in e.diagnostics]


def edited(*edits: tuple[str, str], text: str = TEXT) -> str:
    for old, new in edits:
        assert text.count(old) >= 1, old
        text = text.replace(old, new, 1)
    return text


SINGLE = {
    "head": (edited(("K)\n", "K:\n")), "1 L106"), "shape": (edited(("[M, K]", "[M, K")), "2 L106"),
    "index": (edited(("A[i, k]", "A[i, k")), "8 L106"), "result": (edited(("C[i, j] = 0", "C[i, j = 0")), "6 L106"),
    "value": (edited(("x[i]", "(x[i]"), text=PAIR), "5 L106"), "last": (edited(("x[i]", "x[i"), text=PAIR), "5 L106"),
    "element": (edited(("t[i] =", "t[i ="), text=PAIR), "5 L106"), "sign": (edited(("k] *", "k] @")), "8 L102"),
    "signs": (edited(("k] *", "k] @$")), "8 L102"), "closed twice": (edited(("k] *", "k]] *")), "8 L105"),
    "bound": (edited(("j < N, k", "j < N[, k")), "7 L106"),
    "dtype": (edited(("A: f32", "A: f33")), "2 L134"), "of a result": (edited(("C: f32", "C: f33")), "4 L134"),
    "before a temporary": (edited(("x: f32", "x: f33"), text=PAIR), "2 L134"),
    "before a cast": (edited(("x: f32", "x: f33"), ("= t[i]", "= f32(t[i])"), text=PAIR), "2 L134"),
    "into a cast": (edited(("z: f32", "z: f33"), ("= t[i]", "= f32(t[i])"), text=PAIR), "3 L134"),
    "tab": (edited(("  in  B", "\tin  B")), "3 L104"),
    "tab below": (edited(("    C[i, j] =", "\tC[i, j] =")), "6 L104"),
    "tab of a block": (edited(("  forall", "\tforall")), "5 L104"),
    "tabs": (edited(("  forall", "\tforall"), ("    C", "\t\tC")), "5 L104"),
    "tabs everywhere": (TEXT.replace("    C", "\t\tC").replace("\n  ", "\n\t"), "2 L104"),
    "tabs that fit nowhere": (edited(("  in  A", "   \t in  A"), ("    C[i, j] +", "\tC[i, j] +")), "2 L104"),
    "size": (edited(("N, K)", "K)")), "3 L202"), "axis": (edited((", k < K", "")), "8 L202"),
    "statement not indented": (edited(("    C[i, j] = 0", "  C[i, j] = 0")), "5 L121"),
    "statement at the left": (edited(("    C[i, j] = 0", "C[i, j] = 0")), "6 L120"),
    "bracket not opened": (edited(("A[i, k]", "Ai, k]")), "8 L105"),
    "shape not opened": (edited(("[M, K]", " M, K]")), "2 L105"), "braces": (edited(("A[i, k]", "A{i, k}")), "8 L102"),
    "declaration too far right": (edited(("  in  B", "   in  B")), "3 L126"),
    "forall too far left": (edited(("h[i]\n    forall", "h[i]\n  forall"), text=LOOP), "8 L124"),
    "statement too far left": (edited(("    z[i]", "  z[i]"), text=PAIR), "6 L202"),
    "loop too far right": (edited(("  loop", "    loop"), text=LOOP), "5 L126"),
    "nothing indented": ("\n".join(line.strip() for line in TEXT.split("\n")), "2 L120"),
}  # fmt: skip


@pytest.mark.parametrize("which", SINGLE)
def test_one_fault_is_told_once(which):
    text, said = SINGLE[which]
    assert told(text) == [said]


BREAKS = {  # before and after which the line breaks: the line in which that is said
    "in|  A": 2, "A|: f": 2, "A:| f": 2, "f32|[M": 2, "kernel| m": 1, "matmul|(": 1,
    "forall| i": 5, "i |< M": 5, "i <| M": 5,
    "M|, j": 5, "C[i, j]| = 0": 6, "C[i, j] =| 0": 6, "] |* B": 8, "] *| B": 8, "A|[i, k] *": 8, "N|, k <": 7,
}  # fmt: skip


@pytest.mark.parametrize("indent", ["", "   ", "      "])
@pytest.mark.parametrize("where", BREAKS)
def test_a_stray_line_break_is_told_once(where, indent):
    """Where it is, and nothing of the rest of the line, which is read."""
    text = edited((where.replace("|", ""), where.replace("|", "\n" + indent)))
    with pytest.raises(IsamError) as e:
        parse_file(text)
    assert [(d.code, d.loc.line) for d in e.value.diagnostics] == [("L107", BREAKS[where])]
    (only,) = e.value.diagnostics
    assert only.loc.column == len(text.split("\n")[only.loc.line - 1].rstrip()) + 1
    assert only.hint == "join the two lines: one goes on only inside brackets and after a comma"


def test_a_line_that_is_not_finished_does_not_take_the_next_statement():
    half = edited(("    C[i, j] += A[i, k] * B[k, j]", "    C[i, j] +=\n    C[i, j] += A[i, q]"))
    assert told(half) == ["8 L116", "9 L202"]
    assert told(edited(("  forall", "  // zero\n  forall"))) == ["5 L135"]


@pytest.mark.parametrize(("written", "says"), [
    ("A[i, k] >> 2", "there are no shifts: whole numbers divide towards zero, x / 4"),
    ("A[i, k] << 2", "there are no shifts: write x * 4"),
    ("A[i, :]", "there are no slices: each dimension has an index, and the block says over which axes it goes"),
    ("A[i, k] > * 2", "a binary operator needs a value on both sides"),
    ("A[i, k] *", "a binary operator needs a value on both sides"),
])  # fmt: skip
def test_where_a_value_lacks_it_is_said_what_is_written_instead(written, says):
    with pytest.raises(IsamError) as e:
        parse_file(edited(("A[i, k] * B[k, j]", written)))
    assert [(d.code, d.hint) for d in e.value.diagnostics if d.code == "L116"] == [("L116", says)]


@pytest.mark.parametrize(("edits", "said"), [
    ([("A: f32", "A: f33"), ("B[k, j]", "B[k, q]")], ["2 L134", "8 L202"]),
    ([("A: f32", "A: f33"), ("A[i, k]", "(A[i, k]")], ["2 L134", "8 L106"]),
    ([("A: f32", "A: f33"), ("B: f32", "B: f33")], ["2 L134", "3 L134"]),
    ([("C: f32", "C: i32"), ("A: f32", "A: f33")], ["2 L134", "8 L310"]),
    ([("[M, K]", "[M, K"), ("= 0", "= (0")], ["2 L106", "6 L106"]),
    ([("A: f32[M, K]", "A: f33[M, K")], ["2 L134", "2 L106"]),
    ([("C[i, j] += A[i, k]", "C[i, q] += A[i, k")], ["8 L202", "8 L106"]),
    ([("  in  B", "\tin  B"), ("B[k, j]", "B[k, q]")], ["3 L104", "8 L202"]),
    ([("  in  A", "   \t in  A"), ("    C[i, j] +", "\tC[i, j] +"), ("B: f32", "B: f33")], ["2 L104", "3 L134"]),
    ([("j < N\n    C[i, j] = 0", "q < N\n    C[i, j] = 0"), (", k < K", "")], ["6 L202", "8 L202"]),
    ([("    C[i, j] = 0", "C[i, j] = 0"), ("[K, N]", "[K, Q]")], ["3 L202", "6 L120"]),
    ([("] * B", "] *\nB"), ("[K, N]", "[K, Q]")], ["3 L202", "8 L107"]),
    ([("] * B", "] *\nB"), ("A:", "A\n:"), ("= 0", "\n= 0")], ["2 L107", "7 L107", "10 L107"]),
])  # fmt: skip
def test_two_faults_are_both_told(edits, said):
    assert told(edited(*edits)) == said


def test_a_bracket_alone_in_its_line_is_one_fault():
    """Nothing is left of the line; it was an internal error."""
    assert told(edited(("  out C", "  )\n  out C"), ("B[k, j]", "B[k, q]"))) == ["4 L105", "9 L202"]


def test_heads_and_values_go_on_in_the_next_line():
    assert told(edited(("K)\n", "K,\n   by=2)\n"), ("A[i, k] *", "(A[i, k]\n       *"), ("k, j]\n", "k, j])\n"))) == []
