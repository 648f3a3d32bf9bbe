"""What every operation makes of values: the ring operations as polynomials, the others as functions with axioms.

The axioms are the table at the end; each names the numerics that it uses. Which of them hold is said by a
:class:`Licence`: without reassociation, float sums and products are functions too, and reductions keep their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from fractions import Fraction

import numpy as np

from isam.classes import dataclass
from isam.ir.dtype import DTYPES, numpy_dtype
from isam.ir.kernel import COMMUTATIVE
from isam.ir.relation import Region, Rel, TooMuch
from isam.proof.numbering import Numbering
from isam.proof.value import ONE, Value

SIMPLE = 10_000  # a float literal is the fraction with the least denominator up to this that rounds to it


@dataclass(frozen=True, slots=True)
class Licence:
    """What may be used of floats. ``free``: sums and products are those of the reals, in any order, and functions obey
    the axioms (reassociates, rounding); ``finite``: no value is infinite or NaN."""

    free: bool = True
    finite: bool = False

    @property
    def uses(self) -> tuple[str, ...]:
        return (("reassociates", "rounding") if self.free else ()) + (("finite",) if self.finite else ())


@dataclass(slots=True)
class Operations:
    """Applies operations to values over the points of a statement."""

    licence: Licence
    numbers: Numbering = field(init=False)

    def __post_init__(self) -> None:
        self.numbers = Numbering(support=not self.licence.finite)

    # literals -----------------------------------------------------------------------------------------------------
    def literal(self, value: float | int | bool, dtype: str, over: Region) -> Value:
        ring, modulus = self.numbers.ring, modulus_of(dtype)
        if isinstance(value, float) and not math.isfinite(value):
            return ring.read(self.infinity(value, dtype), over.to_nothing(), modulus)
        exact, held = Fraction(value), held_as(Fraction(value), dtype)
        if held is None:
            return ring.read(self.infinity(math.copysign(math.inf, value), dtype), over.to_nothing(), modulus)
        if not self.licence.free:
            exact = held
        elif isinstance(value, float):
            near = exact.limit_denominator(SIMPLE)
            exact = near if float(near) == value else exact
        return ring.constant(exact, over, modulus)

    def infinity(self, value: float, dtype: str) -> int:
        return self.numbers.leaf(f"{value} {dtype}", 0)

    # operations ---------------------------------------------------------------------------------------------------
    def apply(self, op: str, args: tuple[Value, ...], source: str, target: str, over: Region) -> Value:
        """``op`` on values of dtype ``source``, giving dtype ``target``."""
        if op == "copy":
            return args[0]
        if op in ("cast", "cast_sat"):
            return self._cast(op, args[0], source, target, over)
        kind = DTYPES[source].kind
        if op in RING and kind in "iu":
            return self._ring(op, args, source)
        if op in RING and kind == "f":
            return self._ring(op, args, source) if self.licence.free else self._strict(op, args, source, over)
        axiom = AXIOMS.get(op)
        if axiom is not None and kind in axiom.kinds and (self.licence.free or axiom.exact or kind != "f"):
            found = axiom.says(self, args, source, over)
            if found is not None:
                return found
        return self.function(op, args, source, target, over)

    def function(self, op: str, args: tuple[Value, ...], source: str, target: str, over: Region) -> Value:
        label = f"{op} {source}" if source == target else f"{op} {source} {target}"
        return self.numbers.function(label, args, over, modulus_of(target), op in COMMUTATIVE)

    def _ring(self, op: str, args: tuple[Value, ...], dtype: str) -> Value:
        ring, a = self.numbers.ring, args[0]
        if op == "neg":
            return ring.scale(a, -ONE)
        if op == "mul":
            return self.gathered(ring.mul(a, args[1]), dtype)
        return ring.add(a, args[1] if op == "add" else ring.scale(args[1], -ONE))

    def _strict(self, op: str, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
        """One rounding per operation: only signs move, ones and zeros go."""
        ring, a = self.numbers.ring, args[0]
        if op == "neg":
            return ring.scale(a, -ONE)
        b = ring.scale(args[1], -ONE) if op == "sub" else args[1]
        for x, y in ((a, b), (b, a)):
            c = number_of(x)
            if c is not None and op != "mul" and not c:
                return y
            if c is not None and op == "mul" and abs(c) == 1:
                return ring.scale(y, c)
        return self.function("mul" if op == "mul" else "add", (a, b), dtype, dtype, over)

    def _cast(self, op: str, a: Value, source: str, target: str, over: Region) -> Value:
        if source == target:
            return a
        numbers = self.numbers
        if widens(source, target):
            c = number_of(a)
            held = None if c is None else held_as(c, source)
            if c is not None and held is not None:
                real = self.licence.free and DTYPES[source].kind == "f"
                return numbers.ring.constant(c if real else held, over, modulus_of(target))
            op = "cast"
        if len(a.terms) == 1:  # of a value that comes from a type whose values all fit: as if cast from that at once
            ((key, parts),) = a.terms.items()
            inner = numbers.arrays[key[0]] if len(parts) == len(key) == 1 and parts[0][0] == 1 else None
            if inner is not None and inner.label.startswith("cast ") and a.over.inside(parts[0][1].domain()):
                first = inner.label.split()[1]
                if widens(first, source) and (widens(first, target) or first == target):
                    plain = numbers.ring.through(parts[0][1], inner.args[0])
                    return self._cast(op, plain, first, target, over)
        return self.function(op, (a,), source, target, over)

    # reductions ---------------------------------------------------------------------------------------------------
    def accumulate(self, op: str, old: Value, dest: Rel, new: Value, dtype: str, order: tuple[Rel, ...]) -> Value:
        """``old`` at the written elements, combined with the values of all points that lead to each. ``order``: the
        coordinates of a point that say when its turn is."""
        kind = DTYPES[dtype].kind
        ring, numbers = self.numbers.ring, self.numbers
        if op in ("max", "min"):
            return self._extreme(op, old, dest, new, dtype)
        if kind == "f" and not self.licence.free:
            return self._fold(op, old, dest, new, dtype, order)
        if op == "add":
            return ring.add(old, ring.summed(dest, new, numbers.leaf("size", 1)))
        return self.gathered(ring.mul(old, self._product(dest, new, dtype)), dtype)

    def _extreme(self, op: str, old: Value, dest: Rel, new: Value, dtype: str) -> Value:
        back, numbers = dest.inverse(), self.numbers
        some = {n: back.then(r) for n, r in numbers.elements(new, dtype).items()}
        return self.extremum(op, dtype, old.over, (numbers.elements(old, dtype), some))

    def extremum(self, op: str, dtype: str, over: Region, branches: tuple[dict[int, Rel], ...]) -> Value:
        least = self.infinity(-math.inf if op == "max" else math.inf, dtype)
        return self.numbers.extremum(f"{op} {dtype}", least, over, branches, modulus_of(dtype))

    def _product(self, dest: Rel, new: Value, dtype: str) -> Value:
        """The product of all values that lead to one element: a function of how often each factor is taken."""
        ring, numbers, over = self.numbers.ring, self.numbers, new.over
        factors = Value(over, {(n,): ((ONE, r),) for n, r in numbers.elements(new, dtype).items()})
        powers = ring.summed(dest, factors, numbers.leaf("size", 1))
        return numbers.function(f"product {dtype}", (powers,), powers.over, modulus_of(dtype))

    def gathered(self, a: Value, dtype: str) -> Value:
        """A product with a product among its factors is one product."""
        ring, numbers, label = self.numbers.ring, self.numbers, f"product {dtype}"
        if len(a.terms) != 1:
            return a
        ((key, parts),) = a.terms.items()
        if len(parts) > 1 or not any(numbers.arrays[n].label == label for n in key):
            return a
        w, r = next(iter(parts))
        at = 0
        powers: Value | None = None
        for n in key:
            one = r.picked(tuple(range(at, at + numbers.ranks[n])))
            at += numbers.ranks[n]
            inner = numbers.arrays[n]
            some = ring.through(one, inner.args[0]) if inner.label == label else ring.read(n, one)
            powers = some if powers is None else ring.add(powers, some)
        if powers is None or not r.is_function() or not a.over.inside(r.domain()):
            return a
        return ring.scale(numbers.function(label, (powers,), a.over, a.modulus), w)

    def _fold(self, op: str, old: Value, dest: Rel, new: Value, dtype: str, order: tuple[Rel, ...]) -> Value:
        """A reduction whose terms are taken in their order: it is the same when its ordered terms are."""
        numbers, back = self.numbers, dest.inverse()
        turn = numbers.leaf(f"turn {len(order)}", len(order))
        when = order[0] if order else new.over.to_nothing()
        for o in order[1:]:
            when = when.beside(o)
        terms = {}
        for n, r in numbers.elements(new, dtype).items():
            key, places = numbers.ring._merged((turn,), (n,))
            terms[key] = ((ONE, back.then(when.beside(r).picked(places))),)
        family = Value(dest.range(), terms)
        return numbers.function(f"fold {op} {dtype}", (old, family), old.over, 0)


def modulus_of(dtype: str) -> int:
    d = DTYPES[dtype]
    return 1 << d.bits if d.kind in "iu" else 0


def held_as(c: Fraction, dtype: str) -> Fraction | None:
    """What a number becomes in a buffer of ``dtype``: wrapped, or rounded; None where that is infinite."""
    d = DTYPES[dtype]
    if d.kind in "iu":
        least = -(1 << d.bits - 1) if d.kind == "i" else 0
        return (c - least) % (1 << d.bits) + least
    if d.kind != "f":
        return c
    try:
        with np.errstate(over="ignore"):
            near = float(numpy_dtype(dtype).type(float(c)))
    except OverflowError:
        return None
    return Fraction(near) if math.isfinite(near) else None


def number_of(a: Value) -> Fraction | None:
    """The number that the value is everywhere, if it is one."""
    if not a.terms:
        return Fraction()
    if a.terms.keys() != {()} or len(a.terms[()]) != 1:
        return None
    w, r = a.terms[()][0]
    return w if a.over.inside(r.domain()) else None


def widens(source: str, target: str) -> bool:
    """Whether every value of dtype ``source`` is one of dtype ``target``."""
    a, b = DTYPES[source], DTYPES[target]
    digits = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
    if a.kind == "b" or a.name == b.name:
        return True
    if a.kind == "f":
        return b.kind == "f" and digits[b.name] > digits[a.name] and (a.name, b.name) != ("bf16", "f16")
    own = a.bits if a.kind == "u" else a.bits - 1
    if b.kind == "f":
        return digits[b.name] >= own
    return b.kind != "b" and (b.bits if b.kind == "u" else b.bits - 1) >= own and (a.kind == "u" or b.kind == "i")


# axioms --------------------------------------------------------------------------------------------------------------
RING = ("add", "sub", "mul", "neg")


@dataclass(frozen=True, slots=True)
class Axiom:
    """``law`` says what equals what; ``says`` brings the operation to the other side of it (None: not here)."""

    law: str
    says: Callable[[Operations, tuple[Value, ...], str, Region], Value | None]
    kinds: str = "f"
    exact: bool = False

    @property
    def needs(self) -> tuple[str, ...]:
        return () if self.exact else ("rounding",)


def _reciprocal(o: Operations, a: Value, dtype: str, over: Region) -> Value:
    c = number_of(a)
    if c:
        return o.numbers.ring.constant(1 / c, over)
    return o.function("reciprocal", (a,), dtype, dtype, over)


def _div(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    return o.numbers.ring.mul(args[0], _reciprocal(o, args[1], dtype, over))


def _rsqrt(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    return _reciprocal(o, o.function("sqrt", args, dtype, dtype, over), dtype, over)


def _logistic(o: Operations, a: Value, dtype: str, over: Region) -> Value:
    ring = o.numbers.ring
    e = o.function("exp", (ring.scale(a, -ONE),), dtype, dtype, over)
    return _reciprocal(o, ring.add(e, ring.constant(ONE, over)), dtype, over)


def _sigmoid(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    return _logistic(o, args[0], dtype, over)


def _tanh(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    ring = o.numbers.ring
    half = _logistic(o, ring.scale(args[0], Fraction(2)), dtype, over)
    return ring.add(ring.scale(half, Fraction(2)), ring.constant(-ONE, over))


def _abs(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    a = args[0]
    return _max(o, (a, o.numbers.ring.scale(a, -ONE)), dtype, over)


def _max(o: Operations, args: tuple[Value, ...], dtype: str, over: Region, op: str = "max") -> Value:
    a, b = (o.numbers.elements(x, dtype) for x in args)
    return o.extremum(op, dtype, over, (a, b))


def _min(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    return _max(o, args, dtype, over, "min")


def _gt(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    return o.function("lt", args[::-1], dtype, "bool", over)


def _ge(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    return o.function("le", args[::-1], dtype, "bool", over)


def _whole(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    return args[0]


def _pow(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value | None:
    n = number_of(args[1])
    if n is None or n.denominator != 1 or not 1 <= n <= 4:
        return None
    out = args[0]
    for _ in range(int(n) - 1):
        out = o.numbers.ring.mul(out, args[0])
    return out


def _select(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value | None:
    """``select(a < b, b, a)`` is ``max(a, b)`` where no value is NaN."""
    c, yes, no = args
    if len(c.terms) != 1 or (DTYPES[dtype].kind == "f" and not o.licence.finite):
        return None
    ((key, parts),) = c.terms.items()
    test = o.numbers.arrays[key[0]] if len(key) == len(parts) == 1 and parts[0][0] == 1 else None
    if test is None or test.label.split()[0] not in ("lt", "le") or not over.inside(parts[0][1].domain()):
        return None
    ring = o.numbers.ring
    small, large = (ring.through(parts[0][1], x) for x in test.args)
    if ring.equal(small, no) and ring.equal(large, yes):
        return _max(o, (yes, no), dtype, over)
    if ring.equal(small, yes) and ring.equal(large, no):
        return _max(o, (yes, no), dtype, over, "min")
    return None


AXIOMS: dict[str, Axiom] = {
    "div": Axiom("a / b = a * (1 / b)", _div),
    "rsqrt": Axiom("rsqrt(a) = 1 / sqrt(a)", _rsqrt),
    "sigmoid": Axiom("sigmoid(a) = 1 / (1 + exp(-a))", _sigmoid),
    "tanh": Axiom("tanh(a) = 2 * sigmoid(2 * a) - 1", _tanh),
    "abs": Axiom("abs(a) = max(a, -a)", _abs, "fi"),
    "max": Axiom("max is associative, commutative, idempotent; -inf is neutral", _max, "fiu", exact=True),
    "min": Axiom("min is associative, commutative, idempotent; inf is neutral", _min, "fiu", exact=True),
    "gt": Axiom("a > b = b < a", _gt, "fiub", exact=True),
    "ge": Axiom("a >= b = b <= a", _ge, "fiub", exact=True),
    "floor": Axiom("floor(n) = n", _whole, "iu", exact=True),
    "ceil": Axiom("ceil(n) = n", _whole, "iu", exact=True),
    "round": Axiom("round(n) = n", _whole, "iu", exact=True),
    "pow": Axiom("pow(a, n) = a * ... * a, for n = 1 to 4", _pow, "fiu"),
    "select": Axiom("select(a < b, b, a) = max(a, b), and min likewise; finite for floats", _select, "fiu", exact=True),
}
__all__ = ["AXIOMS", "Axiom", "Licence", "Operations", "TooMuch", "held_as", "modulus_of", "number_of", "widens"]
