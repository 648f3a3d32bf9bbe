"""Configuration registers (SYS-5, obligation 10): what a command needs of them is what they hold when it starts.

A value is known where every way to a place agrees on it. It holds for the stream that has set it: of what another
stream has set, or an instance of a replica before, nothing is known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from itertools import pairwise

from isam.classes import dataclass
from isam.proof.violation import Findings
from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq
from isam.system.graph import System

Value = str | int
Held = dict[str, tuple[Value, str]]  # a register's value and the stream that it holds for ('': for all, from the reset)


def check_registers(schedule: Schedule, out: Findings) -> None:
    """Every command of both trees, whatever the loops around it."""
    if not schedule.system.state:
        return
    walk = Registers(schedule)
    for tree in (schedule.bind, schedule.call):
        walk.run(tree, at_start(schedule), out)


def at_start(schedule: Schedule) -> Held:
    """What registers hold that nothing here sets: the value of the reset."""
    names = schedule.called()
    known = schedule.system.instructions
    changed = {r for n in names if n in known for r in known[n].sets}
    state = schedule.system.state.values()
    return {r.name: (r.reset, "") for r in state if r.reset is not None and r.name not in changed}


def commands(seq: Seq) -> Iterator[list[Node]]:
    """The children; calls that are joined to another one with it."""
    pending: list[Node] = []
    for c in seq.children:
        if pending and not (isinstance(c, Issue) and c.joined and isinstance(pending[-1], Issue)):
            yield pending
            pending = []
        pending.append(c)
    if pending:
        yield pending


def judge(calls: list[Issue], held: Held, system: System, out: Findings) -> None:
    """One command: what it needs is there; what it sets is there afterwards."""
    for issue in calls:
        ins = system.instructions.get(issue.instruction)
        if ins is None:
            continue
        stream = system.stream_of(issue.unit)
        for r, value in ins.requires.items():
            need = _need(value, issue, calls)
            have = held.get(r)
            if need is None or (have is not None and have[0] == need and have[1] in ("", stream)):
                continue
            what = "is not known there" if have is None else f"holds {have[0]}, set by '{have[1]}'"
            out.add(10, "register", f"'{ins.name}' needs {need} in '{r}', which {what}", issue)
        sizes = dict(issue.sizes)
        for r, value in ins.sets.items():
            left = sizes[value] if isinstance(value, str) and value in sizes else value
            held[r] = left, stream
            if r not in system.state or not system.state[r].holds(left):
                out.add(10, "register", f"'{r}' cannot hold {left}", issue)


def _need(value: Value, issue: Issue, calls: list[Issue]) -> Value | None:
    """What a register must hold; None: anything."""
    if not isinstance(value, str) or " " not in value:
        return value
    kind, name, *dim = value.split(" ")
    operand = {o.name: o for o in issue.operands}[name]
    if kind == "stride":
        d = operand.dims[int(dim[0])]
        if d is None or operand.tile.shape[d] == 1:
            return None
        return operand.tile.steps[d] * operand.place.strides[d]
    at = [o.place.offset for c in calls for o in c.operands if o.name == name]
    gaps = {b - a for a, b in pairwise(at)}
    if len(gaps) > 1 or any(not g.is_constant for g in gaps):
        return "one distance"  # which no register holds
    return next((g.const for g in gaps), None)


@dataclass
class Registers:
    """One walk over a tree; a loop is followed until what its iterations begin with no longer changes."""

    schedule: Schedule
    memo: dict[object, tuple[Held, Findings]] = field(default_factory=dict)

    def run(self, node: Node, held: Held, out: Findings) -> Held:
        """What is held after a node."""
        if isinstance(node, Issue):
            after = dict(held)
            judge([node], after, self.schedule.system, out)
            return after
        key = (id(node), frozenset(held.items()))
        if key not in self.memo:
            found = Findings()
            made = self._seq(node, held, found) if isinstance(node, Seq) else self._loop(node, held, found)
            self.memo[key] = made, found
        after, found = self.memo[key]
        out.extend(found.found)
        return dict(after)

    def _seq(self, seq: Seq, held: Held, out: Findings) -> Held:
        state = dict(held)
        for parts in commands(seq):
            if isinstance(parts[0], Issue):
                judge([p for p in parts if isinstance(p, Issue)], state, self.schedule.system, out)
            else:
                state = self.run(parts[0], state, out)
        return state

    def _loop(self, loop: Loop, held: Held, out: Findings) -> Held:
        if loop.trip == 0:
            return dict(held)
        begin = self._outside(loop, self.run(loop.enter, held, out))
        while True:
            found = Findings()
            ends = [self.run(p, begin, found) for p in (loop.first, loop.body, loop.last) if p is not None]
            again = _both([begin, *ends])
            if again == begin:
                break
            begin = again
        out.extend(found.found)
        after = self.run(loop.exit, self._outside(loop, _both(ends)), out)
        return after if loop.trip else _both([held, after])

    def _outside(self, loop: Loop, held: Held) -> Held:
        """What instances that iterations are dealt to have set is not known to others."""
        if loop.deal is None:
            return held
        system = self.schedule.system
        own = {system.stream_of(u) for u in system.replicas[loop.deal.group].units}
        return {r: v for r, v in held.items() if v[1] not in own}


def _both(states: list[Held]) -> Held:
    """What all of them say."""
    return {r: v for r, v in states[0].items() if all(s.get(r) == v for s in states[1:])}
