"""Sums that two kernels both have made are any numbers to what follows, where they were shown to be the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from isam.ir.text import parse_kernel
from isam.proof.equivalence import Equivalence, equivalent
from isam.proof.local import cutpoints

HEAD = """kernel k(M)
  in  x: f32[M, 64]
  out y: f32[M]
  temp c: f32[M, 64]
  temp m: f32[M]
  temp v: f32[M]
  temp w: f32[M, 64]
  temp p: f32[M, 8]
"""
BEGIN = """  forall i < M
    m[i] = 0
    v[i] = 0
"""
TWICE = """  forall i < M, j < 64
    w[i, j] = x[i, j] * 2
"""
TWICE_IN_PARTS = """  forall i < M, o < 8, l < 8
    w[i, l + 8 * o] = x[i, l + 8 * o] * 2
"""
SUM = "  forall i < M, j < 64\n    m[i] += w[i, j]\n"
IN_LANES = """  forall i < M, l < 8
    p[i, l] = 0
  forall i < M, o < 8, l < 8
    p[i, l] += w[i, l + 8 * o]
  forall i < M, l < 8
    m[i] += p[i, l]
"""
SQUARES = """  forall i < M, j < 64
    c[i, j] = (w[i, j] - m[i]) * (w[i, j] - m[i])
    v[i] += c[i, j]
"""
SQUARES_IN_PARTS = """  forall i < M, o < 8, l < 8
    c[i, l + 8 * o] = (w[i, l + 8 * o] - m[i]) * (w[i, l + 8 * o] - m[i])
    v[i] += c[i, l + 8 * o]
"""
END = """  forall i < M
    y[i] = v[i] + m[i]
"""
WRITTEN = BEGIN + TWICE + SUM + SQUARES + END
REWRITTEN = BEGIN + TWICE_IN_PARTS + IN_LANES + SQUARES_IN_PARTS + END
ORDERED = [
    # m is begun with what v was, or v is made of what m was: the sums are the same, what is made of them is not
    (BEGIN + SUM + SQUARES + END, BEGIN + SQUARES + SUM + END),
    # one has added only a part of what it adds to m when it makes v
    (BEGIN + SUM + SQUARES + SUM + END, BEGIN + SUM + SUM + SQUARES + END),
]


def test_squares_of_what_is_less_its_mean() -> None:
    """Multiplied out they hold a product of any two elements of a row, told apart by the lanes of both."""
    judge = Equivalence()
    assert judge.judge(parse_kernel(HEAD + WRITTEN), parse_kernel(HEAD + REWRITTEN), ("reassociates", "rounding"))


@pytest.mark.parametrize("wrong", [
    REWRITTEN.replace("+= w[i, l + 8 * o]", "+= w[i, l + 7 * o]"),
    REWRITTEN.replace("m[i] += p[i, l]", "v[i] += p[i, l]"),
    REWRITTEN.replace("v[i] + m[i]", "v[i] - m[i]"),
    REWRITTEN.replace("- m[i]) * (w", "- v[i]) * (w"),
    BEGIN + TWICE_IN_PARTS + SQUARES_IN_PARTS + IN_LANES + END,
])  # fmt: skip
def test_what_is_otherwise_is_seen(wrong: str) -> None:
    assert not equivalent(parse_kernel(HEAD + WRITTEN), parse_kernel(HEAD + wrong))


@pytest.mark.parametrize(("one", "two"), ORDERED)
def test_sums_met_in_another_order_are_not_cut(one: str, two: str) -> None:
    assert not equivalent(parse_kernel(HEAD + TWICE + one), parse_kernel(HEAD + TWICE + two))


def test_sums_that_are_made_twice_have_a_name_each() -> None:
    """Before a loop and behind it: what ``m`` is in one place it is not in another."""
    again = "  forall i < M\n    m[i] = 1\n"
    kept = "  forall i < M\n    v[i] = m[i]\n"
    loop = "  loop t < 2\n    forall i < M\n      p[i, 0] = 0\n"
    turned = SUM.replace("w[i, j]", "w[i, 63 - j]")
    one = BEGIN + TWICE + SUM + kept + loop + again + SUM + "  forall i < M\n    y[i] = v[i] - m[i]\n"
    two = one.replace(SUM, turned)
    assert equivalent(parse_kernel(HEAD + one), parse_kernel(HEAD + two))
    assert not equivalent(parse_kernel(HEAD + one), parse_kernel(HEAD + two.replace("v[i] - m[i]", "m[i] - v[i]")))


def places(one: str, two: str) -> Sequence[tuple[int, int, str]]:
    return [*cutpoints(*(parse_kernel(HEAD + TWICE + x).body for x in (one, two)))]


def test_where_both_have_made_a_sum() -> None:
    assert places(BEGIN + SUM + SQUARES + END, BEGIN + IN_LANES + SQUARES + END) == [(4, 6, "m"), (7, 9, "v")]
    # m stands behind v in the second one: whichever is met first leaves no place for the other
    assert places(*ORDERED[0]) == [(4, 7, "m")]
    assert places(*ORDERED[1]) == [(7, 8, "v")]
    assert places(BEGIN + SUM, BEGIN + SUM) == []  # nothing reads it
    assert places(BEGIN + END, BEGIN + END) == []  # not a sum
