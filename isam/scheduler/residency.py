"""Which data lies where: operands are fetched, room is made, what is dirty goes home (SCH-4 to SCH-6)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import lcm

from isam.approach.choice import Choice, Trace
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.tree import Place, Tile
from isam.scheduler import move as mv
from isam.scheduler.beside import bring_beside, room_beside
from isam.scheduler.block_calls import BlockCalls
from isam.scheduler.devices import Devices
from isam.scheduler.fit import Fit
from isam.scheduler.homes import Homes
from isam.scheduler.hops import End, Hops
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.scheduler.leaving import leave_together
from isam.scheduler.lifetimes import Lifetimes
from isam.scheduler.nests import Use
from isam.scheduler.placement import Victim
from isam.scheduler.places import remainder, suits_rows, within
from isam.scheduler.routes import Routes
from isam.scheduler.scope import Scope
from isam.scheduler.sources import source_of
from isam.scheduler.spilling import spill, stays, take_over
from isam.scheduler.state import Copy, Form, Key, MachineState, Since
from isam.scheduler.transfer import Transfer
from isam.system.graph import COUNTED, System


class Residency:
    """``fit``: how tiles fit the memories; ``state``: what they hold; ``lifetimes``: what of it nobody will read;
    ``since``: what was fetched and written since a body began; ``block``: the calls that are carried out;
    ``at_bind``: constants laid out anew once, by buffer and layout; ``devices``: who executes calls; ``panels``: those
    that hold all that blocks of a domain read, as long as it is walked; ``unread``: temporaries that nobody brings from
    home; ``sources``, ``joined``: where operands come from, and what moves together, as it was decided."""

    def __init__(self, system: System, trace: Trace, scope: Scope, homes: Homes, routes: Routes):
        self.system, self.trace, self.scope, self.homes = system, trace, scope, homes
        self.fit = Fit(system, homes, routes)
        self.state = MachineState(system)
        self.devices = Devices(system, trace, scope)
        self.lifetimes = Lifetimes()
        self.since = Since()
        self.block = BlockCalls()
        self.at_bind: dict[object, tuple[Key, Copy]] = {}
        self._admitted: dict[object, Use] = {}  # what was asked by :meth:`_demand_there` and is right
        self.panels: set[Key] = set()
        self.unread: frozenset[str] = frozenset()
        self.sources: dict[object, str] = {}
        self.joined: dict[object, bool] = {}

    @contextmanager
    def attempt(self, begin: MachineState | None = None) -> Iterator[Since]:
        """What happens in here, from ``begin`` or the present state on, has not happened to what is around, however it
        ends: who takes what was made puts its state there, and adds what happened. What was worked out once and holds
        anywhere (ways, slots, panels of constants) is kept."""
        around = self.state, self.since, self.lifetimes, self.block, self.unread
        panels, self.since, self.state = set(self.panels), Since(), (begin or self.state).copy()
        try:
            yield self.since
        finally:
            self.state, self.since, self.lifetimes, self.block, self.unread = around
            self.panels = panels

    def home(self, tile: Tile) -> Place:
        """Where the tile lies at home."""
        place = self.homes.place(tile, self.lifetimes.fold(tile))
        if not self.aligned(place):
            asked, bound = f"{tile} at home in '{place.memory}'", f"it would begin at {place.offset}"
            raise NoSchedule(Infeasible(f"memory '{place.memory}'", asked, bound))
        return place

    def room(self, memory: str, tile: Tile, pinned: set[Key], form: Form = None, units: int | None = None) -> Place:
        """Space for the tile in ``memory``, evicting unpinned copies when it is full (SCH-6)."""
        m = self.system.memories[memory]
        units = units or self.fit.units(memory, tile, form)
        turns, last = self.block.turns, self.block.last_use(tile)
        until = turns.now if last is None else last
        while (at := turns.find(self.state, m, units, until)) is None:
            used, shared = (k for _, _, k in self.state.used(memory) if k not in pinned), self.shared(memory)
            victims = [self._victim(k) for k in used if not (shared and self.state.copies[k].stage is not None)]
            if not victims:
                raise NoSchedule(self._full(memory, tile, units))
            context = {"memory": memory, "for": str(tile)}
            self.give_way(self.trace.choose(Choice("victim", victims, context)).key, pinned)
        self.state.next[memory] = at + units
        return self.fit.placed(memory, tile, at, form)

    def passing(self, memory: str, tile: Tile, pinned: set[Key], form: Form) -> tuple[Place, Copy]:
        """Space for what is on its way through a memory, and the copy that takes it: where instances share it, each has
        its own part of that."""
        if not self.shared(memory):
            place = self.room(memory, tile, pinned, form)
            return place, self.fit.copy(memory, tile, place, False, form)
        size, offset = self.fit.units(memory, tile, form), Affine()
        if self.system.memories[memory].cells is not None:
            what = f"cells of '{memory}' for each of the instances that share it"
            raise NoSchedule(Infeasible(f"memory '{memory}'", f"{tile} on its way", what))
        for share in self.lifetimes.shares():
            offset, size = offset + share.offset(size), share.room(size)
        place = self.room(memory, tile, pinned, form, units=size)
        copy = Copy(place, False, size)
        return replace(place, offset=place.offset + offset), copy

    def shared(self, memory: str) -> bool:
        """Whether other instances, which do the same, see what we put into a memory."""
        return self.system.replica_of(memory) is None and bool(self.lifetimes.shares())

    def _victim(self, key: Key) -> Victim:
        return Victim(key, self.block.next_use(key[1]), self.state.copies[key].dirty)

    def _full(self, memory: str, tile: Tile, units: int) -> Infeasible:
        m = self.system.memories[memory]
        what = "cells" if m.cells is not None else "bytes"
        resident = tuple(f"{k[1]}: {n} {what}, pinned by the current call" for _, n, k in self.state.used(memory))
        there = f"{m.limit} {what}"
        bound = f"its {there} hold operands of the same call" if resident else f"it has {there} in all"
        asked = f"{units} {what} for {tile}"
        return Infeasible(f"memory '{memory}'", asked, bound, resident, memory=memory, smaller=True, loc=m.loc)

    def give_way(self, key: Key, pinned: Collection[Key]) -> None:
        """Drops a copy; the only valid one of a value that is read again stays near, where there is room."""
        if self.state.copies[key].dirty and spill(self, key, pinned):
            self.state.drop(key)
        else:
            self.evict(key, pinned)

    def evict(self, key: Key, pinned: Collection[Key] = (), leaving: Callable[[Key], bool] | None = None) -> None:
        if self.state.copies[key].dirty:
            self.flush(key, pinned, leaving)
        self.state.drop(key)

    def clear(self, memory: str) -> bool:
        """Sends everything in a memory home, but what stays; whether there was anything."""
        keys = [k for k in self.state.of_any() if k[0] == memory and not self.state.copies[k].place.base]
        for k in keys:
            if k in self.state.copies:  # it may have made room while another one went home
                self.evict(k)
        self.state.next.pop(memory, None)  # else what is brought anew would begin in the middle again
        return bool(keys)

    def flush(self, key: Key, pinned: Collection[Key] = (), leaving: Callable[[Key], bool] | None = None) -> None:
        """Writes a dirty copy back home (SCH-6, SCH-9); nothing to do when nobody will read it. ``leaving``: those that
        leave for the same reason; None: it makes room."""
        memory, tile, form = key
        copy = self.state.copies[key]
        if self.wanted_home(tile) and not leave_together(self, key, pinned, leaving):
            there = End(memory, lambda t: mv.sub_place(copy.place, tile, t), form)
            self.carry(tile, there, End(self.homes.of(tile.buffer), self.home), {key, *pinned})
        self.state.mark(key, False)

    def wanted_home(self, tile: Tile) -> bool:
        """Whether anybody will read what is written back."""
        return tile.buffer not in self.unread and not self.lifetimes.dead(tile)

    def carry(self, tile: Tile, source: End, target: End, pinned: set[Key]) -> None:
        """Moves a tile along its route; what lands on the way is dropped again."""
        dtype = self.homes.dtype(tile.buffer)
        path = self.fit.route(source.memory, target.memory, dtype)
        if path is None:
            m, demand = self.system.memories[target.memory], f"moves of {dtype} from '{source.memory}' for {tile}"
            no = "no way leads there" + ", it holds what begins in the same loops" * (m.name in self.system.closed)
            raise NoSchedule(Infeasible(f"memory '{m.name}'", demand, no, loc=m.loc))
        Transfer(self, tile, path, source, target, pinned).run()

    def read(self, use: Use, tile: Tile, key: Key | None, pinned: set[Key]) -> Place:
        """The place of a readable operand whose copy is to be ``key``, fetched when it is not there; None: at home."""
        if key is None:
            return self.read_home(use, tile)
        memory, _, form = key
        if key in self.state.copies:
            return self.state.copies[key].place
        longer = self._beginning(use, tile, memory)
        if longer is not None:
            pinned.add(longer)
            return self.state.copies[longer].place
        self._demand_there(use, tile, memory, form)
        if self._handed_over(use, key, pinned):
            return self.state.copies[key].place
        self.settle(tile, key, pinned)
        staged = self._staged(use, tile, memory)
        if staged is not None:
            pinned.add(staged[1])
            return staged[0]
        if bring_beside(self, use, tile, key, pinned):
            return self.state.copies[key].place
        place = self.room(memory, tile, pinned, form)  # what goes home for it may take the place of a nearer source
        source = source_of(self, tile, memory, form)
        near = self.state.of(tile.buffer) if source.memory != self.homes.of(tile.buffer) else ()
        held = pinned | {key} | {k for k in near if k[0] == source.memory}
        self.carry(tile, source, End(memory, lambda t: mv.sub_place(place, tile, t), form, alone=True), held)
        self.state.put(key, self.fit.copy(memory, tile, place, False, form))
        self.since.fetch(key, self.scope.ranges)
        return place

    def _beginning(self, use: Use, tile: Tile, memory: str) -> Key | None:
        """The copy in registers of a longer tile that begins with this one."""
        wide = self.block.wider.get(tile)
        if wide is None or use.writes or not self.system.memories[memory].lanes:
            return None
        key = (memory, wide, self.fit.form(memory, wide, use.dims, use.strides))
        return key if key in self.state.copies else None

    def _handed_over(self, use: Use, key: Key, pinned: set[Key]) -> bool:
        """Whether the tile's only fresh copy lies in another memory from which a route leads here, not by way of home:
        then it is brought here and need not go home. There it is given up, unless it is only read, and made way or
        could not go home from here."""
        memory, tile, form = key
        there = (k for k in self.state.holding(tile) if k[0] != memory and k not in pinned)
        old = next((k for k in there if self.state.copies[k].dirty), None)
        if old is None or not self.leads(old[0], memory, self.homes.dtype(tile.buffer)):
            return False
        copy, held = self.state.copies[old], pinned | {key, old}
        source = End(old[0], lambda t: mv.sub_place(copy.place, tile, t), old[2])
        if not self.fills(tile, source, memory, form):
            return False
        place = self.room(memory, tile, held, form)
        self.carry(tile, source, End(memory, lambda t: mv.sub_place(place, tile, t), form, alone=True), held)
        kept = not use.writes and (stays(self, old, key) or self._stuck(tile, old[0], memory))
        if not kept:
            self.state.drop(old)
        self.state.put(key, self.fit.copy(memory, tile, place, not kept, form))
        self.since.fetch(key, self.scope.ranges)
        return True

    def _stuck(self, tile: Tile, old: str, memory: str) -> bool:
        """Whether a way leads home from the memory that a tile was in, and none from the one that it is brought to."""
        home, dtype = self.homes.of(tile.buffer), self.homes.dtype(tile.buffer)
        return self.fit.route(memory, home, dtype) is None and self.fit.route(old, home, dtype) is not None

    def able(self, use: Use, tile: Tile, place: Place) -> bool:
        """Whether a call may take an operand from a place within a larger tile."""
        align = lcm(self.system.memories[place.memory].access, max(1, use.align))
        return self.meets(use, tile, place) and self.aligned(place, align)

    def settle(self, tile: Tile, key: Key | None, pinned: Collection[Key] = ()) -> None:
        """Dirty copies that overlap the tile without being it go home first."""
        if not self.state.dirty(tile.buffer):
            return
        for other in self._meeting(tile, lambda k: k != key and self.state.copies[k].dirty):
            self.flush(other, pinned)

    def _meeting(self, tile: Tile, which: Callable[[Key], bool]) -> Iterator[Key]:
        """Such copies that may share an element with the tile, until there are none."""
        return self.state.until_none(lambda: self.state.meeting(tile, self.scope.ranges), which)

    def fills(self, tile: Tile, source: End, memory: str, form: Form) -> bool:
        """Whether moves from there fill registers with the tile, where it is to lie in such: in parts they cannot."""
        path = self.fit.route(source.memory, memory, self.homes.dtype(tile.buffer))
        if self.system.memories[memory].kind != COUNTED or path is None:
            return True
        place = self.fit.placed(memory, tile, 0, form)
        end = End(memory, lambda t: mv.sub_place(place, tile, t), form, alone=True)
        return Hops(self.fit, tile, path, source, end).fills()

    def leads(self, source: str, memory: str, dtype: str) -> bool:
        """Whether there is a way between two memories that does not lead over home: one may as well begin there."""
        path = self.fit.route(source, memory, dtype)
        return path is not None and self.system.home not in path[1:]

    def begins(self, place: Place, tile: Tile, memory: str, form: Form) -> bool:
        """Whether a tile begins in a box where whatever carries it to a memory may begin."""
        m = self.system.memories[place.memory]
        if self.aligned(place) or m.access == m.align:
            return self.aligned(place)
        path = self.fit.route(place.memory, memory, self.homes.dtype(tile.buffer)) or ()
        there = self.fit.placed(memory, tile, 0, form)
        source = End(place.memory, lambda t: mv.sub_place(place, tile, t))
        target = End(memory, lambda t: mv.sub_place(there, tile, t), form)
        hops = Hops(self.fit, tile, path, source, target).direct() if len(path) > 1 else None
        if not hops:
            return False
        first, _ = hops[0]
        return self.aligned(place, lcm(m.access, max(1, first.instruction.contract(first.source).align)))

    def aligned(self, place: Place, align: int = 0) -> bool:
        """Whether a place in a memory with addresses of its own begins where an access may begin: any, or one with an
        alignment of its own."""
        align = align or self.system.memories[place.memory].align
        if place.memory == self.system.home or align <= 1:
            return True
        rest = remainder(place.offset, align, self.scope.variables)
        return rest is not None and rest % align == 0

    def read_home(self, use: Use, tile: Tile) -> Place:
        """A home-memory operand: a staged box there when its contract asks for one, else the buffer itself."""
        self.settle(tile, None)
        staged = self._staged(use, tile, self.homes.of(tile.buffer))
        if staged is not None:
            return staged[0]
        place = self.home(tile)
        self.demand(use, tile, place)
        return place

    def _staged(self, use: Use, tile: Tile, memory: str) -> tuple[Place, Key] | None:
        """Where an operand may lie in a staged box of the memory that it is to be in."""
        for key in self.state.stages_around(tile, self.scope.ranges):
            if key[0] == memory:
                place = within(key[1], self.state.copies[key], tile, self.scope.variables)
                align = lcm(self.system.memories[memory].access, max(1, use.align))
                if place is not None and self.meets(use, tile, place) and self.aligned(place, align):
                    return place, key
        return None

    def demand(self, use: Use, tile: Tile, place: Place, near: bool = False) -> None:
        """Raises ``NoSchedule`` when the operand's contract does not admit how the tile lies; ``near``: in room of its
        own, where a smaller call may have no second row."""
        if not self.meets(use, tile, place):
            need, have = f"strides {use.strides} (elements) for {tile}", f"it lies with byte strides {place.strides}"
            raise NoSchedule(Infeasible(f"operand {use.name}", need, have, smaller=near))
        rest = remainder(place.offset, use.align, self.scope.variables) if use.align > 1 and place.base else 0
        if rest is None or rest % use.align:
            need, have = f"an address that is a multiple of {use.align}", f"{tile} begins at {place.offset}"
            raise NoSchedule(Infeasible(f"operand {use.name}", need, have))

    def _demand_there(self, use: Use, tile: Tile, memory: str, form: Form) -> None:
        """Raises ``NoSchedule`` when the operand's contract, or rows, do not admit how the tile lies by itself, which
        only its shape says."""
        asked = (id(use), memory, tile.shape, tile.steps, form)
        if asked not in self._admitted:
            self._judge_there(use, tile, memory, form)
            self._admitted[asked] = use  # which keeps it, and so its number

    def _judge_there(self, use: Use, tile: Tile, memory: str, form: Form) -> None:
        m, size, place = self.system.memories[memory], size_of(use.dtype), self.fit.placed(memory, tile, 0, form)
        if m.row and not suits_rows(m.row, use.dims, tile, place.strides, size):
            long = tile.shape[use.dims[-1]] * size
            need, have = f"{long} bytes of {tile} in a row, for operand {use.name}", f"its rows have {m.row}"
            if long <= m.row:
                need, have = f"{tile} in whole rows, for operand {use.name}", f"it lies at byte strides {place.strides}"
            what = f"memory '{memory}'"
            raise NoSchedule(Infeasible(what, need, have, smaller=True, row=long, memory=memory, loc=m.loc))
        self.demand(use, tile, place, near=True)
        if m.cell and m.cell % use.align:
            need, have = f"an address that is a multiple of {use.align}", f"cells of '{memory}' have {m.cell} bytes"
            raise NoSchedule(Infeasible(f"operand {use.name}", need, have, loc=m.loc))

    def suits(self, use: Use, tile: Tile, place: Place) -> bool:
        """Whether room of its own in a near memory is laid out as the operand's contract says; what registers hold has
        a form instead."""
        return self.system.memories[place.memory].kind == COUNTED or self.meets(use, tile, place)

    def meets(self, use: Use, tile: Tile, place: Place) -> bool:
        size = size_of(use.dtype)
        row = self.system.memories[place.memory].row
        if row and not suits_rows(row, use.dims, tile, place.strides, size):
            return False
        for d, need in zip(use.dims, use.strides, strict=True):
            if need is not None and tile.shape[d] > 1 and place.strides[d] * tile.steps[d] != need * size:
                return False
        return True

    def _outdate(self, use: Use, tile: Tile, key: Key | None, pinned: set[Key]) -> None:
        """Gives up the other copies of what is written; of what else they hold the fresh ones go home."""
        stay = {key}
        for other in self._meeting(tile, lambda k: k not in stay):
            copy = self.state.copies[other]
            if copy.stage is not None:
                what = Infeasible(f"staged '{tile.buffer}'", f"a write to {tile}", "it is staged for reading")
                raise NoSchedule(what)
            if copy.dirty and not (other[1] == tile and not use.reads):
                self.flush(other, pinned)
            if other in pinned:
                stay.add(other)
            else:
                self.state.drop(other)

    def write(self, use: Use, tile: Tile, key: Key | None, pinned: set[Key]) -> tuple[Place, Copy | None]:
        """The place of the copy that an output is to be in, ``key`` (None: at home): of its tile, or a box around that;
        other copies of its elements become stale (SCH-5)."""
        if key is None:
            self._outdate(use, tile, key, pinned)
            place = self.home(tile)
            self.demand(use, tile, place)
            return place, None
        memory, whole, form = key
        self._demand_there(use, tile, memory, form)
        take_over(self, key)
        mine = self.state.copies.get(key)
        if not self.state.alone(key):
            self._outdate(use, tile, key, pinned)
        if mine is not None and (use.reads or key not in pinned):
            return mine.place, mine if mine.dirty else replace(mine, dirty=True)
        if whole != tile:  # a box that is begun, with all of it
            return (place := self.room(memory, whole, pinned, form)), self.fit.copy(memory, whole, place, True, form)
        copy = room_beside(self, use, tile, key, pinned)
        return copy.place, copy
