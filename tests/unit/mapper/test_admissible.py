"""At which sizes calls carry out a mapping, against trying every block and every size."""

from __future__ import annotations

from itertools import combinations, product
from math import gcd, lcm

import pytest

from isam.ir.affine import Affine
from isam.ir.condition import Condition
from isam.ir.kernel import Sym
from isam.ir.mismatch import Mismatch
from isam.ir.span import Span
from isam.ir.text import parse_instruction, parse_kernel
from isam.mapper import match
from isam.mapper.admissible import LONGEST, PERIOD, TRIED, Values, _periodic, condition, possible
from isam.proof.calls import lacking
from isam.proof.carried import Part

T, U, N = Affine.of("T"), Affine.of("U"), range(-2, 150)
SPANS = [
    Span(least, None if most is None else least + most * step, step)
    for least, step, most in product((0, 1, 2, 3, 4, 7, 8), (1, 2, 3, 4, 8), (None, 0, 1, 2, 5))
] + [Span(60, 90), Span(70, 90), Span(64, 68, 4), Span(100, None), Span(2, 70), Span(24, 40, 16), Span(0, 200, 100),
     Span(66, None, 3), Span(8, 4)]  # fmt: skip


def carried(n: int, blocks: list[int], block: int) -> bool:
    """Whether calls of one block, and one of what is left, carry out ``n``."""
    return n <= 0 or n % block == 0 or n % block in blocks


@pytest.mark.parametrize("whole", [False, True])
def test_a_condition_holds_where_calls_carry_it_out(whole: bool):
    for span in SPANS:
        blocks = [n for n in range(N.stop) if span.admits(n)]
        c = condition(span, T, whole)
        holds = [n for n in N if c.admits(n)]
        if whole:
            assert holds == [n for n in N if max(n, 0) in blocks], span
            continue
        some = [b for b in blocks if b]
        any_block = [n for n in N if n <= 0 or any(carried(n, blocks, b) for b in some)]
        assert set(holds) <= set(any_block), span
        assert set(holds) >= {n for n in N if n <= 0}, span
        if span.most is None:
            assert set(holds) >= set(blocks), span
        elif some and some[-1] <= LONGEST:
            assert set(holds) >= {n for n in N if carried(n, blocks, some[-1])}, span
            if lcm(*some) <= PERIOD:
                assert holds == any_block, span
        if span.step == 1 and span.most is None:
            assert holds == any_block, span


@pytest.mark.parametrize(("span", "said"), [
    (Span(8, None, 8), "T % 8 == 0"), (Span(0, None, 8), "T % 8 == 0"), (Span(8, 8), "T % 8 == 0"),
    (Span(8, 80, 8), "T % 8 == 0"), (Span(70, 90), "T % 70 == 0"), (Span(0, 0), "T == 0"),
    (Span(24, 40, 16), "T % 120 in {0, 24, 40, 48, 64, 72, 80, 96, 104}"),
])  # fmt: skip
def test_a_condition_says_no_more_than_need_be(span: Span, said: str):
    assert str(condition(span, T, False)) == said


def test_remainders_are_told_by_the_least_number():
    for step in range(1, 9):
        for bits in range(2**step):
            rests = {r for r in range(step) if bits >> r & 1}
            held = [n % step in rests for n in range(2 * step)]
            periods = [d for d in range(1, step + 1) if step % d == 0 and held[d:] + held[:d] == held]
            assert _periodic(step, rests) == (periods[0], tuple(r for r in range(periods[0]) if held[r]))


ENDS = [Sym("T", lo, hi, by) for lo, hi, by in product((0, 1, 5), (None, 9, 30), (1, 4))]


@pytest.mark.parametrize("extent", [T, T * 2 + 3, T - 7, 16 - T, T * -3 + 20], ids=str)
def test_values_of_one_size(extent: Affine):
    for s in ENDS:
        values = [extent.evaluate({"T": n}) for n in range(s.lo, (s.hi or 120) + 1) if n % s.multiple_of == 0]
        v = Values.of(extent, [s])
        end = 60 if s.hi is None else 200
        assert {n for n in range(end) if n in v} == {max(n, 0) for n in values if n < end}, s
        assert v.zero == (min(values) < 0 or (s.hi is None and extent.coefficient("T") < 0)), s
        assert v.low >= 0
        assert v.high is None or v.high == max(values), s


@pytest.mark.parametrize("extent", [T + U, T * 4 + U * 6 + 1, T - U, T * 2 - U * 4 + 1, 16 - T - U], ids=str)
def test_values_of_two_sizes_are_among_those_said(extent: Affine):
    for s, t in product(ENDS[::5], [Sym("U"), Sym("U", 2, 11), Sym("U", 3, 8, 3)]):
        both = product(*[[n for n in range(x.lo, (40 if x.hi is None else x.hi) + 1) if n % x.multiple_of == 0]
                         for x in (s, t)])  # fmt: skip
        values = sorted({extent.evaluate({"T": a, "U": b}) for a, b in both})
        v = Values.of(extent, [s, t])
        ends = [c > 0 for x, (_, c) in zip((s, t), extent.terms, strict=True) if x.hi is None]
        below, above = False in ends, True in ends
        by = 0
        for n in values:
            by = gcd(by, n - values[0])
        assert all(max(n, 0) in v for n in values)
        assert by % v.by == 0
        assert v.by == by or any(x.hi is not None and x.hi - x.lo < 2 * x.multiple_of for x in (s, t))
        assert v.high == (None if above else values[-1])
        assert v.zero == (below or values[0] < 0)
        assert v.low == (values[0] % v.by if v.zero else values[0])


def test_a_size_that_is_not_said_is_any():
    assert Values.of(T + 3, []) == Values(3, None, 1, False)


FEW = [Condition(T, least, most, step, (rest,), some) for least, most in ((0, None), (5, 9), (30, None), (0, 3))
       for step, rest in ((1, 0), (4, 1), (6, 0), (9, 5)) for some in ((), (2,))]  # fmt: skip


@pytest.mark.parametrize("v", [Values(0, None, 1, False), Values(1, None, 2, True), Values(6, 21, 3, False)], ids=str)
def test_two_conditions_hold_together_where_a_value_satisfies_both(v: Values):
    values = [n for n in range(120) if n in v]
    for both in combinations(FEW, 2):
        assert possible(both, v) == any(all(c.admits(n) for c in both) for n in values), both


def test_what_is_not_tried_counts_as_possible():
    long = [Condition(T, step=401, rests=(1,)), Condition(T, step=409, rests=(2,))]
    every = Values(3, None, 1, False)
    assert possible([*long, Condition(T, step=3)], every)
    assert possible([*long, Condition(T, 3, TRIED + 2, 3)], every)
    assert not possible([*long, Condition(T, 3, 9)], every)
    assert not possible([Condition(T, 0, 3 * TRIED, 2)], Values(1, None, 2, False))


# through a whole match -----------------------------------------------------------------------------------------------

ROWS = ("  in A: f32[{0}, {1}]\n  in B: f32[{1}]\n  inout D: f32[{0}, {1}]\n  forall i < {0}, j < {1} {2}\n"
        "    D[i, j] = A[i, j] * B[j]\n")  # fmt: skip
SUMS = ("  in A: f32[{0}, {1}]\n  out D: f32[{0}]\n  forall i < {0}\n    D[i] = 0\n  forall i < {0}, j < {1} {2}\n"
        "    D[i] += A[i, j]\n")  # fmt: skip
SCALED = ROWS.replace("B[j]", "A[i, 0]")
TWO = ("  in A: f32[{0}]\n  in B: f32[{0}, {1}]\n  out D: f32[{0}]\n  inout E: f32[{0}, {1}]\n  forall i < {0}\n"
       "    D[i] = exp(A[i])\n  forall i < {0}, j < {1} {2}\n    E[i, j] = tanh(B[i, j])\n")  # fmt: skip
MADE = ("  in A: f32[{0}]\n  in B: f32[{0}, {1}]\n  inout D: f32[{0}, {1}]\n  forall i < {0}\n    t[i] = exp(A[i])\n"
        "  forall i < {0}, j < {1} {2}\n    D[i, j] = t[i] * B[i, j]\n")  # fmt: skip


def found(body: str, head: str, size: tuple[str, str], has: tuple[str, str], where: str = "") -> list[str] | Mismatch:
    """The conditions of the only mapping; or the report. The checker says that calls carry it out."""
    names = ", ".join(sorted({n for n in has if n.isalpha()}))
    k = parse_kernel(f"kernel k({names})\n{body.format(*has, where)}")
    m = match(k, parse_instruction(f"instruction own({head})\n{body.format(*size, '')}"))
    if isinstance(m, Mismatch):
        return m
    assert list(lacking(k, m.first, Part(k, m.first, 0))) == []
    return [str(c) for c in m.first.conditions]


@pytest.mark.parametrize("domain", [(0, None, 1), (0, 12, 1), (3, 11, 4), (5, None, 5), (1, 2, 1)], ids=str)
def test_axes_of_one_size_are_cut_alike(domain: tuple[int, int | None, int]):
    """What fits is made of the least call that takes something of both axes, or is one call."""
    lo, hi, by = domain
    head = f"{lo} <= N" + (f" % {by}" if by > 1 else "") + (f" <= {hi}" if hi is not None else "")
    values = [n for n in range(lo, (40 if hi is None else hi) + 1) if n % by == 0]
    for size in (("N", "N"), ("N + 1", "N"), ("N", "N + 2"), ("2 * N", "N"), ("2 * N - 5", "3 * N")):
        ends = [[eval(x, {"N": n}) for x in size] for n in values]
        least = next((e for e in ends if min(e) >= 1), None)
        told = ["T == 0", "K == 0"] if least is None else [
            f"{x} % {e} == 0" for x, e in zip("TK", least, strict=True) if e > 1]  # fmt: skip
        assert found(ROWS, head, size, ("T", "K")) == told
        for has in ((12, 15), (9, 8)):
            cut = least is not None and all(n % e == 0 for n, e in zip(has, least, strict=True))
            fits = cut or list(has) in ends
            got = found(ROWS, head, size, (str(has[0]), str(has[1])))
            assert (got == []) == fits, (size, has)
            if least is None:
                assert isinstance(got, Mismatch)
                assert got.need == "exactly 0 along i in every call"


def test_axes_of_one_size_that_are_taken_whole_have_its_limit():
    total = "  in A: f32[{0}, {1}]\n  out D: f32\n  D = 0\n  forall i < {0}, j < {1}\n    D += A[i, j]\n"
    assert found(total, "N <= 8", ("N", "N"), ("T", "T")) == ["T <= 8"]


def test_axes_of_two_sizes_are_not():
    for body, told in ((ROWS, "K % 6 == 0"), (TWO, "K == 6")):
        assert found(body, "M == 4, N == 6", ("M", "N"), ("T", "K")) == ["T % 4 == 0", told]
        assert found(body, "", ("4", "6"), ("T", "K")) == ["T % 4 == 0", told]


@pytest.mark.parametrize(("body", "head", "has", "told"), [
    (SUMS, "M == 3, N == 8", ("T", "K"), ["T % 3 == 0", "K == 8"]),
    (SUMS, "M == 4, N == 8", ("T", "T"), ["T % 4 == 0", "T == 8"]),
    (SUMS, "M == 3, N == 8", ("T", "T"), None),  # no multiple of 3
    (SUMS, "M, 1 <= N", ("T", "K"), ["K >= 1"]),
    (SUMS, "M, N", ("T", "K"), []),
    (SUMS, "M, N <= 8", ("T", "K"), ["K <= 8"]),
    (ROWS, "M, 1 <= N <= 8", ("T", "K"), []),
    (ROWS, "M, 70 <= N <= 90", ("T", "150"), []),  # 75 and 75: of numbers all blocks are tried
])  # fmt: skip
def test_conditions_of_both_axes(body: str, head: str, has: tuple[str, str], told: list[str] | None):
    got = found(body, head, ("M", "N"), has)
    assert got == told if told is not None else isinstance(got, Mismatch)


@pytest.mark.parametrize(("body", "head", "size", "fits"), [
    (ROWS, "M, N", ("M", "N"), True), (ROWS, "M, 1 <= N <= 8", ("M", "N"), True), (ROWS, "M, N", ("M", "2 * N"), False),
    (ROWS, "M, N == 4", ("M", "N"), False), (ROWS, "N", ("N", "N"), True), (ROWS, "N", ("N", "N + 1"), False),
    (SCALED, "M, N", ("M", "N"), True), (SCALED, "M, N <= 8", ("M", "N"), True), (MADE, "M, N == 4", ("M", "N"), False),
    (SCALED, "M, 1 <= N", ("M", "N"), False), (SCALED, "M, 1 <= N <= 4", ("M", "N"), False),
])  # fmt: skip
def test_a_guard_leaves_any_number(body: str, head: str, size: tuple[str, str], fits: bool):
    got = found(body, head, size, ("4", "4"), "where j <= i")
    assert (got == []) == fits
    if isinstance(got, Mismatch):
        assert (got.kind, got.about("relation"), got.about("instruction_axis")) == ("domain", "guard", "j")
        assert got.have == "a condition on axis j, which leaves any number of its steps"
        assert got.need == {"M, N == 4": "exactly 4", "M, N": "a multiple of 2", "N": "a multiple of 2"}.get(
            head, "at least 1") + " along j in every call"  # fmt: skip
        assert got.instruction_loc.line == got.kernel_loc.line == (8 if body == MADE else 6)


CUT, WHOLE = "along j in every call", "along j, all in one call"


@pytest.mark.parametrize(("body", "head", "size", "has", "need", "number", "padded"), [
    (ROWS, "M, N == 8", ("M", "N"), ("4", "12"), f"exactly 8 {CUT}", 8, 16),
    (TWO, "M, N == 8", ("M", "N"), ("4", "12"), f"exactly 8 {WHOLE}", 8, None),
    (ROWS, "M, N <= 64 % 8", ("M", "N"), ("4", "12"), f"a multiple of 8 and at most 64 {CUT}", 8, 16),
    (ROWS, "M, 12 <= N <= 13", ("M", "N"), ("4", "11"), f"at least 12 and at most 13 {CUT}", 1, 12),
    (ROWS, "4 <= N <= 6", ("N", "N"), ("4", "5"), f"a multiple of 4 {CUT}", 4, 8),
    (SUMS, "M, N <= 8", ("M", "N"), ("4", "12"), f"at most 8 {WHOLE}", 8, None),
    (SUMS, "M, N <= 16 % 8", ("M", "N"), ("4", "12"), f"a multiple of 8 and at most 16 {WHOLE}", 16, 16),
    (SUMS, "M, N % 8", ("M", "N"), ("4", "12"), f"a multiple of 8 {WHOLE}", None, 16),
])  # fmt: skip
def test_what_a_refusal_says(
    body: str, head: str, size: tuple[str, str], has: tuple[str, str], need: str, number: int | None, padded: int | None
):
    got = found(body, head, size, has)
    assert isinstance(got, Mismatch)
    told = f" (padding would make them {padded})" if padded else ""
    assert (got.kind, got.have, got.need) == ("extent", f"{has[1]} steps of axis j{told}", need)
    about = [got.about(x) for x in ("instruction_axis", "axis", "need", "have", "padded")]
    assert about == ["j", "j", number, int(has[1]), padded]
    assert got.instruction_loc.line == got.kernel_loc.line == {ROWS: 6, SUMS: 7, TWO: 9}[body]


def test_a_refusal_at_open_sizes_says_so():
    got = found(SUMS, "M == 3, N == 8", ("M", "N"), ("T", "T"))
    assert isinstance(got, Mismatch)
    assert (got.kind, got.need) == ("extent", f"exactly 8 {WHOLE}")
    assert got.have == "T steps of axis j, never so many at the sizes that it admits"
    assert got.instruction_loc.line == got.kernel_loc.line == 7
