"""Moves that leave the nearest cache to others (non-temporal loads: Intel, Optimization Reference Manual, "Non-temporal
hints").

A block of rows is gone through again for every tile of columns, and the columns, which are many more, once for every
block of rows. Were both kept in the nearest cache, each would drive the other out. What is not found there again anyway
is brought by moves that do not make it stay.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from isam.approach.choice import Choice, Trace
from isam.caches import LINE
from isam.schedule.touches import Base, Touch, Touches, taken
from isam.schedule.tree import Issue, Loop, Node, Schedule, distinct, mapped

STAY, PASS = "stays", "passes"


def with_streaming(schedule: Schedule, trace: Trace) -> Schedule:
    """The schedule with moves that do not make what they bring stay in the nearest cache, where the machine has such
    and the Approach wants it."""
    system = schedule.system
    moves = {n.instruction for n in distinct(schedule.call) if isinstance(n, Issue) and n.is_move}
    if not system.caches or moves.isdisjoint(system.streaming):
        return schedule
    call = _Streaming(schedule, trace).node(schedule.call, frozenset())
    return schedule if call is schedule.call else replace(schedule, call=call)


class _Streaming:
    def __init__(self, schedule: Schedule, trace: Trace):
        self.schedule, self.trace, self.touches = schedule, trace, Touches(schedule)
        self.done: dict[tuple[int, frozenset[int]], Node] = {}

    def node(self, node: Node, passing: frozenset[int]) -> Node:
        """The node with its moves; ``passing``: calls that loops around let pass."""
        if isinstance(node, Issue):
            other = self.schedule.system.streaming.get(node.instruction) if id(node) in passing else None
            return node if other is None else replace(node, instruction=other)
        key = (id(node), passing)
        if key not in self.done:
            inside = self._passing(node, passing) if isinstance(node, Loop) else passing
            self.done[key] = mapped(node, lambda part: self.node(part, inside))
        return self.done[key]

    def _passing(self, loop: Loop, around: frozenset[int]) -> frozenset[int]:
        """Beside those ``around``: calls in a loop that read the same once in every iteration, and would not
        find it again."""
        found, out = self.touches.of(loop.body), set(around)
        again = [(base, touches) for base, touches in found.items() if self._once_each(loop, base, touches)]
        for base, touches in sorted(again, key=lambda a: -taken(a[1])):
            stays = sum(taken(t for t in some if id(t.issue) not in out) for some in found.values())
            context = {"loop": loop.axis or loop.var, "buffer": base.name, "bytes": taken(touches), "between": stays,
                       "_system": self.schedule.system}  # fmt: skip
            if self.trace.choose(Choice("stream", (STAY, PASS), context)) == PASS:
                out.update(id(t.issue) for t in touches)
        return frozenset(out)

    def _once_each(self, loop: Loop, base: Base, touches: Iterable[Touch]) -> bool:
        """Whether calls read the same whole lines in every iteration of a loop, each line once."""
        return base.name in self.schedule.panels and (loop.trip or 0) > 1 and all(
            self._able(t.issue) and not t.offset.coefficient(loop.var) and all(s.size for s in t.inside) and _lines(t)
            for t in touches
        )  # fmt: skip

    def _able(self, issue: Issue) -> bool:
        """Whether another instruction lets pass what a call moves, and asks for what the call asks for: not the nearest
        cache, for that stays."""
        system, asked = self.schedule.system, issue.prefetch
        other = system.streaming.get(issue.instruction)
        if other is None or asked is None:
            return other is not None
        return system.instructions[other].cost.prefetch is not None and asked.memory != system.caches[0].name


def _lines(t: Touch) -> bool:
    """Whether a call reads whole lines."""
    run, tile = t.size, t.operand.tile
    apart = [stride * step for stride, step in zip(t.operand.place.strides, tile.steps, strict=True)]
    for step, n in sorted(zip(apart, tile.shape, strict=True)):
        run *= n if step == run else 1
    return run % LINE == 0 and t.offset.const % LINE == 0 and all(c % LINE == 0 for _, c in t.offset.terms)
