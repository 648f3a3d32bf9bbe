"""A cheap argument that two layouts of one buffer never clash: their addresses are numbers in one mixed radix system.

Two tiles of a packed panel, or of rows, differ by a sum of strides times small numbers, each stride larger than all
that the smaller ones can add up to. Such a sum is near zero only when every number in it is zero, and then the elements
are one and the same. What this does not see is asked of isl (`isam.proof.sets`).
"""

from __future__ import annotations

from isam.ir.affine import Affine
from isam.proof.boxes import Box
from isam.proof.context import Context, Var

Layout = tuple[Box, Affine, tuple[int, ...], tuple[Var, ...]]  # box, first byte, strides, quantified variables


def one_system(one: Layout, two: Layout, size: tuple[int, int], ctx: Context) -> bool:
    """Whether elements of both layouts share a byte only when they are the same element."""
    (mine, offset, strides, over), (theirs, other, same, more) = one, two
    names = [v.name for v in (*over, *more)]
    if strides != same or len(set(names)) != len(names) or any(_bounding(n, ctx) for n in names):
        return False
    for v in (*over, *more):
        ctx = ctx.with_var(v)
    rest = offset - other
    for s, (lo, _), (low, _) in zip(strides, mine, theirs, strict=True):
        rest = rest - (lo - low) * s
    if not rest.terms and not rest.const:
        return _unique([(s, _reach(a, b, ctx)) for s, a, b in zip(strides, mine, theirs, strict=True)], 0, size)
    for d, ((lo, hi), (low, high)) in enumerate(zip(mine, theirs, strict=True)):
        width, apart = hi - lo, lo - low
        factor = _factor(rest, apart)
        if factor is None or width != high - low or width.terms or width.const < 1:
            continue
        if ctx.remainder(width.const, apart) != 0:
            continue
        sides = enumerate(zip(strides, mine, theirs, strict=True))
        digits = [(s, _reach(a, b, ctx)) for e, (s, a, b) in sides if e != d]
        digits.append((strides[d], width.const - 1))
        if _unique(digits, (factor + strides[d]) * width.const, size):
            return True
    return False


def _bounding(name: str, ctx: Context) -> bool:
    """Whether a variable outside is bounded by one of that name (which is another one here)."""
    return any(b.expr.coefficient(name) for v in ctx.vars if v.name != name for b in (*v.lo, *v.hi))


def _factor(rest: Affine, apart: Affine) -> int | None:
    """``k`` with ``rest = k * apart``."""
    if not apart.terms:
        whole = apart.const and not rest.terms and rest.const % apart.const == 0
        return rest.const // apart.const if whole else None
    name, c = apart.terms[0]
    k = rest.coefficient(name)
    return k // c if k % c == 0 and apart * (k // c) == rest else None


def _reach(a: tuple[Affine, Affine], b: tuple[Affine, Affine], ctx: Context) -> int | None:
    """How far apart coordinates in two intervals can be."""
    least, most = ctx.lower(a[0] - b[1] + 1), ctx.lower(b[0] - a[1] + 1)
    return None if least is None or most is None else max(0, -least, -most)


def _unique(digits: list[tuple[int, int | None]], top: int, size: tuple[int, int]) -> bool:
    """Whether a sum of strides times digits, and a multiple of ``top`` (0: none), is within ``size`` of zero only when
    all of them are zero."""
    reached = max(size) - 1
    for stride, digit in sorted(((abs(s), d) for s, d in digits if d != 0), key=lambda x: x[0]):
        if digit is None or stride <= reached:
            return False
        reached += stride * digit
    return top == 0 or abs(top) > reached
