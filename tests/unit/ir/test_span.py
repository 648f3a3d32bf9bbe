"""How much of an axis one call takes, against trying everything."""

from __future__ import annotations

import random

import pytest

from isam.ir.span import Span
from isam.ir.text import parse_instruction


def span(head: str, extent: str = "N") -> Span:
    shape = f"f32[{extent}]"
    text = f"instruction f({head})\n  in  A: {shape}\n  out D: {shape}\n  forall i < {extent}\n    D[i] = A[i]\n"
    return parse_instruction(text).span("i")


@pytest.mark.parametrize(
    ("head", "extent", "taken"),
    [
        ("N", "N", range(40)),
        ("N <= 5", "N", range(6)),
        ("N == 8", "N", [8]),
        ("8 <= N % 8 <= 20", "N", [8, 16]),
        ("3 <= N % 4", "N", range(4, 40, 4)),
        ("N <= 5", "N + 2", range(2, 8)),
        ("1 <= N <= 3", "2*N + 1", [3, 5, 7]),
        ("N", "6", [6]),
        ("N", "2*N - 5", range(1, 40, 2)),
        ("N % 4", "N - 2", range(2, 40, 4)),
    ],
)
def test_what_a_call_takes(head, extent, taken):
    s = span(head, extent)
    assert [n for n in range(40) if s.admits(n)] == list(taken)
    if s.sym is not None:
        assert all(s.size(n) * s.each + s.more == n for n in taken)


@pytest.mark.parametrize("seed", range(60))
def test_cuts_as_large_as_can_be(seed):
    rng = random.Random(seed)
    least, step = rng.randint(0, 9), rng.choice([1, 1, 2, 3, 4, 8])
    s = Span(least, rng.choice([None, least + step * rng.randint(0, 5) + rng.randint(0, step - 1)]), step)
    for n in range(1, 60):
        calls = [b for b in range(1, n + 1) if s.admits(b) and (n % b == 0 or s.admits(n % b))]
        assert s.cut(n) == max(calls, default=None), n
        assert all(s.cuts(n, b) == (b in calls) for b in range(1, n + 1) if s.admits(b))
        more = s.padded(n)
        assert more is None or (more >= n and s.cut(more) is not None and not any(map(s.cut, range(n, more))))


def test_in_words():
    shown = [str(span(h)) for h in ("N", "N <= 4", "N == 8", "N % 8", "8 <= N % 8 <= 64", "3 <= N <= 4")]
    assert shown == ["any number", "at most 4", "exactly 8", "a multiple of 8", "a multiple of 8 and at most 64",
                     "at least 3 and at most 4"]  # fmt: skip


@pytest.mark.parametrize(("head", "free"), [
    ("N", True), ("N <= 5", True), ("1 <= N", True), ("2 <= N", False), ("N % 2", False),
])  # fmt: skip
def test_what_is_free_takes_any_number_down_to_one(head: str, free: bool):
    assert span(head).free == free
    assert not Span(0, 0, 1).free
