"""Predicted seconds of a plan with boxes staged on the way, from the costs that a description states.

Calls, moves into the registers and traffic with home overlap; the first box and the last results do not. Not a promise:
what a schedule takes is what :mod:`isam.cost.timeline` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from isam.ir.dtype import size_of
from isam.scheduler.nests import Nest, Use
from isam.system.graph import Memory, System

if TYPE_CHECKING:
    from isam.scheduler.plan import Plan

ASSUMED = 1.0  # cycles of a cost that the description does not state


def trip_counts(main: Nest, order: tuple[tuple[str, int], ...]) -> list[int]:
    """How often each loop of the order runs, at most."""
    left = {a: main.length(a) for a in main.axes}
    out = []
    for a, n in order:
        out.append(max(1, -(-left.get(a, 1) // n)))
        left[a] = min(n, left.get(a, 1))
    return out


def box_bytes(main: Nest, use: Use, order: tuple[tuple[str, int], ...], depth: int) -> int:
    """Bytes of what the operand covers below so many loops."""
    left = {a: main.length(a) for a in main.axes}
    for a, n in order[:depth]:
        left[a] = min(n, left.get(a, 1))
    sides = (1 + sum(abs(c) * (left[a] - 1) for a, c in r.terms if a in left) for r in use.index)
    return size_of(use.dtype) * prod(sides)


@dataclass(frozen=True)
class Edge:
    """Seconds that a move along an edge keeps its issuer: ``setup`` and per byte; ``shared``: bytes per second that all
    instances have together, where that is less (0: no such limit)."""

    issuer: str
    setup: float
    per_byte: float
    shared: float

    def seconds(self, moves: float, size: float, instances: int) -> float:
        """For so many moves of so many bytes in all, on each of the instances."""
        per_byte = max(self.per_byte, instances / self.shared if self.shared else 0.0)
        return moves * self.setup + size * per_byte


@dataclass(frozen=True)
class Machine:
    """What the main nest of a group meets on a machine."""

    main: Nest
    system: System
    memory: Memory

    @cached_property
    def call(self) -> float:
        """Seconds of one call on one unit."""
        cost, units = self.main.instruction.cost, self.system.units_of(self.main.instruction.name)
        return (cost.issue if cost.issue is not None else ASSUMED) / max(u.clock for u in units)

    @cached_property
    def members(self) -> int:
        """Units that work on the nest's calls at a time."""
        units = self.system.units_of(self.main.instruction.name)
        cluster = self.system.cluster_of(units[0].name)
        return len([u for u in units if self.system.cluster_of(u.name) == cluster]) if cluster else 1

    def edge(self, source: str, target: str) -> Edge | None:
        """The quickest move along an edge."""
        found = []
        for m in self.system.moves_by_edge.get((source, target), ()):
            cost, clock = self.system.instructions[m.by].cost, self.system.units[m.issuer].clock
            shared = min((k.bandwidth for k in self.system.links_of(source, target)), default=0.0)
            per_byte = 1 / cost.bandwidth / clock if cost.bandwidth else 0.0
            found.append(Edge(m.issuer, (cost.setup or cost.issue or ASSUMED) / clock, per_byte, shared))
        return min(found, key=lambda e: (e.per_byte, e.setup), default=None)


class Estimate:
    """The prediction for one plan. ``width``: elements of each parallel axis in the register block."""

    def __init__(self, machine: Machine, plan: Plan, width: dict[str, int]):
        self.machine, self.plan, self.width = machine, plan, width
        self.main = machine.main
        dealt = plan.order[: len(plan.deals)]
        self.lengths = {a: self.main.length(a) for a in self.main.axes} | dict(dealt)
        self.instances = prod(-(-self.main.length(a) // n) for a, n in dealt)

    @cached_property
    def seconds(self) -> float:
        """The longest of what overlaps, and what nothing hides."""
        load, first = self._loads()
        store, last = self._stores()
        ahead = load if self.plan.rotate else []
        busy: dict[str, float] = {}
        for issuer, t in (*ahead, *store, *self._registers()):
            busy[issuer] = busy.get(issuer, 0.0) + t
        waited = 0.0 if self.plan.rotate else sum(t for _, t in load)
        return max([self.compute, *busy.values()]) + waited + first + last

    @property
    def inside(self) -> float:
        """Seconds without what is brought from home: calls, moves into the registers, results."""
        busy: dict[str, float] = {}
        for issuer, t in (*self._stores()[0], *self._registers()):
            busy[issuer] = busy.get(issuer, 0.0) + t
        return max([self.compute, *busy.values()])

    @property
    def compute(self) -> float:
        """Seconds of the calls of one instance; members of a cluster share those of a register block."""
        blocks = prod(-(-self.lengths[a] // w) for a, w in self.width.items())
        inside = prod(-(-min(w, self.lengths[a]) // self.main.unit(a)) for a, w in self.width.items())
        return blocks * -(-inside // self.machine.members) * self._steps() * self.machine.call

    def _steps(self) -> int:
        """Steps of the reduction."""
        return prod(-(-self.lengths[a] // self.main.unit(a)) for a in self.main.reduced)

    def _loads(self) -> tuple[list[tuple[str, float]], float]:
        """Traffic from home per issuer, and the time of the first boxes."""
        home, memory = self.machine.system.home, self.machine.memory.name
        edge, order = self.machine.edge(home, memory), self.plan.order
        if edge is None:
            return [], 0.0
        at = {s.buffer: s.depth for s in self.plan.stages}
        trips, skip = trip_counts(self.main, order), len(self.plan.deals)
        out, first = [], 0.0
        for u in self.main.uses:
            if not u.reads or u.writes or u.buffer.startswith("#") or not u.index:
                continue
            depth = at.get(u.buffer)
            if depth is None:  # tile by tile, whenever a block wants it
                out.append((edge.issuer, edge.seconds(*self._tiles(u), self.instances)))
                continue
            size, times = box_bytes(self.main, u, order, depth), prod(trips[skip:depth])
            out.append((edge.issuer, edge.seconds(times, times * size, self.instances)))
            first += edge.seconds(1, size, self.instances)
        return out, first

    def _stores(self) -> tuple[list[tuple[str, float]], float]:
        """Results on their way home, per issuer, and the time of the last block's."""
        out, last = [], 0.0
        home, memory = self.machine.system.home, self.machine.memory.name
        for u in self.main.uses:
            if not u.writes or not u.homes or u.homes[0] == home:
                continue
            tiles = prod(-(-self.lengths[a] // self.main.unit(a)) for a in self._axes(u))
            size, tile = size_of(u.dtype) * prod(self.lengths[a] for a in self._axes(u)), self._tile(u)
            inside = prod(-(-min(w, self.lengths[a]) // self.main.unit(a)) for a, w in self.width.items())
            for edge in (self.machine.edge(u.homes[0], memory), self.machine.edge(memory, home)):
                if edge is not None:
                    out.append((edge.issuer, edge.seconds(tiles, size, self.instances)))
                    last += edge.seconds(inside, inside * tile, self.instances)
        return out, last

    def _registers(self) -> list[tuple[str, float]]:
        """Tiles on their way to the registers, per issuer."""
        out = []
        for u in self.main.uses:
            if u.writes or u.buffer.startswith("#") or not u.homes or u.homes[0] == self.machine.system.home:
                continue
            edge = self.machine.edge(self.machine.memory.name, u.homes[0])
            if edge is not None:
                out.append((edge.issuer, edge.seconds(*self._tiles(u), 1)))
        return out

    def _tiles(self, use: Use) -> tuple[float, float]:
        """Tiles of an operand that register blocks bring, and their bytes."""
        blocks = prod(-(-self.lengths[a] // w) for a, w in self.width.items())
        axes = self._axes(use)
        each = prod(-(-min(w, self.lengths[a]) // self.main.unit(a)) for a, w in self.width.items() if a in axes)
        count = blocks * each * self._steps()
        return count, count * self._tile(use)

    def _tile(self, use: Use) -> int:
        return size_of(use.dtype) * prod(min(self.main.unit(a), self.lengths[a]) for a in self._axes(use))

    def _axes(self, use: Use) -> frozenset[str]:
        return frozenset(n for r in use.index for n in r.names if n in self.lengths)
