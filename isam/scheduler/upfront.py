"""Moves that stand before the calls of their block.

The dry run brings a tile right before the first call on it. A core whose cells are named (tiles) starts what it is
given in that order, but has only so much of it under way at a time: a move behind a call that waits for another one
begins late. As many cells as there are, moves may come before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from isam.approach.choice import Choice, Trace
from isam.schedule.tree import Issue, Node, Schedule, Seq, leaves, mapped

LATE, EARLY = "as they are wanted", "before the calls"


def with_moves_upfront(schedule: Schedule, trace: Trace) -> Schedule:
    """The schedule with moves before the calls of their block, where a machine with caches names the cells they go to,
    one unit is given everything, and the Approach wants it."""
    if not schedule.named():
        return schedule
    call = _Upfront(schedule, trace).node(schedule.call)
    return schedule if call is schedule.call else replace(schedule, call=call)


class _Upfront:
    def __init__(self, schedule: Schedule, trace: Trace):
        self.trace, self.named = trace, schedule.named()
        self.done: dict[int, Node] = {}

    def node(self, node: Node) -> Node:
        """The node with its moves; shared nodes stay shared."""
        if isinstance(node, Issue):
            return node
        if id(node) not in self.done:
            row = [n for n in leaves(node) if isinstance(n, Issue)]
            alone = len(row) == len(leaves(node))
            self.done[id(node)] = self._row(node, row) if alone else mapped(node, self.node)
        return self.done[id(node)]

    def _row(self, row: Node, calls: Sequence[Issue]) -> Node:
        """Calls in a row."""
        early = self._early(calls)
        context = {"moves": sum(c.is_move for c in calls), "calls": sum(not c.is_move for c in calls)}
        if early == calls or self.trace.choose(Choice("upfront", (LATE, EARLY), context)) == LATE:
            return row
        return Seq(tuple(early))

    def _early(self, calls: Sequence[Issue]) -> list[Issue]:
        """The calls, each move that brings a tile right behind the one before it or the last call that it has to come
        after."""
        out: list[Issue] = []
        for call in calls:
            at = len(out)
            if self._brings(call):
                while at and not out[at - 1].is_move and _free(call, out[at - 1]):
                    at -= 1
            out.insert(at, call)
        return out

    def _brings(self, call: Issue) -> bool:
        """Whether a call moves something to a cell that has a name."""
        return call.is_move and not call.after and not call.joined and call.operands[-1].place.memory in self.named


def _free(move: Issue, call: Issue) -> bool:
    """Whether a move may come before a call: that one touches neither the cell that it goes to nor what it reads."""
    source, target = move.operands[0].place, move.operands[-1].place
    touched = [o.place for o in call.operands]
    alike = any((p.memory, p.cell) == (target.memory, target.cell) for p in touched)
    return bool(touched) and not (alike or call.after or call.joined or any(p.memory == source.memory for p in touched))
