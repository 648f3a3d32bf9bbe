"""When a schedule's calls happen: streams, waits, issue intervals, latencies, bandwidth of edges (SCH-13).

Calls are taken in the tree's order: every stream starts its own in that order, so a call's time follows from what came
before it. Nothing is executed. A kept loop is followed until an iteration begins in the state in which the one before
began, up to a shift in time; the iterations left are added by multiplication.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod

from isam.ir.dtype import size_of
from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq, distinct

ASSUMED = 1.0  # cycles of a cost that the description does not state
KEPT = 256  # finishing times remembered per stream before the oldest are forgotten; lags are far smaller
LAST = 64  # how many of them are kept then
PAST = -1  # stands for every moment too early to matter
TICK = 1e-15  # seconds; times are whole ticks, so that iterations that are alike are equal

Edge = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Event:
    """A call on a stream, in ticks: it occupies its unit from ``start`` to ``free``; its results are at ``finish``."""

    issue: Issue
    start: int
    free: int
    finish: int
    edge: Edge | None = None  # of a move, with its bytes
    bytes: int = 0


@dataclass(slots=True)
class Work:
    """What one unit or edge did: ``calls``, ticks ``busy``, ``bytes`` moved."""

    calls: int = 0
    busy: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Timeline:
    """``ticks`` from the first start to the last finish; what each unit and edge did. ``followed``: calls looked at one
    by one, the others were added by multiplication."""

    ticks: int
    units: dict[str, Work]
    edges: dict[Edge, Work]
    calls: int
    followed: int

    def utilisation(self, unit: str) -> float:
        """The share of the time in which the unit was occupied."""
        return self.units[unit].busy / self.ticks if self.ticks else 0.0

    @property
    def seconds(self) -> float:
        return self.ticks * TICK


def timeline(
    schedule: Schedule,
    symbols: Mapping[str, int] | None = None,
    watch: Callable[[Event], None] | None = None,
    *,
    whole: bool = False,
) -> Timeline:
    """The call part of a schedule in time. ``symbols``: run-time sizes. ``watch`` sees every call that is looked at one
    by one; ``whole``: that is every call."""
    clock = _Clock(schedule, watch, whole)
    clock.node(schedule.call, dict(symbols or {}))
    calls = sum(w.calls for w in clock.units.values())
    return Timeline(clock.end, clock.units, clock.edges, calls, clock.followed)


@dataclass(frozen=True, slots=True)
class _Timed:
    """A call's times in ticks; ``held``: how long its edge is taken; ``waits``: (stream, lag)."""

    issue: Issue
    unit: str
    interval: int
    latency: int
    edge: Edge | None
    held: int
    bytes: int
    waits: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class _Touched:
    """The streams that run in a body, those only waited for, its edges; ``alike``: every iteration makes the same
    calls."""

    runs: tuple[str, ...]
    waits: tuple[str, ...]
    edges: tuple[Edge, ...]
    alike: bool


@dataclass
class _Clock:
    schedule: Schedule
    watch: Callable[[Event], None] | None
    whole: bool
    end: int = 0
    followed: int = 0
    free: dict[str, int] = field(default_factory=dict)  # when a stream may start its next call
    done: dict[str, list[int]] = field(default_factory=dict)  # when all its calls up to each were finished
    open: dict[Edge, int] = field(default_factory=dict)  # when an edge is next free
    units: dict[str, Work] = field(default_factory=dict)
    edges: dict[Edge, Work] = field(default_factory=dict)
    times: dict[int, _Timed] = field(default_factory=dict)
    used: dict[int, _Touched] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for u in self.schedule.system.units:
            self.free[u], self.done[u], self.units[u] = 0, [], Work()

    # -- the tree ----------------------------------------------------------------------------------------------------
    def node(self, node: Node, scope: dict[str, int]) -> None:
        if isinstance(node, Issue):
            self.call(node)
        elif isinstance(node, Seq):
            for c in node.children:
                self.node(c, scope)
        else:
            self.loop(node, scope)

    def loop(self, loop: Loop, scope: dict[str, int]) -> None:
        values = loop.values(scope)
        if not values:
            return
        self.node(loop.enter, scope)
        if loop.first is not None:
            self.node(loop.first, {**scope, loop.var: values[0]})
        self.middle(loop, values[loop.first is not None : len(values) - (loop.last is not None)], scope)
        if loop.last is not None:
            self.node(loop.last, {**scope, loop.var: values[-1]})
        self.node(loop.exit, scope)

    def middle(self, loop: Loop, values: range, scope: dict[str, int]) -> None:
        """Iterations one by one until one begins as the one before did, the rest at once."""
        body = self.touched(loop.body)
        before: tuple[object, int, _Counts] | None = None
        for n, v in enumerate(values):
            if body.alike and not self.whole:
                state, at = self.state(body)
                if before is not None and before[0] == state:
                    self.repeat(body, at - before[1], before[2], len(values) - n)
                    return
                before = state, at, self.counts()
            self.node(loop.body, {**scope, loop.var: v})

    def call(self, issue: Issue) -> None:
        t = self.times.get(id(issue)) or self.timed(issue)
        done, free = self.done, self.free
        start = free[t.unit]
        for stream, lag in t.waits:
            finished = done[stream]
            if len(finished) > lag and finished[-1 - lag] > start:
                start = finished[-1 - lag]
        if t.edge is not None:
            start = max(start, self.open.get(t.edge, 0))
            self.open[t.edge] = start + t.held
            self.moved(t)
        free[t.unit] = start + t.interval
        finish = start + t.latency
        mine = done[t.unit]
        mine.append(finish if not mine or finish > mine[-1] else mine[-1])
        if len(mine) > KEPT:
            del mine[:-LAST]
        self.end = max(self.end, finish)
        work = self.units[t.unit]
        work.calls += 1
        work.busy += t.interval
        self.followed += 1
        if self.watch is not None:
            self.watch(Event(issue, start, free[t.unit], finish, t.edge, t.bytes))

    def moved(self, t: _Timed) -> None:
        assert t.edge is not None
        work = self.edges.setdefault(t.edge, Work())
        work.calls += 1
        work.busy += t.held
        work.bytes += t.bytes

    # -- costs -------------------------------------------------------------------------------------------------------
    def timed(self, issue: Issue) -> _Timed:
        """A compute call takes its issue interval; a move its set-up and its bytes over the bandwidth."""
        system = self.schedule.system
        ins, cycle = system.instructions[issue.instruction], 1 / TICK / system.units[issue.unit].clock
        cost, edge, size, held = ins.cost, None, 0, 0.0
        more = cost.further(dict(issue.sizes))
        interval = (cost.issue if cost.issue is not None else ASSUMED) + more
        if issue.is_move:
            ends = {ins.operand(o.name).role: o for o in issue.operands}
            edge = (ends["in"].place.memory, ends["out"].place.memory)
            size = prod(ends["in"].tile.shape) * size_of(self.schedule.dtype(ends["in"].tile.buffer))
            held = size / cost.bandwidth if cost.bandwidth else 0.0
            interval = max((cost.issue or 0.0), (cost.setup or 0.0) + held) or ASSUMED
        latency = max(interval, (cost.latency or 0.0) + more)
        waits = tuple((w.stream, w.lag) for w in issue.after)
        busy, late, taken = (round(c * cycle) for c in (interval, latency, held))
        t = _Timed(issue, issue.unit, busy, late, edge, taken, size, waits)
        self.times[id(issue)] = t
        return t

    # -- repetition --------------------------------------------------------------------------------------------------
    def touched(self, body: Node) -> _Touched:
        """The streams and edges of a body, and whether all its iterations make the same calls."""
        known = self.used.get(id(body))
        if known is None:
            issues = [n for n in distinct(body) if isinstance(n, Issue)]
            timed = [self.times.get(id(i)) or self.timed(i) for i in issues]
            runs, waits = {t.unit for t in timed}, {s for t in timed for s, _ in t.waits}
            alike = all(n.trip is not None for n in distinct(body) if isinstance(n, Loop))
            edges = {t.edge for t in timed if t.edge is not None}
            known = _Touched(tuple(sorted(runs)), tuple(sorted(waits - runs)), tuple(sorted(edges)), alike)
            self.used[id(body)] = known
        return known

    def state(self, body: _Touched) -> tuple[object, int]:
        """What may influence what follows, relative to a moment, and that moment: the first in which a call of the body
        may start. What is over by then does not matter."""
        at = min((self.free[s] for s in body.runs), default=0)

        def since(t: int) -> int:
            return t - at if t > at else PAST

        free = tuple(since(self.free[s]) for s in body.runs)
        done = tuple(tuple(map(since, self.done[s][-LAST:])) for s in (*body.runs, *body.waits))
        return (free, done, tuple(since(self.open.get(e, 0)) for e in body.edges)), at

    def counts(self) -> _Counts:
        return {k: (w.calls, w.busy, w.bytes) for table in (self.units, self.edges) for k, w in table.items()}

    def repeat(self, body: _Touched, shift: int, before: _Counts, times: int) -> None:
        """As many more iterations like the last, each ``shift`` later."""
        later = shift * times
        for s in body.runs:
            self.free[s] += later
            self.done[s] = [t + later for t in self.done[s]]
        for e in body.edges:
            self.open[e] = self.open.get(e, 0) + later
        self.end = max([self.end, *(self.done[s][-1] for s in body.runs)])
        for table in (self.units, self.edges):
            for key, work in table.items():
                calls, busy, moved = before.get(key, (0, 0, 0))
                work.calls += (work.calls - calls) * times
                work.busy += (work.busy - busy) * times
                work.bytes += (work.bytes - moved) * times


_Counts = dict[object, tuple[int, int, int]]
