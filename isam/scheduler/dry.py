"""The dry run against a MachineState (SCH-1): operands are fetched, places chosen, victims evicted, steps recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

from isam.approach.choice import Choice, Trace
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.ir.kernel import Kernel
from isam.schedule.tree import Issue, Node, Operand, Place, Slot, Tile
from isam.scheduler import move as mv
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.scheduler.nests import Nest, Use, parse_literal
from isam.scheduler.placement import Labelled, joint_placements
from isam.scheduler.state import (
    Copy,
    Form,
    Key,
    MachineState,
    Ranges,
    Since,
    Var,
    disjoint,
    mentions,
    packed,
    remainder,
    units_needed,
    within,
)
from isam.scheduler.transfer import Hop, PlaceOf, Transfer
from isam.system.graph import System


class DryRun:
    """Executes calls symbolically, records the steps. ``out`` is where steps go; ``state`` what the machine holds."""

    def __init__(self, kernel: Kernel, system: System, trace: Trace):
        self.kernel, self.system, self.trace = kernel, system, trace
        self.state = MachineState(system)
        self.out: list[Node] = []
        self.variables: dict[str, Var] = {}
        self.ranges = Ranges()
        self.scope: list[str] = []
        self.slots: dict[str, Slot] = {}
        self.homes: dict[str, Place] = {}
        self.dead: Callable[[Tile], bool] = lambda tile: False
        self.spent: Callable[[Tile], bool] = lambda tile: False
        self.fold: Callable[[Tile], tuple[tuple[int, Affine, int], ...]] = lambda tile: ()
        self._edges: dict[tuple[str, str], tuple[mv.Carrier, ...]] = {}
        self._dtypes: dict[str, str] = {}
        self._units: dict[object, int] = {}
        self._runners: dict[str, tuple[str, ...]] = {}
        self._routes: dict[tuple[str, str], tuple[str, ...] | None] = {}
        self.bound: dict[object, tuple[Key, Copy]] = {}  # constants laid out anew once, by buffer and layout
        self.folded: set[str] = set()  # temporaries whose home holds one block only
        self.since = Since()
        self.later: dict[Tile, list[int]] = {}  # uses still to come in the present block, the next one last
        self.carriers: dict[object, list[Hop] | None] = {}
        self.lanes = system.facts.get("lanes")
        for b in kernel.arguments:
            shape = tuple(0 if not d.is_constant else max(0, d.const) for d in b.shape[1:])
            first = 0 if not b.shape else 1
            self.homes[b.name] = mv.home_place(b.name, system.home, (first, *shape) if b.shape else (), b.dtype)

    # -- recording ---------------------------------------------------------------------------------------------------
    @contextmanager
    def recording(self) -> Iterator[list[Node]]:
        outer, self.out = self.out, []
        try:
            yield self.out
        finally:
            self.out = outer

    @contextmanager
    def variable(self, name: str, lo: Affine, step: int, bounds: tuple[int, int]) -> Iterator[None]:
        width = self.ranges.enter(name, lo, bounds)
        self.variables[name] = Var(lo, step, width)
        self.scope.append(name)
        try:
            yield
        finally:
            self.scope.pop()
            del self.variables[name]
            self.ranges.leave(name)

    # -- homes -------------------------------------------------------------------------------------------------------
    def dtype(self, buffer: str) -> str:
        known = self._dtypes.get(buffer)
        if known is None:
            known = buffer[1:].split(":")[0] if buffer.startswith("#") else self.kernel.buffer(buffer).dtype
            self._dtypes[buffer] = known
        return known

    def home(self, tile: Tile) -> Place:
        """Where the tile lies in home memory; temporaries get room there only when one is really sent home."""
        name = tile.buffer
        if name not in self.homes:
            self._make_home(tile)
        place = self.homes[name]
        start = list(tile.start)
        for d, origin, _ in self.fold(tile):
            start[d] = start[d] - origin
        offset = place.offset
        for s, k in zip(start, place.strides, strict=True):
            offset = offset + s * k
        return Place(place.memory, place.base, offset, place.strides)

    def _make_home(self, tile: Tile) -> None:
        name, home = tile.buffer, self.system.home
        dtype = self.dtype(name)
        if name.startswith("#"):
            value = parse_literal(name)
            self.homes[name] = mv.home_place(name, home, (), dtype)
            self.slots[name] = Slot(name, home, max(1, size_of(dtype)), dtype=dtype, literal=value)
            return
        shape = [max(0, int(d)) for d in self.kernel.buffer(name).shape]
        for d, _, size in self.fold(tile):
            if size < shape[d]:
                self.folded.add(name)
                shape[d] = size
        self.homes[name] = mv.home_place(name, home, tuple(shape), dtype)
        total = size_of(dtype)
        for n in shape:
            total *= n
        self.slots[name] = Slot(name, home, max(1, total), dtype=dtype)

    # -- room --------------------------------------------------------------------------------------------------------
    def room(self, memory: str, tile: Tile, pinned: set[Key], form: Form = None, units: int | None = None) -> Place:
        """Space for the tile in ``memory``, evicting unpinned copies when it is full (SCH-6)."""
        m = self.system.memories[memory]
        dtype = self.dtype(tile.buffer)
        units = units or self.units(memory, tile)
        while (at := self.state.find_room(m, units)) is None:
            victims = [k for _, _, k in self.state.used(memory) if k not in pinned]
            if not victims:
                raise NoSchedule(self._full(memory, tile, units))
            key = self.trace.choose(Choice("victim", victims, {"memory": memory, "for": str(tile), "_run": self}))
            self.evict(key)
        return packed(m, tile, dtype, at, form)

    def _full(self, memory: str, tile: Tile, units: int) -> Infeasible:
        m = self.system.memories[memory]
        what = "cells" if m.cells is not None else "bytes"
        resident = tuple(f"{k[1]}: {n} {what}, pinned by the current call" for _, n, k in self.state.used(memory))
        there = m.cells if m.cells is not None else m.capacity
        bound = f"its {there} {what} hold operands of the same call" if resident else f"it has {there} {what} in all"
        return Infeasible(f"memory '{memory}'", f"{units} {what} for {tile}", bound, resident, memory=memory)

    def units(self, memory: str, tile: Tile) -> int:
        key = (memory, tile.buffer, tile.shape)
        known = self._units.get(key)
        if known is None:
            known = units_needed(self.system.memories[memory], tile, self.dtype(tile.buffer), self.lanes)
            self._units[key] = known
        return known

    def evict(self, key: Key) -> None:
        if self.state.copies[key].dirty:
            self.flush(key)
        self.state.drop(key)

    # -- moving ------------------------------------------------------------------------------------------------------
    def flush(self, key: Key) -> None:
        """Writes a dirty copy back home (SCH-6, SCH-9); nothing to do when nobody will read it."""
        memory, tile, form = key
        copy = self.state.copies[key]
        if not self.dead(tile):
            self.carry(
                tile,
                memory,
                self.system.home,
                lambda t: mv.sub_place(copy.place, tile, t),
                self.home,
                form,
                None,
                {key},
            )
        self.state.mark(key, False)

    def carry(
        self,
        tile: Tile,
        source: str,
        target: str,
        source_of: PlaceOf,
        target_of: PlaceOf,
        source_form: Form,
        target_form: Form,
        pinned: set[Key],
    ) -> None:
        """Moves a tile along the shortest route; what lands on the way is dropped again."""
        path = self.route(source, target)
        if path is None:
            raise NoSchedule(
                Infeasible(
                    f"a route from '{source}' to '{target}'", f"a move for {tile}", "the machine has no such path"
                )
            )
        Transfer(self, tile, path, source_of, target_of, source_form, target_form, pinned).run()

    def carriers_of(self, source: str, target: str) -> tuple[mv.Carrier, ...]:
        """The move instructions on one edge, taken apart once."""
        if (source, target) not in self._edges:
            self._edges[source, target] = mv.carriers(self.system, source, target)
        return self._edges[source, target]

    def route(self, source: str, target: str) -> tuple[str, ...] | None:
        """The shortest path between two memories, found once."""
        if (source, target) not in self._routes:
            self._routes[source, target] = mv.route(self.system, source, target)
        return self._routes[source, target]

    # -- operands ----------------------------------------------------------------------------------------------------
    def read(self, use: Use, tile: Tile, memory: str, pinned: set[Key]) -> tuple[Place, Key | None]:
        """The place of a readable operand in ``memory``, fetched when it is not there."""
        if memory == self.system.home:
            return self.read_home(use, tile), None
        form = mv.form_of(self.system, memory, tile, use.dims)
        key = (memory, tile, form)
        if key in self.state.copies:
            return self.state.copies[key].place, key
        self._settle(tile, key)
        source, source_of, source_form = self._source(tile, memory, form)
        place = self.room(memory, tile, pinned, form)
        self.carry(
            tile, source, memory, source_of, lambda t: mv.sub_place(place, tile, t), source_form, form, pinned | {key}
        )
        self.state.put(key, Copy(place, False, self.units(memory, tile)))
        self.since.fetch(key, self.ranges)
        return place, key

    def _settle(self, tile: Tile, key: Key | None) -> None:
        """Dirty copies that overlap the tile without being it go home first."""
        for other in self.state.of(tile.buffer):
            if other != key and self.state.copies[other].dirty and not disjoint(other[1], tile, self.ranges):
                self.flush(other)

    def _source(self, tile: Tile, memory: str, form: Form) -> tuple[str, PlaceOf, Form]:
        """The fresh copy to read from: another resident copy, a staged box, or home (SCH-4, SCH-5)."""
        options: list[tuple[str, PlaceOf, Form]] = []
        for key in self.state.of(tile.buffer):
            if (
                key[1] == tile
                and key[0] != memory
                and self.state.copies[key].stage is None
                and self.route(key[0], memory)
            ):
                place = self.state.copies[key].place
                options.append((key[0], lambda t, p=place: mv.sub_place(p, tile, t), key[2]))
        for key in self.state.stages_around(tile, self.ranges):
            copy = self.state.copies[key]
            place = within(key[1], copy, tile, self.variables)
            if place is not None and self._aligned(place):
                options.append((key[0], lambda t, k=key, c=copy: within(k[1], c, t, self.variables), None))
        options.append((self.system.home, self.home, None))
        if len(options) == 1:
            return options[0]
        hops = [len(self.route(o[0], memory) or ()) for o in options]
        labels = [Labelled(o, f"{tile.buffer} from {o[0]}") for o in options]
        return self.trace.choose(Choice("source", labels, {"tile": str(tile), "to": memory}, hops)).value

    def _aligned(self, place: Place) -> bool:
        """Whether a place in a memory with addresses of its own begins where an access may begin."""
        align = self.system.memories[place.memory].align
        if place.base or align <= 1:
            return True
        rest = remainder(place.offset, align, self.variables)
        return rest is not None and rest % align == 0

    def read_home(self, use: Use, tile: Tile) -> Place:
        """A home-memory operand: a staged box there when its contract asks for one, else the buffer itself."""
        self._settle(tile, None)
        for key in self.state.stages_around(tile, self.ranges):
            if key[0] == self.system.home:
                place = within(key[1], self.state.copies[key], tile, self.variables)
                if place is not None and self.meets(use, tile, place):
                    return place
        place = self.home(tile)
        self.demand(use, tile, place)
        return place

    def demand(self, use: Use, tile: Tile, place: Place) -> None:
        """Raises ``NoSchedule`` when the operand's contract does not admit how the tile lies."""
        if not self.meets(use, tile, place):
            need, have = f"strides {use.strides} (elements) for {tile}", f"it lies with byte strides {place.strides}"
            raise NoSchedule(Infeasible(f"operand {use.name}", need, have))

    def meets(self, use: Use, tile: Tile, place: Place) -> bool:
        size = size_of(use.dtype)
        for d, need in zip(use.dims, use.strides, strict=True):
            if need is not None and tile.shape[d] > 1 and place.strides[d] * tile.steps[d] != need * size:
                return False
        return True

    def write(self, use: Use, tile: Tile, memory: str, pinned: set[Key]) -> tuple[Place, Key | None, Copy | None]:
        """The place an output goes to; other copies of its elements become stale (SCH-5)."""
        form = mv.form_of(self.system, memory, tile, use.dims)
        key = None if memory == self.system.home else (memory, tile, form)
        mine = self.state.copies.get(key) if key is not None else None
        if mine is None or not mine.dirty:  # a dirty copy is already the only one
            for other in self.state.of(tile.buffer):
                if other == key or disjoint(other[1], tile, self.ranges):
                    continue
                if self.state.copies[other].stage is not None:
                    raise NoSchedule(
                        Infeasible(f"staged '{tile.buffer}'", f"a write to {tile}", "it is staged for reading")
                    )
                if self.state.copies[other].dirty and not (other[1] == tile and not use.reads):
                    self.flush(other)
                if other not in pinned:
                    self.state.drop(other)
        if key is None:
            place = self.home(tile)
            self.demand(use, tile, place)
            return place, None, None
        if mine is not None and (use.reads or key not in pinned):
            place = mine.place
        else:
            place = self.room(memory, tile, pinned, form)
        return place, key, Copy(place, True, self.units(memory, tile))

    # -- calls -------------------------------------------------------------------------------------------------------
    def call(self, nest: Nest, point: dict[str, Affine], sizes: dict[str, int], tiles: tuple[Tile, ...]) -> None:
        """One instruction call with all its operands in place."""
        bound = list(zip(nest.uses, tiles, self._memories(nest, tiles), strict=True))
        keys = [self._key(*o) for o in bound]
        pinned = {k for k in keys if k is not None}
        places = {u.name: self.read(u, t, m, pinned)[0] for u, t, m in bound if u.reads}
        held = {k for k, (u, _, _) in zip(keys, bound, strict=True) if k is not None and u.reads}
        landed: list[tuple[Key | None, Copy | None, Tile, bool]] = []
        for u, t, m in bound:
            if u.writes:
                known = self.state.copies.get(self._key(u, t, m) or ("", t, None))
                places[u.name], key, copy = self.write(u, t, m, held)
                landed.append((key, copy, t, known is not None and known.dirty))
                held |= {key} if key is not None else set()
        operands = tuple(Operand(u.name, t, places[u.name], u.dims) for u, t, _ in bound)
        around = ((t, Affine.of(t)) for t in nest.mapping.loops)
        where = (*around, *((nest.own.get(a, a), p) for a, p in point.items()))
        name = nest.instruction.name
        self.out.append(Issue(self._unit(nest), name, tuple(sizes.items()), operands, nest.number, where))
        for key, copy, tile, alone in landed:
            self.since.write(tile)
            for other in () if alone else self.state.of(tile.buffer):  # a dirty copy was the only one already
                if other != key and not disjoint(other[1], tile, self.ranges):
                    self.state.drop(other)
            if key is not None and copy is not None:
                self.state.put(key, copy)

    def _key(self, use: Use, tile: Tile, memory: str) -> Key | None:
        return None if memory == self.system.home else (memory, tile, mv.form_of(self.system, memory, tile, use.dims))

    def _unit(self, nest: Nest) -> str:
        name = nest.instruction.name
        names = self._runners.get(name)
        if names is None:
            names = self._runners[name] = tuple(u.name for u in self.system.units_of(name))
        if len(names) == 1:
            return names[0]
        return self.trace.choose(Choice("device", list(names), {"instruction": name}))

    def _memories(self, nest: Nest, tiles: tuple[Tile, ...]) -> tuple[str, ...]:
        """A legal joint placement of the operands (SCH-4, SYS-3)."""
        options = self._placements.get(nest.instruction.name)
        if options is None:
            options = joint_placements(nest)
            self._placements[nest.instruction.name] = options
        if not options:
            raise NoSchedule(
                Infeasible(
                    f"instruction {nest.instruction.name}",
                    "a joint placement of its operands",
                    "its homes and 'apart' groups contradict each other",
                )
            )
        if len(options) == 1:
            return options[0]
        costs = []
        for option in options:
            missing = 0.0
            for u, t, m in zip(nest.uses, tiles, option, strict=True):
                if self._key(u, t, m) not in self.state.copies:
                    missing += 1 if u.reads else 0.25
                    there = self.system.memories[m]
                    if not there.home and self.state.find_room(there, self.units(m, t)) is None:
                        missing += 1  # something else would have to go
                    if any(k[1] == t and self.state.copies[k].dirty for k in self.state.of(t.buffer)):
                        missing += 2
            costs.append(missing)
        context = {"instruction": nest.instruction.name, "tiles": [str(t) for t in tiles]}
        return self.trace.choose(Choice("place", options, context, costs))

    @cached_property
    def _placements(self) -> dict[str, list[tuple[str, ...]]]:
        return {}

    def release(self, tile: Tile, crowded: bool) -> None:
        """After its last use in a block: copies that no later iteration can use make room at once; where the block's
        tiles do not all fit, so do clean copies that a later iteration could have used."""
        for key in self.state.of(tile.buffer):
            if key[1] != tile:
                continue
            c = self.state.copies[key]
            inner = self.scope[-1] if self.scope else None
            if c.stage is None and (
                (not c.dirty and (crowded or inner is None or mentions(tile, inner))) or (c.dirty and self.spent(tile))
            ):
                self.state.drop(key)
