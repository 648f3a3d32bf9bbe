"""What is kept in a memory on the way to the unit: boxes that a loop below reads again."""

from __future__ import annotations

from math import prod

from isam.ir.dtype import size_of
from isam.scheduler.move import route
from isam.scheduler.nests import Nest
from isam.scheduler.plan import Plan, Stage
from isam.scheduler.plans.register import axes_of, register_memory
from isam.system.graph import System


def scratch(plan: Plan, main: Nest, system: System) -> tuple[Stage, ...]:
    """Boxes to keep in a memory on the way to the registers: what a loop below reads again, as far out as it fits."""
    target = register_memory(main, system)
    path = route(system, system.home, target) if target else None
    between = [system.memories[m] for m in (path or ())[1:-1] if system.memories[m].cells is None]
    if not between:
        return ()
    room, out = between[0].capacity * 3 // 4, []
    written = {v.buffer for n in plan.group.nests for v in n.uses if v.writes}
    for u in main.uses:
        if not u.reads or u.buffer in written or u.buffer.startswith("#") or not u.index:
            continue
        for depth in range(len(plan.order)):
            left = {a: main.length(a) for a in main.axes} | {a: b for a, b in plan.order[:depth] if a in main.extents}
            again = any(a in left and a not in axes_of(u) and left[a] > b for a, b in plan.order[depth:])
            sides = (1 + sum(abs(c) * (left[a] - 1) for a, c in r.terms if a in left) for r in u.index)
            size = size_of(u.dtype) * prod(sides)
            if again and size <= room:
                out.append(Stage(u.buffer, depth, between[0].name, tuple(range(len(u.index)))))
                room -= size
                break
    return tuple(out)
