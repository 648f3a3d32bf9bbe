"""Two cheap arguments that layouts never clash: their addresses are numbers in one mixed radix system.

Two tiles of a packed panel, or of rows, differ by a sum of strides times small numbers, each stride larger than all
that the smaller ones can add up to. Such a sum is near zero only when every number in it is zero, and then the elements
are one and the same (:func:`one_system`). And where the large strides are multiples of one number, what the small ones
add up to may keep away from all its multiples: then nothing ever meets (:func:`never_meet`). What this does not see is
asked of isl (`isam.proof.sets`).
"""

from __future__ import annotations

from math import gcd

from isam.ir.affine import Affine
from isam.proof.boxes import Box
from isam.proof.context import Context, Var

Layout = tuple[Box, Affine, tuple[int, ...], tuple[Var, ...]]  # box, first byte, strides, quantified variables


def one_system(one: Layout, two: Layout, size: tuple[int, int], ctx: Context) -> bool:
    """Whether elements of both layouts share a byte only when they are the same element."""
    (mine, offset, strides, over), (theirs, other, same, more) = one, two
    if strides != same or not _separate(one, two, ctx):
        return False
    ctx = ctx.with_vars((*over, *more))
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
        top = (factor + strides[d]) * width.const
        if top and _unique(digits, top, size):  # else all of these intervals lie at one place
            return True
    return False


def never_meet(one: Layout, two: Layout, size: tuple[int, int], ctx: Context) -> bool:
    """Whether no element of one layout ever shares a byte with one of the other."""
    (mine, offset, strides, over), (theirs, other, same, more) = one, two
    if not _separate(one, two, ctx):
        return False
    ctx = ctx.with_vars((*over, *more))
    far = _Distance(0, [])
    for sign, side, by in ((1, mine, strides), (-1, theirs, same)):
        for k, (lo, hi) in zip(by, side, strict=True):
            far.add(sign * k, 0, _negative(ctx.lower(lo - hi + 1)))
    rest = offset - other
    while rest.terms:
        name, c = max(rest.terms, key=lambda term: ctx.depth(term[0]))
        v = ctx.var(name)
        if v is None or v.origin is None:
            far.add(c, None, None)
            rest = rest - Affine.of(name, c)
        else:
            steps = Affine.of(name) - v.origin
            least, most = ctx.lower(steps), ctx.lower(-steps)  # the second of the negative
            far.add(c * v.step, None if least is None else -(-least // v.step),
                    None if most is None else -most // v.step)  # fmt: skip
            rest = rest - Affine.of(name, c) + v.origin * c
    far.const += rest.const
    return far.avoids(-size[0] + 1, size[1] - 1)


def _separate(one: Layout, two: Layout, ctx: Context) -> bool:
    """Whether the variables of each layout are spoken of nowhere else, so that all of them may be put into one context
    (a variable outside may have such a name, and be another one)."""
    outside = {n for v in ctx.vars for n in _named_by(v)}
    return all(outside.isdisjoint(named) and _spoken_of(other).isdisjoint(named)
               for named, other in (({v.name for v in x[3]}, y) for x, y in ((one, two), (two, one))))  # fmt: skip


def _spoken_of(layout: Layout) -> set[str]:
    """The variables in a layout's addresses, and its own."""
    box, offset, _, over = layout
    exprs = (offset, *(x for side in box for x in side))
    return {n for e in exprs for n in e.names} | {n for v in over for n in (v.name, *_named_by(v))}


def _named_by(v: Var) -> list[str]:
    return [n for b in (*v.lo, *v.hi) for n in b.expr.names]


def _negative(n: int | None) -> int | None:
    return None if n is None else -n


class _Distance:
    """A number: a constant and strides times digits of which an upper limit (None: none) is known."""

    def __init__(self, const: int, digits: list[tuple[int, int | None]]):
        self.const, self.digits = const, digits

    def add(self, stride: int, least: int | None, most: int | None) -> None:
        """One more digit, from ``least`` to ``most``."""
        if least is None or most is None:
            self.digits.append((stride, None))
        else:
            self.const += stride * least
            self.digits.append((stride, max(0, most - least)))

    def avoids(self, low: int, high: int) -> bool:
        """Whether it is never ``low`` to ``high``: the digits of the largest strides add multiples of one number."""
        digits = sorted((d for d in self.digits if d[0] and d[1] != 0), key=lambda d: abs(d[0]))
        first, last = self.const - high, self.const - low  # what must hold no multiple
        for at in range(len(digits) + 1):
            by = gcd(*(s for s, _ in digits[at:]))
            if last < 0 or first > 0 if by == 0 else last // by * by < first:
                return True
            if at < len(digits):
                stride, most = digits[at]
                if most is None:
                    return False
                first, last = first + min(0, stride * most), last + max(0, stride * most)
        return False


def _factor(rest: Affine, apart: Affine) -> int | None:
    """``k`` with ``rest = k * apart``."""
    name, part = apart.terms[0] if apart.terms else ("", apart.const)
    if not part:
        return None
    k = (rest.coefficient(name) if name else rest.const) // part
    return k if apart * k == rest else None


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
