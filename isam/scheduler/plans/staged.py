"""Plans for machines with a memory of addresses between home and the registers: boxes are brought there ahead of their
use, while the ones before are worked on, and blocks are dealt to replicas.

Every combination of register block, dealing, loop order and chunk of the reduction is weighed by
:mod:`isam.scheduler.plans.estimate`; boxes go as far out in the loops as they save traffic and fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product
from math import ceil, prod

from isam.schedule.tree import Deal
from isam.scheduler.move import route
from isam.scheduler.nests import Nest
from isam.scheduler.plan import Group, Plan, Stage
from isam.scheduler.plans.estimate import Estimate, Machine, box_bytes, trip_counts
from isam.scheduler.plans.register import Block, axes_of, register_memory, steps, unroll_order
from isam.system.graph import Memory, System

BLOCKS = 6  # register blocks tried, best first
PAIRS = 12  # of a block and a dealing, looked at closely
CHUNKS = 5  # lengths of a reduction's part tried: all of it, halved again and again
BUSY = 0.75  # of the most instances that any dealing uses
USED = 0.9  # of the memory in between, the rest is left for what passes through
Order = tuple[tuple[str, int], ...]


def between(main: Nest, system: System) -> Memory | None:
    """The first memory with addresses on the way from home to the registers."""
    target = register_memory(main, system)
    path = route(system, system.home, target) if target else None
    found = [system.memories[m] for m in (path or ())[1:-1] if system.memories[m].cells is None]
    return found[0] if found else None


def staged(group: Group, main: Nest, system: System, blocks: list[Block]) -> list[tuple[Plan, float]]:
    """Plans with their predicted seconds, in no particular order; none where nothing lies in between."""
    memory = between(main, system)
    if memory is None:
        return []
    machine = Machine(main, system, memory)
    pairs = list(product(_varied(main, blocks), dealings(group, main, system, memory)))
    pairs.sort(key=lambda p: _rough(group, machine, *p))
    out: dict[object, tuple[Plan, float]] = {}
    for block, deals in pairs[:PAIRS]:
        for order in _orders(group, main, block, _widths(main, block), deals):
            plan = _plan(group, main, order, block, deals, memory)
            if _idle_chunk(plan):
                continue
            seconds = Estimate(machine, plan, _widths(main, block)).seconds
            key = (plan.order, plan.stages, plan.rotate, plan.unroll, plan.deals)
            if key not in out or seconds < out[key][1]:
                out[key] = plan, seconds
    return list(out.values())


def _idle_chunk(plan: Plan) -> bool:
    """Whether a reduction is cut into chunks for which nothing is brought."""
    axes = [a for a, _ in plan.order]
    return any(a in axes[d + 1 :] and all(s.depth <= d for s in plan.stages)
               for d, a in enumerate(axes) if d >= len(plan.deals) and a in plan.group.main.reduced)  # fmt: skip


def _widths(main: Nest, block: Block) -> dict[str, int]:
    """Elements of each parallel axis in a register block."""
    return {a: block.of(a) * main.unit(a) for a in main.axes if a not in main.reduced}


def _rough(group: Group, machine: Machine, block: Block, deals: Dealing) -> float:
    """Seconds without what is brought from home."""
    plan = Plan(group, tuple((a, n) for a, n, _ in deals), (), deals=tuple(d for _, _, d in deals))
    return Estimate(machine, plan, _widths(machine.main, block)).inside


def _varied(main: Nest, blocks: list[Block]) -> list[Block]:
    """The best blocks, and those that bring the fewest tiles per call."""

    def brought(block: Block) -> float:
        per = dict(block.tiles)
        tiles = sum(prod(per.get(a, 1) for a in axes_of(u)) for u in main.uses if u.reads and not u.writes)
        return tiles / prod(per.values())

    return list(dict.fromkeys([*blocks[:BLOCKS], *sorted(blocks, key=brought)[:BLOCKS]]))


# -- dealing ----------------------------------------------------------------------------------------------------------
Dealing = tuple[tuple[str, int, Deal], ...]  # axis, block, instances


def dealings(group: Group, main: Nest, system: System, memory: Memory) -> list[Dealing]:
    """Ways to give blocks of one or two axes to the replicas of the memory that leave few of them idle; one instance
    alone where there are none or no axis keeps what is written apart."""
    name = system.replica_of(memory.name)
    if name is None:
        return [()]
    count, apart = system.replicas[name].count, group.apart()
    axes = [a for a in main.axes if a in apart and a not in main.reduced and main.length(a) > main.unit(a)]
    axes = sorted(axes, key=lambda a: -main.length(a) / main.unit(a))[:3]
    out: dict[object, tuple[int, Dealing]] = {}
    for pair in (*((a,) for a in axes), *permutations(axes, 2)):
        for rows in range(2, count // 2 + 1) if len(pair) == 2 else (count,):
            parts, cut = _cut(group, main, pair, (rows, count // rows)[: len(pair)], name)
            if cut:
                out.setdefault(tuple((a, n) for a, n, _ in cut), (prod(parts), cut))
    most = max((n for n, _ in out.values()), default=0)
    return [cut for n, cut in out.values() if n >= BUSY * most] or [()]


def _cut(
    group: Group, main: Nest, axes: tuple[str, ...], ways: tuple[int, ...], name: str
) -> tuple[list[int], Dealing]:
    """The dealing of axes in so many parts each, at most; nothing where one of them stays whole."""
    blocks, parts = [], []
    for a, n in zip(axes, ways, strict=True):
        unit = group.unit(a)
        size = ceil(ceil(main.length(a) / unit) / n) * unit
        blocks.append(size)
        parts.append(sum(s.count for s in group.parts(a, main.length(a), size)))
    if any(p < 2 for p in parts) or any(p > n for p, n in zip(parts, ways, strict=True)):
        return [], ()
    strides = [prod(parts[i + 1 :]) for i in range(len(parts))]
    return parts, tuple((a, b, Deal(name, 0, s)) for a, b, s in zip(axes, blocks, strides, strict=True))


# -- loops ------------------------------------------------------------------------------------------------------------
def _orders(group: Group, main: Nest, block: Block, width: dict[str, int], deals: Dealing) -> Iterator[Order]:
    """Orders of the loops: dealt ones, blocks of the parallel axes, a chunk of the reduction, its steps."""
    lengths = {a: main.length(a) for a in main.axes} | {a: n for a, n, _ in deals}
    outer = [(a, n) for a, n, _ in deals]
    tiled = [a for a in width if lengths[a] > width[a]]
    tiled.sort(key=lambda a: lengths[a] // width[a])
    turns = [tiled] if len(tiled) < 2 else [tiled, [*tiled[:-2], tiled[-1], tiled[-2]]]
    rest = [(a, n.unit(a) * 4) for n in group.nests for a in n.axes if a not in main.axes]
    for turn, chunk in product(turns, _chunks(group, main)):
        loops = [(a, width[a]) for a in turn]
        inner = _reduction(main, block, chunk)
        known = {a for a, _ in (*outer, *loops, *inner)}
        yield tuple(outer + loops + inner + [(a, n) for a, n in dict(rest).items() if a not in known])


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


def _reduction(main: Nest, block: Block, chunk: tuple[str, int] | None) -> list[tuple[str, int]]:
    """The loops of a reduction: the chunk, then step by step."""
    if chunk is None:
        return []
    unit = {a: main.unit(a) for a in main.reduced}
    inner = main.reduced[-1]
    step = unit[inner] * (1 if inner in main.mapped and unit[inner] > 1 else steps(block))
    out = [chunk] if main.length(chunk[0]) > chunk[1] else []
    out += [(a, unit[a]) for a in main.reduced[:-1]]
    return [*out, (inner, step)]


# -- boxes ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _Box:
    """A box of an operand at a depth: its bytes, and how often it is brought."""

    depth: int
    size: int
    times: int

    @property
    def room(self) -> int:
        """Bytes that it takes: twice its size, where one is brought while another is worked on."""
        return self.size if self.times == 1 else 2 * self.size


def _plan(group: Group, main: Nest, order: Order, block: Block, deals: Dealing, memory: Memory) -> Plan:
    stages = _stages(group, main, order, len(deals), memory)
    turning = max((s.depth for s in stages), default=0)
    trips = trip_counts(main, order)
    loops = [d for d in range(len(deals), turning) if trips[d] > 1]
    return Plan(
        group,
        order,
        (*main.reduced, *unroll_order(main, dict(block.tiles))),
        tuple(stages),
        f"block {block.tiles}",
        frozenset(loops[-1:]),
        tuple(d for _, _, d in deals),
    )


def _stages(group: Group, main: Nest, order: Order, dealt: int, memory: Memory) -> list[Stage]:
    """A box per operand that is only read: inside the loop over chunks first, then as far out as it saves most traffic
    per byte of the memory. What changes fastest lies there twice."""
    written = {v.buffer for n in group.nests for v in n.uses if v.writes}
    uses = {u.buffer: u for u in main.uses if u.reads and u.buffer not in written and u.index}
    uses = {b: u for b, u in uses.items() if not b.startswith("#")}
    trips, room = trip_counts(main, order), memory.capacity * USED
    inmost = _inmost(main, order)
    at: dict[str, _Box] = {}
    for b, u in uses.items():
        boxes = [_Box(d, box_bytes(main, u, order, d), prod(trips[dealt:d])) for d in range(dealt, inmost + 1)]
        at[b] = boxes[-1]
        fitting = [x for x in boxes if x.room <= room / len(uses)]
        if not fitting:
            continue
        least = min(x.size * x.times for x in fitting)
        at[b] = max((x for x in fitting if x.size * x.times == least), key=lambda x: x.depth)
    held = sum(x.room for x in at.values())
    if held > room:
        return []
    for b, u in sorted(uses.items(), key=lambda e: at[e[0]].size * at[e[0]].times, reverse=True):
        mine = at[b]
        for d in range(dealt, mine.depth):
            box = _Box(d, box_bytes(main, u, order, d), prod(trips[dealt:d]))
            if box.size * box.times < mine.size * mine.times and held - mine.room + box.size <= room:
                held += box.size - mine.room
                at[b] = box
                break
    return [Stage(b, x.depth, memory.name, tuple(range(len(uses[b].index)))) for b, x in at.items()]


def _inmost(main: Nest, order: Order) -> int:
    """The depth below which a box would be one step of the reduction: there nothing is staged."""
    reducing = [d for d, (a, _) in enumerate(order) if a in main.reduced]
    if not reducing:
        return len(order)
    axes = [a for a, _ in order]
    first = reducing[0]
    return first + 1 if axes.count(axes[first]) > 1 else first
