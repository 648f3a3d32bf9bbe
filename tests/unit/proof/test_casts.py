"""Which casts lose nothing, and what numbers become in a type: all numbers of small types, the ends of large ones."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from typing import Any

import islpy
import numpy as np
import pytest

from isam.ir.arithmetic import convert
from isam.ir.dtype import DTYPES, numpy_dtype
from isam.ir.relation import Rel
from isam.proof.casts import (
    DIGITS,
    RANGE,
    _by_element,
    cast,
    held_as,
    holds_product,
    modulus_of,
    narrowed,
    narrowest,
    rounds_alike,
    widens,
    wraps,
)
from isam.proof.operations import Licence, Operations
from isam.proof.value import Value, number_of
from tests.unit.proof.pointwise import region

FLOATS = ("f64", "f32", "f16", "bf16")


def several(dtype: str) -> list[Any]:
    """All numbers of a small type; of a large one, those at its ends and about powers of two."""
    d, to = DTYPES[dtype], numpy_dtype(dtype)
    if d.kind == "b":
        return [np.asarray(x) for x in (False, True)]
    if d.bits <= 16:
        every = np.arange(1 << d.bits, dtype=f"u{d.bytes}").view(to)
        return [x for x, there in zip(every, _wide(every), strict=True) if np.isfinite(there)]
    if d.kind == "f":
        least, most = RANGE[dtype]
        near = [1.0, 1 + 2.0**-10, 1 + 2.0**-23, 1 + 2.0**-52, 2 - 2.0**-7, 1 + 2.0**-7]
        return [to.type(s * m * 2.0**e) for e in (least, least + 1, -30, -14, 0, 7, 15, 23, 52, 63, most - 1)
                for m in near for s in (1, -1) if e > -1074 or m == 1]  # fmt: skip
    limits = np.iinfo(to)
    near = {s * (1 << k) + j for k in range(d.bits) for j in (-1, 0, 1) for s in (1, -1)} | {limits.min, limits.max}
    return [to.type(x) for x in sorted(near) if limits.min <= x <= limits.max]


def _wide(a: np.ndarray) -> list[Any]:
    """As numbers of Python, which are compared exactly."""
    with np.errstate(invalid="ignore"):
        return (a.astype(np.float64) if a.dtype.kind not in "iub" else a).tolist()


@pytest.mark.parametrize("source", DTYPES)
def test_what_widens_holds_every_number(source: str) -> None:
    """There, every number is what it was; of what does not widen some number is lost."""
    some = np.array(several(source), numpy_dtype(source))
    for target in DTYPES:
        with np.errstate(all="ignore"):
            kept = _wide(some) == _wide(convert(some, target))
        assert widens(source, target) == (kept and (source == target or target != "bool")), (source, target)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_as_they_are_held(dtype: str) -> None:
    rng = random.Random(dtype)
    some = [Fraction(x) for x in (0, 1, -1, 127, 128, 255, 256, -128, -129, 65504, 65520, 70000, 2**31, -(2**63))]
    some += [Fraction(rng.randint(-(10**6), 10**6) / rng.choice([1, 3, 7, 1000])) for _ in range(40)]
    ties = [1 + Fraction(1, 1 << n) for n in (8, 9, 11, 12, 24, 25)]
    ties += [Fraction(1, 1 << n) for n in (25, 134, 150)]
    some += [c * s * Fraction(2) ** e for c in ties for s in (1, -1) for e in (0, -140, 15, 127)]
    some += [c + c * s * Fraction(1, 1 << 40) for c in ties for s in (0, 1, -1)]
    kind = DTYPES[dtype].kind
    for c in some:
        if kind in "iu":
            if c.denominator == 1:
                wrapped = np.asarray(int(c) % (1 << 64), np.uint64).astype(numpy_dtype(dtype))
                assert held_as(c, dtype) == int(wrapped)
        elif kind == "b":
            assert held_as(c, dtype) == (c != 0)
        else:
            with np.errstate(over="ignore"):
                near = convert(np.asarray(float(c)), dtype)
            assert held_as(c, dtype) == (Fraction(float(near)) if np.isfinite(near) else None)
    assert kind != "f" or held_as(Fraction(10) ** 400, dtype) is None


def test_a_wrapping_cast_takes_the_last_bits() -> None:
    for source, target in product(DTYPES, repeat=2):
        s, t = DTYPES[source], DTYPES[target]
        last = s.kind in "iu" and t.kind in "iu" and t.bits <= s.bits
        assert wraps("cast", source, target) == last
        assert not wraps("cast_sat", source, target)
        if last:
            for x in several(source)[::97]:
                assert (int(x) - int(convert(np.asarray(x), target))) % (1 << t.bits) == 0


def test_what_may_be_rounded_twice() -> None:
    """Figueroa's condition, with room for the exponents of products and quotients."""
    assert {(n, w) for n in FLOATS for w in FLOATS if rounds_alike(n, w)} == {
        ("f32", "f64"), ("f16", "f32"), ("f16", "f64"), ("bf16", "f64"),
    }  # fmt: skip


def test_which_products_are_exact_in_a_type() -> None:
    """Against the products of their ends, their least and their most precise numbers."""
    for one, two, made in product(DTYPES, repeat=3):
        if "bool" in (one, two, made):
            assert not holds_product(made, one, two)
            continue
        pairs = product(_telling(one), _telling(two))
        exact = all(held_as(x * y, made) == x * y for x, y in pairs)
        kinds = [DTYPES[d].kind == "f" for d in (one, two, made)]
        alike = kinds[0] == kinds[1] and kinds[0] <= kinds[2]
        assert holds_product(made, one, two) == (exact and alike), (one, two, made)


def _telling(dtype: str) -> list[Fraction]:
    if DTYPES[dtype].kind != "f":
        limits = np.iinfo(numpy_dtype(dtype))
        return [Fraction(int(x)) for x in (limits.min, limits.max, limits.max - 1)]
    (least, most), digits = RANGE[dtype], DIGITS[dtype]
    return [Fraction(2) ** least, Fraction(2**digits - 1) * Fraction(2) ** (most - digits), Fraction(2**digits - 1)]


# values ---------------------------------------------------------------------------------------------------------------
LINE = region([(0,), (1,), (2,)], 1)


def read(o: Operations, name: str, dtype: str) -> Value:
    return o.numbers.ring.read(o.numbers.leaf(f"given {name} {dtype}", 1), LINE.identity(), modulus_of(dtype))


def test_a_number_beyond_its_type_is_not_widened() -> None:
    """With leave to take floats for reals a sum may leave the range of its type, where it is infinite."""
    o = Operations(Licence())
    for c, widened in ((60000, 60000), (120000, None)):
        a = o.numbers.ring.constant(Fraction(c), LINE)
        assert number_of(cast(o, "cast", a, "f16", "f32", LINE)) == widened


def test_what_is_an_element_everywhere() -> None:
    o = Operations(Licence())
    ring = o.numbers.ring
    for dtype, other in (("f64", "f32"), ("i32", "i8")):
        x, y = read(o, "x", dtype), read(o, "y", dtype)
        assert _by_element(x, dtype, other)
        assert _by_element(ring.scale(x, Fraction(-1)), dtype, other) == (dtype == "f64")
        for a in (ring.scale(x, Fraction(2)), ring.add(x, y), ring.mul(x, y)):
            assert not _by_element(a, dtype, other)
        for c, fits in ((100, True), (1 << 20, dtype == "f64"), (Fraction(1, 3), dtype == "i32")):
            assert _by_element(ring.constant(Fraction(c), LINE), dtype, other) == fits


def test_what_is_the_widening_of_something() -> None:
    o = Operations(Licence())
    x, y = (cast(o, "cast", read(o, n, "f32"), "f32", "f64", LINE) for n in "xy")
    n = cast(o, "cast", read(o, "n", "i32"), "i32", "f64", LINE)
    there = narrowed(o, x, "f32", "f64")
    assert there is not None
    assert o.numbers.ring.equal(there, read(o, "x", "f32"))
    for a in (o.numbers.ring.add(x, y), n, read(o, "z", "f64")):
        assert narrowed(o, a, "f32", "f64") is None


def test_infinities_among_widened_elements() -> None:
    """Those of floats are infinities of the narrow type; an integer type has none."""
    for first, dtype, found in (("f16", "f32", "f16"), ("i8", "i32", "i32")):
        o = Operations(Licence())
        some = o.numbers.elements(cast(o, "cast", read(o, "x", first), first, dtype, LINE), dtype)
        infinite = {o.infinity(float("-inf"), dtype): LINE.to_nothing()}
        assert narrowest(o, (some, some), dtype)[0] == first
        got, (_, made) = narrowest(o, (some, infinite), dtype)
        assert got == found
        assert {o.numbers.arrays[n].label for n in made} == {f"-inf {found}"}


def test_sums_of_equal_numbers_are_counted_before_and_after_a_cast() -> None:
    """Sums that wrap, widened and added up so often as is no number, and wrapped again: the sum of the sums."""
    o = Operations(Licence())
    ring = o.numbers.ring
    dest, own, first = (Rel(islpy.Map(f"{{ [i, j] -> [{k}] : 0 <= j <= i < 20 }}")) for k in ("i", "j", "0"))
    x, z = (ring.read(o.numbers.leaf(f"given {n} i8", 1), r, modulus_of("i8")) for n, r in (("x", own), ("z", first)))
    both = ring.add(x, z)
    wide = cast(o, "cast", both, "i8", "i32", dest.domain())

    def total(a: Value, dtype: str) -> Value:
        return o.accumulate("add", ring.constant(Fraction(), dest.range(), modulus_of(dtype)), dest, a, dtype, ())

    narrow = cast(o, "cast", total(wide, "i32"), "i32", "i8", dest.range())
    assert "size" in {o.numbers.arrays[n].label for key in narrow.terms for n in key}
    assert ring.equal(narrow, total(both, "i8"))
    assert not ring.equal(narrow, total(x, "i8"))


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(("first", "middle", "last"), [
    ("i8", "i16", "i32"), ("u8", "i32", "f64"), ("f16", "f32", "f64"), ("i8", "f32", "f64"), ("i16", "i16", "i32"),
    ("u8", "i16", "i32"), ("bf16", "f32", "f64"), ("i8", "i16", "f32"), ("u8", "i32", "f32"), ("i8", "i32", "f64"),
])  # fmt: skip
def test_a_widened_product_of_short_numbers_is_one_of_widened_numbers(
    first: str, middle: str, last: str, free: bool
) -> None:
    o = Operations(Licence(free=free))
    ring = o.numbers.ring
    short = [ring.read(o.numbers.leaf(f"{n} {first}", 1), LINE.identity(), modulus_of(first)) for n in "xz"]
    a, b = (cast(o, "cast", x, first, middle, LINE) for x in short)
    made = cast(o, "cast", o.apply("mul", (a, b), middle, middle, LINE), middle, last, LINE)
    wide = o.apply("mul", tuple(cast(o, "cast", x, middle, last, LINE) for x in (a, b)), last, last, LINE)
    turns = middle[0] == first[0] == "i" and last[0] == "f" and not free  # 0 * -1 is another zero there
    assert ring.equal(made, wide) == (holds_product(middle, first, first) and widens(middle, last) and not turns)
    square = cast(o, "cast", o.apply("mul", (a, a), middle, middle, LINE), middle, last, LINE)
    same = o.apply("mul", (cast(o, "cast", a, middle, last, LINE),) * 2, last, last, LINE)
    assert ring.equal(square, same) == (holds_product(middle, first, first) and widens(middle, last))
    third = o.apply("mul", (o.apply("mul", (a, b), middle, middle, LINE), b), middle, middle, LINE)
    more = o.apply("mul", (wide, cast(o, "cast", b, middle, last, LINE)), last, last, LINE)
    assert not ring.equal(cast(o, "cast", third, middle, last, LINE), more)


def test_what_was_widened_is_cast_as_it_was() -> None:
    o = Operations(Licence(free=False))
    for first, middle, last, op in (("f16", "f32", "bf16", "cast"), ("i8", "f32", "i16", "cast"),
                                    ("i16", "i32", "u8", "cast_sat"), ("i16", "f32", "i8", "cast")):  # fmt: skip
        x = o.numbers.ring.read(o.numbers.leaf(f"x {first}", 1), LINE.identity(), modulus_of(first))
        once = cast(o, op, x, first, last, LINE)
        twice = cast(o, op, cast(o, "cast", x, first, middle, LINE), middle, last, LINE)
        assert o.numbers.ring.equal(once, twice), (first, middle, last)
    x = o.numbers.ring.read(o.numbers.leaf("x i32", 1), LINE.identity(), modulus_of("i32"))
    lost = cast(o, "cast", cast(o, "cast", x, "i32", "f32", LINE), "f32", "f64", LINE)
    assert not o.numbers.ring.equal(lost, cast(o, "cast", x, "i32", "f64", LINE))


@pytest.mark.parametrize(("first", "narrow", "wide"), [
    (f, n, w) for f, n, w in product(("i8", "u8"), ("i8", "u8", "i16"), ("i16", "i32", "f32")) if n != w
])  # fmt: skip
def test_what_a_number_added_before_and_after_widening_makes_the_same(first: str, narrow: str, wide: str) -> None:
    """Where no sum leaves the narrow type, as far as it wraps; found out with all numbers there are."""
    some, to = np.array(several(first), numpy_dtype(first)), numpy_dtype(narrow)
    for c, more in product((1, 100, 127, 128, 129, 255), repeat=2):
        o = Operations(Licence())
        x = read(o, "x", first)
        early = (cast(o, "cast", x, first, narrow, LINE), o.literal(c, narrow, LINE))
        added = cast(o, "cast", o.apply("add", early, narrow, narrow, LINE), narrow, wide, LINE)
        for number in (more, more - 256):
            late = (cast(o, "cast", x, first, wide, LINE), o.literal(number, wide, LINE))
            shown = o.numbers.ring.equal(added, o.apply("add", late, wide, wide, LINE))
            with np.errstate(over="ignore"):
                before = (some.astype(to) + np.asarray(c).astype(to)).astype(np.int64)
            true = bool((before == some.astype(np.int64) + number).all())
            assert shown == (true and wide != "f32"), (c, number)


def test_a_number_at_some_points_or_beside_something_else_stays_where_it_is() -> None:
    o = Operations(Licence())
    ring, x = o.numbers.ring, read(o, "x", "i8")
    byte, wide = cast(o, "cast", x, "i8", "u8", LINE), cast(o, "cast", x, "i8", "i32", LINE)
    late = o.apply("add", (wide, o.literal(128, "i32", LINE)), "i32", "i32", LINE)
    half = region([(0,)], 1)
    some = ring.add(byte, Value(LINE, ring.constant(Fraction(128), half, 256).terms, 256))
    assert not ring.equal(cast(o, "cast", some, "u8", "i32", LINE), late)
    thrice = o.apply("add", (ring.scale(byte, Fraction(3)), o.literal(128, "u8", LINE)), "u8", "u8", LINE)
    other = o.apply("add", (ring.scale(wide, Fraction(3)), o.literal(128, "i32", LINE)), "i32", "i32", LINE)
    assert not ring.equal(cast(o, "cast", thrice, "u8", "i32", LINE), other)
    truth = cast(o, "cast", cast(o, "cast", x, "i8", "bool", LINE), "bool", "u8", LINE)  # 0 or 1
    early = o.apply("add", (truth, o.literal(128, "u8", LINE)), "u8", "u8", LINE)
    assert not ring.equal(cast(o, "cast", early, "u8", "i32", LINE), late)
    whole = o.apply("add", (byte, o.literal(128, "u8", LINE)), "u8", "u8", LINE)
    assert ring.equal(cast(o, "cast", whole, "u8", "i32", LINE), late)
