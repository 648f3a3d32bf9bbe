"""Steps of clusters (SYS-4): calls that start together are one instruction on different members, and independent."""

from __future__ import annotations

from isam.proof.boxes import disjoint
from isam.proof.context import Context
from isam.proof.facts import Facts
from isam.proof.violation import Findings
from isam.schedule.tree import Issue, Loop, Operand, Schedule, Seq, children, distinct


def check_joined(schedule: Schedule, facts: Facts, out: Findings) -> None:
    """Obligation 10 for the form of steps, 8 for what their calls touch."""
    for tree in (schedule.bind, schedule.call):
        for seq in (n for n in distinct(tree) if isinstance(n, Seq)):
            step: list[Issue] = []
            for c in seq.children:
                if isinstance(c, Issue) and c.joined:
                    _member(schedule, facts, step, c, out)
                step = [*step, c] if isinstance(c, Issue) and c.joined else [c] if isinstance(c, Issue) else []
        alone = [c for n in distinct(tree) if isinstance(n, Loop) for c in children(n)]
        for c in (tree, *alone):
            if isinstance(c, Issue) and c.joined:
                out.add(10, "step", "a call joins the one before it, but there is none in its sequence", c)


def _member(schedule: Schedule, facts: Facts, step: list[Issue], issue: Issue, out: Findings) -> None:
    """A call that joins a step so far."""
    cluster = schedule.system.cluster_of(issue.unit)
    if not step:
        out.add(10, "step", "a call joins the one before it, but there is none", issue)
        return
    head = step[0]
    if cluster is None or any(schedule.system.cluster_of(i.unit) != cluster for i in step):
        out.add(10, "step", f"'{issue.unit}' and '{head.unit}' are not members of one cluster", issue)
    if issue.unit in {i.unit for i in step}:
        out.add(10, "step", f"'{issue.unit}' has a call in this step already", issue)
    if (issue.instruction, issue.sizes) != (head.instruction, head.sizes):
        out.add(10, "step", f"one step holds {head.instruction} and {issue.instruction} or two sizes of one", issue)
        return
    _shared(schedule, head, issue, out)
    writes = facts.legality.signature(issue).writes
    for other in step:
        theirs = facts.legality.signature(other).writes
        for o in issue.operands:
            for p in other.operands:
                if (o.name in writes or p.name in theirs) and not _apart(facts, o, p):
                    out.add(8, "step", f"in one step, {o.name} = {o.tile} may meet {p.tile} of '{other.unit}'", issue)


def _shared(schedule: Schedule, head: Issue, issue: Issue, out: Findings) -> None:
    """Operands that all members take from one place."""
    ins = schedule.system.instructions[issue.instruction]
    for mine, theirs in zip(issue.operands, head.operands, strict=True):
        if ins.contract(mine.name).shared and mine.place != theirs.place:
            out.add(10, "step", f"all members take operand {mine.name} from the same place", issue)


def _apart(facts: Facts, o: Operand, p: Operand) -> bool:
    """Whether two operands certainly lie in different bytes, whatever the loops around."""
    one, two, anywhere = facts.target(o), facts.target(p), Context()
    if one.spot != two.spot:
        return True
    if one.cells is not None and two.cells is not None:
        return one.cells[1] < two.cells[0] or two.cells[1] < one.cells[0]
    if facts.legality.one_address(o.place.base):
        return disjoint(one.hull, two.hull, anywhere)
    return anywhere.le(one.high, two.low) or anywhere.le(two.high, one.low)
