"""What follows a sum is made while the next one goes on (software pipelining: Lam, "Software Pipelining", PLDI 1988).

A block whose sum is in cells with names (tiles) ends with what becomes of it: it is put down, and vectors take it up,
round it, clip it, bring it home. A core starts the sum's calls in order and sees only some hundred instructions ahead:
its tiles do nothing meanwhile. Done piece by piece between the steps of the next block's sum, that takes the vectors'
time beside the tiles'. The first block of a loop has none before it, the last one's follows the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from isam.approach.choice import Choice, Trace
from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.schedule.liveness import Flow
from isam.schedule.substituted import substituted
from isam.schedule.touches import Touches
from isam.schedule.tree import Bound, Issue, Loop, Node, Schedule, Seq, distinct, leaves, mapped
from isam.system.graph import MANAGED

APART, WOVEN = "one after the other", "woven"


def with_pipelining(schedule: Schedule, trace: Trace) -> Schedule:
    """The schedule with what becomes of a block's sum between the steps of the next one's, where a machine with caches
    names the cells of sums, one unit is given everything, and the Approach wants it."""
    units = {n.unit for n in distinct(schedule.call) if isinstance(n, Issue)}
    named = {m.name for m in schedule.system.memories.values() if m.kind == MANAGED and m.cells is not None}
    if not schedule.system.caches or len(units) > 1 or not named:
        return schedule
    call = _Pipelining(schedule, trace, named).node(schedule.call)
    return schedule if call is schedule.call else replace(schedule, call=call)


@dataclass(frozen=True)
class Stages:
    """The body of a loop in two: what begins a sum (``before``), the loop over its steps (``steps``), then ``after``:
    in its ``enter`` the sum is put down, in each iteration a piece of it is taken up."""

    before: tuple[Node, ...]
    steps: Loop
    after: Loop

    @property
    def first(self) -> tuple[Node, ...]:
        """What comes before the sum is put down."""
        return (*self.before, self.steps)


class _Pipelining:
    def __init__(self, schedule: Schedule, trace: Trace, named: set[str]):
        self.schedule, self.trace, self.named = schedule, trace, named
        self.touches, self.flow = Touches(schedule), Flow(schedule)
        self.names = {n.var for n in distinct(schedule.call) if isinstance(n, Loop)}
        self.done: dict[int, Node] = {}

    def node(self, node: Node) -> Node:
        """The node, pipelined; shared nodes stay shared."""
        if isinstance(node, Issue):
            return node
        if id(node) not in self.done:
            stages = self._stages(node) if isinstance(node, Loop) else None
            woven = self._woven(node, stages) if isinstance(node, Loop) and stages is not None else None
            self.done[id(node)] = woven or mapped(node, self.node)
        return self.done[id(node)]

    def _stages(self, loop: Loop) -> Stages | None:
        """The stages of a loop's body, where it has two that do not meet but in what the first one puts down."""
        *before, steps, after = leaves(loop.body) if len(leaves(loop.body)) > 1 else (None, None)
        if not isinstance(steps, Loop) or not isinstance(after, Loop) or not _plain(loop) or (loop.trip or 0) < 2:
            return None
        straight = all(_plain(n) and (n.trip or 0) > 1 and not _loops(n.body) for n in (steps, after))
        if not straight or leaves(steps.enter) or leaves(steps.exit) or leaves(after.exit):
            return None
        stages = Stages(tuple(n for n in before if n is not None), steps, after)
        return stages if self._sums(steps) and self._apart(stages) else None

    def _sums(self, steps: Loop) -> bool:
        """Whether a loop's calls sum in cells with names."""
        calls = (n for n in leaves(steps.body) if isinstance(n, Issue) and not n.is_move)
        return any(self.flow.formal(c, o).role != "in" and o.place.memory in self.named for c in calls for o in c.operands)

    def _apart(self, stages: Stages) -> bool:
        """Whether the pieces touch no cell and write no byte of what the first stage touches, nor the other way
        round."""
        first, after = Seq(stages.first), stages.after.body
        if not self._cells(first).isdisjoint(self._cells(after)):
            return False
        mine, theirs = self.touches.of(first), self.touches.of(after)
        return not any(t.writes for base in mine.keys() & theirs.keys() for t in (*mine[base], *theirs[base]))

    def _cells(self, node: Node) -> set[object]:
        calls = (n for n in distinct(node) if isinstance(n, Issue))
        return {cell for c in calls for o in c.operands if (cell := self.flow.cell(o)) is not None}

    def _woven(self, loop: Loop, stages: Stages) -> Node | None:
        """The loop with the stages of its iterations side by side, where the Approach wants it."""
        steps, after, trip = stages.steps, stages.after, loop.trip or 0
        groups = max(n for n in range(1, steps.trip + 1) if after.trip % n == 0)  # type: ignore[operator]
        context = {
            "loop": loop.axis or loop.var,
            "iterations": trip,
            "steps": steps.trip,
            "pieces": after.trip,
            "groups": groups,
            "calls": len([n for n in leaves(after.body) if isinstance(n, Issue)]),
        }
        if groups < 2 or self.trace.choose(Choice("pipeline", (APART, WOVEN), context)) == APART:
            return None
        begin = loop.lo[0].expr
        before = {loop.var: Affine.of(loop.var) - loop.step}
        pieces = substituted(replace(after, enter=Seq()), before)
        assert isinstance(pieces, Loop)
        count = self._fresh(after)
        body = Seq(tuple(self._between(steps, pieces, groups, count)))
        last = substituted(replace(after, enter=Seq()), {loop.var: begin + loop.step * (trip - 1)})
        return replace(
            loop,
            first=Seq((*stages.first, after.enter)),
            body=Seq((*stages.before, body, after.enter)),
            exit=Seq((*leaves(loop.exit), last)),
        )

    def _between(self, steps: Loop, pieces: Loop, groups: int, count: str) -> Iterator[Node]:
        """So many groups of steps and pieces, and the steps that are left; pieces are not."""
        of_steps, of_pieces = (steps.trip or 0) // groups, (pieces.trip or 0) // groups
        one = Seq((_part(steps, count, of_steps), _part(pieces, count, of_pieces)))
        yield Loop(count, (Bound(Affine((), 0)),), (Bound(Affine((), groups)),), 1, one)
        if groups * of_steps < (steps.trip or 0):
            yield replace(steps, lo=(Bound(steps.lo[0].expr + steps.step * of_steps * groups),))

    def _fresh(self, loop: Loop) -> str:
        """A name that no variable has."""
        name = next(n for i in range(len(self.names) + 1) if (n := f"{loop.axis or loop.var}.{i}") not in self.names)
        self.names.add(name)
        return name


def _part(loop: Loop, count: str, size: int) -> Node:
    """Of the iterations of a loop ``size`` from the one on that is ``size * count``."""
    begin = loop.lo[0].expr + Affine.of(count, loop.step * size)
    if size == 1:
        return substituted(loop.body, {loop.var: begin})
    return replace(loop, lo=(Bound(begin),), hi=(Bound(begin + loop.step * size),), enter=Seq(), exit=Seq())


def _plain(loop: Loop) -> bool:
    """Whether all iterations are alike, and come one after the other."""
    bounds = len(loop.lo) == len(loop.hi) == 1 and loop.lo[0].div == loop.hi[0].div == 1
    return bounds and loop.deal is None and loop.serpentine is None and loop.first is None and loop.last is None


def _loops(node: Node) -> bool:
    return any(isinstance(n, Loop) for n in distinct(node))
