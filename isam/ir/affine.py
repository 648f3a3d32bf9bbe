"""Affine expressions over named integers (axes, sizes, loop variables): the only arithmetic on indices there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Affine:
    """``sum(coefficient * name) + const``. ``terms`` is sorted by name and has no zero coefficients.

    >>> Affine.of("h", 2) + "r" - 1
    Affine('2*h + r - 1')
    """

    terms: tuple[tuple[str, int], ...] = ()
    const: int = 0

    @staticmethod
    def of(name: str, coefficient: int = 1, const: int = 0) -> Affine:
        return Affine(((name, coefficient),) if coefficient else (), const)

    @staticmethod
    def from_terms(terms: Mapping[str, int] | Iterable[tuple[str, int]], const: int = 0) -> Affine:
        total: dict[str, int] = {}
        pairs: Iterable[tuple[str, int]] = terms.items() if isinstance(terms, Mapping) else terms  # pyright: ignore
        for name, c in pairs:
            total[name] = total.get(name, 0) + c
        return Affine(tuple(sorted((n, c) for n, c in total.items() if c)), const)

    @staticmethod
    def lift(value: Affine | int | str) -> Affine:
        if isinstance(value, Affine):
            return value
        return Affine.of(value) if isinstance(value, str) else Affine((), int(value))

    def __add__(self, other: Affine | int | str) -> Affine:
        if isinstance(other, int):
            return Affine(self.terms, self.const + other) if other else self
        other = Affine.lift(other)
        if not other.terms:
            return Affine(self.terms, self.const + other.const) if other.const else self
        if not self.terms:
            return Affine(other.terms, self.const + other.const)
        return Affine.from_terms(self.terms + other.terms, self.const + other.const)

    __radd__ = __add__

    def __neg__(self) -> Affine:
        return Affine(tuple((n, -c) for n, c in self.terms), -self.const)

    def __sub__(self, other: Affine | int | str) -> Affine:
        if isinstance(other, int):
            return Affine(self.terms, self.const - other) if other else self
        other = Affine.lift(other)
        if not other.terms or other.terms == self.terms:
            return Affine(() if other.terms else self.terms, self.const - other.const)
        return self + (-other)

    def __rsub__(self, other: Affine | int | str) -> Affine:
        return Affine.lift(other) - self

    def __mul__(self, factor: int) -> Affine:
        if factor == 1:
            return self
        return Affine(tuple((n, c * factor) for n, c in self.terms), self.const * factor) if factor else Affine()

    __rmul__ = __mul__

    def coefficient(self, name: str) -> int:
        for n, c in self.terms:
            if n == name:
                return c
        return 0

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(n for n, _ in self.terms)

    @property
    def is_constant(self) -> bool:
        return not self.terms

    def substitute(self, values: Mapping[str, Affine | int]) -> Affine:
        """Replaces names by integers or affine expressions; names absent from ``values`` stay."""
        if not any(n in values for n, _ in self.terms):
            return self
        kept: list[tuple[str, int]] = []
        const = self.const
        for n, c in self.terms:
            v = values.get(n)
            if v is None:
                kept.append((n, c))
            elif isinstance(v, Affine):
                kept.extend((m, c * d) for m, d in v.terms)
                const += c * v.const
            else:
                const += c * int(v)
        return Affine.from_terms(kept, const)

    def evaluate(self, values: Mapping[str, int]) -> int:
        """The integer value. Raises ``KeyError`` when a name has none."""
        return self.const + sum(c * values[n] for n, c in self.terms)

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


ZERO = Affine()
ONE = Affine((), 1)
