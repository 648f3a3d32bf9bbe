"""Exact cover of statements by regions (SEL-1, SEL-2): branch and bound, exact within a budget, greedy beyond it.

Regions that overlap form components, solved one by one; what components share is only the order of execution, checked
at the end: a set of regions that depend on each other in a circle is given up and another one is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from isam.ir.dataflow import Order, bits, ordered

NODES = 20_000  # partial covers looked at per component before the search turns greedy
KEEP = 8  # complete covers kept
DEEP = 200  # statements of a component beyond which it is covered greedily, with the gap reported

Price = tuple[float, float]
Legal = Callable[[Sequence["Region"]], bool]


@dataclass(frozen=True, slots=True)
class Region:
    """A set of statements that one instruction can carry out, at the least price. ``tag``: the required instruction it
    stands for, or '' when any candidate may be taken."""

    mask: int
    price: Price
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Selected:
    """Complete covers, best first. ``gap``: how far the best may be from the optimum, relative to a lower bound; None:
    proved best. ``stuck``: statements that no complete cover reaches."""

    covers: tuple[tuple[Region, ...], ...]
    gap: float | None = None
    stuck: int = 0


def add(a: Price, b: Price) -> Price:
    return a[0] + b[0], a[1] + b[1]


def total(regions: Sequence[Region]) -> Price:
    return sum(r.price[0] for r in regions), sum(r.price[1] for r in regions)


@dataclass
class _Search:
    """Branch and bound over one component."""

    regions: tuple[Region, ...]
    goal: int
    required: frozenset[str]
    legal: Legal | None
    nodes: int = 0
    lonely: int = 0
    best: list[tuple[Price, tuple[Region, ...]]] = field(default_factory=list)
    at: dict[int, list[Region]] = field(default_factory=dict)
    floor: dict[int, Price] = field(default_factory=dict)

    def run(self) -> None:
        for r in sorted(self.regions, key=lambda r: (r.price, -r.mask.bit_count(), r.mask)):
            for s in bits(r.mask):
                self.at.setdefault(s, []).append(r)
        for s in bits(self.goal):
            shares = [(r.price[0] / r.mask.bit_count(), r.price[1] / r.mask.bit_count()) for r in self.at.get(s, ())]
            self.floor[s] = (min((p[0] for p in shares), default=0.0), min((p[1] for p in shares), default=0.0))
            if not shares:
                self.lonely |= 1 << s
        if not self.lonely:
            if self.goal.bit_count() > DEEP:
                self.greedy()
            if not self.best and self.goal.bit_count() <= 4 * DEEP:
                self.extend(self.goal, (0.0, 0.0), ())

    def greedy(self) -> None:
        """Cheapest region per statement first, where it fits; single statements fill the rest."""
        self.nodes = NODES + 1
        left, chosen = self.goal, list[Region]()
        for r in sorted(self.regions, key=lambda r: (r.price[0] / r.mask.bit_count(), -r.mask.bit_count(), r.mask)):
            single = sum(self.floor_of_singles(s) for s in bits(r.mask))
            if not r.mask & ~left and (r.mask.bit_count() == 1 or r.price[0] <= single):
                trial = [*chosen, r]
                if self.legal is None or self.legal(trial):
                    left, chosen = left & ~r.mask, trial
        if not left and self.required <= {r.tag for r in chosen}:
            self.best = [(total(chosen), tuple(chosen))]

    def floor_of_singles(self, statement: int) -> float:
        return min((r.price[0] for r in self.at[statement] if r.mask.bit_count() == 1), default=float("inf"))

    def bound(self, left: int) -> Price:
        out = (0.0, 0.0)
        for s in bits(left):
            out = add(out, self.floor[s])
        return out

    def extend(self, left: int, price: Price, chosen: tuple[Region, ...]) -> None:
        if not left:
            if self.required <= {r.tag for r in chosen} and (self.legal is None or self.legal(chosen)):
                self.best.append((price, chosen))
                self.best.sort(key=lambda b: b[0])
                del self.best[KEEP:]
            return
        self.nodes += 1
        if self.nodes > (NODES if self.best else 10 * NODES):
            return
        if len(self.best) == KEEP and add(price, self.bound(left)) >= self.best[-1][0]:
            return
        first = min(bits(left), key=lambda s: sum(1 for r in self.at.get(s, ()) if not r.mask & ~left))
        for r in self.at.get(first, ()):
            if not r.mask & ~left:
                self.extend(left & ~r.mask, add(price, r.price), (*chosen, r))


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
        search = _Search(tuple(members), mask, required, legal)
        search.run()
        if not search.best:
            stuck |= search.lonely or mask
            continue
        if search.nodes > NODES:
            low, high = search.bound(mask)[0], search.best[0][0][0]
            gap = max(gap or 0.0, (high - low) / max(low, 1.0))
        solved.append([c for _, c in search.best])
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
