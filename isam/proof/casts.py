"""What is known of casts: numbers that fit stay what they are, and what was only widened is itself again.

A cast of integers to no more bits is taken modulo a power of two, so it goes into sums and products. A number added
before widening is added after it where no sum wraps: a byte with a sign, taken without, and 128 more. A float operation
done in a type of more than twice as many digits, on numbers of the narrow type, gives after its second rounding what it
gives in the narrow type (Figueroa, "When is double rounding innocuous?", SIGNUM 1995). The greatest of widened numbers
is the greatest, widened.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from isam.ir.dtype import DTYPES
from isam.ir.relation import Region, Rel
from isam.proof.value import Value, number_of

if TYPE_CHECKING:
    from isam.proof.operations import Operations

DIGITS = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
RANGE = {"f64": (-1074, 1024), "f32": (-149, 128), "f16": (-24, 16), "bf16": (-133, 128)}
"""Exponents of the least positive number and of the first that is too large."""
ROUNDED = ("add", "mul", "div", "sqrt")  # rounded once, in every float type


# types ---------------------------------------------------------------------------------------------------------------
def modulus_of(dtype: str) -> int:
    d = DTYPES[dtype]
    return 1 << d.bits if d.kind in "iu" else 0


def held_as(c: Fraction, dtype: str) -> Fraction | None:
    """What a number becomes in a buffer of ``dtype``: wrapped, or rounded; None where that is infinite."""
    d = DTYPES[dtype]
    if d.kind in "iu":
        least = -(1 << d.bits - 1) if d.kind == "i" else 0
        return (c - least) % (1 << d.bits) + least
    if d.kind == "b":
        return Fraction(c != 0)
    (least, most), digits = RANGE[dtype], DIGITS[dtype]
    size = abs(c).numerator.bit_length() - c.denominator.bit_length()  # of the exponent, or one more
    size -= abs(c) < Fraction(2) ** size
    unit = Fraction(2) ** max(least, size - digits + 1)
    near = round(c / unit) * unit  # once, to the even neighbour
    return near if abs(near) < 2**most else None


def widens(source: str, target: str) -> bool:
    """Whether every value of dtype ``source`` is one of dtype ``target``."""
    a, b = DTYPES[source], DTYPES[target]
    if a.kind == "b" or a.name == b.name:
        return True
    if a.kind == "f":
        return b.kind == "f" and DIGITS[b.name] > DIGITS[a.name] and (a.name, b.name) != ("bf16", "f16")
    own = a.bits if a.kind == "u" else a.bits - 1
    if b.kind == "f":
        return DIGITS[b.name] >= own
    return b.bits - 1 >= own if b.kind == "i" else b.kind == a.kind and b.bits >= own


def rounds_alike(narrow: str, wide: str) -> bool:
    """Whether sums, products, quotients and roots of narrow floats may be rounded to the wide type first."""
    least, most = (RANGE[narrow][i] * 2 for i in (0, 1))
    reaches = RANGE[wide][0] <= least and RANGE[wide][1] >= most
    return DIGITS[wide] >= 2 * DIGITS[narrow] + 2 and reaches


# casts ---------------------------------------------------------------------------------------------------------------
def cast(o: Operations, op: str, a: Value, source: str, target: str, over: Region) -> Value:
    """``a``, of dtype ``source``, as ``target``: wrapped or rounded (``cast``), or at the end of the range
    (``cast_sat``)."""
    if source == target:
        return a
    ring, s = o.numbers.ring, DTYPES[source]
    if s.kind == "b" or _condition(o, a):
        return ring.value(a.over, a.terms, modulus_of(target))
    if widens(source, target):
        c = number_of(a)
        held = None if c is None else held_as(c, source)
        if c is not None and held is not None:
            return ring.constant(c if o.licence.free and s.kind == "f" else held, over, modulus_of(target))
        op = "cast"
        if (short := _short_product(o, a, source, target) or _shifted(o, a, source, target)) is not None:
            return short
    if wraps(op, source, target) or _by_element(a, source, target):
        sizes = o.numbers.leaf("size", 1)
        return ring.substituted(a, lambda n, r: _element(o, op, n, r, source, target), modulus_of(target), sizes)
    return o.function(op, (a,), source, target, over)


def wraps(op: str, source: str, target: str) -> bool:
    """Whether a cast of integers takes no more than the last bits."""
    s, t = DTYPES[source], DTYPES[target]
    return op == "cast" and s.kind in "iu" and t.kind in "iu" and t.bits <= s.bits


def _condition(o: Operations, a: Value) -> bool:
    """Whether the value is 0 or 1 everywhere, because it is a product of such."""
    if len(a.terms) != 1:
        return False
    ((key, parts),) = a.terms.items()
    return len(parts) == 1 and parts[0][0] == 1 and o.numbers.ring.logical.issuperset(key) and parts[0][1].is_function()


def _by_element(a: Value, *dtypes: str) -> bool:
    """Whether the value is everywhere an element of some array (or its negative, of floats), or a number that all the
    dtypes hold as it is."""
    seen, signs = a.over.none(), _floats(*dtypes)
    for key, parts in a.terms.items():
        for w, r in parts:
            fits = len(key) == 1 and (w == 1 or (signs and w == -1)) if key else all(held_as(w, d) == w for d in dtypes)
            if not fits or not r.is_function() or not seen.apart(r.domain()):
                return False
            seen = seen | r.domain()
    return a.over.inside(seen)


def _element(o: Operations, op: str, n: int, points: Region, source: str, target: str) -> Value:
    """The elements of one array, cast."""
    ring, known = o.numbers.ring, o.numbers.arrays[n]
    plain = ring.read(n, points.identity(), modulus_of(source))
    made, *of = known.label.split()
    if made == "cast" and of[1] == source:  # such a label names two types
        first = of[0]
        same = DTYPES[first].kind in "iu" and wraps(op, source, target)
        if same or widens(first, source):
            return cast(o, op, ring.on(known.args[0], points), first, target, points)
    if made == "mul" and of == [source] and widens(source, target):
        factors = tuple(ring.on(a, points) for a in known.args)
        if _fits(o, factors, source, target):
            return _widened(o, factors, source, target, points)
    if made in ROUNDED and of == [source] and op == "cast" and _floats(source, target) and rounds_alike(target, source):
        args = [narrowed(o, ring.on(a, points), target, source) for a in known.args]
        if all(a is not None for a in args):
            return o.apply(made, tuple(a for a in args if a is not None), target, target, points)
    return o.function(op, (plain,), source, target, points)


def _short_product(o: Operations, a: Value, source: str, target: str) -> Value | None:
    """The widening of a product that is exact in the narrow type, since its factors are widened from shorter ones: the
    product of the widened factors."""
    if len(a.terms) != 1:
        return None
    ((key, parts),) = a.terms.items()
    w, r = parts[0]
    if len(parts) > 1 or len(key) != 2 or w != 1 or not r.is_function() or not a.over.inside(r.domain()):
        return None
    ring, cut = o.numbers.ring, o.numbers.ranks[key[0]]
    places = range(cut), range(cut, cut + o.numbers.ranks[key[1]])
    factors = tuple(ring.read(n, r.picked(p), a.modulus) for n, p in zip(key, places, strict=True))
    return _widened(o, factors, source, target, a.over) if _fits(o, factors, source, target) else None


def _shifted(o: Operations, a: Value, source: str, target: str) -> Value | None:
    """The widening of an integer of another type and a number, where no sum of the two leaves the narrow type, wrapped
    as they are: the sum of the widened ones."""
    number = a.terms.get((), ())
    keys = [k for k in a.terms if k]
    if len(number) != 1 or len(keys) != 1 or len(keys[0]) != 1 or not a.modulus or not modulus_of(target):
        return None
    ((w, everywhere),), ((one, r), *more) = number, a.terms[keys[0]]
    whole = not more and one == 1 and r.is_function() and a.over.inside(r.domain() & everywhere.domain())
    known = o.numbers.arrays[keys[0][0]]
    made, *of = known.label.split()
    if not whole or made != "cast" or of[1] != source or not modulus_of(of[0]):
        return None
    (least, most), (low, high) = _ends(source), _ends(of[0])
    c = next((c for c in (int(w), int(w) - a.modulus) if least <= low + c and high + c <= most), None)
    if c is None:
        return None
    ring, first = o.numbers.ring, of[0]
    element = Value(a.over, {keys[0]: a.terms[keys[0]]}, a.modulus)
    wide = ring.substituted(element, lambda _, p: cast(o, "cast", ring.on(known.args[0], p), first, target, p),
                            modulus_of(target), o.numbers.leaf("size", 1))  # fmt: skip
    return ring.add(wide, ring.constant(Fraction(c), a.over, modulus_of(target)))


def _widened(o: Operations, factors: tuple[Value, ...], source: str, target: str, over: Region) -> Value:
    return o.apply("mul", tuple(cast(o, "cast", x, source, target, over) for x in factors), target, target, over)


def _fits(o: Operations, factors: tuple[Value, ...], dtype: str, target: str) -> bool:
    """Whether the product of two values is one of their dtype, for what they are widened from, and as ``target`` the
    same: zero times a negative integer is 0, and of floats -0."""
    firsts: list[str] = []
    for x in factors:
        labels = {o.numbers.arrays[n].label for key in x.terms for n in key}
        label = labels.pop().split() if len(labels) == 1 and () not in x.terms else []
        if label[:1] != ["cast"] or label[2:] != [dtype] or not widens(label[1], dtype):
            return False
        firsts.append(label[1])
    turns = _floats(target) and not _floats(dtype) and any(DTYPES[d].kind == "i" for d in firsts)
    if turns and not o.licence.free and not o.numbers.ring.equal(*factors):
        return False
    return holds_product(dtype, *firsts)


def holds_product(dtype: str, one: str, two: str) -> bool:
    """Whether every product of two numbers of the dtypes ``one`` and ``two`` is one of ``dtype``."""
    if _floats(one, two):
        (least, most), ends = RANGE[dtype] if _floats(dtype) else (0, 0), (RANGE[one], RANGE[two])
        return (_floats(dtype) and DIGITS[dtype] >= DIGITS[one] + DIGITS[two]
                and least <= sum(e[0] for e in ends) and most >= sum(e[1] for e in ends))  # fmt: skip
    if any(DTYPES[d].kind not in "iu" for d in (one, two)):
        return False
    made = [x * y for x in _ends(one) for y in _ends(two)]
    if _floats(dtype):
        return max(map(abs, made)) <= 1 << DIGITS[dtype] and RANGE[dtype][1] > DIGITS[dtype]
    return all(held_as(Fraction(m), dtype) == m for m in made)


def _ends(dtype: str) -> tuple[int, int]:
    """The least and the greatest integer."""
    bits = DTYPES[dtype].bits
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if DTYPES[dtype].kind == "i" else (0, (1 << bits) - 1)


def _floats(*dtypes: str) -> bool:
    return all(DTYPES[d].kind == "f" for d in dtypes)


def narrowed(o: Operations, a: Value, narrow: str, wide: str) -> Value | None:
    """The value in the narrow type of which this one is the widening, if it is one."""
    if not _by_element(a, narrow, wide):
        return None
    ring, arrays = o.numbers.ring, o.numbers.arrays
    made = {n: arrays[n].label.split() for key in a.terms for n in key}
    for label in made.values():
        if label[0] != "cast" or label[2] != wide or not widens(label[1], narrow):
            return None

    def before(n: int, points: Region) -> Value:
        return cast(o, "cast", ring.on(arrays[n].args[0], points), made[n][1], narrow, points)

    return ring.substituted(a, before, modulus_of(narrow), o.numbers.leaf("size", 1))


def narrowest(o: Operations, branches: Sequence[dict[int, Rel]], dtype: str) -> tuple[str, list[dict[int, Rel]]]:
    """Sets of elements, all of them widened from one dtype, as elements of that dtype; else as they are."""
    arrays = o.numbers.arrays
    firsts = {arrays[n].label.split()[1] for b in branches for n in b if arrays[n].label.startswith("cast ")}
    first = firsts.pop() if len(firsts) == 1 else None
    if first is None or not widens(first, dtype):
        return dtype, list(branches)
    out: list[dict[int, Rel]] = []
    for b in branches:
        made: dict[int, Rel] = {}
        for n, r in b.items():
            before = _unwidened(o, n, first, dtype)
            if before is None:
                return dtype, list(branches)
            for m, s in before.items():
                made[m] = made[m] | r.then(s) if m in made else r.then(s)
        out.append(made)
    return first, out


def _unwidened(o: Operations, n: int, first: str, dtype: str) -> dict[int, Rel] | None:
    """The elements that those of an array are the widening of: of each, its own."""
    known = o.numbers.arrays[n]
    if known.label.startswith("cast "):
        return o.numbers.elements(known.args[0], first)
    same = Region.point().to_nothing()
    for end in ("-inf", "inf") if _floats(first, dtype) else ():
        if known.label == f"{end} {dtype}":
            return {o.infinity(float(end), first): same}
    if known.label.startswith("number "):
        c = Fraction(known.label.split()[1])
        held = held_as(c, dtype)
        if held is not None and held == held_as(held, first):
            return {o.numbers.number(held, first): same}
    return None
