"""How long the steps of recurrent loops wait for each other, however many calls go on at a time: for comparing
schedules of one kernel.

A step begins with what the one before left: in a register, or in memory, where it has been stored and is loaded again.
Around that cycle every call takes its latency (what modulo scheduling calls the recurrence-constrained interval: B. R.
Rau, "Iterative modulo scheduling", 1994, section 2.1).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from isam.cost.steps import TICK, StepCosts, dealt_to
from isam.ir.kernel import recurrences
from isam.schedule.tree import Issue, Loop, Node, Operand, Schedule, children, distinct, leaves

SETTLED, FOLLOWED = 3, 6  # steps until every one takes as long as the next; how many are followed

Cell = tuple[str, str, int | None, int]


class _Scope(dict[str, int]):
    """Sizes, and variables of loops around, each at its begin."""

    def __missing__(self, name: str) -> int:
        return 0


def chained(schedule: Schedule, sizes: Mapping[str, int]) -> float:
    """Seconds, with these ``sizes`` for those that are open; 0 without recurrent loops, and where calls wait for
    streams: that is seen in their time. Of loops around others nothing is said."""
    names = {r.axis.name for r in recurrences(schedule.kernel.body)}
    if not names or any(isinstance(n, Issue) and n.after for n in distinct(schedule.call)):
        return 0.0
    return _Chains(schedule, names, _Scope(schedule.kernel.sizes(sizes))).of(schedule.call) * TICK


class _Chains:
    def __init__(self, schedule: Schedule, names: set[str], scope: _Scope):
        self.schedule, self.names, self.scope = schedule, names, scope
        self.costs, self.stand = StepCosts(schedule, dealt_to(schedule)), defaultdict[str, int](int)

    def of(self, node: Node) -> float:
        """Ticks of all that a node does, once."""
        if isinstance(node, Issue):
            return 0.0
        if not isinstance(node, Loop):
            return sum(map(self.of, children(node)))
        trip = len(node.values(self.scope))
        steps = leaves(node.body)
        if node.var in self.names and all(isinstance(n, Issue) for n in steps):
            return trip * self._interval(node.var, [n for n in steps if isinstance(n, Issue)])
        return sum(map(self.of, children(node))) if node.deal is not None else trip * self.of(node.body)

    def _interval(self, var: str, calls: Sequence[Issue]) -> float:
        """Ticks from one step to the next."""
        system, ready = self.schedule.system, dict[Cell, int]()
        timed = [self.costs.of(c, self.stand).latency for c in calls]
        ends = list[int]()
        for step in range(FOLLOWED):
            scope = _Scope({**self.scope, var: step})
            for call, latency in zip(calls, timed, strict=True):
                ins = system.instructions[call.instruction]
                roles = [(ins.operand(o.name).role, _cell(o, scope)) for o in call.operands]
                end = latency + max((ready.get(cell, 0) for role, cell in roles if role != "out"), default=0)
                ready.update((cell, end) for role, cell in roles if role in ("out", "inout"))
            ends.append(max(ready.values(), default=0))
        return (ends[-1] - ends[SETTLED - 1]) / (FOLLOWED - SETTLED)


def _cell(o: Operand, scope: _Scope) -> Cell:
    """Where an operand begins."""
    p = o.place
    return p.memory, p.base, p.cell, p.offset.evaluate(scope)
