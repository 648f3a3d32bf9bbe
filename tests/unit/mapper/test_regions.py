"""Regions of several statements: what may be cut, what one call takes whole, what is joined to what (MAP-3, IR-5)."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_instruction, parse_kernel
from isam.mapper import Matches, count, match
from isam.proof.checker import refusals
from isam.proof.mapped import certify, of_mapping
from tests.blocks import initial, run_kernel, run_mapped, visible
from tests.unit.mapper.catalogue import _shaped, instruction, kernel

SIZES = {"M": 3, "N": 3, "K": 2, "R": 2, "C": 2, "H": 3, "Q": 2}


def new(text: str):
    return parse_instruction(f"instruction {_shaped(text)}")


def sound(k, i, **options) -> Matches:
    """The matches, each carried out block by block."""
    k = k.with_sizes(SIZES)
    found = match(k, i, normalise=False, **options)
    assert isinstance(found, Matches), str(found)
    want = run_kernel(k, initial(k, 3))
    for n, m in enumerate(found):
        assert visible(k, m, run_mapped(k, m, initial(k, 3), n)) == visible(k, m, want), str(m)
    return found


def refused(k, i) -> str:
    found = match(k.with_sizes(SIZES), i, normalise=False)
    assert not isinstance(found, Matches), str(list(found))
    return found.kind


DIFF = new("diff(N)\n in x: f32[N + 1]\n out d: f32[N]\n forall i < N\n  d[i] = x[i + 1] - x[i]")


@pytest.mark.parametrize(("offset", "step"), [(0, 1), (4, 1), (1, 2)])
def test_an_operand_begins_where_its_first_element_lies(offset: int, step: int):
    text = "k(N)\n in x: f32[2 * N + 9]\n out d: f32[N]\n forall i < N\n  d[i] = x[{a}] - x[{b}]"
    a, b = (f"{step} * i + {offset + n}" for n in (step, 0))
    m = sound(kernel(text.format(a=a, b=b)), DIFF, strided=step > 1).first
    assert [r.const for r in m.operand("x").index] == [offset]
    assert m.operand("x").steps == (step,)


@pytest.mark.parametrize("second", ["x[i + 2]", "x[i]", "x[i - 1]", "z[i + 1]", "x[2 * i + 1]"])
def test_elements_of_one_operand_keep_their_distance(second: str):
    k = kernel("k(N)\n in x: f32[3 * N + 9]\n in z: f32[3 * N + 9]\n out d: f32[N]\n forall i < N\n"
               f"  d[i] = {second.replace('i', 'i + 2', 1)} - x[i + 2]")  # fmt: skip
    if second == "x[i]":
        k = kernel("k(N)\n in x: f32[N + 9]\n out d: f32[N]\n forall i < N\n  d[i] = x[i] - x[i + 1]")
    refused(k, DIFF)


TRANSPOSED = new("tsum(N)\n in x: f32[N, N]\n inout s: f32[N]\n forall i < N, j < N\n  t[i, j] = exp(x[i, j])\n"
                 " forall i < N, j < N\n  s[i] += t[j, i]")  # fmt: skip
STRAIGHT = new("sum(N)\n in x: f32[N, N]\n inout s: f32[N]\n forall i < N, j < N\n  t[i, j] = exp(x[i, j])\n"
               "  s[i] += t[i, j]")  # fmt: skip
SUMS = ("k(N)\n in x: f32[N, N]\n inout s: f32[N]\n forall i < N, j < N\n  t[i, j] = exp(x[i, j])\n"
        " forall i < N, j < N\n  s[i] += t[{}]")  # fmt: skip


def test_a_temporary_may_be_used_transposed_if_the_instruction_does():
    sound(kernel(SUMS.format("i, j")), STRAIGHT)
    found = sound(kernel(SUMS.format("j, i")), TRANSPOSED)
    assert found.first.whole == ("i", "j")
    turned = sound(kernel(SUMS.format("i, j")), TRANSPOSED).first  # x transposed, and all in one call
    assert (turned.operand("x").dims, turned.whole) == ((1, 0), ("i", "j"))


def test_an_output_used_transposed_is_taken_whole():
    i = new("both(N <= 4)\n in x: f32[N, N]\n out e: f32[N, N]\n inout s: f32[N]\n forall i < N, j < N\n"
            "  e[i, j] = exp(x[i, j])\n forall i < N, j < N\n  s[i] += e[j, i]")  # fmt: skip
    k = kernel("k(N)\n in x: f32[N, N]\n out e: f32[N, N]\n inout s: f32[N]\n forall i < N, j < N\n"
               "  e[i, j] = exp(x[i, j])\n forall i < N, j < N\n  s[i] += e[j, i]")  # fmt: skip
    assert sound(k, i).first.whole == ("i", "j")
    assert match(k.with_sizes({"N": 5}), i).kind == "extent"


def test_two_indices_in_one_row_are_told_apart_by_their_coefficients():
    text = ("k(N)\n in x: f32[N, N]\n out e: f32[4 * N]\n inout s: f32[N]\n forall i < 3, j < 3\n"
            "  e[3 * i + j] = exp(x[i, j])\n forall i < 3, j < 3\n  s[i] += e[{}]")  # fmt: skip
    i = new("pair(N)\n in x: f32[N, N]\n inout s: f32[N]\n forall i < N, j < N\n  t[i, j] = exp(x[i, j])\n"
            "  s[i] += t[i, j]")  # fmt: skip
    inner = text.replace(" out e: f32[4 * N]\n", "").replace("e[", "t[")
    assert sound(kernel(inner.format("3 * i + j")), i).first.axis_map == {"i": "i", "j": "j"}
    assert sound(kernel(inner.format("i + 3 * j")), i).first.axis_map == {"i": "j", "j": "i"}


def test_statements_that_nothing_joins_are_paired_by_extent_and_never_repeated():
    i = new("two(N)\n in x: f32[N]\n in y: f32[N]\n out d: f32[N]\n inout s: f32[N]\n forall i < N\n"
            "  d[i] = exp(x[i])\n forall i < N\n  s[i] += y[i]")  # fmt: skip
    text = ("k(N, M)\n in x: f32[N]\n in y: f32[{n}]\n out d: f32[N]\n inout s: f32[N]\n forall p < N\n"
            "  d[p] = exp(x[p])\n forall {f}\n  s[q] += y[{q}]")  # fmt: skip
    assert len(sound(kernel(text.format(n="N", f="q < N", q="q")), i)) == 1
    assert refused(kernel(text.format(n="N, M", f="q < N, m < M", q="q, m")), i) == "domain"


def test_casts_of_narrow_operands_are_recomputed_freely():
    k = kernel("k(C, H, K, R)\n in x: i8[C, H + R]\n in w: i8[K, C, R]\n inout y: i32[K, H]\n"
               " forall k < K, h < H, c < C, r < R\n  y[k, h] += i32(x[c, h + r]) * i32(w[k, c, r])")  # fmt: skip
    found = sound(k, instruction("gemm8"))
    assert {m.whole for m in found} == {()}
    assert {(m.axis_map["i"], m.axis_map["j"], m.axis_map["k"]) for m in found} == {
        ("h", "k", "c"), ("k", "h", "c")}  # fmt: skip


def test_any_is_one_type_for_a_whole_call():
    i = new("pair(N)\n in a: any[N]\n in b: any[N]\n out c: any[N]\n out d: any[N]\n forall i < N\n  c[i] = a[i]\n"
            "  d[i] = b[i]")  # fmt: skip
    text = ("k(N)\n in a: f32[N]\n in b: {t}[N]\n out c: f32[N]\n out d: {t}[N]\n forall i < N\n  c[i] = a[i]\n"
            "  d[i] = b[i]")  # fmt: skip
    assert len(sound(kernel(text.format(t="f32")), i)) == 2
    assert refused(kernel(text.format(t="i8")), i) == "dtype"


def test_unrelated_statements_in_between_do_not_matter():
    k = kernel("k(M, N)\n in x: f32[M, N]\n in z: f32[M, N]\n out e: f32[M, N]\n out u: f32[M, N]\n inout s: f32[M]\n"
               " forall i < M, j < N\n  e[i, j] = exp(x[i, j])\n forall i < M, j < N\n  u[i, j] = exp(z[i, j])\n"
               " forall i < M, j < N\n  s[i] += e[i, j]\n"
               " forall i < M, j < N\n  u[i, j] = u[i, j] + e[i, j]")  # fmt: skip
    assert [m.statements for m in sound(k, instruction("exp_sum"))] == [(0, 2)]


def test_an_instruction_with_a_recurrent_loop_is_an_honest_no():
    i = new("scan(T, N)\n in x: f32[T, N]\n inout h: f32[N]\n loop t < T\n  forall i < N\n    h[i] = h[i] + x[t, i]"
            .replace("    h[i]", "   h[i]"))  # fmt: skip
    assert not match(kernel("k(N)\n in x: f32[N]\n out y: f32[N]\n forall i < N\n  y[i] = x[i]"), i)


def test_an_empty_or_endless_instruction_is_an_honest_no():
    one = kernel("k(N)\n in x: f32[N]\n out y: f32[N]\n forall i < N\n  y[i] = x[i]")
    empty = new("e(N)\n in x: f32[N]\n out y: f32[N]\n forall i < 0\n  y[i] = x[i]")
    assert not match(one, empty)
    many = new("m(N)\n in x: f32[N]\n inout y: f32[N]\n forall i < N" + "\n  y[i] = y[i] + x[i]" * 400)
    long = kernel("k(N)\n in x: f32[N]\n inout y: f32[N]\n forall i < N" + "\n  y[i] = y[i] + x[i]" * 400)
    assert match(long, many).kind == "budget"
    assert match(long, new("m(N)\n in x: f32[N]\n inout y: f32[N]\n forall i < N" + "\n  y[i] = y[i] + x[i]" * 40))


def test_sizes_that_the_instruction_computes_with_make_an_axis_whole():
    i = new("turn(N <= 8)\n in x: f32[N]\n out y: f32[N]\n forall i < N\n  y[i] = exp(x[N - 1 - i])")
    k = kernel("k(M, N)\n in x: f32[M, N]\n out y: f32[M, N]\n forall m < M, n < N\n  y[m, n] = exp(x[m, N - 1 - n])")
    found = match(k.with_sizes(SIZES), i)
    assert isinstance(found, Matches)
    assert (found.first.whole, found.first.axis_map) == (("i",), {"i": "n"})
    assert [str(r) for r in found.first.operand("x").index] == ["m", "-n"]
    assert match(k.with_sizes({"M": 2, "N": 9}), i).kind == "extent"
    assert not match(kernel("k(N)\n in x: f32[N + 1]\n out y: f32[N]\n forall n < N\n  y[n] = exp(x[n])"), i)


SYMMETRIC = """kernel s()
  in  x: f32[8, 8]
  out y: f32[8, 8]
  forall i < 8, j < 8
    y[i, j] = x[i, j] * x[j, i]
"""


@pytest.mark.parametrize(("head", "n"), [("s(M <= 4)", "M"), ("s()", "4")])
def test_an_operand_read_in_two_ways_is_one_block(head: str, n: str):
    """A finding of random pairs: the block of x at (4, 0) is not that at (0, 4), and a call gets one of them."""
    body = f"  in A: f32[{n}, {n}]\n  out D: f32[{n}, {n}]\n"
    body += f"  forall i < {n}, j < {n}\n    D[i, j] = A[i, j] * A[j, i]\n"
    text, symmetric = f"instruction {head}\n{body}", parse_kernel(SYMMETRIC)
    found = match(symmetric, parse_instruction(text))
    assert not found
    assert found.kind == "extent"
    free = sound(symmetric, parse_instruction(text.replace("M <= 4", "M").replace("4", "8")))
    assert {m.whole for m in free} == {("i", "j")}


@pytest.mark.parametrize("first", [True, False])
def test_what_is_read_after_a_sum_is_not_read_before_it(first: bool):
    """The instruction hands on what it has summed; a kernel that copies first hands on what was there before."""
    total, handed = "  forall i < N, j < M\n    s[i] += x[i, j]\n", "  forall i < N\n    y[i] = s[i]\n"
    head = "  in    x: f32[N, M]\n  inout s: f32[N]\n  out   y: f32[N]\n"
    i = parse_instruction(f"instruction sum_out(N, M)\n{head}{total}{handed}")
    k = parse_kernel(f"kernel k(N, M)\n{head}{total + handed if first else handed + total}").with_sizes(SIZES)
    if first:
        assert {m.whole for m in sound(k, i)} == {("j",)}
    else:
        assert match(k, i).kind == "domain"


def negated(*lengths: str) -> str:
    """One statement per length, on buffers of its own."""
    own = [(f"a{n}", f"d{n}", x) for n, x in enumerate(lengths)]
    lines = [f"  in {a}: f32[{x}]\n  out {d}: f32[{x}]\n" for a, d, x in own]
    return "".join([*lines, *(f"  forall i < {x}\n    {d}[i] = -{a}[i]\n" for a, d, x in own)])


@pytest.mark.parametrize(("lengths", "holds"), [
    (["5"], None), (["5", "4", "1"], [[]]), (["5", "4", "2"], None), (["T + 2", "T", "2"], [["T % 4 == 0"]]),
    (["T + U", "T", "U"], [["T % 4 == 0"], ["U % 4 == 0"]]), (["T", "T", "U"], None)])  # fmt: skip
def test_an_axis_of_two_sizes_together_needs_axes_that_say_what_they_are(lengths, holds):
    """How much of it each size is would be anyone's choice; where other axes say it, one call takes all of it."""
    i = parse_instruction(f"instruction n(M % 4, N)\n{negated(*['M + N', 'M', 'N'][: len(lengths)])}")
    syms = ", ".join(s for s in "TU" if s in "".join(lengths))
    k = parse_kernel(f"kernel k({syms})\n{negated(*lengths)}")
    found = match(k, i)
    if holds is None:
        assert found.kind == "extent"
    else:
        assert [certify(of_mapping(m, k))["holds"] for m in found] == holds


def over(*ends: str, where: str = "") -> str:
    axes = list(zip("ijk", ends, strict=False))
    of, index = ", ".join(ends), ", ".join(a for a, _ in axes)
    loops = ", ".join(f"{a} < {n}" for a, n in axes)
    return f"  in x: f32[{ends[1]}]\n  inout y: f32[{of}]\n  forall {loops}{where}\n    y[{index}] = -x[j]\n"


@pytest.mark.parametrize(("own", "ends", "where", "whole"), [
    ("M, M + 1", "2, 3", "", "ij"), ("M + 1, M", "3, 2", "", "ij"), ("M, M + 1", "1, 2", "", ""),
    ("M, M + 1", "4, 6", "", ""), ("M, M + 1", "4, 5", "", None), ("M, M + 1", "T, 3", "", None),
    ("M, M + 1", "T, T + 1", "", ""), ("M, M + 1, 2*M", "2, 3, 4", "", "ijk"), ("M, M + 1, 2*M", "2, 3, 2", "", None),
    ("M, M + 1, 2*M", "2, 3, 5", "", None), ("M, M + 1, N", "2, 3, 8", "", "ij"), ("L, L + 1", "2, 3", "", "ij"),
    ("L, L + 1", "2, 3", " where i <= 0", None), ("M, M + 1", "2, 3", " where j <= i", None)])  # fmt: skip
def test_axes_of_one_size_are_taken_at_once_where_the_least_calls_do_not_fit(own, ends, where, whole):
    """Random pair 901898: two and three steps are one call of size 2; four and five would be one of 4."""
    i = parse_instruction(f"instruction v(M <= 3, N <= 4, L)\n{over(*own.split(', '))}")
    k = parse_kernel(f"kernel k({'T' if 'T' in ends else ''})\n{over(*ends.split(', '), where=where)}")
    found = match(k, i)
    if whole is None:
        assert found.kind in ("extent", "domain")
    else:
        (m,) = found
        assert (set(m.whole), refusals(certify(of_mapping(m, k)))) == (set(whole), [])
        if "T" not in ends:
            assert {x.whole for x in sound(k, i)} == {m.whole}


def test_limits_of_axes_that_share_a_name_are_told_apart():
    """Two statements walk an i each; exchanged, one of them would get the other's limit: no symmetry."""
    body = "  in a: f32[M]\n  in b: f32[N]\n  out d: f32[M]\n  out e: f32[N]\n"
    body += "  forall i < M\n    d[i] = -a[i]\n  forall i < N\n    e[i] = -b[i]\n"
    two = parse_instruction(f"instruction two(M <= 4, N <= 8)\n{body}")
    found = match(parse_kernel(f"kernel k(M, N)\n{body}").with_sizes({"M": 3, "N": 3}), two)
    assert len(found) == len(list(found.orbits())) == 2


def test_axes_of_an_instruction_may_be_named_differently_in_each_statement():
    body = "  in  A: f32[M, K]\n  in  B: f32[K, N]\n  out C: f32[M, N]\n"
    body += "  forall {0} < M, {1} < N\n    C[{0}, {1}] = 0\n"
    body += "  forall i < M, j < N, k < K\n    C[i, j] += A[i, k] * B[k, j]\n"
    k = parse_kernel(f"kernel mm(M, N, K)\n{body.format('i', 'j')}").with_sizes(SIZES)
    same = match(k, parse_instruction(f"instruction mm(M, N, K)\n{body.format('i', 'j')}"))
    other = match(k, parse_instruction(f"instruction mm(M, N, K)\n{body.format('p', 'q')}"))
    assert [len(m.axes) for m in other] == [len(m.axes) for m in same] == [3] * len(same)
    assert {m.outer for m in other} == {()}


def test_a_count_looks_at_no_extents():
    text = "instruction s(M <= 4)\n  in A: f32[M, M]\n  out D: f32[M, M]\n"
    text += "  forall i < M, j < M\n    D[i, j] = A[i, j] * A[j, i]\n"
    free = text.replace("M <= 4", "M")
    assert [count(parse_kernel(SYMMETRIC), parse_instruction(t)) for t in (text, free)] == [4, 4]


def test_operands_of_other_roles_are_not_exchanged_by_a_symmetry():
    body = "  in    a: f32[N]\n  const b: f32[N]\n  out   d: f32[N]\n  forall i < N\n    d[i] = a[i] + b[i]\n"
    found = match(parse_kernel(f"kernel k(N)\n{body}"), parse_instruction(f"instruction add(N)\n{body}"))
    assert len(found) == len(list(found.orbits())) == 2
    both = body.replace("const", "in   ")
    alike = match(parse_kernel(f"kernel k(N)\n{body}"), parse_instruction(f"instruction add(N)\n{both}"))
    assert (len(alike), len(list(alike.orbits()))) == (2, 1)


def test_a_temporary_of_the_instruction_plays_no_operand_as_well():
    """A finding of random pairs: what a call keeps to itself it cannot be given."""
    body = "  forall i < N\n    t[i] = -A[i]\n  forall i < N, j < N\n"
    body += "    u[i, j] = t[i] * {0}[j]\n    C[i, j] += u[i, j]\n"
    head = "  in    A: f32[N]\n{0}  inout C: f32[N, N]\n"
    i = parse_instruction(f"instruction f(N)\n{head.format('  in    B: f32[N]' + chr(10))}{body.format('B')}")
    k = parse_kernel(f"kernel k(N)\n{head.format('')}{body.format('t')}").with_sizes(SIZES)
    found = match(k, i)
    assert not found
    assert found.kind == "escapes"
    assert "t, which plays another part" in str(found)
