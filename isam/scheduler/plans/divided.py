"""What a register block and a dealing make of the main nest of a group: the same for every order of loops and for
whatever is brought to the memory in between."""

from __future__ import annotations

from functools import cached_property
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from isam.ir.dtype import size_of
from isam.scheduler.edges import gathers, worth_joining
from isam.scheduler.nests import Use
from isam.scheduler.plans.register import live, together, unroll_order
from isam.scheduler.plans.rotation import Brought, least_step, near
from isam.scheduler.plans.traffic import brought
from isam.scheduler.trim import even_segments
from isam.system.graph import COUNTED

if TYPE_CHECKING:
    from isam.scheduler.edges import EdgeCost
    from isam.scheduler.plans.dealing import Dealing
    from isam.scheduler.plans.estimate import Machine


class Divided:
    """``width``: elements of each parallel axis in the register block."""

    def __init__(self, machine: Machine, width: dict[str, int], deals: Dealing):
        self.machine, self.width, self.main = machine, width, machine.main
        dealt = [(a, n) for a, n, _ in deals]
        self.lengths = {a: self.main.length(a) for a in self.main.axes} | dict(dealt)
        self.instances = prod(-(-self.main.length(a) // n) for a, n in dealt)
        self._axes: dict[int, frozenset[str]] = {}  # of uses of the main nest, by identity
        self._tiles: dict[int, tuple[float, float]] = {}
        self._joined: dict[int, int] = {}
        self._compute: dict[int | None, float] = {}

    @cached_property
    def blocks(self) -> list[tuple[int, dict[str, int]]]:
        """Register blocks of one instance: how many, of how many tiles along each parallel axis; edges are smaller."""
        kinds = []
        for a, w in self.width.items():
            unit = self.main.unit(a)
            kinds.append([(a, s.count, -(-s.size // unit)) for s in even_segments(self.lengths[a], w, unit)])
        return [(prod(n for _, n, _ in combo), {a: t for a, _, t in combo}) for combo in product(*kinds)]

    @cached_property
    def count(self) -> int:
        """Register blocks of one instance."""
        return sum(n for n, _ in self.blocks)

    @property
    def streaming(self) -> float:
        """Seconds of bringing home what the registers are brought, as if nothing stayed in between."""
        return sum(edge.seconds(0, self.tiles(u)[1], self.instances) for u, edge in self.brought)

    @cached_property
    def unroll(self) -> list[str]:
        """The parallel axes of a register block, outermost first."""
        per = {a: -(-w // self.main.unit(a)) for a, w in self.width.items()}
        return unroll_order(self.main, per, self.machine.room)

    @cached_property
    def near(self) -> list[Brought]:
        """Operands whose tiles are brought next to the unit step by step."""
        return near(self)

    def compute(self, unrolled: int | None) -> float:
        """Seconds of the calls of one instance, ``unrolled`` steps in an iteration (None: no loop is around a block),
        each as soon as its operands are there; members of a cluster share those of a register block."""
        if unrolled not in self._compute:
            paced = sum(n * max(self.step(t), least_step(self, t, unrolled)) for n, t in self.blocks)
            self._compute[unrolled] = paced * self.steps
        return self._compute[unrolled]

    def step(self, tiles: dict[str, int]) -> float:
        """Seconds of one step of a block's reduction: its calls, but each waits for the one that added to the same
        result in the step before."""
        calls = -(-prod(tiles.values()) // self.machine.members) * self.machine.call
        return max(calls, self.machine.latency) if self.steps > 1 else calls

    def inside(self, unrolled: int | None) -> float:
        """Seconds of calls and of what they are brought, ``unrolled`` steps in an iteration."""
        busy: dict[str, float] = {}
        for issuer, t in self.registers:
            busy[issuer] = busy.get(issuer, 0.0) + t
        return max([self.compute(unrolled), *busy.values()])

    @cached_property
    def steps(self) -> int:
        """Steps of the reduction."""
        return prod(-(-self.lengths[a] // self.main.unit(a)) for a in self.main.reduced)

    @cached_property
    def drained(self) -> tuple[float, float]:
        """Seconds in which calls wait for the results of the block before to leave the memories next to the unit: where
        there is no room for those of two blocks, and where there is, but they take the same place."""
        crowded = roomy = 0.0
        inside = self.largest
        for u in self.written if self.main.reduced else ():
            rooms = sum(self.machine.cells(h) // self.machine.tile(h, self.tile(u)) for h in u.homes)
            edge = next(iter(self.machine.way_home(u.homes[0], u.dtype)), None)
            if edge is None:
                continue
            seconds = (self.count - 1) * edge.seconds(inside, inside * self.tile(u), 1) / len(u.homes)
            if 2 * inside > rooms:
                crowded += seconds
            elif self.roomy and all(self.machine.system.memories[h].kind != COUNTED for h in u.homes):
                roomy += seconds
        return crowded, roomy

    @cached_property
    def roomy(self) -> bool:
        """Whether there is room for the results of two blocks, beside what calls read."""
        main = self.main
        per = dict(max((tiles for _, tiles in self.blocks), key=lambda t: prod(t.values())))
        twice = [n * 2 if u.writes else n for u, n in zip(main.uses, together(main, per), strict=True)]
        return any(self.machine.room.holds(live(main, twice, a, n)) for a, n in per.items())

    @cached_property
    def registers(self) -> list[tuple[str, float]]:
        """Tiles on their way to the registers, per issuer."""
        out = []
        for u in self.read:
            if not u.homes or u.homes[0] == self.machine.system.home:
                continue
            edge = self.machine.edge(self.machine.memory.name, u.homes[0], u.dtype)
            if edge is not None:
                out.append((edge.issuer, edge.seconds(*self.tiles(u), 1)))
        return out

    def tiles(self, use: Use) -> tuple[float, float]:
        """Tiles of an operand that register blocks bring, and their bytes."""
        known = self._tiles.get(id(use))
        if known is None:
            axes = self.axes(use)
            count = sum(n * prod(t for a, t in tiles.items() if a in axes) for n, tiles in self.blocks) * self.steps
            known = self._tiles[id(use)] = count, count * self.tile(use)
        return known

    @cached_property
    def read(self) -> list[Use]:
        """Operands that are brought from home and only read."""
        return brought(self.main)

    @cached_property
    def brought(self) -> list[tuple[Use, EdgeCost]]:
        """Those that moves bring from home to the memory, with what brings them."""
        away = [u for u in self.read if u.buffer not in self.machine.near]
        return [(u, edge) for u in away if (edge := self.machine.inward(u.dtype)) is not None]

    @cached_property
    def written(self) -> list[Use]:
        """Operands that leave the registers."""
        home = self.machine.system.home
        return [u for u in self.main.uses if u.writes and u.homes and u.homes[0] != home]

    def joined(self, use: Use) -> int:
        """In how many moves the results of a block come home where they do so in one piece; 0: tile by tile."""
        known = self._joined.get(id(use))
        if known is None:
            known = self._joined[id(use)] = self._moves_home(use)
        return known

    def _moves_home(self, use: Use) -> int:
        system, way = self.machine.system, self.machine.way_home(use.homes[0], use.dtype)
        path = self.machine.routes.of(use.homes[0], system.home, use.dtype) or ()
        if len(way) != 2 or len(path) != 3 or not gathers(system, system.memories[path[1]]):
            return 0
        per = dict(max((tiles for _, tiles in self.blocks), key=lambda t: prod(t.values())))
        wide = {a: n * self.main.unit(a) for a, n in per.items()}
        sides = (1 + sum(abs(c) * (wide.get(a, 1) - 1) for a, c in r.terms) for r in use.index)
        moves = way[-1].calls(tuple(sides))
        return moves if worth_joining(way[-2], way[-1], self.largest, self.tile(use), moves) else 0

    @cached_property
    def largest(self) -> int:
        """Calls of the largest register block."""
        return max((prod(tiles.values()) for _, tiles in self.blocks), default=0)

    def tile(self, use: Use) -> int:
        return size_of(use.dtype) * prod(min(self.main.unit(a), self.lengths[a]) for a in self.axes(use))

    def axes(self, use: Use) -> frozenset[str]:
        known = self._axes.get(id(use))
        if known is None:
            known = self._axes[id(use)] = frozenset([n for r in use.index for n in r.names if n in self.lengths])
        return known
