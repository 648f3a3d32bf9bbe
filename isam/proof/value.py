"""Values of whole buffers as polynomials: for every element a sum, over integer sets, of products of reads.

A :class:`Value` gives every point of a region a polynomial. A term ``(w, R)`` under the key ``(a, b)`` stands for
``w * sum of a[y] * b[z] over all (y, z) that R relates to the point``: the summation indices are the coordinates of
what is read, so names, splits and orders of axes, layouts of temporaries and the grouping of sums leave no trace. The
terms of a key are kept with disjoint relations. Two values are equal, as polynomials, when all weights are.

Terms of weight zero are kept where ``support`` is on: ``0 * x`` is not 0 when x is infinite. Elements of ``logical``
arrays are 0 or 1: they are their own squares, and never infinite. So what the operations of logic make of conditions
has one form, a polynomial in which no condition appears twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from functools import reduce
from itertools import count, permutations, product
from math import factorial, prod

from isam.classes import dataclass
from isam.ir.relation import Region, Rel, TooMuch
from isam.proof.fibres import fibres

Key = tuple[int, ...]  # arrays, ascending
Term = tuple[Fraction, Rel]
Terms = dict[Key, tuple[Term, ...]]
ONE, ZERO = Fraction(1), Fraction(0)
PIECES = 400  # convex pieces of one value: beyond, nothing is decided
ORDERS = 24  # permutations of equal factors that are compared
_serial = count()


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """``modulus``: of integers that wrap (0: none). ``serial``: tells values apart without comparing them."""

    over: Region
    terms: Mapping[Key, tuple[Term, ...]]
    modulus: int = 0
    serial: int = field(default_factory=_serial.__next__)


@dataclass(slots=True)
class Ring:
    """Arithmetic of values. ``ranks``: coordinates of every array; ``support``: terms of weight zero are kept;
    ``logical``: arrays whose elements are 0 or 1."""

    ranks: list[int]
    support: bool = True
    logical: set[int] = field(default_factory=set)

    # making -------------------------------------------------------------------------------------------------------
    def constant(self, number: Fraction, over: Region, modulus: int = 0) -> Value:
        return self.value(over, {(): [(number, over.to_nothing())]}, modulus)

    def read(self, array: int, where: Rel, modulus: int = 0) -> Value:
        """``array`` at the points that ``where``, a function, leads to."""
        return Value(where.domain(), {(array,): ((ONE, where),)}, modulus)

    def value(self, over: Region, terms: Mapping[Key, Iterable[Term]], modulus: int = 0) -> Value:
        """From terms that may overlap."""
        out: Terms = {}
        for key, found in terms.items():
            kept = not key or self._kept(key, modulus)
            parts = tuple((w, r) for w, r in self._disjoint(list(found), modulus) if w or kept)
            if parts:
                out[key] = parts
        self._without_idle_zeros(out)
        if sum(r.pieces() for parts in out.values() for _, r in parts) > PIECES:
            raise TooMuch("a value has too many pieces")
        return Value(over, out, modulus)

    def _kept(self, key: Key, modulus: int) -> bool:
        """Whether a product times zero may be something else: integers that wrap are never infinite."""
        return self.support and not modulus and not self.logical.issuperset(key)

    def _disjoint(self, terms: list[Term], modulus: int) -> list[Term]:
        """Weights added up where relations meet; one relation per weight."""
        if len(terms) == 1:
            w, r = terms[0]
            return [(w % modulus if modulus else w, r)] if not r.is_empty() else []
        done: list[Term] = []
        for w, r in terms:
            rest, parts = r, []
            for v, s in done:
                both = None if rest.is_empty() else rest & s
                if both is None or both.is_empty():
                    parts.append((v, s))
                    continue
                left = s - both
                parts += [(v + w, both)] if left.is_empty() else [(v + w, both), (v, left)]
                rest = rest - both
            done = parts if rest.is_empty() else [*parts, (w, rest)]
        by: dict[Fraction, Rel] = {}
        for w, r in done:
            w = w % modulus if modulus else w
            by[w] = by[w] | r if w in by else r
        return list(by.items())

    def _without_idle_zeros(self, terms: Terms) -> None:
        """``x + 0`` is ``x``: a constant zero stays only where nothing else is."""
        zero = next((r for w, r in terms.get((), ()) if not w), None)
        if zero is None:
            return
        for key, parts in terms.items():
            for w, r in parts:
                if key or w:
                    zero = zero.off(r.domain())
        rest = [(w, r) for w, r in terms[()] if w]
        if not zero.is_empty():
            rest.append((ZERO, zero))
        terms[()] = tuple(rest)
        if not rest:
            del terms[()]

    # arithmetic ---------------------------------------------------------------------------------------------------
    def add(self, a: Value, b: Value) -> Value:
        terms: dict[Key, list[Term]] = {k: list(t) for k, t in a.terms.items()}
        for k, t in b.terms.items():
            terms.setdefault(k, []).extend(t)
        return self.value(a.over, terms, a.modulus)

    def scale(self, a: Value, number: Fraction) -> Value:
        return self.value(a.over, {k: [(w * number, r) for w, r in t] for k, t in a.terms.items()}, a.modulus)

    def mul(self, a: Value, b: Value) -> Value:
        terms: dict[Key, list[Term]] = {}
        for (j, s), (k, t) in product(a.terms.items(), b.terms.items()):
            key, order = self._merged(j, k)
            for (v, p), (w, q) in product(s, t):
                if v * w or not key or self._kept(key, a.modulus):
                    terms.setdefault(key, []).append((v * w, p.beside(q).picked(order)))
        return self.value(a.over, self._idempotent(terms) if self._squares(terms) else terms, a.modulus)

    def _squares(self, terms: Iterable[Key]) -> bool:
        return any(len(set(key)) < len(key) and not self.logical.isdisjoint(key) for key in terms)

    def _idempotent(self, terms: Mapping[Key, Iterable[Term]]) -> dict[Key, list[Term]]:
        """Squares of what is 0 or 1 are itself: where two factors of one logical array are one element, one is left."""
        out: dict[Key, list[Term]] = {}
        todo = [(key, w, r) for key, parts in terms.items() for w, r in parts]
        while todo:
            key, w, r = todo.pop(0)
            twice = [(i, j) for j, n in enumerate(key) for i in range(j) if key[i] == n and n in self.logical]
            for i, j in twice:
                alike = self._alike(key, r, i, j)
                if not alike.is_empty():
                    kept = [k for k in range(r.outs) if k not in self._places(key, j)]
                    todo += [((*key[:j], *key[j + 1 :]), w, alike.picked(kept)), (key, w, r - alike)]
                    break
            else:
                if not r.is_empty():
                    out.setdefault(key, []).append((w, r))
        return out

    def _alike(self, key: Key, r: Rel, i: int, j: int) -> Rel:
        """The part of a product in which two of its factors are the same element."""
        for a, b in zip(self._places(key, i), self._places(key, j), strict=True):
            r = r.where_equal(a, b)
        return r

    def _places(self, key: Key, i: int) -> range:
        """The coordinates of one factor."""
        start = sum(self.ranks[n] for n in key[:i])
        return range(start, start + self.ranks[key[i]])

    def _merged(self, a: Key, b: Key) -> tuple[Key, list[int]]:
        """The key of a product and where its coordinates stand in those of ``a`` followed by those of ``b``."""
        both, starts, at = a + b, [], 0
        for n in both:
            starts.append(at)
            at += self.ranks[n]
        places = sorted(range(len(both)), key=lambda i: (both[i], i))
        order = [starts[i] + d for i in places for d in range(self.ranks[both[i]])]
        return tuple(both[i] for i in places), order

    def substituted(self, a: Value, by: Callable[[int, Region], Value], modulus: int, sizes: int) -> Value:
        """The polynomial with other values for its arrays: ``by`` says which, over the elements that are read.
        ``sizes``: see :meth:`summed`; different elements may be made of equal ones."""
        terms: dict[Key, list[Term]] = {}
        for key, parts in a.terms.items():
            for w, r in parts:
                found = [by(n, r.picked(tuple(self._places(key, i))).range()) for i, n in enumerate(key)]
                for choice in product(*([(k, v, s) for k, t in x.terms.items() for v, s in t] for x in found)):
                    weight = w * prod(v for _, v, _ in choice)
                    path = reduce(Rel.aside, [s for _, _, s in choice]) if choice else r.range().identity()
                    new, order = self._merged(tuple(n for k, _, _ in choice for n in k), ())
                    if r.is_function() or path.is_injective():
                        terms.setdefault(new, []).append((weight, r.then(path).picked(order)))
                        continue
                    reads = r.graph()
                    at, element = (reads.identity().picked(c) for c in (range(r.ins), range(r.ins, r.ins + r.outs)))
                    one = Value(reads, {new: ((weight, element.then(path).picked(order)),)}, modulus)
                    for k, t in self.summed(at, one, sizes).terms.items():
                        terms.setdefault(k, []).extend(t)
        return self.value(a.over, self._idempotent(terms) if self._squares(terms) else terms, modulus)

    # moving -------------------------------------------------------------------------------------------------------
    def through(self, path: Rel, a: Value) -> Value:
        """The value at the point that ``path``, a function, leads to."""
        terms = {k: tuple((w, path.then(r)) for w, r in t) for k, t in a.terms.items()}
        return Value(path.domain(), _nonempty(terms), a.modulus)

    def placed(self, dest: Rel, a: Value) -> Value:
        """The value written at ``dest``, an injective function of its points."""
        back = dest.inverse()
        return Value(dest.range(), {k: tuple((w, back.then(r)) for w, r in t) for k, t in a.terms.items()}, a.modulus)

    def summed(self, dest: Rel, a: Value, sizes: int) -> Value:
        """The sum of the values of all points that ``dest`` leads to one element. ``sizes``: the array whose n-th
        element is n, for sums of equal terms whose number is no number."""
        back = dest.inverse()
        terms: dict[Key, list[Term]] = {}
        for key, parts in a.terms.items():
            for w, r in parts:
                both = dest.beside(r)
                if not w or both.is_injective():  # zero, however often
                    terms.setdefault(key, []).append((w, back.then(r)))
                    continue
                for times, extra, points in fibres(both.inverse()):
                    k, order = self._merged(key, (sizes,) * len(extra))
                    if extra:
                        points = reduce(lambda x, y: x.beside(y), extra).on(points).graph()
                    terms.setdefault(k, []).append((w * times, points.parted(dest.outs).picked(order)))
        return self.value(dest.range(), terms, a.modulus)

    def on(self, a: Value, points: Region) -> Value:
        terms = {k: tuple((w, r.on(points)) for w, r in t) for k, t in a.terms.items()}
        return Value(a.over & points, _nonempty(terms), a.modulus)

    def off(self, a: Value, points: Region) -> Value:
        terms = {k: tuple((w, r.off(points)) for w, r in t) for k, t in a.terms.items()}
        return Value(a.over - points, _nonempty(terms), a.modulus)

    def joined(self, a: Value, b: Value) -> Value:
        """Two values over different points as one."""
        terms: dict[Key, list[Term]] = {k: list(t) for k, t in a.terms.items()}
        for k, t in b.terms.items():
            mine = terms.setdefault(k, [])
            for w, r in t:
                at = next((i for i, (v, _) in enumerate(mine) if v == w), None)
                if at is None:
                    mine.append((w, r))
                else:
                    mine[at] = (w, mine[at][1] | r)
        return Value(a.over | b.over, {k: tuple(t) for k, t in terms.items()}, a.modulus)

    # comparing ----------------------------------------------------------------------------------------------------
    def equal(self, a: Value, b: Value) -> bool:
        """Whether both are the same polynomial at every point (of the same region)."""
        for key in a.terms.keys() | b.terms.keys():
            one, two = self._orders(key, a.terms.get(key, ())), self._orders(key, b.terms.get(key, ()))
            if not self._same_weights(key, one, two, a.modulus):
                return False
        return True

    def _same_weights(self, key: Key, one: tuple[Term, ...], two: tuple[Term, ...], modulus: int) -> bool:
        left = list(two)
        rest: list[Term] = []
        for w, r in one:
            at = next((i for i, (v, s) in enumerate(left) if v == w and r.same(s)), None)
            if at is None:
                rest.append((w, r))
            else:
                del left[at]
        if not rest and not left:
            return True
        if key and self._kept(key, modulus):
            return False  # of a key, weights are told apart: some product is on one side only
        difference = self._disjoint([*rest, *((-w, r) for w, r in left)], 0)
        return all(r.is_empty() or self._idle(key, w, r, modulus) for w, r in difference)

    def _idle(self, key: Key, w: Fraction, r: Rel, modulus: int) -> bool:
        """Whether a weight under every order of equal factors says nothing. One that wraps does where it is a multiple
        of the modulus, and that of a square, which is there in both orders, never does."""
        if not w or not modulus or w % modulus:
            return not w
        pairs = ((i, j) for j, n in enumerate(key) for i in range(j) if key[i] == n)
        return all(self._alike(key, r, i, j).is_empty() for i, j in pairs)

    def _orders(self, key: Key, terms: tuple[Term, ...]) -> tuple[Term, ...]:
        """The terms under every order of equal factors: ``a[y] * a[z]`` is ``a[z] * a[y]``."""
        groups = [[i for i, n in enumerate(key) if n == a] for a in dict.fromkeys(key)]
        if not terms or not 1 < prod(factorial(len(g)) for g in groups) <= ORDERS:
            return terms
        starts = [sum(self.ranks[n] for n in key[:i]) for i in range(len(key))]
        out: list[Term] = []
        for chosen in product(*(permutations(g) for g in groups)):
            to = {i: j for g, c in zip(groups, chosen, strict=True) for i, j in zip(g, c, strict=True)}
            order = [starts[to[i]] + d for i in range(len(key)) for d in range(self.ranks[key[i]])]
            out += [(w, r.picked(order)) for w, r in terms]
        return tuple(self._disjoint(out, 0))

    def agreement(self, a: Value, b: Value) -> Rel:
        """All pairs (point of ``a``, point of ``b``) at which the polynomials are the same."""
        whole = a.over.times(b.over)
        for key in sorted(a.terms.keys() | b.terms.keys()):
            one, two = self._orders(key, a.terms.get(key, ())), self._orders(key, b.terms.get(key, ()))
            for w in sorted({w for w, _ in (*one, *two)}):
                if not w and (not key or not self._kept(key, a.modulus)):
                    continue
                whole = whole & _agree(_of(one, w), _of(two, w), a.over, b.over)
            if whole.is_empty():
                break
        return whole.tidy()


def _nonempty(terms: Mapping[Key, tuple[Term, ...]]) -> Terms:
    out = {k: tuple((w, r) for w, r in t if not r.is_empty()) for k, t in terms.items()}
    return {k: t for k, t in out.items() if t}


def _of(terms: Sequence[Term], weight: Fraction) -> Rel | None:
    return reduce(lambda a, b: a | b, [r for w, r in terms if w == weight]) if any(
        w == weight for w, _ in terms) else None  # fmt: skip


def _agree(r: Rel | None, s: Rel | None, u: Region, v: Region) -> Rel:
    """Pairs of points that ``r`` and ``s`` relate to the same set."""
    whole = u.times(v)
    if r is None or s is None:
        here = r if r is not None else s
        assert here is not None
        off = here.domain()
        return (u - off).times(v) if r is not None else u.times(v - off)
    inside, outside = (u - r.domain()), (v - s.domain())
    nothing = inside.times(outside)
    if r.is_function() and s.is_function():
        return r.then(s.inverse()) | nothing
    some = r.then(s.inverse())  # what is the same and not nothing has something in common
    one = _misses(r, s)
    two = one if r.ins == s.ins and r.same(s) else _misses(s, r)
    return (some - one - two.inverse() | nothing) & whole


def _misses(r: Rel, s: Rel) -> Rel:
    """Pairs of points where the first has an output that the second has not."""
    without = s.domain().times(r.range()) - s
    return r.then(without.inverse())


def number_of(a: Value) -> Fraction | None:
    """The number that the value is everywhere, if it is one."""
    if not a.terms:
        return Fraction()
    if a.terms.keys() != {()}:
        return None
    w, r = a.terms[()][0]  # of several, none is there at every point
    return w if a.over.inside(r.domain()) else None
