"""Walks a plan: cuts axes into sibling loops, peels what runs once, stages boxes, unrolls the innermost block.

Every kept loop is a recurrence (SCH-10): what a body leaves resident and does not mention the loop variable may be
carried; the state at the end of the body must equal the state at its begin. Equal positions with equal entry states
are scheduled once and share their node.
"""

from __future__ import annotations

from itertools import product

from isam.ir.affine import Affine
from isam.schedule.tree import Node, Place, Seq, Slot, Tile
from isam.scheduler.dry import DryRun
from isam.scheduler.nests import MappedAxis, Nest, sizes_of, tile_of
from isam.scheduler.plan import Plan, Stage
from isam.scheduler.recur import Guarded, Recur
from isam.scheduler.staging import layout_of, row_range
from isam.scheduler.state import STAGED, Copy, Key, MachineState, Since, StageLayout, disjoint, within
from isam.scheduler.transfer import Transfer
from isam.scheduler.trim import Env, Segment, segments

Call = tuple[Nest, dict[str, Affine], dict[str, int], tuple[Tile, ...]]  # nest, point, sizes, a tile per operand
Members = tuple[int, ...]  # nests of the group that take part, by position


class Walk:
    """One group's plan, executed against the dry run's state."""

    def __init__(self, run: DryRun, plan: Plan, bind: list[Node]):
        self.run, self.plan, self.bind = run, plan, bind
        self.group = plan.group
        self.memo: dict[object, tuple[tuple[Node, ...], MachineState, Since]] = {}
        self.calls: dict[object, list[Call]] = {}
        self.env: Env = {}
        self.open: list[str] = []  # axes of the kept loops we are in
        self.ending = False  # an iteration is being closed: what only it could see is dead
        self.leaf: frozenset[int] = frozenset()
        self.rest: list[Call] = []  # calls of the present block still to come
        run.dead, run.fold, run.spent = self._dead, self._fold, self._spent

    def start(self) -> None:
        """Runs the whole group."""
        members = tuple(range(len(self.group.nests)))
        origin = {a: n for nest in self.group.nests for a, n in nest.origin.items()}
        at = {a: Affine((), origin.get(a, 0)) for a in self.group.axes}
        env: Env = {a: (at[a], self._length(a), at[a]) for a in self.group.axes}
        if any(n == 0 for _, n, _ in env.values()):
            members = tuple(i for i in members if all(self._length(a) for a in self.group.nests[i].axes))
        where = tuple(w for n in self.group.nests for w in n.where)
        if where and members:
            Guarded(self, where).loops(env, members)
        else:
            self._level(0, env, members)
        self.empty()

    def empty(self) -> None:
        """Sends everything home."""
        end, was, self.ending = self.run.state, self.ending, True
        for key in end.of_any():
            if end.copies[key].dirty:
                self.run.flush(key)
            end.drop(key)
        self.ending = was

    def _length(self, axis: str) -> int:
        return next(n.length(axis) for n in self.group.nests if axis in n.extents)

    # -- levels ------------------------------------------------------------------------------------------------------
    def _level(self, d: int, env: Env, members: Members) -> None:
        """Everything below ``d`` loops, for these members, from the present state; shared when seen before."""
        if not members:
            return
        run = self.run
        key = (
            d,
            tuple(sorted(env.items())),
            members,
            tuple((v, run.variables[v], run.ranges[v]) for v in run.scope),
            run.state.signature(),
        )
        hit = self.memo.get(key)
        if hit is None:
            outer_env, self.env = self.env, env
            before, run.since = run.since, Since()
            with run.recording() as nodes:
                self._level_body(d, env, members)
            hit = (_shared(nodes), run.state, run.since)
            self.memo[key] = hit
            run.since = before
            self.env = outer_env
        run.state = hit[1].copy()
        run.since.then(hit[2], run.ranges)
        run.out.extend(hit[0])

    def _level_body(self, d: int, env: Env, members: Members) -> None:
        for stage in self.plan.stages:
            if stage.depth == d:
                self._stage(stage, env, members)
        if d == len(self.plan.order):
            self._block(env, members)
            return
        axis, block = self.plan.order[d]
        nests = self.group.nests
        have = tuple(i for i in members if axis in nests[i].extents)
        if not have or env[axis][1] <= block:
            self._level(d + 1, env, members)
            return
        pre = tuple(i for i in members if i < have[0] and i not in have)
        post = tuple(i for i in members if i > have[0] and i not in have)
        inner = {a for a, _ in self.plan.order[d + 1 :]} & {a for i in have for a in nests[i].axes}
        peel_pre = any(inner & set(nests[i].axes) for i in pre)
        peel_post = any(inner & set(nests[i].axes) for i in post)
        if pre and not peel_pre:
            self._level(d + 1, env, pre)
        parts = self._parts(axis, env[axis][1], block)
        for number, part in enumerate(parts):
            first = pre if peel_pre and number == 0 else ()
            last = post if peel_post and number == len(parts) - 1 else ()
            self._segment(d, env, axis, part, first, have, last)
        if post and not peel_post:
            self._level(d + 1, env, post)

    def _parts(self, axis: str, length: int, block: int) -> tuple[Segment, ...]:
        """How a length of an axis is cut: the same for every nest of the group, in multiples of what one call takes."""
        nests = [n for n in self.group.nests if axis in n.extents]
        limits = [n.mapped[axis].limit or 1 for n in nests if axis in n.mapped]
        return segments(length, block, max([1, *limits]), any(axis in n.reduced for n in nests))

    def _segment(
        self, d: int, env: Env, axis: str, part: Segment, first: Members, have: Members, last: Members
    ) -> None:
        offset, _, outer = env[axis]
        lo = offset + part.start
        outermost = not any(a == axis for a, _ in self.plan.order[:d])
        if part.count == 1:
            inner = {**env, axis: (lo, part.size, lo if outermost else outer)}
            cut = part.size < env[axis][1]  # other blocks of this axis may want what this one computes
            if cut:
                self.open.append(axis)
            self._level(d + 1, inner, tuple(sorted((*first, *have, *last))))
            if cut:
                self.open.pop()
            return
        var = f"{axis}{sum(a == axis for a, _ in self.plan.order[:d])}"
        inner = {**env, axis: (Affine.of(var), part.size, Affine.of(var) if outermost else outer)}
        span = part.count * part.size
        low = lo.bounds(self.run.ranges)
        bounds = (low[0], low[1] + span - part.size)
        Recur(self, d + 1, var, lo, span, part.size, bounds, inner, axis, first, have, last).make()

    # -- the innermost block -----------------------------------------------------------------------------------------
    def _block(self, env: Env, members: Members) -> None:
        """Unrolled: every call of the block, in the plan's unroll order."""
        run = self.run
        self.leaf = frozenset(members)
        calls = [c for i in members for c in self._calls(i, env)]
        last: dict[Tile, int] = {}
        for at, (_, _, _, tiles) in enumerate(calls):
            for t in tiles:
                last[t] = at
        crowded = self._crowded(calls)
        run.later = {t: [] for t in last}
        for at, (_, _, _, tiles) in reversed(list(enumerate(calls))):
            for t in tiles:
                run.later[t].append(at)
        for at, (nest, point, sizes, tiles) in enumerate(calls):
            for t in tiles:
                run.later[t].pop()
            run.call(nest, point, sizes, tiles)
            self.rest = calls[at + 1 :]
            for t in dict.fromkeys(tiles):
                if last[t] == at:
                    run.release(t, crowded)
        run.later = {}
        self.rest = []

    def _crowded(self, calls: list[Call]) -> bool:
        """Whether the block's tiles together exceed a memory that they must be brought to."""
        run, demand = self.run, {}
        for nest, _, _, tiles in calls:
            for u, t in zip(nest.uses, tiles, strict=True):
                if u.homes[0] != run.system.home and (key := (u.homes[0], t, u.dims)) not in demand:
                    demand[key] = run.units(u.homes[0], t)
        total: dict[str, int] = {}
        for (memory, _, _), n in demand.items():
            total[memory] = total.get(memory, 0) + n
        return any(n > (run.system.memories[m].cells or run.system.memories[m].capacity) for m, n in total.items())

    def _calls(self, member: int, env: Env) -> list[Call]:
        """The calls of one nest; a block is run from several states, but its calls are the same."""
        nest = self.group.nests[member]
        key = (member, *(env[a] for a in nest.axes))
        known = self.calls.get(key)
        if known is None:
            known = self.calls[key] = self._unrolled(nest, env)
        return known

    def _unrolled(self, nest: Nest, env: Env) -> list[Call]:
        order = [a for a in self.plan.unroll if a in nest.extents] + [a for a in nest.axes if a not in self.plan.unroll]
        steps = [self._steps(nest, a, env[a]) for a in order]
        own = [[n for n, a in enumerate(order) if any(a in r.names for r in u.index)] for u in nest.uses]
        known: list[dict[object, Tile]] = [{} for _ in nest.uses]  # calls that cover the same box share one tile
        out = []
        for combo in product(*steps):
            point = {a: c[0] for a, c in zip(order, combo, strict=True)}
            sizes = sizes_of(nest, {a: c[1] for a, c in zip(order, combo, strict=True)})
            tiles: list[Tile] = []
            for u, axes, have in zip(nest.uses, own, known, strict=True):
                key = (*sizes.values(), *[combo[n] for n in axes])
                if key not in have:
                    have[key] = tile_of(u, point, sizes)
                tiles.append(have[key])
            out.append((nest, {a: point[a] for a in nest.axes}, sizes, tuple(tiles)))
        return out

    def _steps(self, nest: Nest, axis: str, at: tuple[Affine, int, Affine]) -> list[tuple[Affine, int]]:
        offset, n, _ = at
        m: MappedAxis | None = nest.mapped.get(axis)
        size = 1 if m is None else (m.limit or n)
        return [(offset + i, min(size, n - i)) for i in range(0, n, max(1, size))]

    # -- staging -----------------------------------------------------------------------------------------------------
    def _stage(self, stage: Stage, env: Env, members: Members) -> None:
        """Copies the box that is read below into the stage's memory, in the stage's layout (packing is a move)."""
        run = self.run
        shape = [int(n) for n in run.kernel.buffer(stage.buffer).shape]
        whole = Tile(stage.buffer, (Affine(),) * len(shape), tuple(shape), (1,) * len(shape))
        box = whole if stage.bound else self._box(stage.buffer, env, members)
        if box is None or not any(
            u.buffer == stage.buffer and u.reads for i in members for u in self.group.nests[i].uses
        ):
            return
        known = run.bound.get((stage.buffer, stage.order, stage.cut, stage.pad)) if stage.bound else None
        if known is not None:
            run.state.put(*known)
            return
        near = stage.memory != run.system.home
        align = run.system.memories[stage.memory].align if near else 1
        layout, total = layout_of(stage, box, run.dtype(stage.buffer), align)
        if near:
            self._near(stage, box, layout, total)
            return
        name = f"{stage.buffer}.b{len(run.bound)}" if stage.bound else f"{stage.buffer}.{stage.depth}"
        size = max(total, run.slots[name].bytes) if name in run.slots else total
        run.slots[name] = Slot(name, stage.memory, max(1, size), bound=stage.bound)
        copy = Copy(Place(stage.memory, name, Affine(), ()), False, total, layout)
        key: Key = (stage.memory, box, STAGED)
        with run.recording() as nodes:
            Transfer(
                run,
                box,
                self._stage_path(stage),
                run.home,
                lambda t: within(box, copy, t, run.variables),
                None,
                None,
                set(),
                grain=dict(stage.cut),
            ).run()
        if stage.bound:
            self.bind.extend(nodes)
            run.bound[stage.buffer, stage.order, stage.cut, stage.pad] = (key, copy)
        else:
            run.out.extend(nodes)
        run.state.put(key, copy)

    def _near(self, stage: Stage, box: Tile, layout: StageLayout, total: int) -> None:
        """A box brought to a memory with addresses of its own."""
        run = self.run
        key: Key = (stage.memory, box, STAGED)
        if key in run.state.copies:
            return
        copy = Copy(run.room(stage.memory, box, set(), units=total), False, total, layout)
        path = self._stage_path(stage)
        transfer = Transfer(run, box, path, run.home, lambda t: within(box, copy, t, run.variables), None, None, {key})
        if transfer.possible():
            run.state.put(key, copy)
            transfer.run()

    def _stage_path(self, stage: Stage) -> tuple[str, ...]:
        from isam.scheduler.move import route

        path = route(self.run.system, self.run.system.home, stage.memory)
        assert path is not None
        return path

    def _box(self, buffer: str, env: Env, members: Members) -> Tile | None:
        """The smallest box that holds what the members read of the buffer within ``env``."""
        hull: list[tuple[Affine, int]] | None = None
        for i in members:
            for u in self.group.nests[i].uses:
                if u.buffer != buffer or not u.reads:
                    continue
                rows = [row_range(r, env) for r in u.index]
                if hull is None:
                    hull = rows
                    continue
                merged = []
                for (s, n), (t, m) in zip(hull, rows, strict=True):
                    diff = t - s
                    if not diff.is_constant:
                        return None
                    low = min(0, diff.const)
                    merged.append((s + low, max(n, diff.const + m) - low))
                hull = merged
        if hull is None:
            return None
        return Tile(buffer, tuple(s for s, _ in hull), tuple(n for _, n in hull), (1,) * len(hull))

    # -- temporaries -------------------------------------------------------------------------------------------------
    def _dead(self, tile: Tile) -> bool:
        """True when the tile is a temporary that only the iteration being closed could see."""
        return self.ending and self._private_here(tile.buffer)

    def _spent(self, tile: Tile) -> bool:
        """True when the tile is a temporary that nothing outside the present block reads."""
        if not (self._private_here(tile.buffer) and self._users(tile.buffer) <= self.leaf):
            return False
        later = (t for nest, _, _, tiles in self.rest for u, t in zip(nest.uses, tiles, strict=True) if u.reads)
        return all(t.buffer != tile.buffer or disjoint(t, tile, self.run.ranges) for t in later)

    def _users(self, buffer: str) -> frozenset[int]:
        return frozenset(i for i, n in enumerate(self.group.nests) if any(u.buffer == buffer for u in n.uses))

    def _private_here(self, buffer: str) -> bool:
        """Whether no iteration of an open loop, other than the present one, can see the temporary's elements here."""
        private = self.group.private.get(buffer)
        if private is None:
            return False
        users = self._users(buffer)
        between = range(min(users), max(users) + 1)
        return all(a in private for a in self.open if any(a in self.group.nests[i].extents for i in between))

    def _fold(self, tile: Tile) -> tuple[tuple[int, Affine, int], ...]:
        """Dimensions of a private temporary that need room for one block only: (dimension, block origin, size)."""
        private = self.group.private.get(tile.buffer)
        if not private:
            return ()
        rows = next(u.index for n in self.group.nests for u in n.uses if u.buffer == tile.buffer)
        users = self._users(tile.buffer)
        between = [self.group.nests[i] for i in range(min(users), max(users) + 1)]
        out, outer = [], set()
        for axis, block in self.plan.order:
            foreign = any(a not in private and any(a in n.extents for n in between) for a in outer)
            if axis in private and axis not in outer and not foreign and not any(n.origin for n in between):
                for d, row in enumerate(rows):
                    if row.terms == ((axis, 1),):
                        size = max((p.size for p in self._parts(axis, self._length(axis), block)), default=1)
                        out.append((d, self._origin(axis, tile.start[d] - row.const, block) + row.const, size))
            outer.add(axis)
        return tuple(out)

    def _origin(self, axis: str, start: Affine, block: int) -> Affine:
        """The first element of the outermost block of the axis in which ``start`` lies."""
        variables = self.run.variables
        while start.terms:
            name = next((n for n in start.names if n in variables), None)
            if name is None or name == f"{axis}0":
                return Affine.of(start.names[0]) if name else Affine()
            start = start.substitute({name: variables[name].lo})
        for part in self._parts(axis, self._length(axis), block):
            if part.start <= start.const < part.start + part.count * part.size:
                return Affine((), start.const - (start.const - part.start) % part.size)
        return Affine()


def _shared(nodes: list[Node]) -> tuple[Node, ...]:
    """A run of nodes as one shared node when it is more than one."""
    return tuple(nodes) if len(nodes) <= 1 else (Seq(tuple(nodes)),)
