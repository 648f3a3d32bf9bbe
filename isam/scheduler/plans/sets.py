"""How many lines of a block fall on one set of a cache: rows do that lie multiples of its period apart."""

from __future__ import annotations

from collections import Counter
from math import gcd, prod

from isam.caches import LINE, PERIOD
from isam.ir.dtype import size_of
from isam.scheduler.nests import Nest, Use


def crowd(main: Nest, use: Use, width: dict[str, int]) -> int:
    """How many of the lines that a block has side by side, in one step of the sum but the innermost, fall on the set on
    which most do."""
    stride, crowd = size_of(use.dtype), 1
    steps_of = next((a for a in reversed(main.axes) if a in main.reduced), None)
    for row in reversed(use.index):
        inside = [(a, abs(c)) for a, c in row.terms if a in main.extents]
        tiles = {a: min(width.get(a, 1), main.length(a)) for a, _ in inside if a not in main.reduced}
        if steps_of in row.names:
            tiles[steps_of] = main.length(steps_of)
        count, step = values_of([(c, tiles.get(a, 1)) for a, c in inside])
        if stride % LINE == 0:
            crowd *= -(-count * gcd(step * stride, PERIOD) // PERIOD)
        stride *= 1 + sum(c * (main.length(a) - 1) for a, c in inside)
    return crowd


def fullest(main: Nest, use: Use, width: dict[str, int]) -> int:
    """How many of the lines that a block has in all steps of its sum fall on the set on which most do, counted line by
    line; those that steps or calls share count once."""
    stride, lines = size_of(use.dtype), Counter({0: 1})
    for row in reversed(use.index):
        inside = [(a, abs(c)) for a, c in row.terms if a in main.extents]
        taken = {a: main.length(a) if a in main.reduced else min(width.get(a, 1), main.length(a)) for a, _ in inside}
        count, step = values_of([(c, taken[a]) for a, c in inside])
        places = {n * step * stride // LINE for n in range(min(count, PERIOD))}
        moved = Counter[int]()
        for at, many in lines.items():
            for p in places:
                moved[(at + p) % (PERIOD // LINE)] += many
        lines = moved
        stride *= 1 + sum(c * (main.length(a) - 1) for a, c in inside)
    return max(lines.values())


def values_of(terms: list[tuple[int, int]]) -> tuple[int, int]:
    """How many values a sum of multiples takes at most, and at which distance; ``terms``: a factor, and how many values
    it is multiplied with."""
    moving = [(c, n) for c, n in terms if n > 1]
    step = gcd(*(c for c, _ in moving)) or 1
    return min(prod(n for _, n in moving), 1 + sum(c * (n - 1) for c, n in moving) // step), step
