"""Which instances touch given elements, as boxes that are never too small."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from isam.ir.affine import Affine
from isam.ir.kernel import Access
from isam.proof.boxes import Box
from isam.proof.context import Context


def never_meet(one: Access, other: Access) -> bool:
    """Whether two accesses of a buffer have no element in common, whatever axes and sizes are: along some dimension all
    that both go on by are multiples of a number, and what is left over on division by it differs."""
    for r, s in zip(one.index, other.index, strict=True):
        steps = gcd(*(c for _, c in (*r.terms, *s.terms)))
        if steps > 1 and (r.const - s.const) % steps:
            return True
    return False


def touched(access: Access, box: Box, names: Sequence[str]) -> Box:
    """The elements that an access touches over a box of instances (the smallest box around them)."""
    at = dict(zip(names, box, strict=True))
    reached = (_reach(row, at) for row in access.index)
    return tuple((lo, hi + 1) for lo, hi in reached)


def preimage(access: Access, elements: Box, names: Sequence[str], domain: Box, ctx: Context) -> Box:
    """A box with every instance of ``domain`` whose access lies in ``elements``."""
    at = dict(zip(names, domain, strict=True))
    out = dict(at)
    for row, (lo, hi) in zip(access.index, elements, strict=True):
        if not any(n in at for n, _ in row.terms) and (ctx.le(hi, row) or ctx.le(row + 1, lo)):
            return tuple((first, first) for first, _ in domain)  # beside them, whatever the instance
        for n, c in row.terms:
            if n not in at:
                continue
            rest_lo, rest_hi = _reach(row - Affine.of(n, c), at)
            least, most = lo - rest_hi, hi - 1 - rest_lo  # c * n lies between
            if c < 0:
                least, most, c = -most, -least, -c
            low, high = _up(least, c), _down(most, c)
            if low is not None and ctx.le(out[n][0], low):
                out[n] = (low, out[n][1])
            if high is not None and ctx.le(high + 1, out[n][1]):
                out[n] = (out[n][0], high + 1)
    return tuple(out[n] for n in names)


def within(
    base: Box, names: Sequence[str], alike: Mapping[str, str], at: Mapping[str, tuple[Affine, Affine]], ctx: Context
) -> Box:
    """``base`` cut to where axes have the values of others (``alike``), which lie ``at`` intervals; a run-time size
    among those stands for itself. Of two ends the nearer one is taken where that shows: those others may reach beyond
    the domain, where there is nothing to wait for."""
    out = []
    for n, (lo, hi) in zip(names, base, strict=True):
        if n in alike:
            size = Affine.of(alike[n])
            first, end = at.get(alike[n], (size, size + 1))
            lo, hi = first if ctx.le(lo, first) else lo, end if ctx.le(end, hi) else hi
        out.append((lo, hi))
    return tuple(out)


def _reach(row: Affine, at: Mapping[str, tuple[Affine, Affine]]) -> tuple[Affine, Affine]:
    """Least and greatest value of a row over a box; what is no axis of it (a run-time size) stands for itself."""
    lo = hi = Affine((), row.const)
    for n, c in row.terms:
        first, last = (at[n][0], at[n][1] - 1) if n in at else (Affine.of(n), Affine.of(n))
        lo, hi = (lo + first * c, hi + last * c) if c > 0 else (lo + last * c, hi + first * c)
    return lo, hi


def _up(e: Affine, c: int) -> Affine | None:
    if any(k % c for _, k in e.terms):
        return None
    return Affine(tuple((n, k // c) for n, k in e.terms), -(-e.const // c))


def _down(e: Affine, c: int) -> Affine | None:
    if any(k % c for _, k in e.terms):
        return None
    return Affine(tuple((n, k // c) for n, k in e.terms), e.const // c)


def before_boxes(
    base: Box,
    names: Sequence[str],
    counters: Sequence[str],
    own: Mapping[str, tuple[Affine, Affine]],
    same: bool,
    ctx: Context,
) -> list[Box]:
    """``base`` cut to what comes lexicographically before ``own`` in the ``counters``; ``same``: equality included.

    Where ``own`` spans several values of a counter, what precedes its first one.
    """
    out = []
    box = dict(zip(names, base, strict=True))
    for n in counters:
        lo, hi = box[n]
        out.append(tuple({**box, n: (lo, own[n][0])}[m] for m in names))
        if ctx.le(own[n][1], lo) or ctx.le(hi, own[n][0]):
            return out  # none has its value of the counter
        box[n] = own[n]
    if same:
        out.append(tuple(box[m] for m in names))
    return out
