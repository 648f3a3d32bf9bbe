"""Walks a plan: cuts axes into sibling loops, peels what runs once, stages boxes, unrolls the innermost block.

Every kept loop is a recurrence (SCH-10): what a body leaves resident and does not mention the loop variable may be
carried; the state at the end of the body must equal the state at its begin. Equal positions with equal entry states
are scheduled once and share their node.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import product

from isam.ir.affine import Affine
from isam.schedule.tree import Bound, Loop, Node, Place, Seq, Slot, Tile
from isam.scheduler.dry import DryRun, Transfer, units_of
from isam.scheduler.nests import MappedAxis, Nest
from isam.scheduler.plan import Plan, Stage
from isam.scheduler.state import STAGED, Copy, Key, MachineState, Since, StageLayout, disjoint, within
from isam.scheduler.trim import Env, Segment, segments

Call = tuple[Nest, dict[str, Affine], dict[str, int], tuple[Tile, ...]]  # nest, point, sizes, a tile per operand
Members = tuple[int, ...]  # nests of the group that take part, by position


class Walk:
    """One group's plan, executed against the dry run's state."""

    def __init__(self, run: DryRun, plan: Plan, bind: list[Node]):
        self.run, self.plan, self.bind = run, plan, bind
        self.group = plan.group
        self.memo: dict[object, tuple[tuple[Node, ...], MachineState, Since]] = {}
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
        key = (d, tuple(sorted(env.items())), members, tuple((v, run.variables[v], run.ranges[v]) for v in run.scope),
               run.state.signature())  # fmt: skip
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

    def _segment(self, d: int, env: Env, axis: str, part: Segment, first: Members, have: Members, last: Members) -> None:
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
        calls = [c for i in members for c in self._calls(self.group.nests[i], env)]
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
                if u.homes[0] != run.system.home:
                    demand[u.homes[0], t, u.dims] = run.units(u.homes[0], t)
        total: dict[str, int] = {}
        for (memory, _, _), n in demand.items():
            total[memory] = total.get(memory, 0) + n
        return any(n > (run.system.memories[m].cells or run.system.memories[m].capacity) for m, n in total.items())

    def _calls(self, nest: Nest, env: Env) -> list[Call]:
        order = [a for a in self.plan.unroll if a in nest.extents] + [a for a in nest.axes if a not in self.plan.unroll]
        steps = [self._steps(nest, a, env[a]) for a in order]
        out = []
        for combo in product(*steps):
            point = {a: c[0] for a, c in zip(order, combo, strict=True)}
            length = {a: c[1] for a, c in zip(order, combo, strict=True)}
            sizes = sizes_of(nest, length)
            tiles = tuple(tile_of(u, point, sizes) for u in nest.uses)
            out.append((nest, {a: point[a] for a in nest.axes}, sizes, tiles))
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
        if box is None or not any(u.buffer == stage.buffer and u.reads for i in members for u in self.group.nests[i].uses):
            return
        known = run.bound.get((stage.buffer, stage.order, stage.cut, stage.pad)) if stage.bound else None
        if known is not None:
            run.state.put(*known)
            return
        layout, total = layout_of(stage, box, run.dtype(stage.buffer))
        name = f"{stage.buffer}.b{len(run.bound)}" if stage.bound else f"{stage.buffer}.{stage.depth}"
        size = max(total, run.slots[name].bytes) if name in run.slots else total
        run.slots[name] = Slot(name, stage.memory, max(1, size), bound=stage.bound)
        copy = Copy(Place(stage.memory, name, Affine(), ()), False, total, layout)
        key: Key = (stage.memory, box, STAGED)
        with run.recording() as nodes:
            Transfer(run, box, self._stage_path(stage), run.home, lambda t: within(box, copy, t, run.variables), None, None,
                     set(), grain=dict(stage.cut)).run()  # fmt: skip
        if stage.bound:
            self.bind.extend(nodes)
            run.bound[stage.buffer, stage.order, stage.cut, stage.pad] = (key, copy)
        else:
            run.out.extend(nodes)
        run.state.put(key, copy)

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


class Guarded:
    """Loops over axes that a condition ties together: one element at a time, bounds affine in the outer ones.

    Nothing stays resident over such a loop: with no iteration nothing may have been relied upon.
    """

    def __init__(self, walk: Walk, where: tuple[Affine, ...]):
        self.walk, self.where = walk, where
        tied = {n for w in where for n in w.names}
        self.axes = [a for a in walk.group.axes if a in tied or walk.group.exact]

    def loops(self, env: Env, members: Members) -> None:
        if not self.axes:
            self.walk._level(0, env, members)
            return
        self._loop(0, env, members)

    def _loop(self, at: int, env: Env, members: Members) -> None:
        walk, run = self.walk, self.walk.run
        if at == len(self.axes):
            walk._level(0, env, members)
            return
        axis = self.axes[at]
        offset, n, _ = env[axis]
        var, known = f"{axis}.w", {a: env[a][0] for a in self.axes[:at]}
        lo, hi = [Bound(offset)], [Bound(offset + n)]
        for w in self.where:
            c = w.coefficient(axis)
            if c == 0 or any(a in self.axes[at + 1 :] for a in w.names):
                continue
            rest = (w - Affine.of(axis, c)).substitute(known)
            if c > 0:
                lo.append(Bound(-rest, c))
            else:
                hi.append(Bound(rest - c, -c))
        inner = {**env, axis: (Affine.of(var), 1, Affine.of(var))}
        low = offset.bounds(run.ranges)
        walk.empty()
        walk.open.append(axis)
        with run.recording() as body, run.variable(var, offset, 1, (low[0], low[1] + n - 1)):
            self._loop(at + 1, inner, members)
            walk.empty()
        walk.open.pop()
        run.out.append(Loop(var, tuple(lo), tuple(hi), 1, Seq(tuple(body)), axis=axis))


def _shared(nodes: list[Node]) -> tuple[Node, ...]:
    """A run of nodes as one shared node when it is more than one."""
    return tuple(nodes) if len(nodes) <= 1 else (Seq(tuple(nodes)),)


def row_range(row: Affine, env: Env) -> tuple[Affine, int]:
    """First index and number of indices that a buffer row takes within the blocks of ``env``."""
    start, n = Affine((), row.const), 1
    for a, c in row.terms:
        if a not in env:
            start = start + Affine.of(a, c)
            continue
        offset, length, _ = env[a]
        start = start + offset * c
        if c < 0:
            start = start + c * (length - 1)
        n += abs(c) * (length - 1)
    return start, n


def sizes_of(nest: Nest, length: dict[str, int]) -> dict[str, int]:
    """The values of the instruction's size symbols for a call of these lengths."""
    return {m.sym: length[a] for a, m in nest.mapped.items() if m.sym is not None}


def tile_of(use: object, point: dict[str, Affine], sizes: dict[str, int]) -> Tile:
    """The box of the buffer that an operand covers at a point."""
    from isam.scheduler.nests import Use

    assert isinstance(use, Use)
    shape, steps = [1] * len(use.index), [1] * len(use.index)
    for d, step, extent in zip(use.dims, use.steps, use.extents, strict=True):
        shape[d] = extent.evaluate(sizes) if extent.terms else extent.const
        steps[d] = step
    return Tile(use.buffer, tuple(r.substitute(point) for r in use.index), tuple(shape), tuple(steps))


def layout_of(stage: Stage, box: Tile, dtype: str) -> tuple[StageLayout, int]:
    """Coefficients of a staged box and its size in bytes."""
    rank, cut = len(box.shape), dict(stage.cut)
    coefficients, inner, blocks = [0] * rank, [0] * rank, [1] * rank
    running = units_of(dtype)
    for d in range(rank):
        if cut.get(d, 1) > 1:
            inner[d], blocks[d] = running, cut[d]
            running *= cut[d]
    innermost = True
    for d in reversed(stage.order):
        n = -(-box.shape[d] // blocks[d])
        coefficients[d] = running // blocks[d]
        running *= n
        if innermost and box.shape[d] > 1:
            running += stage.pad
            innermost = False
    return StageLayout(tuple(coefficients), tuple(blocks), tuple(inner)), running


class Recur:
    """Builds one kept loop from the state before it (SCH-10)."""

    ROUNDS = 3

    def __init__(self, walk: Walk, d: int, var: str, lo: Affine, span: int, step: int, bounds: tuple[int, int], env: Env,
                 axis: str, first: Members, have: Members, last: Members):  # fmt: skip
        self.walk, self.run, self.d, self.var, self.lo, self.span, self.step = walk, walk.run, d, var, lo, span, step
        self.bounds, self.env, self.axis = bounds, env, axis
        self.first, self.have, self.last = first, have, last

    def make(self) -> None:
        run = self.run
        count = self.span // self.step
        mids = count - bool(self.first) - bool(self.last)
        entry = run.state.copy()
        carried: dict[Key, Copy] = dict(entry.copies)
        body_members = self.have
        with run.recording():
            end = self._body(body_members if mids else tuple(sorted((*self.first, *self.have))), entry)
        wanted = self._carry(entry, end)
        for _ in range(self.ROUNDS):
            made = self._attempt(entry, wanted, mids)
            if not isinstance(made, set):
                run.out.extend(made[0])
                run.state = made[1]
                return
            wanted = {k: c for k, c in wanted.items() if k not in made}
        made = self._attempt(entry, {}, mids)
        assert not isinstance(made, set), "an empty state is always a fixed point"
        run.out.extend(made[0])
        run.state = made[1]
        del carried

    def _body(self, members: Members, state: MachineState) -> MachineState:
        """The state after one iteration (nodes go to the present recording)."""
        run = self.run
        run.state = state.copy()
        with self._iteration():
            outer, run.since = run.since, Since()
            self.walk._level(self.d, self.env, members)
            self.brought, run.since = run.since.fetched, outer
        return run.state

    @contextmanager
    def _iteration(self) -> Iterator[None]:
        self.walk.open.append(self.axis)
        try:
            with self.run.variable(self.var, self.lo, self.step, self.bounds):
                yield
        finally:
            self.walk.open.pop()

    def _carry(self, entry: MachineState, end: MachineState) -> dict[Key, Copy]:
        """What may stay resident over iterations: present at the end, not of one iteration only, and either there at
        the begin or fetched by the body (so that ``enter`` can fetch it)."""
        out: dict[Key, Copy] = {}
        for key, c in end.copies.items():
            if any(n == self.var for row in key[1].start for n, _ in row.terms):
                continue
            old = entry.copies.get(key)
            if old is not None and old.place == c.place:
                out[key] = replace(c, dirty=c.dirty or old.dirty)
            elif old is None and key in self.brought and c.stage is None:
                out[key] = c
        return out

    def _attempt(self, entry: MachineState, wanted: dict[Key, Copy], mids: int) -> tuple[list[Node], MachineState] | set[Key]:
        """The loop with ``wanted`` carried, or the copies that could not be kept."""
        run = self.run
        run.state = entry.copy()
        with run.recording() as enter:
            self._conform(wanted, fetch=True)
        begin = run.state.copy()
        for k, c in wanted.items():
            if k in begin.copies:
                begin.mark(k, c.dirty)
        lost: set[Key] = set(wanted) - set(begin.copies)
        if lost:
            return lost
        first = self._peeled(tuple(sorted((*self.first, *self.have))), begin, wanted) if self.first else None
        if isinstance(first, set):
            return first
        body = self._peeled(self.have, begin, wanted) if mids else None
        if isinstance(body, set):
            return body
        last = self._peeled(tuple(sorted((*self.have, *self.last))), begin, wanted) if self.last else None
        if isinstance(last, set):
            return last
        if body is None:  # nothing but peeled copies: one of them takes the place of the body
            body, first, last = (first, None, last) if first is not None else (last, None, None)
        assert body is not None
        hi = self.lo + self.span
        node = Loop(self.var, (Bound(self.lo),), (Bound(hi),), self.step, body, Seq(tuple(enter)), first, last,
                    axis=self.axis)  # fmt: skip
        run.state = begin.copy()
        return [node], run.state

    def _peeled(self, members: Members, begin: MachineState, wanted: dict[Key, Copy]) -> Node | set[Key]:
        """One body from ``begin`` that ends in ``begin``, or the copies that did not survive it."""
        run = self.run
        with run.recording() as nodes:
            run.state = begin.copy()
            with self._iteration():
                self.walk._level(self.d, self.env, members)
                self.walk.ending, was = True, self.walk.ending
                outer_env, self.walk.env = self.walk.env, self.env
                lost = self._conform(begin.copies, fetch=False)
                self.walk.env = outer_env
                self.walk.ending = was
        return lost or Seq(tuple(nodes))

    def _conform(self, target: dict[Key, Copy], fetch: bool) -> set[Key]:
        """Brings the present state to ``target``: what is not in it goes home, what is missing is fetched (in
        ``enter``) or reported."""
        run, lost = self.run, set()
        for key in run.state.of_any():
            c = run.state.copies[key]
            want = target.get(key)
            if want is None or want.place != c.place:
                if c.dirty:
                    run.flush(key)
                run.state.drop(key)
            elif c.dirty and not want.dirty:
                run.flush(key)
        for key, c in target.items():
            if key in run.state.copies:
                continue
            if not fetch:
                lost.add(key)
                continue
            self._fetch(key, c)
        return lost

    def _fetch(self, key: Key, c: Copy) -> None:
        """Loads a carried tile into the very place where the body keeps it."""
        run = self.run
        memory, tile, form = key
        run._settle(tile, key)
        source, source_of, source_form = run._source(tile, memory, form)
        from isam.scheduler.move import sub_place

        run.carry(tile, source, memory, source_of, lambda t: sub_place(c.place, tile, t), source_form, form, set())
        run.state.put(key, replace(c, dirty=False))
        run.since.fetch(key, run.ranges)
