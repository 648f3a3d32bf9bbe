"""Calls side by side that one command carries out: of one instruction, at even distances, as many as it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from isam.ir.instruction import Instruction
from isam.schedule.tree import Issue, Node, Operand, Schedule, Seq, mapped
from isam.system.graph import System


def with_bursts(schedule: Schedule) -> Schedule:
    """The schedule with calls joined to the one before them wherever the instruction's command goes on that far."""
    used = schedule.called()
    if not any(schedule.system.instructions[i].burst.most > 1 for i in used):
        return schedule
    done: dict[int, Node] = {}
    bind, call = (_joined(t, schedule.system, done) for t in (schedule.bind, schedule.call))
    return replace(schedule, bind=bind, call=call)


def _joined(node: Node, system: System, done: dict[int, Node]) -> Node:
    """The node with its bursts; shared nodes stay shared."""
    got = done.get(id(node))
    if got is not None:
        return got
    new = mapped(node, lambda part: _joined(part, system, done))
    if isinstance(new, Seq):
        new = Seq(_run(new.children, system))
    done[id(node)] = new
    return new


def _run(children: Sequence[Node], system: System) -> tuple[Node, ...]:
    out: list[Node] = []
    burst: list[Issue] = []
    for c in children:
        if not isinstance(c, Issue) or c.joined:
            burst = []
        elif burst and _goes_on(burst, c, system.instructions[c.instruction]):
            c = replace(c, joined=True)
            burst.append(c)
        else:
            burst = [c]
        out.append(c)
    return tuple(out)


def _goes_on(burst: list[Issue], issue: Issue, instruction: Instruction) -> bool:
    """Whether one command may carry out a call with those before it."""
    head, before = burst[0], burst[-1]
    alike = (issue.unit, issue.instruction, issue.sizes) == (head.unit, head.instruction, head.sizes)
    apart = len({o.place.memory for o in issue.operands}) == len(issue.operands)  # none reads what another writes
    if not alike or not apart or len(burst) >= instruction.burst.most:
        return False
    far = [_distance(a, b) for a, b in zip(before.operands, issue.operands, strict=True)]
    first = [_distance(a, b) for a, b in zip(head.operands, burst[1].operands, strict=True)] if burst[1:] else far
    wanted = dict(instruction.burst.step)
    return None not in far and far == first and all(
        wanted.get(o.name, n) == n for o, n in zip(issue.operands, far, strict=True)
    )


def _distance(one: Operand, two: Operand) -> int | None:
    """Bytes from one operand to another like it."""
    p, q = one.place, two.place
    if (p.memory, p.base, p.strides, p.cell) != (q.memory, q.base, q.strides, q.cell) or p.cell is not None:
        return None
    gap = q.offset - p.offset
    return gap.const if gap.is_constant else None
