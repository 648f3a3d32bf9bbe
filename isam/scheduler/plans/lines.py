"""Plans of nests the bounds of whose loops keep conditions: axes that go one by one, and what may be copied around
their loops."""

from __future__ import annotations

from dataclasses import replace

from isam.scheduler.plan import Plan, StagedBox


def goes_one_by_one(plan: Plan) -> bool:
    """Whether each axis that goes one by one has one loop, of single elements, which is neither dealt out, nor holds
    several blocks, nor has a first one that brings more than others."""
    for axis in plan.group.main.one_by_one:
        depths = [d for d, (a, _) in enumerate(plan.order) if a == axis]
        if [plan.order[d][1] for d in depths] != [1] or plan.outer <= depths[0] < plan.inner:
            return False
        if depths[0] in plan.double_buffered:
            return False
    return all(s.by is None for s in plan.stages)


def with_boxes_inside(plan: Plan) -> Plan:
    """The plan without copies of boxes that reach beyond what the conditions leave of a buffer: those around a loop on
    which it depends what lies there."""
    return replace(plan, stages=tuple(s for s in plan.stages if _inside(plan, s)))


def _inside(plan: Plan, stage: StagedBox) -> bool:
    open_ = {a for a, _ in plan.order[stage.depth :]} & plan.group.main.one_by_one
    rows = [row for n in plan.group.nests for u in n.uses if u.buffer == stage.buffer for row in u.index]
    return not any(open_ & set(row.names) and len(plan.group.main.one_by_one & set(row.names)) > 1 for row in rows)
