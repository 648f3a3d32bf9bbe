"""The legal plans of a group, each with its predicted cost: what an Approach picks from.

The predictions are those of small analytic models, in seconds: relative ones of the unit (calls, register loads per
call, edges that fill a block badly, boxes that are read more often than they fit), or what a schedule takes where boxes
are staged on the way (:mod:`isam.scheduler.plans.estimate`). An Approach picks among whole plans, the ones that the
models find best. What belongs to a plan is not asked for by itself: the blocks of caches that go with a block of
registers (``cache``), and what is laid out anew for it (``pack``).
"""

from __future__ import annotations

from isam.scheduler.plan import Plan, in_order
from isam.scheduler.plans.conflicts import best_with_conflicts
from isam.scheduler.plans.hierarchy import Level, deep
from isam.scheduler.plans.kept import with_whole_rows
from isam.scheduler.plans.lines import goes_one_by_one, with_boxes_inside
from isam.scheduler.plans.register import FEW, across, blocks, least, operand_memories, under_way
from isam.scheduler.plans.request import Request
from isam.scheduler.plans.shared_home import side_by_side
from isam.scheduler.plans.single import blocked, plain, whole
from isam.scheduler.plans.staged import between, staged
from isam.system.graph import Memory
from isam.system.hierarchy import capacities

UNWEIGHED = float(1 << 60)  # seconds of the plainest plan, which nothing is predicted of: more than any other's
MOST = 64  # plans offered at most
CACHED = 16  # of them where caches tell register blocks apart


def plans(request: Request) -> tuple[list[Plan], list[float]]:
    """Plans for a group, the plainest first: one call per innermost iteration, loops as the kernel states them."""
    group, main, system, routes = request.group, request.main, request.system, request.routes
    out: list[tuple[Plan, float]] = [(plain(group), UNWEIGHED)]
    if operand_memories(main, system):
        most, apart, few = (MOST, [], FEW)
        if capacities(system):
            most, apart, few = CACHED, across(group, main), under_way(group)
        found = blocks(main, system, least(group, main), apart, request.passing, request.fed, few)
        found = best_with_conflicts(found, request, most)
        ways: list[tuple[Plan, float]] = []
        for memory in between(main, system, routes):
            if memory.name in request.gathering and (deeper := _deeper(request, memory)):
                ways += deeper
            else:
                ways += staged(request, found, memory)
        out += sorted(ways, key=lambda w: w[1])[:MOST]
        for block in () if ways else found:
            way = with_whole_rows(blocked(request, block), block.cost * main.work(), block, request)
            out += [(p, request.seconds(cycles)) for p, cycles in way]
        out += [] if ways else side_by_side(request)
    else:
        out.append((whole(request), request.seconds(main.calls())))
    if group.exact:
        out = [out[0], *(w for w in out[1:] if in_order(w[0]))]
    if main.one_by_one:
        out = [(with_boxes_inside(p), cost) for p, cost in out if goes_one_by_one(p)]
    return [p for p, _ in out], [c for _, c in out]


def _deeper(request: Request, memory: Memory) -> list[tuple[Plan, float]]:
    """Plans with outer blocks in a memory, where others lie behind it."""
    if not deep(request.group, request.system, request.routes, memory):
        return []
    return Level(request, memory).plans(lambda block: [*zip(*plans(block), strict=True)])
