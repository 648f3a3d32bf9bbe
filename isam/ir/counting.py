"""How many points a domain has: its box, less what its conditions cut off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from isam.ir.affine import Affine

MOST = 1 << 20  # points that are looked at, the longest axis of each part aside
FITS = 1 << 62  # values of conditions, and what is summed up, stay below


def admitted(extents: Mapping[str, int], where: Sequence[Affine]) -> int | None:
    """Points of the box with these extents at which every expression of ``where`` is >= 0. None: too many to count.

    Axes that no condition ties together are counted apart; of those tied together the longest has an interval for each
    point of the others.

    >>> admitted({"i": 4, "j": 10}, [Affine.of("i") - "j"])
    10
    """
    if not prod(extents.values()) or any(w.is_constant and w.const < 0 for w in where):
        return 0
    total = 1
    for axes, tied in _parts(extents, [w for w in where if not w.is_constant]):
        n = _tied({a: extents[a] for a in axes}, tied)
        if n is None:
            return None
        total *= n
    return total


def _parts(axes: Iterable[str], where: Sequence[Affine]) -> Iterator[tuple[set[str], list[Affine]]]:
    """Axes in sets that share no condition, with the conditions of each."""
    parts: list[set[str]] = [{a} for a in axes]
    for w in where:
        mine = [p for p in parts if any(n in p for n, _ in w.terms)]
        parts = [p for p in parts if p not in mine] + [set[str]().union(*mine)]
    for p in parts:
        yield p, [w for w in where if w.terms[0][0] in p]


def _tied(extents: Mapping[str, int], where: Sequence[Affine]) -> int | None:
    longest = max(extents, key=extents.__getitem__)
    rest = {a: n for a, n in extents.items() if a != longest}
    reach = max((abs(w.const) + sum(abs(c) * extents[n] for n, c in w.terms) for w in where), default=0)
    if not where:
        return prod(extents.values())
    if prod(rest.values()) > MOST or max(reach, prod(extents.values())) >= FITS:
        return None
    at = dict(zip(rest, np.ogrid[tuple(slice(n) for n in rest.values())], strict=True)) if rest else {}
    low: Any = np.zeros(tuple(rest.values()), np.int64)
    high: Any = low + extents[longest]
    for w in where:
        value: Any = sum((c * at[n] for n, c in w.terms if n != longest), w.const)
        c = w.coefficient(longest)
        if c > 0:
            low = np.maximum(low, -(value // c))
        elif c < 0:
            high = np.minimum(high, value // -c + 1)
        else:
            high = np.where(np.greater_equal(value, 0), high, low)
    return int(np.maximum(high - low, 0).sum())
