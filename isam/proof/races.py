"""Races: two calls that touch the same bytes, one of them writing, of which the later may start before the earlier has
finished (SCH-8). The slow judge: every call of a schedule with small trips, one by one.

Of a call it is known which calls have finished when it starts: those its waits name, those that had finished when the
calls it waits for started, and those that had finished when the call before it on its own stream started.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from isam.ir.dtype import size_of
from isam.proof.violation import Violation, issue_text
from isam.schedule.tree import Issue, Loop, Node, Operand, Schedule

Known = dict[str, int]  # per stream how many of its calls have surely finished


@dataclass(slots=True)
class _Touch:
    """An earlier access to bytes ``low`` to ``high``: the ``number``-th call of ``stream``."""

    low: int
    high: int
    stream: str
    number: int
    writes: bool
    issue: Issue


@dataclass
class _Races:
    schedule: Schedule
    most: int
    found: list[Violation] = field(default_factory=list)
    known: dict[str, list[Known]] = field(default_factory=dict)  # per stream and call: what had finished at its start
    touched: dict[tuple[str, str], list[_Touch]] = field(default_factory=dict)

    def call(self, issue: Issue, scope: Mapping[str, int]) -> None:
        mine = self.known.setdefault(issue.unit, [])
        finished: Known = dict(mine[-1]) if mine else {}
        for w in issue.after:
            theirs = self.known.get(w.stream, [])
            done = len(theirs) - w.lag
            if done > 0:
                for s, n in theirs[done - 1].items():
                    finished[s] = max(n, finished.get(s, 0))
                finished[w.stream] = max(done, finished.get(w.stream, 0))
        for o in issue.operands:
            self.touch(issue, o, len(mine), finished, scope)
        mine.append(finished)

    def touch(self, issue: Issue, o: Operand, number: int, finished: Known, scope: Mapping[str, int]) -> None:
        writes = self.schedule.system.instructions[issue.instruction].operand(o.name).role in ("out", "inout")
        low, high = self.bytes_of(o, scope)
        before = self.touched.setdefault((o.place.memory, o.place.base), [])
        kept: list[_Touch] = []
        for t in before:
            meets = low < t.high and t.low < high
            if meets and (writes or t.writes) and t.issue is not issue and finished.get(t.stream, 0) <= t.number:
                what = f"may start before {t.issue.instruction} on '{t.stream}', which touches the same bytes, is done"
                self.found.append(Violation(8, "race", what, issue_text(issue)))
            if not (writes and low <= t.low and t.high <= high and finished.get(t.stream, 0) > t.number):
                kept.append(t)  # else: whoever is after this write is after that access too
        kept.append(_Touch(low, high, issue.unit, number, writes, issue))
        self.touched[o.place.memory, o.place.base] = kept

    def bytes_of(self, o: Operand, scope: Mapping[str, int]) -> tuple[int, int]:
        size = size_of(self.schedule.dtype(o.tile.buffer))
        low = high = o.place.offset.evaluate(scope)
        for stride, step, n in zip(o.place.strides, o.tile.steps, o.tile.shape, strict=True):
            far = stride * step * (n - 1)
            low, high = low + min(0, far), high + max(0, far)
        high += size
        if o.place.cell is not None:
            cell = self.schedule.system.memories[o.place.memory].cell or 1
            low, high = o.place.cell + low // cell, o.place.cell + -(-high // cell)
        return low, high

    def node(self, node: Node, scope: dict[str, int]) -> None:
        for issue, at in calls(node, scope):
            if len(self.found) >= self.most:
                return
            self.call(issue, at)


def calls(node: Node, scope: dict[str, int]) -> Iterator[tuple[Issue, dict[str, int]]]:
    """Every call in the tree's order, with the values of the loop variables around it."""
    if isinstance(node, Issue):
        yield node, scope
    elif isinstance(node, Loop):
        values = node.values(scope)
        if values:
            yield from calls(node.enter, scope)
        for v in values:
            peeled = node.last if v == values[-1] and node.last is not None else node.first if v == values[0] else None
            yield from calls(node.body if peeled is None else peeled, {**scope, node.var: v})
        if values:
            yield from calls(node.exit, scope)
    else:
        for c in node.children:
            yield from calls(c, scope)


def check_races(schedule: Schedule, symbols: Mapping[str, int] | None = None, most: int = 20) -> list[Violation]:
    """Races of bind and of call, each on its own, at most about ``most``. ``symbols``: run-time sizes."""
    out: list[Violation] = []
    for tree in (schedule.bind, schedule.call):
        r = _Races(schedule, most)
        r.node(tree, dict(symbols or {}))
        out += r.found
    return out
