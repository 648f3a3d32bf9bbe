"""Caches are asked for what would otherwise be waited for (software prefetching; Callahan, Kennedy, Porterfield,
ASPLOS 1991), in two kinds of loops.

*Rows*: iterations go through new rows several times. Rows side by side are streams that end before hardware has fetched
ahead of them. The first time, a row comes from where it lies. At the second time it is near, there is time, and the
calls that read it stand at just the addresses of the next row, a known number of bytes further on.

*Streams*: iterations of an innermost loop read on and on what was laid out for them, faster than the memory that holds
it gives it to somebody who waits for every line. It is asked for a fixed number of bytes ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from isam.approach.choice import Choice, Trace
from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.literals import is_literal
from isam.schedule.tree import Issue, Loop, Node, Operand, Prefetch, Schedule, Seq, children, distinct, mapped
from isam.scheduler.spans import Span, merged, within
from isam.system.graph import System

AHEAD = 4096  # bytes ahead of a stream (measured: 2048 is too few, 8192 no better)
FLIGHT = 512  # instructions that a large core has in flight: it asks for what they read by itself
NOWHERE = "none"  # is asked
Ranges = Mapping[str, tuple[int, int]]  # least and largest value of the variables of loops inside


@dataclass(frozen=True, slots=True)
class Touch:
    """A call touches ``span`` of a base in the first iteration, ``step`` bytes further on in the next one; where the
    span begins beside its number. ``asks``: its instruction can prefetch."""

    issue: Issue
    base: str
    beside: Affine
    span: Span
    step: int
    writes: bool
    asks: bool


def with_prefetches(schedule: Schedule, trace: Trace) -> Schedule:
    """The schedule with calls that prefetch, where the machine can and the Approach wants it."""
    system = schedule.system
    if not system.caches:
        return schedule
    moves = {n.instruction for n in distinct(schedule.call) if isinstance(n, Issue) and n.is_move}
    able = {n for n in moves if system.instructions[n].cost.prefetch is not None}
    if not able:
        return schedule
    call = _Prefetches(schedule, trace, able).node(schedule.call)
    return schedule if call is schedule.call else replace(schedule, call=call)


class _Prefetches:
    def __init__(self, schedule: Schedule, trace: Trace, able: set[str]):
        self.schedule, self.trace, self.able = schedule, trace, able
        self.options = (NOWHERE, *(m.name for m in schedule.system.caches))
        known = {b.name for b in schedule.kernel.buffers}
        self.panels = {s.name: s.bytes for s in schedule.workspace if s.literal is None and s.name not in known}
        self.done: dict[int, Node] = {}

    def node(self, node: Node) -> Node:
        """The node with its prefetches; shared nodes stay shared."""
        if isinstance(node, Issue) or not _holds_loops(node):
            return node
        got = self.done.get(id(node))
        if got is None:
            got = self.done[id(node)] = self._loop(node) if isinstance(node, Loop) else mapped(node, self.node)
        return got

    def _loop(self, loop: Loop) -> Node:
        return self._asking(loop) if _holds_loops(loop.body) else self._streaming(loop)

    def _streaming(self, loop: Loop) -> Node:
        """An innermost loop with calls that ask for what lies ahead of them in its streams."""
        found = self._streams(loop)
        size = sum(high - low for touches in found.values() for low, high in merged(t.span for t in touches))
        seconds = seconds_of(loop.body, self.schedule.system) if found else 0.0
        if not seconds or size * FLIGHT >= 2 * AHEAD * sum(1 for _ in _issues(loop.body)):
            return loop
        memory = self._chosen(loop, found, size, max(self.panels[base] for base in found), size / seconds)
        if memory == NOWHERE:
            return loop
        asked = {id(t.issue): Prefetch(AHEAD, memory) for touches in found.values() for t in touches}
        return replace(loop, body=_with(loop.body, asked, {}))

    def _streams(self, loop: Loop) -> dict[str, list[Touch]]:
        """Calls by what they read, where an iteration begins where the one before has ended, in what was laid out anew
        as it is read."""
        bases: dict[str, list[Touch]] = {}
        for t in self._touches(loop.body, loop, {}):
            if t is None:
                return {}
            bases.setdefault(t.base, []).append(t)
        return {base: touches for base, touches in bases.items() if base in self.panels and _dense(touches)}

    def _chosen(self, loop: Loop, buffers: Iterable[str], size: int, whole: int, rate: float) -> str:
        context = {
            "loop": loop.axis or loop.var,
            "buffers": sorted(buffers),
            "bytes": size,
            "iterations": loop.trip,
            "whole": whole,
            "rate": rate,
            "_system": self.schedule.system,
        }
        return self.trace.choose(Choice("prefetch", self.options, context))

    def _asking(self, loop: Loop) -> Node:
        """The loop with calls that ask for what the next iteration reads; else whatever there is inside."""
        found = self._found(loop)
        if not found:
            return mapped(loop, self.node)
        steps = {t.base: abs(t.step) for t in found}
        size = sum(steps.values())
        memory = self._chosen(loop, steps, size, size * (loop.trip or 1), 0.0)
        if memory == NOWHERE:
            return mapped(loop, self.node)
        return replace(loop, body=_with(loop.body, {id(t.issue): Prefetch(t.step, memory) for t in found}, {}))

    def _found(self, loop: Loop) -> list[Touch]:
        """Calls that read again what is new in each iteration."""
        if loop.deal is not None or (loop.trip or 0) < 2 or not _holds_loops(loop.body):
            return []
        bases: dict[str, list[Touch] | None] = {}
        for t in self._touches(loop.body, loop, {}):
            if t is None:
                return []
            known = bases.setdefault(t.base, [])
            if known is None or not t.step or any((k.step, k.beside) != (t.step, t.beside) for k in known[:1]):
                bases[t.base] = None
                continue
            known.append(t)
        able = (touches for touches in bases.values() if touches and not touches[0].writes and _new(touches))
        return [t for touches in able for t in _again(touches) if t.asks and not t.writes]

    def _touches(self, node: Node, loop: Loop, ranges: Ranges) -> Iterator[Touch | None]:
        """What the calls in a node touch by address, in order; None: that does not show."""
        if isinstance(node, Issue):
            for o in node.operands:
                if o.place.base and o.place.cell is None and not is_literal(o.tile.buffer):
                    yield self._touch(node, o, loop, ranges)
            return
        if isinstance(node, Loop):
            ends = node.static
            if ends is None or node.deal is not None:
                yield None
                return
            last = ends[0] + (max(1, node.trip or 1) - 1) * node.step
            inner = {**ranges, node.var: (ends[0], last)}
            for p in (node.enter, node.first, node.body, node.last, node.exit):
                if p is not None:
                    yield from self._touches(p, loop, ranges if p is node.enter or p is node.exit else inner)
            return
        for c in children(node):
            yield from self._touches(c, loop, ranges)

    def _touch(self, issue: Issue, o: Operand, loop: Loop, ranges: Ranges) -> Touch:
        low = high = o.place.offset.const
        beside = []
        for name, c in o.place.offset.terms:
            if name in ranges:
                ends = [c * v for v in ranges[name]]
                low, high = low + min(ends), high + max(ends)
            elif name != loop.var:
                beside.append((name, c))
        rows = list(zip(o.place.strides, o.tile.shape, o.tile.steps, strict=True))
        reach = sum(abs(s * k) * (n - 1) for s, n, k in rows) + size_of(self.schedule.dtype(o.tile.buffer))
        writes = self.schedule.system.instructions[issue.instruction].operand(o.name).role != "in"
        step = o.place.offset.coefficient(loop.var) * loop.step
        asks = issue.is_move and issue.instruction in self.able
        return Touch(issue, o.place.base, Affine.from_terms(beside, 0), (low, high + reach), step, writes, asks)


def seconds_of(node: Node, system: System) -> float:
    """What the computations in a node keep the unit that has most of them; loops of an open trip count once."""
    return max(_busy(node, system).values(), default=0.0)


def _busy(node: Node, system: System) -> dict[str, float]:
    """Seconds by unit."""
    out: dict[str, float] = {}
    if isinstance(node, Issue):
        if not node.is_move:
            cycles = system.instructions[node.instruction].cost.cycles(dict(node.sizes))
            out[node.unit] = cycles / system.units[node.unit].clock
        return out
    trip = (node.trip or 1) - (node.first is not None) - (node.last is not None) if isinstance(node, Loop) else 1
    for c in children(node):
        for unit, seconds in _busy(c, system).items():
            often = trip if isinstance(node, Loop) and c is node.body else 1
            out[unit] = out.get(unit, 0.0) + often * seconds
    return out


def _dense(touches: list[Touch]) -> bool:
    """Whether moves that can ask read, in one or several streams, all of what an iteration moves on by, and nothing
    else."""
    step = touches[0].step
    able = all(t.asks and not t.writes and t.step == step for t in touches)
    return able and all(high - low == step for low, high in merged(t.span for t in touches))


def _issues(node: Node) -> Iterator[Issue]:
    """Calls of a node without loops, in order, as often as they are carried out."""
    if isinstance(node, Issue):
        yield node
    else:
        for c in children(node):
            yield from _issues(c)


def _new(touches: list[Touch]) -> bool:
    """Whether an iteration touches nothing that the one before did."""
    low, high = min(t.span[0] for t in touches), max(t.span[1] for t in touches)
    return high - low <= abs(touches[0].step)


def _again(touches: list[Touch]) -> list[Touch]:
    """Those that touch something for the second time."""
    out: list[Touch] = []
    seen: tuple[list[Span], list[Span]] = ([], [])
    for t in touches:
        times = sum(within(t.span, s) for s in seen)
        if times < 2:
            seen[times].append(t.span)
        if times == 1:
            out.append(t)
    return out


def _holds_loops(node: Node) -> bool:
    return isinstance(node, Loop) or (isinstance(node, Seq) and any(map(_holds_loops, node.children)))


def _with(node: Node, asked: Mapping[int, Prefetch], done: dict[int, Node]) -> Node:
    """A node whose calls ask for what they are to ask for."""
    if isinstance(node, Issue):
        return replace(node, prefetch=asked[id(node)]) if id(node) in asked else node
    if id(node) not in done:
        done[id(node)] = mapped(node, lambda n: _with(n, asked, done))
    return done[id(node)]
