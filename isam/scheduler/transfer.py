"""Moving one tile along a path of memories, in parts that every hop can carry (SCH-4)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.tree import Bound, Loop, Node, Place, Seq, Tile
from isam.scheduler import move as mv
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.scheduler.places import remainder, suits_rows, units_needed
from isam.scheduler.state import PASSING, Form, Key
from isam.scheduler.tiles import FAR
from isam.system.graph import COUNTED

if TYPE_CHECKING:
    from isam.scheduler.residency import Residency

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


class Transfer:
    """Moves one tile along a path, in parts that every hop can carry, as loops where there are many parts.

    ``pinned``: copies that must stay; ``most``: the most a part may take of a dimension (the block of a cut one);
    ``grain``: of those the ones with a loop of their own; ``lanes``: the form of a part in registers of groups."""

    UNROLL = 4

    def __init__(
        self,
        data: Residency,
        tile: Tile,
        path: tuple[str, ...],
        source: End,
        target: End,
        pinned: set[Key],
        grain: dict[int, int] | None = None,
        most: dict[int, int] | None = None,
        lanes: Form = None,
    ):
        self.grain = grain or {}
        self.most = self.grain if most is None else most
        self.data, self.tile, self.path, self.pinned = data, tile, path, pinned
        self.source_of, self.target_of = source.place_of, target.place_of
        self.alone = target.alone
        self.forms = [source.form] + [None] * (len(path) - 2) + [target.form]
        self.dtype = data.homes.dtype(tile.buffer)
        self.lanes = lanes
        self._best: tuple[int, ...] | None = None  # see ``_part``

    def run(self) -> None:
        if any(n == 0 for n in self.tile.shape):
            return
        hops = None if self.most else self._direct()
        if hops is not None:
            self._issue(self.tile, hops)
            return
        self.part = self._part()
        self._whole_cells()
        self.told = self._told()
        self._cut(0, self.tile)

    def _whole_cells(self) -> None:
        """What a call finds in cells has been brought there by one move: a second one would take the cells anew."""
        m = self.data.system.memories[self.path[-1]]
        if m.cells is None or m.kind == COUNTED or self.part == self.tile.shape:
            return
        for name in self.path[1:-1]:
            there = self.data.system.memories[name]
            if (n := units_needed(there, self.tile, self.dtype)) > there.limit:
                what = "bytes" if there.cells is None else "cells"
                asked, has = f"{n} {what} for {self.tile} on its way to '{m.name}'", f"it has {there.limit} {what}"
                reason = Infeasible(f"memory '{name}'", asked, has, memory=name, smaller=True, loc=there.loc)
                raise NoSchedule(reason)
        bound = f"one move carries {' x '.join(map(str, self.part))} elements of it"
        raise NoSchedule(Infeasible(f"'{m.name}'", f"{self.tile} in one move", bound, smaller=True))

    def _told(self) -> bool:
        """Whether parts may be told apart by the variable of a loop: not those of a tile in several cells, where the
        cell that a part lies in has to be known."""
        ends = (self.data.system.memories[m] for m in (self.path[0], self.path[-1]))
        return all(m.cells is None or units_needed(m, self.tile, self.dtype) <= 1 for m in ends)

    def _direct(self) -> list[Hop] | None:
        """The common case: the whole tile in one call per hop. What carries it depends only on shapes and strides."""
        source, target = self.source_of(self.tile), self.target_of(self.tile)
        if source is None or target is None:
            return None
        lies = (source.strides, target.strides, *self.forms, self.dtype, self.alone)
        key = (self.path, self.tile.shape, self.tile.steps, *lies)
        known = self.data.carriers
        if key not in known:
            hops = [self._hop(i, self.tile, None) for i in range(len(self.path) - 1)]
            whole = self._passable(self.tile.shape) == self.tile.shape and all(
                h is not None and mv.chunk(h[0], h[1], self.tile) == self.tile.shape for h in hops
            )
            known[key] = [h for h in hops if h is not None] if whole else None
        return known[key]

    def _part(self) -> tuple[int, ...]:
        """The part of the tile one issue per hop carries: the largest that some choice of carriers admits."""
        if self._best is None:
            self._best = self._largest()
        return self._best

    def _largest(self) -> tuple[int, ...]:
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
            raise NoSchedule(Infeasible(asked, f"to carry {whole}", why, smaller=True))
        return best[1]

    def _why_not(self, tile: Tile) -> str:
        """What the move instructions of a hop that none of them makes take, where that is the reason; else strides."""
        for i, edge in enumerate(zip(self.path, self.path[1:], strict=False)):
            here = [c for c in self.data.fit.carriers_of(*edge) if mv.admits(c, self.dtype)]
            if not here or any(mv.chunk(c, dims, tile) is not None for c in here for dims in self._dims(c, i, tile)):
                continue
            takes = "; ".join(dict.fromkeys(map(mv.takes, here)))
            register = next((j for j in (i, i + 1) if self.data.system.memories[self.path[j]].kind == COUNTED), None)
            form = None if register is None else self._form(register)
            if register is None or form is None or any(len(c.axes) == len(form) for c in here):
                return f"no move instruction there takes that: {takes}"
            what = ("a number", "a row")[len(form)] if len(form) < 2 else f"an array of {len(form)} dimensions"
            return f"in '{self.path[register]}' it is {what}, and no move {' -> '.join(edge)} is of such: {takes}"
        edges = (e for e in zip(self.path, self.path[1:], strict=False) if e[1] in self.data.system.filled)
        fill = ", ".join(dict.fromkeys(c.instruction.name for e in edges for c in self.data.fit.carriers_of(*e)))
        beside = f", or one call of {fill} would have to bring all of it: what it fills beside a part is in use"
        return "no move instruction on that path can, with these strides" + (beside if fill else "")

    def _aligned(self, part: tuple[int, ...]) -> bool:
        """Whether every part begins where an access to the memory at either end may begin."""
        whole = _crop(self.tile, self.most)
        for name, place_of in ((self.path[0], self.source_of), (self.path[-1], self.target_of)):
            align, place = self.data.system.memories[name].align, place_of(whole)
            if align > 1 and place is not None and place.memory != self.data.system.home:
                sides = zip(part, self.tile.shape, place.strides, strict=True)
                if any(n < whole and n * stride % align for n, whole, stride in sides):
                    return False
        return True

    def whole(self) -> bool:
        """Whether the tile can be carried in one part."""
        try:
            return any(n == 0 for n in self.tile.shape) or self._part() == self.tile.shape
        except NoSchedule:
            return False

    def possible(self) -> bool:
        """Whether some division into parts can be carried along the path."""
        try:
            return any(n == 0 for n in self.tile.shape) or self._part() is not None  # a part of no dimensions is one
        except NoSchedule:
            return False

    def worth(self) -> float:
        """Elements moved per predicted cycle; 0 where it cannot be carried along the path."""
        try:
            return self._worth(self._part())
        except NoSchedule:
            return 0.0

    def _worth(self, part: tuple[int, ...]) -> float:
        """Elements moved per predicted cycle."""
        tile = Tile(self.tile.buffer, self.tile.start, part, self.tile.steps)
        hops = (self._hop(i, tile, None) for i in range(len(self.path) - 1))
        return prod(part) / sum((h[0].instruction.cost.issue or 1.0) if h is not None else FAR for h in hops)

    def _limit(self, shape: tuple[int, ...]) -> tuple[int, ...] | None:
        """Shrinks a shape until every hop carries it in one call, or None."""
        for _ in range(3):
            tile = Tile(self.tile.buffer, self.tile.start, shape, self.tile.steps)
            smaller = shape
            for i in range(len(self.path) - 1):
                got = self._hop(i, tile, None)
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
        return shape

    def _passable(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Halves a part until every memory on the way could hold it; where that has rows, a row of it at most."""
        for name in self.path[1:-1]:
            m = self.data.system.memories[name]
            if m.row and shape:
                shape = (*shape[:-1], min(shape[-1], max(1, m.row // size_of(self.dtype))))
            part = Tile(self.tile.buffer, self.tile.start, shape, self.tile.steps)
            while units_needed(m, part, self.dtype) > m.limit and max(shape, default=1) > 1:
                d = max(range(len(shape)), key=lambda i: shape[i])
                shape = (*shape[:d], shape[d] // 2, *shape[d + 1 :])
                part = Tile(self.tile.buffer, self.tile.start, shape, self.tile.steps)
        return shape

    def _hop(self, i: int, tile: Tile, places: list[Place] | None) -> Hop | None:
        """A carrier for hop ``i`` of this part; places of intermediate stops are packed by default."""
        data = self.data
        ends: list[Place | None] = []
        for j in (i, i + 1):
            if places is not None:
                ends.append(places[j])
            elif j == 0:
                ends.append(self.source_of(tile))
            elif j == len(self.path) - 1:
                ends.append(self.target_of(tile))
            else:
                ends.append(data.fit.placed(self.path[j], tile, 0, self._passing(j, tile)))
        source, target = ends
        if source is None or target is None:
            return None
        alone = self.alone and tile == self.tile
        key = (self.path, i, tile.shape, tile.steps, source.strides, target.strides, *self.forms, self.lanes,
               self.dtype, alone)  # fmt: skip
        if key not in data.hops:
            data.hops[key] = self._carrier(i, tile, source, target)
        return data.hops[key]

    def _carrier(self, i: int, tile: Tile, source: Place, target: Place) -> Hop | None:
        """What carries most of a part between two places; it depends on shapes and strides alone."""
        data = self.data
        best: tuple[int, mv.Carrier, tuple[int | None, ...]] | None = None
        for c in data.fit.carriers_of(self.path[i], self.path[i + 1]):
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
            row = self.data.system.memories[place.memory].row
            played = [dims[a] for a in axes]
            if row and not suits_rows(row, played, tile, place.strides, size_of(self.dtype)):
                return False
        return True

    def _free(self, j: int, tile: Tile) -> tuple[int, int] | None:
        """The bytes around a tile at a stop that are its own: on the way, and at the end of what goes there whole."""
        if j < len(self.path) - 1:
            return self.data.fit.free(self.path[j], tile, self._passing(j, tile))
        return self.data.fit.free(self.path[j], tile, self.forms[j]) if self.alone and tile == self.tile else None

    def _dims(self, c: mv.Carrier, i: int, tile: Tile) -> list[tuple[int | None, ...]]:
        counted = [j for j in (i, i + 1) if self.data.system.memories[self.path[j]].kind == COUNTED]
        form = self._form(counted[0]) if counted else None
        return mv.assignments(c, tile, form, bool(counted))

    def _passing(self, j: int, tile: Tile) -> Form:
        """The form of a part that only passes through: along its one long dimension, or that and the one in groups."""
        m = self.data.system.memories[self.path[j]]
        if m.kind != COUNTED:
            return None
        if m.lane:
            return self.lanes
        long = [d for d, n in enumerate(tile.shape) if n > 1]
        return (long[0] if long else len(tile.shape) - 1,) if tile.shape else ()

    def _form(self, j: int) -> Form:
        """The form of a part in a register at stop ``j``, where it has to be a certain one."""
        groups = self.data.system.memories[self.path[j]].lane is not None
        return self.lanes if self.forms[j] is None and groups else self.forms[j]

    def _register_form(self, c: mv.Carrier, i: int, tile: Tile) -> bool:
        """A register on the way takes a one-dimensional part whole."""
        counted = [j for j in (i, i + 1) if self.data.system.memories[self.path[j]].kind == COUNTED]
        if not counted or self._form(counted[0]) is not None:
            return sum(n > 1 for n in tile.shape) <= len(c.axes)
        if self.data.system.memories[self.path[counted[0]]].lane:
            return False
        return len(c.axes) == 1 and sum(n > 1 for n in tile.shape) <= 1

    def _cut(self, d: int, tile: Tile) -> None:
        if d == len(tile.shape):
            self._issue(tile)
            return
        n, size, then, name = tile.shape[d], self.part[d], d + 1, f"{tile.buffer}.{d}"
        if n > self.grain.get(d, n):
            size, then, name = self.grain[d], d, name + "b"
        full, rest = divmod(n, size)
        wide = then == d or any(m > p for m, p in zip(tile.shape[d + 1 :], self.part[d + 1 :], strict=True))
        if self.told and (full > self.UNROLL or (full > 1 and wide)):
            self._loop(d, tile, full, size, then, name, wide)
        else:
            for i in range(full):
                self._cut(then, _slice(tile, d, tile.start[d] + i * size * tile.steps[d], size))
        if rest:
            self._cut(then, _slice(tile, d, tile.start[d] + full * size * tile.steps[d], rest))

    def _loop(self, d: int, tile: Tile, full: int, size: int, then: int, var: str, wide: bool) -> None:
        scope = self.data.scope
        step = size * tile.steps[d]
        lo = tile.start[d]
        unroll = 1 if wide else next(u for u in (self.UNROLL, 3, 2, 1) if full % u == 0)
        lo_range = lo.bounds(scope.ranges) if all(n in scope.ranges for n in lo.names) else (0, 1 << 40)
        with (
            scope.recording() as body,
            scope.variable(var, lo, step * unroll, (lo_range[0], lo_range[1] + (full - unroll) * step)),
        ):
            for u in range(unroll):
                self._cut(then, _slice(tile, d, Affine.of(var) + u * step, size))
        scope.out.append(loop(var, lo, lo + full * step, step * unroll, body, tile.buffer))

    def _issue(self, tile: Tile, hops: list[Hop] | None = None) -> None:
        """One part, hop by hop. What lands on the way is dropped again, also where there is no room to go on."""
        pinned, landed = self.pinned, [(m, tile, PASSING) for m in self.path[1:-1]]
        try:
            self._hops(tile, hops, landed)
        finally:
            self.pinned = pinned
            for key in landed:
                if key in self.data.state.copies:
                    self.data.state.drop(key)

    def _hops(self, tile: Tile, hops: list[Hop] | None, landed: list[Key]) -> None:
        data = self.data
        source, target = self.source_of(tile), self.target_of(tile)
        if source is None or target is None:
            raise NoSchedule(Infeasible(f"a move {' -> '.join(self.path)}", f"to carry {tile}",
                                        "it lies in several blocks of a panel"))  # fmt: skip
        places = [source]
        for j, key in enumerate(landed, 1):
            groups = data.system.memories[key[0]].lane is not None
            form = self._passing(j, tile) if groups else None
            places.append(data.room(key[0], tile, self.pinned, form))
            data.state.put(key, data.fit.copy(key[0], tile, places[-1], False, form))
            self.pinned = self.pinned | {key}
        places.append(target)
        for i in range(len(self.path) - 1):
            got = hops[i] if hops is not None else self._hop(i, tile, places)
            if got is None:
                raise NoSchedule(
                    Infeasible(
                        f"the move {self.path[i]} -> {self.path[i + 1]}",
                        f"to carry {tile}",
                        "no move instruction there can, with these strides",
                    )
                )
            c, dims = got
            self._begin(c, tile, places[i], places[i + 1])
            data.scope.out.append(mv.make_issue(self._mover(c, tile), dims, tile, places[i], places[i + 1]))

    def _begin(self, c: mv.Carrier, tile: Tile, source: Place, target: Place) -> None:
        """Raises ``NoSchedule`` where an end does not begin at a multiple of what the move's contract demands."""
        for name, place in ((c.source, source), (c.target, target)):
            align = c.instruction.contract(name).align
            if align > 1:
                at = place.offset + (place.cell or 0) * (self.data.system.memories[place.memory].cell or 0)
                rest = remainder(at, align, self.data.scope.variables)
                if rest is None or rest % align:
                    bound = f"operand {name} of '{c.instruction.name}' begins at multiples of {align} B, this at {at}"
                    edge = f"the move {source.memory} -> {target.memory}"
                    raise NoSchedule(Infeasible(edge, f"to carry {tile}", bound))

    def _mover(self, c: mv.Carrier, tile: Tile) -> mv.Carrier:
        """The carrier, or one that is the same but for its issuer, whoever is done first."""
        alike = self.data.fit.alike(c)
        if len(alike) == 1:
            return c
        size = prod(tile.shape) * size_of(self.dtype)
        return alike[self.data.devices.mover([a.move for a in alike], c.instruction, size)]


def _crop(tile: Tile, grain: dict[int, int]) -> Tile:
    shape = tuple(min(n, grain.get(d, n)) for d, n in enumerate(tile.shape))
    return Tile(tile.buffer, tile.start, shape, tile.steps)


def loop(var: str, lo: Affine, hi: Affine, step: int, body: list[Node], axis: str) -> Loop:
    return Loop(var, (Bound(lo),), (Bound(hi),), step, Seq(tuple(body)), axis=axis)


def _slice(tile: Tile, d: int, start: Affine, n: int) -> Tile:
    return Tile(
        tile.buffer,
        (*tile.start[:d], start, *tile.start[d + 1 :]),
        (*tile.shape[:d], n, *tile.shape[d + 1 :]),
        tile.steps,
    )
