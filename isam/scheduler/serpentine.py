"""Loops that go back and forth, so that a sweep begins with what the one before it has left in a cache.

A recurrent loop goes through the same weights in every step, and blocks of rows go through the same columns. Where
they are more than a cache holds, each line of them is gone before its turn comes again, and all of them come from the
next cache. If every other sweep goes backwards, as much as the cache holds is still there (serpentine order,
boustrophedon).

A loop may go backwards where no iteration finds anything that another one has left: neither in registers, nor in
memory, where what is read has been written in the same iteration or in none. Nothing in it waits, and it is the only
stream that runs: waits of another one count its calls in the tree's order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from isam.approach.choice import Choice, Trace
from isam.schedule.byte_ranges import ByteRange, merged, within
from isam.schedule.liveness import Flow
from isam.schedule.touches import Touch, Touches, taken
from isam.schedule.tree import Issue, Loop, Node, Schedule, Serpentine, distinct, mapped
from isam.scheduler.prefetch import ahead, seconds_of

FORTH, BACK = "forth", "back and forth"
PARTS = 8  # of a cache: what goes through less than that may as well go on as it does
MANY = 1 << 14  # spans, cut at what an iteration moves on by, that are compared
Exact = Sequence[tuple[Touch, Sequence[ByteRange]]]  # what calls touch, byte by byte in the first iteration of a loop


class Piece(NamedTuple):
    """Bytes from ``low`` to ``high`` of what an iteration moves on by, ``ahead`` iterations further on."""

    low: int
    high: int
    ahead: int
    writes: bool


def with_serpentines(schedule: Schedule, trace: Trace) -> Schedule:
    """The schedule, its waits in it, with loops that go back and forth, where there are caches and the Approach wants
    it."""
    system = schedule.system
    units = {n.unit for n in distinct(schedule.call) if isinstance(n, Issue)}
    if len(system.caches) < 2 or len({system.stream_of(u) for u in units}) > 1:
        return schedule
    call = _Serpentines(schedule, trace).node(schedule.call, None)
    return schedule if call is schedule.call else replace(schedule, call=call)


class _Serpentines:
    def __init__(self, schedule: Schedule, trace: Trace):
        self.schedule, self.trace, self.flow, self.touches = schedule, trace, Flow(schedule), Touches(schedule)
        self.done: dict[tuple[int, Serpentine | None], Node] = {}

    def node(self, node: Node, around: Serpentine | None) -> Node:
        """A node with its loops; ``around``: how those directly in it would tell that they go backwards."""
        if isinstance(node, Issue):
            return node
        key = (id(node), around)
        if key not in self.done:
            inside = isinstance(node, Loop)
            self.done[key] = self._loop(node, around) if inside else mapped(node, lambda c: self.node(c, around))
        return self.done[key]

    def _loop(self, loop: Loop, around: Serpentine | None) -> Node:
        back = around if around is not None and self._sweeps(loop, around) else None
        if back is not None:
            return self._back_and_forth(loop, back)
        inner = None if loop.deal is not None else Serpentine(loop.var, loop.step)
        return mapped(loop, lambda p: self.node(p, None if p is loop.enter or p is loop.exit else inner))

    def _back_and_forth(self, loop: Loop, back: Serpentine) -> Loop:
        """The loop going back and forth, and in it those that go through much of the same."""
        much = self.schedule.system.caches[1].capacity // PARTS

        def inside(node: Node) -> Node:
            if not isinstance(node, Loop):
                return mapped(node, inside)
            return self._back_and_forth(node, back) if self._swept(node, back.var) > much and self._may(node) else node

        return replace(loop, body=inside(loop.body), serpentine=back)

    # -- what is gone through ------------------------------------------------------------------------------------------
    def _sweeps(self, loop: Loop, around: Serpentine) -> bool:
        """Whether each iteration around goes through the same bytes, more than the near cache holds, the loop may go
        backwards, and the Approach wants it to."""
        caches = self.schedule.system.caches
        size = self._swept(loop, around.var)
        if size <= caches[1].capacity or not self._may(loop):
            return False
        seconds = seconds_of(loop, self.schedule.system)
        context = {"loop": loop.axis or loop.var, "around": around.var, "bytes": size,
                   "rate": size / seconds if seconds else 0.0, "_system": self.schedule.system}  # fmt: skip
        return self.trace.choose(Choice("serpentine", (FORTH, BACK), context)) == BACK

    def _swept(self, loop: Loop, around: str) -> int:
        """Bytes that a loop goes through and only reads, the same ones in every iteration around."""
        size = 0
        for touches in self.touches.of(loop).values():
            if any(t.writes or t.offset.coefficient(around) for t in touches):
                continue
            if any(s.size and s.var == loop.var for t in touches for s in t.inside):
                size += taken(touches)
        return size

    # -- whether it may ------------------------------------------------------------------------------------------------
    def _may(self, loop: Loop) -> bool:
        """Whether its iterations may come in any order."""
        if loop.deal is not None or (loop.trip or 0) < 2 or loop.first is not None or loop.last is not None:
            return False
        calls = [n for n in distinct(loop) if isinstance(n, Issue)]
        loops = [n for n in distinct(loop.body) if isinstance(n, Loop)]
        stream = ahead(self.schedule.system)
        if any(n.after or (n.prefetch and n.prefetch.ahead.is_constant and n.prefetch.ahead.const != stream)
               for n in calls):  # asks for rows of the next one
            return False
        plain = all(len(n.lo) == 1 and n.lo[0].div == 1 and n.deal is None and n.serpentine is None for n in loops)
        if not plain or not all(n.trip for n in loops):
            return False
        effect = self.flow.effect(loop.body)
        return not effect.exposed & effect.writes and self._apart(loop)

    def _apart(self, loop: Loop) -> bool:
        """Whether in memory, too, no iteration finds what another one has left."""
        for touches in self.touches.of(loop.body).values():
            if any(t.writes for t in touches):
                found = [(t, spans) for t in touches if (spans := self.touches.spans(t)) is not None]
                if len(found) < len(touches) or not (_independent(found, loop) or _private(found, loop)):
                    return False
        return True


def _independent(found: Exact, loop: Loop) -> bool:
    """Whether no iteration touches what another one writes."""
    way = found[0][0].way(loop)
    if not way[0] or any(t.way(loop) != way for t, _ in found):
        return False
    step, trip = abs(way[0]), loop.trip or 1
    wrote = {s for t, spans in found if t.writes for s in spans}
    read = {s for t, spans in found if not t.writes for s in spans} - wrote
    pieces = [p for writes, some in ((False, read), (True, wrote)) for s in merged(some)
              for p in _folded(s, step, writes)]  # fmt: skip
    return len(pieces) <= MANY and not _meet(sorted(pieces), trip)


def _folded(span: ByteRange, step: int, writes: bool) -> Iterator[Piece]:
    """What a span covers of the bytes that an iteration moves on by, and how many iterations further on: as often as it
    goes beyond them, up to a byte more than would be one piece too many."""
    low, high = span
    for n in range(low // step, min(-(-high // step), low // step + MANY + 1)):
        yield Piece(max(low - n * step, 0), min(high - n * step, step), n, writes)


def _meet(pieces: Sequence[Piece], trip: int) -> bool:
    """Whether one that an iteration writes overlaps one of another iteration; in the order of their begins."""
    open_: list[Piece] = []
    for p in pieces:
        open_ = [o for o in open_ if o.high > p.low]
        if any((o.writes or p.writes) and 0 < abs(o.ahead - p.ahead) < trip for o in open_):
            return True
        if not any(o.high >= p.high and o.ahead == p.ahead and o.writes >= p.writes for o in open_):
            open_.append(p)
    return False


def _private(found: Exact, loop: Loop) -> bool:
    """Whether what an iteration reads of a base has all been written in the same one."""
    wrote: list[tuple[Touch, Sequence[ByteRange]]] = []
    for t, spans in found:
        if t.writes:
            wrote.append((t, spans))
            continue
        before = merged(s for w, some in wrote if _alike(t, w, loop) for s in some)
        if not all(within(s, before) for s in spans):
            return False
    return True


def _alike(one: Touch, two: Touch, loop: Loop) -> bool:
    """Whether two touches move on alike, in all loops that both may stand in."""
    other = {s.var: s.size for s in two.inside}
    return one.way(loop) == two.way(loop) and all(other.get(s.var, s.size) == s.size for s in one.inside)
