"""The axioms of the functions: for each operation what it is in terms of others, and the numerics that this uses.

Logic is arithmetic with 0 and 1, so every formula of conditions has one form. Where no value is infinite or NaN, a
choice is a sum of products with its condition.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.ir.dtype import DTYPES
from isam.ir.relation import Region, Rel
from isam.proof.casts import modulus_of
from isam.proof.numbering import Array
from isam.proof.value import ONE, Key, Term, Value, number_of

if TYPE_CHECKING:
    from isam.proof.operations import Operations


OPPOSITE = {"max": "min", "min": "max"}
RISES = ("exp", "floor")  # and gives a number for each that is given
FACTORS = 4  # terms of one array in an exponent that are told apart


@dataclass(frozen=True, slots=True)
class Axiom:
    """``law`` says what equals what; ``says`` brings the operation to the other side of it (None: not here)."""

    law: str
    says: Callable[[Operations, tuple[Value, ...], str, Region], Value | None]
    kinds: str = "f"
    exact: bool = False


def _reciprocal(o: Operations, a: Value, dtype: str, over: Region) -> Value:
    ring, c, label = o.numbers.ring, number_of(a), f"reciprocal {dtype}"
    if c:
        return ring.constant(1 / c, over)
    found = single(o, a, over)
    if found is not None and found[0] and found[1].label == label:
        w, inner, where = found
        return ring.scale(ring.through(where, inner.args[0]), 1 / w)
    return o.function("reciprocal", (a,), dtype, dtype, over)


def single(o: Operations, a: Value, over: Region) -> tuple[Fraction, Array, Rel] | None:
    """The array, and the factor, of which the value is an element at every point."""
    if len(a.terms) != 1:
        return None
    ((key, parts),) = a.terms.items()
    w, r = parts[0]
    if len(parts) > 1 or len(key) != 1 or not over.inside(r.domain()) or not r.is_function():
        return None
    return w, o.numbers.arrays[key[0]], r


def _exp(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value | None:
    """Terms that are there at every point are factors; what is left is one exponent."""
    if not o.licence.finite:
        return None
    ring, (a,) = o.numbers.ring, args
    alone: list[Value] = []
    rest: dict[Key, list[Term]] = {}
    for key, parts in a.terms.items():
        for w, r in parts:
            found = _functions(r)
            if found and all(over.inside(f.domain()) for f in found):
                alone += [Value(over, {key: ((w, f),)}) for f in found]
            else:
                rest.setdefault(key, []).append((w, r))
    factors = [*alone, ring.value(over, rest)] if rest else alone
    if len(factors) < 2:
        return None
    return reduce(ring.mul, [o.function("exp", (f,), dtype, dtype, over) for f in factors])


def _functions(r: Rel) -> list[Rel]:
    """A relation as few functions; none where it would take many."""
    out: list[Rel] = []
    while not r.is_empty() and len(out) < FACTORS:
        out.append(r.least())
        r = r - out[-1]
    return out if r.is_empty() else []


def _div(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value | None:
    if number_of(args[1]) == 1:
        return args[0]
    if DTYPES[dtype].kind != "f" or not o.licence.free:
        return None
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
    if DTYPES[dtype].kind == "f" and o.scales():
        return (_scaled if o.licence.free else _rounded)(o, args, dtype, over, op)
    a, b = (o.numbers.elements(x, dtype) for x in args)
    return o.extremum(op, dtype, over, (a, b))


def _scaled(o: Operations, args: tuple[Value, ...], dtype: str, over: Region, op: str) -> Value:
    """The extremum of what is left without a number that is added to both, without a factor of both, and without a
    function of both that rises."""
    ring, shift = o.numbers.ring, _shift(args)
    if shift:
        args = tuple(ring.add(x, ring.constant(-shift, over)) for x in args)
    c = _factor(args, op)
    if c != ONE:
        args = tuple(ring.scale(x, 1 / c) for x in args)
    op = OPPOSITE[op] if c < 0 else op
    out = _inside(o, args, dtype, over, op)
    out = out if c == ONE else ring.scale(out, c)
    return ring.add(out, ring.constant(shift, over)) if shift else out


def _inside(o: Operations, args: tuple[Value, ...], dtype: str, over: Region, op: str) -> Value:
    """The extremum, taken before a function of both that rises, or before reciprocals of what is positive."""
    found = [single(o, x, over) for x in args]
    made = {x[1].label if x is not None and x[0] == ONE else "" for x in found}
    name = next((f for f in (*RISES, "reciprocal") if made == {f"{f} {dtype}"}), "")
    inner = tuple(o.numbers.ring.through(x[2], x[1].args[0]) for x in found if x is not None and name)
    if name in RISES:
        return o.apply(name, (_scaled(o, inner, dtype, over, op),), dtype, dtype, over)
    if name and all(_positive(o, x) for x in inner):
        return _reciprocal(o, _scaled(o, inner, dtype, over, OPPOSITE[op]), dtype, over)
    a, b = (o.numbers.elements(x, dtype) for x in args)
    return o.extremum(op, dtype, over, (a, b))


def _positive(o: Operations, a: Value) -> bool:
    """Whether a positive number is added to nothing but multiples of exponentials, none of them negative."""
    parts = a.terms.get((), ())
    some = len(parts) == 1 and parts[0][0] > 0 and a.over.inside(parts[0][1].domain())
    exps = all(o.numbers.arrays[n].label.startswith("exp ") for key in a.terms for n in key)
    return some and exps and all(w >= 0 for t in a.terms.values() for w, _ in t)


def _rounded(o: Operations, args: tuple[Value, ...], dtype: str, over: Region, op: str) -> Value:
    """As :func:`_scaled`, bit by bit: signs go out, and a number added to both, or by which both are multiplied, since
    rounding is monotone. (Which of two zeros an extremum of both is, nothing says; a factor less than one is not taken
    out, by which two numbers of which one is greater may become two zeros.)"""
    if _turns(o, args, op):
        back = tuple(o.turned(x, dtype, over) for x in args)
        if not _turns(o, back, OPPOSITE[op]):
            return o.turned(_rounded(o, back, dtype, over, OPPOSITE[op]), dtype, over)
    found = [_with_number(o, x, over) for x in args]
    made, c, _ = found[0]
    if c is None or any(x[:2] != (made, c) for x in found):
        a, b = (o.numbers.elements(x, dtype) for x in args)
        return o.extremum(op, dtype, over, (a, b))
    op = OPPOSITE[op] if made == "mul" and c < 0 else op
    out = _rounded(o, tuple(x[2] for x in found), dtype, over, op)
    return o.apply(made, (out, o.numbers.ring.constant(c, over)), dtype, dtype, over)


def _turns(o: Operations, args: tuple[Value, ...], op: str) -> bool:
    """Whether most are negative, or as many and the other extremum is a ``max``. Zeros do not count."""
    turned = [o.negated(a) is not None for a in args]
    signs = [0 if t else (w > 0) - (w < 0) for t, w in zip(turned, map(_leading, args), strict=True)]
    return sum(signs) < (op == "min")


def _with_number(o: Operations, a: Value, over: Region) -> tuple[str, Fraction | None, Value]:
    """The sum or the product with a number that a value is, once rounded, that number, and the other operand."""
    found = single(o, a, over)
    if found is None or found[0] != ONE:
        return "", None, a
    made, *_ = found[1].label.split()
    for k in (0, 1) if made in ("add", "mul") else ():
        own = tuple(o.numbers.ring.through(found[2], x) for x in found[1].args)
        c = number_of(own[k])
        if c and (made == "add" or abs(c) >= 1):
            return made, c, own[1 - k]
    return "", None, a


def _shift(args: tuple[Value, ...]) -> Fraction:
    """The number that is added to something in both, at every point; zero where there is none."""
    numbers: set[Fraction] = set()
    for a in args:
        parts = a.terms.get((), ())
        if len(parts) != 1 or len(a.terms) == 1 or not a.over.inside(parts[0][1].domain()):
            return Fraction()
        numbers.add(parts[0][0])
    return numbers.pop() if len(numbers) == 1 else Fraction()


def _factor(args: tuple[Value, ...], op: str) -> Fraction:
    """What both are taken as multiples of: negative where most are, or as many and this makes it a ``max``."""
    leading = [_leading(a) for a in args]
    positive = sum((w > 0) - (w < 0) for w in leading)
    size = abs(leading[0]) if leading[0] and len({abs(w) for w in leading}) == 1 else ONE
    return -size if positive < 0 or (positive == 0 and op == "min") else size


def _leading(a: Value) -> Fraction:
    """The weight of the first term, the same of equal values and the opposite of opposite ones."""
    weights = (w for key in sorted(a.terms) for w, _ in a.terms[key] if w)
    return next(weights, Fraction())


def _min(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    return _max(o, args, dtype, over, "min")


def _le(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value | None:
    if DTYPES[dtype].kind == "f" and not o.licence.finite:
        return None
    return _not(o, (o.function("lt", args[::-1], dtype, "bool", over),), "bool", over)


def _gt(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    return o.function("lt", args[::-1], dtype, "bool", over)


def _ge(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    return o.apply("le", args[::-1], dtype, "bool", over)


def _ne(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    return _not(o, (o.function("eq", args, dtype, "bool", over),), "bool", over)


def _not(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    ring = o.numbers.ring
    return ring.add(ring.scale(args[0], -ONE), ring.constant(ONE, over))


def _and(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    return o.numbers.ring.mul(*args)


def _or(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    ring = o.numbers.ring
    return ring.add(ring.add(*args), ring.scale(ring.mul(*args), -ONE))


def _ceil(o: Operations, args: tuple[Value, ...], dtype: str, over: Region) -> Value:
    if DTYPES[dtype].kind != "f":
        return args[0]
    down = o.apply("floor", (o.apply("neg", args, dtype, dtype, over),), dtype, dtype, over)
    return o.apply("neg", (down,), dtype, dtype, over)


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
    """``select(a < b, b, a)`` is ``max(a, b)``; others are sums. Of floats only where no value is infinite or NaN."""
    c, yes, no = args
    ring, opposite = o.numbers.ring, _not(o, (c,), "bool", over)
    if len(c.terms) > 1 and len(opposite.terms) == 1:
        c, yes, no = opposite, no, yes
    if DTYPES[dtype].kind == "f" and not o.licence.finite:
        return o.function("select", (c, yes, no), dtype, dtype, over)
    found = single(o, c, over)
    if found is not None and found[1].label in (f"lt {dtype} bool", f"le {dtype} bool"):
        small, large = (ring.through(found[2], x) for x in found[1].args)
        if ring.equal(small, no) and ring.equal(large, yes):
            return _max(o, (yes, no), dtype, over)
        if ring.equal(small, yes) and ring.equal(large, no):
            return _max(o, (yes, no), dtype, over, "min")
    chosen = Value(c.over, c.terms, modulus_of(dtype))
    return ring.add(no, ring.mul(chosen, ring.add(yes, ring.scale(no, -ONE))))


AXIOMS: dict[str, Axiom] = {
    "div": Axiom("a / 1 = a; a / b = a * (1 / b) of reals", _div, "fiu", exact=True),
    "rsqrt": Axiom("rsqrt(a) = 1 / sqrt(a)", _rsqrt),
    "sigmoid": Axiom("sigmoid(a) = 1 / (1 + exp(-a))", _sigmoid),
    "tanh": Axiom("tanh(a) = 2 * sigmoid(2 * a) - 1", _tanh),
    "abs": Axiom("abs(a) = max(a, -a)", _abs, "fi"),
    "max": Axiom(
        "max is associative, commutative, idempotent; -inf is neutral; scaled, max(c * a, c * b) = c * max(a, b), "
        "rounded where abs(c) >= 1",
        _max, "fiu", exact=True),
    "min": Axiom("as max, inf is neutral; scaled, min(a, b) = -max(-a, -b)", _min, "fiu", exact=True),
    "exp": Axiom("exp(a + b) = exp(a) * exp(b), where all is finite", _exp),
    "le": Axiom("a <= b = not (b < a), finite for floats", _le, "fiub", exact=True),
    "gt": Axiom("a > b = b < a", _gt, "fiub", exact=True),
    "ge": Axiom("a >= b = b <= a", _ge, "fiub", exact=True),
    "ne": Axiom("a != b = not (a == b)", _ne, "fiub", exact=True),
    "not": Axiom("not a = 1 - a", _not, "b", exact=True),
    "and": Axiom("a and b = a * b", _and, "b", exact=True),
    "or": Axiom("a or b = a + b - a * b", _or, "b", exact=True),
    "floor": Axiom("floor(n) = n", _whole, "iu", exact=True),
    "ceil": Axiom("ceil(a) = -floor(-a); ceil(n) = n", _ceil, "fiu", exact=True),
    "round": Axiom("round(n) = n", _whole, "iu", exact=True),
    "pow": Axiom("pow(a, n) = a * ... * a, for n = 1 to 4", _pow, "fiu"),
    "select": Axiom(
        "select(a < b, b, a) = max(a, b), min likewise; select(c, a, b) = b + c * (a - b); finite for floats",
        _select, "fiub", exact=True),
}  # fmt: skip
