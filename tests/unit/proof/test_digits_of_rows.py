"""Rows that are one number: which axes then have one value."""

from __future__ import annotations

import random
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Axis, Domain
from isam.ir.text import parse_kernel
from isam.proof.inside import same_digits
from tests.pipeline import compiled, judge, simulated

# Written in two parts, read at once: rows of the second one are none that wait for the first.
PARTS = """kernel parts(M)
  in   x: f32[M + 5, 16]
  out  y: f32[M + 5, 16]
  temp t: f32[16*M + 80]
  forall i < M, j < 16
    t[16*i + j] = 2 * x[i, j]
  forall i < 5, j < 16
    t[16*i + j + 16*M] = 3 * x[i, j]
  forall b < M + 5, d < 16
    y[b, d] = t[16*b + d] + 1
"""
BEHIND = """kernel behind(T)
  in    x: f32[T, 2]
  inout h: f32[2*T + 2]
  out   y: f32[2]
  loop t < T
    forall j < 2
      h[2*t + j] = x[t, j]
  forall k < 2
    y[k] = h[2*T + k]
"""


def domain(**extents: int) -> Domain:
    return Domain(tuple(Axis(n, Affine((), e)) for n, e in extents.items()))


def row(**weights: int) -> Affine:
    return Affine.from_terms(tuple(weights.items()), 0)


@pytest.mark.parametrize("seed", range(300))
def test_axes_that_are_told_apart_have_one_value(seed: int) -> None:
    r = random.Random(seed)
    n, weights = r.randint(1, 3), [r.randint(1, 9) for _ in range(3)]
    one, two = ([r.randint(1, 5) for _ in range(n)] for _ in range(2))
    mine, theirs = (dict(zip(names, weights, strict=False)) for names in ("abc"[:n], "def"[:n]))
    here = domain(**dict(zip("abc", one, strict=False)))
    there = domain(**dict(zip("def", two, strict=False)))
    got = same_digits(row(**mine), here, row(**theirs), there)
    for p, q in product(product(*map(range, one)), product(*map(range, two))):
        if sum(w * x for w, x in zip(weights, p, strict=False)) == sum(w * x for w, x in zip(weights, q, strict=False)):
            at, to = dict(zip("abc", p, strict=False)), dict(zip("def", q, strict=False))
            assert all(at[a] == to[b] for a, b in got.items()), (weights, one, two)


def test_where_it_does_not_show() -> None:
    whole = domain(a=4, b=16)
    assert same_digits(row(a=16, b=1), whole, row(c=16, d=1), domain(c=9, d=16)) == {"b": "d", "a": "c"}
    assert not same_digits(row(a=16, b=1), whole, row(c=16, d=1), domain(c=4, d=17))  # 16 is 16 + 0 and 0 + 16
    assert not same_digits(row(a=16, b=1), whole, row(c=8, d=1), domain(c=8, d=8))
    assert not same_digits(row(a=16, b=-1), whole, row(c=16, d=-1), whole)


@pytest.mark.parametrize("on", ["toy", "host-generic"])
@pytest.mark.parametrize("rows", [1, 4, 40])
def test_what_is_read_beyond_a_part_does_not_wait_for_it(rows: int, on: str) -> None:
    kernel, sizes = parse_kernel(PARTS), {"M": rows}
    judge(kernel, sizes, compiled(kernel, sizes, simulated(on), check=True))


@pytest.mark.parametrize("trips", [0, 1, 7])
def test_a_digit_may_be_a_size_that_is_not_known_yet(trips: int) -> None:
    kernel = parse_kernel(BEHIND)
    judge(kernel, {}, compiled(kernel, {}, simulated("toy"), check=True), run_time={"T": trips})
