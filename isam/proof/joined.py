"""Steps of several calls: those of a cluster (SYS-4) are one instruction on different members, and independent; those
of a burst are one command of one unit, at even distances."""

from __future__ import annotations

from itertools import pairwise

from isam.ir.affine import Affine
from isam.proof.boxes import disjoint
from isam.proof.context import Context, Var
from isam.proof.facts import Facts
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Issue, Loop, Node, Operand, Schedule, Seq, children, distinct
from isam.system.graph import System


def check_joined(schedule: Schedule, facts: Facts, out: Findings) -> None:
    """Obligation 10 for the form of steps, 8 for what their calls touch. Each call is right by itself."""
    for tree in (schedule.bind, schedule.call):
        seqs = [n for n in distinct(tree) if isinstance(n, Seq) and any(_joins(c) for c in n.children)]
        around = ranges(tree) if seqs else {}
        for seq in seqs:
            step: list[Issue] = []
            for c in seq.children:
                if isinstance(c, Issue) and c.joined:
                    _member(schedule, facts, step, c, around[id(seq)], out)
                step = [*step, c] if isinstance(c, Issue) and c.joined else [c] if isinstance(c, Issue) else []
        alone = [c for n in distinct(tree) if isinstance(n, Loop) for c in children(n)]
        for c in (tree, *alone):
            if isinstance(c, Issue) and c.joined:
                out.add(10, "step", "a call joins the one before it, but there is none in its sequence", c)


def _joins(n: Node) -> bool:
    return isinstance(n, Issue) and n.joined


def ranges(tree: Node) -> dict[int, Context]:
    """By sequence (its identity), what the loops around it say of their variables, wherever it stands: numbers that a
    value is never below and never above."""
    known: dict[int, dict[str, Ends]] = {id(tree): {}}
    out: dict[int, Context] = {}
    for n in _parents_first(tree):
        mine = known[id(n)]
        if isinstance(n, Seq):
            out[id(n)] = Context(tuple(_var(name, *ends) for name, ends in mine.items()))
        if isinstance(n, Loop):
            ends = _ends(n)
            mine = {**mine, n.var: _either(mine[n.var], ends) if n.var in mine else ends}
        for c in children(n):
            seen = known.get(id(c))
            known[id(c)] = mine if seen is None else {v: _either(seen[v], mine[v]) for v in seen if v in mine}
    return out


Ends = tuple[int | None, int | None]  # the least and the greatest value of a variable, where they are known


def _ends(n: Loop) -> Ends:
    least = max((-(-b.expr.const // b.div) for b in n.lo if b.expr.is_constant), default=None)
    most = min((b.expr.const // b.div - 1 for b in n.hi if b.expr.is_constant), default=None)
    if least is not None and most is not None and all(b.expr.is_constant for b in n.lo):
        most -= (most - least) % n.step
    return least, most


def _either(one: Ends, two: Ends) -> Ends:
    (a, b), (c, d) = one, two
    return None if a is None or c is None else min(a, c), None if b is None or d is None else max(b, d)


def _var(name: str, least: int | None, most: int | None) -> Var:
    lo, hi = (() if n is None else (Bound(Affine.lift(n)),) for n in (least, most))
    return Var(name, lo, hi)


def _parents_first(tree: Node) -> list[Node]:
    """Every distinct node after all that it is a part of."""
    out: list[Node] = []
    seen: set[int] = set()
    stack: list[tuple[Node, bool]] = [(tree, False)]
    while stack:
        n, done = stack.pop()
        if done:
            out.append(n)
        elif id(n) not in seen:
            seen.add(id(n))
            stack.append((n, True))
            stack.extend((c, False) for c in children(n))
    return out[::-1]


def _member(
    schedule: Schedule, facts: Facts, step: list[Issue], issue: Issue, around: Context, out: Findings
) -> None:
    """A call that joins a step so far."""
    check_form(schedule.system, step, issue, out)
    if not step or in_burst(schedule.system, step[0], issue) or issue.instruction != step[0].instruction:
        return
    writes = facts.legality.signature(issue).writes
    for other in step:
        theirs = facts.legality.signature(other).writes
        for o in issue.operands:
            for p in other.operands:
                if (o.name in writes or p.name in theirs) and not _apart(facts, o, p, around):
                    out.add(8, "step", f"in one step, {o.name} = {o.tile} may meet {p.tile} of '{other.unit}'", issue)


def check_form(system: System, step: list[Issue], issue: Issue, out: Findings) -> None:
    """Obligation 10 for a call that joins a step so far, whatever it touches."""
    if not step:
        out.add(10, "step", "a call joins the one before it, but there is none", issue)
        return
    head = step[0]
    if in_burst(system, head, issue):
        _burst(system, step, issue, out)
        return
    cluster = system.cluster_of(issue.unit)
    if cluster is None or any(system.cluster_of(i.unit) != cluster for i in step):
        out.add(10, "step", f"'{issue.unit}' and '{head.unit}' are not members of one cluster", issue)
    if issue.unit in {i.unit for i in step}:
        out.add(10, "step", f"'{issue.unit}' has a call in this step already", issue)
    if (issue.instruction, issue.sizes) != (head.instruction, head.sizes):
        out.add(10, "step", f"one step holds {head.instruction} and {issue.instruction} or two sizes of one", issue)
        return
    _shared(system, head, issue, out)


def in_burst(system: System, head: Issue, issue: Issue) -> bool:
    """Whether calls that are joined are one command of a unit, not one step of a cluster."""
    return issue.unit == head.unit and system.cluster_of(issue.unit) is None


def _burst(system: System, step: list[Issue], issue: Issue, out: Findings) -> None:
    """One more call of a command: as the first, as far from the one before as that from the one before it."""
    head, ins = step[0], system.instructions[issue.instruction]
    if {(i.instruction, i.sizes, i.unit) for i in step} != {(ins.name, issue.sizes, issue.unit)}:
        out.add(10, "burst", f"one command holds {head.instruction} and {issue.instruction} or two sizes of one", issue)
        return
    if len(step) >= ins.burst.most:
        out.add(10, "burst", f"a command of '{ins.name}' carries out {ins.burst.most} calls, here is one more", issue)
        return
    if len({o.place.memory for o in issue.operands}) < len(issue.operands):
        out.add(10, "burst", f"the calls of one command of '{ins.name}' may read what others of it write", issue)
    fixed = dict(ins.burst.step)
    calls = [*step, issue]
    for n, o in enumerate(issue.operands):
        places = [i.operands[n].place for i in calls]
        gaps = {b.offset - a.offset for a, b in pairwise(places)}
        alike = len({(p.memory, p.base, p.strides) for p in places}) == 1 and all(p.cell is None for p in places)
        if not alike or len(gaps) != 1 or not gaps <= ({Affine((), fixed[o.name])} if o.name in fixed else gaps):
            out.add(10, "burst", f"operand {o.name}: the calls of one command lie at other distances", issue)
        elif not next(iter(gaps)).is_constant:
            out.add(10, "burst", f"operand {o.name}: the distance between the calls of one command varies", issue)


def _shared(system: System, head: Issue, issue: Issue, out: Findings) -> None:
    """Operands that all members take from one place."""
    ins = system.instructions[issue.instruction]
    for mine, theirs in zip(issue.operands, head.operands, strict=True):
        if ins.contract(mine.name).shared and mine.place != theirs.place:
            out.add(10, "step", f"all members take operand {mine.name} from the same place", issue)


def _apart(facts: Facts, o: Operand, p: Operand, around: Context) -> bool:
    """Whether two operands certainly lie in different bytes, in whatever iterations of the loops around."""
    one, two = facts.target(o), facts.target(p)
    if one.spot != two.spot:
        return True
    if one.cells is not None and two.cells is not None:
        return one.cells[1] < two.cells[0] or two.cells[1] < one.cells[0]
    if facts.legality.one_address(o.place.base):
        return disjoint(one.hull, two.hull, around)
    return around.le(one.high, two.low) or around.le(two.high, one.low)
