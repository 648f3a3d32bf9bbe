"""Predicted seconds of a plan with boxes staged on the way, from the costs that a description states.

Calls, moves into the registers and traffic with home overlap; the first box and the last results do not. Not a promise:
what a schedule takes is what :mod:`isam.cost.timeline` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from math import lcm, prod
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.ir.dtype import size_of
from isam.scheduler.edges import EdgeCost, along, quickest
from isam.scheduler.move import moves_of
from isam.scheduler.nests import Nest, Use
from isam.scheduler.plans.register import Room
from isam.scheduler.routes import Routes
from isam.system.graph import Memory, System

if TYPE_CHECKING:
    from isam.scheduler.plan import Group, Plan
    from isam.scheduler.plans.boxes import Box
    from isam.scheduler.plans.divided import Divided


@dataclass(frozen=True)
class Machine:
    """What the main nest of a group meets on a machine; ``near``: what is at home near; ``passing``: as
    :func:`isam.scheduler.plans.register.passing` says."""

    main: Nest
    system: System
    routes: Routes
    memory: Memory
    near: frozenset[str] = frozenset()
    passing: Mapping[str, int] = field(default_factory=dict, compare=False)
    _home: dict[tuple[str, str], list[EdgeCost]] = field(default_factory=dict, compare=False)

    @cached_property
    def room(self) -> Room:
        """Next to the nest's unit."""
        return Room(self.main, self.system, self.passing)

    @cached_property
    def call(self) -> float:
        """Seconds of one full call on one unit."""
        return self.main.cycles / self.system.clock_of(self.main.instruction.name)

    @cached_property
    def latency(self) -> float:
        """Seconds until the results of one full call are there."""
        instruction = self.main.instruction
        return self.call + instruction.cost.behind / self.system.clock_of(instruction.name)

    @cached_property
    def units(self) -> frozenset[str]:
        """Those that work on the nest's calls."""
        return frozenset(u.name for u in self.system.units_of(self.main.instruction.name))

    @cached_property
    def members(self) -> int:
        """Units that work on the nest's calls at a time."""
        return len(self.units)

    def cells(self, memory: str) -> int:
        """How much a memory holds: cells, or bytes."""
        return self.system.memories[memory].limit

    def tile(self, memory: str, size: int) -> int:
        """What a tile of so many bytes takes of it."""
        m = self.system.memories[memory]
        return max(1, size if m.cells is None else -(-size // (m.cell or 1)))

    def asked(self, nest: Nest | Group, use: Use) -> int:
        """At multiples of how many bytes calls read tiles of an operand there, or the move that brings them on does."""
        memory = self.memory
        if memory.access == memory.align or memory.name in use.homes:
            return lcm(memory.access, use.align if memory.name in use.homes else 1)
        rank = sum(any(nest.unit(a) > 1 for a in r.names) for r in use.index)
        home = use.homes[0] if use.homes else self.system.home
        asks: dict[bool, int] = {}  # of the moves that take as many dimensions, and of the others
        for i in (self.system.instructions[m.by] for m in moves_of(self.system, memory.name, home, use.dtype)):
            source = next(a for a in i.body.arguments if a.role in ("in", "const"))
            alike = len(source.shape) == rank
            asks[alike] = lcm(asks.get(alike, 1), max(1, i.contract(source.name).align))
        return lcm(memory.access, asks.get(True, asks.get(False, 1)))

    def way_home(self, source: str, dtype: str) -> list[EdgeCost]:
        """What results of a type pass on their way home."""
        if (source, dtype) not in self._home:
            path = self.routes.of(source, self.system.home, dtype) or ()
            self._home[source, dtype] = along(self.system, path, dtype)
        return self._home[source, dtype]

    def inward(self, dtype: str) -> EdgeCost | None:
        """The quickest move of elements of a type from home to the memory."""
        return self.edge(self.system.home, self.memory.name, dtype)

    def edge(self, source: str, target: str, dtype: str) -> EdgeCost | None:
        """The quickest move of elements of a type along an edge."""
        return quickest(self.system, source, target, dtype)


class Estimate:
    """The prediction for one plan. ``of``: what its block and its dealing make of the main nest; ``boxes``: what is
    brought to the memory in between, per buffer."""

    def __init__(
        self, of: Divided, plan: Plan, boxes: dict[str, Box], trips: int = 1, beside: Sequence[tuple[str, int]] = (),
    ):  # fmt: skip
        self.trips = trips  # of the loops around, before which boxes that stay are brought
        self.beside = beside  # types and bytes of boxes that other nests want, and that could stay
        self.of, self.plan, self.boxes = of, plan, boxes
        self.machine, self.main = of.machine, of.main

    @cached_property
    def seconds(self) -> float:
        """The longest of what overlaps, and what nothing hides: the first boxes, those that do not take turns, the last
        results, and every block's results where the next block has no room for its own."""
        ahead, waited = self._loads()
        pieces = self._in_pieces()
        time = self._longest(ahead)
        if pieces:  # all of them come in the first of the rounds in which they are read
            share = min(share for share, _, _ in pieces)
            alone = self._longest([*((i, t * share) for i, t in ahead), *((i, t) for _, i, t in pieces)], share)
            time = alone + (1 - share) * time
        return time + waited + self._stores[1]

    @cached_property
    def drained(self) -> float:
        """Seconds in which blocks wait for the place of the results of the one before, though there is other room: all
        iterations of a loop are alike, and take it again unless they hold two blocks each."""
        loop = self.block_loop
        return 0.0 if loop is None or loop in self.plan.double_buffered else self.of.drained[1]

    @property
    def block_loop(self) -> int | None:
        """The innermost loop over blocks of results, by its depth."""
        found, left = None, dict(self.of.lengths)
        for d, (a, n) in enumerate(self.plan.order):
            if d >= self.plan.inner and a not in self.main.reduced and n < left.get(a, 1):
                found = d
            left[a] = min(n, left.get(a, 1))
        return found

    @property
    def traffic(self) -> float:
        """Seconds of all that is brought from home and into the registers, as if nothing else happened."""
        return sum(s for *_, s in (*self._from_home(), *self._besides(), *self.of.registers))

    @property
    def inside(self) -> float:
        """Seconds without what is brought from home: calls, moves into the registers, results."""
        return self._longest([])

    def _longest(self, ahead: list[tuple[str, float]], share: float = 1.0) -> float:
        """Of what overlaps in a ``share`` of the time: calls, and per issuer what it moves (``ahead``: from home)."""
        busy = {issuer: 0.0 for issuer, _ in ahead}
        for issuer, t in ahead:
            busy[issuer] += t
        for issuer, t in (*self._stores[0], *self.of.registers):
            busy[issuer] = busy.get(issuer, 0.0) + t * share
        near, behind = {issuer for issuer, _ in self.of.registers}, self._behind if ahead else {}
        for i in busy:
            busy[i] += sum(a + b for j, (a, b) in behind.items() if i != j) * share if i in near else 0.0
        left, boxes = (sum(t[n] for t in behind.values()) for n in (0, 1))
        waits = max(self.of.drained[0] + self.drained, self._between + left) + boxes
        return max([(self._compute + waits) * share, *busy.values()])

    @cached_property
    def _leaving(self) -> dict[str, float]:
        """Seconds that results of a block keep those who bring them home."""
        out: dict[str, float] = {}
        for issuer, t in self._stores[0]:
            out[issuer] = out.get(issuer, 0.0) + t / self.of.count
        return out

    @cached_property
    def _behind(self) -> dict[str, tuple[float, float]]:
        """Seconds in which what a block needs waits, in the order of moves of one unit, behind the results of the block
        before, which wait for its calls: per unit, for these and until it is there itself."""
        blocks, loop = self.of.count, self.block_loop
        waits: dict[str, tuple[float, float]] = {}
        for u, edge in self.of.brought if loop is not None else ():
            x = self.boxes.get(u.buffer)
            if edge.issuer in self._leaving and x is not None and not x.stays:
                ahead = 2 if loop in self.plan.double_buffered and x.depth == loop + 1 else 1  # every second one is
                parts = 1 if x.pieces is None else x.pieces.count
                times, alone = (min(x.times * parts, blocks) - 1) / ahead, not x.double_buffered and x.pieces is None
                most, seconds = waits.get(edge.issuer, (0.0, 0.0))
                seconds += 0.0 if alone else times * edge.seconds(1, x.size / parts, self.of.instances)
                waits[edge.issuer] = max(most, times), seconds
        return {issuer: (n * self._leaving[issuer], t) for issuer, (n, t) in waits.items()}

    @cached_property
    def _between(self) -> float:
        """Seconds from the last calls of blocks to the first ones of the next, where who brings these their operands
        takes results away as well."""
        leaving = self._leaving
        waits = (b.arrival + leaving[b.issuer] for b in self.of.near if b.issuer in leaving)
        longest = max(waits, default=0.0)
        return (self.of.count - 1) * (longest + self.machine.latency) if longest else 0.0

    @cached_property
    def _compute(self) -> float:
        """Seconds of calls: iterations of the innermost loop have tiles where those of the one before did."""
        return self.of.compute(self._unrolled)

    @property
    def _unrolled(self) -> int | None:
        """Steps in an iteration of the innermost loop over a reduction; None: there is no such loop."""
        left = {a: self.of.lengths[a] for a in self.main.reduced}
        found = None
        for d, (a, n) in enumerate(self.plan.order):
            if d >= self.plan.inner and n < left.get(a, 0):
                left[a] = n
                found = prod([-(-m // self.main.unit(b)) for b, m in left.items()]) * self.plan.blocks_held(d)
        return found

    def _in_pieces(self) -> list[tuple[float, str, float]]:
        """Boxes that come in pieces: in which share of the time, who brings them, its seconds."""
        out = []
        for u, edge in self.of.brought:
            x = self.boxes.get(u.buffer)
            if x is not None and x.pieces is not None:
                moves = x.times * x.pieces.count * edge.commands(x.pieces.sides)
                out.append((1 / x.pieces.again, edge.issuer, edge.seconds(moves, x.total, self.of.instances)))
        return out

    def _loads(self) -> tuple[list[tuple[str, float]], float]:
        """Traffic from home that overlaps with calls, per issuer, and the time of what does not."""
        inward = self.machine.inward
        found = ((e, n) for t, n in self.beside if (e := inward(t)) is not None)
        ahead, waited = [], sum(e.seconds(1, n, self.of.instances) for e, n in found)
        begins = max((x.times for x in self.boxes.values() if x.pieces is not None), default=1)  # each time anew
        for u, edge, whole in self._from_home():
            box = self.boxes.get(u.buffer)
            if box is not None and box.double_buffered:
                ahead.append((edge.issuer, whole))
                waited += begins * edge.seconds(1, box.size, self.of.instances)
            elif box is not None and box.pieces is not None:
                waited += begins * edge.seconds(1, box.size / box.pieces.count, self.of.instances)
            else:
                waited += whole
        return [*ahead, *self._besides()], waited

    def _besides(self) -> list[tuple[str, float]]:
        """Seconds of bringing tile by tile what cannot be read from the boxes that hold it, and who does it."""
        boxed = ((u, e, self.boxes.get(u.buffer)) for u, e in self.of.brought)
        some = ((u, e, x) for u, e, x in boxed if x is not None and x.readable < 1)
        return [(e.issuer, (1 - x.readable) * e.seconds(*self.of.tiles(u), self.of.instances)) for u, e, x in some]

    def _from_home(self) -> list[tuple[Use, EdgeCost, float]]:
        """What brings each operand, and its seconds: in boxes, or tile by tile whenever a block wants it."""
        out = []
        for u, edge in self.of.brought:
            box = self.boxes.get(u.buffer)
            moves, size = self.of.tiles(u) if box is None else (box.times, box.total)
            moves *= 1 if box is None or box.stays else edge.commands(box.sides)
            seconds = edge.seconds(moves, size, self.of.instances)
            out.append((u, edge, seconds / self.trips if box is not None and box.stays else seconds))
        return out

    @cached_property
    def _stores(self) -> tuple[list[tuple[str, float]], float]:
        """Results on their way home, per issuer, and the time of the last block's."""
        out, last = [], 0.0
        for u in self.of.written:
            if self._held(u):
                continue
            tiles = prod(-(-self.of.lengths[a] // self.main.unit(a)) for a in self.of.axes(u))
            size, tile = size_of(u.dtype) * prod(self.of.lengths[a] for a in self.of.axes(u)), self.of.tile(u)
            inside = self.of.largest
            back = None if u.buffer in self.machine.near else self.machine.inward(u.dtype)
            if back is not None and u.buffer in self.plan.group.private:  # and back, for those who read them
                out.append((back.issuer, back.seconds(tiles, size, self.of.instances)))
            way, joined = self.machine.way_home(u.homes[0], u.dtype), self.of.joined(u)
            if u.buffer in self.machine.near:
                way, joined = way[:1], 0
            for n, edge in enumerate(way, 1):
                moves, those = (joined * self.of.count, joined) if joined and n == len(way) else (tiles, inside)
                out.append((edge.issuer, edge.seconds(moves, size, self.of.instances)))
                last = max(last, edge.seconds(those, inside * tile, self.of.instances))
        return out, last

    def _held(self, use: Use) -> bool:
        """Whether results are read where they are: by nests of the group that share every loop over them."""
        group = self.plan.group
        if use.buffer not in group.private:
            return False
        trips = {a: self.of.lengths.get(a, 1) > n for a, n in self.plan.order[self.plan.inner :]}
        loops = {a for a in self.of.axes(use) if trips.get(a)}
        return all(loops <= set(n.extents) for n in group.nests if any(u.buffer == use.buffer for u in n.uses))
