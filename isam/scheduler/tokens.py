"""What each call waits for, so that the units of a machine may run apart (SCH-8).

Every unit is a stream: it starts the calls given to it in the order of the schedule's tree. A call that touches what a
call of another stream (or an earlier one of its own that is not finished) touches, and one of them writes, carries a
:class:`~isam.schedule.tree.Wait`. Lags are the same in every iteration: a body is walked until what came before it
looks alike, and the smallest lag of all its uses holds. A stream is never more than ``WINDOW`` calls ahead of a call
that might touch the same memory: what lies further back counts as a clash.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.tree import Issue, Loop, Node, Operand, Schedule, Seq, Wait, distinct
from isam.scheduler.state import Ranges, bounds_of

WINDOW = 16


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes ``low`` to ``high`` (half open) behind ``base`` in ``memory``, or whole cells, read or written."""

    memory: str
    base: str
    low: Affine
    high: Affine
    writes: bool


@dataclass(frozen=True, slots=True)
class Past:
    """A call that came before, with its footprints in terms of the variables now in scope."""

    issue: int
    prints: tuple[Footprint, ...]


BARRIER = Past(-1, ())  # in its place anything may have come
History = dict[str, tuple[Past, ...]]  # per stream, the latest last


def with_waits(schedule: Schedule) -> Schedule:
    """The schedule with every call's waits. One unit alone needs none that its own order does not give."""
    units = {n.unit for tree in (schedule.bind, schedule.call) for n in distinct(tree) if isinstance(n, Issue)}
    if len(units) < 2:
        return schedule
    t = Tokens(schedule)
    t.follow(schedule.bind, {})
    t.follow(schedule.call, {})
    done: dict[int, Node] = {}
    return replace(schedule, bind=t.marked(schedule.bind, done), call=t.marked(schedule.call, done))


class Tokens:
    """One walk over a schedule's trees; ``lags``: per call and stream the smallest found."""

    def __init__(self, schedule: Schedule):
        self.schedule = schedule
        self.ranges = Ranges()
        self.lags: dict[int, dict[str, int]] = {}
        self._prints: dict[int, tuple[Footprint, ...]] = {}
        self._memo: dict[object, History] = {}
        self._writes: dict[str, frozenset[str]] = {}

    # -- walking -----------------------------------------------------------------------------------------------------
    def follow(self, node: Node, before: History) -> History:
        """What came before the end of the node, given what came before its begin."""
        if isinstance(node, Seq):
            for c in node.children:
                before = self.follow(c, before)
            return before
        if isinstance(node, Issue):
            return self._call(node, before)
        key = (id(node), tuple(sorted(before.items())), tuple(self.ranges.items()))
        if key not in self._memo:
            self._memo[key] = self._loop(node, before) if node.trip != 0 else before
        return self._memo[key]

    def _loop(self, loop: Loop, before: History) -> History:
        """Middle iterations are walked until they begin alike."""
        history = self.follow(loop.enter, before)
        bounds, trip = _range(loop, self.ranges), loop.trip
        peeled = (loop.first is not None) + (loop.last is not None)
        self.ranges.enter(loop.var, loop.lo[0].expr, bounds)
        if loop.first is not None:
            history = shifted(self.follow(loop.first, history), loop.var, loop.step)
        history = self._middle(loop, history, 1 << 40 if trip is None else trip - peeled)
        if loop.last is not None:
            history = shifted(self.follow(loop.last, history), loop.var, loop.step)
        self.ranges.leave(loop.var)
        start, *more = loop.lo
        if trip is None or more or start.div > 1:  # it may have run any number of times
            return self.follow(loop.exit, dict.fromkeys(history, (BARRIER,)))
        end = start.expr + trip * loop.step  # one step beyond the last value, to which all was shifted
        return self.follow(loop.exit, substituted(history, {loop.var: end}))

    def _middle(self, loop: Loop, history: History, times: int) -> History:
        """After so many iterations of the body; once an iteration begins like an earlier one, all begin like those."""
        begins: list[History] = []
        for _ in range(times):
            if history in begins:
                first = begins.index(history)
                return begins[first + (times - first) % (len(begins) - first)]
            begins.append(history)
            history = shifted(self.follow(loop.body, history), loop.var, loop.step)
        return history

    def _call(self, issue: Issue, before: History) -> History:
        mine = self.prints(issue)
        lags = self.lags.setdefault(id(issue), {})
        for stream, past in before.items():
            lag = next((n for n, p in enumerate(reversed(past)) if p is BARRIER or self._clash(p.prints, mine)), None)
            if lag is None and len(past) == WINDOW:
                lag = WINDOW
            if lag is not None:
                lags[stream] = min(lag, lags.get(stream, WINDOW))
        own = (*before.get(issue.unit, ()), Past(id(issue), mine))[-WINDOW:]
        return {**before, issue.unit: own}

    def _clash(self, one: tuple[Footprint, ...], two: tuple[Footprint, ...]) -> bool:
        """Whether two calls may touch the same bytes and one of them writes."""
        for f in one:
            for g in two:
                if (f.writes or g.writes) and f.memory == g.memory and f.base == g.base and not self._apart(f, g):
                    return True
        return False

    def _apart(self, f: Footprint, g: Footprint) -> bool:
        return _never_less(f.low - g.high, self.ranges) or _never_less(g.low - f.high, self.ranges)

    # -- footprints --------------------------------------------------------------------------------------------------
    def prints(self, issue: Issue) -> tuple[Footprint, ...]:
        known = self._prints.get(id(issue))
        if known is None:
            written = self._written(issue.instruction)
            known = self._prints[id(issue)] = tuple(self._print(o, o.name in written) for o in issue.operands)
        return known

    def _written(self, name: str) -> frozenset[str]:
        if name not in self._writes:
            args = self.schedule.system.instructions[name].body.arguments
            self._writes[name] = frozenset(b.name for b in args if b.role in ("out", "inout"))
        return self._writes[name]

    def _print(self, o: Operand, writes: bool) -> Footprint:
        p, m = o.place, self.schedule.system.memories[o.place.memory]
        dtype = self.schedule.dtype(o.tile.buffer)
        spans = [k * s * (n - 1) for k, s, n in zip(p.strides, o.tile.steps, o.tile.shape, strict=True)]
        low = p.offset + sum(min(0, s) for s in spans)
        high = p.offset + (sum(max(0, s) for s in spans) + size_of(dtype))
        if p.cell is not None:  # whole cells
            size = m.cell or 1
            first = p.cell + (low.const // size if not low.terms else 0)
            last = p.cell + (-(-high.const // size) if not high.terms else m.limit)
            low, high = Affine((), first * size), Affine((), last * size)
        return Footprint(p.memory, p.base, low, high, writes)

    # -- the result --------------------------------------------------------------------------------------------------
    def marked(self, node: Node, done: dict[int, Node]) -> Node:
        """The tree with its waits; shared nodes stay shared."""
        got = done.get(id(node))
        if got is not None:
            return got
        if isinstance(node, Issue):
            lags = self.lags.get(id(node), {})
            new: Node = replace(node, after=tuple(Wait(s, n) for s, n in sorted(lags.items())))
        elif isinstance(node, Seq):
            new = Seq(tuple(self.marked(c, done) for c in node.children))
        else:
            first, last = (None if p is None else self.marked(p, done) for p in (node.first, node.last))
            enter, body, leave = (self.marked(p, done) for p in (node.enter, node.body, node.exit))
            new = replace(node, enter=enter, first=first, body=body, last=last, exit=leave)
        done[id(node)] = new
        return new


def shifted(history: History, var: str, step: int) -> History:
    """What came before, seen from the next iteration."""
    return substituted(history, {var: Affine.of(var, 1, -step)})


def substituted(history: History, values: Mapping[str, Affine]) -> History:
    (var,) = values

    def one(p: Past) -> Past:
        if not any(f.low.coefficient(var) or f.high.coefficient(var) for f in p.prints):
            return p
        moved = (replace(f, low=f.low.substitute(values), high=f.high.substitute(values)) for f in p.prints)
        return Past(p.issue, tuple(moved))

    return {s: tuple(map(one, past)) for s, past in history.items()}


def _range(loop: Loop, ranges: Ranges) -> tuple[int, int]:
    """The least and the greatest value of the loop's variable."""
    low = max(-(-bounds_of(b.expr, ranges)[0] // b.div) for b in loop.lo)
    high = min(bounds_of(b.expr, ranges)[1] // b.div for b in loop.hi)
    return low, max(low, high - 1)


def _never_less(e: Affine, ranges: Ranges) -> bool:
    """Whether the difference is certainly not negative."""
    return e.const >= 0 if not e.terms else bounds_of(e, ranges)[0] >= 0
