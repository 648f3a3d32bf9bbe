"""Register blocks: how many tiles of each axis stay in the memories next to the unit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from math import ceil, prod
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from isam.caches import LINE
from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.once import once
from isam.schedule.literals import is_literal
from isam.scheduler.edges import quickest
from isam.scheduler.nests import Nest, Use
from isam.scheduler.plan import Group
from isam.scheduler.plans.windows import window_alone
from isam.scheduler.trim import segments
from isam.system.graph import COUNTED, System

if TYPE_CHECKING:
    from isam.scheduler.plans.fed import Fed

SMALL = 6  # calls of a block of which four steps of a reduction are unrolled
FEW = 8  # calls of a block without a sum: enough to hide their latency
LONG = 8  # cycles of a call of each nest, beside which the loop around a block takes little
NEVER_FULL = 1.1  # times as long as it is needed, what everything waits for is taken (measured)
OVERLAPPED = 64  # steps of a sum of which a core hides half the latency behind the next block's
ANOTHER_KIND = 0.04  # by how much each kind of block beyond the first of an axis makes all dearer
FULL = 1.03  # times as long, where no room for another tile is left: no longer by itself, but others may want it
ITERATION = 2.0  # what a block without a sum costs beside its calls
USUAL = 0.5  # times as long as a call, that a load takes where nothing tells
WAITED = 0.15  # relative cycles a call, for each call more that would hide the latency of sums (guessed)
PUT_DOWN = 0.02  # the same for each result of a block that is put down behind its sum (guessed)
SEEN = 0.3  # of the time of loads, what calls do not hide: others share their ports and caches (measured)
BACK_AND_FORTH = 8.0  # relative cycles per call whose results go home and come back: at least (30 were measured)
NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True)
class RegisterBlock:
    """How many tiles of each axis the innermost block holds, and the model's cost per call. ``outer``: the loops around
    all others, where these are known, as :func:`isam.scheduler.plans.cache.outer_blocks` says."""

    tiles: tuple[tuple[str, int], ...]
    cost: float
    outer: tuple[tuple[str, int], ...] | None = None

    def __str__(self) -> str:
        return "block of " + " x ".join(f"{n} {a}" for a, n in self.tiles)

    def of(self, axis: str) -> int:
        return dict(self.tiles).get(axis, 1)

    @property
    def calls(self) -> int:
        return prod(n for _, n in self.tiles)

    def widths(self, nest: Nest) -> dict[str, int]:
        """Elements of each parallel axis of the nest in the block."""
        return {a: self.of(a) * nest.unit(a) for a in nest.axes if a not in nest.reduced}


def operand_memories(nest: Nest, system: System) -> tuple[str, ...]:
    """The memories, other than home, that the nest's operands must be brought to, in the order of the description: in
    which order an instruction declares its operands says nothing."""
    wanted = {u.homes[0] for u in nest.uses if u.homes}
    return tuple(m for m in system.memories if m in wanted and m != system.home)


class Room:
    """The memories next to a nest's unit, in cells (bytes where there are none). Operands with several homes may be
    spread over them; one tile's room is left for what passes through, or where each operand has a memory for itself
    what calls of other nests bring there, ``passing``: as :func:`passing` says. Through registers that the code
    generator allocates nothing but that passes: it loads into one that the call before has read."""

    def __init__(self, nest: Nest, system: System, passing: Mapping[str, int] = NOTHING):
        pools = {n: m.pool for n, m in system.memories.items()}
        self.homes = [tuple(dict.fromkeys(pools[h] for h in u.homes if h != system.home)) for u in nest.uses]
        self.sizes = [self._size(nest, u, system) for u in nest.uses]
        self.limit = {h: system.memories[h].limit for homes in self.homes for h in homes}
        self.largest = max([s for s, h in zip(self.sizes, self.homes, strict=True) if h], default=0)
        allocated = not passing and all(system.memories[m].kind == COUNTED for m in self.limit)
        self.spare = 0 if allocated else self.largest
        self.passing = passing if self._apart else NOTHING
        self.loads = [load_time(nest, u, system) for u in nest.uses]
        written = [n for n, u in enumerate(nest.uses) if u.writes and self.homes[n]]
        rooms = [sum(self.limit[h] - self.passing.get(h, 0) for h in self.homes[n]) // self.sizes[n]
                 - self._passing(nest, n) for n in written]  # fmt: skip
        self.outputs = max(1, min(rooms, default=1))

    def _passing(self, nest: Nest, written: int) -> bool:
        """Whether operands that are only read pass through the memories of one that is written."""
        mine = set(self.homes[written])
        return any(mine & set(h) for u, h in zip(nest.uses, self.homes, strict=True) if not u.writes)

    @staticmethod
    def _size(nest: Nest, use: Use, system: System) -> int:
        """Cells or bytes of one tile of the operand."""
        m = system.memories[use.homes[0]] if use.homes else None
        n = tile_bytes(nest, use, system)
        return max(1, n if m is None or m.cells is None else -(-n // (m.cell or 1)))

    def holds(self, tiles: list[int], free: int = 0) -> bool:
        """Whether so many tiles of each operand fit together: in every set of memories what can live nowhere else, and
        so much more stays ``free``."""
        for bound, room, spare in self.sets:
            need = sum([tiles[n] * self.sizes[n] for n in bound])
            if need and need + spare + free > room:
                return False
        return True

    @cached_property
    def _apart(self) -> bool:
        """Whether there are several memories, each for one operand: nothing else passes through."""
        near = [h for homes in self.homes for h in homes]
        return len(near) > 1 and len(near) == len(self.limit)

    @cached_property
    def sets(self) -> list[tuple[list[int], int, int]]:
        """Of every set of memories the operands that can live nowhere else, its room, and what of it is spared."""
        names, out = sorted(self.limit), []
        for chosen in range(1, 1 << len(names)):
            some = {n for i, n in enumerate(names) if chosen >> i & 1}
            bound = [n for n, homes in enumerate(self.homes) if homes and some.issuperset(homes)]
            spare = self.spare if len(some) == len(names) and not self._apart else 0
            spare += sum(self.passing.get(n, 0) for n in some)
            out.append((bound, sum(self.limit[n] for n in some), spare))
        return out


def load_time(nest: Nest, use: Use, system: System) -> float:
    """How many times as long as a call it takes to bring a tile of an operand from home next to the unit; ``USUAL``
    where another memory lies between, where no cache does, where calls take no time to compare with, and for windows,
    which share what they read."""
    if not system.caches or not nest.cycles or not use.homes or use.homes[0] == system.home:
        return USUAL
    if window_alone(nest, use):
        return USUAL
    edge = quickest(system, system.home, use.homes[0], use.dtype)
    if edge is None:
        return USUAL
    return edge.seconds(1, tile_bytes(nest, use, system), 1) * system.clock_of(nest.instruction.name) / nest.cycles


def passing(group: Group, main: Nest, system: System) -> dict[str, int]:
    """What one call of another nest of a group takes at most, of memories other than home, beside what calls of the
    main one have there: cells, or bytes where there are none. Of registers that the code generator allocates nests
    before or behind the sum take those of its operands."""
    had = {(u.buffer, h) for u in main.uses for h in u.homes[:1]}
    out: dict[str, int] = {}
    for nest in group.nests:
        here, within = dict[str, int](), not set(nest.axes).isdisjoint(main.reduced)
        for u in nest.uses if nest is not main else ():
            memory = system.memories[u.homes[0]] if u.homes else None
            if memory is None or memory.name == system.home or (u.buffer, memory.name) in had:
                continue
            if memory.kind == COUNTED and not within:
                continue
            grain = memory.cell or max(1, memory.align)
            parts = -(-tile_bytes(nest, u, system) // grain)
            here[memory.pool] = here.get(memory.pool, 0) + parts * (1 if memory.cells else grain)
        out |= {m: max(n, out.get(m, 0)) for m, n in here.items()}
    return out


def tile_bytes(nest: Nest, use: Use, system: System) -> int:
    n = size_of(use.dtype)
    memory = system.memories.get(use.homes[0]) if use.homes else None
    if memory is not None and memory.lanes:
        return n * memory.elements(use.dtype)
    for a in nest.mapped:
        if any(a in r.names for r in use.index):
            n *= nest.unit(a)
    return n


@once
def axes_of(use: Use) -> frozenset[str]:
    return frozenset(n for r in use.index for n in r.names)


def least(group: Group, main: Nest) -> dict[str, int]:
    """Tiles of an axis below which no block of the main nest may go, because one call of another nest takes as much."""
    units = {a: group.unit(a) for a in main.axes}
    return {a: -(-min(u, main.length(a)) // max(1, main.unit(a))) for a, u in units.items() if u > main.unit(a)}


class Crossed(NamedTuple):
    """Rows that a vector crosses, one element of each: the ``axis`` that they lie along, how many a ``vector``
    crosses, and how many elements of one are near each other: in one line, and no more than there are rows."""

    axis: str
    vector: int
    near: int


def crossed(nest: Nest, use: Use) -> Crossed | None:
    """The rows that the vectors of a use go across, if they do."""
    along, lanes = use.index[-1].names if use.index else (), [a for a in nest.mapped if a in axes_of(use)]
    if len(along) != 1 or not lanes or along[0] in nest.mapped:
        return None
    vector = prod(nest.unit(a) for a in lanes)
    return Crossed(along[0], vector, max(1, min(vector, LINE // size_of(use.dtype))))


def across(group: Group, main: Nest) -> list[Crossed]:
    """The rows that vectors of a group go across, along axes of the main nest."""
    found = (crossed(n, u) for n in group.nests for u in n.uses)
    return [c for c in found if c is not None and c.axis in main.axes]


def under_way(group: Group) -> int:
    """Calls of each nest in a block without a sum that hide what they wait for: as many as have the latency of all
    nests together in their time (Little's law). More of them keep more in registers, which a code generator allocates
    beside those of a function's own code, and read more rows at a time. Where all of them take little time the loop
    around a block does not, so that it has the usual number."""
    cycles = sum(n.cycles for n in group.nests)
    if cycles < LONG:
        return FEW
    behind = sum(n.instruction.cost.behind for n in group.nests)
    return min(FEW, 1 + ceil(behind / cycles))


def blocks(
    nest: Nest, system: System, floor: dict[str, int], apart: Sequence[Crossed] = (),
    beside: Mapping[str, int] = NOTHING, fed: Fed | None = None, few: int = FEW,
) -> list[RegisterBlock]:  # fmt: skip
    """Register blocks that fit, best predicted cost first, among equals without a sum those along inner axes, whose
    elements lie together; ``floor``: as :func:`least` says; ``apart``: as :func:`across` does; ``beside``: as
    :func:`passing`; ``fed``: what tiles cost beside calls, where that is known; ``few``: as :func:`under_way`."""
    reducing = bool(nest.reduced) and prod(nest.length(a) for a in nest.reduced) > 1
    costs = BlockCosts(nest, Room(nest, system, beside), reducing, apart, fed)
    limit = costs.room.outputs if reducing else min(costs.room.outputs, max([few, *(r.near for r in apart)]))
    found: list[RegisterBlock] = []
    for tiles in costs.candidates(costs.axes, limit, floor):
        cost = costs.of(tiles)
        if cost is not None:
            found.append(RegisterBlock(tuple(sorted(tiles.items())), cost))
    inner = [] if reducing else costs.axes[::-1]
    found.sort(key=lambda b: (b.cost, *(-b.of(a) for a in inner)))
    return found


def completed(nest: Nest, system: System, given: dict[str, int], beside: Mapping[str, int]) -> RegisterBlock | None:
    """The best register block of a nest with a sum some of whose axes have their tiles already; None when none fits.
    ``beside``: as :func:`passing`."""
    costs = BlockCosts(nest, Room(nest, system, beside), True)
    free = [a for a in costs.axes if a not in given]
    best: RegisterBlock | None = None
    for tiles in costs.candidates(free, costs.room.outputs, {}):
        tiles |= {a: n for a, n in given.items() if a in costs.axes}
        cost = costs.of(tiles)
        if cost is not None and (best is None or cost < best.cost):
            best = RegisterBlock(tuple(sorted(tiles.items())), cost)
    return best


class BlockCosts:
    """What register blocks of a nest cost, in relative cycles per useful call. ``reducing``: accumulators stay in the
    memories next to the unit; ``axes``: those that are not summed over; ``counts``: tiles along each; ``apart``: rows
    that vectors go across; ``fed``: as :func:`blocks` says."""

    def __init__(
        self, nest: Nest, room: Room, reducing: bool, apart: Sequence[Crossed] = (), fed: Fed | None = None
    ):
        self.nest, self.room, self.reducing, self.apart, self.fed = nest, room, reducing, apart, fed
        self.rounds = prod(-(-nest.length(a) // nest.unit(a)) for a in nest.reduced)
        self.chain = 1 + nest.instruction.cost.behind / nest.cycles if nest.cycles else FEW
        self.alone = self.rounds / (self.rounds + OVERLAPPED)
        self.axes = [a for a in nest.axes if a not in nest.reduced]
        self.counts = {a: -(-nest.length(a) // nest.unit(a)) for a in self.axes}
        self._written = [self._along(u) for u in nest.uses if u.writes]
        loads = zip(nest.uses, room.loads, strict=True)
        self._read = [(self._along(u), t) for u, t in loads if not u.writes and not is_literal(u.buffer)]
        self._cuts: dict[tuple[str, int], list[tuple[int, float]]] = {}
        self._sliding = [(u, [a for a in self.axes if any(_slides(r, a, self.axes) for r in u.index)])
                         for u in nest.uses if u.writes]  # fmt: skip
        self._met: dict[tuple[int, ...], bool] = {}

    def _along(self, use: Use) -> list[str]:
        return [a for a in self.axes if a in axes_of(use)]

    def candidates(self, free: list[str], limit: int, floor: dict[str, int]) -> Iterator[dict[str, int]]:
        """Numbers of tiles per axis of ``free``: three axes are blocked, the last ones named first, and one more where
        the block has all of what it counts: few rows of a batch, and several batches."""
        wide = [a for a in reversed(free) if self.counts[a] > 1 and a not in self.nest.one_by_one]
        for tiles in self._tiles(wide[:3], limit, floor):
            yield tiles
            for a in wide[3:4]:
                if self._counts_whole(a, tiles):
                    further = self._tiles([a], limit // prod(tiles.values()), floor)
                    yield from (tiles | more for more in further if more[a] > 1)

    def _tiles(self, axes: list[str], limit: int, floor: dict[str, int]) -> Iterator[dict[str, int]]:
        ranges = [self._sizes(a, floor.get(a, 1), min(self.counts[a], limit)) for a in axes]
        return (dict(zip(axes, combo, strict=True)) for combo in product(*ranges) if prod(combo) <= limit)

    def _sizes(self, axis: str, least: int, most: int) -> list[int]:
        """How many tiles along an axis a block may have: those of which some block that it is cut into has as many."""
        return [n for n in range(least, most + 1, least) if self._cut(axis, n)[0][0] == n]

    def _counts_whole(self, axis: str, tiles: dict[str, int]) -> bool:
        """Whether a block has all that lies within an axis, of whatever is read along it."""
        rows = [axes[axes.index(axis) + 1 :] for axes, _ in self._read if axis in axes]
        return all(tiles.get(a, 1) == self.counts[a] for axes in rows for a in axes)

    def of(self, tiles: dict[str, int]) -> float | None:
        """None when the block does not fit the memories next to the unit."""
        per = {a: tiles.get(a, 1) for a in self.axes}
        full = 1.0
        if self.reducing and fitting_order(self.nest, per, self.room, self.room.largest - self.room.spare) is None:
            if fitting_order(self.nest, per, self.room) is None:
                return None
            full = FULL
        cuts = [self._cut(a, n) for a, n in per.items()]
        kinds = prod([1 + ANOTHER_KIND * (len(c) - 1) for c in cuts])
        return full * kinds * sum([prod([share for _, share in kind]) * self._per_call([n for n, _ in kind])
                            for kind in product(*cuts)])  # fmt: skip

    def _cut(self, axis: str, per: int) -> list[tuple[int, float]]:
        """The sizes that blocks of so many tiles along an axis have, and which share of all tiles is in each."""
        if (axis, per) not in self._cuts:
            n = self.counts[axis]
            cut = segments(n, per, 1, self.nest.unit(axis) > 1)
            self._cuts[axis, per] = [(s.size, s.size * s.count / n) for s in cut]
        return self._cuts[axis, per]

    def _per_call(self, tiles: Sequence[int]) -> float:
        """What a call costs in a block of so many tiles along each axis."""
        per = dict(zip(self.axes, tiles, strict=True))
        calls = prod(tiles)
        outs = sum([prod([per[a] for a in axes]) for axes in self._written])
        read = [(prod([per[a] for a in axes]), t) for axes, t in self._read]
        ins = sum([n for n, _ in read])
        apart = BACK_AND_FORTH if self.reducing and self._meet(per) else 0.0
        if not self.reducing:
            lines = sum([r.vector / min(r.near, per.get(r.axis, 1) * self.nest.unit(r.axis)) for r in self.apart])
            return (ins + outs + ITERATION) / calls + lines
        if self.fed is None:
            busy = max(1.0, NEVER_FULL * ins / calls)
            if len(self._read) > 1:  # else what is read takes longer, or others beside it do
                busy = max(busy, 1 + self.alone * (NEVER_FULL * self.chain / calls - 1))  # waits for the sum it adds to
        else:
            busy = self.fed.per_call(together(self.nest, per), calls, self.rounds)
        latency = FEW / min(FEW, calls)  # independent accumulators hide the latency of the unit
        loads = SEEN * sum([n * t for n, t in read]) / calls
        return busy + apart + loads + WAITED * (latency - 1) + PUT_DOWN * outs / calls

    def _meet(self, per: Mapping[str, int]) -> bool:
        """Whether some tiles of results of a block have a part of their elements in common (``y[2 * i + k]`` of several
        ``k``, and vectors along ``i``): no two of them are near at once."""
        for n, (use, axes) in enumerate(self._sliding):
            at = [per[a] for a in axes]
            if max(at, default=1) > 1:
                key = n, *at
                if key not in self._met:
                    self._met[key] = _overlap(self.nest, use, dict(zip(axes, at, strict=True)))
                if self._met[key]:
                    return True
        return False


def _slides(row: Affine, axis: str, axes: Sequence[str]) -> bool:
    """Whether an index depends on the axis and on others, too."""
    return axis in row.names and len(set(axes).intersection(row.names)) > 1


def _overlap(nest: Nest, use: Use, per: Mapping[str, int]) -> bool:
    """Whether two tiles of an operand, of so many along certain axes, are neither apart nor the same."""
    places = [dict(zip(per, at, strict=True)) for at in product(*map(range, per.values()))]
    tiles = {tuple([_indices(nest, r, at) for r in use.index]) for at in places}
    return len({e for rows in tiles for e in product(*rows)}) < sum([prod(map(len, rows)) for rows in tiles])


def _indices(nest: Nest, row: Affine, at: Mapping[str, int]) -> tuple[int, ...]:
    """What an index is within one tile, the tiles of an axis being numbered from 0; of the axes that tiles are
    numbered along alone."""
    steps = [[c * (nest.unit(a) * at[a] + n) for n in range(nest.unit(a))] for a, c in row.terms if a in at]
    return tuple([sum(some) for some in product(*steps)])


def together(nest: Nest, per: dict[str, int]) -> list[int]:
    """Tiles of each operand in a block."""
    reduced = set(nest.reduced)
    return [0 if is_literal(u.buffer) else prod([per.get(a, 1) for a in axes_of(u) if a not in reduced])
            for u in nest.uses]  # fmt: skip


def live(nest: Nest, tiles: list[int], axis: str, per: int) -> list[int]:
    """Tiles of each operand that are there together, of those in a block: those along the outermost axis, ``per`` in
    the block, come one by one."""
    if per <= 1:
        return tiles
    return [n // per if axis in axes_of(u) and not u.writes else n for u, n in zip(nest.uses, tiles, strict=True)]


def unroll_order(nest: Nest, per: dict[str, int], room: Room) -> list[str]:
    """Reduced axes outermost, then the others so that operands of the largest axis stream by one at a time; those of
    another axis where there is no room else."""
    return fitting_order(nest, per, room) or _by_size(nest, per)


def _by_size(nest: Nest, per: dict[str, int]) -> list[str]:
    rest = [a for a in nest.axes if a not in nest.reduced]
    return sorted(rest, key=lambda a: (-per.get(a, 1) if a not in nest.mapped else 1, rest.index(a)))


def fitting_order(nest: Nest, per: dict[str, int], room: Room, free: int = 0) -> list[str] | None:
    """The first order of unrolling with which the block fits, and leaves so much ``free``; None where there is none."""
    rest, tiles = _by_size(nest, per), together(nest, per)
    for a in rest or [""]:
        if room.holds(live(nest, tiles, a, per.get(a, 1)), free):
            return [a, *(b for b in rest if b != a)] if a else []
    return None


def in_flight(main: Nest, tiles: Mapping[str, int], system: System) -> int:
    """Steps of a reduction in an iteration whose tiles moves bring while calls work on others: two where there is room
    for the tiles of both, four of a small block."""
    room = Room(main, system)
    for n in (4, 2) if prod(tiles.values()) <= SMALL else (2,):
        if room.holds([prod(tiles.get(a, 1) for a in axes_of(u)) * (1 if u.writes else n) for u in main.uses]):
            return n
    return 1


def steps(calls: int) -> int:
    """Steps of a reduction that are unrolled: enough calls to hide the loop around a block of so many, and two of large
    blocks: of many rows that fall on few sets of a cache two elements are taken while their lines are there."""
    return 4 if calls < 16 else 2 if calls < 32 else 1
