"""What streams that do nothing wait for: the last thing that held back the call which ends a stall.

Moments carry in their lowest bits whose they are: the call that was the last to finish by then. So the states in which
iterations begin are told apart by who finished last as well, and stalls of iterations that are added by multiplication
or remembered are exact, as their times are.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from operator import attrgetter, itemgetter
from typing import NamedTuple

from isam.cost.clock import Begin, Clock, Told
from isam.cost.compiled import Block, Body, Code, Gate, Row, Step
from isam.cost.instances import Replicated
from isam.cost.lanes import Lane, State
from isam.cost.steps import Stand
from isam.schedule.tree import Issue, Schedule, distinct
from isam.scheduler.waits import for_results

RESULT, ROOM, EDGE, LINK, MESH, END = "result", "room", "edge", "link", "mesh", "end"


class Cause(NamedTuple):
    """Why a stream did nothing. ``kind``: a result that is not there yet (read after write; the stream's own ones too);
    room that someone still reads or writes; an edge, a link or a mesh that has no bandwidth left; the end: it has no
    more calls. ``of``: the unit whose call was the last to finish, or the edge, link, mesh. ``call``: the instruction.
    ``first``: before the first call on an instance."""

    kind: str
    of: str = ""
    call: str = ""
    first: bool = False

    def __str__(self) -> str:
        if self.kind == END:
            return "at the end"
        what = f"{self.call} of {self.of}" if self.call else f"{self.kind} {self.of}"
        return f"for {'room in use by ' * (self.kind == ROOM)}{what}{' before its first call' * self.first}"


class Tagged(Code):
    """Its moments are shifted by ``bits``, and ``latency`` is marked with a number of :attr:`who`. ``results``: per
    step the streams that it waits for because of what they compute."""

    def __post_init__(self) -> None:
        calls = dict.fromkeys((n.unit, n.instruction) for n in distinct(self.schedule.call) if isinstance(n, Issue))
        self.who = tuple(calls)
        self.number = {call: n for n, call in enumerate(self.who)}
        self.bits = len(self.who).bit_length()
        self.results: dict[Step, frozenset[Lane]] = {}
        self._read = for_results(self.schedule)
        super().__post_init__()

    def _row(self, issues: tuple[Issue, ...], stand: Stand) -> Row:
        lane, interval, latency, waits, gates, step, links = super()._row(issues, stand)
        lags = dict(waits)
        read = (self.awaited(w) for i in issues for w in self._read[id(i)])
        self.results[step] = frozenset(other for other, lag in read if lag == lags[other])
        last, n = max(step.calls, key=lambda t: t.latency).issue, self.bits
        mark = self.number[last.unit, last.instruction]
        slots = tuple((g, held << n) for g, held in gates)
        through = tuple((g, held << n, lead << n, hops << n) for g, held, lead, hops in links)
        return lane, interval << n, (latency << n) + mark, waits, slots, step, through

    def named(self, gate: Gate) -> tuple[str, str]:
        """What kind of thing a gate is, and which."""
        key = next(k for (k, _), g in self.gates.items() if g is gate)  # pyright: ignore[reportGeneralTypeIssues]
        if isinstance(key, str):
            return LINK, key
        return (EDGE, " -> ".join(key)) if len(key) == 2 else (MESH, key[0])


class Stalled(Clock):
    """A walk that adds up stalls as well: ``spent`` ticks, each by what it is about."""

    coded = Tagged
    code: Tagged  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, schedule: Schedule, dealt: Mapping[str, frozenset[int]], told: Told | None, whole: bool):
        super().__init__(schedule, dealt, told, whole)
        self.place: dict[tuple[str, Cause], int] = {}
        self.spent: list[int] = []

    @property
    def end(self) -> int:
        return super().end >> self.code.bits

    def stalls(self) -> dict[str, dict[Cause, int]]:
        """Of each stream that has calls, over all instances. (Who asks a cache for something with the last call may be
        busy beyond the end.)"""
        bits, out = self.code.bits, dict[str, dict[Cause, int]]()
        for (stream, cause), n in self.place.items():
            if self.spent[n]:
                out.setdefault(stream, {})[cause] = self.spent[n] >> bits
        end = self.end << bits
        for stream, group in self.code.group_of.items():
            lane, frees = self.code.lanes[stream], list[int]()
            if group:
                g = self.groups[group]
                g.store()
                k = g.lanes.index(lane)
                frees = [s.lanes[k].free for s in g.states]
            left = sum(max(0, end - free) for free in frees or [lane.free])
            if left:
                out.setdefault(stream, {})[Cause(END)] = left >> bits
        called = {self.code.streams[unit] for unit, _ in self.code.who}
        return {stream: causes for stream, causes in out.items() if stream in called}

    # -- what is added up --------------------------------------------------------------------------------------------
    def counted(self, body: Body) -> list[int]:
        return [*super().counted(body), *self.spent]

    def gained(self, body: Body, before: list[int]) -> list[int]:
        n = len(body.blocks)
        more = [now - was for now, was in zip_longest(self.spent, before[n:], fillvalue=0)]
        return [*super().gained(body, before[:n]), *more]

    def count(self, body: Body, more: list[int], times: int) -> None:
        super().count(body, more, times)
        for n, ticks in enumerate(more[len(body.blocks) :]):
            self.spent[n] += ticks * times

    def _spend(self, lane: Lane, cause: Cause, ticks: int) -> None:
        n = self.place.setdefault((lane.name, cause), len(self.spent))
        if n == len(self.spent):
            self.spent.append(0)
        self.spent[n] += ticks

    # -- calls -------------------------------------------------------------------------------------------------------
    def block(self, block: Block) -> None:
        block.times += 1
        self.followed += block.size
        for key, size in block.crossed:
            g, carried = self.carried[key]
            carried[g.at] += size
        for row in self.rows(block):
            self._call(row)
        for lane, n in block.calls:
            lane.total += n
            if len(lane.tail) > 2 * lane.keep + 64:
                lane.trim()

    def _call(self, row: Row) -> None:
        """A step: as :meth:`Clock.block` has it, and what it waited for. Of what is over at one moment a result or
        room counts, not bandwidth."""
        bits, (lane, interval, latency, waits, gates, step, links) = self.code.bits, row
        moment, by = max(((other.back(lag), other) for other, lag in waits), key=itemgetter(0), default=(0, lane))
        mark, start = latency & ((1 << bits) - 1), max(lane.free, moment >> bits << bits)
        gate = max((g for g, _ in gates), key=attrgetter("open"), default=None)
        held = gate is not None and gate.open > start
        start = gate.open if gate is not None and held else start
        first = not lane.total and not lane.tail
        if start > lane.free:
            if gate is not None and held:
                kind, of, call = *self.code.named(gate), ""
            else:
                of, call = self.code.who[moment & ((1 << bits) - 1)]
                kind = RESULT if by in self.code.results[step] else ROOM
            self._spend(lane, Cause(kind, of, call, first), start - lane.free)
        for g, ticks in gates:
            g.open = start + ticks
        late = [(g.take(start + lead, ticks) - start, hops, g) for g, ticks, lead, hops in links]
        slowest = max(late, key=itemgetter(0), default=None)
        if slowest is not None and slowest[0] > interval:
            self._spend(lane, Cause(*self.code.named(slowest[2])), slowest[0] - interval)
            interval = slowest[0]
        latency = max([latency, *(n + hops + mark for n, hops, _ in late)])
        lane.free = start + interval
        lane.top = max(lane.top, start + latency)
        lane.tail.append(lane.top)
        if self.told is not None:
            self._tell(self.told, row, start >> bits, (interval - row[1]) >> bits)

    # -- states ------------------------------------------------------------------------------------------------------
    def begin(self, body: Body, before: Begin | None) -> Begin:
        """It matters whether streams have made a call, also where all that they did is over."""
        got = super().begin(body, before)
        return got._replace(state=(*got.state, tuple([n.total > 0 for n in body.runs])))

    def _relative(self, g: Replicated, at: int) -> State:
        kinds = {id(s): tuple([n.total > 0 for n in s.lanes]) for s in g.kinds()}
        return *super()._relative(g, at), tuple([kinds[id(s)] for s in g.states])
