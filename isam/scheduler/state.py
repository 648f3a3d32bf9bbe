"""MachineState: which tile lies where, which copy is fresh, what is dirty (SCH-5). A value with cheap copies.

Invariant: copies of one buffer in one memory are equal tiles, disjoint, or one is a *stage* that encloses the others.
A dirty copy is the only fresh one of its elements, but for copies of its tile that were read back from it; what it was
fetched from (an enclosing stage, or home) is stale there until it is written back.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.schedule.tree import Node, Place, Tile
from isam.scheduler.near import Near
from isam.scheduler.tiles import encloses
from isam.system.graph import COUNTED, Memory, System

if TYPE_CHECKING:
    from isam.scheduler.parts import RecurrentLoop

Form = tuple[int | None, ...] | None  # which buffer dimensions lie along a register; None where bytes are addressed
Key = tuple[str, Tile, Form]  # memory, tile, form


@dataclass(frozen=True, slots=True)
class Copy:
    """A tile at a place; ``units`` cells or bytes of its memory; ``stage``: how it lies, for a staged box; ``ahead``:
    bytes of its room before its first element, which the move that brings it fills; ``beside``: others that leave with
    it lie there."""

    place: Place
    dirty: bool
    units: int
    stage: StageLayout | None = None
    ahead: int = 0
    beside: bool = False


@dataclass(frozen=True, slots=True)
class StageLayout:
    """How a staged box lies: ``coefficients`` bytes per element of each dimension; a dimension cut into blocks of
    ``blocks[d] > 1`` elements has ``coefficients[d] * blocks[d]`` bytes between blocks and ``inner[d]`` within one."""

    coefficients: tuple[int, ...]
    blocks: tuple[int, ...]
    inner: tuple[int, ...]


STAGED: Form = (-1,)  # the form of a staged box: it is read through its layout only
PASSING: Form = (-2,)  # of what is on its way through a memory: never what somebody else keeps there


def reading(key: Key) -> Key:
    """The name of what is read, while what is written goes by that of the tile: that of no other copy."""
    return key[0], key[1], (-3, *(key[2] or ()))



@dataclass(frozen=True, eq=False)
class Entering:
    """What a recurrent loop around does before its first step, for a box that stays over its steps."""

    loop: RecurrentLoop
    nodes: tuple[Node, ...]


class Since:
    """What happened since the begin of an iteration: tiles fetched whose value was there from the begin (so that a loop
    may fetch them once, before it), tiles written, and what recurrent loops around do for it before their first step.
    """

    __slots__ = ("_near", "_sorted", "entered", "fetched", "written")

    def __init__(self) -> None:
        self.fetched: dict[Key, None] = {}
        self.written: dict[str, dict[Tile, None]] = {}
        self.entered: dict[Entering, None] = {}
        self._near: dict[str, Near] = {}
        self._sorted: dict[str, int] = {}  # how many of a buffer's written tiles these have: those asked about before

    def fetch(self, key: Key, ranges: Mapping[str, tuple[int, int]]) -> None:
        if self.disjoint(key[1], ranges):
            self.fetched[key] = None

    def disjoint(self, tile: Tile, ranges: Mapping[str, tuple[int, int]]) -> bool:
        """Whether certainly no element of the tile was written."""
        written = self.written.get(tile.buffer)
        if written is None or tile in written:
            return written is None
        near = self._near.setdefault(tile.buffer, Near())
        for t in islice(written, self._sorted.get(tile.buffer, 0), None):
            near.put(t)
        self._sorted[tile.buffer] = len(written)
        return next(near.meeting(tile, ranges), None) is None

    def writes(self, tile: Tile) -> bool:
        """Whether this very tile was written."""
        return tile in self.written.get(tile.buffer, ())

    def write(self, tile: Tile) -> None:
        self.written.setdefault(tile.buffer, {})[tile] = None

    def then(self, other: Since, ranges: Mapping[str, tuple[int, int]]) -> None:
        """Adds what happened after; of a body that is shared once what loops do before their first step."""
        self.entered |= other.entered
        for key in other.fetched:
            self.fetch(key, ranges)
        for buffer, tiles in other.written.items():
            self.written.setdefault(buffer, {}).update(tiles)


class MachineState:
    """The residency of every memory but home. Mutated by the dry run; ``copy`` is shallow and cheap."""

    __slots__ = (
        "_buffers", "_dirty", "_memories", "_near", "_only", "_put", "_runs", "_staged", "_tiles", "copies", "next",
        "system",
    )  # fmt: skip

    def __init__(self, system: System):
        self.system = system
        self.next: dict[str, int] = {}  # per memory, behind what was put there last
        self.copies: dict[Key, Copy] = {}
        self._buffers: dict[str, dict[Key, int]] = {}  # numbered as they were put there
        self._put = 0
        self._near: dict[str, Near] = {}
        self._dirty: dict[str, int] = {}  # how many dirty copies of a buffer there are
        self._only: dict[str, int] = {}  # how many cells or bytes of a memory dirty copies take
        self._staged: dict[str, dict[Key, None]] = {}
        self._memories: dict[str, dict[Key, Copy]] = {}
        self._runs: dict[str, list[tuple[int, int]]] = {}  # what is occupied of a memory, from its begin on
        self._tiles: dict[Tile, tuple[Key, ...]] = {}

    def copy(self) -> MachineState:
        other = MachineState(self.system)
        other.next = dict(self.next)
        other.copies = dict(self.copies)
        other._buffers = {b: dict(k) for b, k in self._buffers.items()}
        other._put = self._put
        other._near = {b: n.copy() for b, n in self._near.items()}
        other._dirty, other._only = dict(self._dirty), dict(self._only)
        other._staged = {b: dict(k) for b, k in self._staged.items()}
        other._memories = {m: dict(c) for m, c in self._memories.items()}
        other._runs = {m: list(r) for m, r in self._runs.items()}
        other._tiles = dict(self._tiles)
        return other

    def signature(self) -> frozenset[tuple[Key, Copy]]:
        """Equal signatures: equal states, but for where what comes next is put (for shared bodies)."""
        return frozenset(self.copies.items())

    def of(self, buffer: str) -> tuple[Key, ...]:
        return tuple(self._buffers.get(buffer, ()))

    def meeting(self, tile: Tile, ranges: Mapping[str, tuple[int, int]]) -> list[Key]:
        """The copies of the tile's buffer that may share an element with it, as they were put there."""
        near = self._near.get(tile.buffer)
        found = [k for t in near.meeting(tile, ranges) for k in self._tiles[t]] if near is not None else []
        return found if len(found) < 2 else sorted(found, key=self._buffers[tile.buffer].__getitem__)

    def holding(self, tile: Tile) -> tuple[Key, ...]:
        """The copies of just this tile."""
        return self._tiles.get(tile, ())

    def of_any(self) -> tuple[Key, ...]:
        return tuple(self.copies)

    def until_none(self, keys: Callable[[], Iterable[Key]], which: Callable[[Key], bool]) -> Iterator[Key]:
        """Those of ``keys`` that ``which`` holds of, until it holds of none. While one goes home others may make room
        for it: then they are passed over, and what is elsewhere instead is found in the next round."""
        while found := [k for k in keys() if which(k)]:
            yield from (k for k in found if k in self.copies and which(k))

    def alone(self, key: Key) -> bool:
        """Whether a copy is there, and is the only fresh one of its elements."""
        copy = self.copies.get(key)
        return copy is not None and copy.dirty and len(self.holding(key[1])) == 1

    def dirty(self, buffer: str) -> bool:
        """Whether some copy of the buffer is."""
        return self._dirty.get(buffer, 0) > 0

    def put(self, key: Key, copy: Copy) -> None:
        memory, tile, _ = key
        old = self.copies.get(key)
        if old is not None:
            self._forget(key, old)
        self.copies[key] = copy
        if old is None:
            self._put += 1
            self._buffers.setdefault(tile.buffer, {})[key] = self._put
        self._memories.setdefault(memory, {})[key] = copy
        if copy.dirty:
            self._dirty[tile.buffer] = self._dirty.get(tile.buffer, 0) + 1
            self._only[memory] = self._only.get(memory, 0) + _own(copy)
        if copy.stage is not None:
            self._staged.setdefault(tile.buffer, {})[key] = None
        if not copy.place.base:
            insort(self._runs.setdefault(memory, []), _run(copy))
        known = self._tiles.get(tile, ())
        if key not in known:
            self._tiles[tile] = (*known, key)
            if not known:
                self._near.setdefault(tile.buffer, Near()).put(tile)

    def drop(self, key: Key) -> None:
        memory, tile, _ = key
        copy = self.copies.pop(key)
        self._forget(key, copy)
        del self._buffers[tile.buffer][key]
        del self._memories[memory][key]
        if copy.stage is not None:
            del self._staged[tile.buffer][key]
        left = tuple(k for k in self._tiles.pop(tile) if k != key)
        if left:
            self._tiles[tile] = left
        else:
            self._near[tile.buffer].drop(tile)

    def _forget(self, key: Key, copy: Copy) -> None:
        """What is counted of a copy."""
        if copy.dirty:
            self._dirty[key[1].buffer] -= 1
            self._only[key[0]] -= _own(copy)
        if not copy.place.base:
            runs, run = self._runs[key[0]], _run(copy)
            del runs[bisect_left(runs, run)]

    def mark(self, key: Key, dirty: bool) -> None:
        c = self.copies[key]
        if c.dirty != dirty:
            self.put(key, replace(c, dirty=dirty))

    def taken(self, memory: str) -> int:
        """How many cells or bytes of a memory are occupied."""
        return sum([n for _, n in self._runs.get(memory, ())])

    def kept(self, memory: str, keys: Iterable[Key]) -> int:
        """How many cells or bytes of a memory these and all dirty copies in it occupy."""
        clean = [c for k in keys if k[0] == memory and (c := self.copies.get(k)) is not None and not c.dirty]
        return self._only.get(memory, 0) + sum(map(_own, clean))

    def used(self, memory: str) -> Iterator[tuple[int, int, Key]]:
        """Occupied ``(first, count, key)`` in a memory, in cells or bytes."""
        for key, c in self._memories.get(memory, {}).items():
            if not c.place.base:
                yield *_run(c), key

    def find_room(self, memory: Memory, units: int) -> int | None:
        """The first free run of ``units`` cells or (aligned) bytes behind what was put there last, so that what has
        just been given up is not waited for; else the lowest; or None. Where one unit does everything in order nobody
        waits for registers.
        """
        begin = 0 if memory.kind == COUNTED and len(self.system.units) == 1 else self.next.get(memory.name, 0)
        used = self._runs.get(memory.name, [])
        at = self._room_from(memory, units, begin, used)
        return self._room_from(memory, units, 0, used) if at is None and begin else at

    def rooms(self, memory: Memory, units: int) -> Iterator[int]:
        """Where ``units`` cells of a memory are free, lowest first."""
        at = 0
        for first, count in (*self._runs.get(memory.name, ()), (memory.limit, 0)):
            yield from range(at, first - units + 1)
            at = max(at, first + count)

    def free(self, memory: str, at: int, units: int) -> bool:
        """Whether nothing occupies so many cells or bytes of a memory."""
        return all(first + count <= at or at + units <= first for first, count in self._runs.get(memory, ()))

    @staticmethod
    def _room_from(memory: Memory, units: int, begin: int, used: list[tuple[int, int]]) -> int | None:
        align = 1 if memory.cells is not None else max(1, memory.align)
        at = -(-begin // align) * align
        for first, count in islice(used, max(0, bisect_left(used, (begin, 0)) - 1), None):
            if first - at >= units:
                break
            if first + count > at:
                at = -(-(first + count) // align) * align
        return at if at + units <= memory.limit else None

    def stages_around(self, tile: Tile, ranges: Mapping[str, tuple[int, int]]) -> Iterator[Key]:
        """Staged boxes of the tile's buffer that hold it, innermost (latest) first."""
        for key in tuple(reversed(self._staged.get(tile.buffer, {}))):
            if encloses(key[1], tile, ranges):
                yield key


def _own(copy: Copy) -> int:
    """What a copy takes of the room that is given away."""
    return 0 if copy.place.base else copy.units


def _run(copy: Copy) -> tuple[int, int]:
    """The first cell or byte that a copy occupies, and how many."""
    place = copy.place
    return place.offset.const - copy.ahead if place.cell is None else place.cell, copy.units
