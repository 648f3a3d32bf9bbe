"""Blocks of axes for the instances of a replicated group."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import ceil, prod

from isam.schedule.tree import Deal
from isam.scheduler.nests import Nest
from isam.scheduler.plan import Group
from isam.scheduler.trim import even_segments
from isam.system.graph import Memory, System

BUSY = 0.75  # of the most instances that any dealing uses
Dealing = tuple[tuple[str, int, Deal], ...]  # axis, block, instances


def dealings(group: Group, main: Nest, system: System, memory: Memory) -> list[Dealing]:
    """Ways to give blocks of one or two axes to the replicas of the memory that leave few of them idle; one instance
    alone where there are none or no axis keeps what is written apart."""
    name = system.replica_of(memory.name)
    if name is None:
        return [()]
    count, apart = system.replicas[name].count, group.apart()
    axes = [a for a in main.axes if a in apart and a not in main.reduced and main.length(a) > main.unit(a)]
    longest = sorted(axes, key=lambda a: -main.length(a) / main.unit(a))[:3]
    axes = [a for a in _rows_first(main) if a in longest]
    out: dict[object, tuple[int, Dealing]] = {}
    for pair in (*((a,) for a in axes), *combinations(axes, 2)):
        for rows in range(2, count // 2 + 1) if len(pair) == 2 else (count,):
            parts, cut = _cut(group, main, pair, (rows, count // rows)[: len(pair)], name)
            if cut:
                out.setdefault(tuple((a, n) for a, n, _ in cut), (prod(parts), cut))
    most = max((n for n, _ in out.values()), default=0)
    return [cut for n, cut in out.values() if n >= BUSY * most] or [()]


def undealt(group: Group, main: Nest, system: System) -> str:
    """Why no plan of the group deals blocks to instances, where none does."""
    if not system.replicas:
        return "the machine has no instances"
    apart = [a for a in main.axes if a in group.apart() and a not in main.reduced]
    if not apart:
        return "there is no axis along which results lie apart"
    if all(main.length(a) <= main.unit(a) for a in apart):
        return "one call takes all of every axis along which results lie apart"
    if not any(system.replica_of(u.name) for u in system.units_of(main.instruction.name)):
        return f"no unit that runs {main.instruction.name} is replicated"
    return "what calls are brought waits where all instances share a memory, or is larger than what one of them has"


def _rows_first(main: Nest) -> list[str]:
    """Axes in the order of the result's dimensions, so that parts of the outer ones lie apart in memory."""
    written = [n for u in main.uses if u.writes for row in u.index for n in row.names]
    return list(dict.fromkeys([*written, *main.axes]))


def cut(
    axes: tuple[str, ...], lengths: Sequence[int], units: Sequence[int], ways: Sequence[int], name: str
) -> Dealing:
    """A dealing of axes in so many parts each, at most, all multiples of the units; nothing where one of them stays
    whole. The same for all groups that have as long axes."""
    blocks, parts = [], []
    for length, unit, n in zip(lengths, units, ways, strict=True):
        blocks.append(ceil(ceil(length / unit) / n) * unit)
        parts.append(sum(s.count for s in even_segments(length, blocks[-1], unit)))
    if any(p < 2 or p > n for p, n in zip(parts, ways, strict=True)):
        return ()
    return _deals(axes, blocks, parts, name)


def _deals(axes: Sequence[str], blocks: Sequence[int], parts: Sequence[int], name: str) -> Dealing:
    strides = [prod(parts[i + 1 :]) for i in range(len(parts))]
    return tuple((a, b, Deal(name, 0, s)) for a, b, s in zip(axes, blocks, strides, strict=True))


def _cut(
    group: Group, main: Nest, axes: tuple[str, ...], ways: tuple[int, ...], name: str
) -> tuple[list[int], Dealing]:
    """The dealing of axes in so many parts each, at most; nothing where one of them stays whole."""
    blocks, parts = [], []
    for a, n in zip(axes, ways, strict=True):
        unit = group.unit(a)
        size = ceil(ceil(main.length(a) / unit) / n) * unit
        blocks.append(size)
        parts.append(sum(s.count for s in group.parts(a, main.length(a), size, even=True)))
    if any(p < 2 for p in parts) or any(p > n for p, n in zip(parts, ways, strict=True)):
        return [], ()
    return parts, _deals(axes, blocks, parts, name)
