"""Whether families hold the points of a box that conditions admit, shown without a list of those points.

What a condition on one axis leaves out needs no family: a box that reaches as far as the condition reaches everywhere.
Where a condition ties axes together, the question is put for any one point of these: a variable for each of its
coordinates, whose bounds are what the conditions say. Sound, never complete, as all of ``boxes`` is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isam.ir.affine import Affine
from isam.proof.boxes import Box, Family, covered
from isam.proof.context import Context, Var
from isam.schedule.tree import Bound


def covered_where(
    target: Box, families: Iterable[Family], ctx: Context, where: Sequence[Affine], names: Sequence[str]
) -> bool:
    """Whether every point of ``target`` at which each condition (over ``names``, its coordinates) is at least 0 is
    proved to be in some family."""
    one = {n: lo for n, (lo, hi) in zip(names, target, strict=True) if hi - lo == Affine((), 1)}
    for w in where:  # what conditions say of the one value of a coordinate is known of the loops that it names
        if all(n in one or n not in names for n in w.names):
            told = w.substitute(one)
            if not told.terms and told.const < 0:
                return True  # no point is admitted
            ctx = ctx.given(told)
    at = {n: f"point {n}" for n in names}
    put = {n: Affine.of(p) for n, p in at.items()}
    points = [at[n] for n in names]
    conditions = [w.substitute(put) for w in where]
    among = [[p for p in points if w.coefficient(p)] for w in conditions]
    tied = {p for ps in among if len(ps) > 1 for p in ps}
    alone = [(ps[0], w) for ps, w in zip(among, conditions, strict=True) if len(ps) == 1]
    families = list(families)
    some = [_reaching(f, target, [(points.index(p), p, w) for p, w in alone], ctx) for f in families]
    if covered(*_any_point(target, points, tied, conditions, some, ctx)):
        return True
    every = {p for ps in among for p in ps}
    return every != tied and covered(*_any_point(target, points, every, conditions, families, ctx))


def _any_point(
    target: Box,
    points: Sequence[str],
    tied: set[str],
    conditions: Sequence[Affine],
    families: list[Family],
    ctx: Context,
) -> tuple[Box, list[Family], Context]:
    """The question for one point of the ``tied`` coordinates, whose values are variables."""
    box = dict(zip(points, target, strict=True))
    for p in points:
        if p in tied:
            ctx = ctx.with_var(_coordinate(p, box, conditions, ctx))
    one = tuple((Affine.of(p), Affine.of(p, 1, 1)) if p in tied else box[p] for p in points)
    return one, families, ctx


def _coordinate(p: str, box: dict[str, tuple[Affine, Affine]], conditions: Sequence[Affine], ctx: Context) -> Var:
    """A coordinate, from its interval and from the conditions: those not yet known have the values of their intervals
    that leave most."""
    lo, hi = [Bound(box[p][0])], [Bound(box[p][1] - 1)]
    for w in conditions:
        c = w.coefficient(p)
        if not c:
            continue
        rest = w - Affine.of(p, c)
        for q, k in rest.terms:
            if q in box and ctx.var(q) is None:
                rest = rest - Affine.of(q, k) + (box[q][1] - 1 if k > 0 else box[q][0]) * k
        if c > 0:
            lo.append(Bound(-rest, c))
        else:
            hi.append(Bound(rest, -c))
    return Var(p, tuple(dict.fromkeys(lo)), tuple(dict.fromkeys(hi)))


def _reaching(f: Family, target: Box, alone: Sequence[tuple[int, str, Affine]], ctx: Context) -> Family:
    """The family with sides that reach as far as the target's where no point beyond them is admitted."""
    box = list(f.box)
    for d, p, w in alone:
        lo, hi = box[d]
        c = w.coefficient(p)
        if c > 0 and ctx.le(w.substitute({p: lo - 1}), -1):
            lo = target[d][0]
        elif c < 0 and ctx.le(w.substitute({p: hi}), -1):
            hi = target[d][1]
        box[d] = lo, hi
    return Family(tuple(box), f.over)
