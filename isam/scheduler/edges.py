"""What moves along an edge between two memories cost, as the description states it: whoever plans or routes moves, or
chooses who makes them, asks here. One call takes what :meth:`isam.ir.instruction.Cost.move` says, as in the finished
schedule (:mod:`isam.cost.steps`)."""

from __future__ import annotations

from itertools import pairwise, zip_longest
from math import prod

from isam.classes import dataclass
from isam.ir.instruction import ASSUMED
from isam.once import once
from isam.scheduler.move import moves_of
from isam.system.graph import Memory, Move, System

TYPICAL = 1024  # bytes by which ways are compared where the target has no cells
SOONER = 0.95  # of the time of tiles that go home one by one, that one move of all may take


@dataclass(frozen=True)
class EdgeCost:
    """Seconds that a move along an edge keeps its issuer: ``setup`` and per byte, ``least`` that one keeps it at any
    rate; ``shared``: bytes per second that all instances have together, where that is less (0: no such limit);
    ``limits``: what one call takes along its axes, of which ``burst`` are a command; ``latency``: seconds until what a
    move brings is there, if that is later."""

    issuer: str
    setup: float
    per_byte: float
    shared: float
    limits: tuple[int | None, ...] = ()
    burst: int = 1
    latency: float = 0.0
    least: float = 0.0

    def seconds(self, moves: float, size: float, instances: int) -> float:
        """For so many moves of so many bytes in all, on each of the instances."""
        per_byte = max(self.per_byte, instances / self.shared if self.shared else 0.0)
        return max(moves * self.least, moves * self.setup + size * per_byte)

    def arrival(self, size: int) -> float:
        """Until one move of so many bytes has brought them."""
        return max(self.latency, self.seconds(1, size, 1))

    def commands(self, sides: tuple[int, ...]) -> int:
        """How many bring a box: calls along its innermost dimension may share one."""
        calls = [-(-n // m) if m else 1 for n, m in zip_longest(reversed(sides), reversed(self.limits), fillvalue=1)]
        return -(-calls[0] // self.burst) * prod(calls[1:]) if self.limits and None not in self.limits else 1

    def calls(self, sides: tuple[int, ...]) -> int:
        """How many bring a box where a call takes as many of its dimensions as it has axes, the innermost first."""
        long = [n for n in reversed(sides) if n > 1]
        return prod(-(-n // m) if m else 1 for n, m in zip_longest(long, reversed(self.limits), fillvalue=1))


def keeps(system: System, move: Move, size: int) -> float:
    """Seconds that one move of so many bytes keeps its issuer, what links take apart."""
    return system.instructions[move.by].cost.move(size, links=False)[0] / system.units[move.issuer].clock


def along_path(system: System, path: tuple[str, ...], dtype: str) -> float:
    """Seconds of one cell of the last memory of a path, or ``TYPICAL`` bytes, of elements of a type, edge by edge."""
    size, total = system.memories[path[-1]].cell or TYPICAL, 0.0
    for edge in pairwise(path):
        shared = max((size / k.bandwidth for k in system.links_of(*edge)), default=0.0)
        total += max(shared, min(keeps(system, m, size) for m in moves_of(system, *edge, dtype)))
    return total


def quickest(system: System, source: str, target: str, dtype: str) -> EdgeCost | None:
    """The quickest move of elements of a type along an edge; None where none carries such."""
    known, key = _known(system), (source, target, dtype)
    if key not in known:
        found = (_edge(system, m) for m in moves_of(system, source, target, dtype))
        known[key] = min(found, key=lambda e: (e.per_byte, e.setup, e.least), default=None)
    return known[key]


def along(system: System, path: tuple[str, ...], dtype: str) -> list[EdgeCost]:
    """The quickest moves of elements of a type along a path of memories."""
    return [e for a, b in pairwise(path) if (e := quickest(system, a, b, dtype)) is not None]


@once
def _known(system: System) -> dict[tuple[str, str, str], EdgeCost | None]:
    """Filled in as they are asked for."""
    return {}


def _edge(system: System, m: Move) -> EdgeCost:
    ins, clock = system.instructions[m.by], system.units[m.issuer].clock
    cost = ins.cost
    shared = min((k.bandwidth for k in system.links_of(m.source, m.target)), default=0.0)
    per_byte = 1 / cost.bandwidth / clock if cost.bandwidth else 0.0
    limits, late = tuple(s.most for s in ins.spans.values()), (cost.latency or 0.0) / clock
    least = (cost.issue or (0.0 if cost.setup or cost.bandwidth or shared else ASSUMED)) / clock
    return EdgeCost(m.issuer, (cost.setup or 0.0) / clock, per_byte, shared, limits, ins.burst.most, late, least)


def gathers(system: System, memory: Memory) -> bool:
    """Whether results that pass through a memory may lie there as one piece."""
    return memory.name in system.scratchpads


def apart_and_joined(near: EdgeCost, far: EdgeCost, tiles: int, size: int, moves: int = 1) -> tuple[float, float]:
    """Seconds until tiles of so many bytes are home: one by one, each of which passes while the next one follows, and
    in so many moves of all of them."""
    each, onwards = near.seconds(1, size, 1), far.seconds(1, size, 1)
    apart = tiles * (each + onwards) if near.issuer == far.issuer else each + tiles * max(each, onwards)
    return apart, tiles * each + far.seconds(moves, tiles * size, 1)


def worth_joining(near: EdgeCost, far: EdgeCost, tiles: int, size: int, moves: int = 1) -> bool:
    """Whether they are home sooner together."""
    apart, joined = apart_and_joined(near, far, tiles, size, moves)
    return joined < SOONER * apart
