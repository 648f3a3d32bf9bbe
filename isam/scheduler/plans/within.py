"""What of a group lies in a memory below outer loops: how much room it takes there, who brings it and who takes it
home. To what is behind the memory it is home."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import ceil
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.ir.dtype import size_of
from isam.once import once
from isam.schedule.literals import is_literal
from isam.scheduler.edges import EdgeCost, quickest
from isam.scheduler.laid_out import box_room
from isam.scheduler.nests import Use
from isam.scheduler.plans.begins import readable
from isam.scheduler.plans.boxes import Box, Order, box_sides
from isam.scheduler.plans.register import axes_of
from isam.system.graph import Memory, System

if TYPE_CHECKING:
    from isam.scheduler.plan import Group
    from isam.scheduler.routes import Routes


class Busy(dict[str, float]):
    """Seconds for which each issuer of moves, or unit, is busy."""

    def add(self, who: str, seconds: float) -> float:
        """Counts them in, and returns them."""
        self[who] = self.get(who, 0.0) + seconds
        return seconds


@dataclass(frozen=True)
class Within:
    """A group in blocks in a ``memory``; ``near``: what is at home near the units, and not moved."""

    group: Group
    system: System
    routes: Routes
    memory: Memory
    near: frozenset[str] = frozenset()

    @cached_property
    def view(self) -> System:
        """The machine as it is behind the memory."""
        return seen_from(self.system, self.memory.name)

    @cached_property
    def uses(self) -> dict[str, list[Use]]:
        """All accesses to each buffer that is at home further out."""
        out: dict[str, list[Use]] = {}
        for u in (u for n in self.group.nests for u in n.uses):
            if not is_literal(u.buffer) and u.buffer not in self.near:
                out.setdefault(u.buffer, []).append(u)
        return out

    @cached_property
    def written(self) -> frozenset[str]:
        return frozenset(b for b, us in self.uses.items() if any(u.writes for u in us))

    def leads(self, source: str, target: str, dtype: str) -> bool:
        """Whether elements get from one memory to another without passing home."""
        if source == target:
            return True
        way = self.routes.of(source, target, dtype)
        return way is not None and self.system.home not in way

    def inward(self, uses: Sequence[Use]) -> EdgeCost | None:
        """The move that brings a buffer from home; None: there is none."""
        return quickest(self.system, self.system.home, self.memory.name, uses[0].dtype)

    def outward(self, uses: Sequence[Use]) -> EdgeCost | None:
        """The move that takes a buffer home; None: there is none."""
        return quickest(self.system, self.memory.name, self.system.home, uses[0].dtype)

    def plain(self, uses: Sequence[Use]) -> bool:
        """Whether one axis alone, another one each, counts every dimension of a buffer in all accesses."""
        alone = all(len(r.terms) == 1 and r.terms[0][1] == 1 and not r.const for u in uses for r in u.index)
        return alone and bool(uses[0].index) and all(len({r.names[0] for r in u.index}) == len(u.index) for u in uses)

    # -- boxes below outer loops ---------------------------------------------------------------------------------------
    def depth(self, uses: Sequence[Use], order: Order) -> int:
        """Below how many loops a buffer's box no longer changes: as far out as that is."""
        mine = frozenset(a for u in uses for a in axes_of(u))
        return max((d + 1 for d, (a, _) in enumerate(order) if a in mine), default=0)

    def sides(self, uses: Sequence[Use], order: Order, depth: int) -> tuple[int, ...] | None:
        """Elements along each dimension of what all accesses to a buffer cover below so many loops; None where blocks
        are not of one place for all of them."""
        cut = {a for a, _ in order[:depth]}
        for rows in zip(*(u.index for u in uses), strict=True):
            if len({tuple(t for t in r.terms if t[0] in cut) for r in rows}) > 1:
                return None
        each = [box_sides(self.group, u, order, depth) for u in uses]
        consts = zip(*((r.const for r in u.index) for u in uses), strict=True)
        more = [max(c) - min(c) for c in consts]
        return tuple(max(n) + k for n, k in zip(zip(*each, strict=True), more, strict=True))

    def size(self, uses: Sequence[Use], sides: tuple[int, ...]) -> int:
        """Bytes that a box takes."""
        return box_room(sides, size_of(uses[0].dtype), self.memory.align)

    def box(self, uses: Sequence[Use], sides: tuple[int, ...], depth: int, times: int, turns: bool) -> Box:
        """A box of what is read, brought so many ``times``; ``turns``: one while another is worked on."""
        size = self.size(uses, sides)
        return Box(depth, size, times, times * size, turns, sides)

    def begins(self, uses: Sequence[Use], loops: Order, left: Mapping[str, int], sides: tuple[int, ...]) -> bool:
        """Whether all that calls touch of a box, in ``loops`` with so much ``left`` of each axis, begins where an
        access may."""
        memory = self.memory
        return all(readable(self.group, u, loops, left, sides, memory, memory.access) == 1 for u in uses)


def known(edge: EdgeCost | None) -> EdgeCost:
    """An edge that somebody has found before."""
    assert edge is not None, "asked before"
    return edge


def moved(edge: EdgeCost, sides: tuple[int, ...], size: int) -> float:
    """Seconds of moving a box along an edge."""
    return edge.seconds(edge.commands(sides), size, 1)


def halved(length: int, unit: int, times: int) -> list[int]:
    """All of a length, halved so many times, in multiples of a unit; each once."""
    calls = ceil(length / unit)
    return [*dict.fromkeys(min(length, ceil(calls / 2**n) * unit) for n in range(times + 1))]


@once
def _views(system: System) -> dict[str, System]:
    """Filled in as they are asked for."""
    return {}


def seen_from(system: System, memory: str) -> System:
    """The machine as it is for somebody to whom a memory is home: what lies before it is left out. Of the instances of
    a memory that is replicated there is one."""
    known = _views(system)
    if memory not in known:
        known[memory] = _seen_from(system, memory)
    return known[memory]


def _seen_from(system: System, memory: str) -> System:
    there, todo = {memory}, [memory]
    while todo:
        here = todo.pop()
        ahead = [m.target for m in system.moves if m.source == here and m.target != system.home]
        drained = [m.source for m in system.moves if m.target == here and m.source in system.closed]
        found = {*ahead, *drained} - there - {system.home}
        there |= found
        todo += found
    memories = {n: replace(m, home=n == memory) for n, m in system.memories.items() if n in there}
    moves = tuple(m for m in system.moves if {m.source, m.target} <= there)
    own = system.replica_of(memory)
    return replace(system, memories=memories, moves=moves,
                   replicas={n: r for n, r in system.replicas.items() if n != own})  # fmt: skip
