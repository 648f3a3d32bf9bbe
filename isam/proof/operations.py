"""What every operation makes of values: the ring operations as polynomials, the others as functions with axioms.

The axioms are a table (:mod:`isam.proof.axioms`); each names the numerics that it uses. Which of them hold is said by a
:class:`Licence`: without reassociation, float sums and products are functions too, and reductions keep their order.
"""

from __future__ import annotations

import math
from dataclasses import field
from fractions import Fraction
from functools import reduce

from isam.classes import dataclass
from isam.ir.dtype import DTYPES
from isam.ir.kernel import COMMUTATIVE
from isam.ir.relation import Region, Rel
from isam.proof.axioms import AXIOMS, single
from isam.proof.casts import cast, held_as, modulus_of, narrowest
from isam.proof.numbering import Numbering
from isam.proof.value import ONE, Value, number_of

RING = ("add", "sub", "mul", "neg")
SIMPLE = 10_000  # a float literal is the fraction with the least denominator up to this that rounds to it


@dataclass(frozen=True, slots=True)
class Licence:
    """What may be used of floats. ``free``: sums and products are those of the reals, in any order, and functions obey
    the axioms (reassociates, rounding); ``finite``: no value is infinite or NaN; ``scaled``: a common factor, number or
    function that rises goes out of the greatest and the least of reals (without, nothing does); where not ``free``,
    signs and numbers do."""

    free: bool = True
    finite: bool = False
    scaled: bool = False

    @property
    def uses(self) -> tuple[str, ...]:
        return (("reassociates", "rounding") if self.free else ()) + (("finite",) if self.finite else ())


@dataclass(slots=True)
class Operations:
    """Applies operations to values over the points of a statement. ``met``: something asked whether factors go out of
    the greatest and the least; until then it makes no difference."""

    licence: Licence
    numbers: Numbering = field(init=False)
    met: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.numbers = Numbering(support=not self.licence.finite)

    def scales(self) -> bool:
        """Whether factors go out of the greatest and the least of reals."""
        self.met = True
        return self.licence.scaled

    # literals -----------------------------------------------------------------------------------------------------
    def literal(self, value: float | int | bool, dtype: str, over: Region) -> Value:
        ring, modulus = self.numbers.ring, modulus_of(dtype)
        if isinstance(value, float) and not math.isfinite(value):
            return ring.read(self.infinity(value, dtype), over.to_nothing(), modulus)
        exact, held = Fraction(value), held_as(Fraction(value), dtype)
        if held is None:
            return ring.read(self.infinity(math.copysign(math.inf, value), dtype), over.to_nothing(), modulus)
        if not self.licence.free or dtype == "bool":
            if not held and math.copysign(1, value) < 0 and DTYPES[dtype].kind == "f":
                return self.turned(ring.constant(held, over, modulus), dtype, over)
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
            return cast(self, op, args[0], source, target, over)
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
        out = self.numbers.function(label, args, over, modulus_of(target), op in COMMUTATIVE)
        if target == "bool":
            self.numbers.ring.logical.update(n for key in out.terms for n in key)
        return out

    def _ring(self, op: str, args: tuple[Value, ...], dtype: str) -> Value:
        ring, a = self.numbers.ring, args[0]
        if op == "neg":
            return ring.scale(a, -ONE)
        if op == "mul":
            return self.gathered(ring.mul(a, args[1]), dtype)
        return ring.add(a, args[1] if op == "add" else ring.scale(args[1], -ONE))

    def _strict(self, op: str, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
        """One rounding per operation: only signs move, and ones go. Of zeros only a subtracted one: the sum of a
        negative zero and a zero is another zero."""
        if op == "neg":
            return self.turned(args[0], dtype, over)
        a, b = args
        if op == "sub" and number_of(b) == 0:
            return a
        b = self.turned(b, dtype, over) if op == "sub" else b
        if op == "add" and a.terms.keys() == b.terms.keys() and self.numbers.ring.equal(a, b):
            op, b = "mul", self.numbers.ring.constant(Fraction(2), over)
        for x, y in ((a, b), (b, a)) if op == "mul" else ():
            c = number_of(x)
            if c is not None and abs(c) == 1:
                return y if c > 0 else self.turned(y, dtype, over)
        return self.function("mul" if op == "mul" else "add", (a, b), dtype, dtype, over)

    def turned(self, a: Value, dtype: str, over: Region) -> Value:
        """The value with the other sign. A negative zero is a function of zero: as numbers they are the same."""
        if (before := self.negated(a)) is not None:
            return before
        if not all(w for w, _ in a.terms.get((), ())) or number_of(a) == 0:
            return self.function("neg", (a,), dtype, dtype, over)
        return self.numbers.ring.scale(a, -ONE)

    def negated(self, a: Value) -> Value | None:
        """What a value is the negative of, where it is kept as a function of that."""
        found = single(self, a, a.over)
        if found is None or found[0] != ONE or not found[1].label.startswith("neg "):
            return None
        return self.numbers.ring.through(found[2], found[1].args[0])

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
        """Of widened elements: the widened one of the elements."""
        first, found = narrowest(self, branches, dtype)
        least = self.infinity(-math.inf if op == "max" else math.inf, first)
        out = self.numbers.extremum(f"{op} {first}", least, over, found, modulus_of(first))
        return cast(self, "cast", out, first, dtype, over)

    def _product(self, dest: Rel, new: Value, dtype: str) -> Value:
        """The product of all values that lead to one element: a function of how often each factor is taken, those of a
        factor that is a product among them."""
        ring, numbers, label = self.numbers.ring, self.numbers, f"product {dtype}"
        factors, one = Value(new.over.none(), {}), numbers.number(ONE, dtype)
        for n, r in numbers.elements(new, dtype).items():
            known = numbers.arrays[n]
            power = ring.through(r, known.args[0]) if known.label == label else ring.read(n, r)
            factors = ring.joined(factors, Value(r.domain(), {}) if n == one else power)
        powers = ring.summed(dest, factors, numbers.leaf("size", 1))
        some = reduce(Region.__or__, [r.domain() for t in powers.terms.values() for _, r in t], powers.over.none())
        made = numbers.function(label, (ring.on(powers, some),), some, modulus_of(dtype))
        return ring.joined(ring.constant(ONE, powers.over - some, made.modulus), made)

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
