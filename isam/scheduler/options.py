"""The legal plans of a group, each with its predicted cost: what an Approach picks from.

The predictions are those of a small analytic model (cycles of the unit, relative): calls, register loads per call,
edges that fill a block badly, boxes that are read more often than they fit. The core offers; it does not choose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import ceil, prod

from isam.ir.dtype import size_of
from isam.scheduler.move import route
from isam.scheduler.nests import Nest, Use
from isam.scheduler.plan import Group, Plan, Stage
from isam.scheduler.trim import segments
from isam.system.graph import CACHED, COUNTED, System

MOST = 64  # plans offered at most
ROWS = 16  # rows of an operand that stays where it is, read side by side (measured)
WORTH_PACKING = 4  # times an operand is read, from which on laying it out anew pays


@dataclass(frozen=True)
class Block:
    """How many tiles of each axis the innermost block holds, and the model's cost per call."""

    tiles: tuple[tuple[str, int], ...]
    cost: float

    def of(self, axis: str) -> int:
        return dict(self.tiles).get(axis, 1)


def plans(group: Group, system: System, bindable: frozenset[str]) -> tuple[list[Plan], list[float]]:
    """Plans for a group, the plainest first: one call per innermost iteration, loops as the kernel states them."""
    main = group.main
    out: list[tuple[Plan, float]] = [(plain(group), float(1 << 60))]
    if register_memory(main, system) is not None:
        for block in blocks(main, system, least(group, main))[:MOST]:
            plan = blocked(group, main, block, system, bindable)
            out.append((plan, block.cost * main.calls()))
    else:
        out.append((whole(group, main, system, bindable), float(main.calls())))
    return [p for p, _ in out], [c for _, c in out]


def register_memory(nest: Nest, system: System) -> str | None:
    """The memory, other than home, that the nest's operands must be brought to."""
    for u in nest.uses:
        if u.homes and u.homes[0] != system.home:
            return u.homes[0]
    return None


def capacity(nest: Nest, system: System) -> int:
    """Register tiles available to one block (one is left for what passes through)."""
    names = {h for u in nest.uses for h in u.homes if h != system.home}
    total = 0
    for n in names:
        m = system.memories[n]
        cell = m.cell or 1
        widest = max((tile_bytes(nest, u, system) for u in nest.uses if n in u.homes), default=cell)
        cells = m.cells if m.cells is not None else m.capacity // max(1, widest)
        total += cells // max(1, -(-widest // cell)) if m.cells is not None else cells
    return max(1, total - 1)


def tile_bytes(nest: Nest, use: Use, system: System) -> int:
    n = size_of(use.dtype)
    memory = system.memories.get(use.homes[0]) if use.homes else None
    if memory is not None and memory.kind == COUNTED:
        return n * int(system.facts.get("lanes", 1))
    for a in nest.mapped:
        if any(a in r.names for r in use.index):
            n *= nest.unit(a)
    return n


def axes_of(use: Use) -> frozenset[str]:
    return frozenset(n for r in use.index for n in r.names)


def least(group: Group, main: Nest) -> dict[str, int]:
    """Tiles of an axis below which no block of the main nest may go, because one call of another nest takes as much."""
    units = {a: max(n.unit(a) for n in group.nests if a in n.extents) for a in main.axes}
    return {a: -(-min(u, main.length(a)) // max(1, main.unit(a))) for a, u in units.items() if u > main.unit(a)}


def blocks(nest: Nest, system: System, floor: dict[str, int]) -> list[Block]:
    """Register blocks that fit, best predicted cost first; ``floor``: as :func:`least` says."""
    room = capacity(nest, system)
    parallel = [a for a in nest.axes if a not in nest.reduced]
    counts = {a: -(-nest.length(a) // nest.unit(a)) for a in parallel}
    reducing = bool(nest.reduced) and prod(nest.length(a) for a in nest.reduced) > 1
    limit = room if reducing else min(room, 8)
    found: list[Block] = []
    for tiles in _candidates(nest, parallel, counts, limit, floor):
        cost = block_cost(nest, parallel, counts, tiles, room, reducing)
        if cost is not None:
            found.append(Block(tuple(sorted(tiles.items())), cost))
    found.sort(key=lambda b: b.cost)
    return found


def _candidates(nest: Nest, parallel: list[str], counts: dict[str, int], limit: int,
                floor: dict[str, int]) -> Iterator[dict[str, int]]:  # fmt: skip
    """Numbers of tiles per axis: at most three axes are blocked, the last ones named first."""
    wide = [a for a in reversed(parallel) if counts[a] > 1][:3]
    ranges = [range(floor.get(a, 1), min(counts[a], limit) + 1, floor.get(a, 1)) for a in wide]
    for combo in product(*ranges):
        if prod(combo) <= limit:
            yield dict(zip(wide, combo, strict=True))


def block_cost(
    nest: Nest, parallel: list[str], counts: dict[str, int], tiles: dict[str, int], room: int, reducing: bool
) -> float | None:
    """Relative cycles per useful call, or None when the block does not fit the registers."""
    per = {a: tiles.get(a, 1) for a in parallel}
    calls = prod(per.values())
    order = unroll_order(nest, per)
    outs = ins = live = 0
    for u in nest.uses:
        n = prod(per[a] for a in axes_of(u) if a in per)
        if u.writes:
            outs += n
        elif not u.buffer.startswith("#"):
            ins += n
            streamed = order[0] if order and per[order[0]] > 1 and order[0] in axes_of(u) else None
            live += n // per[streamed] if streamed else n
    if reducing and outs + live > room:
        return None
    waste = 1.0
    for a in parallel:
        n, unit = counts[a], nest.unit(a)
        have = sum(max(1, -(-s.size // unit)) * s.count for s in segments(n, per[a], 1, unit > 1))
        waste *= max(1.0, have / max(1, n)) * (1 + 0.04 * (len(segments(n, per[a], 1, unit > 1)) - 1))
        blocks_of_axis = -(-n // per[a])
        average = n / max(1, blocks_of_axis)
        waste *= 1 + 0.15 * (per[a] - average) / per[a]
    if not reducing:
        traffic = (ins + outs) / calls
        return waste * (traffic + 2.0 / calls)
    latency = 8.0 / min(8, calls)  # independent accumulators hide the latency of the unit
    return waste * (max(1.0, 1.1 * ins / calls) + 0.25 * ins / calls + 0.15 * (latency - 1) + 0.02 * outs / calls)


def unroll_order(nest: Nest, per: dict[str, int]) -> list[str]:
    """Reduced axes outermost, then the others so that operands of the largest axis stream by one at a time."""
    rest = [a for a in nest.axes if a not in nest.reduced]
    return sorted(rest, key=lambda a: (-per.get(a, 1) if a not in nest.mapped else 1, rest.index(a)))


def plain(group: Group) -> Plan:
    """One call per innermost iteration; loops in the order of the nests' axes."""
    order: list[tuple[str, int]] = []
    for a in ordered_axes(group):
        unit = max((n.unit(a) for n in group.nests if a in n.extents), default=1)
        order.append((a, unit))
    return Plan(group, tuple(order), tuple(ordered_axes(group)), note="plain")


def ordered_axes(group: Group) -> list[str]:
    """Axes that more nests share come first; inside a nest the order of its domain."""
    if group.exact:
        return list(group.axes)
    shared = {a: sum(a in n.extents for n in group.nests) for a in group.axes}
    return sorted(group.axes, key=lambda a: (-shared[a], group.axes.index(a)))


def whole(group: Group, main: Nest, system: System, bindable: frozenset[str]) -> Plan:
    """For instructions that take whole operands from home memory: loops only over what the call leaves, and boxes
    copied where the operand's contract is not met by the buffer's own layout."""
    order = [(a, main.unit(a)) for a in main.axes if a not in main.mapped or main.mapped[a].limit is not None]
    for n in group.nests:
        order += [(a, n.unit(a)) for a in n.axes if a not in main.axes]
    stages = tuple(s for u in main.uses if (s := repack(main, u, system, bindable)) is not None)
    return Plan(group, tuple(order), tuple(ordered_axes(group)), stages, note="whole operands")


def repack(nest: Nest, use: Use, system: System, bindable: frozenset[str]) -> Stage | None:
    """A stage that lays a read operand out as its contract asks, when the buffer's own layout does not."""
    if use.writes or not use.reads or all(s != 1 for s in use.strides) or not use.dims:
        return None
    need = [d for d, s in zip(use.dims, use.strides, strict=True) if s == 1]
    last = len(use.index) - 1
    if all(d == last for d in need):
        return None
    order = tuple(d for d in range(len(use.index)) if d not in use.dims) + tuple(d for d in use.dims if d not in need)
    return Stage(use.buffer, 0, system.home, order + tuple(need), bound=use.buffer in bindable)


def caches(system: System) -> list[int]:
    """Capacities of caches in front of home memory, smallest first, in bytes."""
    return sorted(m.capacity for m in system.memories.values() if m.kind == CACHED)


def blocked(group: Group, main: Nest, block: Block, system: System, bindable: frozenset[str]) -> Plan:
    """Register block inside cache blocks inside the remaining loops; operands read more than once are packed."""
    parallel = [a for a in main.axes if a not in main.reduced]
    reduced = [a for a in main.axes if a in main.reduced]
    unit = {a: main.unit(a) for a in main.axes}
    width = {a: block.of(a) * unit[a] for a in parallel}
    vector = [a for a in parallel if a in main.mapped]
    cached = caches(system)
    head: list[tuple[str, int]] = []
    if cached and reduced and main.mapped and not (group.exact and len(reduced) > 1):
        if any(streamed(main, u, width, bindable) for u in main.uses):
            head = [(max(reduced, key=main.length), ROWS)]
        else:
            head = cache_blocks(main, width, cached[min(1, len(cached) - 1)])
    rest = [a for a in parallel if a not in vector]
    plainly = [a for a in rest if width[a] == 1]
    tiled = [a for a in rest if width[a] > 1]
    order = head + [(a, 1) for a in plainly] + [(a, width[a]) for a in tiled] + [(a, width[a]) for a in vector]
    order += [(a, unit[a]) for a in reduced[:-1]]
    if reduced:
        inner = reduced[-1]
        order.append((inner, unit[inner] * steps(block) if inner not in main.mapped else unit[inner]))
    for n in group.nests:
        order += [(a, n.unit(a) * 4) for a in n.axes if a not in main.axes and a not in dict(order)]
    per = dict(block.tiles)
    unroll = [*reduced, *unroll_order(main, per)]
    plan = Plan(group, tuple(dict.fromkeys(order)), tuple(unroll), (), note=f"block {block.tiles}")
    return Plan(plan.group, plan.order, plan.unroll, packs(plan, main, width, len(head), system, bindable), plan.note)


def steps(block: Block) -> int:
    """Steps of a reduction that are unrolled: enough calls to hide the loop around them."""
    calls = prod(n for _, n in block.tiles)
    return 4 if calls < 16 else 2 if calls < 32 else 1


def outside(main: Nest, use: Use, width: dict[str, int]) -> int:
    """How often blocks that the operand has no part in make it be read again."""
    mine = axes_of(use)
    others = (a for a in main.axes if a not in mine and a not in main.reduced)
    return prod(ceil(main.length(a) / max(1, width.get(a, 1))) for a in others)


def streamed(main: Nest, use: Use, width: dict[str, int], bindable: frozenset[str]) -> bool:
    """Whether an operand is read along its rows where it lies, so seldom that packing it would not pay."""
    last = len(use.index) - 1
    along = [a for a in axes_of(use) if a in main.mapped and a not in main.reduced]
    if use.writes or use.buffer in bindable or not along or use.index[last].names != (along[0],):
        return False
    again = outside(main, use, width)
    return again < WORTH_PACKING and use.steps[use.dims.index(last)] == 1 and main.length(along[0]) > width[along[0]]


def cache_blocks(main: Nest, width: dict[str, int], cache: int) -> list[tuple[str, int]]:
    """Outer blocks so that the box shared by all rows stays in a cache of so many bytes, with the least traffic beyond
    it: what is read along rows is read again for every block of columns, results for every part of the reduction.
    Rows that nearly fit the cache themselves are read again at an eighth of the price (measured)."""
    reduced = [a for a in main.axes if a in main.reduced]
    vector = [a for a in main.axes if a in main.mapped and a not in main.reduced]
    if not vector:
        return []
    axis, along = max(reduced, key=main.length), vector[-1]
    others = prod(main.length(a) for a in (*reduced, *vector) if a not in (axis, along))
    size = max((size_of(u.dtype) for u in main.uses if u.reads and not u.buffer.startswith("#")), default=4)
    column = others * size
    rows: float = sum(volume(main, u) for u in main.uses if u.reads and not u.writes and along not in axes_of(u))
    rows *= 1 if rows * size > 2 * cache else 1 / 8
    results = 2 * sum(volume(main, u) for u in main.uses if u.writes)
    n, best = main.length(axis), None
    for step in dict.fromkeys([n, *(ceil(ceil(n / p) / 4) * 4 for p in (2, 3, 4, 6, 8, 12, 16, 24, 32, 64))]):
        fit = cache * 3 // 4 // (step * column) // width[along] * width[along]
        columns = even(main.length(along), max(width[along], fit), width[along])
        traffic = rows * ceil(main.length(along) / columns) + results * (ceil(n / step) - 1)
        if not fit:
            traffic += 1 << 60
        if best is None or traffic < best[0]:
            best = (traffic, columns, step)
    assert best is not None
    _, columns, step = best
    return [(a, b) for a, b in ((along, columns), (axis, step)) if b < main.length(a)]


def even(length: int, most: int, unit: int) -> int:
    """Blocks of at most about ``most`` elements that cut a length evenly, in multiples of ``unit``."""
    return ceil(ceil(length / ceil(length / most)) / unit) * unit


def volume(nest: Nest, use: Use) -> int:
    """Elements of a buffer that the nest touches."""
    return prod(1 + sum(abs(c) * (nest.length(a) - 1) for a, c in r.terms if a in nest.extents) for r in use.index)


def packs(
    plan: Plan, main: Nest, width: dict[str, int], head: int, system: System, bindable: frozenset[str]
) -> tuple[Stage, ...]:
    """Boxes to lay out anew: panels of what is read along the vector axis, rows whose stride aliases in the cache."""
    out = []
    if not caches(system):
        return scratch(plan, main, system)
    depth_of = {a: i for i, (a, _) in reversed(list(enumerate(plan.order)))}
    for u in main.uses:
        if u.writes or not u.reads or u.buffer.startswith("#") or not u.index or not main.reduced:
            continue
        mine = axes_of(u)
        if any(v.writes and v.buffer == u.buffer for n in plan.group.nests for v in n.uses):
            continue
        along = [a for a in mine if a in main.mapped and a not in main.reduced]
        if along and all(len(r.names) <= 1 for r in u.index):
            stage = panel(plan, main, u, along[0], width, head, bindable, system)
            if stage is not None:
                out.append(stage)
        elif not along:
            rows = row_copy(plan, main, u, width, depth_of, system)
            if rows is not None:
                out.append(rows)
    return tuple(out)


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


def panel(
    plan: Plan,
    main: Nest,
    use: Use,
    axis: str,
    width: dict[str, int],
    head: int,
    bindable: frozenset[str],
    system: System,
) -> Stage | None:
    """The operand in panels as wide as the register block, contiguous in the order in which they are read."""
    dim = next(d for d, r in enumerate(use.index) if r.names == (axis,))
    native = dim == len(use.index) - 1 and use.steps[use.dims.index(dim)] == 1
    bound = use.buffer in bindable
    if native and not bound and outside(main, use, width) < WORTH_PACKING:
        return None
    if main.length(axis) <= width[axis] and native:
        return None
    order = (dim, *(d for d in range(len(use.index)) if d != dim))
    cut = ((dim, width[axis]),) if main.length(axis) > width[axis] else ()
    if not cut:
        order = (*(d for d in range(len(use.index)) if d != dim), dim)
    return Stage(use.buffer, 0 if bound else head, system.home, order, cut, bound=bound)


def row_copy(
    plan: Plan, main: Nest, use: Use, width: dict[str, int], depth_of: dict[str, int], system: System
) -> Stage | None:
    """Rows read side by side whose distance is a multiple of 2 KiB fall on the same cache sets: copy them apart."""
    rows = [(d, r) for d, r in enumerate(use.index) if any(width.get(n, 1) > 1 for n in r.names)]
    if not rows or any(len(r.names) > 1 for r in use.index) or not caches(system):
        return None
    d, _r = rows[0]
    last = use.index[-1]
    if d == len(use.index) - 1 or not last.names or last.names[0] not in main.reduced:
        return None
    stride = size_of(use.dtype) * main.length(last.names[0])
    columns = prod(-(-main.length(a) // width.get(a, 1)) for a in main.mapped if a not in main.reduced)
    if stride % 2048 or columns < 4:
        return None
    at = max(i for i, (a, _) in enumerate(plan.order) if a in axes_of(use) and a not in main.reduced) + 1
    return Stage(use.buffer, at, system.home, tuple(range(len(use.index))), pad=64)
