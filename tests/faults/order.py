"""Faults in the order of steps and in loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from isam.schedule.tree import Bound, Deal, Loop, Node, Schedule, Seq


def sequences(n: Seq) -> Iterator[tuple[str, Node]]:
    """One child of a sequence, where it stands (and not wherever an equal step stands)."""
    c = n.children
    for i, one in enumerate(c):
        yield "one child left out", Seq((*c[:i], *c[i + 1 :]))
        yield "one child twice", Seq((*c[:i], one, one, *c[i + 1 :]))
        for far in (2, 3, 5):
            if i + far < len(c):
                yield "moved later", Seq((*c[:i], *c[i + 1 : i + far + 1], one, *c[i + far + 1 :]))
                yield "moved earlier", Seq((*c[:i], c[i + far], *c[i : i + far], *c[i + far + 1 :]))
                between = c[i + 1 : i + far]
                yield "two far ones exchanged", Seq((*c[:i], c[i + far], *between, one, *c[i + far + 1 :]))
    for i, (a, b) in enumerate(pairwise(c)):
        if isinstance(b, Loop) and not isinstance(a, Loop):
            yield "into the loop that follows", Seq((*c[:i], replace(b, body=Seq((a, b.body))), *c[i + 2 :]))
        if isinstance(a, Loop) and not isinstance(b, Loop):
            yield "into the loop before", Seq((*c[:i], replace(a, body=Seq((a.body, b))), *c[i + 2 :]))
        if isinstance(a, Loop) and isinstance(b, Loop) and (a.var, a.lo, a.hi, a.step) == (b.var, b.lo, b.hi, b.step):
            both = replace(a, body=Seq((a.body, b.body)), enter=Seq((a.enter, b.enter)), exit=Seq((a.exit, b.exit)))
            yield "two loops made one", Seq((*c[:i], both, *c[i + 2 :]))


def loops(n: Loop, s: Schedule) -> Iterator[tuple[str, Node]]:
    yield "ends one element early", replace(n, hi=tuple(Bound(b.expr - b.div, b.div) for b in n.hi))
    yield "steps one further", replace(n, step=n.step + 1)
    if n.step > 1:
        yield "steps one less", replace(n, step=n.step - 1)
    yield "enter in the body", replace(n, body=Seq((n.enter, n.body)), enter=Seq())
    if isinstance(n.body, Seq) and len(n.body.children) > 1:
        first, *rest = n.body.children
        *most, last = n.body.children
        yield "hoisted out of the loop", replace(n, enter=Seq((n.enter, first)), body=Seq(tuple(rest)))
        yield "sunk out of the loop", replace(n, exit=Seq((last, n.exit)), body=Seq(tuple(most)))
        if n.first is None and n.last is None:
            alone = replace(n, exit=Seq(), body=Seq(tuple(most)))
            yield "a loop made two", Seq((alone, replace(n, enter=Seq(), body=last)))
    inner = n.body
    plain = n.first is None and n.last is None and n.enter == Seq() == n.exit
    if plain and isinstance(inner, Loop):
        swapped = replace(inner, enter=Seq(), exit=Seq(), body=replace(n, body=inner.body))
        yield "two loops exchanged", replace(swapped, enter=inner.enter, exit=inner.exit)
    for group in s.system.replicas:
        yield from deals(n, group)


def deals(n: Loop, group: str) -> Iterator[tuple[str, Node]]:
    d = n.deal
    if d is None:
        yield "dealt out", replace(n, deal=Deal(group))
        return
    yield "not dealt out", replace(n, deal=None)
    yield "dealt to another group", replace(n, deal=replace(d, group=group + "x"))
    for first in (d.first + 1, d.first - 1):
        yield "dealt from another instance on", replace(n, deal=replace(d, first=first))
    for stride in {0, 1, 2, -1} - {d.stride}:
        yield "dealt at another stride", replace(n, deal=replace(d, stride=stride))


