"""What the nests of a group hand on to one another within a block: tiles that stay next to the units, or go home and
come back because loops lie between those who touch them. Where home feeds these memories right away, nothing else
tells plans apart that have the same register blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import pairwise
from math import prod

from isam.ir.dtype import size_of
from isam.schedule.literals import is_literal
from isam.scheduler.nests import Nest, Use
from isam.scheduler.plan import Plan, is_product
from isam.scheduler.plans.register import ITERATION, RegisterBlock, axes_of
from isam.scheduler.plans.request import Request
from isam.system.graph import Memory, System

CALLS = 256  # of a block that has whole rows: all of them are spelled out
STEP = 512  # of one that is all that a step of a recurrent loop takes


def with_whole_rows(plan: Plan, cost: float, block: RegisterBlock, request: Request) -> list[tuple[Plan, float]]:
    """The plan, of which the ``block`` costs so much in all, and where home feeds the memories next to the units,
    without caches, the one with whole rows, and of a group in recurrent loops the one without loops; with what each
    costs, in cycles. A tile that moves between nests, or between steps, costs a call of the main one, as those that
    are brought for one do. Of products nothing is said: what they read again is more than what they hand on."""
    main, steps = plan.group.main, request.steps
    if request.fed is None or any(map(is_product, plan.group.nests)):
        return [(plan, cost)]
    call = main.work() / max(1, main.calls())
    ways = {p.order: p for p in (whole_rows(plan), whole_steps(plan) if steps else None) if p is not None}
    out = list[tuple[Plan, float]]()
    for way in (plan, *ways.values()):
        same = way is plan or main.reduced
        fewer = 0.0 if same else ITERATION * main.work() * (1 / block.calls - 1 / _calls(main, way))
        out.append((way, cost - fewer + call * (moved(way, request.system) + stepped(way, steps, request.near))))
    return out


def whole_rows(plan: Plan) -> Plan | None:
    """The plan with blocks that have all of every axis along which results do not lie apart, so that nothing is between
    nests that go through the same rows one after the other; None where there is no such loop, or they are too long."""
    group = plan.group
    inner = frozenset(group.axes) - group.apart()
    looped = {a for d, (a, n) in enumerate(plan.order) if d >= plan.inner and n < group.length(a)}
    if len(group.nests) < 2 or plan.stages or not looped & inner:
        return None
    out = plan.without(inner)
    return out if sum(_calls(n, out) for n in group.nests) <= CALLS else None


def whole_steps(plan: Plan) -> Plan | None:
    """The plan with one block, so that all that a step of the loops around finds may lie where the step before has left
    it; None where there is no loop, or they are too many calls."""
    group = plan.group
    looped = any(n < group.length(a) for a, n in plan.order[plan.inner :])
    if plan.stages or plan.deals or not looped:
        return None
    out = plan.without(group.axes)
    return out if sum(_calls(n, out) for n in group.nests) <= STEP else None


def stepped(plan: Plan, steps: Collection[str], near: Collection[str] = ()) -> float:
    """Tiles that every step of the loops around brings or takes home, though they are the same in each: loops go
    through them. Not of what is at home ``near``."""
    loops = {a for a, n in plan.order[plan.inner :] if n < plan.group.length(a)} if steps else set[str]()
    total = 0.0
    for b in dict.fromkeys(u.buffer for n in plan.group.nests for u in n.uses if not is_literal(u.buffer)):
        uses = _uses(plan, b)
        moves = any(s in row.names for _, u in uses for row in u.index for s in steps)
        if not moves and b not in near and b not in plan.group.private and any(loops & axes_of(u) for _, u in uses):
            total += max(_tiles(n, u) for n, u in uses)
            total += max((_tiles(n, u) for n, u in uses if u.writes), default=0)
    return total


def _calls(nest: Nest, plan: Plan) -> int:
    """Of a nest in a block."""
    return prod(-(-_wide(nest, plan, a) // nest.unit(a)) for a in nest.axes)


def _wide(nest: Nest, plan: Plan, axis: str) -> int:
    """How much of an axis a block has, were it not empty."""
    return max(1, min([nest.length(axis), *(n for a, n in plan.order if a == axis)]))


def moved(plan: Plan, system: System) -> float:
    """Tiles that go home and come back between nests of a group: past loops that only one of them has, or because a
    block has more than there is room for."""
    tiles = sum(_between(plan, b) for b in _handed(plan))
    return tiles + _crowded(plan, system)


def _handed(plan: Plan) -> Iterator[str]:
    """Buffers that several nests touch."""
    names = dict.fromkeys(u.buffer for n in plan.group.nests for u in n.uses if not is_literal(u.buffer))
    return (b for b in names if len(plan.group.users(b)) > 1)


def _uses(plan: Plan, buffer: str) -> list[tuple[Nest, Use]]:
    return [(n, u) for n in plan.group.nests for u in n.uses if u.buffer == buffer]


def _between(plan: Plan, buffer: str) -> float:
    loops = {a for a, n in plan.order[plan.inner :] if n < plan.group.length(a)}
    total, dirty = 0.0, False
    for (one, u), (two, v) in pairwise(_uses(plan, buffer)):
        dirty = dirty or u.writes
        if loops & axes_of(u) <= set(two.extents) and loops & axes_of(v) <= set(one.extents):
            continue
        total += _tiles(one, u) * dirty + _tiles(two, v) * v.reads
        dirty = False
    return total


def _tiles(nest: Nest, use: Use) -> int:
    return prod(-(-nest.length(a) // nest.unit(a)) for a in axes_of(use) if a in nest.extents)


def _room(nest: Nest, plan: Plan, use: Use, memory: Memory) -> int:
    """Bytes of a memory that hold a block of a buffer, each tile of which begins where room may."""
    axes = [a for a in axes_of(use) if a in nest.extents]
    grain, tile = memory.cell or max(1, memory.align), size_of(use.dtype)
    for a in axes:
        tile *= min(nest.unit(a), _wide(nest, plan, a))
    return -(-tile // grain) * grain * prod(-(-_wide(nest, plan, a) // nest.unit(a)) for a in axes)


def _crowded(plan: Plan, system: System) -> float:
    """Tiles for which there is no room while a nest runs, out and in: what goes through all of a block brings back what
    gave way before, and something else gives way for that."""
    main, over = plan.group.main, 0.0
    for at in range(len(plan.group.nests)):
        held: dict[str, int] = {}
        for b in _handed(plan):
            n, u = _uses(plan, b)[0]
            users, memory = plan.group.users(b), u.homes[0] if u.homes else system.home
            if min(users) <= at <= max(users) and memory != system.home:
                held[memory] = held.get(memory, 0) + _room(n, plan, u, system.memories[memory])
        over += sum(max(0, size - system.memories[m].capacity) for m, size in held.items())
    tile = max(size_of(u.dtype) * prod(main.unit(a) for a in axes_of(u) if a in main.mapped) for u in main.uses)
    return 2 * over / max(1, tile) * prod(-(-main.length(a) // _wide(main, plan, a)) for a in main.axes)
