"""Whether tiles are apart, or one lies inside another, whatever the loop variables are."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from isam.ir.affine import Affine
from isam.ir.kernel import FAR
from isam.schedule.tree import Tile


class Ranges(dict[str, tuple[int, int]]):
    """Inclusive ranges of the loop variables in scope, outermost first. ``origin``: for a variable whose loop begins at
    another's value, that beginning and how far the variable goes beyond it."""

    def __init__(self) -> None:
        super().__init__()
        self.origin: dict[str, tuple[Affine, int]] = {}

    def enter(self, name: str, lo: Affine, bounds: tuple[int, int]) -> int:
        """How far the variable goes beyond its beginning."""
        width = bounds[1] - bounds[0]
        if lo.terms:
            if not all(n in self for n in lo.names):
                width = FAR
            else:
                low = lo.bounds(self)
                width -= low[1] - low[0]
                self.origin[name] = (lo, width)
        self[name] = bounds
        return width

    def later(self, name: str, by: int) -> Ranges:
        """The same where the variable has gone ``by`` further at least."""
        out = Ranges()
        out.update(self)
        out.origin.update(self.origin)
        low, high = self[name]
        out[name] = min(low + by, high), high
        if name in self.origin:
            start, width = self.origin[name]
            out.origin[name] = start + by, max(0, width - by)
        return out

    def leave(self, name: str) -> None:
        del self[name]
        self.origin.pop(name, None)


def disjoint(a: Tile, b: Tile, ranges: Mapping[str, tuple[int, int]]) -> bool:
    """True when the boxes certainly share no element (conservative): apart, or each between the steps of the other."""
    for s, t, n, m, p, q in zip(a.start, b.start, a.shape, b.shape, a.steps, b.steps, strict=True):
        if n == 0 or m == 0:
            return True
        if s[0] == t[0]:
            lo = hi = t[1] - s[1]
        else:
            lo, hi = bounds_of(t - s, ranges)
        if lo > (n - 1) * p or hi < -(m - 1) * q:
            return True
        if (p > 1 or q > 1) and _between_steps(t - s, gcd(p if n > 1 else 0, q if m > 1 else 0)):
            return True
    return False


def _between_steps(gap: Affine, step: int) -> bool:
    """Whether elements ``step`` apart never meet others as far apart that begin a ``gap`` behind: these lie between."""
    return step > 1 and gap.const % step != 0 and all(c % step == 0 for _, c in gap.terms)


def encloses(a: Tile, b: Tile, ranges: Mapping[str, tuple[int, int]]) -> bool:
    """True when box ``a`` certainly holds every element of ``b``. ``a`` must be dense (steps of one)."""
    for s, t, n, m, p, q in zip(a.start, b.start, a.shape, b.shape, a.steps, b.steps, strict=True):
        lo, hi = _between(s, t, ranges)
        if p != 1 and (n > 1 or m > 1):
            return False
        if lo < 0 or hi + (m - 1) * q > n - 1:
            return False
    return True


def _between(s: Affine, t: Affine, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """The smallest and largest difference ``t - s``."""
    if s.terms == t.terms:
        diff = t.const - s.const
        return diff, diff
    return bounds_of(t - s, ranges)


def bounds_of(e: Affine, ranges: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """Smallest and largest value; variables are taken relative to where their loops begin, innermost first."""
    lo = hi = 0
    if isinstance(ranges, Ranges) and ranges.origin:
        for name in reversed(ranges):
            c = e.coefficient(name)
            if c and name in ranges.origin:
                start, width = ranges.origin[name]
                e = e.substitute({name: start})
                lo, hi = lo + min(0, c * width), hi + max(0, c * width)
    for name, c in e.terms:
        a, b = ranges.get(name, (0, FAR))
        lo, hi = lo + min(c * a, c * b), hi + max(c * a, c * b)
    return lo + e.const, hi + e.const


def mentions(tile: Tile, var: str) -> bool:
    return any(name == var for row in tile.start for name, _ in row.terms)
