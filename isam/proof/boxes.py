"""Boxes with affine bounds, families of boxes over loop variables, and what can be proved of them without isl.

A bound is affine in the variables of a :class:`Context`; a box is half open in every dimension. A *family* is a box
with quantified variables of its own: the union over all their values. Everything here is sound and incomplete: ``True``
means proved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from isam.ir.affine import Affine
from isam.proof.context import Context, Var, last_value, loop_var
from isam.schedule.tree import Bound, Loop, Seq

Box = tuple[tuple[Affine, Affine], ...]
ROUNDS = 64  # boxes looked at, parts of parts among them; then it is not shown


class Family(NamedTuple):
    """The union of ``box`` over all values of ``over`` (outermost first; their names are used nowhere else)."""

    box: Box
    over: tuple[Var, ...] = ()


def dim(d: int, prefix: str = "d") -> str:
    """What the proof calls a dimension. No loop and no size is called so: their names hold no blank (see ``scope``)."""
    return f"{prefix}{d} "


def box_of(start: Iterable[Affine], shape: Iterable[int], steps: Iterable[int] | None = None) -> Box:
    """The smallest box around a tile."""
    if steps is None:
        return tuple([(s, s + n) for s, n in zip(start, shape, strict=True)])
    return tuple([(s, s + ((n - 1) * k + 1)) for s, n, k in zip(start, shape, steps, strict=True)])


def replaced(box: Box, name: str, by: Affine) -> Box:
    sub = {name: by}
    return tuple((lo.substitute(sub), hi.substitute(sub)) for lo, hi in box)


def contains(outer: Box, inner: Box, ctx: Context) -> bool:
    return outer == inner or all(
        (a is c or a == c or ctx.le(a, c)) and (d is b or d == b or ctx.le(d, b))
        for (a, b), (c, d) in zip(outer, inner, strict=True)
    )


def disjoint(one: Box, two: Box, ctx: Context) -> bool:
    for (a, b), (c, d) in zip(one, two, strict=True):
        if a.terms == c.terms == b.terms == d.terms:
            if b.const <= c.const or d.const <= a.const:
                return True
        elif ctx.le(b, c) or ctx.le(d, a):
            return True
    return False


def empty(box: Box, ctx: Context) -> bool:
    return any(hi.const <= lo.const if hi.terms == lo.terms else ctx.le(hi, lo) for lo, hi in box)


def joined(one: Box, two: Box, ctx: Context | None = None) -> Box | None:
    """The union when it is a box and the parts only touch; nothing that is not shown in a context. Without one a part
    may end before it begins: then the box holds less than both do."""
    at = -1
    for d, (p, q) in enumerate(zip(one, two, strict=True)):
        if p != q:
            if at >= 0:
                return None
            at = d
    if at < 0:
        return None
    (a, b), (c, d2) = one[at], two[at]
    lo, seam, hi = (a, b, d2) if b == c else (c, a, b)
    if b != c and d2 != a:
        return None
    if ctx is not None and not (ctx.le(lo, seam) and ctx.le(seam, hi)):
        return None
    return (*one[:at], (lo, hi), *one[at + 1 :])


def merge(families: Iterable[Family], have: Iterable[Family] = (), ctx: Context | None = None) -> list[Family]:
    """Fewer families with the same points, each as often as before; without a context for their variables, with no
    others. ``have``: before them, merged already."""
    out = list(have)
    for f in families:
        while True:
            for i in range(len(out) - 1, -1, -1):
                g = out[i]
                if g.over != f.over:
                    continue
                box = joined(g.box, f.box, None if ctx is None else ctx.with_vars(f.over))
                if box is not None:
                    f = Family(box, f.over)
                    del out[i]
                    break
            else:
                break
        out.append(f)
    return out


def minus(target: Box, hole: Box, ctx: Context) -> list[Box] | None:
    """Boxes that hold what of ``target`` is outside ``hole``; ``None``: nothing was proved to go."""
    parts: list[Box] = []
    rest = target
    for d, ((lo, hi), (a, b)) in enumerate(zip(target, hole, strict=True)):
        left, right = not (a == lo or ctx.le(a, lo)), not (b == hi or ctx.le(hi, b))
        if left and not (ctx.le(lo, a) and ctx.le(a, hi)):
            return None
        if right and not (ctx.le(b, hi) and ctx.le(lo, b)):
            return None
        if left:
            parts.append((*rest[:d], (lo, a), *rest[d + 1 :]))
        if right:
            parts.append((*rest[:d], (b, hi), *rest[d + 1 :]))
        rest = (*rest[:d], (a if left else lo, b if right else hi), *rest[d + 1 :])
    return parts


def covered(target: Box, families: Iterable[Family], ctx: Context) -> bool:
    """Whether the union of the families is proved to hold ``target``."""
    left = [target]
    have = list(families)
    for _ in range(ROUNDS):
        if not left:
            return True
        box = left.pop()
        if empty(box, ctx):
            continue
        for f in have:
            whole = f.box if not f.over else instance(f, box, ctx)
            parts = None if whole is None else minus(box, whole, ctx)
            if parts is not None and parts != [box]:
                left += parts
                break
        else:
            return False
    return False


def instance(f: Family, target: Box, ctx: Context) -> Box | None:
    """The member of the family that holds the target's first point."""
    values = chosen(f.over, f.box, target, ctx, idle=_idle(f))
    if values is None:
        return None
    return tuple((lo.substitute(values), hi.substitute(values)) for lo, hi in f.box)


def chosen(
    over: tuple[Var, ...],
    box: Box,
    target: Box,
    ctx: Context,
    also: tuple[tuple[Affine, Affine], ...] = (),
    idle: Mapping[str, Affine] | None = None,
) -> dict[str, Affine] | None:
    """Values of quantified variables for which ``box`` begins where ``target`` does, or shortly before. ``also``: more
    that is to be equal; ``idle``: the values of variables of which no equation says anything."""
    values: dict[str, Affine] = {}
    open_ = [v.name for v in over]
    for v in over * len(over):
        if v.name in values:
            continue
        pairs = [*((lo, t[0]) for (lo, _), t in zip(box, target, strict=True)), *also]
        value = solve(v.name, open_, ((left.substitute(values), right) for left, right in pairs))
        if value is None and idle and v.name in idle:
            value = idle[v.name].substitute(values)
            value = None if any(value.coefficient(u) for u in open_) else value
        if value is not None:
            values[v.name] = value
            open_.remove(v.name)
            if v.step != 1:
                rest = None if v.origin is None else ctx.remainder(v.step, value - v.origin.substitute(values))
                if rest is None:
                    return None
                values[v.name] = value - rest
    if open_ or not all(admitted(values[v.name], v, values, ctx) for v in over):
        return None
    return values


def _idle(f: Family) -> dict[str, Affine]:
    """The least values of variables on which the box does not depend, as those of loops that run once or not at all:
    any value does, so long as there is one."""
    told = {n for side in f.box for e in side for n, _ in e.terms}
    return {v.name: v.lo[0].expr for v in f.over if v.name not in told and v.lo and v.lo[0].div == 1}


def solve(name: str, unknown: list[str], equations: Iterable[tuple[Affine, Affine]]) -> Affine | None:
    """The value of ``name`` that makes the first side of some equation the second, if it is an affine integer."""
    for left, right in equations:
        c = left.coefficient(name)
        if not c or any(left.coefficient(u) for u in unknown if u != name):
            continue
        rest = right - (left - Affine.of(name, c))
        if rest.const % c or any(k % c for _, k in rest.terms):
            continue
        return Affine(tuple((n, k // c) for n, k in rest.terms), rest.const // c)
    return None


def admitted(value: Affine, var: Var, values: dict[str, Affine], ctx: Context) -> bool:
    """Whether ``value``, congruent to the variable's origin, is proved to be within its bounds."""
    return all(ctx.nonneg(value * b.div - b.expr.substitute(values)) for b in var.lo) and all(
        ctx.nonneg(b.expr.substitute(values) - value * b.div) for b in var.hi
    )


class Span(NamedTuple):
    """The values of a loop variable in some iterations: ``first`` to ``last`` where those are affine, described by
    ``desc``; ``once``: exactly one value; ``some``: at least one."""

    var: str
    step: int
    first: Affine | None
    last: Affine | None
    desc: Var
    once: bool = False
    some: bool = False


def span(loop: Loop, skip_first: bool = False, skip_last: bool = False) -> Span:
    """All iterations of a loop, or all but the first or last."""
    return _span(loop.var, loop.lo, loop.hi, loop.step, skip_first, skip_last)


@lru_cache(maxsize=1024)
def _span(var: str, lo: tuple[Bound, ...], hi: tuple[Bound, ...], step: int, skip_first: bool, skip_last: bool) -> Span:
    loop = Loop(var, lo, hi, step, Seq())
    first = loop.lo[0].expr if len(loop.lo) == 1 and loop.lo[0].div == 1 else None
    last = last_value(loop)
    desc = loop_var(loop)
    trip = loop.trip
    if skip_first:
        first = None if first is None else first + loop.step
        desc = replace(desc, lo=tuple(Bound(b.expr + b.div * loop.step, b.div) for b in desc.lo))
    if skip_last:
        last = None if last is None else last - loop.step
        desc = replace(desc, hi=tuple(Bound(b.expr - b.div * loop.step, b.div) for b in desc.hi))
    left = -1 if trip is None else trip - skip_first - skip_last
    return Span(loop.var, loop.step, first, last, desc, left == 1, left >= 1)


def earlier(loop: Loop, skip_first: bool = False) -> Span:
    """The iterations before the present one (whose value is the loop variable itself)."""
    s = span(loop, skip_first)
    before = Bound(Affine.of(loop.var, 1, -loop.step))
    return Span(loop.var, loop.step, s.first, before.expr, replace(s.desc, hi=(*s.desc.hi, before)))


ONCE, UNKNOWN, TWICE = 0, 1, 2  # how often points are in a union of families: worse is larger


def lifted(f: Family, over: Span, fresh: str) -> tuple[Family, int]:
    """The union of ``f`` over some iterations of a loop, and whether a point may be in two of them.

    UNKNOWN only where the loop variable stays quantified, so that isl can still tell.
    """
    var, first, last = over.var, over.first, over.last
    inside = any(b.expr.coefficient(var) for v in f.over for b in v.lo + v.hi)
    moving = [d for d, (lo, hi) in enumerate(f.box) if lo.coefficient(var) or hi.coefficient(var)]
    if not moving and not inside and over.some:
        return f, ONCE if over.once else TWICE
    if over.once and first is not None:
        return at_value(f, var, first), ONCE
    if len(moving) == 1 and not inside and first is not None and last is not None:
        d = moving[0]
        lo, hi = f.box[d]
        c, gap = lo.coefficient(var), hi - lo
        meet = gap.is_constant and 0 < abs(c) * over.step <= gap.const
        if meet and (over.some or abs(c) * over.step == gap.const):
            ends = (lo.substitute({var: first}), hi.substitute({var: last}))
            if c < 0:
                ends = (lo.substitute({var: last}), hi.substitute({var: first}))
            return Family((*f.box[:d], ends, *f.box[d + 1 :]), f.over), ONCE if abs(
                c
            ) * over.step == gap.const else TWICE
    v = over.desc
    named = Var(fresh, v.lo, v.hi, v.step, v.origin)
    moved = at_value(f, var, Affine.of(fresh))
    apart = any(_steps_apart(f.box[d], var, over.step) for d in moving)
    return Family(moved.box, (named, *moved.over)), ONCE if apart and not f.over else UNKNOWN


def at_value(f: Family, var: str, value: Affine) -> Family:
    """The family in the one iteration with that value."""
    return Family(replaced(f.box, var, value), tuple(_bound(v, var, value) for v in f.over))


def _steps_apart(side: tuple[Affine, Affine], var: str, step: int) -> bool:
    gap = side[1] - side[0]
    return gap.is_constant and abs(side[0].coefficient(var)) * step >= gap.const


def _bound(v: Var, name: str, by: Affine) -> Var:
    """A quantified variable whose bounds mentioned ``name``."""
    sub = {name: by}
    lo = tuple(Bound(b.expr.substitute(sub), b.div) for b in v.lo)
    hi = tuple(Bound(b.expr.substitute(sub), b.div) for b in v.hi)
    return Var(v.name, lo, hi, v.step, None if v.origin is None else v.origin.substitute(sub))


def hull(box: Box, over: Span) -> Box | None:
    """The smallest box around ``box`` over some iterations, or ``None`` when it is not affine."""
    out = []
    for lo, hi in box:
        for bound, up in ((lo, False), (hi, True)):
            c = bound.coefficient(over.var)
            end = over.last if (c > 0) == up else over.first
            if not c:
                out.append(bound)
            elif end is None:
                return None
            else:
                out.append(bound.substitute({over.var: end}))
    return tuple(zip(out[::2], out[1::2], strict=True))
