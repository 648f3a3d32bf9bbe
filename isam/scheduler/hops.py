"""What carries a tile along a path of memories, hop by hop, and in how large parts (SCH-4); nothing is moved yet."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.ir.dtype import size_of
from isam.ir.kernel import FAR
from isam.schedule.tree import Place, Tile
from isam.scheduler import move as mv
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.scheduler.places import suits_rows, units_needed
from isam.scheduler.state import Form
from isam.system.graph import COUNTED

if TYPE_CHECKING:
    from isam.scheduler.fit import Fit

PlaceOf = Callable[[Tile], Place | None]
Hop = tuple[mv.Carrier, tuple[int | None, ...]]  # what carries a tile over an edge, and a dimension per axis of it


@dataclass(frozen=True)
class End:
    """One end of a transfer: where each part of the tile lies in ``memory``, and in which form. ``alone``: in room that
    it has for itself, with what a move fills beside it."""

    memory: str
    place_of: PlaceOf
    form: Form = None
    alone: bool = False


class Hops:
    """A tile on its way along a path, and the largest parts of it that every hop can carry.

    ``most``: the most a part may take of a dimension (the block of a cut one); ``grain``: of those the ones with a loop
    of their own; ``lanes``: the form of a part in registers of groups."""

    def __init__(
        self,
        fit: Fit,
        tile: Tile,
        path: tuple[str, ...],
        source: End,
        target: End,
        grain: dict[int, int] | None = None,
        most: dict[int, int] | None = None,
        lanes: Form = None,
    ):
        self.grain = grain or {}
        self.most = self.grain if most is None else most
        self.fit, self.tile, self.path = fit, tile, path
        self._ends = source.place_of, target.place_of
        self._whole: dict[int, Place | None] = {}  # where the whole tile lies at an end, once it was asked
        self.alone = target.alone
        self.forms = [source.form] + [None] * (len(path) - 2) + [target.form]
        self.dtype = fit.homes.dtype(tile.buffer)
        self.lanes = lanes

    def place(self, tile: Tile, end: int) -> Place | None:
        """Where a part lies at the source (0) or the target (-1)."""
        if tile is not self.tile:
            return self._ends[end](tile)
        if end not in self._whole:
            self._whole[end] = self._ends[end](tile)
        return self._whole[end]

    @cached_property
    def lies(self) -> object:
        """Shapes and strides: all that says what carries the whole tile; None where it does not lie by strides."""
        source, target = self.place(self.tile, 0), self.place(self.tile, -1)
        if source is None or target is None:
            return None
        lie = (source.strides, target.strides, *self.forms, self.dtype, self.alone)
        return (self.path, self.tile.shape, self.tile.steps, *lie)

    def direct(self) -> list[Hop] | None:
        """The common case: the whole tile in one call per hop. What carries it depends only on shapes and strides."""
        key, known = self.lies, self.fit.direct
        if key is None:
            return None
        if key not in known:
            hops = [self.hop(i, self.tile, None) for i in range(len(self.path) - 1)]
            whole = self._passable(self.tile.shape) == self.tile.shape and all(
                h is not None and mv.chunk(h[0], h[1], self.tile) == self.tile.shape for h in hops
            )
            known[key] = [h for h in hops if h is not None] if whole else None
        return known[key]

    @cached_property
    def part(self) -> tuple[int, ...]:
        """The part of the tile one issue per hop carries: the largest that some choice of carriers admits. Raises
        ``NoSchedule``."""
        best: tuple[float, tuple[int, ...]] | None = None
        whole = _crop(self.tile, self.most)
        long = [d for d, n in enumerate(whole.shape) if n > 1]
        shapes = {whole.shape}
        for keep in range(min(2, len(long)), -1, -1):
            for dims in combinations(long, keep):
                shapes.add(tuple(n if d in dims else 1 for d, n in enumerate(whole.shape)))
        for shape in sorted(shapes, key=lambda s: -prod(s)):
            part = self._limit(shape)
            if part is not None and self._aligned(part) and (best is None or self._worth(part) > best[0]):
                best = (self._worth(part), part)
        if best is None:
            asked, why = f"a move {' -> '.join(self.path)}", self._why_not(whole)
            raise NoSchedule(Infeasible(asked, f"to carry {whole}", why, smaller=True, path=self.path))
        return best[1]

    def _why_not(self, tile: Tile) -> str:
        """What the move instructions of a hop that none of them makes take, where that is the reason; else strides."""
        for i, edge in enumerate(zip(self.path, self.path[1:], strict=False)):
            here = [c for c in self.fit.carriers_of(*edge) if mv.admits(c, self.dtype)]
            if not here or any(mv.chunk(c, dims, tile) is not None for c in here for dims in self._dims(c, i, tile)):
                continue
            takes = "; ".join(dict.fromkeys(map(mv.takes, here)))
            register = next((j for j in (i, i + 1) if self.fit.system.memories[self.path[j]].kind == COUNTED), None)
            form = None if register is None else self._form(register)
            if register is None or form is None or any(len(c.axes) == len(form) for c in here):
                return f"no move instruction there takes that: {takes}"
            what = ("a number", "a row")[len(form)] if len(form) < 2 else f"an array of {len(form)} dimensions"
            return f"in '{self.path[register]}' it is {what}, and no move {' -> '.join(edge)} is of such: {takes}"
        edges = (e for e in zip(self.path, self.path[1:], strict=False) if e[1] in self.fit.system.filled)
        fill = ", ".join(dict.fromkeys(c.instruction.name for e in edges for c in self.fit.carriers_of(*e)))
        beside = f", or one call of {fill} would have to bring all of it: what it fills beside a part is in use"
        return "no move instruction on that path can, with these strides" + (beside if fill else "")

    def _aligned(self, part: tuple[int, ...]) -> bool:
        """Whether every part begins where an access to the memory at either end may begin."""
        whole = _crop(self.tile, self.most)
        for end in (0, -1):
            align, place = self.fit.system.memories[self.path[end]].align, self.place(whole, end)
            if align > 1 and place is not None and place.memory != self.fit.system.home:
                sides = zip(part, self.tile.shape, place.strides, strict=True)
                if any(n < whole and n * stride % align for n, whole, stride in sides):
                    return False
        return True

    def whole(self) -> bool:
        """Whether the tile can be carried in one part."""
        try:
            return any(n == 0 for n in self.tile.shape) or self.part == self.tile.shape
        except NoSchedule:
            return False

    def possible(self) -> bool:
        """Whether some division into parts can be carried along the path."""
        try:
            return any(n == 0 for n in self.tile.shape) or self.part is not None  # a part of no dimensions is one
        except NoSchedule:
            return False

    def fills(self) -> bool:
        """Whether what leads along the path fills registers at its end whole."""
        key, known = self.lies, self.fit.filled_whole
        if key is None:
            return self._fills()
        if key not in known:
            known[key] = self._fills()
        return known[key]

    def _fills(self) -> bool:
        try:
            return self.whole() or self.in_whole_registers()
        except NoSchedule:
            return False

    def in_whole_registers(self) -> bool:
        """Whether parts that go to registers all begin with one."""
        place, cell = self.place(self.tile, -1), self.fit.system.memories[self.path[-1]].cell or 1
        if place is None:
            return False
        sides = zip(self.part, self.tile.shape, self.tile.steps, place.strides, strict=True)
        return all(n == whole or n * step * stride % cell == 0 for n, whole, step, stride in sides)

    def worth(self) -> float:
        """Elements moved per predicted cycle; 0 where it cannot be carried along the path."""
        try:
            return self._worth(self.part)
        except NoSchedule:
            return 0.0

    def _worth(self, part: tuple[int, ...]) -> float:
        """Elements moved per predicted cycle."""
        tile = Tile(self.tile.buffer, self.tile.start, part, self.tile.steps)
        hops, size = (self.hop(i, tile, None) for i in range(len(self.path) - 1)), prod(part) * size_of(self.dtype)
        return prod(part) / sum(h[0].instruction.cost.move(size, links=False)[0] if h else FAR for h in hops)

    def _limit(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """Shrinks a shape until every hop carries it in one call, or None."""
        while True:
            tile = Tile(self.tile.buffer, self.tile.start, shape, self.tile.steps)
            smaller = shape
            for i in range(len(self.path) - 1):
                got = self.hop(i, tile, None)
                if got is None:
                    return None
                part = mv.chunk(got[0], got[1], tile)
                if part is None:
                    return None
                smaller = tuple(min(a, b) for a, b in zip(smaller, part, strict=True))
            smaller = self._passable(smaller)
            if smaller == shape:
                return shape
            shape = smaller

    def _passable(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Halves a part until every memory on the way could hold it; where that has rows, a row of it at most."""
        for name in self.path[1:-1]:
            m = self.fit.system.memories[name]
            if m.row and shape:
                shape = (*shape[:-1], min(shape[-1], max(1, m.row // size_of(self.dtype))))
            part = Tile(self.tile.buffer, self.tile.start, shape, self.tile.steps)
            while units_needed(m, part, self.dtype) > m.limit and max(shape, default=1) > 1:
                d = max(range(len(shape)), key=lambda i: shape[i])
                shape = (*shape[:d], shape[d] // 2, *shape[d + 1 :])
                part = Tile(self.tile.buffer, self.tile.start, shape, self.tile.steps)
        return shape

    def hop(self, i: int, tile: Tile, places: list[Place] | None) -> Hop | None:
        """A carrier for hop ``i`` of this part; places of intermediate stops are packed by default."""
        ends: list[Place | None] = []
        for j in (i, i + 1):
            if places is not None:
                ends.append(places[j])
            elif j == 0:
                ends.append(self.place(tile, 0))
            elif j == len(self.path) - 1:
                ends.append(self.place(tile, -1))
            else:
                ends.append(self.fit.placed(self.path[j], tile, 0, self.passing(j, tile)))
        source, target = ends
        if source is None or target is None:
            return None
        alone = self.alone and tile == self.tile
        key = (self.path, i, tile.shape, tile.steps, source.strides, target.strides, *self.forms, self.lanes,
               self.dtype, alone)  # fmt: skip
        if key not in self.fit.hops:
            self.fit.hops[key] = self._carrier(i, tile, source, target)
        return self.fit.hops[key]

    def _carrier(self, i: int, tile: Tile, source: Place, target: Place) -> Hop | None:
        """What carries most of a part between two places; it depends on shapes and strides alone."""
        best: tuple[int, mv.Carrier, tuple[int | None, ...]] | None = None
        for c in self.fit.carriers_of(self.path[i], self.path[i + 1]):
            if not mv.admits(c, self.dtype):
                continue
            for dims in self._dims(c, i, tile):
                part = mv.chunk(c, dims, tile)
                if part is None or not self._register_form(c, i, tile):
                    continue
                if not mv.contract_met(c, dims, tile, source, target, size_of(self.dtype)):
                    continue
                if not self._in_rows(c, dims, tile, source, target):
                    continue
                if not mv.fits_beside(c, dims, tile, target, size_of(self.dtype), self._free(i + 1, tile)):
                    continue
                if best is None or prod(part) > best[0]:
                    best = (prod(part), c, dims)
        return None if best is None else best[1:]

    def _in_rows(self, c: mv.Carrier, dims: tuple[int | None, ...], tile: Tile, source: Place, target: Place) -> bool:
        """Whether both ends lie as a memory with rows demands."""
        for place, axes in ((source, c.source_axes), (target, c.target_axes)):
            row = self.fit.system.memories[place.memory].row
            played = [dims[a] for a in axes]
            if row and not suits_rows(row, played, tile, place.strides, size_of(self.dtype)):
                return False
        return True

    def _free(self, j: int, tile: Tile) -> tuple[int, int] | None:
        """The bytes around a tile at a stop that are its own: on the way, and at the end of what goes there whole."""
        if j < len(self.path) - 1:
            return self.fit.free(self.path[j], tile, self.passing(j, tile))
        return self.fit.free(self.path[j], tile, self.forms[j]) if self.alone and tile == self.tile else None

    def _dims(self, c: mv.Carrier, i: int, tile: Tile) -> list[tuple[int | None, ...]]:
        counted = [j for j in (i, i + 1) if self.fit.system.memories[self.path[j]].kind == COUNTED]
        form = self._form(counted[0]) if counted else None
        return mv.assignments(c, tile, form, bool(counted))

    def passing(self, j: int, tile: Tile) -> Form:
        """The form of a part that only passes through: along its one long dimension, or that and the one in groups."""
        m = self.fit.system.memories[self.path[j]]
        if m.kind != COUNTED:
            return None
        if m.lane:
            return self.lanes
        long = [d for d, n in enumerate(tile.shape) if n > 1]
        return (long[0] if long else len(tile.shape) - 1,) if tile.shape else ()

    def _form(self, j: int) -> Form:
        """The form of a part in a register at stop ``j``, where it has to be a certain one."""
        groups = self.fit.system.memories[self.path[j]].lane is not None
        return self.lanes if self.forms[j] is None and groups else self.forms[j]

    def _register_form(self, c: mv.Carrier, i: int, tile: Tile) -> bool:
        """A register on the way takes a one-dimensional part whole."""
        counted = [j for j in (i, i + 1) if self.fit.system.memories[self.path[j]].kind == COUNTED]
        if not counted or self._form(counted[0]) is not None:
            return sum(n > 1 for n in tile.shape) <= len(c.axes)
        if self.fit.system.memories[self.path[counted[0]]].lane:
            return False
        return len(c.axes) == 1 and sum(n > 1 for n in tile.shape) <= 1


def _crop(tile: Tile, grain: dict[int, int]) -> Tile:
    shape = tuple(min(n, grain.get(d, n)) for d, n in enumerate(tile.shape))
    return Tile(tile.buffer, tile.start, shape, tile.steps)
