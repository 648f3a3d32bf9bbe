"""How full memories are in time: what lies there and is still of use (SCH-13)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from isam.classes import dataclass
from isam.cost.timeline import Event
from isam.ir.dtype import size_of
from isam.schedule.tree import Operand, Schedule

Where = tuple[str, int]  # a memory of an instance


@dataclass(slots=True)
class _Lies:
    """Bytes from ``low`` to ``high`` that a call began to write at ``since``, of use until ``until``."""

    low: int
    high: int
    since: int
    until: int


def occupancy(schedule: Schedule, events: Iterable[Event]) -> dict[Where, list[tuple[int, int]]]:
    """Per memory and instance: moments with the bytes that are in use from then on. Home memory is left out. What is
    written is in use from the begin of the call that writes it to the end of the last that reads it."""
    system = schedule.system
    shown = {m.name for m in system.memories.values() if m.fetched}
    lies: dict[Where, dict[tuple[str, int, int], _Lies]] = {}
    over: dict[Where, list[_Lies]] = {}
    for e in events:
        roles = {b.name: b.role for b in system.instructions[e.issue.instruction].body.arguments}
        for o in sorted(e.issue.operands, key=lambda o: roles[o.name] == "out"):
            if o.place.memory not in shown:
                continue
            where = o.place.memory, e.instance if system.replica_of(o.place.memory) else 0
            here = lies.setdefault(where, {})
            low, high = _span(schedule, o, e)
            met = [k for k in here if k[0] == o.place.base and k[1] < high and low < k[2]]
            if roles[o.name] == "out":
                for k in met:
                    over.setdefault(where, []).append(_cut(here, k, low, high))
                here[o.place.base, low, high] = _Lies(low, high, e.start, e.finish)
            for k in met if roles[o.name] != "out" else ():
                here[k].until = max(here[k].until, e.finish)
    every = {w: [*over.get(w, ()), *here.values()] for w, here in lies.items()}
    return {w: list(_counted(spans)) for w, spans in sorted(every.items())}


def _cut(here: dict[tuple[str, int, int], _Lies], key: tuple[str, int, int], low: int, high: int) -> _Lies:
    """The part of what lies somewhere that is overwritten; what is left of it stays."""
    one = here.pop(key)
    for a, b in ((one.low, low), (high, one.high)):
        if a < b:
            here[key[0], a, b] = _Lies(a, b, one.since, one.until)
    return _Lies(max(low, one.low), min(high, one.high), one.since, one.until)


def _counted(spans: list[_Lies]) -> Iterator[tuple[int, int]]:
    changes: dict[int, int] = {}
    for s in spans:
        changes[s.since] = changes.get(s.since, 0) + s.high - s.low
        changes[s.until] = changes.get(s.until, 0) - (s.high - s.low)
    now = 0
    for moment, change in sorted(changes.items()):
        now += change
        yield moment, now


def _span(schedule: Schedule, o: Operand, e: Event) -> tuple[int, int]:
    """The bytes of a memory that an operand covers; of cells all."""
    low = high = o.place.offset.evaluate(e.scope)
    for stride, step, n in zip(o.place.strides, o.tile.steps, o.tile.shape, strict=True):
        far = stride * step * (n - 1)
        low, high = low + min(0, far), high + max(0, far)
    high += size_of(schedule.dtype(o.tile.buffer))
    if o.place.cell is not None:
        cell = schedule.system.memories[o.place.memory].cell or 1
        low, high = (o.place.cell + low // cell) * cell, (o.place.cell - (-high // cell)) * cell
    return low, high
