"""Where buffers lie in home memory: arguments from the start, the rest once it is really sent there."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from math import gcd, prod
from typing import TYPE_CHECKING, NamedTuple

from isam.caches import ALIASED, LINE, WAYS
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.ir.kernel import Kernel
from isam.schedule.literals import Dtypes, is_literal, literal_value
from isam.schedule.tree import Place, Slot, Tile
from isam.scheduler import move as mv
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.system.graph import System

if TYPE_CHECKING:
    from isam.scheduler.near_homes import NearHome

SHOWN = 4  # buffers named, largest first


class Share(NamedTuple):
    """Which instance works on a block: the ``at``-th of loops dealt out beside each other, ``since`` its begin.
    ``spans``: of each of them, how far its variable goes, in all and in one step."""

    since: Affine
    at: int
    spans: tuple[tuple[int, int], ...]

    def room(self, size: int) -> int:
        """Bytes for all of them, when each needs ``size``."""
        return sum(span * _apart(size, step) for span, step in self.spans)

    def offset(self, size: int) -> Affine:
        """Where in it the part of the present one begins."""
        before = sum(span * _apart(size, step) for span, step in self.spans[: self.at])
        return self.since * _apart(size, self.spans[self.at][1]) + before


def _spaced(rows: int, size: int) -> int:
    """Bytes between the begins of rows: a line more where so many would fall on sets that do not hold them."""
    return size + LINE if rows > WAYS and size % ALIASED == 0 else size


def _apart(size: int, step: int) -> int:
    """Bytes per value of a variable, so that steps lie ``size`` apart at least, at multiples of a line."""
    line = LINE // gcd(LINE, step)
    return -(-size // (step * line)) * line


class Fold(NamedTuple):
    """What of a buffer there is room for: ``blocks``: dimensions that need it for one block only (dimension, origin,
    size); ``shares``: of which instances there is a part for each, innermost first."""

    blocks: tuple[tuple[int, Affine, int], ...] = ()
    shares: tuple[Share, ...] = ()


NO_FOLD = Fold()


class Homes:
    """``places``: per buffer; ``slots``: the workspace; ``folded``: temporaries whose home holds one block only;
    ``prepared``: those that are there from when constants are bound; ``cached``: whether caches lie before it;
    ``near``: temporaries whose home is another memory, with that."""

    def __init__(self, kernel: Kernel, system: System):
        self.kernel, self.memory, self.cached = kernel, system.home, bool(system.caches)
        self.places: dict[str, Place] = {}
        self.slots: dict[str, Slot] = {}
        self.folded: set[str] = set()
        self.prepared: frozenset[str] = frozenset()
        self.near: dict[str, NearHome] = {}
        self._gathered: dict[str, tuple[Tile, Place]] = {}  # boxes whose home is another place for the time being
        self._dtypes = Dtypes(kernel)
        self._rooms: dict[str, tuple[int, ...]] = {}  # elements of each dimension of a temporary that there is room for
        self._bytes: dict[str, int] = {}  # of what of a temporary there is room for, of one instance
        for b in kernel.arguments:
            self.places[b.name] = mv.home_place(b.name, self.memory, self.shape(b.name), b.dtype)

    @contextmanager
    def gathering(self, box: Tile, place: Place) -> Iterator[None]:
        """A box of a buffer is at home somewhere else meanwhile."""
        before, self._gathered[box.buffer] = self._gathered.get(box.buffer), (box, place)
        try:
            yield
        finally:
            del self._gathered[box.buffer]
            if before is not None:
                self._gathered[box.buffer] = before

    @property
    def elsewhere(self) -> tuple[tuple[Tile, Place], ...]:
        """The boxes that are at home somewhere else for the time being, with where."""
        return tuple(self._gathered.values())

    def of(self, buffer: str) -> str:
        """The memory that a buffer is at home in."""
        if buffer in self._gathered:
            return self._gathered[buffer][1].memory
        return self.near[buffer].memory.name if buffer in self.near else self.memory

    def dtype(self, buffer: str) -> str:
        return self._dtypes[buffer]

    def shape(self, buffer: str) -> tuple[int, ...]:
        """A run-time size counts as none: only the first dimension of an argument may have one."""
        if is_literal(buffer):
            return ()
        return tuple(max(0, d.const) if d.is_constant else 0 for d in self.kernel.buffer(buffer).shape)

    def place(self, tile: Tile, fold: Fold) -> Place:
        """Where the tile lies in home memory; temporaries get room there only when one is really sent home."""
        name = tile.buffer
        if name in self._gathered:
            box, there = self._gathered[name]
            return mv.sub_place(there, box, tile)
        if name not in self.places:
            self._make(tile, fold)
        place = self.places[name]
        start = list(tile.start)
        for d, origin, size in fold.blocks if name in self.folded else ():
            start[d] = start[d] - origin
            if size > self._rooms[name][d]:  # another plan's, of the same group for fewer rows
                asked, bound = f"{size} along dimension {d + 1} of '{name}'", f"its room is for {self._rooms[name][d]}"
                raise NoSchedule(Infeasible(f"workspace in '{place.memory}'", asked, bound))
        offset, size = place.offset, self._bytes.get(name, 0)
        for share in fold.shares:
            offset, size = offset + share.offset(size), share.room(size)
        return Place(place.memory, place.base, offset.plus(place.strides, start), place.strides)

    def _make(self, tile: Tile, fold: Fold) -> None:
        name, home = tile.buffer, self.of(tile.buffer)
        dtype = self.dtype(name)
        if is_literal(name):
            value = literal_value(name)
            self.places[name] = mv.home_place(name, home, (), dtype)
            self.slots[name] = Slot(name, home, max(1, size_of(dtype)), dtype=dtype, literal=value)
            return
        shape = list(self.shape(name))
        for d, _, size in fold.blocks:
            if size < shape[d]:
                self.folded.add(name)
                shape[d] = size
        self._rooms[name] = tuple(shape)
        apart = _spaced if name in self.folded and self.cached and name not in self.near else None
        place = self.places[name] = mv.home_place(name, home, tuple(shape), dtype, apart)
        outer = max(zip(place.strides, shape, strict=True), default=(size_of(dtype), 1))
        total = self._bytes[name] = outer[0] * outer[1] if prod(shape) else 0
        for share in fold.shares:
            total = share.room(total)
        align = max(1, self.near[name].memory.align) if name in self.near else LINE
        self.slots[name] = Slot(name, home, max(1, total), align, dtype=dtype, bound=name in self.prepared)


def check_room(kernel: Kernel, system: System, slots: Collection[Slot] = ()) -> None:
    """Raises ``NoSchedule`` when arguments and workspace do not fit the home memory. Arguments of run-time shape
    are left out; ``slots`` anywhere else too."""
    memory = system.memories[system.home]
    needs = [(b.name, size) for b in kernel.arguments if (size := b.bytes) is not None]
    needs += [(s.name, -(-s.bytes // s.align) * s.align) for s in slots if s.memory == memory.name]
    total = sum(n for _, n in needs)
    if total <= memory.capacity:
        return
    largest = sorted(needs, key=lambda r: -r[1])
    terms = [f"{name}: {n} bytes" for name, n in largest[:SHOWN]]
    terms += [f"and {len(largest) - SHOWN} more"] if len(largest) > SHOWN else []
    what = f"{total} bytes for arguments" + (" and workspace" if slots else "")
    name, bound = f"memory '{memory.name}', the home,", f"it has {memory.capacity}"
    raise NoSchedule(Infeasible(name, what, bound, tuple(terms), loc=memory.loc))
