"""Which loops nests may share, and how their axes are named then (SCH-11). Which of them do, ``grouping.py`` asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd

from isam.ir.affine import Affine
from isam.schedule.literals import is_literal
from isam.scheduler.nests import Nest

Nests = tuple[Nest, ...]


def rename(nest: Nest, names: dict[str, str]) -> Nest:
    """The nest with other axis names (its mapping keeps the kernel's), no two the same."""
    assert len({names.get(a, a) for a in nest.extents}) == len(nest.extents), names
    sub = {a: Affine.of(b) for a, b in names.items() if a != b}
    if not sub:
        return nest
    uses = tuple(replace(u, index=tuple(r.substitute(sub) for r in u.index)) for u in nest.uses)
    return replace(
        nest,
        extents={names.get(a, a): e for a, e in nest.extents.items()},
        mapped={names.get(a, a): m for a, m in nest.mapped.items()},
        origin={names.get(a, a): o for a, o in nest.origin.items()},
        uses=uses,
        own={b: nest.own.get(a, a) for a, b in names.items()},
        where=tuple(w.substitute(sub) for w in nest.where),
    )


def shareable(p: Nest, q: Nest) -> dict[str, frozenset[str]] | None:
    """For each axis of ``q`` the axes of the earlier ``p`` over which both may run in one loop; None: no constraint.

    Sound rule: for every buffer through which they depend on each other, and every pair of accesses to it that may
    meet, some buffer dimension is indexed by exactly the one axis in ``p`` and exactly the other in ``q``; or by
    several that it tells apart, as a number does its digits, of the same weights in both.
    """
    known = p.beside.get(id(q))
    if known is None:
        known = p.beside[id(q)] = q, _shareable(p, q)  # which keeps the other, and so its number
    return known[1]


def _shareable(p: Nest, q: Nest) -> dict[str, frozenset[str]] | None:
    pairs: set[tuple[str, str]] | None = None
    for buffer in {u.buffer for u in p.uses} & {u.buffer for u in q.uses}:
        if is_literal(buffer):
            continue
        for u in (u for u in p.uses if u.buffer == buffer):
            for v in (v for v in q.uses if v.buffer == buffer):
                if not (u.writes or v.writes) or _disjoint(p, u.index, q, v.index):
                    continue
                here = {pair for r, s in zip(u.index, v.index, strict=True) for pair in _same_axes(p, r, q, s)}
                pairs = here if pairs is None else pairs & here
    if pairs is None:
        return None
    out: dict[str, frozenset[str]] = {a: frozenset() for a in q.axes}
    for a, b in pairs:
        if a in p.extents and b in q.extents and p.extents[a] == q.extents[b]:
            out[b] = out[b] | {a}
    return out


def _disjoint(p: Nest, one: tuple[Affine, ...], q: Nest, other: tuple[Affine, ...]) -> bool:
    """Whether in some dimension all that one access reaches lies before all that the other one does, or between it: at
    other remainders on division by what all their steps are multiples of."""
    if any(_apart(r, s) for r, s in zip(one, other, strict=True)):
        return True
    spans = [(_reach(p, r), _reach(q, s)) for r, s in zip(one, other, strict=True)]
    return any(a and b and (a[1] < b[0] or b[1] < a[0]) for a, b in spans)


def _apart(r: Affine, s: Affine) -> bool:
    """Whether two rows have different remainders whatever their variables are."""
    steps = gcd(*(c for _, c in (*r.terms, *s.terms)))
    return steps > 1 and (r.const - s.const) % steps != 0


def _reach(nest: Nest, row: Affine) -> tuple[int, int] | None:
    """The least and the largest value of an index, where it is a number."""
    if any(n not in nest.extents or not nest.extents[n].is_constant for n in row.names):
        return None
    first = {n: nest.origin.get(n, 0) for n in row.names}
    return row.bounds({n: (o, o + max(1, nest.length(n)) - 1) for n, o in first.items()})


def _same_axes(p: Nest, r: Affine, q: Nest, s: Affine) -> list[tuple[str, str]]:
    """Axes of two rows that have one value wherever the rows have."""
    if r.const != s.const or len(r.terms) != len(s.terms):
        return []
    ours, theirs = (sorted(row.terms, key=lambda t: abs(t[1])) for row in (r, s))
    reach = 0
    for (a, weight), (b, other) in zip(ours, theirs, strict=True):
        if weight != other or abs(weight) <= reach:
            return []
        if len(ours) > 1:
            extent = p.extents.get(a)
            if extent is None or not extent.is_constant or extent != q.extents.get(b):
                return []
            reach += abs(weight) * (extent.const - 1)
    return [(a, b) for (a, _), (b, _) in zip(ours, theirs, strict=True)]


def join(
    group: tuple[Nest, ...], q: Nest, apart: frozenset[str] = frozenset(), behind: tuple[Nest, ...] = ()
) -> Nest | None:
    """``q`` renamed to share axes with the group where every dependence allows it, or None when it shares none.
    ``apart``: axes of its own that it shall not share. ``behind``: nests that come after it, with loops of their own.

    An axis may be shared only when no nest between lacks it: what lacks it runs before or after the loop.
    """
    allowed: dict[str, set[str]] = {}
    tied = False
    for p in group:
        rule = shareable(p, q)
        if rule is None:
            continue
        tied = True
        for b in q.axes:
            # a group axis that p lacks is no obstacle: p runs before the loop (or in its first iteration)
            free = {a for m in group for a in m.axes if a not in p.extents}
            ok = set(rule.get(b, frozenset())) | free
            allowed[b] = ok if b not in allowed else allowed[b] & ok
    if not tied:
        return None
    names: dict[str, str] = {}
    taken: set[str] = set()
    for b in q.axes:
        if b in apart:
            continue
        match = next(
            (
                a
                for a in _contiguous(group)
                if a in allowed.get(b, ()) and a not in taken and _extent(group, a) == q.extents[b]
            ),
            None,
        )
        if match is not None:
            names[b] = match
            taken.add(match)
    if not names:
        return None
    existing = {a for m in (*group, *behind) for a in m.axes}
    for b in q.axes:
        if b not in names:
            names[b] = fresh(b, existing | set(names.values()))
    return rename(q, names)


def _contiguous(group: tuple[Nest, ...]) -> tuple[str, ...]:
    """Axes of the group that its last nest has: what lacks an axis after it was used would have to run in the middle of
    its loop."""
    return tuple(a for a in dict.fromkeys(a for n in group for a in n.axes) if a in group[-1].extents)


def _extent(group: tuple[Nest, ...], axis: str) -> Affine:
    return next(n.extents[axis] for n in group if axis in n.extents)


def depends(group: Nests, n: Nest) -> bool:
    """Whether a nest has to come after some nest of the group."""
    return any(shareable(p, n) is not None for p in group)


def late(group: Nests) -> bool:
    """Whether a nest lacks a loop of nests before and after it, so that it runs after that, and one of the latter
    depends on it."""
    for k, n in enumerate(group):
        open_ = {a for m in group[:k] for a in m.extents if a not in n.extents}
        if any(not open_.isdisjoint(m.extents) and shareable(n, m) is not None for m in group[k + 1 :]):
            return True
    return False


def shared_axes(group: Nests, n: Nest) -> set[str]:
    """The axes of a nest along which it may share loops with a group."""
    joined = join(group, n)
    return set() if joined is None else common_axes(group, n, joined)


def common_axes(group: Nests, n: Nest, joined: Nest) -> set[str]:
    """The axes of a nest that, as it has ``joined`` a group, are also the group's."""
    axes = {a for m in group for a in m.extents}
    return {b for b, a in zip(n.extents, joined.extents, strict=True) if a in axes}


def own_axes(group: Nests, n: Nest, joined: Nest) -> frozenset[str]:
    """The axes of a nest that, as it has ``joined`` a group, are none of the group's."""
    theirs = {a for m in group for a in m.extents}
    return frozenset(b for b, a in zip(n.extents, joined.extents, strict=True) if a not in theirs)


def deeper(group: Nests, n: Nest) -> int | None:
    """Where in a group a nest shares more loops than at its end: before last ones that do not depend on it, nor it on
    them, and that share no loop with those before which it would end; None: nowhere."""
    best, most = None, len(shared_axes(group, n))
    for at in range(len(group) - 1, 0, -1):
        if depends((group[at],), n):
            break
        before, after = ({a for m in part for a in m.extents} for part in (group[:at], group[at:]))
        joined = join(group[:at], n, behind=group[at:])
        if joined is None or not before & after <= joined.extents.keys():
            continue
        shares = len(before & joined.extents.keys())
        if shares > most:
            best, most = at, shares
    return best


def crossed_axes(group: Nests, n: Nest) -> frozenset[str]:
    """Axes of a nest that it could share, of which its calls take more or less than all those of the group."""
    joined = join(group, n)
    if joined is None:
        return frozenset()
    units = {b: {m.unit(a) for m in group if a in m.extents} for b, a in zip(n.extents, joined.extents, strict=True)}
    return frozenset(b for b, theirs in units.items() if theirs and n.unit(b) not in theirs)


def brought_along(group: Nests, taken: Sequence[Nests], n: Nest, joined: Nest, behind: Nests = ()) -> Nests:
    """Groups of nests with the same loops that depend on nothing of a group, nor on each other, with loops that ``n``
    shares with it (as ``joined``) and may share with them, each of their axes with one of its. Whether all fits
    together, :func:`join` says."""
    names = dict(zip(n.extents, joined.extents, strict=True))
    used = {a for m in (*group, joined, *behind) for a in m.extents}
    out: list[Nest] = []
    for g in taken:
        mine: dict[str, str] = {}
        for b, some in (rule for p in g for rule in (shareable(p, n) or {}).items()):
            free = next((a for a in g[0].extents if a in some and a not in mine), None)
            if free is not None and names[b] not in mine.values():
                mine[free] = names[b]
        for a in g[0].extents:
            if a not in mine:
                mine[a] = fresh(a, used | set(mine.values()))
        out += (rename(p, mine) for p in g)
        used |= set(mine.values())
    return tuple(out)


def put_between(group: Nests, along: Nests, joined: Nest) -> Nests:
    """The nests of a group with those that go along, which depend on nothing of it, nor on each other: each before the
    last ones that have loops which ``joined`` shares and it lacks, which it would end. At the end, where it would end
    other loops there."""
    for p in along:
        lacking = joined.extents.keys() - p.extents.keys()
        at = len(group)
        while at and lacking & group[at - 1].extents.keys():
            at -= 1
        before, after = ({a for n in part for a in n.extents} for part in (group[:at], group[at:]))
        if not before & after <= p.extents.keys():
            at = len(group)
        group = (*group[:at], p, *group[at:])
    return group


def fresh(name: str, used: set[str]) -> str:
    """The name, or one like it that nobody has."""
    found, n = name, 1
    while found in used:
        n += 1
        found = f"{name}_{n}"
    return found
