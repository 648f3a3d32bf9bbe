"""What comes before the first call of a mapping and after its last one, however well everything is arranged (SCH-13).

Before any call its inputs have come from home: the first pass of each from home takes its issuer, one after the other
where one issuer makes them all, then one of them goes on. After the last call what it wrote goes home. Sound, not
tight: of every operand a single element travels, on the quickest way.
"""

from __future__ import annotations

from functools import cached_property

from isam.classes import dataclass
from isam.cost.paths import least_path
from isam.cost.steps import TICK
from isam.ir.dtype import size_of
from isam.ir.kernel import Kernel, Recurrence
from isam.ir.mapping import Mapping
from isam.schedule.tree import Schedule
from isam.system.graph import Move
from isam.system.mesh import routes


@dataclass(frozen=True)
class Latency:
    """Seconds around the calls of a schedule's mappings. Of kernels with recurrent loops, and of those that may have
    nothing to do, nothing is said."""

    schedule: Schedule
    kernel: Kernel

    def before(self, m: Mapping) -> float:
        """Until the inputs of a call can be there."""
        if self._silent:
            return 0.0
        home, sides = self.schedule.system.home, self._inputs(m)
        alone = max((self._way(home, places, b) for b, places in sides), default=0.0)
        near = frozenset().union(*(places for _, places in sides))
        if len(sides) < 2 or not self._one_issuer(near):
            return alone
        firsts = {b: self._first(b) for b, _ in sides}
        rest = min(self._way(home, places, b) - firsts[b] for b, places in sides)
        return max(alone, sum(firsts.values()) + max(0.0, rest))

    def after(self, m: Mapping) -> float:
        """Until what the last call wrote can be home."""
        if self._silent:
            return 0.0
        home, found = self.schedule.system.home, [0.0]
        last = {s.dest.buffer: i for i, s in enumerate(self.kernel.statements)}
        for o in m.operands:
            if last.get(o.buffer, -1) in m.statements and self.kernel.buffer(o.buffer).role in ("out", "inout"):
                places = self.schedule.system.homes(m.instruction, o.operand)
                found.append(min(self._way(p, frozenset((home,)), o.buffer) for p in places))
        return max(found)

    def use(self, m: Mapping) -> float:
        """From when the last operand of a call is there until its result can be home."""
        return 0.0 if self._silent else self.call(m)[0] + self.after(m)

    def making(self, m: Mapping) -> float:
        """Until the first result of a call can be there."""
        return 0.0 if self._silent else self.before(m) + self.call(m)[0]

    def call(self, m: Mapping) -> tuple[float, float]:
        """From the start of one call until its results are there, and until its unit is free again."""
        clock = self.schedule.system.clock_of(m.instruction.name)
        cost = m.instruction.cost
        return self._down(max(cost.shortest, cost.latency or 0.0) / clock), cost.interval / clock

    @cached_property
    def _silent(self) -> bool:
        extents = (a.extent.const for s in self.kernel.statements for a in s.domain.axes)
        return any(isinstance(i, Recurrence) for i in self.kernel.body) or 0 in extents

    def _inputs(self, m: Mapping) -> list[tuple[str, frozenset[str]]]:
        """What a call reads that lies at home when all begins, and where it has to be."""
        kept = any(s.bound and s.memory != self.schedule.system.home for s in self.schedule.workspace)
        given = {b.name for b in self.kernel.arguments if b.role == "in" or (b.role == "const" and not kept)}
        out: dict[str, frozenset[str]] = {}
        for o in m.operands:
            if o.buffer in given:
                out[o.buffer] = frozenset(self.schedule.system.homes(m.instruction, o.operand))
        return [(b, places) for b, places in out.items() if self.schedule.system.home not in places]

    def _one_issuer(self, near: frozenset[str]) -> bool:
        """Whether one unit makes all moves from home to the instance that a call runs on."""
        system = self.schedule.system
        out = [m for m in system.moves if m.source == system.home]
        groups = {system.replica_of(x) for m in out for x in (m.issuer, m.target)} | set(map(system.replica_of, near))
        return len({m.issuer for m in out}) == 1 and len(groups) == 1

    @cached_property
    def lead(self) -> float:
        """Until a move from home is set up."""
        system = self.schedule.system
        stated = ((system.instructions[m.by].cost.setup or 0.0) / system.units[m.issuer].clock
                  for m in system.moves if m.source == system.home)  # fmt: skip
        return 0.0 if self._silent else self._down(min(stated, default=0.0))

    def _first(self, buffer: str) -> float:
        """How long the issuer is taken by the least that leaves home of a buffer."""
        home = self.schedule.system.home
        return min(self._move(m, buffer)[0] for m in self.schedule.system.moves if m.source == home)

    def _way(self, source: str, targets: frozenset[str], buffer: str) -> float:
        """The quickest way of one element."""
        moves = self.schedule.system.moves
        return least_path(((m.source, m.target, self._move(m, buffer)[1]) for m in moves), (source,), targets) or 0.0

    def _move(self, m: Move, buffer: str) -> tuple[float, float]:
        """Of one element: until the issuer is free, until it is there; at least."""
        system = self.schedule.system
        crossed, clock = system.crossings(m.source, m.target), system.units[m.issuer].clock
        links = bool(crossed or system.links_of(m.source, m.target))
        hops = sum(k.hop * min(map(len, routes(k).of(at, inward))) for k, at, inward in crossed)
        taken, there = system.instructions[m.by].cost.move(size_of(self.kernel.buffer(buffer).dtype), links=links)
        return self._down(taken / clock), self._down(there / clock + hops)

    @staticmethod
    def _down(seconds: float) -> float:
        """A simulator counts whole ticks."""
        return max(0.0, seconds - TICK)
