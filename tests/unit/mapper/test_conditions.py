"""Sizes left open that calls do not carry out at every value: the condition that a mapping carries, where needed."""

from __future__ import annotations

import pytest

from isam.ir.mismatch import Mismatch
from isam.ir.text import parse_instruction, parse_kernel
from isam.mapper import match

EACH = "  in A: f32[N]\n  out D: f32[N]\n  forall i < N\n    D[i] = A[i] * 2\n"
SUM = "  in A: f32[N]\n  out D: f32\n  D = 0\n  forall i < N\n    D += A[i]\n"
SQUARE = "  in A: f32[N, N]\n  out D: f32[N, N]\n  forall i < N, j < N\n    D[i, j] = A[i, j] * 2\n"
TOTAL = "  in A: f32[N, N]\n  out D: f32\n  D = 0\n  forall i < N, j < N\n    D += A[i, j]\n"


def each(head: str, extent: str = "T") -> str:
    return (f"kernel k({head})\n  in x: f32[T + 9]\n  inout y: f32[T + 9]\n  forall a < {extent}\n"
            "    y[a] = x[a] * 2\n")  # fmt: skip


def total(head: str, extent: str = "T") -> str:
    return (f"kernel k({head})\n  in x: f32[T + 9]\n  out y: f32\n  y = 0\n  forall a < {extent}\n"
            "    y += x[a]\n")  # fmt: skip


CASES = {
    "exactly 8": (EACH, "N == 8", each("T"), "T % 8 == 0"),
    "of a part of the sizes": (EACH, "N == 8", each("T", "T - 3"), "T - 3 <= 0 or (T - 3) % 8 == 0"),
    "twice": (EACH, "N == 8", each("T", "2 * T"), "2*T % 8 == 0"),
    "multiples": (EACH, "N % 4", each("T"), "T % 4 == 0"),
    "multiples up to": (EACH, "N <= 12 % 4", each("T"), "T % 4 == 0"),
    "at least": (EACH, "4 <= N", each("T"), "T == 0 or T >= 4"),
    "at least, and there is some": (EACH, "4 <= N", each("1 <= T"), "T >= 4"),
    "four or five": (EACH, "4 <= N <= 5", each("T"), "T % 20 in {0, 4, 5, 8..10, 12, 14..16, 19}"),
    "four or five of up to nine": (EACH, "4 <= N <= 5", each("1 <= T <= 9"), "T % 20 in {4, 5, 8, 9}"),
    "any": (EACH, "N <= 8", each("T"), None),
    "said already": (EACH, "N == 8", each("T % 8"), None),
    "said more": (EACH, "N % 4", each("T % 8"), None),
    "said in part": (EACH, "N == 12", each("T % 8"), "T % 12 == 0"),
    "all in one call": (SUM, "N == 8", total("T"), "T == 8"),
    "all in one call of up to": (SUM, "N <= 8", total("T"), "T <= 8"),
    "all in one call of so many": (SUM, "4 <= N <= 8", total("T"), "4 <= T <= 8"),
    "all in one call of some": (SUM, "1 <= N", total("T"), "T >= 1"),
    "all in one call of multiples": (SUM, "N <= 16 % 4", total("T"), "T % 4 == 0 and T <= 16"),
    "all in one call, so many at most": (SUM, "N <= 8", total("T <= 8"), None),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_a_mapping_holds_where_its_sizes_have_one(what: str):
    """What it says is so: at every size that satisfies it the instruction fits, and at no other one."""
    body, size, text, said = CASES[what]
    i, k = parse_instruction(f"instruction own({size})\n{body}"), parse_kernel(text)
    m = match(k, i).first
    if said is None:
        assert m.conditions == ()
        assert "only where" not in str(m)
    else:
        assert list(map(str, m.conditions)) == [said]
        assert str(m).endswith(f"; only where {said}")
    (t,) = k.given
    for n in range(t.lo, (t.hi or 60) + 1):
        if n % t.multiple_of == 0 and any(a.extent.evaluate({"T": n}) > 0 for a in k.statements[-1].domain.axes):
            fits = bool(match(k.with_sizes({"T": n}), i))
            assert fits == all(c.holds({"T": n}) for c in m.conditions), n


@pytest.mark.parametrize(("body", "size", "text"), [
    (EACH, "N == 8", each("1 <= T <= 7")), (SUM, "N <= 4", total("9 <= T")), (EACH, "N % 4", each("T", "2 * T + 1")),
])  # fmt: skip
def test_where_no_size_would_do_there_is_no_mapping(body: str, size: str, text: str):
    report = match(parse_kernel(text), parse_instruction(f"instruction own({size})\n{body}"))
    assert isinstance(report, Mismatch)
    assert report.kind == "extent"
    assert "never so many at the sizes that it admits" in report.have


def test_every_axis_has_its_own_and_two_of_one_size_are_cut_alike():
    k = parse_kernel("kernel k(T, K)\n  in x: f32[T, K]\n  out y: f32[T, K]\n  forall a < T, b < K\n"
                     "    y[a, b] = x[a, b] * 2\n")  # fmt: skip
    for size, said in (("N == 8", ["T % 8 == 0", "K % 8 == 0"]), ("N <= 8", []),
                       ("4 <= N <= 6", ["T % 4 == 0", "K % 4 == 0"])):  # fmt: skip
        m = match(k, parse_instruction(f"instruction own({size})\n{SQUARE}")).first
        assert list(map(str, m.conditions)) == said


def test_two_axes_of_one_size_that_calls_take_whole_are_equally_long():
    i = parse_instruction(f"instruction own(N <= 8)\n{TOTAL}")
    k = parse_kernel("kernel k(T, K)\n  in x: f32[T, K]\n  out y: f32\n  y = 0\n  forall a < T, b < K\n"
                     "    y += x[a, b]\n")  # fmt: skip
    assert match(k, i).kind == "extent"
    assert match(k.with_sizes({"T": 4, "K": 8}), i).kind == "extent"
    assert match(k.with_sizes({"T": 4, "K": 4}), i)
