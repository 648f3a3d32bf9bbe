"""Obligations 1 to 7 on the tree, and what can be judged without state of 9 and 10."""

from __future__ import annotations

from isam.proof.filled import with_boxes
from isam.proof.legal import Legality
from isam.proof.order import Order
from isam.proof.scope import check_scope
from isam.proof.sets import Isl
from isam.proof.violation import Findings, Violation
from isam.proof.workspace import check_workspace
from isam.schedule.tree import Issue, Loop, Schedule, distinct


def check_points(schedule: Schedule, isl: Isl | None = None, legality: Legality | None = None) -> list[Violation]:
    """Every violation of obligations 1 to 7 that the tree shows, and of 9 and 10 where no state is needed."""
    lg = legality or Legality(with_boxes(schedule))
    schedule = lg.schedule
    out = check_form(schedule, lg)
    if not len(out):
        Order(schedule, lg, isl or Isl(), out).check()
    return out.found


def check_form(schedule: Schedule, lg: Legality) -> Findings:
    """What every node shows by itself: workspace, names, steps, loops. Nothing else is judged before this holds."""
    if lg.formed is None:
        lg.formed = _form(schedule, lg).found
    out = Findings()
    out.extend(lg.formed)
    return out


def _form(schedule: Schedule, lg: Legality) -> Findings:
    out = Findings()
    check_workspace(schedule, lg, out)
    check_scope(schedule, out)
    for tree in (schedule.bind, schedule.call):
        for node in distinct(tree):
            if isinstance(node, Issue) and lg.step(node, out):
                writes = lg.signature(node).writes
                for o in node.operands:
                    if o.name in writes and not lg.own_bytes(o):
                        out.add(9, "address", f"operand {o.name}: elements of {o.tile} share bytes", node)
            elif isinstance(node, Loop):
                check_loop(node, out)
    return out


def check_loop(n: Loop, out: Findings) -> None:
    """The form of a loop: a positive step, bounds, and enough iterations for its peeled bodies. Where more is said of
    its iterations than that they lie between bounds (by a step, a peeled body, an instance), the first is affine."""
    if n.step < 1 or not n.lo or not n.hi or any(b.div < 1 for b in n.lo + n.hi):
        out.add(11, "form", f"loop '{n.var}' has no bounds or no positive step")
        return
    peeled = (n.first is not None) + (n.last is not None)
    if (n.lo[1:] or n.lo[0].div > 1) and (n.step > 1 or peeled or n.deal is not None):
        out.add(11, "form", f"loop '{n.var}' has no affine first value, but steps, peeled bodies or instances")
        return
    if peeled and (n.trip is None or n.trip < peeled):
        out.add(11, "trip", f"loop '{n.var}' has {peeled} peeled bodies and a trip of {n.trip}")
        return
    if n.serpentine is not None:
        _check_serpentine(n, peeled, out)


def _check_serpentine(n: Loop, peeled: int, out: Findings) -> None:
    """That its iterations need nothing of each other is followed with the states, and with what is done before them."""
    assert n.serpentine is not None
    if n.serpentine.period < 1 or n.trip is None or peeled or n.deal is not None:
        out.add(11, "form", f"loop '{n.var}' goes back and forth, but has no period, or peeled bodies, instances or a "
                            "run-time trip")  # fmt: skip
    elif any(isinstance(c, Issue) and c.after for c in distinct(n)):
        out.add(11, "form", f"loop '{n.var}' goes back and forth, but something in it waits for earlier calls")
