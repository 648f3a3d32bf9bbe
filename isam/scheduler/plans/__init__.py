"""The legal plans of a group, each with its predicted cost: what an Approach picks from.

The predictions are those of small analytic models: relative cycles of the unit (calls, register loads per call, edges
that fill a block badly, boxes that are read more often than they fit), or seconds where boxes are staged on the way
(:mod:`isam.scheduler.plans.estimate`). The core offers; it does not choose.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from isam.scheduler.plan import Group, Plan, in_order
from isam.scheduler.plans.boxes import NOTHING, Lasting
from isam.scheduler.plans.conflicts import best_with_conflicts
from isam.scheduler.plans.dealing import Dealing
from isam.scheduler.plans.fed import fed
from isam.scheduler.plans.hierarchy import Level, deep
from isam.scheduler.plans.kept import with_whole_rows
from isam.scheduler.plans.lines import goes_one_by_one, with_boxes_inside
from isam.scheduler.plans.register import across, blocks, least, operand_memories, passing
from isam.scheduler.plans.shared_home import side_by_side
from isam.scheduler.plans.single import blocked, plain, whole
from isam.scheduler.plans.staged import between, staged
from isam.scheduler.routes import Routes
from isam.system.graph import Memory, System
from isam.system.hierarchy import capacities

UNWEIGHED = float(1 << 60)  # cost of the plainest plan, which nothing is predicted of: more than that of any other
MOST = 64  # plans offered at most
CACHED = 16  # of them where caches tell register blocks apart
NOWHERE: Mapping[str, int] = {}


def plans(
    group: Group,
    system: System,
    routes: Routes,
    bindable: frozenset[str],
    lasting: Lasting = NOTHING,
    dealing: Dealing | None = None,
    near: Collection[str] = (),
    gathering: Mapping[str, int] = NOWHERE,
    steps: Collection[str] = (),
) -> tuple[list[Plan], list[float]]:
    """Plans for a group, the plainest first: one call per innermost iteration, loops as the kernel states them.
    ``dealing``: the one that they have where a memory lies on the way, if that is given; ``near``: what is at home
    near; ``gathering``: bytes of memories for results that meet there on their way home; ``steps``: recurrent loops
    around it."""
    main = group.main
    out: list[tuple[Plan, float]] = [(plain(group), UNWEIGHED)]
    if operand_memories(main, system):
        most, apart = (CACHED, across(group, main)) if capacities(system) else (MOST, [])
        beside = passing(group, main, system)
        found = blocks(main, system, least(group, main), apart, beside, fed(main, system, routes, 1))
        found = best_with_conflicts(found, group, main, system, bindable, most)
        ways: list[tuple[Plan, float]] = []
        for memory in between(main, system, routes):
            if memory.name in gathering and (deeper := _deeper(group, system, routes, memory, near, gathering)):
                ways += deeper
                continue
            kept = lasting if lasting.memory in ("", memory.name) else NOTHING
            ways += staged(group, main, system, routes, found, memory, kept, dealing, near)
        out += sorted(ways, key=lambda w: w[1])[:MOST]
        for block in () if ways else found:
            plan = blocked(group, main, block, system, bindable)
            out += with_whole_rows(plan, block.cost * main.work(), block, system, routes, steps, near)
        out += [] if ways else side_by_side(group, system, routes, bindable)
    else:
        out.append((whole(group, main, system, bindable), float(main.calls())))
    if group.exact:
        out = [out[0], *(w for w in out[1:] if in_order(w[0]))]
    if main.one_by_one:
        out = [(with_boxes_inside(p), cost) for p, cost in out if goes_one_by_one(p)]
    return [p for p, _ in out], [c for _, c in out]


def _deeper(group: Group, system: System, routes: Routes, memory: Memory, near: Collection[str],
            gathering: Mapping[str, int]) -> list[tuple[Plan, float]]:  # fmt: skip
    """Plans with outer blocks in a memory, where others lie behind it."""
    if not deep(group, system, routes, memory):
        return []

    def inside(block: Group, view: System) -> list[tuple[Plan, float]]:
        found, costs = plans(block, view, routes, frozenset(), near=near, gathering=gathering)
        clock = view.clock_of(block.main.instruction.name)
        each = 1.0 if between(block.main, view, routes) else 1 / clock  # of what costs are in: seconds, or cycles
        return [(p, c * each) for p, c in zip(found, costs, strict=True)]

    return Level(group, system, routes, memory, gathering[memory.name], frozenset(near)).plans(inside)
