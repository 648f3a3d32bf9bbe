"""Exact cover of statements by regions (SEL-1, SEL-2): exact within a budget, greedy beyond it with the gap told.

Regions that overlap form components, divided one by one (`partition.py`); what components share is only the order of
execution, checked at the end: a set of regions that depend on each other in a circle is given up and another one taken.
"""

from __future__ import annotations

from collections.abc import Sequence

from isam.classes import dataclass
from isam.ir.dataflow import Order, bits, ordered
from isam.mapper.partition import KEEP, Legal, Partition, Price, Region, add, total

__all__ = ["KEEP", "Price", "Region", "Selected", "add", "select", "total"]


@dataclass(frozen=True, slots=True)
class Selected:
    """Complete covers, best first. ``gap``: how far the best may be from the optimum, relative to a lower bound; None:
    proved best. ``stuck``: statements that no complete cover reaches."""

    covers: tuple[tuple[Region, ...], ...]
    gap: float | None = None
    stuck: int = 0


def components(regions: Sequence[Region], goal: int) -> list[tuple[int, list[Region]]]:
    """Groups of regions that share no statement with another group, with the statements of each."""
    leader: dict[int, int] = {}

    def find(s: int) -> int:
        while leader.setdefault(s, s) != s:
            leader[s] = s = leader[leader[s]]
        return s

    for r in regions:
        first, *others = bits(r.mask)
        for s in others:
            leader[find(s)] = find(first)
    groups: dict[int, tuple[int, list[Region]]] = {find(s): (0, []) for s in bits(goal)}
    for r in regions:
        at = find((r.mask & -r.mask).bit_length() - 1)
        mask, members = groups.get(at, (0, []))
        members.append(r)
        groups[at] = mask | r.mask, members
    alone = ((1 << at, []) for at, (mask, _) in groups.items() if not mask)
    return sorted((*(g for g in groups.values() if g[0]), *alone), key=lambda g: g[0] & -g[0])


def select(
    regions: Sequence[Region],
    goal: int,
    order: Order,
    units: Sequence[int] = (),
    required: frozenset[str] = frozenset(),
) -> Selected:
    """The best covers of ``goal`` by disjoint regions that can be executed one after the other.

    ``units``: masks outside ``goal`` that are executed as units between them (recurrent loops). ``required``: tags of
    which each must occur.
    """

    def legal(cover: Sequence[Region]) -> bool:
        return ordered([r.mask for r in cover] + list(units), order) is not None

    if not goal:
        return Selected(((),)) if not required else Selected((), stuck=0)
    if not required:
        solved, gap, stuck = _solve(components(regions, goal), frozenset(), None)
        if stuck:
            return Selected((), stuck=stuck)
        covers = [c for c in _combine(solved) if legal(c)]
        if covers and total(covers[0]) == total([r for part in solved for r in part[0]]):
            return Selected(tuple(covers), gap)
    solved, gap, stuck = _solve([(goal, list(regions))], required, legal)
    return Selected((), stuck=goal) if stuck else Selected(tuple(solved[0]), gap)


def _solve(
    parts: Sequence[tuple[int, list[Region]]], required: frozenset[str], legal: Legal | None
) -> tuple[list[list[tuple[Region, ...]]], float | None, int]:
    """Per part its covers, best first; the worst relative gap; the statements of parts without a cover."""
    solved: list[list[tuple[Region, ...]]] = []
    gap, stuck = None, 0
    for mask, members in parts:
        done = Partition(members, mask, required, legal).run()
        if not done.best:
            stuck |= done.lonely or mask
            continue
        if not done.proved:
            gap = max(gap or 0.0, round((done.best[0][0][0] - done.low) / max(done.low, 1.0), 5))
        solved.append([c for _, c in done.best])
    return solved, gap, stuck


def _combine(solved: Sequence[Sequence[tuple[Region, ...]]]) -> list[tuple[Region, ...]]:
    """The best of every component, and its neighbours that differ in one component; best first."""
    base = [s[0] for s in solved]
    covers = [tuple(r for part in base for r in part)]
    others = sorted(
        (total(other)[0] - total(options[0])[0], at, n)
        for at, options in enumerate(solved)
        for n, other in enumerate(options)
        if n
    )
    for _, at, n in others[: 4 * KEEP]:
        covers.append(tuple(r for i, part in enumerate(base) for r in (solved[i][n] if i == at else part)))
    return sorted(covers, key=total)
