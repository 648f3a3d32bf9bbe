"""Values of :mod:`isam.proof.value` as what they stand for: a polynomial per point, by enumeration."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import islpy as isl

from isam.ir.relation import Region, Rel
from isam.proof.value import Ring, Term, Value

Point = tuple[int, ...]
Mono = tuple[tuple[int, Point], ...]  # factors, each an array and one of its elements, in order
Poly = dict[Mono, Fraction]  # weights of zero: of what is kept for the sake of infinities
Polys = dict[Point, Poly]


def region(points: Iterable[Point], rank: int) -> Region:
    return Region(_union([f"[{', '.join(map(str, p))}]" for p in points], _space(rank), isl.Set))


def relation(pairs: Iterable[tuple[Point, Point]], ins: int, outs: int) -> Rel:
    texts = [f"[{', '.join(map(str, a))}] -> [{', '.join(map(str, b))}]" for a, b in pairs]
    return Rel(_union(texts, f"{_space(ins)} -> {_space(outs, 'o')}", isl.Map))


def _space(rank: int, name: str = "i") -> str:
    return f"[{', '.join(f'{name}{k}' for k in range(rank))}]"


def _union(texts: list[str], space: str, kind: Any) -> Any:
    return kind("{ " + ("; ".join(texts) if texts else f"{space} : 1 = 0") + " }")


def points(r: Region) -> list[Point]:
    found: list[Point] = []
    rank = r.rank

    def note(p: isl.Point) -> None:
        found.append(tuple(p.get_coordinate_val(isl.dim_type.set, k).to_python() for k in range(rank)))

    r.raw.foreach_point(note)
    return sorted(found)


def pairs(r: Rel) -> list[tuple[Point, Point]]:
    return [(p[: r.ins], p[r.ins :]) for p in points(r.graph())]


def mono(key: Iterable[int], at: Point, ranks: list[int], ordered: bool = True) -> Mono:
    out, first = [], 0
    for n in key:
        out.append((n, at[first : first + ranks[n]]))
        first += ranks[n]
    assert first == len(at)
    return tuple(sorted(out) if ordered else out)


def given(
    ring: Ring, over: Iterable[Point], terms: Mapping[tuple[int, ...], Iterable[Term]], ordered: bool = True
) -> Polys:
    """What terms stand for, those of one element added up, none left out. ``ordered``: of equal factors either first is
    the same."""
    out: Polys = {p: {} for p in over}
    for key, parts in terms.items():
        for w, r in parts:
            for p, y in pairs(r):
                m = mono(key, y, ring.ranks, ordered)
                out[p][m] = out[p].get(m, Fraction()) + w
    return out


def polys(ring: Ring, a: Value, ordered: bool = True) -> Polys:
    """What a value stands for. Its own form is checked, too: of a key, relations that are disjoint, none empty."""
    for key, parts in a.terms.items():
        seen: set[tuple[Point, Point]] = set()
        for _, r in parts:
            here = set(pairs(r))
            assert here, key
            assert not here & seen, key
            seen |= here
    found = given(ring, points(a.over), a.terms, ordered)
    return {p: normal(ring, x, a.modulus) for p, x in found.items()} if ordered else found


def normal(ring: Ring, a: Poly, modulus: int) -> Poly:
    """As a ring keeps it: squares of what is logical once, weights modulo, zeros only of what may be infinite, a
    constant zero only alone."""
    out: Poly = {}
    for m, w in a.items():
        few = tuple(f for i, f in enumerate(m) if f[0] not in ring.logical or f not in m[:i])
        out[few] = out.get(few, Fraction()) + w
    kept = ring.support and not modulus
    out = {m: w % modulus if modulus else w for m, w in out.items()}
    out = {m: w for m, w in out.items() if w or not m or (kept and not ring.logical.issuperset(n for n, _ in m))}
    return {m: w for m, w in out.items() if m or w or len(out) == 1}


def plus(a: Poly, b: Poly, by: int = 1) -> Poly:
    return {m: a.get(m, Fraction()) + by * b.get(m, Fraction()) for m in {**a, **b}}


def times(a: Poly, b: Poly) -> Poly:
    out: Poly = {}
    for (m, v), (n, w) in product(a.items(), b.items()):
        both = tuple(sorted(m + n))
        out[both] = out.get(both, Fraction()) + v * w
    return out


def counted(a: Poly, sizes: int) -> Poly:
    """With numbers for the elements of the array whose n-th element is n."""
    out: Poly = {}
    for m, w in a.items():
        rest = tuple(f for f in m if f[0] != sizes)
        for _, at in (f for f in m if f[0] == sizes):
            w = w * at[0]
        out[rest] = out.get(rest, Fraction()) + w
    return out


def nothing(a: Poly) -> Poly:
    """Without a constant zero, which says what nothing says."""
    return {m: w for m, w in a.items() if m or w}


RANKS = [1, 1, 0, 2, 1]
LOGICAL = {1, 2}
LINE = [(k,) for k in range(3)]


def ring(support: bool = True, logical: Iterable[int] = ()) -> Ring:
    return Ring(list(RANKS), support, set(logical))


def some_terms(
    rng: random.Random, ring_: Ring, over: list[Point], keys: int = 3, function: bool = False, width: int = 2
) -> dict[tuple[int, ...], list[Term]]:
    """Terms that overlap, of keys with equal factors among them, but no squares of what is logical."""
    out: dict[tuple[int, ...], list[Term]] = {}
    for _ in range(rng.randint(1, keys)):
        key = tuple(sorted(rng.choice([0, 0, 1, 1, 2, 3]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))))
        rank = sum(ring_.ranks[n] for n in key)
        for _ in range(rng.choice([1, 1, 2, 3])):
            some = [p for p in over if rng.random() < 0.8]
            spread = [(p, tuple(rng.randint(0, width - 1) for _ in range(rank)))
                      for p in some for _ in range(1 if function else rng.choice([1, 1, 2]))]  # fmt: skip
            spread = [(p, y) for p, y in spread if no_square(ring_, mono(key, y, ring_.ranks))]
            r = relation(sorted(set(spread)), len(over[0]), rank)
            weight = Fraction(rng.choice([-2, -1, -1, 0, 1, 1, 1, 2, 3, 128]), rng.choice([1, 1, 1, 2]))
            out.setdefault(key, []).append((weight, r))
    return out


def some_value(rng: random.Random, ring_: Ring, over: list[Point], modulus: int = 0, keys: int = 3) -> Value:
    terms = some_terms(rng, ring_, over, keys)
    if modulus:
        terms = {k: [(Fraction(int(w * 2)), r) for w, r in t] for k, t in terms.items()}
    return ring_.value(region(over, len(over[0])), terms, modulus)


def no_square(ring_: Ring, m: Mono) -> bool:
    return all(m.count(f) == 1 for f in m if f[0] in ring_.logical)
