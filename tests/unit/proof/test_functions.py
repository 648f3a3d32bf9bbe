"""What is known of functions of values: the greatest of widened numbers, exponents that add up."""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from isam.ir.relation import Rel
from isam.proof.axioms import FACTORS
from isam.proof.operations import Licence, Operations
from isam.proof.value import Value
from tests.unit.proof.pointwise import LINE, Poly, pairs, polys, region, relation
from tests.unit.proof.test_operations import Reading


@pytest.mark.parametrize("op", ["max", "min"])
def test_the_greatest_of_widened_elements_is_the_widened_greatest(op: str) -> None:
    """With the least of all, or a number that both types hold; not with one that only the wide type holds, or other
    elements: those stay what they are."""
    for free in (False, True):
        o = Operations(Licence(free=free))
        ring, over = o.numbers.ring, region(LINE, 1)
        x, z = (ring.read(o.numbers.leaf(f"{name} f16", 1), over.identity()) for name in "xz")
        wide = ring.read(o.numbers.leaf("w f32", 1), over.identity())
        a, b = (o.apply("cast", (v,), "f16", "f32", over) for v in (x, z))
        least = o.literal(float("-inf" if op == "max" else "inf"), "f32", over)

        def both(p: Value, q: Value, dtype: str, o: Operations = o, over: Any = over) -> Value:
            return o.apply(op, (p, q), dtype, dtype, over)

        narrow = o.apply("cast", (both(x, z, "f16"),), "f16", "f32", over)
        assert ring.equal(both(a, b, "f32"), narrow)
        assert ring.equal(both(both(a, least, "f32"), b, "f32"), narrow)
        half, third = (o.literal(c, "f32", over) for c in (0.5, 1 / 3))
        same = o.apply("cast", (both(x, o.literal(0.5, "f16", over), "f16"),), "f16", "f32", over)
        assert ring.equal(both(a, half, "f32"), same)
        for other in (third, wide):
            labels = {o.numbers.arrays[n].label for key in both(a, other, "f32").terms for n in key}
            assert labels == {f"{op} f32"}


@pytest.mark.parametrize("seed", range(8))
def test_exponents_add_up(seed: int) -> None:
    """Where all is finite, ``exp`` of a sum is a product of ``exp`` whose exponents are that sum, at every point."""
    rng, o = random.Random(seed), Operations(Licence(finite=True))
    ring, over = o.numbers.ring, region(LINE, 1)
    names = [o.numbers.leaf(name, 1) for name in "xzw"]
    terms: dict[tuple[int, ...], list[tuple[Fraction, Rel]]] = {}
    for n in names:
        for _ in range(rng.choice((0, 1, 2))):
            some = [p for p in LINE if rng.random() < 0.7] if rng.random() < 0.5 else LINE
            many = rng.choice((1, 1, 2, 5))
            at = {(p, (rng.randint(0, 5),)) for p in some for _ in range(many)}
            terms.setdefault((n,), []).append((Fraction(rng.choice((1, 2, -1))), relation(sorted(at), 1, 1)))
    a = ring.value(over, terms)
    made = o.apply("exp", (a,), "f32", "f32", over)
    before, reading = polys(ring, a), Reading(o, {})
    factors = set[int]()
    for p, x in polys(ring, made).items():
        ((m, w),) = x.items()
        total: Poly = {}
        for n, at_ in m:
            array = o.numbers.arrays[n]
            assert array.label == "exp f32"
            for k, v in polys(ring, reading.at(array.args[0], at_))[at_].items():
                total[k] = total.get(k, Fraction()) + v
        assert w == 1
        assert {k: v for k, v in total.items() if v} == {k: v for k, v in before[p].items() if v}
        factors.add(len(m))
    each = [Counter(q for q, _ in pairs(r)) for t in a.terms.values() for _, r in t]
    alone = sum(c[LINE[0]] for c in each if len(c) == len(LINE) and len(set(c.values())) == 1 and c[LINE[0]] <= FACTORS)
    rest = any(len(c) < len(LINE) or len(set(c.values())) > 1 or c[LINE[0]] > FACTORS for c in each)
    assert factors == {max(1, alone + rest)}


def test_what_was_widened_further_is_rounded_once() -> None:
    """A sum in a wide type of numbers of a narrower one than it is rounded to is the sum in that one."""
    o = Operations(Licence(free=False))
    over = region(LINE, 1)
    for narrow, middle, wide in (("f16", "f32", "f64"), ("f32", "f32", "f64"), ("bf16", "f32", "f64")):
        x, z = (o.numbers.ring.read(o.numbers.leaf(f"{name} {narrow}", 1), over.identity()) for name in "xz")

        def as_(a: Value, target: str, source: str) -> Value:
            return o.apply("cast", (a,), source, target, over)

        far = o.apply("add", (as_(x, wide, narrow), as_(z, wide, narrow)), wide, wide, over)
        near = o.apply("add", (as_(x, middle, narrow), as_(z, middle, narrow)), middle, middle, over)
        assert o.numbers.ring.equal(as_(far, middle, wide), near)
