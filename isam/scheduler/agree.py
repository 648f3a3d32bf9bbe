"""Calls of one size in nests that hand tiles on in a near memory.

Where a call of one nest takes more than a call of the next, what the first leaves there goes home and is brought back
in other tiles; with calls of one size the next finds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod

from isam.approach.choice import Choice
from isam.classes import dataclass
from isam.ir.dtype import size_of
from isam.ir.kernel import Kernel
from isam.schedule.literals import is_literal
from isam.scheduler.call_size import fits
from isam.scheduler.nests import Nest, Use, sizes_of, tile_of
from isam.scheduler.plans.estimate import Machine
from isam.scheduler.residency import Residency
from isam.scheduler.shared_loops import shareable
from isam.system.graph import System

Axis = tuple[int, str]  # of the nest at a position


@dataclass(frozen=True)
class Agreement:
    """An option at ``agree``: elements that a call of one nest takes of an axis at most, where that is less than it may
    take."""

    units: tuple[tuple[int, str, int], ...] = ()

    def label(self) -> str:
        return ", ".join(f"{n} of {a} in {nest}" for nest, a, n in self.units) or "each as much as it may"


def agreed(nests: Sequence[Nest], kernel: Kernel, data: Residency) -> tuple[Nest, ...]:
    """The nests, those with smaller calls of which the Approach wants that. Offered where it may save more in moves
    than calls then take longer, as far as can be said without a schedule. Who wants few calls takes the first, and
    both are timed then."""
    out = list(nests)
    for some, same in _handing_on(nests, data.system):
        smaller = _smaller(out, same)
        if not smaller or not all(fits(smaller[n], data, _units(smaller[n])) for n in smaller):
            continue
        mine = [out[n] for n in some]
        theirs = [smaller.get(n, out[n]) for n in some]
        changed = [(m, a) for m, t in zip(mine, theirs, strict=True) for a in m.mapped if t.unit(a) != m.unit(a)]
        by = {t.number: t for t in theirs}
        options = [Agreement(), Agreement(tuple((m.number, a, by[m.number].unit(a)) for m, a in changed))]
        now, then = (_seconds(ns, nests, kernel, data) for ns in (mine, theirs))
        if then >= now:
            continue
        context = {"nests": [m.number for m in mine], "instructions": [m.instruction.name for m in mine]}
        costs = [float(sum(map(_calls, ns))) for ns in (mine, theirs)]
        if data.trace.choose(Choice("agree", options, context, costs)).units:
            for n, t in zip(some, theirs, strict=True):
                out[n] = t
    return tuple(out)


def _calls(nest: Nest) -> int:
    return prod(-(-nest.length(a) // nest.unit(a)) for a in nest.axes)


def _units(nest: Nest) -> dict[str, int]:
    return {a: nest.unit(a) for a in nest.mapped}


def _handing_on(nests: Sequence[Nest], system: System) -> Iterator[tuple[list[int], list[set[Axis]]]]:
    """Nests that hand on whole tiles in near memories, by position, with the axes that are one and the same in them."""
    tied: list[set[Axis]] = []
    for p, q in _pairs(nests, system):
        rule = shareable(nests[p], nests[q]) or {}
        for b, some in rule.items():
            for a in some if len(some) == 1 else ():
                _tie(tied, {(p, a), (q, b)})
    linked: list[set[Axis]] = []
    for axes in tied:
        _tie(linked, {(n, "") for n, _ in axes})
    for some in linked:
        mine = {n for n, _ in some}
        yield sorted(mine), [axes for axes in tied if any(n in mine for n, _ in axes)]


def _tie(sets: list[set[Axis]], new: set[Axis]) -> None:
    for s in [s for s in sets if s & new]:
        sets.remove(s)
        new |= s
    sets.append(new)


def _pairs(nests: Sequence[Nest], system: System) -> Iterator[tuple[int, int]]:
    """Nests that touch a buffer one after the other, the first of which writes it: in near memories both, and along
    axes alone that they may share."""
    for buffer in dict.fromkeys(u.buffer for n in nests for u in n.uses if u.writes):
        touching = [n for n, nest in enumerate(nests) if any(u.buffer == buffer for u in nest.uses)]
        for p, q in pairwise(touching):
            one, two = nests[p], nests[q]
            uses = [u for n in (one, two) for u in n.uses if u.buffer == buffer]
            if one.mapping.loops != two.mapping.loops or not all(_bounded(n) for n in (one, two)):
                continue
            rule = shareable(one, two) or {}
            own = {a for u in two.uses if u.buffer == buffer for row in u.index for a in row.names}
            writes = any(u.writes for u in one.uses if u.buffer == buffer)
            if writes and all(rule.get(a) for a in own) and all(_near(u, system) for u in uses):
                yield p, q


def _bounded(nest: Nest) -> bool:
    """Whether the nest's calls take a bounded part of a box that is known."""
    known = all(e.is_constant for e in nest.extents.values())
    return known and not nest.where and all(m.limit is not None for m in nest.mapped.values())


def _near(use: Use, system: System) -> bool:
    return all(system.memories[h].local for h in use.homes)


def _smaller(nests: Sequence[Nest], same: Sequence[set[Axis]]) -> dict[int, Nest]:
    """By position, nests whose calls take less than they may so that all take the least of them; none where all take as
    much already, or one cannot take less."""
    limits: dict[int, dict[str, int]] = {}
    for axes in same:
        least = min(nests[n].unit(a) for n, a in axes)
        for n, a in axes:
            nest = nests[n]
            if nest.unit(a) == least:
                continue
            span = nest.mapped[a].span
            if a in nest.uncut or not span.admits(least) or not span.cuts(nest.length(a), least):
                return {}
            limits.setdefault(n, {})[a] = least
    return {
        n: replace(nests[n], mapped={a: replace(m, limit=less.get(a, m.limit)) for a, m in nests[n].mapped.items()})
        for n, less in limits.items()
    }


def _seconds(some: Sequence[Nest], nests: Sequence[Nest], kernel: Kernel, data: Residency) -> float:
    """What calls take, and moves: what is touched in equal tiles one after the other stays in between."""
    total = 0.0
    for n in some:
        total += _calls(n) * n.cycles / data.system.clock_of(n.instruction.name)
    mine = {n.number for n in some}
    for buffer in dict.fromkeys(u.buffer for n in some for u in n.uses if not is_literal(u.buffer)):
        others = any(u.buffer == buffer for n in nests if n.number not in mine for u in n.uses)
        kept = kernel.buffer(buffer).role == "temp" and not others
        total += _carried([(n, u) for n in some for u in n.uses if u.buffer == buffer], kept, data)
    return total


def _carried(uses: Sequence[tuple[Nest, Use]], kept: bool, data: Residency) -> float:
    """Seconds of the moves of one buffer. ``kept``: nobody wants it afterwards."""
    total, last, dirty = 0.0, None, False
    for nest, use in uses:
        if use.homes[0] == data.system.home:
            continue
        tile = use.homes[0], tile_of(use, {}, sizes_of(nest, _units(nest))).shape
        if last is None or last[0] != tile:
            total += _moves(*last[1:], data) if last is not None and dirty else 0.0
            total += _moves(nest, use, data) if use.reads else 0.0
            dirty = False
        last, dirty = (tile, nest, use), dirty or use.writes
    return total + (_moves(*last[1:], data) if last is not None and dirty and not kept else 0.0)


def _moves(nest: Nest, use: Use, data: Residency) -> float:
    """Seconds of the moves of all tiles of an operand between home and where it lies."""
    machine = Machine(nest, data.system, data.fit.routes, data.system.memories[use.homes[0]])
    shape = tile_of(use, {}, sizes_of(nest, _units(nest))).shape
    axes = {a for row in use.index for a in row.names if a in nest.extents}
    tiles = prod(-(-nest.length(a) // nest.unit(a)) for a in axes)
    edges = machine.way_home(use.homes[0], use.dtype)
    return sum(e.seconds(tiles * e.commands(shape), tiles * prod(shape) * size_of(use.dtype), 1) for e in edges)
