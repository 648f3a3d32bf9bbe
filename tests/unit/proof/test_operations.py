"""What operations make of values, evaluated element by element, is what they do to numbers: random formulas.

Values are read as what they stand for, arrays of functions by the names they have, and worked out with the arithmetic
of the interpreter. What they come to is on record in the form they have: as much is known to be equal as before.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest

from isam.ir.arithmetic import Numbers, convert
from isam.ir.dtype import DTYPES, numpy_dtype
from isam.ir.relation import Rel, TooMuch
from isam.proof.casts import held_as, modulus_of
from isam.proof.operations import Licence, Operations
from isam.proof.value import ONE, Value, number_of
from tests.unit.proof.pointwise import Mono, Point, Poly, pairs, points, polys, region, relation
from tests.unit.proof.verdicts import on_record

LINE = [(k,) for k in range(3)]
FLOATS = ("f64", "f32", "f16", "bf16")
INTEGERS = ("i64", "i32", "i16", "i8", "u8")
BOTH = ("add", "sub", "mul", "max", "min")
COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")


def numbers_of(rng: random.Random, dtype: str) -> np.ndarray:
    """Elements of an array, among them equal ones and the ends of the range."""
    if DTYPES[dtype].kind == "f":
        some = [0.0, -0.0, 1.0, -1.0, 0.1, 1.7, -3.25, 5.0, 1e-3, 40.0]
        return convert(np.array([rng.choice(some) for _ in range(4)]), dtype)
    if dtype == "bool":
        return np.array([rng.random() < 0.5 for _ in range(4)])
    limits = np.iinfo(numpy_dtype(dtype))
    some = [limits.min, limits.max, 0, 1, 2, 3, 5, 100, limits.max // 2 + 1]
    return np.array([rng.choice(some) for _ in range(4)], numpy_dtype(dtype))


@dataclass
class Reading:
    """Works values out. ``given``: the elements of arrays that are given, by name."""

    o: Operations
    given: dict[str, np.ndarray]
    known: dict[tuple[int, Point, str], Any] = field(default_factory=dict)
    form: dict[tuple[int, Point], str] = field(default_factory=dict)

    def all(self, a: Value, dtype: str) -> dict[Point, Any]:
        return {p: self.number(x, dtype) for p, x in polys(self.o.numbers.ring, a).items()}

    def number(self, x: Poly, dtype: str) -> Any:
        """A polynomial of elements, as a number of this type: of floats, without leave, one element or number."""
        kind = DTYPES[dtype].kind
        plain = self.o.numbers.ring.logical.issuperset(n for m in x for n, _ in m)
        if kind == "f" and not self.o.licence.free and not plain:
            ((m, w),) = x.items() if x else (((), Fraction()),)
            assert len(m) <= 1, (m, w)
            assert not m or abs(w) == 1, (m, w)
            sign = convert(np.asarray(float(w)), dtype)
            return sign * self.element(*m[0], dtype) if m else sign
        total = Fraction()
        for m, w in x.items():
            total += w * reduce(lambda a, b: a * b, [_fraction(self.element(n, at, dtype)) for n, at in m], ONE)
        if kind == "f":
            return convert(np.asarray(float(total)), dtype)
        held = held_as(total, dtype)
        assert held is not None
        assert kind != "b" or total in (0, 1)
        return np.asarray(int(held), numpy_dtype(dtype))

    def element(self, n: int, at: Point, dtype: str) -> Any:
        if (n, at, dtype) not in self.known:
            self.known[n, at, dtype] = self._element(n, at, dtype)
        return self.known[n, at, dtype]

    def _element(self, n: int, at: Point, dtype: str) -> Any:
        array = self.o.numbers.arrays[n]
        if not array.args:
            head, _, rest = array.label.partition(" ")
            if head == "number":
                return convert(np.asarray(float(Fraction(rest.split()[0]))), dtype)
            infinite = head in ("inf", "-inf")
            return np.asarray(float(head), numpy_dtype(dtype)) if infinite else self.given[array.label][at]
        op, source, *more = array.label.split()
        target = more[0] if more else source
        args = [polys(self.o.numbers.ring, self.at(a, at))[at] for a in array.args]
        if op == "value":
            return self.number(args[0], source)
        if op in ("max", "min") and len(args) == 1:
            each = [self.element(*f, source) for (f,) in args[0]]
            return reduce(np.maximum if op == "max" else np.minimum, each)
        if op == "product":
            return self.power(args[0], source)
        types = ["bool", source, source] if op == "select" else [source] * len(args)
        found = tuple(np.asarray(self.number(a, t)) for a, t in zip(args, types, strict=True))
        if op == "neg":
            return np.negative(found[0])
        with np.errstate(all="ignore"):
            return convert(Numbers().apply(op, found, source, target), target)

    def power(self, x: Poly, dtype: str) -> Any:
        """Factors as often as they are counted."""
        out = 1
        for m, w in x.items():
            size = [at[0] for n, at in m if self.o.numbers.arrays[n].label == "size"]
            (f,) = [f for f in m if self.o.numbers.arrays[f[0]].label != "size"]
            out *= int(self.element(*f, dtype)) ** int(w * reduce(lambda a, b: a * b, size, 1))
        return np.asarray(int(held_as(Fraction(out), dtype) or 0), numpy_dtype(dtype))

    def at(self, a: Value, p: Point) -> Value:
        return self.o.numbers.ring.on(a, region([p], len(p)))

    # forms ------------------------------------------------------------------------------------------------------------
    def text(self, a: Value) -> list[str]:
        return [self.sum(x) for x in polys(self.o.numbers.ring, a).values()]

    def sum(self, x: Poly) -> str:
        return " + ".join(sorted(f"{w} {self.factors(m)}".strip() for m, w in x.items())) or "0"

    def factors(self, m: Mono) -> str:
        return " ".join(sorted(self.name(*f) for f in m))

    def name(self, n: int, at: Point) -> str:
        if (n, at) not in self.form:
            array = self.o.numbers.arrays[n]
            found = [self.sum(polys(self.o.numbers.ring, self.at(a, at))[at]) for a in array.args]
            self.form[n, at] = f"{array.label}({', '.join(found)})" if found else f"{array.label}{list(at)}"
        return self.form[n, at]


@dataclass
class Formulas:
    """Random formulas, with what they come to."""

    rng: random.Random
    o: Operations
    reading: Reading
    floats: bool

    def leaf(self, dtype: str) -> tuple[Value, dict[Point, Any]]:
        over = region(LINE, 1)
        if self.rng.random() < 0.3:
            c: Any = self.rng.choice([True, False] if dtype == "bool" else [0, 1, -1, 2, 3, 200])
            c = float(c) if DTYPES[dtype].kind == "f" else c
            made = Numbers().literal(c, dtype)
            return self.o.literal(c, dtype, over), dict.fromkeys(LINE, made)
        name = f"{self.rng.choice('xz')} {dtype}"
        array = self.reading.given.setdefault(name, numbers_of(self.rng, dtype))
        n = self.o.numbers.leaf(name, 1)
        if dtype == "bool":
            self.o.numbers.ring.logical.add(n)
        at = [(p, (self.rng.randint(0, 3),)) for p in LINE]
        return self.o.numbers.ring.read(n, relation(at, 1, 1), modulus_of(dtype)), {p: array[q] for p, q in at}

    def formula(self, dtype: str, depth: int) -> tuple[Value, dict[Point, Any]]:
        rng = self.rng
        if not depth:
            return self.leaf(dtype)
        others = FLOATS if self.floats else INTEGERS
        if dtype == "bool":
            source = rng.choice([*others, "bool"])
            op = rng.choice(["and", "or", "not"] if source == "bool" else [*COMPARED, "cast"])
        else:
            source = rng.choice([dtype, dtype, *others, "bool"])
            ops = [*BOTH, "neg", "select", "abs", "copy", "div", "pow", "floor"]
            op = rng.choice(ops if source == dtype else ["cast", "cast", "cast_sat"])
            if op == "cast_sat" and DTYPES[dtype].kind == "f":
                op = "cast"
        types = {"select": ["bool", source, source], "neg": [source], "abs": [source], "copy": [source],
                 "cast": [source], "cast_sat": [source], "not": [source], "floor": [source]}  # fmt: skip
        args = [self.formula(t, depth - 1) for t in types.get(op, [source, source])]
        return self.applied(op, args, source, dtype)

    def applied(self, op: str, args: list[tuple[Value, dict[Point, Any]]], source: str, dtype: str) -> Any:
        made = self.o.apply(op, tuple(a for a, _ in args), source, dtype, region(LINE, 1))
        with np.errstate(all="ignore"):
            said = {p: Numbers().apply(op, tuple(np.asarray(v[p]) for _, v in args), source, dtype) for p in LINE}
        return made, said


def _fraction(x: Any) -> Fraction:
    return Fraction(x.astype(np.float64).item() if x.dtype.kind not in "iub" else x.item())


def formulas(seed: int, floats: bool, free: bool = False) -> Formulas:
    o = Operations(Licence(free=free))
    return Formulas(random.Random(seed), o, Reading(o, {}), floats)


@pytest.mark.parametrize("seed", range(16))
def test_formulas(seed: int) -> None:
    """Integers with leave to take floats for reals, or without: it does not matter for them."""
    f = formulas(seed, floats=seed % 2 == 0, free=seed % 4 == 1)
    said = []
    for _ in range(14):
        dtype = f.rng.choice([*(FLOATS if f.floats else INTEGERS), "bool"])
        try:
            made, expected = f.formula(dtype, f.rng.choice([1, 2, 2, 3]))
        except TooMuch as e:
            said.append(str(e))
            continue
        assert points(made.over) == LINE
        assert made.modulus == modulus_of(dtype)
        got = f.reading.all(made, dtype)
        assert all(np.array_equal(got[p], expected[p], equal_nan=True) for p in LINE), f.reading.text(made)
        said += f.reading.text(made)
    on_record(f"operations: formulas {seed}", said)


CASTS = [(a, b) for a in DTYPES for b in DTYPES if a != b]


@pytest.mark.parametrize("part", range(6))
def test_casts_of_casts_and_sums(part: int) -> None:
    """Every pair of types, there and on: of an element, a number, a sum, a product, what is in pieces."""
    rng = random.Random(part)
    said = []
    for k, (first, second) in enumerate(CASTS[part::6]):
        floats = "f" in (DTYPES[first].kind, DTYPES[second].kind)
        f = formulas(1000 * part + k, floats)
        for third in rng.sample([*DTYPES], 3):
            a, b = f.leaf(first), f.leaf(first)
            pick = [a]
            if first != "bool":
                pick.append(f.applied("mul", [a, b], first, first))
                pick.append(f.applied("add", [a, f.applied("neg", [b], first, first)], first, first))
            for x in pick:
                for one, two in (("cast", "cast"), ("cast_sat", "cast"), ("cast", "cast_sat")):
                    if any(op == "cast_sat" and DTYPES[t].kind not in "iu" for op, t in ((one, second), (two, third))):
                        continue
                    try:
                        made, expected = f.applied(two, [f.applied(one, [x], first, second)], second, third)
                    except TooMuch as e:
                        said.append(str(e))
                        continue
                    got = f.reading.all(made, third)
                    same = (np.array_equal(got[p], expected[p], equal_nan=True) for p in LINE)
                    assert all(same), (first, second, third, f.reading.text(made), got, expected)
                    said += f.reading.text(made)
    on_record(f"operations: casts {part}", said)


@pytest.mark.parametrize("seed", range(10))
def test_accumulating(seed: int) -> None:
    """Sums, products and extremes of what leads to one element, onto what was there."""
    f = formulas(seed, floats=seed % 3 == 0)
    rng, o, said = f.rng, f.o, []
    over = [(i, j) for i in range(3) for j in range(2)]
    for _ in range(5):
        dtype = rng.choice(["f32", "f16"] if f.floats else INTEGERS)
        op = rng.choice(["max", "min"] if f.floats else ["add", "mul", "max", "min"])
        old, before = f.formula(dtype, rng.choice([0, 1]))
        new, each = f.formula(dtype, rng.choice([0, 1]))
        path = relation([(p, (rng.choice([0, 0, 1, 2]),)) for p in over], 2, 1)
        dest = relation([(p, (p[0] if p[0] < 2 else 0,)) for p in over], 2, 1)
        ends = region([(0,), (1,)], 1)
        turn = Rel.affine(("i", "j"), [_order()], region(over, 2))
        made = o.accumulate(op, o.numbers.ring.on(old, ends), dest, o.numbers.ring.through(path, new), dtype, (turn,))
        got = f.reading.all(made, dtype)
        read = dict(pairs(path))
        for (e,) in points(ends):
            total = np.asarray(before[e,])
            for p, (q,) in pairs(dest):
                if q == e:
                    with np.errstate(all="ignore"):
                        total = Numbers().apply(op, (total, np.asarray(each[read[p]])), dtype, dtype)
            assert np.array_equal(got[e,], total), (op, dtype, f.reading.text(made))
        said += f.reading.text(made)
    on_record(f"operations: accumulating {seed}", said)


def _order() -> Any:
    from isam.ir.affine import Affine

    return Affine.of("i", 2) + "j"


def test_literals() -> None:
    over = region(LINE, 1)
    free, strict = Operations(Licence()), Operations(Licence(free=False))
    third = Fraction(1, 3)
    assert number_of(free.literal(1 / 3, "f32", over)) == third
    assert number_of(strict.literal(1 / 3, "f32", over)) == Fraction(float(np.float32(1 / 3)))
    odd = 0.123456789
    assert number_of(free.literal(odd, "f64", over)) == Fraction(odd)
    assert number_of(free.literal(10000 / 10001, "f64", over)) == Fraction(10000 / 10001)
    assert number_of(free.literal(9999 / 10000, "f64", over)) == Fraction(9999, 10000)
    assert number_of(free.literal(300, "u8", over)) == 300 % 256
    assert number_of(free.literal(True, "bool", over)) == 1
    assert number_of(free.literal(-1, "i8", over)) == 255  # as weights of what wraps are
    inf = float("inf")
    for value, dtype, name in ((inf, "f32", "inf f32"), (-inf, "f64", "-inf f64"), (1e9, "f16", "inf f16"),
                               (-1e9, "f16", "-inf f16"), (inf, "i8", "inf i8")):  # fmt: skip
        for o in (free, strict):
            made = o.literal(value, dtype, over)
            ((key, ((w, r),)),) = made.terms.items()
            assert (w, [o.numbers.arrays[n].label for n in key], points(r.domain())) == (1, [name], LINE)
            assert made.modulus == modulus_of(dtype)
    zero = strict.literal(-0.0, "f32", over)
    ((key, _),) = zero.terms.items()
    assert [strict.numbers.arrays[n].label for n in key] == ["neg f32"]
    assert number_of(strict.literal(0.0, "f32", over)) == number_of(free.literal(-0.0, "f32", over)) == 0
    assert number_of(strict.literal(-2.0, "f32", over)) == -2
    for value, dtype in ((-0.0, "bool"), (-0.0, "i32"), (-256, "i8")):  # only floats have a negative zero
        for o in (free, strict):
            made = o.literal(value, dtype, over)
            assert (number_of(made), [key for key in made.terms if key]) == (0, [])


def test_what_a_licence_uses() -> None:
    assert Licence(free=False).uses == ()
    assert Licence().uses == ("reassociates", "rounding")
    assert Licence(free=False, finite=True).uses == ("finite",)
    assert Licence(finite=True).uses == ("reassociates", "rounding", "finite")
    for finite in (False, True):
        assert Operations(Licence(finite=finite)).numbers.ring.support is not finite


def test_a_product_among_factors_is_one_product() -> None:
    o = Operations(Licence())
    over, ring = region(LINE, 1), o.numbers.ring
    x, z = (ring.read(o.numbers.leaf(n, 1), region([(0,), (1,), (2,)], 1).identity()) for n in "xz")
    ends = region([(0,)], 1)
    dest = relation([(p, (0,)) for p in LINE], 1, 1)
    one = ring.constant(ONE, ends)

    def all_of(a: Value, old: Value) -> Value:
        return o.accumulate("mul", old, dest, a, "f32", ())

    both = all_of(z, all_of(x, one))
    assert ring.equal(both, all_of(x, all_of(z, one)))
    assert not ring.equal(both, all_of(x, all_of(x, one)))
    assert [o.numbers.arrays[n].label for key in both.terms for n in key] == ["product f32"]
    twice = ring.scale(all_of(x, one), Fraction(2))
    ((key, ((w, _),)),) = all_of(z, twice).terms.items()
    assert (w, len(key)) == (2, 1)
    plain = ring.mul(x, z)
    assert o.gathered(plain, "f32") is plain
    assert number_of(o.gathered(ring.constant(ONE, over), "f32")) == 1


def test_a_zero_in_a_part_turned() -> None:
    """Without leave, of two parts one zero: its sign is another number where one divides by it."""
    o = Operations(Licence(free=False))
    ring, n = o.numbers.ring, o.numbers.leaf("x f32", 1)
    zero = ring.constant(Fraction(), region(LINE[:1], 1))
    some = ring.read(n, region(LINE[1:], 1).identity())
    reading = Reading(o, {"x f32": np.array([1.5, 2.0, -3.0, 0.0], np.float32)})
    for a in (ring.joined(zero, some), ring.joined(some, zero), zero):
        (turned,) = (o.apply("neg", (a,), "f32", "f32", a.over),)
        got = reading.all(turned, "f32")
        assert np.signbit(got[0,])
        assert all(got[p] == -reading.given["x f32"][p] for p in points(a.over) if p != (0,))
    plain = o.apply("neg", (some,), "f32", "f32", some.over)
    assert {w for t in plain.terms.values() for w, _ in t} == {-1}


def test_a_fold_of_single_terms_needs_no_turns() -> None:
    """Where one point leads to each element there is no order, and equal terms onto equal numbers are equal."""
    o, dest = Operations(Licence(free=False)), relation([(p, p) for p in LINE], 1, 1)
    ring = o.numbers.ring
    x, z = (ring.read(o.numbers.leaf(n, 1), region(LINE, 1).identity()) for n in "xz")
    once, again, other = (o.accumulate("add", z, dest, a, "f32", ()) for a in (x, x, z))
    assert [o.numbers.arrays[n].label for key in once.terms for n in key] == ["fold add f32"]
    assert points(once.over) == LINE
    assert ring.equal(once, again)
    assert not ring.equal(once, other)
