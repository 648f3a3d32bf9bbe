"""The cheapest ways to divide statements into regions: the best few by A*, exact until its budget ends.

A partial division always goes on with the first statement left, so that a division is reached in one way only and
partial ones that have the same statements left compete. What is left costs at least each statement's cheapest share of
a region. Where the budget ends the search, greedier walks and, for small goals, an integer program supply a division;
the least promise of all partial ones not looked at, or the program's, is a true lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from heapq import heappop, heappush

from isam.classes import dataclass
from isam.ir.dataflow import bits

NODES = 60_000  # partial divisions made before the search turns greedy
KEEP = 8  # divisions kept
SMALL = 100  # statements up to which an integer program is tried where the search did not end
TRUST = 1.5  # what a share counts for in the greedier walk: more than it promises

Price = tuple[float, float]
Legal = Callable[[Sequence["Region"]], bool]
Link = tuple["Link", "Region"] | None  # the regions chosen, last one first


@dataclass(frozen=True, slots=True)
class Region:
    """A set of statements that one instruction can carry out, at the least price. ``tag``: the required instruction it
    stands for, or '' when any candidate may be taken."""

    mask: int
    price: Price
    tag: str = ""


def add(a: Price, b: Price) -> Price:
    return a[0] + b[0], a[1] + b[1]


def total(regions: Sequence[Region]) -> Price:
    return sum(r.price[0] for r in regions), sum(r.price[1] for r in regions)


@dataclass
class Partition:
    """Divides ``goal``. ``best``: the divisions found, best first; ``lonely``: statements in no region; ``low``: no
    division is cheaper than this; ``proved``: the first is the cheapest there is (or there is none)."""

    regions: Sequence[Region]
    goal: int
    required: frozenset[str] = frozenset()
    legal: Legal | None = None
    nodes: int = NODES
    best: list[tuple[Price, tuple[Region, ...]]] = field(default_factory=list)
    lonely: int = 0
    low: float = 0.0
    proved: bool = False
    at: dict[int, list[Region]] = field(default_factory=dict)
    floor: dict[int, Price] = field(default_factory=dict)

    def run(self) -> Partition:
        """Fills in the results."""
        for r in sorted(self.regions, key=lambda r: (r.price, -r.mask.bit_count(), r.mask, r.tag)):
            for s in bits(r.mask):
                self.at.setdefault(s, []).append(r)
        for s in bits(self.goal):
            shares = [(r.price[0] / r.mask.bit_count(), r.price[1] / r.mask.bit_count()) for r in self.at.get(s, ())]
            self.floor[s] = (min((p[0] for p in shares), default=0.0), min((p[1] for p in shares), default=0.0))
            if not shares:
                self.lonely |= 1 << s
        if self.lonely:
            self.proved = True
            return self
        self.best, self.low, self.proved = self._walk(1.0, KEEP)
        if not self.proved and not self.best:
            self.best = [*self._walk(TRUST, 1)[0], *self._greedy(), *self._program()] or self._any()
        self.best.sort(key=lambda b: b[0])
        return self

    def _promise(self, mask: int) -> Price:
        """What these statements cost at least."""
        out = (0.0, 0.0)
        for s in bits(mask):
            out = add(out, self.floor[s])
        return out

    def _walk(self, trust: float, keep: int) -> tuple[list[tuple[Price, tuple[Region, ...]]], float, bool]:
        """A*: the divisions found; the lower bound and whether the cheapest is among them, where ``trust`` is 1."""
        start = self._promise(self.goal)
        heap: list[tuple[Price, int, int, Price, Price, int, frozenset[str], Link]] = []
        heappush(heap, (start, 0, 0, (0.0, 0.0), start, self.goal, frozenset(), None))
        looked: dict[tuple[int, frozenset[str]], int] = {}
        found: list[tuple[Price, tuple[Region, ...]]] = []
        made, refused, dropped = 0, False, False
        low = start[0]
        while heap and len(found) < keep:
            estimate, count, _, price, promise, left, tags, chosen = heappop(heap)
            low = max(low, estimate[0]) if trust == 1.0 and not found and not refused else low
            if not left:
                regions = _unlinked(chosen)
                if self.required <= tags and (self.legal is None or self.legal(regions)):
                    found.append((price, regions))
                else:
                    refused = refused or self.required <= tags
                continue
            looked[left, tags] = looked.get((left, tags), 0) + 1
            if looked[left, tags] > keep:
                dropped = True
                continue
            if made > self.nodes:
                return found, low, bool(found) and not (refused and dropped)
            first = (left & -left).bit_length() - 1
            for r in self.at[first]:
                if not r.mask & ~left:
                    rest, cost = left & ~r.mask, add(price, r.price)
                    less = self._promise(r.mask)
                    ahead = (promise[0] - less[0], promise[1] - less[1]) if rest else (0.0, 0.0)
                    hope = (cost[0] + trust * ahead[0], cost[1] + trust * ahead[1])
                    made += 1
                    also = tags | {r.tag} if r.tag else tags
                    heappush(heap, (hope, count + 1, made, cost, ahead, rest, also, (chosen, r)))
        return found, low, not (refused and dropped)

    def _program(self) -> list[tuple[Price, tuple[Region, ...]]]:
        """The division of an integer program, whose bound is kept too."""
        if self.goal.bit_count() > SMALL:
            return []
        from isam.mapper.exact import divide

        found = divide([r for r in self.regions if not r.mask & ~self.goal], self.goal, self.required)
        if found is None or (self.legal is not None and not self.legal(found[0])):
            return []
        self.low = max(self.low, found[1])
        return [(total(found[0]), found[0])]

    def _greedy(self) -> list[tuple[Price, tuple[Region, ...]]]:
        """Cheapest region per statement first, where it fits; single statements fill the rest."""
        left, chosen = self.goal, list[Region]()
        for r in sorted(self.regions, key=lambda r: (r.price[0] / r.mask.bit_count(), -r.mask.bit_count(), r.mask)):
            single = sum(self._single(s) for s in bits(r.mask))
            if not r.mask & ~left and (r.mask.bit_count() == 1 or r.price[0] <= single):
                trial = [*chosen, r]
                if self.legal is None or self.legal(trial):
                    left, chosen = left & ~r.mask, trial
        done = not left and self.required <= {r.tag for r in chosen}
        return [(total(chosen), tuple(chosen))] if done else []

    def _single(self, statement: int) -> float:
        return min((r.price[0] for r in self.at[statement] if r.mask.bit_count() == 1), default=float("inf"))

    def _any(self) -> list[tuple[Price, tuple[Region, ...]]]:
        """Any division at all, depth first."""
        stack: list[tuple[int, Link]] = [(self.goal, None)]
        for _ in range(10 * self.nodes):
            if not stack:
                break
            left, chosen = stack.pop()
            regions = _unlinked(chosen) if not left else ()
            if not left and self.required <= {r.tag for r in regions} and (self.legal is None or self.legal(regions)):
                return [(total(regions), regions)]
            fitting = [r for r in self.at[(left & -left).bit_length() - 1] if not r.mask & ~left] if left else []
            stack.extend((left & ~r.mask, (chosen, r)) for r in reversed(fitting))
        return []


def _unlinked(chosen: Link) -> tuple[Region, ...]:
    out: list[Region] = []
    while chosen is not None:
        chosen, region = chosen
        out.append(region)
    return tuple(reversed(out))
