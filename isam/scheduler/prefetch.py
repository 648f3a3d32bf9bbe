"""Caches are asked for what would otherwise be waited for (software prefetching; Callahan, Kennedy, Porterfield,
ASPLOS 1991), in three kinds of loops.

*Rows*: iterations go through new rows several times. Rows side by side are streams that end before hardware has fetched
ahead of them. The first time, a row comes from where it lies. At the second time it is near, there is time, and the
calls that read it stand at just the addresses of the next row, a known number of bytes further on.

*Blocks*: iterations go through new blocks of what was laid out anew, several sweeps each. The first sweep over a block
would wait for all of it. The sweeps over one ask for the next, each for its part (``next_block.py``). So do those over
rows of an argument that are read side by side where they lie, several to a page.

*Streams*: iterations of an innermost loop read on and on what was laid out for them, faster than the memory that holds
it gives it to somebody who waits for every line. It is asked for a fixed number of bytes ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod

from isam.approach.choice import Choice, Trace
from isam.caches import LINE, PERIOD
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.byte_ranges import ByteRange, merged, within
from isam.schedule.touches import Touch, Touches, fresh
from isam.schedule.tree import Issue, Loop, Node, Prefetch, Schedule, children, distinct, mapped
from isam.scheduler.next_block import TWICE, BlockRequests, SweptBlock, holds_loops, issues, swept_block, with_
from isam.system.graph import System
from isam.system.hierarchy import slow

AHEAD = 1024  # bytes ahead of a stream (measured on Zen 4: from 3072 on its own requests are thrown off)
FURTHER = 4096  # where the last cache is much slower than others (measured there: 2048 is too few, 8192 no better)
FLIGHT = 512  # instructions that a large core has in flight: it asks for what they read by itself
OFTEN = 4  # as much as is read is asked for of rows at most, elements being fewer bytes than a line
NOWHERE = "none"  # is asked


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
        self.schedule, self.trace, self.able, self.touches = schedule, trace, able, Touches(schedule)
        self.ahead = ahead(schedule.system)
        self.options = (NOWHERE, *(m.name for m in schedule.system.caches))
        self.panels = schedule.panels
        read = (b for b in schedule.kernel.arguments if b.role in ("in", "const"))
        self.read = {b.name: size * size_of(b.dtype) for b in read if (size := b.elements)}
        self.done: dict[int, Node] = {}
        self.kept: list[Node] = []  # ids stay valid while their nodes live

    def node(self, node: Node) -> Node:
        """The node with its prefetches; shared nodes stay shared."""
        if isinstance(node, Issue) or not holds_loops(node):
            return node
        got = self.done.get(id(node))
        if got is None:
            got = self.done[id(node)] = self._loop(node) if isinstance(node, Loop) else mapped(node, self.node)
        return got

    def _loop(self, loop: Loop) -> Node:
        if not holds_loops(loop.body):
            return self._streaming(loop)
        return self._asking(loop) or self._spreading(loop) or mapped(loop, self.node)

    def _streaming(self, loop: Loop) -> Node:
        """An innermost loop with calls that ask for what lies ahead of them in its streams."""
        found = self._streams(loop)
        size = sum(high - low for touches in found.values() for low, high in merged(t.hull for t in touches))
        seconds = seconds_of(loop.body, self.schedule.system) if found else 0.0
        if not seconds or size * FLIGHT >= 2 * self.ahead * _instructions(loop.body):
            return loop
        memory = self._chosen(loop, found, size, max(self.panels[base] for base in found), size / seconds)
        once = (_once(touches) for touches in found.values())
        return loop if memory == NOWHERE else _with(loop, once, lambda _: Prefetch(Affine((), self.ahead), memory))

    def _streams(self, loop: Loop) -> dict[str, Sequence[Touch]]:
        """Calls by what they read, where an iteration begins where the one before has ended, in what was laid out anew
        as it is read."""
        found = self.touches.of(loop.body).items()
        return {base.name: touches for base, touches in found
                if base.name in self.panels and all(map(self._brings, touches)) and _dense(touches, loop)}  # fmt: skip

    def _brings(self, t: Touch) -> bool:
        """Whether a call asks that brings more than one element: others would ask for every line many times."""
        return self._asks(t) and prod(t.operand.tile.shape) > 1

    def _asks(self, t: Touch) -> bool:
        """Whether a call reads and its instruction can prefetch."""
        return not t.writes and t.issue.is_move and t.issue.instruction in self.able

    def _chosen(
        self, loop: Loop, buffers: Iterable[str], size: int, whole: int, rate: float, sweeps: int = 1, row: int = 0,
        laid: bool = True,
    ) -> str:
        context = {
            "loop": loop.axis or loop.var,
            "buffers": sorted(buffers),
            "bytes": size,
            "iterations": loop.trip,
            "whole": whole,
            "rate": rate,
            "sweeps": sweeps,
            "row": row,
            "laid": laid,
            "_system": self.schedule.system,
        }
        return self.trace.choose(Choice("prefetch", self.options, context))

    def _asking(self, loop: Loop) -> Node | None:
        """The loop with calls that ask for the rows that the next iteration reads."""
        found = self._found(loop)
        if not found:
            return None
        size = sum(abs(touches[0].way(loop)[0]) for touches in found.values())
        row = max(_run(t) for touches in found.values() for t in touches)
        memory = self._chosen(loop, found, size, size * (loop.trip or 1), 0.0, row=row)
        if memory == NOWHERE:
            return None
        return _with(loop, found.values(), lambda t: Prefetch(Affine((), t.way(loop)[0]), memory))

    def _spreading(self, loop: Loop) -> Node | None:
        """The loop with calls that ask for the blocks that the next iteration reads: of what was laid out anew, else of
        rows where they lie."""
        for blocks in self._panels, self._rows:
            if found := blocks(loop):
                inside = (n for n in distinct(loop.body) if isinstance(n, Loop) and holds_loops(n.body))
                return None if any(map(blocks, inside)) else self._spread(loop, found)  # theirs are smaller
        return None

    def _spread(self, loop: Loop, found: list[SweptBlock]) -> Node | None:
        seconds = seconds_of(loop.body, self.schedule.system)
        if not seconds:
            return None
        size, sweeps = sum(b.size for b in found), max(b.sweeps for b in found)
        laid = all(b.base in self.panels for b in found)
        whole = max((self.panels if laid else self.read)[b.base] for b in found)
        memory = self._chosen(loop, [b.base for b in found], size, whole, size * sweeps / seconds, sweeps, laid=laid)
        spread = BlockRequests(loop, found, memory, TWICE if laid else OFTEN)
        made = None if memory == NOWHERE else spread.made()
        if made is None or not spread.asked or laid:
            return made if spread.asked else None
        self.kept.append(made)
        return mapped(made, self.node)  # panels inside may be streams

    def _panels(self, loop: Loop) -> list[SweptBlock]:
        """Blocks of what was laid out anew."""
        return self._blocks(loop, lambda name, touches: name in self.panels)

    def _rows(self, loop: Loop) -> list[SweptBlock]:
        """Blocks of rows of an argument that calls read side by side, element by element, several to a page: as many
        streams, of which hardware loses track."""
        return self._blocks(loop, lambda name, touches: name in self.read and 0 < _apart(touches) < PERIOD and all(
            not self._brings(t) and t.issue.prefetch is None for t in touches))  # fmt: skip

    def _blocks(self, loop: Loop, wanted: Callable[[str, Sequence[Touch]], bool]) -> list[SweptBlock]:
        if loop.deal is not None or (loop.trip or 0) < 2:
            return []
        found = self.touches.of(loop.body).items()
        blocks = (swept_block(base.name, touches, loop) for base, touches in found
                  if wanted(base.name, touches) and all(map(self._asks, touches)))  # fmt: skip
        return [b for b in blocks if b is not None]

    def _found(self, loop: Loop) -> dict[str, list[Touch]]:
        """Calls that read again what is new in each iteration, by what they read."""
        inside = (n for n in distinct(loop.body) if isinstance(n, Loop))
        if loop.deal is not None or (loop.trip or 0) < 2 or any(n.static is None or n.deal is not None for n in inside):
            return {}
        again = {base.name: [t for t in _again(touches) if self._brings(t)]
                 for base, touches in self.touches.of(loop.body).items()
                 if base.name and not touches[0].writes and fresh(touches, loop)}  # fmt: skip
        return {name: touches for name, touches in again.items() if touches}


def ahead(system: System) -> int:
    """How many bytes ahead of a stream a cache is asked for it."""
    return FURTHER if slow(system.caches) else AHEAD


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


def _instructions(body: Node) -> int:
    """Of an iteration: calls, but for moves of what one computation reads, which it reads where it lies."""
    calls = computations = once = 0
    reads = dict[object, int]()  # of what a move has brought to a cell
    for n in issues(body):
        calls += 1
        computations += not n.is_move
        for o in n.operands:
            if (o.place.memory, o.place.cell) in reads and not n.is_move:
                reads[o.place.memory, o.place.cell] += 1
        if n.is_move:
            cell = n.operands[-1].place
            once += reads.get((cell.memory, cell.cell)) == 1
            reads[cell.memory, cell.cell] = 0
    once += sum(n == 1 for n in reads.values())
    return calls - min(once, computations)


def _dense(touches: Sequence[Touch], loop: Loop) -> bool:
    """Whether reads in one or several streams go through all of what an iteration moves on by, and nothing else."""
    step = touches[0].way(loop)[0]
    alike = all(t.way(loop)[0] == step for t in touches)
    return alike and all(high - low == step for low, high in merged(t.hull for t in touches))


def _apart(touches: Iterable[Touch]) -> int:
    """Bytes between the nearest two of rows that touches go through side by side; 0: there is one."""
    begins = list[int]()
    for begin in sorted({t.offset.const for t in touches}):
        if not begins or begin - begins[-1] >= LINE:
            begins.append(begin)
    return min((b - a for a, b in pairwise(begins)), default=0)


def _run(t: Touch) -> int:
    """Bytes that the innermost loop around a call goes through."""
    return abs(t.inside[-1].size) * t.inside[-1].times if t.inside else t.bytes


def _once(touches: Sequence[Touch]) -> list[Touch]:
    """Of what is read those that begin a line; all, where none does."""
    return [t for t in touches if t.hull[0] % LINE == 0] or list(touches)


def _again(touches: Sequence[Touch]) -> list[Touch]:
    """Those that touch something for the second time."""
    out: list[Touch] = []
    seen: tuple[list[ByteRange], list[ByteRange]] = ([], [])
    for t in touches:
        hull = t.hull
        times = sum(within(hull, s) for s in seen)
        if times < 2:
            seen[times].append(hull)
        if times == 1:
            out.append(t)
    return out


def _with(loop: Loop, found: Iterable[Sequence[Touch]], asked: Callable[[Touch], Prefetch]) -> Loop:
    """A loop in which calls ask for what they are to ask for."""
    asks = {id(t.issue): asked(t) for touches in found for t in touches}
    return replace(loop, body=with_(loop.body, lambda n: asks.get(id(n))))
