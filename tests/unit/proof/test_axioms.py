"""What axioms make of operations, by enumeration: choices, powers, reciprocals, exponents, products of products."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import reduce
from itertools import product

import numpy as np
import pytest

from isam.ir.arithmetic import Numbers
from isam.ir.relation import Rel
from isam.proof.axioms import FACTORS, _functions, _reciprocal
from isam.proof.operations import Licence, Operations
from isam.proof.value import ONE, Value
from tests.unit.proof.pointwise import LINE, pairs, points, polys, region, relation
from tests.unit.proof.test_operations import Reading

NAMES = "xzw"
OVER = region(LINE, 1)


def given(o: Operations, dtype: str, names: str = NAMES) -> list[Value]:
    return [o.numbers.ring.read(o.numbers.leaf(f"{n} {dtype}", 1), OVER.identity()) for n in names]


def labels(o: Operations, a: Value) -> set[str]:
    return {o.numbers.arrays[n].label for key in a.terms for n in key}


# choices --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("op", "dtype", "finite"), [*product(("lt", "le"), ("i32", "f32"), (False, True))])
def test_a_choice_is_an_extreme_only_where_it_chooses_one(op: str, dtype: str, finite: bool) -> None:
    """Every choice between three arrays by a comparison of two, against numbers."""
    o = Operations(Licence(finite=finite))
    ring, some = o.numbers.ring, range(len(NAMES))
    given_ = given(o, dtype)
    numbers = [*product(range(3), repeat=3)]
    known: list[tuple[Value, list[int]]] = [(v, [n[i] for n in numbers]) for i, v in enumerate(given_)]
    for i, j in ((0, 1), (0, 2), (1, 2)):
        for name, best in (("max", max), ("min", min)):
            made = o.apply(name, (given_[i], given_[j]), dtype, dtype, OVER)
            known.append((made, [best(n[i], n[j]) for n in numbers]))
    extremes = 0
    for (p, q), r, s in product(((0, 1), (1, 0)), some, some):
        c = o.apply(op, (given_[p], given_[q]), dtype, "bool", OVER)
        made = o.apply("select", (c, given_[r], given_[s]), dtype, dtype, OVER)
        less = [n[p] < n[q] or (op == "le" and n[p] == n[q]) for n in numbers]
        want = [n[r] if yes else n[s] for yes, n in zip(less, numbers, strict=True)]
        for other, is_ in known:
            same = ring.equal(made, other)
            assert not same or is_ == want, (p, q, r, s)
            if {r, s} == {p, q}:
                provable = dtype != "f32" or finite
                assert same == (provable and is_ == want)
                extremes += same
    assert extremes == (0 if dtype == "f32" and not finite else 4)


# extremes -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("op", ["max", "min"])
def test_the_extreme_of_multiples_is_a_multiple_of_an_extreme(op: str) -> None:
    """Of two arrays, and of one and a number; whatever the factors, it is minus the other extreme of the opposites."""
    other = {"max": "min", "min": "max"}[op]
    numbers = {f"{n} f32": np.array(some, np.float32) for n, some in (("x", [3, -1, 0, 2]), ("z", [-2, 5, 0, 2]))}
    for w, v in product((Fraction(-3), Fraction(-1), Fraction(1, 2), ONE, Fraction(3)), repeat=2):
        o = Operations(Licence(scaled=True))
        ring, (x, z), reading = o.numbers.ring, given(o, "f32", "xz"), Reading(o, numbers)
        for a, b in ((ring.scale(x, w), ring.scale(z, v)), (ring.scale(x, w), ring.constant(v, OVER))):
            made = o.apply(op, (a, b), "f32", "f32", OVER)
            minus = o.apply(other, (ring.scale(a, -ONE), ring.scale(b, -ONE)), "f32", "f32", OVER)
            assert ring.equal(made, ring.scale(minus, -ONE)), (w, v)
            one, two = reading.all(a, "f32"), reading.all(b, "f32")
            got = reading.all(made, "f32")
            assert all(got[p] == {"max": max, "min": min}[op](one[p], two[p]) for p in LINE), (w, v)
        if w == v:
            plain = o.apply(op if w > 0 else other, (x, z), "f32", "f32", OVER)
            made = o.apply(op, (ring.scale(x, w), ring.scale(z, v)), "f32", "f32", OVER)
            assert ring.equal(made, ring.scale(plain, w))


@pytest.mark.parametrize("op", ["max", "min"])
def test_what_both_have_goes_out_of_an_extreme(op: str) -> None:
    o = Operations(Licence(scaled=True))
    ring, (x, z) = o.numbers.ring, given(o, "f32", "xz")
    plain = o.apply(op, (x, z), "f32", "f32", OVER)
    two = ring.constant(Fraction(2), OVER)
    made = o.apply(op, (ring.add(x, two), ring.add(z, two)), "f32", "f32", OVER)
    assert ring.equal(made, ring.add(plain, two))
    made = o.apply(op, (ring.add(x, two), z), "f32", "f32", OVER)
    assert not ring.equal(made, ring.add(plain, two))
    for name, goes in (("exp", True), ("floor", True), ("sin", False), ("sqrt", False)):
        both = tuple(o.apply(name, (a,), "f32", "f32", OVER) for a in (x, z))
        made = o.apply(op, both, "f32", "f32", OVER)
        assert ring.equal(made, o.apply(name, (plain,), "f32", "f32", OVER)) == goes, name


SIGNS = (Fraction(-1), ONE)
ROUNDED = Licence(free=False, scaled=True)


@pytest.mark.parametrize("op", ["max", "min"])
def test_signs_and_rounded_sums_and_products_go_out_of_an_extreme(op: str) -> None:
    """Bit by bit: of what is as large as its neighbour, too, once rounded, and in either sign."""
    other = {"max": "min", "min": "max"}[op]
    numbers = {f"{n} f32": np.array(some, np.float32) for n, some in (("x", [3, -1, 0.1]), ("z", [3.0000002, 2, -0.7]))}
    o = Operations(ROUNDED)
    ring, (x, z), reading = o.numbers.ring, given(o, "f32", "xz"), Reading(o, numbers)
    for w, v in product(SIGNS, repeat=2):
        a, b = (x if w > 0 else o.apply("neg", (x,), "f32", "f32", OVER)), (z if v > 0 else ring.scale(z, -ONE))
        made = o.apply(op, (a, b), "f32", "f32", OVER)
        minus = o.apply(other, tuple(o.apply("neg", (t,), "f32", "f32", OVER) for t in (a, b)), "f32", "f32", OVER)
        assert ring.equal(made, o.apply("neg", (minus,), "f32", "f32", OVER)), (w, v)
    plain = {e: o.apply(e, (x, z), "f32", "f32", OVER) for e in (op, other)}
    for made, c in (("add", 16777216.0), ("add", -0.3), ("mul", 3.0), ("mul", -1.1), ("mul", 0.5), ("mul", -1e-45)):
        number = o.literal(c, "f32", OVER)
        both = tuple(o.apply(made, (t, number), "f32", "f32", OVER) for t in (x, z))
        got = o.apply(op, both, "f32", "f32", OVER)
        one, two, each = (reading.all(t, "f32") for t in (*both, got))
        assert all(each[p] == {"max": max, "min": min}[op](one[p], two[p]) for p in LINE), (made, c)
        out = plain[op if made == "add" or c > 0 else other]
        small = made == "mul" and abs(c) < 1  # two numbers may become two zeros, and which of them is it?
        assert ring.equal(got, o.apply(made, (out, number), "f32", "f32", OVER)) != small, (made, c)
    unlike = tuple(o.apply("add", (t, o.literal(c, "f32", OVER)), "f32", "f32", OVER) for t, c in ((x, 2), (z, 3)))
    got = o.apply(op, unlike, "f32", "f32", OVER)
    assert not any(ring.equal(got, o.apply("add", (plain[op], o.literal(c, "f32", OVER)), "f32", "f32", OVER))
                   for c in (2, 3))  # fmt: skip


def test_a_negative_zero_has_the_other_sign_again() -> None:
    o = Operations(ROUNDED)
    ring, zero = o.numbers.ring, o.literal(0, "f32", OVER)
    minus = o.apply("neg", (zero,), "f32", "f32", OVER)
    assert not ring.equal(minus, zero)
    assert ring.equal(minus, o.literal(-0.0, "f32", OVER))
    assert ring.equal(o.apply("neg", (minus,), "f32", "f32", OVER), zero)
    (x,) = given(o, "f32", "x")
    least = o.apply("min", (x, zero), "f32", "f32", OVER)
    most = o.apply("max", (ring.scale(x, -ONE), minus), "f32", "f32", OVER)
    assert ring.equal(least, o.apply("neg", (most,), "f32", "f32", OVER))
    assert not ring.equal(least, o.apply("min", (x, minus), "f32", "f32", OVER))


@pytest.mark.parametrize("op", ["max", "min"])
@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
def test_the_logistic_function_rises(name: str, op: str) -> None:
    other = {"max": "min", "min": "max"}[op]
    o = Operations(Licence(scaled=True))
    ring, (x, z) = o.numbers.ring, given(o, "f32", "xz")
    both = tuple(o.apply(name, (a,), "f32", "f32", OVER) for a in (x, z))
    made = o.apply(op, both, "f32", "f32", OVER)
    outer = {e: o.apply(name, (o.apply(e, (x, z), "f32", "f32", OVER),), "f32", "f32", OVER) for e in (op, other)}
    assert ring.equal(made, outer[op])
    assert not ring.equal(made, outer[other])
    one = ring.constant(ONE, OVER)
    for more in (ring.constant(Fraction(0), OVER), one):  # 1 / x and 1 / (x + 1): of any sign
        inverse = tuple(o.apply("div", (one, ring.add(a, more)), "f32", "f32", OVER) for a in (x, z))
        made = o.apply(op, inverse, "f32", "f32", OVER)
        for e in (op, other):
            best = ring.add(o.apply(e, (x, z), "f32", "f32", OVER), more)
            assert not ring.equal(made, o.apply("div", (one, best), "f32", "f32", OVER))


@pytest.mark.parametrize("dtype", ["f32", "i8", "u8"])
def test_nothing_but_one_divides_nothing(dtype: str) -> None:
    for licence in (Licence(free=False), Licence()):
        o = Operations(licence)
        ring, (x,) = o.numbers.ring, given(o, dtype, "x")
        assert ring.equal(o.apply("div", (x, o.literal(1, dtype, OVER)), dtype, dtype, OVER), x)
        assert not ring.equal(o.apply("div", (x, o.literal(2, dtype, OVER)), dtype, dtype, OVER), x)


def test_twice_a_number_is_its_sum_with_itself_to_the_bit() -> None:
    o = Operations(Licence(free=False))
    ring, (x, z) = o.numbers.ring, given(o, "f32", "xz")
    twice = o.apply("mul", (o.literal(2, "f32", OVER), x), "f32", "f32", OVER)
    assert ring.equal(o.apply("add", (x, x), "f32", "f32", OVER), twice)
    assert not ring.equal(o.apply("add", (x, z), "f32", "f32", OVER), twice)
    assert not ring.equal(o.apply("add", (x, ring.scale(x, -ONE)), "f32", "f32", OVER), twice)


def test_extremes_of_integers_that_wrap_are_not_scaled() -> None:
    o = Operations(Licence(scaled=True))
    ring, (x, z) = o.numbers.ring, given(o, "i8", "xz")
    made = o.apply("min", (x, z), "i8", "i8", OVER)
    minus = o.apply("max", (ring.scale(x, -ONE), ring.scale(z, -ONE)), "i8", "i8", OVER)
    assert not ring.equal(made, ring.scale(minus, -ONE))


# powers ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_powers_are_products_of_one_to_four(dtype: str) -> None:
    for n in (Fraction(k, 2) for k in range(-2, 13)):
        o = Operations(Licence())
        ring, (x,) = o.numbers.ring, given(o, dtype, "x")
        made = o.apply("pow", (x, ring.constant(n, OVER, x.modulus)), dtype, dtype, OVER)
        if n in (1, 2, 3, 4):
            assert ring.equal(made, reduce(ring.mul, [x] * int(n)))
        else:
            assert labels(o, made) == {f"pow {dtype}"}


@pytest.mark.parametrize("weight", [Fraction(k, 2) for k in (-3, -2, -1, 0, 1, 2, 3)])
def test_the_reciprocal_of_a_multiple_of_a_reciprocal(weight: Fraction) -> None:
    """Of no multiple at all it is that of a number that may be NaN: it stays what it is."""
    o = Operations(Licence())
    ring, (x,) = o.numbers.ring, given(o, "f32", "x")
    one = ring.constant(ONE, OVER)
    inner = ring.scale(o.apply("div", (one, x), "f32", "f32", OVER), weight)
    made = o.apply("div", (one, inner), "f32", "f32", OVER)
    if weight:
        assert ring.equal(made, ring.scale(x, 1 / weight))
    else:
        assert labels(o, made) == {"reciprocal f32"}
        assert not ring.equal(made, ring.scale(x, Fraction()))


# exponents ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(3))
def test_a_relation_as_functions(seed: int) -> None:
    """Together they are the relation, each pair in one of them; none where it takes more than a few."""
    choose = random.Random(seed)
    for most in range(1, FACTORS + 3):
        for _ in range(3):
            many = [choose.randint(1, most) for _ in LINE]
            many[choose.randrange(len(LINE))] = most
            r = relation([(p, (k,)) for p, n in zip(LINE, many, strict=True)
                          for k in choose.sample(range(8), n)], 1, 1)  # fmt: skip
            made = _functions(r)
            assert len(made) == (most if most <= FACTORS else 0)
            assert all(f.is_function() for f in made)
            assert not made or sorted(x for f in made for x in pairs(f)) == pairs(r)
    assert _functions(Rel(r.raw.subtract(r.raw))) == []


# products -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(8))
def test_products_of_sums_of_products(seed: int) -> None:
    """Of sums, in parts, of products and other elements: multiplied by another one, as numbers are."""
    choose = random.Random(seed)
    o = Operations(Licence())
    ring = o.numbers.ring
    x, z = (ring.read(o.numbers.leaf(f"{n} i32", 1), region([(k,) for k in range(4)], 1).identity(), 1 << 32)
            for n in "xz")  # fmt: skip
    reading = Reading(o, {f"{n} i32": np.array([choose.randint(-5, 5) for _ in range(4)], np.int32) for n in "xz"})

    def moved(a: Value, part: list[tuple[int, ...]] = LINE) -> Value:
        return ring.through(relation([(p, (choose.randrange(2),)) for p in part], 1, 1), a)

    ends = region([(0,), (1,)], 1)
    dest = relation([((k,), (k // 2,)) for k in range(4)], 1, 1)
    one = ring.constant(ONE, ends, 1 << 32)
    both = o.accumulate("mul", one, dest, x, "i32", ())
    for _ in range(5):
        some = moved(both, choose.choice((LINE, LINE, LINE[:2])))
        a = ring.value(OVER, some.terms, 1 << 32)
        if choose.random() < 0.8:
            part = choose.choice((LINE, LINE, LINE[1:]))
            more = ring.scale(moved(both if choose.random() < 0.7 else x, part), Fraction(choose.choice((1, 2, -1))))
            a = ring.value(OVER, {k: [*a.terms.get(k, ()), *more.terms.get(k, ())]
                                  for k in a.terms.keys() | more.terms.keys()}, 1 << 32)  # fmt: skip
        other = choose.choice((moved(z), moved(both), a))
        one_, two = (reading.all(v, "i32") for v in (a, other))
        with np.errstate(over="ignore"):
            want = {p: one_[p] * two[p] for p in LINE}
        made = o.apply("mul", (a, other), "i32", "i32", OVER)
        assert points(made.over) == LINE
        assert all(polys(ring, made)[p] is not None for p in LINE)
        assert reading.all(made, "i32") == want


# conditions -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
def test_sums_of_conditions_are_no_conditions(seed: int) -> None:
    """Products of elements that are 0 or 1, one for every point, with any weight, or several: cast as numbers are."""
    choose = random.Random(seed)
    for _ in range(12):
        o = Operations(Licence())
        ring, n = o.numbers.ring, o.numbers.leaf("b bool", 1)
        ring.logical.add(n)
        z = o.numbers.leaf("z u8", 1)
        reading = Reading(o, {"b bool": np.array([choose.random() < 0.7 for _ in range(4)]),
                              "z u8": np.array(choose.choices((0, 1, 2, 200), k=4), np.uint8)})  # fmt: skip
        key = choose.choice(((n,), (n,), (n, n), (n, z), (z,)))
        part = choose.choice((LINE, LINE, LINE[1:]))
        at = {(p, tuple(choose.sample(range(4), len(key)))) for p in part for _ in range(choose.choice((1, 1, 2)))}
        weight = Fraction(choose.choice((1, 1, 1, 2, 255)))
        terms = {key: [(weight, relation(sorted(at), 1, len(key)))]}
        if choose.random() < 0.3:
            terms[()] = [(ONE, OVER.to_nothing())]
        elif choose.random() < 0.5:
            terms[key].append(
                (ONE, relation([(p, tuple(choose.sample(range(4), len(key)))) for p in LINE], 1, len(key)))
            )
        a = ring.value(OVER, terms, 256)
        numbers = reading.all(a, "u8")
        for target in ("bool", "i64", "u8", "i8"):
            for op in ("cast", "cast_sat") if target in ("i8", "i64") else ("cast",):
                made = o.apply(op, (a,), "u8", target, OVER)
                with np.errstate(all="ignore"):
                    want = {p: Numbers().apply(op, (np.asarray(v),), "u8", target) for p, v in numbers.items()}
                assert reading.all(made, target) == want, (op, target, terms)


@pytest.mark.parametrize("wide", ["i32", "i16", "i8"])
def test_truth_is_no_number_that_it_was_cast_from(wide: str) -> None:
    """Whether a number is not zero, as a number, several times, and narrowed: not the number itself."""
    o = Operations(Licence())
    (x,) = given(o, "i8", "x")
    x = o.numbers.ring.value(OVER, x.terms, 256)
    reading = Reading(o, {"x i8": np.array([0, 5, -3, 1], np.int8)})
    c = o.apply("cast", (o.apply("cast", (x,), "i8", "bool", OVER),), "bool", wide, OVER)
    for made in (c, o.apply("add", (c, c), wide, wide, OVER), o.apply("neg", (c,), wide, wide, OVER)):
        before = reading.all(made, wide)
        narrow = reading.all(o.apply("cast", (made,), wide, "i8", OVER), "i8")
        assert {p: int(v) for p, v in narrow.items()} == {p: int(v) for p, v in before.items()}
    assert sorted(int(v) for v in reading.all(c, wide).values()) == [0, 1, 1]


def test_a_reciprocal_at_some_points_and_zero_at_the_others() -> None:
    """Only what is a reciprocal at every point is turned over."""
    o = Operations(Licence())
    ring, (x,) = o.numbers.ring, given(o, "f32", "x")
    once = _reciprocal(o, x, "f32", OVER)
    assert ring.equal(_reciprocal(o, once, "f32", OVER), x)
    part = Value(OVER, ring.on(once, region(LINE[:1], 1)).terms)
    made = _reciprocal(o, part, "f32", OVER)
    assert points(made.over) == LINE
    assert not ring.equal(made, x)
    assert labels(o, made) == {"reciprocal f32"}
