"""Arrays that values read: what a kernel was given, and what functions make of values, each under one number.

A function of values is a new array with a point per value, but only where no array known already holds the same: two
applications of one function to equal polynomials are one element of one array, in whatever kernel, loop or layout they
stand. This is value numbering, for whole arrays at once, with integer sets for the elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from fractions import Fraction
from functools import reduce

from isam.classes import dataclass
from isam.ir.relation import Region, Rel, TooMuch
from isam.proof.value import ONE, Key, Ring, Term, Value

KNOWN = 60  # arrays of one function: beyond, nothing is decided


@dataclass(frozen=True, slots=True, eq=False)
class Array:
    """``args``: the values that ``label`` is applied to, over the points of the array; none for what is given."""

    label: str
    rank: int
    args: tuple[Value, ...] = ()
    over: Region | None = None


@dataclass(slots=True)
class Numbering:
    """All arrays of a comparison. ``support``: see :class:`Ring`."""

    support: bool = True
    arrays: list[Array] = field(default_factory=list)
    ranks: list[int] = field(default_factory=list)
    ring: Ring = field(init=False)
    given: dict[tuple[str, int], int] = field(default_factory=dict)
    made: dict[str, list[int]] = field(default_factory=dict)
    _done: dict[tuple[object, ...], Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ring = Ring(self.ranks, self.support)

    def leaf(self, label: str, rank: int) -> int:
        """The array of that name: equal names are equal contents."""
        key = (label, rank)
        if key not in self.given:
            self.given[key] = self._new(Array(label, rank))
        return self.given[key]

    def _new(self, a: Array) -> int:
        self.arrays.append(a)
        self.ranks.append(a.rank)
        return len(self.arrays) - 1

    # functions ----------------------------------------------------------------------------------------------------
    def function(
        self, label: str, args: tuple[Value, ...], over: Region, modulus: int = 0, swap: bool = False
    ) -> Value:
        """``label`` applied to values over the same points. ``swap``: two arguments in either order."""
        key = (label, modulus, *(a.serial for a in args))
        if key not in self._done:
            self._done[key] = self._number(label, args, over, modulus, swap)
        return self._done[key]

    def _number(self, label: str, args: tuple[Value, ...], over: Region, modulus: int, swap: bool) -> Value:
        terms: dict[Key, list[Term]] = {}
        rest = over
        known = self.made.setdefault(label, [])
        if len(known) > KNOWN:
            raise TooMuch(f"too many different arrays of '{label}'")
        for n in known:
            if not self._may_agree(self.arrays[n].args, args, swap):
                continue
            back = self._agreement(self.arrays[n].args, args, swap).inverse().on(rest)
            if back.is_empty():
                continue
            terms[(n,)] = [(ONE, back.least())]
            rest = rest - back.domain()
            if rest.is_empty():
                break
        if not rest.is_empty():
            own = args if rest is over else tuple(self.ring.on(a, rest) for a in args)
            n = self._new(Array(label, rest.rank, own, rest))
            known.append(n)
            terms[(n,)] = [(ONE, rest.identity() if self._all_differ(own) else self._agreement(own, own, swap).least())]
        return Value(over, {k: tuple(t) for k, t in terms.items()}, modulus)

    def _may_agree(self, a: tuple[Value, ...], b: tuple[Value, ...], swap: bool) -> bool:
        """A cheap look at which arrays are read at all."""
        def near(x: Value, y: Value) -> bool:
            return not x.terms or not y.terms or bool(x.terms.keys() & y.terms.keys())

        straight = all(near(x, y) for x, y in zip(a, b, strict=True))
        return straight or (swap and near(a[0], b[1]) and near(a[1], b[0]))

    def _agreement(self, a: tuple[Value, ...], b: tuple[Value, ...], swap: bool) -> Rel:
        found = self._all_agree(a, b)
        return found | self._all_agree(a, b[::-1]) if swap else found

    def _all_agree(self, a: tuple[Value, ...], b: tuple[Value, ...]) -> Rel:
        return reduce(lambda x, y: x & y, [self.ring.agreement(x, y) for x, y in zip(a, b, strict=True)])

    def _all_differ(self, args: tuple[Value, ...]) -> bool:
        """Whether some argument certainly differs from point to point."""
        return any(
            parts[0][1].is_injective() and a.over.inside(parts[0][1].domain())
            for a in args
            for key, parts in a.terms.items()
            if len(set(key)) == len(key)
        )

    # single elements ----------------------------------------------------------------------------------------------
    def elements(self, a: Value, what: str) -> dict[int, Rel]:
        """The value at every point as one element of one array; polynomials get an array of their own."""
        if len(a.terms) == 1:
            ((key, parts),) = a.terms.items()
            w, r = parts[0]
            if len(parts) == len(key) == 1 and w == 1 and r.is_function() and a.over.inside(r.domain()):
                return {key[0]: r}
        out: dict[int, Rel] = {}
        rest = a.over
        for key, parts in a.terms.items():
            for w, r in parts:
                n = key[0] if len(key) == 1 and w == 1 else self.number(w, what) if not key else None
                if n is None or not r.is_function():
                    continue
                alone = r.domain()
                for theirs in a.terms.values():
                    for s in (s for _, s in theirs if s is not r):
                        alone = alone - s.domain()
                if not alone.is_empty():
                    out[n] = out[n] | r.on(alone) if n in out else r.on(alone)
                    rest = rest - alone
        if not self.support or a.modulus:
            zero = reduce(lambda x, y: x - y, [r.domain() for t in a.terms.values() for _, r in t], rest)
            if not zero.is_empty():
                n, none = self.number(Fraction(), what), zero.to_nothing()
                out[n] = out[n] | none if n in out else none  # of some points it may be said that they are zero
                rest = rest - zero
        if not rest.is_empty():
            named = self.function(f"value {what}", (self.ring.on(a, rest),), rest, a.modulus)
            for key, parts in named.terms.items():
                out[key[0]] = out[key[0]] | parts[0][1] if key[0] in out else parts[0][1]
        return out

    def number(self, value: Fraction, what: str) -> int:
        return self.leaf(f"number {value} {what}", 0)

    def named(self, a: Value, what: str) -> Value:
        """The same value, its polynomial hidden behind the name of an array."""
        return self.function(f"value {what}", (a,), a.over, a.modulus)

    # max and min --------------------------------------------------------------------------------------------------
    def extremum(self, label: str, least: int, over: Region, branches: Sequence[dict[int, Rel]], modulus: int) -> Value:
        """The ``max`` (or ``min``) at every point of a set of elements: idempotent, in any order, nested or not.

        ``least``: the array that holds the neutral element.
        """
        found: dict[int, Rel] = {}
        for branch in branches:
            for n, r in branch.items():
                inner = self.arrays[n]
                parts = [(key[0], r.then(t[0][1])) for key, t in inner.args[0].terms.items()] if (
                    inner.label == label) else [(n, r)]  # fmt: skip
                for m, s in parts:
                    found[m] = found[m] | s if m in found else s
        if least in found and len(found) > 1:
            some = reduce(lambda a, b: a | b, [r.domain() for n, r in found.items() if n != least])
            found[least] = found[least].off(some)
        several = self._several(list(found.values()), over)
        single = self._single({n: r.off(several) for n, r in found.items()}, over - several, modulus)
        if several.is_empty():
            return single
        parts = {(n,): ((ONE, r.on(several)),) for n, r in found.items()}
        args = Value(several, {k: t for k, t in parts.items() if not t[0][1].is_empty()}, modulus)
        many = self.function(label, (args,), several, modulus)
        return self.ring.joined(single, many)

    def _single(self, found: dict[int, Rel], over: Region, modulus: int) -> Value:
        """One element for every point, as a value; what was only named is itself again."""
        terms: dict[Key, list[Term]] = {}
        for n, r in found.items():
            if r.is_empty():
                continue
            inner = self.arrays[n]
            if not inner.label.startswith("value "):
                terms.setdefault((n,), []).append((ONE, r))
                continue
            for key, parts in self.ring.through(r, inner.args[0]).terms.items():
                terms.setdefault(key, []).extend(parts)
        return self.ring.value(over, terms, modulus)

    def _several(self, found: Sequence[Rel], over: Region) -> Region:
        """The points that have more than one element."""
        out = over.none()
        for k, r in enumerate(found):
            if not r.is_function():
                out = out | (r - r.least()).domain()
            for s in found[k + 1 :]:
                out = out | (r.domain() & s.domain())
        return out
