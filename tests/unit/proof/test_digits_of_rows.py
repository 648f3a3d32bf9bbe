"""Rows that are one number: which axes then have one value."""

from __future__ import annotations

import random
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Axis, Domain
from isam.proof.inside import same_digits


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
