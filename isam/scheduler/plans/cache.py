"""Cache blocks: outer blocks whose boxes stay in a cache in front of home memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product
from math import ceil, inf, prod

from isam.ir.dtype import size_of
from isam.schedule.literals import is_literal
from isam.scheduler.homes import WAYS
from isam.scheduler.nests import Nest, Use
from isam.scheduler.plan import Group
from isam.scheduler.plans.register import axes_of
from isam.system.graph import System

WORTH_PACKING = 4  # times an operand is read, from which on laying it out anew pays
ANEW = 2  # traffic of a byte that is laid out anew near by when it is read, beside one that is only read (measured)
SHARE = 3 / 4  # of a cache that a box may fill without what passes by driving it out (measured)
FILLED = 5 / 8  # of it that a block fills where the next one is much slower than it is read: what is driven out costs
                # more than wider blocks bring (measured)
MUCH = 3 / 2  # times as fast
ROWS = 8  # rows of an operand that stays where it is, read side by side (measured)
LEFT_OVER = 3 / 2  # price of blocks that leave a part over, which is code of its own


def levels(system: System) -> list[tuple[int, float]]:
    """Capacities in bytes and bytes per second (0: not known) of caches in front of home memory, smallest first."""
    return [(m.capacity, m.bandwidth or 0.0) for m in system.caches]


def caches(system: System) -> list[int]:
    """Capacities of caches in front of home memory, smallest first, in bytes."""
    return [capacity for capacity, _ in levels(system)]


def near_cache(system: System) -> int:
    """Bytes of the second nearest cache, the one that blocks are for where nothing else is said; 0 without caches."""
    return (caches(system) or [0])[:2][-1]


def block_caches(main: Nest, width: dict[str, int], system: System) -> list[int]:
    """Capacities in bytes of the caches that blocks can be made for: the second nearest, and larger ones that are known
    to be read as fast as a register block reads what its rows share."""
    need = needed(main, width, system)
    return [near_cache(system), *(size for size, bandwidth in levels(system)[2:] if bandwidth >= need)]


def needed(main: Nest, width: dict[str, int], system: System) -> float:
    """Bytes per second that a register block reads of what its rows share."""
    calls = prod(-(-width[a] // main.unit(a)) for a in main.axes if a not in main.reduced)
    return reads(main, width) * pace(main, system) / calls


def pace(main: Nest, system: System) -> float:
    """Calls of a nest's instruction in a second, each of them of full size."""
    clock = max(u.clock for u in system.units_of(main.instruction.name))
    lengths = {i: main.unit(k) for i, k in main.mapping.axes if k in main.extents}
    return clock / main.instruction.cost.cycles(main.instruction.sizes_of(lengths))


def slowed(
    main: Nest, width: dict[str, int], outer: Sequence[tuple[str, int]], system: System, bindable: frozenset[str]
) -> float:
    """How many times longer the calls of a register block take because what its rows share does not come from the near
    cache, and the next one is known to be slower than they read: for the first of the rows that read it again, but
    where it has just been laid out anew; for all of them where it does not stay. ``outer``: the blocks around, as
    :func:`outer_blocks` says."""
    speed = next((bandwidth for _, bandwidth in levels(system)[2:]), 0.0)
    vector = [a for a in main.axes if a in main.mapped and a not in main.reduced]
    if not speed or not vector:
        return 1.0
    lengths, room = {a: main.length(a) for a in (*main.reduced, *vector)}, SHARE * near_cache(system)
    share, side = 0.0, beside(main, vector[-1], width)
    for u in (u for u in brought(main) if vector[-1] in axes_of(u)):
        again, element = outside(main, u, width), size_of(u.dtype) * side
        if prod(lengths.get(a, 1) for a in axes_of(u)) * element <= room:
            continue
        inside = lengths | dict(outer)
        stays = again > 1 and prod(inside.get(a, 1) for a in axes_of(u)) * element <= room
        made = u.buffer not in bindable and again >= WORTH_PACKING
        first = prod(min(1.0, width[a] / main.length(a)) for a in width if a not in axes_of(u))
        share = max(share, 1.0 if not stays else 0.0 if made else first)
    return 1 + share * max(0.0, needed(main, width, system) / speed - 1)


def reads(main: Nest, width: dict[str, int]) -> int:
    """Bytes of what lies along the vector axes that a register block reads for one step of its sums."""
    step = {a: width.get(a, main.unit(a)) for a in main.axes}
    along = {a for a in main.mapped if a not in main.reduced}
    held = (u for u in main.uses if u.reads and not u.writes and along & set(axes_of(u)))
    return sum(prod(step[a] for a in axes_of(u)) * size_of(u.dtype) for u in held)


def streamed(main: Nest, use: Use, width: dict[str, int], bindable: frozenset[str]) -> bool:
    """Whether an operand is read along its rows where it lies, so seldom that packing it would not pay."""
    last = len(use.index) - 1
    along = [a for a in axes_of(use) if a in main.mapped and a not in main.reduced]
    if use.writes or use.buffer in bindable or not along or use.index[last].names != (along[0],):
        return False
    again, d = outside(main, use, width), use.dims.index(last)
    lies = use.steps[d] == 1 and use.strides[d] in (None, 1)
    return again < WORTH_PACKING and lies and main.length(along[0]) > width[along[0]]


def outer_blocks(
    group: Group, main: Nest, width: dict[str, int], system: System, bindable: frozenset[str]
) -> list[tuple[str, int]]:
    """The loops around all others: a few rows of an operand that stays where it is, or blocks for a cache; of columns
    alone where sums over several axes keep their order."""
    reduced = [a for a in main.axes if a in main.reduced]
    if not caches(system) or not reduced or not main.mapped:
        return []
    whole = group.exact and len(reduced) > 1
    if any(streamed(main, u, width, bindable) for u in main.uses):
        return [] if whole else [(max(reduced, key=main.length), ROWS)]
    return cache_blocks(main, width, system, bindable, whole)


def cache_blocks(
    main: Nest, width: dict[str, int], system: System, bindable: frozenset[str], whole: bool = False
) -> list[tuple[str, int]]:
    """Outer blocks so that the box shared by all rows stays in a cache, with the least traffic beyond it: what is read
    along rows is read again for every block of columns, results for every part of the reduction; what is laid out in
    every call for a farther cache goes there and back. Parts of longer panels share sets of the cache. Rows that nearly
    fit the cache themselves are read again at an eighth of the price (measured). ``whole``: sums are not cut."""
    reduced = [a for a in main.axes if a in main.reduced]
    vector = [a for a in main.axes if a in main.mapped and a not in main.reduced]
    if not vector:
        return []
    axis, along = max(reduced, key=main.length), vector[-1]
    read = brought(main)
    held = [u for u in read if along in axes_of(u)]
    shared = frozenset().union(*map(axes_of, held)) - {axis, along}
    others = prod(main.length(a) for a in (*reduced, *vector) if a in shared) * beside(main, along, width)
    column = others * max((size_of(u.dtype) for u in held), default=1)
    rows = sum(volume(main, u) * size_of(u.dtype) for u in read if along not in axes_of(u))
    results = 2 * sum(volume(main, u) * size_of(u.dtype) for u in main.uses if u.writes)
    laid = any(u.buffer in bindable for u in held)  # once for all calls, in panels of the whole sum
    away = 2 * sum(volume(main, u) * size_of(u.dtype) for u in held if u.buffer not in bindable)
    n, m, unit = main.length(axis), main.length(along), width[along]
    line = unit * max((size_of(u.dtype) for u in held), default=1)  # of a panel
    parts = dict.fromkeys([n, *(ceil(ceil(n / p) / 4) * 4 for p in (2, 3, 4, 6, 8, 12, 16, 24, 32, 64) if not whole)])
    near, *farther = block_caches(main, width, system)
    slow = needed(main, width, system) > MUCH * next((b for _, b in levels(system)[2:] if b), inf)
    slow = slow and any(outside(main, u, width) > 1 for u in held)
    best: tuple[float, int, int] | None = None
    for cache, step in product([int(FILLED * near) if slow else near, *farther], parts):
        room = cache * min(1, step / min(n, cache / WAYS / line)) if laid else cache
        most = int(room / (step * column)) // unit * unit
        for columns in even(m, max(unit, most), unit):
            traffic = ANEW * rows * ceil(m / columns) * (1 if rows > 2 * cache else 1 / 8)
            traffic += results * (ceil(n / step) - 1) + (away if cache > near else 0)
            traffic *= 1 if n % step == 0 else LEFT_OVER
            traffic *= 1 if m // unit * unit % columns == 0 else LEFT_OVER
            if not most:
                traffic += 1 << 60
            if best is None or traffic < best[0]:
                best = (traffic, columns, step)
    assert best is not None
    _, columns, step = best
    return [(a, b) for a, b in ((along, columns), (axis, step)) if b < main.length(a)]


def brought(main: Nest) -> list[Use]:
    """Operands that a nest only reads, literals apart."""
    return [u for u in main.uses if u.reads and not u.writes and u.index and not is_literal(u.buffer)]


def beside(main: Nest, along: str, width: dict[str, int]) -> int:
    """How many boxes of what is read along an axis are held side by side: all that the loops inside one that reads them
    again go through. Axes of a register block of one row are outside the others."""
    loops = sorted((a for a in main.axes if a not in main.reduced and a not in main.mapped), key=lambda a: width[a] > 1)
    most = 1
    for mine in (axes_of(u) for u in main.uses if u.reads and not u.writes and along in axes_of(u)):
        again = next((n for n, a in enumerate(loops) if a not in mine and main.length(a) > width[a]), len(loops))
        held = prod(main.length(a) if n > again else width[a] for n, a in enumerate(loops) if a in mine)
        most = max(most, held)
    return most


def even(length: int, most: int, unit: int) -> list[int]:
    """Blocks of at most about ``most`` elements, in multiples of ``unit``: of sizes as even as can be; and such that no
    block is left over, only what is less than a unit."""
    alike = ceil(ceil(length / ceil(length / most)) / unit) * unit
    units = length // unit
    divides = next((n for n in range(min(most // unit, units), 0, -1) if units % n == 0), 0)
    return [alike, divides * unit] if divides else [alike]


def volume(nest: Nest, use: Use, still: Collection[str] = ()) -> int:
    """Elements of a buffer that the nest touches, while the axes ``still`` stand still."""
    moving = nest.extents.keys() - set(still)
    return prod(1 + sum(abs(c) * (nest.length(a) - 1) for a, c in r.terms if a in moving) for r in use.index)


def outside(main: Nest, use: Use, width: dict[str, int]) -> int:
    """How often blocks that the operand has no part in make it be read again."""
    mine = axes_of(use)
    others = (a for a in main.axes if a not in mine and a not in main.reduced)
    return prod(ceil(main.length(a) / max(1, width.get(a, 1))) for a in others)
