"""Steps of several calls while a schedule runs: members of a cluster carry out one instruction, each on its own unit,
and take what they share from one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from itertools import pairwise

from isam.classes import dataclass
from isam.codegen.simulator.fault import SimulationFault
from isam.schedule.tree import Issue
from isam.system.graph import System

Place = tuple[str, str, int | None, int, tuple[int, ...]]


@dataclass
class Together:
    """The step that is being executed: its ``calls`` so far."""

    system: System
    calls: list[Issue] = field(default_factory=list)

    def take(self, issue: Issue, scope: Mapping[str, int]) -> None:
        """Checks that a call may start with those before it in its step."""
        if not issue.joined:
            self.calls = [issue]
            return
        if not self.calls:
            raise SimulationFault("step", "a call joins the one before it, but there is none")
        head, cluster = self.calls[0], self.system.cluster_of(issue.unit)
        if cluster is None and issue.unit == head.unit:
            self._burst(issue, scope)
            return
        if cluster is None or cluster != self.system.cluster_of(head.unit):
            raise SimulationFault("step", f"'{issue.unit}' and '{head.unit}' are not members of one cluster")
        if issue.unit in [c.unit for c in self.calls]:
            raise SimulationFault("step", f"'{issue.unit}' has a call in this step already")
        if (issue.instruction, issue.sizes) != (head.instruction, head.sizes):
            raise SimulationFault("step", f"{issue.instruction} joins {head.instruction}, or another size of it")
        ins, mine, theirs = self.system.instructions[issue.instruction], _places(issue, scope), _places(head, scope)
        for name in (n for n in mine if ins.contract(n).shared and mine[n] != theirs[n]):
            raise SimulationFault("step", f"operand {name} is shared, but '{head.unit}' takes it from another place")
        self.calls.append(issue)


    def _burst(self, issue: Issue, scope: Mapping[str, int]) -> None:
        """One more call of a command: as many as it carries out, at even distances."""
        burst = self.system.instructions[issue.instruction].burst
        if {(c.instruction, c.sizes) for c in self.calls} != {(issue.instruction, issue.sizes)}:
            raise SimulationFault("step", f"{issue.instruction} joins another command, or another size of it")
        if len(self.calls) >= burst.most:
            raise SimulationFault("step", f"a command of {issue.instruction} carries out {burst.most} calls")
        self.calls.append(issue)
        at = [_places(c, scope) for c in self.calls]
        for name in at[0]:
            by = {b[name][3] - a[name][3] for a, b in pairwise(at)}
            if len(by) > 1 or not by <= {dict(burst.step).get(name, next(iter(by)))}:
                raise SimulationFault("step", f"operand {name}: the calls of one command lie at other distances")


def _places(issue: Issue, scope: Mapping[str, int]) -> dict[str, Place]:
    at = {o.name: o.place for o in issue.operands}
    return {n: (p.memory, p.base, p.cell, p.offset.evaluate(scope), p.strides) for n, p in at.items()}
