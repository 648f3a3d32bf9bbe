"""Who issues a call where several units may (SCH-3): each is asked when it would be done.

A prediction that starts anew with every list of steps, so that iterations of a loop are alike: a unit is busy with what
it was given there, operands that were made there are ready then. Members of a cluster follow one stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from isam.approach.choice import Choice, Trace
from isam.classes import dataclass
from isam.schedule.tree import Node, Tile
from isam.scheduler.edges import keeps
from isam.scheduler.nests import Call
from isam.scheduler.scope import Scope
from isam.system.graph import Move, System


@dataclass(eq=False)
class _Run:
    """A list of steps that is being recorded. ``free``: when each stream may begin its next call, in seconds since the
    list began; ``ready``: when what was made is there, and by which stream."""

    out: list[Node]
    free: dict[str, float] = field(default_factory=dict)
    ready: dict[Tile, tuple[float, str]] = field(default_factory=dict)


class Devices:
    """Chooses for the dry run that records in ``scope``, and remembers what it chose."""

    def __init__(self, system: System, trace: Trace, scope: Scope):
        self.system, self.trace, self.scope = system, trace, scope
        self._open: list[_Run] = []
        self._streams: dict[str, tuple[tuple[str, ...], ...]] = {}
        self._able: dict[tuple[str, int], list[tuple[str, ...]]] = {}  # those of them that have so many units
        self._alone = len(system.units) == 1

    def streams(self, instruction: str) -> tuple[tuple[str, ...], ...]:
        """The units that run it, those of one cluster together."""
        if instruction not in self._streams:
            self._streams[instruction] = self.system.streams(instruction)
        return self._streams[instruction]

    def units(self, calls: Sequence[Call]) -> list[str]:
        """A unit for each of the calls of one step."""
        name = calls[0][0].instruction.name
        able = self._able.get((name, len(calls)))
        if able is None:
            able = self._able[name, len(calls)] = [s for s in self.streams(name) if len(s) >= len(calls)]
        if len(able) == 1 and (len(calls) > 1 or len(able[0]) == 1):
            units = able[0]
        else:
            first = [s[0] for s in able] if len(calls) > 1 else [u for s in able for u in s]
            done, ready = [self._times(calls, u)[1] for u in first], self._run.ready
            made = {ready[t][1] for c in calls for t in c[3] if t in ready}
            wrote = [u for u in first if self._stream(u) in made]
            context = {"instruction": name, "tiles": [str(t) for c in calls for t in c[3]], "wrote": wrote}
            taken = self.trace.choose(Choice("device", first, context, done))
            units = next(s for s in able if taken in s) if len(calls) > 1 else (taken,)
        if not self._alone:
            self._note(calls, units[0])
        return list(units[: len(calls)])

    def mover(self, able: Sequence[Move], size: int, tile: Tile) -> int:
        """Which of several moves along an edge, alike but for who issues them, is made with so many bytes of a tile."""
        free = self._run.free
        done = [free.get(m.issuer, 0.0) + keeps(self.system, m, size) for m in able]
        names = [m.issuer for m in able]
        context = {"instruction": able[0].by, "tiles": [str(tile)], "wrote": []}
        at = names.index(self.trace.choose(Choice("device", names, context, done)))
        free[names[at]] = done[at]
        return at

    @property
    def _run(self) -> _Run:
        """The present list of steps; lists inside others end before these go on."""
        at = next((n for n, r in enumerate(self._open) if r.out is self.scope.out), None)
        if at is None:
            self._open.append(_Run(self.scope.out))
        else:
            del self._open[at + 1 :]
        return self._open[-1]

    def _stream(self, unit: str) -> str:
        return self.system.stream_of(unit)

    def _times(self, calls: Sequence[Call], unit: str) -> tuple[float, float, float]:
        """When the unit would begin, have time again, and have made what the calls make."""
        run = self._run
        nest, _, sizes, _ = calls[0]
        clock, cost = self.system.units[unit].clock, nest.instruction.cost
        cycles = cost.cycles(sizes)
        ready = (run.ready[t][0] for c in calls for t in c[3] if t in run.ready)
        begin = max([run.free.get(self._stream(unit), 0.0), *ready])
        return begin, begin + cycles / clock, begin + (cycles + cost.behind) / clock

    def _note(self, calls: Sequence[Call], unit: str) -> None:
        _, free, made = self._times(calls, unit)
        stream = self._stream(unit)
        self._run.free[stream] = free
        for nest, _, _, tiles in calls:
            for use, tile in zip(nest.uses, tiles, strict=True):
                if use.writes:
                    self._run.ready[tile] = made, stream
