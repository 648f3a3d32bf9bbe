"""Groups whose blocks are dealt to instances in the same parts: what an instance writes of a temporary no other reads,
so that it may be at home in that instance's own memory (SCH-10).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import lcm, prod
from typing import TypeVar

from isam.approach.choice import NOTHING, Choice, Trace
from isam.classes import dataclass
from isam.ir.kernel import Buffer, Kernel
from isam.scheduler.near_homes import NearHome, Parts, homes_in
from isam.scheduler.nests import Use
from isam.scheduler.plan import Group, Plan
from isam.scheduler.plans.dealing import BUSY, Dealing, cut
from isam.scheduler.plans.staged import between
from isam.scheduler.routes import Routes
from isam.scheduler.trim import even_segments
from isam.system.graph import Memory, System

Along = Mapping[int, str]  # of groups, by position, the axis along which they are cut
T = TypeVar("T")


@dataclass(frozen=True)
class Alike:
    """An option at ``copartition``, one way to deal several groups. ``dealings``: of each of them, by position;
    ``units``: what the parts of each dealt axis are multiples of; ``homes``: the temporaries that are then at home
    where they are made; ``instances``: how many there are parts for."""

    dealings: Mapping[int, Dealing]
    units: tuple[int, ...]
    homes: Mapping[str, NearHome]
    instances: int

    def label(self) -> str:
        dealing = next(iter(self.dealings.values()))
        there = " ".join(f"{a}:{n}@{d.group}" for a, n, d in dealing) or "one instance"
        return f"handed on: {' '.join(self.homes)} ({there})"

    def plans(self, at: int, options: Sequence[Plan], costs: Sequence[float]) -> tuple[list[Plan], list[float]]:
        """Those of a group's plans that deal it so, with their costs."""
        dealing = self.dealings[at]
        units = tuple((a, u) for (a, _, _), u in zip(dealing, self.units, strict=True))
        out = []
        for plan, cost in zip(options, costs, strict=True):
            mine = replace(plan, units=units)
            lengths = [(a, mine.group.length(a), n) for a, n, _ in dealing]
            alike = all(mine.shares(*x) == replace(mine, stages=()).shares(*x) for x in lengths)
            if not plan.outer and plan.dealt == dealing and alike:
                out.append((mine, cost))
        return [p for p, _ in out], [c for _, c in out]


def wanted_alike(trace: Trace, groups: Sequence[Group], ways: Sequence[Alike]) -> list[Alike]:
    """Of ways to deal some of the groups alike those that the Approach wants, each of other groups. Nothing is
    predicted: who is dealt otherwise than it would be may take longer for its own work."""
    out: list[Alike] = []
    while ways:
        some = sorted({at for w in ways for at in w.dealings})
        near = sorted({b for w in ways for b in w.homes})
        context = {"nests": [[n.number for n in groups[at].nests] for at in some], "buffers": near}
        taken = trace.choose(Choice("copartition", (NOTHING, *ways), context))
        if not isinstance(taken, Alike):
            break
        out.append(taken)
        ways = [w for w in ways if not w.dealings.keys() & out[-1].dealings.keys()]
    return out


def ways_alike(kernel: Kernel, groups: Sequence[Group], system: System, routes: Routes,
               apart: Collection[str]) -> list[Alike]:  # fmt: skip
    """Ways to deal some of the groups in the same parts, so that temporaries, but for those ``apart``, that they hand
    on to each other can be at home where they are made. Those for most instances come first; those for far fewer only
    where they hand on more."""
    out: dict[object, Alike] = {}
    for memory in system.scratchpads.values():
        name = system.replica_of(memory.name)
        for some, along, counts in _cuts(kernel, groups, apart, system.replicas[name].count) if name else ():
            if any(memory not in between(groups[at].main, system, routes) for at in some):
                continue
            way = _way(kernel, groups, some, system, memory, apart, along, counts)
            if way is not None and way.homes:
                out.setdefault(tuple(way.dealings.items()), way)
        if out:
            break
    found = sorted(out.values(), key=lambda w: -w.instances)
    return [w for n, w in enumerate(found) if not any(_more(v, w) for v in found[:n])]


def _more(one: Alike, two: Alike) -> bool:
    """Whether one way hands on all that the other does, and keeps far more instances busy."""
    return two.homes.keys() <= one.homes.keys() and two.instances < BUSY * one.instances


def _handed(kernel: Kernel, groups: Sequence[Group], apart: Collection[str]) -> Iterator[tuple[Buffer, list[int]]]:
    """Temporaries that several groups touch, with these."""
    for b in kernel.buffers:
        users = [at for at, g in enumerate(groups) if g.users(b.name)]
        if b.role == "temp" and len(users) > 1 and b.name not in apart and all(d.is_constant for d in b.shape):
            yield b, users


def _cuts(
    kernel: Kernel, groups: Sequence[Group], apart: Collection[str], count: int
) -> Iterator[tuple[list[int], tuple[Along, ...], tuple[int, ...]]]:
    """Which groups may be cut along which axes, in how many parts each at most; along none: one instance has all."""
    classes = _classes(kernel, groups, apart)
    for along in classes:
        yield list(along), (along,), (count,)
    for one, two in combinations(classes, 2):
        for rows in range(2, count // 2 + 1) if one.keys() == two.keys() else ():
            yield list(one), (one, two), (rows, count // rows)
    for users in _joined([set(users) for _, users in _handed(kernel, groups, apart)]):
        if all(_box(groups[at]) for at in users):
            yield sorted(users), (), ()


def _classes(kernel: Kernel, groups: Sequence[Group], apart: Collection[str]) -> list[Along]:
    """Axes, one of each of several groups, that index the same dimensions of what these hand on."""
    found = []
    for b, users in _handed(kernel, groups, apart):
        for d, extent in enumerate(b.shape):
            axes = {(at, _axis(groups[at], b.name, d, int(extent))) for at in users}
            found += [axes] if all(a is not None for _, a in axes) else []
    classes = ([x for x in sorted(s) if x[1]] for s in _joined(found))
    return [dict(c) for c in classes if len(dict(c)) == len(c)]


def _joined(sets: Iterable[set[T]]) -> list[set[T]]:
    """Sets that have something in common as one."""
    out: list[set[T]] = []
    for new in sets:
        out = [s for s in out if not s & new] + [new.union(*(s for s in out if s & new))]
    return out


def _box(group: Group) -> bool:
    """Whether a group's domain is one from the begin on."""
    return group.domain is None and not any(n.where or n.origin for n in group.nests)


def _axis(group: Group, buffer: str, dim: int, extent: int) -> str | None:
    """The axis that alone indexes a dimension of a buffer in all accesses of a group, along which it may be dealt."""
    rows = {u.index[dim] for u in _uses(group, buffer)}
    if len(rows) != 1 or not _box(group):
        return None
    (row,) = rows
    if len(row.terms) != 1 or row.terms[0][1] != 1 or row.const:
        return None
    axis = row.terms[0][0]
    fits = axis in group.apart() and axis in group.main.extents and group.length(axis) == extent
    return axis if fits else None


def _way(
    kernel: Kernel, groups: Sequence[Group], some: Sequence[int], system: System, memory: Memory,
    apart: Collection[str], along: tuple[Along, ...], counts: tuple[int, ...],
) -> Alike | None:  # fmt: skip
    """Some groups dealt so, if that cuts every axis, and what can be at home then: of parts what only one group writes.
    What a second one changes there nothing would tell from what it has not come to yet."""
    name, first = system.replica_of(memory.name) or "", some[0]
    units = tuple(lcm(*(groups[at].unit(one[at]) for at in some)) for one in along)
    lengths = tuple(groups[first].length(one[first]) for one in along)
    dealings = {at: cut(tuple(one[at] for one in along), lengths, units, counts, name) for at in some}
    if along and not dealings[first]:
        return None
    sizes = [n for _, n, _ in dealings[first]]
    parts: dict[str, Parts] = {}
    for b, users in _handed(kernel, groups, apart):
        dims = [_dim(groups, users, b, one) for one in along] if set(users) <= set(some) else [None]
        writers = [at for at in users if any(u.writes for u in _uses(groups[at], b.name))]
        if None not in dims and (len(writers) == 1 or not along):
            parts[b.name] = tuple((d, n) for d, n in zip(dims, sizes, strict=True) if d is not None)
    instances = prod(sum(s.count for s in even_segments(*one)) for one in zip(lengths, sizes, units, strict=True))
    return Alike(dealings, units, homes_in([memory], kernel, groups, system, parts), instances)


def _dim(groups: Sequence[Group], users: Sequence[int], buffer: Buffer, along: Along) -> int | None:
    """The dimension of a buffer that these axes index in all its users."""
    dims = ((d, int(n)) for d, n in enumerate(buffer.shape))
    return next((d for d, n in dims if all(_axis(groups[at], buffer.name, d, n) == along[at] for at in users)), None)


def _uses(group: Group, buffer: str) -> Iterator[Use]:
    return (u for n in group.nests for u in n.uses if u.buffer == buffer)
