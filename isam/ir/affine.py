"""Affine expressions over named integers (axes, sizes, loop variables): the only arithmetic on indices there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

Terms = tuple[tuple[str, int], ...]
_new = tuple.__new__  # makes an expression without the detour over keyword arguments


class Affine(NamedTuple):
    """``sum(coefficient * name) + const``. ``terms`` is sorted by name and has no zero coefficients.

    A tuple underneath: compilations hash, compare and make these by the hundred thousand. Nothing but the fields may be
    used of that; the operators are those of arithmetic.

    >>> Affine.of("h", 2) + "r" - 1
    Affine('2*h + r - 1')
    """

    terms: Terms = ()
    const: int = 0

    @staticmethod
    def of(name: str, coefficient: int = 1, const: int = 0) -> Affine:
        return _new(Affine, (((name, coefficient),) if coefficient else (), const))

    @staticmethod
    def from_terms(terms: Mapping[str, int] | Iterable[tuple[str, int]], const: int = 0) -> Affine:
        pairs: Iterable[tuple[str, int]] = terms.items() if isinstance(terms, Mapping) else terms  # pyright: ignore
        return _new(Affine, (_collected(pairs), const))

    @staticmethod
    def lift(value: Affine | int | str) -> Affine:
        if isinstance(value, Affine):
            return value
        return Affine.of(value) if isinstance(value, str) else Affine((), int(value))

    def __add__(self, other: Affine | int | str) -> Affine:  # type: ignore[override]
        if isinstance(other, Affine):
            terms, const = other
        elif isinstance(other, int):
            return _new(Affine, (self[0], self[1] + other)) if other else self
        else:
            terms, const = Affine.lift(other)
        if not terms:
            return _new(Affine, (self[0], self[1] + const)) if const else self
        return _new(Affine, (_sum(self[0], terms) if self[0] else terms, self[1] + const))

    __radd__ = __add__

    def __neg__(self) -> Affine:
        return _new(Affine, (tuple([(n, -c) for n, c in self[0]]), -self[1]))

    def __sub__(self, other: Affine | int | str) -> Affine:
        if isinstance(other, Affine):
            terms, const = other
        elif isinstance(other, int):
            return _new(Affine, (self[0], self[1] - other)) if other else self
        else:
            terms, const = Affine.lift(other)
        if not terms:
            return _new(Affine, (self[0], self[1] - const)) if const else self
        if terms == self[0]:
            return _new(Affine, ((), self[1] - const))
        return _new(Affine, (_difference(self[0], terms), self[1] - const))

    def __rsub__(self, other: Affine | int | str) -> Affine:
        return Affine.lift(other) - self

    def __mul__(self, factor: int) -> Affine:  # type: ignore[override]
        if factor == 1:
            return self
        return _new(Affine, (tuple([(n, c * factor) for n, c in self[0]]), self[1] * factor)) if factor else ZERO

    __rmul__ = __mul__  # type: ignore[assignment]

    def plus(self, factors: Iterable[int], exprs: Iterable[Affine]) -> Affine:
        """This and every one of ``exprs`` times its factor: an address from strides and a position.

        >>> Affine.of("base").plus((8, 1), (Affine.of("i"), Affine((), 3)))
        Affine('base + 8*i + 3')
        """
        terms, const = self
        total: dict[str, int] | None = None
        for k, (some, c) in zip(factors, exprs, strict=True):
            const += k * c
            if some and k:
                if total is None:
                    total = dict(terms)
                for name, m in some:
                    total[name] = total.get(name, 0) + k * m
        if total is not None:
            terms = tuple(sorted([p for p in total.items() if p[1]]))
        return _new(Affine, (terms, const))

    def coefficient(self, name: str) -> int:
        for n, c in self.terms:
            if n == name:
                return c
        return 0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple([n for n, _ in self.terms])

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def substitute(self, values: Mapping[str, Affine | int]) -> Affine:
        """Replaces names by integers or affine expressions; names absent from ``values`` stay."""
        for n, _ in self.terms:
            if n in values:
                break
        else:
            return self
        kept: list[tuple[str, int]] = []
        const, numbers = self.const, True  # so far none but numbers were put in: what is kept is in order
        for n, c in self.terms:
            v = values.get(n)
            if v is None:
                kept.append((n, c))
            elif isinstance(v, Affine):
                if v.terms:
                    kept.extend([(m, c * d) for m, d in v.terms] if c != 1 else v.terms)
                    numbers = False
                const += c * v.const
            else:
                const += c * int(v)
        return _new(Affine, (tuple(kept) if numbers or len(kept) <= 1 else _collected(kept), const))

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The integer value. Raises ``KeyError`` when a name has none."""
        total = self.const
        for n, c in self.terms:
            total += c * values[n]
        return total

    def bounds(self, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
        """Smallest and largest value when each name lies in its inclusive range."""
        lo = hi = self.const
        for n, c in self.terms:
            a, b = ranges[n]
            lo, hi = lo + min(c * a, c * b), hi + max(c * a, c * b)
        return lo, hi

    def __int__(self) -> int:
        if self.terms:
            raise ValueError(f"'{self}' is not a number: its sizes are not all given")
        return self.const

    def __str__(self) -> str:
        out = ""
        for n, c in self.terms:
            sign = ("-" if c < 0 else "") if not out else (" - " if c < 0 else " + ")
            out += sign + (n if abs(c) == 1 else f"{abs(c)}*{n}")
        if not out:
            return str(self.const)
        return out + (f" - {-self.const}" if self.const < 0 else f" + {self.const}" if self.const else "")

    def __repr__(self) -> str:
        return f"Affine('{self}')"


def _collected(pairs: Iterable[tuple[str, int]]) -> Terms:
    total: dict[str, int] = {}
    for name, c in pairs:
        total[name] = total.get(name, 0) + c
    return tuple(sorted([p for p in total.items() if p[1]]))


def _sum(a: Terms, b: Terms) -> Terms:
    if a[-1][0] < b[0][0]:
        return a + b
    if b[-1][0] < a[0][0]:
        return b + a
    total = dict(a)
    for name, c in b:
        total[name] = total.get(name, 0) + c
    return tuple(sorted([p for p in total.items() if p[1]]))


def _difference(a: Terms, b: Terms) -> Terms:
    total = dict(a)
    for name, c in b:
        total[name] = total.get(name, 0) - c
    return tuple(sorted([p for p in total.items() if p[1]]))


ZERO = Affine()
ONE = Affine((), 1)
