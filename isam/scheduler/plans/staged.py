"""Plans for machines with a memory of addresses between home and the registers: boxes are brought there ahead of their
use, while the ones before are worked on, and blocks are dealt to replicas.

Combinations of register block, dealing, loop order, chunk of the reduction and places of the boxes are weighed by
:mod:`isam.scheduler.plans.estimate`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, product
from math import ceil, inf, prod

from isam.scheduler.nests import Nest, Use
from isam.scheduler.plan import USED, Group, Plan
from isam.scheduler.plans.boxes import (
    NOTHING,
    Box,
    Order,
    box_bytes,
    direct,
    in_pieces,
    placements,
    staged_uses,
    stages,
    staying_beside,
    trip_counts,
)
from isam.scheduler.plans.dealing import Dealing, dealings
from isam.scheduler.plans.divided import Divided
from isam.scheduler.plans.estimate import Estimate, Machine
from isam.scheduler.plans.register import RegisterBlock, axes_of, in_flight, steps, unroll_order
from isam.scheduler.plans.request import Request
from isam.scheduler.routes import Routes
from isam.system.graph import Memory, System

BLOCKS = 6  # register blocks tried: so many of the best, and of those that bring the fewest tiles per call
WORTH = 0.98  # of the time of a simpler schedule, that a longer one may take
EQUAL = 1.1  # times the best prediction: none is better than that, where calls read what is brought where it lies
ALIKE = 1.02  # elsewhere
PAIRS = 16  # of a block and a dealing, looked at closely
BANDS = 5  # halvings of an axis tried where an operand has to come in parts
CHUNKS = 7  # lengths of a reduction's part tried: all of it, halved again and again


def between(main: Nest, system: System, routes: Routes) -> tuple[Memory, ...]:
    """The memories between home and the registers: of each operand the first with addresses on its way; or, of one that
    is only read, where it lies by rows. There boxes may be put ahead of their use. In the order of the description."""
    found = {_nearest(u, system, routes) for u in main.uses}
    return tuple(m for n, m in system.memories.items() if n in found)


def _nearest(use: Use, system: System, routes: Routes) -> str | None:
    rows = (h for h in use.homes if system.memories[h].row and use.reads and not use.writes)
    reached = (h for h in rows if routes.of(system.home, h, use.dtype) is not None)
    return next(chain(on_the_way(use, system, routes), reached), None)


def on_the_way(use: Use, system: System, routes: Routes) -> list[str]:
    """The memories with addresses that an operand passes on its way from home, or, of one that only begins near calls,
    on its way back."""
    home = next(iter(use.homes), system.home)
    if home == system.home:
        return []
    path = routes.of(system.home, home, use.dtype) or (*reversed(routes.of(home, system.home, use.dtype) or ()),)
    return [m for m in path[1:-1] if system.memories[m].cells is None]


def staged(request: Request, blocks: list[RegisterBlock], memory: Memory) -> list[tuple[Plan, float]]:
    """Plans that bring boxes to a memory ahead of their use, with their predicted seconds, in no particular order."""
    group, main, system = request.group, request.main, request.system
    lasting = request.lasting if request.lasting.memory in ("", memory.name) else NOTHING
    machine = Machine(main, system, request.routes, memory, request.near, request.passing)
    uses = {b: u for b, u in _passing(request, memory).items() if b not in request.near}
    bands = _bands(main, memory, uses)
    ways = dealings(group, main, system, memory) if request.dealing is None else [request.dealing]
    pairs = list(product(_varied(machine, blocks), ways))
    rough = {n: _rough(group, machine, *p) for n, p in enumerate(pairs)}
    least = sorted(rough, key=lambda n: rough[n][1])[:PAIRS // 4]  # traffic with home, which may be all that counts
    best = sorted(rough, key=lambda n: max(rough[n]))
    chosen = [n for n in best if n not in least][: PAIRS - len(least)]
    out: dict[object, tuple[Plan, float, float]] = {}
    turns = set[object]()
    others = staying_beside(group, main, lasting)
    for block, deals in (pairs[n] for n in best if n in least or n in chosen):
        width = block.widths(main)
        divided = Divided(machine, width, deals)
        unroll = (*main.reduced, *unroll_order(main, dict(block.tiles), machine.room))
        for order in _orders(group, main, block, width, deals, system, () if deals else bands):
            whole = [*placements(group, machine, uses, order, len(deals), lasting), {}]
            parts = [] if direct(main, memory) else whole  # where calls read boxes in place, pieces would be commands
            parts = [p for b in parts if (p := in_pieces(b, group, main, order, len(deals))) is not None]
            for boxes in (*parts, *whole):  # of equal ones those with fewer blocks in an iteration
                plan = _plan(group, main, order, block, deals, boxes, memory, unroll)
                if _idle_chunk(plan):
                    continue
                rest = [(u.dtype, box_bytes(group, u, order, len(deals))) for b, u in others.items() if b not in boxes]
                for e in _estimates(Estimate(divided, plan, boxes, lasting.trips, rest)):
                    key = (e.plan.order, frozenset(e.plan.stages), e.plan.double_buffered, e.plan.unroll, e.plan.deals)
                    if key not in out or e.seconds < out[key][1]:
                        out[key] = e.plan, e.seconds, e.traffic
                    turns |= {key} if e.plan is not plan else set()
    ranked = _told_apart(list(out.values()), EQUAL if direct(main, memory) else ALIKE)
    return _worth([(p, s, key in turns) for key, (p, s) in zip(out, ranked, strict=True)])


def _estimates(found: Estimate) -> Iterator[Estimate]:
    """Of a plan, and of the one whose blocks of results take places in turn, where they would wait for each other."""
    yield found
    plan, loop = found.plan, found.block_loop
    if loop is not None and found.drained > (1 - WORTH) * found.seconds:
        turns = replace(plan, double_buffered=plan.double_buffered | {loop})
        yield Estimate(found.of, turns, found.boxes, found.trips, found.beside)


def _passing(request: Request, memory: Memory) -> dict[str, Use]:
    """Operands of the main nest that are only read, and come to the memory or through it on their way to where calls
    want them."""

    start, routes = request.system.home, request.routes

    def comes(use: Use) -> bool:
        home = next(iter(use.homes), start)
        there = memory.name if memory.name in use.homes else home
        return home != start and memory.name in (routes.of(start, there, use.dtype) or ())

    return {b: u for b, u in staged_uses(request.group, request.main).items() if comes(u)}


def _worth(found: list[tuple[Plan, float, bool]]) -> list[tuple[Plan, float]]:
    """Boxes in pieces, and blocks whose results take places in turn (marked), make a schedule longer: such plans have
    to be better than the best of the others."""
    plain = [(p, s) for p, s, turns in found if not turns and all(g.by is None for g in p.stages)]
    least = min((s for _, s in plain), default=0.0)
    known = {id(p) for p, _ in plain}
    longer = [(p, s) for p, s, _ in found if id(p) not in known and (not plain or s < least * WORTH)]
    return longer + plain


def _told_apart(found: list[tuple[Plan, float, float]], equal: float) -> list[tuple[Plan, float]]:
    """Plans whose predicted seconds are as good as equal are ranked by how long all that they bring takes: what is
    hidden behind calls is not free."""
    best = min((s for _, s, _ in found), default=0.0)
    least = min((t for _, s, t in found if s <= best * equal), default=0.0) or 1.0
    return [(p, best * (equal - (equal - 1) * least / (t or 1.0)) if s <= best * equal else s) for p, s, t in found]


def _plan(
    group: Group,
    main: Nest,
    order: Order,
    block: RegisterBlock,
    deals: Dealing,
    boxes: dict[str, Box],
    memory: Memory,
    unroll: tuple[str, ...],
) -> Plan:
    deepest = max((x.depth for x in boxes.values() if x.double_buffered), default=0)
    trips = trip_counts(main, order)
    loops = [d for d in range(len(deals), deepest) if trips[d] > 1]
    note, given = str(block), tuple(d for _, _, d in deals)
    return Plan(group, order, unroll, stages(boxes, group, memory), note, frozenset(loops[-1:]), given, even=True)


def _idle_chunk(plan: Plan) -> bool:
    """Whether a reduction is cut into chunks for which nothing is brought."""
    axes = [a for a, _ in plan.order]
    return any(a in axes[d + 1 :] and all(max(s.depth, s.by or 0) <= d for s in plan.stages)
               for d, a in enumerate(axes) if d >= plan.inner and a in plan.group.main.reduced)  # fmt: skip


def _rough(group: Group, machine: Machine, block: RegisterBlock, deals: Dealing) -> tuple[float, float]:
    """Seconds near the unit, and of traffic with home, as if nothing stayed in the memory in between."""
    plan = Plan(group, tuple((a, n) for a, n, _ in deals), (), deals=tuple(d for _, _, d in deals))
    divided = Divided(machine, block.widths(machine.main), deals)
    return Estimate(divided, plan, {}).inside, divided.streaming


def _varied(machine: Machine, blocks: list[RegisterBlock]) -> list[RegisterBlock]:
    """The best blocks, those that bring the fewest tiles per call, and what lies between."""
    main = machine.main

    def brought(block: RegisterBlock) -> float:
        per = dict(block.tiles)
        tiles = sum(prod(per.get(a, 1) for a in axes_of(u)) for u in main.uses if u.reads and not u.writes)
        return tiles / prod(per.values())

    found = [*blocks[:BLOCKS], *sorted(blocks, key=brought)[:BLOCKS], *_balanced(machine, blocks)[: BLOCKS // 2]]
    return list(dict.fromkeys(found))


def _balanced(machine: Machine, blocks: list[RegisterBlock]) -> list[RegisterBlock]:
    """Those that none beats both near the unit, where tiles want rooms, and in traffic with home, the quickest near the
    unit first."""
    main = machine.main
    each: list[tuple[float, float, int]] = []
    for n, b in enumerate(blocks):
        divided = Divided(machine, b.widths(main), ())
        several = _several(main, dict(b.tiles), machine.system) if main.reduced else None
        each.append((divided.inside(several), divided.streaming, n))
    out, least = list[RegisterBlock](), inf
    for _, traffic, n in sorted(each):
        if traffic < WORTH * least:
            out.append(blocks[n])
            least = traffic
    return out


# -- loops ------------------------------------------------------------------------------------------------------------
def _orders(
    group: Group,
    main: Nest,
    block: RegisterBlock,
    width: dict[str, int],
    deals: Dealing,
    system: System,
    bands: tuple[tuple[str, int], ...],
) -> Iterator[Order]:
    """Orders of the loops: dealt ones, blocks of the parallel axes, a chunk of the reduction, its steps. ``bands``: of
    one axis so much comes first, before all loops."""
    lengths = {a: main.length(a) for a in main.axes} | {a: n for a, n, _ in deals}
    outer = [(a, n) for a, n, _ in deals]
    tiled = [a for a in width if lengths[a] > width[a]]
    tiled.sort(key=lambda a: lengths[a] // width[a])
    tiles = {a: min(n, -(-lengths[a] // main.unit(a))) for a, n in block.tiles}
    turns = [tiled] if len(tiled) < 2 else [tiled, [*tiled[:-2], tiled[-1], tiled[-2]]]
    rest = [(a, n.unit(a) * 4) for n in group.nests for a in n.axes if a not in main.axes]
    for turn, chunk in product(turns, _chunks(group, main)):
        loops = [(a, width[a]) for a in turn]
        inner = _reduction(main, tiles, chunk, system)
        known = {a for a, _ in (*outer, *loops, *inner)}
        more = [(a, n) for a, n in dict(rest).items() if a not in known]
        yield tuple(outer + loops + inner + more)
        for a, n in bands if chunk is None or chunk[1] >= main.length(chunk[0]) else ():
            if a in turn and width[a] < n:
                yield ((a, n), *loops, *inner, *more)


def _bands(main: Nest, memory: Memory, uses: dict[str, Use]) -> tuple[tuple[str, int], ...]:
    """Parts of the parallel axes, halved again and again, where no operand fits the memory whole: so much of one fits,
    and what meets it passes by."""
    fits = any(box_bytes(main, u, (), 0) <= memory.capacity * USED for u in uses.values())
    if fits or not direct(main, memory):
        return ()
    out: dict[tuple[str, int], None] = {}
    for a in main.axes:
        for n in range(1, BANDS + 1) if a not in main.reduced else ():
            out[a, ceil(ceil(main.length(a) / main.unit(a)) / 2**n) * main.unit(a)] = None
    return tuple(out)


def _chunks(group: Group, main: Nest) -> list[tuple[str, int] | None]:
    """Parts of the longest reduction (of the first, where order matters) that are brought at a time."""
    if not main.reduced:
        return [None]
    axis = main.reduced[0] if group.exact else max(main.reduced, key=main.length)
    unit, length = main.unit(axis), main.length(axis)
    out: list[tuple[str, int] | None] = []
    for n in range(CHUNKS):
        size = ceil(ceil(length / unit) / 2**n) * unit
        if (axis, size) not in out:
            out.append((axis, size))
    return out


def _reduction(
    main: Nest, tiles: dict[str, int], chunk: tuple[str, int] | None, system: System
) -> list[tuple[str, int]]:
    """The loops of a reduction: the chunk, then step by step; several steps at a time where the registers have room for
    the tiles of all, so that those of one are brought while the others are worked on."""
    if chunk is None:
        return []
    unit = {a: main.unit(a) for a in main.reduced}
    inner = main.reduced[-1]
    several = _several(main, tiles, system)
    out = [chunk] if main.length(chunk[0]) > chunk[1] else []
    out += [(a, unit[a]) for a in main.reduced[:-1]]
    return [*out, (inner, unit[inner] * several)]


def _several(main: Nest, tiles: dict[str, int], system: System) -> int:
    """Steps of a reduction in an iteration of its innermost loop."""
    return in_flight(main, tiles, system) if main.reduced[-1] in main.mapped else steps(prod(tiles.values()))
