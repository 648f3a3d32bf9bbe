"""One name for one axis: where a text runs a name to different ends, the others get names of their own."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from isam.ir.affine import Affine
from isam.ir.kernel import Axis, Item, Kernel, Recurrence, Statement, recurrences


def axes_apart(body: Kernel) -> Kernel:
    """The kernel in which no name is two axes: where one has several extents, the later ones get names of their own."""
    axes = dict.fromkeys(a for s in body.statements for a in s.domain.axes)
    taken = {a.name for a in axes}
    if len(axes) == len(taken):
        return body
    first: dict[str, Axis] = {}
    to: dict[Axis, str] = {}
    for a in axes:
        if first.setdefault(a.name, a) != a:
            to[a] = next(n for n in (f"{a.name}{k}" for k in count(2)) if n not in taken)
            taken.add(to[a])
    return replace(body, body=tuple([_apart(it, to) for it in body.body]), template=None)


def _apart(it: Item, to: dict[Axis, str]) -> Item:
    if isinstance(it, Recurrence):
        return replace(it, body=tuple([_apart(x, to) for x in it.body]))
    return _renamed(it, {a.name: to[a] for a in it.domain.axes if a in to})


def loops_apart(body: Kernel) -> Kernel:
    """The kernel in which each recurrent loop has a name of its own: the later ones of a name get another."""
    counters = [r.axis.name for r in recurrences(body.body)]
    if len(set(counters)) == len(counters):
        return body
    taken = {*counters, *(y.name for y in body.syms), *(n for s in body.statements for n in s.domain.names)}
    seen: set[str] = set()

    def item(it: Item, to: dict[str, Affine]) -> Item:
        if not isinstance(it, Recurrence):
            return it.substitute(to, it.domain.axes) if to else it
        name = own = it.axis.name
        if name in seen:
            own = next(n for n in (f"{name}{k}" for k in count(2)) if n not in taken)
            to = {**to, name: Affine.of(own)}
        seen.add(name)
        taken.add(own)
        return replace(it, axis=Axis(own, it.axis.extent.substitute(to)), body=tuple(item(x, to) for x in it.body))

    return replace(body, body=tuple(item(x, {}) for x in body.body), template=None)


def _renamed(s: Statement, to: dict[str, str]) -> Statement:
    if not to:
        return s
    by = {old: Affine.of(new) for old, new in to.items()}

    return s.substitute(by, tuple(Axis(to.get(a.name, a.name), a.extent) for a in s.domain.axes))
