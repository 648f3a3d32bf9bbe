"""Cache blocks: outer blocks whose boxes stay in a cache in front of home memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import product
from math import ceil, inf, prod

from isam.caches import WAYS
from isam.ir.dtype import size_of
from isam.scheduler.nests import Nest, Use
from isam.scheduler.plans.register import axes_of
from isam.scheduler.plans.request import Request
from isam.scheduler.plans.traffic import (
    WORTH_PACKING,
    boxes_held,
    brought,
    call_rate,
    needed,
    outside,
    vector_axes,
    volume,
)
from isam.system.graph import System
from isam.system.hierarchy import HIDDEN, SHARE, beyond, capacities, levels, near_cache

FILLED = 1 / 2  # of a cache that a block fills: what passes by drives out of a fuller one what is read again
FILLED_MORE = 5 / 8  # of it where the next one is much slower than it is read
FILLED_LESS = 3 / 8  # of it where two blocks share it
FULLER = (5 / 8, 3 / 4, 1.0)  # parts that a block fills where rows that pass by less often save what crowding costs
CROWDED = 1 / 16  # of the time of calls, for each whole cache that a block fills besides (measured)
FEW = 32  # sweeps over a block
SEVERAL = 3  # of them, from which on the next one is asked for meanwhile without harm (measured)
MUCH = 3 / 2  # times as fast
ROWS = 8  # rows of an operand that stays where it is, read side by side (measured)
PASSING = 2  # rows of tiles that a cache holds beside a block: those that are read, and those that were (measured)
SEEN = 1 / 16  # of the time of reads that calls hide: the fewer the better
WAIT = 90e-9  # seconds until results that a register block goes on adding to are there
LEFT_OVER = 3 / 2  # price of blocks that leave a part over, which is code of its own
NEVER = 1e9  # seconds


def slowed(
    cost: float, main: Nest, width: dict[str, int], outer: Sequence[tuple[str, int]], system: System,
    bindable: frozenset[str], common: Collection[str],
) -> float:  # fmt: skip
    """Relative cycles per call of a register block that takes ``cost`` of them while what its rows share comes from the
    near cache. Where the next one is known to be slower than they read it, calls take as long as that: for the first of
    the rows that read it again, but where it has just been laid out anew; half as long where a cache that holds all of
    it may be asked for a block during the rows before, several as they are, and two blocks have room; for all rows
    where it does not stay. As much as the near cache holds is there from the call before. ``outer``: the blocks around,
    as :func:`outer_blocks` says; ``common``: axes of all nests."""
    speed, vector = further(system), vector_axes(main)
    if speed == inf or not vector:
        return cost
    lengths, room = {a: main.length(a) for a in (*main.reduced, *vector)}, SHARE * near_cache(system)
    late, side, out = needed(main, width, system) / speed, boxes_held(main, vector[-1], width, common), cost
    for u in (u for u in brought(main) if vector[-1] in axes_of(u)):
        again, element = outside(main, u, width), size_of(u.dtype) * side
        whole = prod(lengths.get(a, 1) for a in axes_of(u)) * element
        if whole <= room:
            continue
        inside = lengths | dict(outer)
        block = prod(inside.get(a, 1) for a in axes_of(u)) * element
        stays, farther = again > 1 and block <= room, 1 - room / whole
        if stays and u.buffer not in bindable and again >= WORTH_PACKING:
            continue
        times = [max(1.0, main.length(a) / width[a]) for a in width if a not in axes_of(u)]
        share = farther / prod(map(ceil, times)) if stays else farther  # of the calls
        asked = stays and 2 * block <= room and prod(map(int, times)) >= SEVERAL and asked_ahead(u, system)
        asked = asked and beyond(whole, speed, system)[1]
        out = max(out, share * late, cost + (HIDDEN if asked else 1.0) * share * max(0.0, late - cost))
    return out


def streamed(main: Nest, use: Use, width: dict[str, int], bindable: frozenset[str]) -> bool:
    """Whether an operand is read along its rows where it lies, so seldom that packing it would not pay."""
    last = len(use.index) - 1
    along = [a for a in axes_of(use) if a in main.mapped and a not in main.reduced]
    if use.writes or use.buffer in bindable or not along or use.index[last].names != (along[0],):
        return False
    again, d = outside(main, use, width), use.dims.index(last)
    lies = use.steps[d] == 1 and use.strides[d] in (None, 1)
    return again < WORTH_PACKING and lies and main.length(along[0]) > width[along[0]]


def outer_blocks(request: Request, width: dict[str, int]) -> list[tuple[str, int]]:
    """The loops around all others: a few rows of an operand that stays where it is, or blocks for a cache; of columns
    alone where sums over several axes keep their order."""
    main, system = request.main, request.system
    reduced = [a for a in main.axes if a in main.reduced]
    if not capacities(system) or not reduced or not main.mapped:
        return []
    whole = request.group.exact and len(reduced) > 1
    if any(streamed(main, u, width, request.bindable) for u in main.uses):
        return [] if whole else [(longest(main), ROWS)]
    return cache_blocks(main, width, system, request.bindable, request.group.common, whole)


def longest(main: Nest) -> str:
    """The longest axis summed over that may be cut."""
    return max((a for a in main.reduced if a not in main.one_by_one), key=main.length)


def cache_blocks(
    main: Nest, width: dict[str, int], system: System, bindable: frozenset[str], common: Collection[str],
    whole: bool = False,
) -> list[tuple[str, int]]:
    """Outer blocks so that the box shared by all rows stays in the second nearest cache, of those the ones with which
    calls wait least, longer ones in a crowded cache counted in. Parts of longer panels share sets of the cache.
    ``common``: axes of all nests of the group; ``whole``: sums are not cut."""
    reduced = [a for a in main.axes if a in main.reduced]
    vector = vector_axes(main)
    if not vector:
        return []
    axis, along = longest(main), vector[-1]
    held = [u for u in brought(main) if along in axes_of(u)]
    shared = frozenset().union(*map(axes_of, held)) - {axis, along}
    others = prod(main.length(a) for a in (*reduced, *vector) if a in shared) * boxes_held(main, along, width, common)
    column = others * max((size_of(u.dtype) for u in held), default=1)
    laid = any(u.buffer in bindable for u in held)  # once for all calls, in panels of the whole sum
    n, m, unit = main.length(axis), main.length(along), width[along]
    line = unit * max((size_of(u.dtype) for u in held), default=1)  # of a panel
    parts = dict.fromkeys([n, *(ceil(ceil(n / p) / 4) * 4 for p in (2, 3, 4, 6, 8, 12, 16, 24, 32, 64) if not whole)])
    rows = [u for u in brought(main) if along not in axes_of(u)] if vector[1:] else []  # of tiles
    passing = PASSING * sum(rows_of(main, u, width) for u in rows)
    ahead = bool(rows) and all(asked_ahead(u, system) for u in rows)
    cache, part = near_cache(system), filled(main, width, system, held, ahead)
    waits = Waits(main, width, system, along, ahead)
    crowding = CROWDED * max(1.0, needed(main, width, system) / further(system)) if ahead else CROWDED
    best: tuple[float, int, int] | None = None
    seen = set[tuple[int, int, float, bool]]()  # blocks of one size, whatever part of the cache they are to fill
    for step, fill in product(parts, sorted({part, *(f for f in FULLER if f > part)})):
        room = max(1, int(fill * cache) - passing)
        share = min(1, step / min(n, room / WAYS / line)) if laid else 1
        most = int(share * room / (step * column)) // unit * unit
        for columns in even(m, max(unit, most), unit):
            if (size := (columns, step, share, most > 0)) in seen:
                continue
            seen.add(size)
            crowded = max(0.0, columns * step * column / share / cache - part) if cache else 0.0
            seconds = waits.seconds(columns, -(-n // step)) + crowding * crowded * waits.calls
            seconds *= LEFT_OVER ** ((n % step > 0) + (m // unit * unit % columns > 0))
            seconds += 0 if most else NEVER
            if best is None or seconds < best[0]:
                best = (seconds, columns, step)
    assert best is not None
    _, columns, step = best
    return [(a, b) for a, b in ((along, columns), (axis, step)) if b < main.length(a)]


def rows_of(main: Nest, use: Use, width: dict[str, int]) -> int:
    """Bytes of an operand that a register block reads in all steps of its sums."""
    return size_of(use.dtype) * prod(main.length(a) if a in main.reduced else width.get(a, 1) for a in axes_of(use))


def filled(main: Nest, width: dict[str, int], system: System, held: Sequence[Use], ahead: bool) -> float:
    """The part of the second nearest cache that what all rows share fills: all of it where it is read once, half of it
    where rows are asked for ``ahead``, more where the next one is much slower than it is read, less where it is read so
    seldom that the next block is asked for beside it."""
    sweeps = max((outside(main, u, width) for u in held), default=1)
    if sweeps == 1 or ahead:
        return 1.0 if sweeps == 1 else FILLED
    slow = needed(main, width, system) > MUCH * further(system)
    return FILLED_MORE if slow else FILLED_LESS if sweeps <= FEW else FILLED


def further(system: System) -> float:
    """Bytes per second from the caches behind the second; inf where that is not known."""
    return next((b for _, b in levels(system)[2:] if b), inf)


def asked_ahead(use: Use, system: System) -> bool:
    """Whether caches can be asked for what is moved to where calls read an operand."""
    moves = system.moves_by_edge.get((system.home, next(iter(use.homes), "")), ())
    return any(system.instructions[m.by].cost.prefetch is not None for m in moves)


class Waits:
    """Seconds for which the calls of a nest wait where columns and a sum are cut. For rows, which are read again for
    every block of columns: where a cache gives them, as far as they come slower than calls go on, which hide more of
    what is asked for ``ahead``. For results, with which every part of the sum but the first begins."""

    def __init__(self, main: Nest, width: dict[str, int], system: System, along: str, ahead: bool):
        rows = sum(volume(main, u) * size_of(u.dtype) for u in brought(main) if along not in axes_of(u))
        speed = next((b for _, b in levels(system)[:2][-1:] if b), needed(main, width, system))
        blocks = prod(ceil(main.length(a) / width[a]) for a in main.axes if a not in main.reduced)
        rate, cached = (speed, True) if rows <= 2 * near_cache(system) else beyond(rows, speed, system)
        self.rows, self.columns = rows / rate if rate else 0.0, main.length(along)
        self.calls = main.calls() / call_rate(main, system)
        self.hidden = (1.0 if ahead else HIDDEN) * self.calls if cached else 0.0
        self.results = WAIT * blocks * sum(u.writes for u in main.uses)

    def seconds(self, columns: int, parts: int) -> float:
        """With blocks of so many columns, and parts of the sum."""
        rows = self.rows * ceil(self.columns / columns)
        hidden = min(rows, self.hidden)
        return rows - hidden + SEEN * hidden + self.results * (parts - 1)


@lru_cache(1 << 10)  # of most blocks the same few are asked
def even(length: int, most: int, unit: int) -> tuple[int, ...]:
    """Blocks of at most about ``most`` elements, in multiples of ``unit``: of sizes as even as can be; and such that no
    block is left over, only what is less than a unit."""
    alike = ceil(ceil(length / ceil(length / most)) / unit) * unit
    units = length // unit
    divides = next((n for n in range(min(most // unit, units), 0, -1) if units % n == 0), 0)
    return (alike, divides * unit) if divides else (alike,)
