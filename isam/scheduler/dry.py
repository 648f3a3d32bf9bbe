"""The dry run against a MachineState (SCH-1): operands are fetched, places chosen, victims evicted, steps recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import product

from isam.approach.choice import Choice, Trace
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.schedule.tree import Issue, Loop, Node, Operand, Place, Seq, Slot, Tile
from isam.scheduler import move as mv
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.scheduler.nests import Nest, Use
from isam.scheduler.state import (
    FAR,
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
    units_needed,
    within,
)
from isam.system.graph import COUNTED, System

PlaceOf = Callable[[Tile], Place | None]
Hop = tuple[mv.Carrier, tuple[int | None, ...]]  # what carries a tile over an edge, and a dimension per axis of it


class DryRun:
    """Executes calls symbolically and records the steps. ``out`` is where steps go; ``state`` what the machine holds."""

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
        self.variables[name], self.ranges[name] = Var(lo, step), bounds
        self.scope.append(name)
        try:
            yield
        finally:
            self.scope.pop()
            del self.variables[name], self.ranges[name]

    # -- homes -------------------------------------------------------------------------------------------------------
    def dtype(self, buffer: str) -> str:
        return buffer[1:].split(":")[0] if buffer.startswith("#") else self.kernel.buffer(buffer).dtype

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
            self.slots[name] = Slot(name, home, max(1, units_of(dtype)), dtype=dtype, literal=value)
            return
        shape = [max(0, int(d)) for d in self.kernel.buffer(name).shape]
        for d, _, size in self.fold(tile):
            if size < shape[d]:
                self.folded.add(name)
                shape[d] = size
        self.homes[name] = mv.home_place(name, home, tuple(shape), dtype)
        total = units_of(dtype)
        for n in shape:
            total *= n
        self.slots[name] = Slot(name, home, max(1, total), dtype=dtype)

    # -- room --------------------------------------------------------------------------------------------------------
    def room(self, memory: str, tile: Tile, pinned: set[Key], form: Form = None) -> Place:
        """Space for the tile in ``memory``, evicting unpinned copies when it is full (SCH-6)."""
        m = self.system.memories[memory]
        dtype = self.dtype(tile.buffer)
        units = units_needed(m, tile, dtype, self.lanes)
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
        return Infeasible(f"memory '{memory}'", f"{units} {what} for {tile}",
                          f"its {m.cells if m.cells is not None else m.capacity} {what} hold operands of the same call",
                          resident)  # fmt: skip

    def units(self, memory: str, tile: Tile) -> int:
        return units_needed(self.system.memories[memory], tile, self.dtype(tile.buffer), self.lanes)

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
            self.carry(tile, memory, self.system.home, lambda t: mv.sub_place(copy.place, tile, t), self.home, form, None, {key})
        self.state.mark(key, False)

    def carry(self, tile: Tile, source: str, target: str, source_of: PlaceOf, target_of: PlaceOf,
              source_form: Form, target_form: Form, pinned: set[Key]) -> None:  # fmt: skip
        """Moves a tile along the shortest route; what lands on the way is dropped again."""
        path = self.route(source, target)
        if path is None:
            raise NoSchedule(Infeasible(f"a route from '{source}' to '{target}'", f"a move for {tile}",
                                        "the machine has no such path"))  # fmt: skip
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
        self.carry(tile, source, memory, source_of, lambda t: mv.sub_place(place, tile, t), source_form, form, pinned | {key})
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
            if key[1] == tile and key[0] != memory and self.state.copies[key].stage is None and self.route(key[0], memory):
                place = self.state.copies[key].place
                options.append((key[0], lambda t, p=place: mv.sub_place(p, tile, t), key[2]))
        for key in self.state.stages_around(tile, self.ranges):
            copy = self.state.copies[key]
            if within(key[1], copy, tile, self.variables) is not None:
                options.append((key[0], lambda t, k=key, c=copy: within(k[1], c, t, self.variables), None))
        options.append((self.system.home, self.home, None))
        if len(options) == 1:
            return options[0]
        hops = [len(self.route(o[0], memory) or ()) for o in options]
        labels = [Labelled(o, f"{tile.buffer} from {o[0]}") for o in options]
        return self.trace.choose(Choice("source", labels, {"tile": str(tile), "to": memory}, hops)).value

    def read_home(self, use: Use, tile: Tile) -> Place:
        """A home-memory operand: a staged box there when its contract asks for one, else the buffer itself."""
        self._settle(tile, None)
        for key in self.state.stages_around(tile, self.ranges):
            if key[0] == self.system.home:
                place = within(key[1], self.state.copies[key], tile, self.variables)
                if place is not None and self.meets(use, tile, place):
                    return place
        place = self.home(tile)
        if not self.meets(use, tile, place):
            raise NoSchedule(Infeasible(f"operand {use.name}", f"strides {use.strides} (elements) for {tile}",
                                        f"it lies with byte strides {place.strides}"))  # fmt: skip
        return place

    def meets(self, use: Use, tile: Tile, place: Place) -> bool:
        size = units_of(use.dtype)
        for d, need in zip(use.dims, use.strides, strict=True):
            if need is not None and tile.shape[d] > 1 and place.strides[d] * tile.steps[d] != need * size:
                return False
        return True

    def write(self, use: Use, tile: Tile, memory: str, pinned: set[Key]) -> tuple[Place, Key | None, Copy | None]:
        """The place an output goes to; other copies of its elements become stale (SCH-5)."""
        form = mv.form_of(self.system, memory, tile, use.dims)
        key = None if memory == self.system.home else (memory, tile, form)
        known = key is not None and key in self.state.copies
        if not (known and self.state.copies[key].dirty):  # a dirty copy is already the only one
            for other in self.state.of(tile.buffer):
                if other == key or disjoint(other[1], tile, self.ranges):
                    continue
                if self.state.copies[other].stage is not None:
                    raise NoSchedule(Infeasible(f"staged '{tile.buffer}'", f"a write to {tile}", "it is staged for reading"))
                if self.state.copies[other].dirty and not (other[1] == tile and not use.reads):
                    self.flush(other)
                if other not in pinned:
                    self.state.drop(other)
        if key is None:
            place = self.home(tile)
            if not self.meets(use, tile, place):
                raise NoSchedule(Infeasible(f"operand {use.name}", f"strides {use.strides} (elements) for {tile}",
                                            f"it lies with byte strides {place.strides}"))  # fmt: skip
            return place, None, None
        if known and (use.reads or key not in pinned):
            place = self.state.copies[key].place
        else:
            place = self.room(memory, tile, pinned, form)
        return place, key, Copy(place, True, self.units(memory, tile))

    # -- calls -------------------------------------------------------------------------------------------------------
    def call(self, nest: Nest, point: dict[str, Affine], sizes: dict[str, int], tiles: tuple[Tile, ...]) -> None:
        """One instruction call with all its operands in place."""
        where = self._memories(nest, tiles)
        pinned: set[Key] = {k for k in (self._key(u, t, m) for u, t, m in zip(nest.uses, tiles, where, strict=True)) if k}
        places: dict[str, Place] = {}
        for u, t, m in zip(nest.uses, tiles, where, strict=True):
            if u.reads:
                places[u.name], _ = self.read(u, t, m, pinned)
        wrote: list[tuple[Key, Copy, Tile]] = []
        for u, t, m in zip(nest.uses, tiles, where, strict=True):
            if u.writes:
                others = {k for v, tt, mm in zip(nest.uses, tiles, where, strict=True) if v.reads and (k := self._key(v, tt, mm))}
                places[u.name], key, copy = self.write(u, t, m, others | {w[0] for w in wrote})
                if key is not None and copy is not None:
                    wrote.append((key, copy, t))
        ops = tuple(Operand(u.name, t, places[u.name], u.dims) for u, t in zip(nest.uses, tiles, strict=True))
        unit = self._unit(nest)
        self.out.append(Issue(unit, nest.instruction.name, tuple(sizes.items()), ops, nest.number,
                              (*((t, Affine.of(t)) for t in nest.mapping.loops), *((nest.own.get(a, a), p) for a, p in point.items()))))  # fmt: skip
        for u, t in zip(nest.uses, tiles, strict=True):
            if u.writes:
                self.since.write(t)
        for key, copy, tile in wrote:
            for other in self.state.of(tile.buffer):
                if other != key and not disjoint(other[1], tile, self.ranges):
                    self.state.drop(other)
            self.state.put(key, copy)

    def _key(self, use: Use, tile: Tile, memory: str) -> Key | None:
        return None if memory == self.system.home else (memory, tile, mv.form_of(self.system, memory, tile, use.dims))

    def _unit(self, nest: Nest) -> str:
        units = self.system.units_of(nest.instruction.name)
        if len(units) == 1:
            return units[0].name
        names = [u.name for u in units]
        return self.trace.choose(Choice("device", names, {"instruction": nest.instruction.name}))

    def _memories(self, nest: Nest, tiles: tuple[Tile, ...]) -> tuple[str, ...]:
        """A legal joint placement of the operands (SCH-4, SYS-3)."""
        options = self._placements.get(nest.instruction.name)
        if options is None:
            options = joint_placements(nest)
            self._placements[nest.instruction.name] = options
        if not options:
            raise NoSchedule(Infeasible(f"instruction {nest.instruction.name}", "a joint placement of its operands",
                                        "its homes and 'apart' groups contradict each other"))  # fmt: skip
        if len(options) == 1:
            return options[0]
        costs = []
        for option in options:
            missing = 0.0
            for u, t, m in zip(nest.uses, tiles, option, strict=True):
                if self._key(u, t, m) not in self.state.copies:
                    missing += 1 if u.reads else 0.25
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
            if c.stage is None and ((not c.dirty and (crowded or inner is None or mentions(tile, inner))) or (c.dirty and self.spent(tile))):
                self.state.drop(key)


def joint_placements(nest: Nest) -> list[tuple[str, ...]]:
    names = [u.name for u in nest.uses]
    out = []
    for option in product(*(u.homes for u in nest.uses)):
        at = dict(zip(names, option, strict=True))
        if all(len({at[o] for o in group if o in at}) == len([o for o in group if o in at]) for group in nest.instruction.apart):
            out.append(option)
    return out


class Labelled:
    """An option of a choice with a printed form."""

    __slots__ = ("label", "value")

    def __init__(self, value: object, label: str):
        self.value, self.label = value, label


def parse_literal(name: str) -> float | int | bool:
    dtype, text = name[1:].split(":", 1)
    if text in ("True", "False"):
        return text == "True"
    return float(text) if dtype.startswith(("f", "bf")) or not text.lstrip("-").isdigit() else int(text)


def units_of(dtype: str) -> int:
    from isam.ir.dtype import size_of

    return size_of(dtype)


class Transfer:
    """Moves one tile along a path, in parts that every hop can carry, as loops where there are many parts."""

    UNROLL = 4

    def __init__(self, run: DryRun, tile: Tile, path: tuple[str, ...], source_of: PlaceOf, target_of: PlaceOf,
                 source_form: Form, target_form: Form, pinned: set[Key], grain: dict[int, int] | None = None):  # fmt: skip
        self.grain = grain or {}
        self.run_, self.tile, self.path, self.pinned = run, tile, path, pinned
        self.source_of, self.target_of = source_of, target_of
        self.forms = [source_form] + [None] * (len(path) - 2) + [target_form]
        self.dtype = run.dtype(tile.buffer)

    def run(self) -> None:
        if any(n == 0 for n in self.tile.shape):
            return
        hops = None if self.grain else self._direct()
        if hops is not None:
            self._issue(self.tile, hops)
            return
        self.part = self._part()
        self._cut(0, self.tile)

    def _direct(self) -> list[Hop] | None:
        """The common case: the whole tile in one call per hop. Which carriers fit depends only on shapes and strides."""
        source, target = self.source_of(self.tile), self.target_of(self.tile)
        if source is None or target is None:
            return None
        key = (self.path, self.tile.shape, self.tile.steps, source.strides, target.strides, *self.forms, self.dtype)
        known = self.run_.carriers
        if key not in known:
            hops = [self._hop(i, self.tile, None) for i in range(len(self.path) - 1)]
            whole = all(h is not None and mv.chunk(h[0], h[1], self.tile) == self.tile.shape for h in hops)
            known[key] = [h for h in hops if h is not None] if whole else None
        return known[key]

    def _part(self) -> tuple[int, ...]:
        """The part of the tile one issue per hop carries: the largest that some choice of carriers admits."""
        best: tuple[float, tuple[int, ...]] | None = None
        whole = _crop(self.tile, self.grain)
        long = [d for d, n in enumerate(whole.shape) if n > 1]
        shapes = {whole.shape}
        for keep in range(min(2, len(long)), -1, -1):
            for dims in _subsets(long, keep):
                shapes.add(tuple(n if d in dims else 1 for d, n in enumerate(whole.shape)))
        for shape in sorted(shapes, key=lambda s: -_volume(s)):
            part = self._limit(shape)
            if part is not None and (best is None or self._worth(part) > best[0]):
                best = (self._worth(part), part)
        if best is None:
            raise NoSchedule(Infeasible(f"a move {' -> '.join(self.path)}", f"to carry {whole}",
                                        "no move instruction on that path can, with these strides"))  # fmt: skip
        return best[1]

    def _worth(self, part: tuple[int, ...]) -> float:
        """Elements moved per predicted cycle."""
        tile = Tile(self.tile.buffer, self.tile.start, part, self.tile.steps)
        hops = (self._hop(i, tile, None) for i in range(len(self.path) - 1))
        return _volume(part) / sum((h[0].instruction.cost.issue or 1.0) if h is not None else FAR for h in hops)

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
            if smaller == shape:
                return shape
            shape = smaller
        return shape

    def _hop(self, i: int, tile: Tile, places: list[Place] | None) -> Hop | None:
        """A carrier for hop ``i`` of this part; places of intermediate stops are packed by default."""
        run = self.run_
        ends: list[Place | None] = []
        for j in (i, i + 1):
            if places is not None:
                ends.append(places[j])
            elif j == 0:
                ends.append(self.source_of(tile))
            elif j == len(self.path) - 1:
                ends.append(self.target_of(tile))
            else:
                ends.append(packed(run.system.memories[self.path[j]], tile, self.dtype, 0, self._passing(j, tile)))
        if ends[0] is None or ends[1] is None:
            return None
        source, target = ends
        best: tuple[int, mv.Carrier, tuple[int | None, ...]] | None = None
        for c in run.carriers_of(self.path[i], self.path[i + 1]):
            if not mv.admits(c, self.dtype):
                continue
            for dims in self._dims(c, i, tile):
                part = mv.chunk(c, dims, tile)
                if part is None or not self._register_form(c, dims, i, tile):
                    continue
                if not mv.contract_met(c, dims, tile, source, target, units_of(self.dtype)):
                    continue
                if best is None or _volume(part) > best[0]:
                    best = (_volume(part), c, dims)
        return None if best is None else best[1:]

    def _dims(self, c: mv.Carrier, i: int, tile: Tile) -> list[tuple[int | None, ...]]:
        counted = [j for j in (i, i + 1) if self.run_.system.memories[self.path[j]].kind == COUNTED]
        form = self.forms[counted[0]] if counted else None
        return mv.assignments(c, tile, form, bool(counted))

    def _passing(self, j: int, tile: Tile) -> Form:
        """The form of a part that only passes through: along its one long dimension."""
        if self.run_.system.memories[self.path[j]].kind != COUNTED:
            return None
        long = [d for d, n in enumerate(tile.shape) if n > 1]
        return (long[0] if long else len(tile.shape) - 1,) if tile.shape else ()

    def _register_form(self, c: mv.Carrier, dims: tuple[int | None, ...], i: int, tile: Tile) -> bool:
        """A register on the way takes a one-dimensional part whole."""
        counted = [j for j in (i, i + 1) if self.run_.system.memories[self.path[j]].kind == COUNTED]
        if not counted or self.forms[counted[0]] is not None:
            return True
        return len([n for n in tile.shape if n > 1]) <= len(c.axes) <= 1 and len(c.axes) == 1

    def _cut(self, d: int, tile: Tile) -> None:
        if d == len(tile.shape):
            self._issue(tile)
            return
        n, size, then, name = tile.shape[d], self.part[d], d + 1, f"{tile.buffer}.{d}"
        if n > self.grain.get(d, n):
            size, then, name = self.grain[d], d, name + "b"
        full, rest = divmod(n, size)
        wide = then == d or any(m > p for m, p in zip(tile.shape[d + 1 :], self.part[d + 1 :], strict=True))
        inside = d in self.grain and then != d  # within a block of a layout: places are known for constants only
        if not inside and (full > self.UNROLL or (full > 1 and wide)):
            self._loop(d, tile, full, size, then, name, wide)
        else:
            for i in range(full):
                self._cut(then, _slice(tile, d, tile.start[d] + i * size * tile.steps[d], size))
        if rest:
            self._cut(then, _slice(tile, d, tile.start[d] + full * size * tile.steps[d], rest))

    def _loop(self, d: int, tile: Tile, full: int, size: int, then: int, var: str, wide: bool) -> None:
        run = self.run_
        step = size * tile.steps[d]
        lo = tile.start[d]
        unroll = 1 if wide else next(u for u in (self.UNROLL, 3, 2, 1) if full % u == 0)
        lo_range = lo.bounds(run.ranges) if all(n in run.ranges for n in lo.names) else (0, 1 << 40)
        with run.recording() as body, run.variable(var, lo, step * unroll, (lo_range[0], lo_range[1] + (full - 1) * step)):
            for u in range(unroll):
                self._cut(then, _slice(tile, d, Affine.of(var) + u * step, size))
        run.out.append(loop(var, lo, lo + full * step, step * unroll, body, tile.buffer))

    def _issue(self, tile: Tile, hops: list[Hop] | None = None) -> None:
        """One part, hop by hop."""
        run = self.run_
        source, target = self.source_of(tile), self.target_of(tile)
        assert source is not None and target is not None
        places = [source]
        for j in range(1, len(self.path) - 1):
            places.append(run.room(self.path[j], tile, self.pinned))
            key: Key = (self.path[j], tile, self._passing(j, tile))
            run.state.put(key, Copy(places[-1], False, run.units(self.path[j], tile)))
            self.pinned = self.pinned | {key}
        places.append(target)
        for i in range(len(self.path) - 1):
            got = hops[i] if hops is not None else self._hop(i, tile, places)
            if got is None:
                raise NoSchedule(Infeasible(f"the move {self.path[i]} -> {self.path[i + 1]}", f"to carry {tile}",
                                            "no move instruction there can, with these strides"))  # fmt: skip
            c, dims = got
            run.out.append(mv.make_issue(c, dims, tile, places[i], places[i + 1]))
        for j in range(1, len(self.path) - 1):
            key = (self.path[j], tile, self._passing(j, tile))
            self.pinned = self.pinned - {key}
            run.state.drop(key)


def _crop(tile: Tile, grain: dict[int, int]) -> Tile:
    shape = tuple(min(n, grain.get(d, n)) for d, n in enumerate(tile.shape))
    return Tile(tile.buffer, tile.start, shape, tile.steps)


def loop(var: str, lo: Affine, hi: Affine, step: int, body: list[Node], axis: str) -> Loop:
    from isam.schedule.tree import Bound

    return Loop(var, (Bound(lo),), (Bound(hi),), step, Seq(tuple(body)), axis=axis)


def _slice(tile: Tile, d: int, start: Affine, n: int) -> Tile:
    return Tile(tile.buffer, (*tile.start[:d], start, *tile.start[d + 1 :]), (*tile.shape[:d], n, *tile.shape[d + 1 :]), tile.steps)


def _subsets(items: list[int], k: int) -> list[tuple[int, ...]]:
    from itertools import combinations

    return list(combinations(items, k))


def _volume(shape: tuple[int, ...]) -> int:
    n = 1
    for s in shape:
        n *= s
    return n
