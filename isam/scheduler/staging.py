"""Boxes copied near ahead of their use, possibly in another layout: packing is a move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd, prod

from isam.caches import LINE
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.ir.kernel import Statement
from isam.schedule.tree import Loop, Node, Place, Seq, Slot, Tile
from isam.scheduler.blocks import BLOCKS
from isam.scheduler.dry import DryRun
from isam.scheduler.hops import End
from isam.scheduler.laid_out import layout_of, room_of
from isam.scheduler.move import moves_of
from isam.scheduler.nests import Use, hull, sizes_of, tile_of
from isam.scheduler.places import offsets, order_of, within
from isam.scheduler.plan import Members, Plan, StagedBox
from isam.scheduler.state import STAGED, Copy, Entering, Key, StageLayout
from isam.scheduler.stays import Stays
from isam.scheduler.tiles import encloses
from isam.scheduler.transfer import Transfer
from isam.scheduler.trim import Env
from isam.system.graph import COUNTED
from isam.system.hierarchy import SHARE


class Stager:
    """Carries out a plan's stages; ``bind`` takes what runs once, when constants are bound, ``stays`` what is brought
    before the loops around the group, in dealt loops as those in ``dealt``."""

    def __init__(self, run: DryRun, plan: Plan, bind: list[Node], stays: Stays | None, dealt: list[Loop]):
        self.run, self.plan, self.group, self.bind = run, plan, plan.group, bind
        self.stays, self.dealt = stays, dealt
        self.given: frozenset[Key] = frozenset()  # what was near before the group

    def ahead(self, stage: StagedBox, env: Env, members: Members, blocks: float, block: Env) -> None:
        """Lays out a panel for all of a domain, which lies within ``env``, where that is less than its ``blocks``, each
        like ``block``, would lay out, and a cache holds it."""
        able = stage.memory == self.run.system.home and not (stage.at_bind or stage.stays or stage.form)
        able = able and self.written(stage, members)
        whole, each = (self._box(stage, e, members) for e in (env, block))
        if not able or whole is None or each is None or not self._paths(stage):
            return
        last = max((m.capacity for m in self.run.system.caches), default=0)
        wide = _for_blocks(stage, each) if self._cut_by(stage, whole, each) else stage
        if prod(whole.shape) < blocks * prod(each.shape) and self._layout(wide, whole)[1] <= SHARE * last:
            self.run.data.panels.add(self._panel(wide, whole, "all"))

    def _cut_by(self, stage: StagedBox, whole: Tile, each: Tile) -> bool:
        """Whether blocks are parts of a panel's innermost dimension."""
        dim = _along(stage)
        return whole.shape[dim] != each.shape[dim]

    def _laid_out(self, box: Tile) -> bool:
        """Whether a panel for all of the domain has a box as one of its own."""
        data, scope = self.run.data, self.run.scope
        panels = (k for k in data.state.stages_around(box, scope.ranges) if k in data.panels)
        found = next((offsets(k[1], data.state.copies[k], box, scope.variables) for k in panels), [None])
        return found == [0] * len(found)

    def _given(self, box: Tile) -> bool:
        """Whether all of a box is near in tiles from before the group."""
        data = self.run.data
        there = {k[1] for k in data.state.of(box.buffer) if k in self.given}
        parts = (prod(t.shape) for t in there if encloses(box, t, data.scope.ranges))
        return bool(there) and sum(parts) == prod(box.shape)

    def stage(self, stage: StagedBox, env: Env, members: Members) -> bool:
        """Copies the box that is read below into the stage's memory, in the stage's layout (packing is a move). Whether
        it is still to be filled, piece by piece."""
        data = self.run.data
        box = self._whole(stage.buffer) if stage.at_bind else self._box(stage, env, members)
        if box is None or not self._read(stage, members) or not self._paths(stage):
            return False
        if stage.buffer in data.homes.near:
            return False
        if self._laid_out(box) or self._given(box):
            return False
        lying = self._lying(stage, box, members)
        if lying is None:
            return False
        stage = lying
        data.settle(box, None)
        known = data.at_bind.get((stage.buffer, stage.order, stage.cut, stage.pad)) if stage.at_bind else None
        if known is not None:
            data.state.put(*known)
            return False
        if stage.stays and self.stays is not None and self._staying(stage, box, self.stays):
            return False
        if not self._beside(stage):
            return self._near(stage, box)
        layout, _ = self._layout(stage, box)
        in_pieces = stage.by is not None and self._comes_in_pieces(stage, layout, LINE)
        self._panel(stage, box, in_pieces=in_pieces)
        return in_pieces

    def piece(self, stage: StagedBox, env: Env, members: Members) -> None:
        """Brings what is read below of a box whose room is there already to its place in it."""
        if not self._read(stage, members):
            return
        data, piece = self.run.data, self._box(stage, env, members)
        assert piece is not None, "one access of one nest reads a box"
        around = data.state.stages_around(piece, data.scope.ranges)
        key = next((k for k in around if k[0] == stage.memory), None)
        if key is not None:  # else it had to make room
            self._transfer(stage, piece, data.state.copies[key], {key}, around=key[1]).run()

    def _read(self, stage: StagedBox, members: Members) -> bool:
        return any(u.buffer == stage.buffer and u.reads for i in members for u in self.group.nests[i].uses)

    def written(self, stage: StagedBox, members: Members) -> bool:
        """Whether all elements of the buffer have a value when the members read it, also those between what they read:
        it is the caller's, or a statement before them writes all of it."""
        kernel = self.run.kernel
        if kernel.buffer(stage.buffer).role in ("in", "const", "inout"):
            return True
        nests = [self.group.nests[i] for i in members]
        readers = (n for n in nests if any(u.buffer == stage.buffer and u.reads for u in n.uses))
        first = min((min(n.mapping.statements) for n in readers), default=0)
        shape = kernel.buffer(stage.buffer).shape
        return any(_writes_all(s, shape) for s in kernel.statements[:first] if s.dest.buffer == stage.buffer)

    def _whole(self, buffer: str) -> Tile:
        shape = tuple(int(n) for n in self.run.kernel.buffer(buffer).shape)
        return Tile(buffer, (Affine(),) * len(shape), shape, (1,) * len(shape))

    def _beside(self, stage: StagedBox) -> bool:
        """Whether the stage's memory is home itself, or like it what an instance has with registers between."""
        if stage.memory == self.run.system.home:
            return True
        path = self._route(stage)
        return path is not None and len(path) == 3 and self.run.system.memories[path[1]].kind == COUNTED

    def _route(self, stage: StagedBox) -> tuple[str, ...] | None:
        """The way from home to the stage's memory."""
        return self.run.data.fit.route(self.run.system.home, stage.memory, self.run.homes.dtype(stage.buffer))

    def _panel(self, stage: StagedBox, box: Tile, place: str = "", in_pieces: bool = False) -> Key:
        """A box laid out anew in home memory, or beside it, in workspace of its own, whose ``place`` has a name; or its
        room alone, where it is brought ``in_pieces``."""
        data, slots = self.run.data, self.run.homes.slots
        layout, total = self._layout(stage, box)
        name = f"{stage.buffer}.b{len(data.at_bind)}" if stage.at_bind else f"{stage.buffer}.{place or stage.depth}"
        size = max(total, slots[name].bytes) if name in slots else total
        slots[name] = Slot(name, stage.memory, max(1, size), bound=stage.at_bind)
        copy = Copy(Place(stage.memory, name, Affine(), ()), False, total, layout)
        key: Key = (stage.memory, box, STAGED)
        with data.scope.recording() as nodes:
            if not in_pieces:
                self._transfer(stage, box, copy, set()).run()
        if stage.at_bind:
            self.bind.extend(nodes)
            data.at_bind[stage.buffer, stage.order, stage.cut, stage.pad] = (key, copy)
        else:
            data.scope.out.extend(nodes)
        for k in [k for k, c in data.state.copies.items() if c.place.base == name and k != key]:
            data.state.drop(k)  # another box lay there
        data.state.put(key, copy)
        return key

    def _staying(self, stage: StagedBox, box: Tile, stays: Stays) -> bool:
        """A box in a slot of a near memory, filled before the loops around the group: it is there whenever we come.
        False where there is no room for it."""
        run, data = self.run, self.run.data
        m = run.system.memories[stage.memory]
        layout, total = self._layout(stage, box, m.align)
        name = f"{stage.buffer}.g{min(n.number for n in self.group.nests)}"
        size = stays.slot(name, room_of(total, m.align))
        if not size:
            return False
        run.homes.slots[name] = Slot(name, stage.memory, size, align=max(1, m.align))
        copy = Copy(Place(stage.memory, name, Affine(), ()), False, total, layout)
        key: Key = (stage.memory, box, STAGED)
        with data.scope.recording() as nodes:
            self._transfer(stage, box, copy, {key}).run()
        for loop in reversed(self.dealt):
            nodes = [replace(loop, body=Seq(tuple(nodes)))]
        data.since.entered[Entering(stays.before(stage.buffer, box), tuple(nodes))] = None
        data.state.put(key, copy)
        return True

    def _near(self, stage: StagedBox, box: Tile) -> bool:
        """A box brought to a memory with addresses of its own; whether only its room was made."""
        data = self.run.data
        key: Key = (stage.memory, box, STAGED)
        if key in data.state.copies:
            return False
        align = self.run.system.memories[stage.memory].align
        layout, total = self._layout(stage, box, align)
        if total > data.system.memories[stage.memory].limit:  # rows begin at multiples: it takes more than its bytes
            return False
        copy = Copy(data.room(stage.memory, box, set(), units=total), False, total, layout)
        transfer = self._transfer(stage, box, copy, {key})
        if transfer.possible():
            data.state.put(key, copy)
            if stage.by is not None and self._comes_in_pieces(stage, layout, align):
                return True
            transfer.run()
        return False

    def _lying(self, stage: StagedBox, box: Tile, members: Members) -> StagedBox | None:
        """The stage with the dimensions in an order in which moves fill registers with what calls read of the box: its
        own where they fill some, else that of an operand. None where they fill none: then nobody reads the box."""
        data, system = self.run.data, self.run.system
        nests = [self.group.nests[i] for i in members]
        read = [(n, u) for n in nests for u in n.uses if u.buffer == stage.buffer and u.reads]
        registers = all(stage.memory not in u.homes and system.memories[u.homes[0]].kind == COUNTED for _, u in read)
        if self._beside(stage) or stage.cut or stage.access is not None or not registers:
            return stage
        parts: list[tuple[Use, Tile]] = []
        for nest, use in read:
            tile = tile_of(use, {}, sizes_of(nest, {a: nest.unit(a) for a in nest.mapped}))
            shape = tuple(min(n, m) for n, m in zip(tile.shape, box.shape, strict=True))
            parts.append((use, Tile(box.buffer, box.start, shape, tile.steps)))

        def read_from(stage: StagedBox) -> int | None:
            """How many operands moves bring to registers from there; None where nothing brings the box there."""
            layout, total = self._layout(stage, box, system.memories[stage.memory].align)
            copy = Copy(Place(stage.memory, "", Affine(), ()), False, total, layout)
            if total > system.memories[stage.memory].limit or not self._transfer(stage, box, copy, set()).possible():
                return None
            there = End(stage.memory, lambda t: within(box, copy, t, data.scope.variables))
            return sum(data.fills(t, there, u.homes[0], data.fit.form(u.homes[0], t, u.dims)) for u, t in parts)

        if read_from(stage) != 0:
            return stage
        others = (replace(stage, order=tuple(order_of(t, u.dims))) for u, t in parts)
        return next((s for s in others if read_from(s)), None)

    def _comes_in_pieces(self, stage: StagedBox, layout: StageLayout, align: int) -> bool:
        """Whether a box has one reader, and every piece of it begins where an access may begin. Blocks of a domain may
        be longer than the plan's."""
        uses = [u for n in self.group.nests for u in n.uses if u.buffer == stage.buffer]
        boxed = self.group.domain is None
        cut = [axis for axis, block in self.plan.order[stage.depth : stage.by]
               if not boxed or block < self.group.length(axis)]  # fmt: skip
        return len(uses) == 1 and not stage.cut and all(
            bytes_ * row.coefficient(axis) * self.group.unit(axis) % max(1, align) == 0
            for axis in cut for row, bytes_ in zip(uses[0].index, layout.coefficients, strict=True)
        )  # fmt: skip

    def _layout(self, stage: StagedBox, box: Tile, align: int = 1) -> tuple[StageLayout, int]:
        size = size_of(self.run.homes.dtype(stage.buffer))
        return layout_of(box.shape, size, stage.order, stage.cut, stage.pad, align)

    def _transfer(self, stage: StagedBox, box: Tile, copy: Copy, pinned: set[Key],
                  around: Tile | None = None) -> Transfer:  # fmt: skip
        """Of a box, or of the part of it that is ``around``, to its copy: from home, or from a box on the way."""
        data, whole = self.run.data, around or box
        there = End(stage.memory, lambda t: within(whole, copy, t, data.scope.variables))
        cut, near = dict(stage.cut), not self._beside(stage)
        grain = {} if near else cut
        ways = []
        for path in self._paths(stage):
            source, key = self._source(path, box)
            onwards, held = path[path.index(source.memory) :], pinned if key is None else pinned | {key}
            ways.append(Transfer(data, box, onwards, source, there, held, grain, cut if near else None, stage.form))
        return ways[0] if len(ways) == 1 else max(ways, key=Transfer.worth)

    def _source(self, path: tuple[str, ...], box: Tile) -> tuple[End, Key | None]:
        """Where a box comes from on a way from home: the nearest box on it that holds all of this one, whose name comes
        with it, else home."""
        data = self.run.data
        around = {k[0]: k for k in data.state.stages_around(box, data.scope.ranges) if k[0] in path[1:-1]}
        key = next((around[m] for m in reversed(path[1:-1]) if m in around), None)
        if key is not None:
            copy = data.state.copies[key]
            place = within(key[1], copy, box, data.scope.variables)
            if place is not None and data.begins(place, box, path[-1], None):
                return End(key[0], lambda t: within(key[1], copy, t, data.scope.variables)), key
        return End(self.run.system.home, data.home), None

    def _paths(self, stage: StagedBox) -> list[tuple[str, ...]]:
        """The way to the stage's memory; for what is laid out anew, over each of the registers between. None where no
        moves bring its type there: then calls take it from where it is, or say what they lack."""
        system, home, there = self.run.system, self.run.system.home, stage.memory
        dtype = self.run.homes.dtype(stage.buffer)
        found: list[tuple[str, ...]] = []
        if self._beside(stage):
            between = (m for m in system.memories if moves_of(system, home, m, dtype))
            found = [(home, m, there) for m in between if moves_of(system, m, there, dtype)]
        path = None if found else self._route(stage)
        return found if path is None else [path]

    def _box(self, stage: StagedBox, env: Env, members: Members) -> Tile | None:
        """The smallest box that holds what the members read of the buffer within ``env``, by accesses that the stage
        is for."""
        uses = (u for i in members for u in self.group.nests[i].uses if u.buffer == stage.buffer and u.reads)
        return hull(stage.buffer, [u.index for u in uses if stage.access in (None, u.index)], env)


def _writes_all(s: Statement, shape: Sequence[Affine]) -> bool:
    """Whether a statement writes every element of a buffer: each dimension goes by an axis of its own, or is 1."""
    extents, seen = {a.name: a.extent for a in s.domain.axes}, set[str]()
    for row, n in zip(s.dest.index, shape, strict=True):
        if row.is_constant and row.const == 0 and n == Affine((), 1):
            continue
        name = row.names[0] if len(row.names) == 1 else ""
        if name in seen or row != Affine.of(name) or extents.get(name) != n:
            return False
        seen.add(name)
    return not s.domain.where


def _along(stage: StagedBox) -> int:
    """The dimension that a panel is cut in, or the innermost one."""
    return stage.cut[-1][0] if stage.cut else stage.order[-1]


def _for_blocks(stage: StagedBox, each: Tile) -> StagedBox:
    """How what is staged for a block lies in a panel for many: as wide as the smallest of them."""
    dim = _along(stage)
    wide = gcd(BLOCKS[-1], stage.cut[-1][1] if stage.cut else each.shape[dim])
    return replace(stage, order=(dim, *(d for d in stage.order if d != dim)), cut=(*stage.cut[:-1], (dim, wide)))
