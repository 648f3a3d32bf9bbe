"""Moving one tile along a path of memories, in parts that every hop can carry (SCH-4)."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.ir.kernel import FAR
from isam.schedule.tree import Bound, Loop, Node, Place, Seq, Tile
from isam.scheduler import move as mv
from isam.scheduler.hops import End, Hop, Hops
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.scheduler.places import remainder, units_needed
from isam.scheduler.state import PASSING, Form, Key
from isam.system.graph import COUNTED

if TYPE_CHECKING:
    from isam.scheduler.residency import Residency

UNROLL = 4  # parts that need no loop


class Transfer(Hops):
    """Moves one tile along a path, in parts that every hop can carry, as loops where there are many parts. ``pinned``:
    copies that must stay."""

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
        super().__init__(data.fit, tile, path, source, target, grain, most, lanes)
        self.data, self.pinned = data, pinned

    def run(self) -> None:
        if any(n == 0 for n in self.tile.shape):
            return
        hops = None if self.most else self.direct()
        if hops is not None:
            self._issue(self.tile, hops)
            return
        if self.part != self.tile.shape:  # raises where nothing carries any of it
            self._whole_cells()
        self._cut(0, self.tile)

    def _whole_cells(self) -> None:
        """What a call finds in cells has been brought there by one move: a second one would take the cells anew. Into
        several registers each move may bring whole ones."""
        m = self.data.system.memories[self.path[-1]]
        if m.cells is None or (m.kind == COUNTED and self.in_whole_registers()):
            return
        for name in self.path[1:-1]:
            there = self.data.system.memories[name]
            if (n := units_needed(there, self.tile, self.dtype)) > there.limit:
                what = "bytes" if there.cells is None else "cells"
                asked, has = f"{n} {what} for {self.tile} on its way to '{m.name}'", f"it has {there.limit} {what}"
                reason = Infeasible(f"memory '{name}'", asked, has, memory=name, smaller=True, loc=there.loc)
                raise NoSchedule(reason)
        bound = f"one move carries {' x '.join(map(str, self.part))} elements of it"
        if m.kind == COUNTED:
            bound += f" from '{self.path[0]}', and a register is filled whole"
        raise NoSchedule(Infeasible(f"'{m.name}'", f"{self.tile} in one move", bound, smaller=True, path=self.path))

    @cached_property
    def told(self) -> bool:
        """Whether parts may be told apart by the variable of a loop: not those of a tile in several cells, where the
        cell that a part lies in has to be known."""
        ends = (self.data.system.memories[m] for m in (self.path[0], self.path[-1]))
        return all(m.cells is None or units_needed(m, self.tile, self.dtype) <= 1 for m in ends)

    def _cut(self, d: int, tile: Tile) -> None:
        if d == len(tile.shape):
            self._issue(tile)
            return
        n, size, then, name = tile.shape[d], self.part[d], d + 1, f"{tile.buffer}.d{d}"
        if n > self.grain.get(d, n):
            size, then, name = self.grain[d], d, name + "b"
        full, rest = divmod(n, size)
        wide = then == d or any(m > p for m, p in zip(tile.shape[d + 1 :], self.part[d + 1 :], strict=True))
        if self.told and (full > UNROLL or (full > 1 and wide)):
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
        unroll = 1 if wide else next(u for u in (UNROLL, 3, 2, 1) if full % u == 0)
        lo_range = lo.bounds(scope.ranges) if all(n in scope.ranges for n in lo.names) else (0, FAR)
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
        source, target = self.place(tile, 0), self.place(tile, -1)
        if source is None or target is None:
            raise NoSchedule(Infeasible(f"a move {' -> '.join(self.path)}", f"to carry {tile}",
                                        "it lies in several blocks of a panel"))  # fmt: skip
        places = [source]
        for j, key in enumerate(landed, 1):
            groups = data.system.memories[key[0]].lane is not None
            form = self.passing(j, tile) if groups else None
            place, copy = data.passing(key[0], tile, self.pinned, form)
            places.append(place)
            data.state.put(key, copy)
            self.pinned = self.pinned | {key}
        places.append(self._registers(target))
        for i in range(len(self.path) - 1):
            got = hops[i] if hops is not None else self.hop(i, tile, places)
            if got is None:
                raise NoSchedule(
                    Infeasible(
                        f"the move {self.path[i]} -> {self.path[i + 1]}",
                        f"to carry {tile}",
                        "no move instruction there can, with these strides",
                        path=self.path,
                    )
                )
            c, dims = got
            self._begin(c, tile, places[i], places[i + 1])
            data.scope.out.append(mv.make_issue(self._mover(c, tile), dims, tile, places[i], places[i + 1]))

    def _registers(self, place: Place) -> Place:
        """A place that begins with a later one of several registers, named by that."""
        m = self.data.system.memories[place.memory]
        if m.kind != COUNTED or place.cell is None or not place.offset.const or not place.offset.is_constant:
            return place
        later, rest = divmod(place.offset.const, m.cell or 1)
        return place if rest else replace(place, offset=Affine(), cell=place.cell + later)

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
        return alike[self.data.devices.mover([a.move for a in alike], size, tile)]


def loop(var: str, lo: Affine, hi: Affine, step: int, body: list[Node], axis: str) -> Loop:
    return Loop(var, (Bound(lo),), (Bound(hi),), step, Seq(tuple(body)), axis=axis)


def _slice(tile: Tile, d: int, start: Affine, n: int) -> Tile:
    return Tile(
        tile.buffer,
        (*tile.start[:d], start, *tile.start[d + 1 :]),
        (*tile.shape[:d], n, *tile.shape[d + 1 :]),
        tile.steps,
    )
