"""Results of a block that lie as one box from the beginning, where an edge leads home from the memory that they are
computed in and each move along it costs a set-up: they leave in one piece (SCH-9)."""

from __future__ import annotations

from itertools import combinations
from math import ceil, prod
from typing import TYPE_CHECKING

from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.tree import Tile
from isam.scheduler.edges import gathers, quickest
from isam.scheduler.hops import End
from isam.scheduler.joining import wanted_together
from isam.scheduler.move import sub_place
from isam.scheduler.nests import Nest, Use
from isam.scheduler.state import Key
from isam.scheduler.tiles import disjoint, encloses
from isam.scheduler.transfer import Transfer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isam.scheduler.residency import Residency
    from isam.system.graph import Memory

MOST = 64  # tiles of a box
HALF = 0.5  # of the time of its tiles one by one, that it may take: it leaves when all of it is complete, they earlier


def part_of(data: Residency, nest: Nest, use: Use, key: Key) -> Key:
    """The copy that a call's operand is to be in: of a box that is there, or begins with it, or its own."""
    memory, tile, _ = key
    there = data.system.memories[memory]
    if not there.scratchpad or there.cells is not None or memory in data.system.filled or key in data.state.copies:
        return key
    begins = use.writes and not any(u.reads and u.index for u in nest.uses)
    found = None
    if data.state.dirty(tile.buffer) and (use.reads or begins):  # else what it reads would lie in the same place
        found = _around(data, use, key)
    if found is None and begins and gathers(data.system, there) and data.lifetimes.summed(tile.buffer):
        found = _begun(data, nest, use, key)
    return found or key


def takes_part(data: Residency, use: Use, memory: Memory, whole: Tile, part: Tile) -> bool:
    """Whether a call may take a part of a tile that lies in a memory."""
    if not memory.scratchpad or memory.cells is not None or memory.name in data.system.filled:
        return False
    return data.able(use, part, sub_place(data.fit.placed(memory.name, whole, 0), whole, part))


def _around(data: Residency, use: Use, key: Key) -> Key | None:
    """The dirty copy of a larger tile, of which a call takes a part where it lies."""
    memory, tile, _ = key
    for other in data.state.meeting(tile, data.scope.ranges):
        copy = data.state.copies[other]
        if other[0] == memory and copy.dirty and copy.stage is None and other[2] is None:
            inside = encloses(other[1], tile, data.scope.ranges)
            return other if inside and data.able(use, tile, sub_place(copy.place, other[1], tile)) else None
    return None


def _begun(data: Residency, nest: Nest, use: Use, key: Key) -> Key | None:
    """The box of all that the calls of a nest in the present block begin, where none of it is there, there is room, and
    it is to be home in one piece, not tile by tile."""
    memory, tile, _ = key
    tiles = data.block.results(nest, use)
    box = box_of_all(tiles) if 1 < len(tiles) <= MOST and tile in tiles else None
    if box is None or data.state.meeting(box, data.scope.ranges) or data.shared(memory):
        return None
    home, dtype, there = data.homes.of(tile.buffer), data.homes.dtype(tile.buffer), data.system.memories[memory]
    edge = quickest(data.system, memory, home, dtype) if data.fit.route(memory, home, dtype) == (memory, home) else None
    at = data.state.find_room(there, data.fit.units(memory, box))
    if edge is None or at is None:
        return None
    place = data.fit.placed(memory, box, at)
    if not all(data.able(use, t, sub_place(place, box, t)) for t in tiles):
        return None
    onwards = Transfer(data, box, (memory, home), End(memory, lambda t: sub_place(place, box, t)),
                       End(home, data.home), set())  # fmt: skip
    if not onwards.possible():
        return None
    moves = prod(ceil(n / m) for n, m in zip(box.shape, onwards.part, strict=True))
    size = prod(box.shape) * size_of(dtype)
    took = edge.seconds(len(tiles), size, 1), edge.seconds(moves, size, 1)
    joined = wanted_together(data, tile.buffer, (memory, home), len(tiles), size, took, HALF)
    return (memory, box, None) if joined else None


def box_of_all(tiles: Sequence[Tile]) -> Tile | None:
    """The box that tiles of any shapes fill, each element once; None where they do not."""
    first, start, shape = tiles[0], list[Affine](), list[int]()
    for d, begin in enumerate(first.start):
        away = [t.start[d] - begin for t in tiles]
        if any(not a.is_constant for a in away) or any(t.steps[d] != 1 for t in tiles):
            return None
        low = min(a.const for a in away)
        start.append(begin + low)
        shape.append(max(a.const + t.shape[d] for a, t in zip(away, tiles, strict=True)) - low)
    filled = sum(prod(t.shape) for t in tiles) == prod(shape)
    if not filled or any(not disjoint(a, b, {}) for a, b in combinations(tiles, 2)):
        return None
    return Tile(first.buffer, tuple(start), tuple(shape), first.steps)
