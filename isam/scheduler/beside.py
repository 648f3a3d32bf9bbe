"""Tiles of a block that lie side by side at home lie so near its calls, too: one move brings them, and one takes
results home, where every move costs a set-up (SCH-4, SCH-9)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from isam.ir.dtype import size_of
from isam.schedule.tree import Place, Tile
from isam.scheduler.edges import SOONER, along
from isam.scheduler.hops import End
from isam.scheduler.infeasible import NoSchedule
from isam.scheduler.joining import wanted_together
from isam.scheduler.move import sub_place
from isam.scheduler.nests import Use
from isam.scheduler.sources import source_of
from isam.scheduler.state import Copy, Key
from isam.scheduler.transfer import Transfer
from isam.system.graph import MANAGED

if TYPE_CHECKING:
    from isam.scheduler.residency import Residency

HIDDEN = 0.5  # of the time of moves: calls that take more hide a good part of them


def bring_beside(data: Residency, use: Use, tile: Tile, key: Key, pinned: Collection[Key]) -> bool:
    """Brings a tile together with those beside it that calls of the block read next, if there is room for all as it is,
    and nothing of them is fresher than what they come from; whether that was done."""
    memory, _, form = key
    if not _apart(data, key) or not _waited_for(data):
        return False
    ahead, ranges = data.block.read_ahead(tile, use), data.scope.ranges
    tiles = strip(tile, [t for t in ahead if t == tile or (memory, t, form) not in data.state.copies])
    tiles = _around(tiles, tile, [t == tile or not data.block.changes(t, ranges) for t in tiles])
    box, each = box_of_strip(tiles), data.fit.units(memory, tile, form)
    if len(tiles) < 2 or any(data.state.copies[k].dirty for k in data.state.meeting(box, ranges)):
        return False
    at = data.state.find_room(data.system.memories[memory], each * len(tiles))
    if at is None:
        return False
    try:
        source = source_of(data, box, memory, form)
        begin = source.place_of(box)
        if begin is None or not _lies_there(source, begin, box, tiles):
            return False
    except NoSchedule:  # it would not begin where an access may
        return False
    place = data.fit.placed(memory, box, at, form)
    target = End(memory, lambda t: sub_place(place, box, t), form, alone=True)
    held = {key, *pinned, *(k for k in data.state.of(box.buffer) if k[0] == source.memory)}
    if not _carried(data, box, source, target, len(tiles), held):
        return False
    for n, t in enumerate(tiles):
        there = data.fit.placed(memory, t, at + n * each, form)
        data.state.put((memory, t, form), replace(data.fit.copy(memory, t, there, False, form), beside=True))
        data.since.fetch((memory, t, form), ranges)
    data.state.next[memory] = at + each * len(tiles)
    return True


def room_beside(data: Residency, use: Use, tile: Tile, key: Key, pinned: set[Key]) -> Copy:
    """A copy for a result: in room for it and those beside it which calls of the block write next, where there is some,
    so that they may leave together."""
    memory, _, form = key
    at = None if use.reads or not _apart(data, key) or not _waited_for(data) else _promised(data, use, tile, key)
    if at is None:
        return data.fit.copy(memory, tile, data.room(memory, tile, pinned, form), True, form)
    return replace(data.fit.copy(memory, tile, data.fit.placed(memory, tile, at, form), True, form), beside=True)


def _promised(data: Residency, use: Use, tile: Tile, key: Key) -> int | None:
    """Where room for a result begins that it has beside others; None: there is none."""
    memory, _, form = key
    each, state, promised = data.fit.units(memory, tile, form), data.state, data.block.promised
    at = promised.pop(key, None)
    if at is not None and state.free(memory, at, each):
        return at
    tiles = strip(tile, data.block.written_ahead(tile, use))
    begin = state.find_room(data.system.memories[memory], each * len(tiles)) if len(tiles) > 1 else None
    if begin is None:
        return None
    promised |= {(memory, t, form): begin + n * each for n, t in enumerate(tiles)}
    state.next[memory] = begin + each * len(tiles)
    return promised.pop(key)


def leave_beside(data: Residency, key: Key, keys: Sequence[Key], pinned: Collection[Key]) -> bool:
    """Sends a dirty copy home together with those of ``keys`` beside it, at home and here; whether that was done."""
    (memory, tile, form), copies = key, data.state.copies
    if not copies[key].beside:
        return False
    each, begin = data.fit.units(memory, tile, form), copies[key].place.offset.const
    tiles = strip(tile, [k[1] for k in keys if k[0] == memory and copies[k].beside])
    mine = tiles.index(tile)
    here = [copies[memory, t, form].place.offset.const == begin + (n - mine) * each for n, t in enumerate(tiles)]
    tiles = _around(tiles, tile, here)
    if len(tiles) < 2:
        return False
    box, place = box_of_strip(tiles), copies[memory, tiles[0], form].place
    own = data.fit.placed(memory, box, place.offset.const, form)
    source, target = End(memory, lambda t: sub_place(own, box, t), form), End(data.homes.of(tile.buffer), data.home)
    try:
        there = _lies_there(target, data.home(box), box, tiles)
    except NoSchedule:
        return False
    mine_all = [(memory, t, form) for t in tiles]
    if not there or not _carried(data, box, source, target, len(tiles), {*mine_all, *pinned}):
        return False
    for k in mine_all:
        data.state.mark(k, False)
    return True


def strip(tile: Tile, tiles: Iterable[Tile]) -> list[Tile]:
    """The longest run of tiles with this one that follow each other along one dimension, so that all of them packed are
    one box, and each of them is a piece of it."""
    best, alike = [tile], [t for t in tiles if t.shape == tile.shape and t.steps == tile.steps]
    for d, n in enumerate(tile.shape):
        at = {0: tile}
        for t in alike if tile.steps[d] == 1 else ():
            if all(a == b for e, (a, b) in enumerate(zip(tile.start, t.start, strict=True)) if e != d):
                away = t.start[d] - tile.start[d]
                if away.is_constant and away.const % n == 0:
                    at[away.const // n] = t
        low = next(i for i in range(0, -len(at) - 1, -1) if i - 1 not in at)
        high = next(i for i in range(len(at) + 1) if i + 1 not in at)
        if high - low + 1 > len(best):
            best = [at[i] for i in range(low, high + 1)]
        if n > 1:
            break
    return best


def _around(tiles: Sequence[Tile], tile: Tile, able: Sequence[bool]) -> list[Tile]:
    """Of a run of tiles the part around this one that is able."""
    mine = tiles.index(tile)
    low = next((n + 1 for n in range(mine, -1, -1) if not able[n]), 0)
    return [*tiles[low : next((n for n in range(mine, len(tiles)) if not able[n]), len(tiles))]]


def box_of_strip(tiles: Sequence[Tile]) -> Tile:
    """What a run of tiles fills."""
    first, last = tiles[0], tiles[-1]
    shape = ((b - a).const + n for a, b, n in zip(first.start, last.start, first.shape, strict=True))
    return Tile(first.buffer, first.start, tuple(shape), first.steps)


def _apart(data: Residency, key: Key) -> bool:
    """Whether tiles lie in a memory by their addresses, one behind the other without gaps, each where room may begin,
    so that any operand may find it there."""
    memory, tile, form = key
    m, size = data.system.memories[memory], data.fit.units(memory, tile, form)
    plain = m.kind == MANAGED and m.cells is None and not m.row and form is None and bool(tile.shape)
    exact = prod(tile.shape) * size_of(data.homes.dtype(tile.buffer)) == size and size % max(1, m.align) == 0
    return plain and exact and memory not in data.system.filled and not data.shared(memory)


def _waited_for(data: Residency) -> bool:
    """Whether the calls of the block take so little time beside what they are brought and leave, each tile by itself,
    that they wait for that: else it is hidden behind them, as long as it comes in small pieces."""
    block = data.block
    if block.waited_for is None:
        busy: dict[str, float] = {}
        moved: dict[str, float] = {}
        for nest, _, sizes, _ in block.calls:
            i = nest.instruction
            busy[i.name] = busy.get(i.name, 0.0) + i.average(sizes) / data.system.clock_of(i.name)
        for t, u, reads in block.firsts():
            if not data.state.holding(t):
                home, near = data.homes.of(t.buffer), u.homes[0] if u.homes else data.system.home
                path = data.fit.route(*((home, near) if reads else (near, home)), u.dtype) or ()
                for e in along(data.system, path, u.dtype):
                    moved[e.issuer] = moved.get(e.issuer, 0.0) + e.seconds(1, prod(t.shape) * size_of(u.dtype), 1)
        block.waited_for = max(busy.values(), default=0.0) <= HIDDEN * max(moved.values(), default=0.0)
    return block.waited_for


def _lies_there(end: End, begin: Place, box: Tile, tiles: Sequence[Tile]) -> bool:
    """Whether every tile lies at an end as its part of the box does."""
    return all(end.place_of(t) == sub_place(begin, box, t) for t in tiles)


def _carried(data: Residency, box: Tile, source: End, target: End, count: int, held: set[Key]) -> bool:
    """Carries so many tiles in one move per hop, where that can be and is wanted; whether that was done."""
    dtype = data.homes.dtype(box.buffer)
    path = data.fit.route(source.memory, target.memory, dtype) or ()
    edges, size = along(data.system, path, dtype), prod(box.shape) * size_of(dtype)
    one, apart = (sum(e.seconds(n, size, 1) for e in edges) for n in (1, count))
    if not edges:
        return False
    transfer = Transfer(data, box, path, source, target, held)
    if not transfer.whole():
        return False
    if not wanted_together(data, box.buffer, path, count, size, (apart, one), SOONER):
        return False
    try:
        transfer.run()
    except NoSchedule:  # no room on the way: nothing got there
        return False
    return True
