"""Arithmetic modulo 2^31 - 1 with functions as seeded random maps: the model behind :mod:`isam.ir.oracle`.

Residues are int64 in ``[0, PRIME)``. Which laws hold is listed there.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable

import numpy as np

from isam.ir.dtype import DTYPES
from isam.ir.points import Array

PRIME = (1 << 31) - 1
RING: dict[str, Callable[[Array, Array], Array]] = {  # of the first operand and the last
    "copy": lambda a, b: a, "add": lambda a, b: (a + b) % PRIME, "sub": lambda a, b: (a - b) % PRIME,
    "mul": lambda a, b: a * b % PRIME, "neg": lambda a, b: -a % PRIME,
}  # fmt: skip


def scramble(x: Array) -> Array:
    """A fixed bijection of 64-bit words with full avalanche (the finaliser of splitmix64)."""
    with np.errstate(over="ignore"):
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def loses_nothing(source: str, target: str) -> bool:
    """Whether every value of dtype ``source`` is one of dtype ``target``."""
    a, b = DTYPES.get(source), DTYPES.get(target)
    if a is None or b is None or a == b:
        return True
    if a.kind == "b":
        return True
    digits = {"f64": 53, "f32": 24, "f16": 11, "bf16": 8}
    if a.kind == "f":
        return b.kind == "f" and digits[b.name] > digits[a.name] and (a.name, b.name) != ("bf16", "f16")
    own = a.bits if a.kind == "u" else a.bits - 1
    if b.kind == "f":
        return digits[b.name] >= own
    room = b.bits if b.kind == "u" else b.bits - 1
    return room >= own and (a.kind == "u" or b.kind == "i") and b.kind != "b"


class Residues:
    """The arithmetic of the oracle, for one seed."""

    def __init__(self, seed: int, laws: frozenset[str] = frozenset()):
        self.seed = seed & 0xFFFFFFFF
        self.laws = laws
        draw = [int(self._map(f"constant {k}", ()) % (PRIME - 3)) + 2 for k in range(3)]
        self.scale, self.shift, self.least = draw  # the order: rank(x) = scale * x + shift, the infinities apart
        self.unscale = pow(self.scale, -1, PRIME)

    # the ring -----------------------------------------------------------------------------------------------------
    def literal(self, value: float | int | bool, dtype: str) -> Array:
        if isinstance(value, float) and not math.isfinite(value):
            known = {math.inf: PRIME - self.least, -math.inf: self.least}
            return np.asarray(known.get(value, int(self._map("nan", ()))), np.int64)
        top, bottom = (value if isinstance(value, float) else int(value)).as_integer_ratio()
        return np.asarray(top * pow(bottom, -1, PRIME) % PRIME, np.int64)

    def apply(self, op: str, args: tuple[Array, ...], source: str, target: str) -> Array:
        a = args[0]
        b = args[-1]
        if op in RING:
            return RING[op](a, b)
        if op == "select":
            return np.where(a != 0, args[1], args[2])
        if op in ("cast", "cast_sat"):
            return self._cast(op, a, source, target)
        if op in ("max", "min", "abs", "lt", "le", "gt", "ge"):
            return self._ordered(op, a, -a % PRIME if op == "abs" else b)
        if op in ("eq", "ne"):
            return ((a == b) == (op == "eq")).astype(np.int64)
        if op in ("and", "or", "not"):
            p, q = a != 0, b != 0
            return {"and": p & q, "or": p | q, "not": ~p}[op].astype(np.int64)
        if op == "div" and "division" in self.laws:
            return a * _power(b, PRIME - 2) % PRIME
        return self._map(op, args)

    def accumulate(self, op: str, flat: Array, at: Array, values: Array, dtype: str) -> None:
        if op == "add":
            np.add.at(flat, at, values)
            flat %= PRIME
        elif op == "mul":
            _multiply_at(flat, at, values)
        else:
            ranks = self._rank(flat)
            (np.maximum if op == "max" else np.minimum).at(ranks, at, self._rank(values))
            flat[...] = self._unrank(ranks)

    def replace(self, flat: Array, at: Array, condition: Array, values: Array, dtype: str) -> None:
        chosen = condition != 0
        flat[at[chosen]] = values[chosen]

    # the order ----------------------------------------------------------------------------------------------------
    def _rank(self, x: Array) -> Array:
        rank = (x * self.scale + self.shift) % PRIME
        rank = np.where(x == self.least, -1, rank)
        return np.where(x == PRIME - self.least, PRIME, rank)

    def _unrank(self, rank: Array) -> Array:
        x = (rank - self.shift) % PRIME * self.unscale % PRIME
        x = np.where(rank == -1, self.least, x)
        return np.where(rank == PRIME, PRIME - self.least, x)

    def _ordered(self, op: str, a: Array, b: Array) -> Array:
        p, q = self._rank(a), self._rank(b)
        if op in ("max", "abs"):
            return np.where(p >= q, a, b)
        if op == "min":
            return np.where(p <= q, a, b)
        return {"lt": p < q, "le": p <= q, "gt": p > q, "ge": p >= q}[op].astype(np.int64)

    # functions ----------------------------------------------------------------------------------------------------
    def _cast(self, op: str, x: Array, source: str, target: str) -> Array:
        exact = loses_nothing(source, target)
        if source == target or (exact and "casts" in self.laws):
            return x
        if target == "bool":
            return (x != 0).astype(np.int64)
        if not exact:
            return self._map(f"{op} {source} {target}", (x,))
        fixed = (x <= 1) | (x == PRIME - 1)
        return np.where(fixed, x, self._map(f"cast {source} {target}", (x,)))

    def _map(self, name: str, args: tuple[Array, ...]) -> Array:
        state = scramble(np.asarray((zlib.crc32(name.encode()) << 32) + self.seed, np.uint64))
        for a in args:
            state = scramble(state ^ a.astype(np.uint64))
        return ((state >> np.uint64(1)) % np.uint64(PRIME)).astype(np.int64)


def _power(x: Array, n: int) -> Array:
    out = np.ones_like(x)
    while n:
        if n & 1:
            out = out * x % PRIME
        x = x * x % PRIME
        n >>= 1
    return out


def _multiply_at(flat: Array, at: Array, values: Array) -> None:
    """Products into possibly repeated places: the k-th factor of every place at once, for k = 0, 1, ..."""
    order = np.argsort(at, kind="stable")
    places, factors = at[order], values[order]
    first = np.flatnonzero(np.concatenate(([True], places[1:] != places[:-1])))
    nth = np.arange(len(places)) - np.repeat(first, np.diff(np.append(first, len(places))))
    by_turn = np.argsort(nth, kind="stable")
    places, factors, nth = places[by_turn], factors[by_turn], nth[by_turn]
    cuts = np.flatnonzero(np.diff(nth)) + 1
    for p, f in zip(np.split(places, cuts), np.split(factors, cuts), strict=True):
        flat[p] = flat[p] * f % PRIME
