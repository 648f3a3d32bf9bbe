"""Walks a plan: cuts axes into sibling loops, peels what runs once, stages boxes, unrolls the innermost block.

Every kept loop is a recurrence (SCH-10): what a body leaves resident and does not mention the loop variable may be
carried; the state at the end of the body must equal the state at its begin. Equal positions with equal entry states
are scheduled once and share their node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import product

from isam.ir.affine import Affine
from isam.schedule.tree import Bound, Deal, Loop, Node, Seq, Tile
from isam.scheduler.block_calls import BlockCalls
from isam.scheduler.blocks import Clip
from isam.scheduler.call_order import ordered
from isam.scheduler.dry import DryRun
from isam.scheduler.gathering import Gathering
from isam.scheduler.guarded import Guarded
from isam.scheduler.infeasible import NoSchedule
from isam.scheduler.lifetimes import InGroup
from isam.scheduler.nests import Call, MappedAxis, Nest, sizes_of, tile_of
from isam.scheduler.plan import Members, Plan
from isam.scheduler.recur import Cut, Recur
from isam.scheduler.spread import spread
from isam.scheduler.staging import Stager
from isam.scheduler.state import Key, MachineState, Since
from isam.scheduler.stays import Stays
from isam.scheduler.trim import Env, Segment

Step = tuple[Affine, int]  # where a call begins along an axis, and how much of it it takes


class Walk:
    """One group's plan, executed against the dry run's state."""

    def __init__(self, run: DryRun, plan: Plan, bind: list[Node], stays: Stays | None = None):
        self.run, self.plan = run, plan
        self.dealt: list[Loop] = []  # the dealt loops that we are in, without their bodies
        self.group = plan.group
        self.memo: dict[object, tuple[tuple[Node, ...], MachineState, Since]] = {}  # by what :meth:`_standing` says
        self.bare = False  # nothing is staged in the box that we are in
        self.clip: Clip | None = None  # of the box that we are in
        self.calls: dict[object, list[Call]] = {}
        self.in_pieces: frozenset[int] = frozenset()  # stages whose boxes are brought piece by piece where we are
        self.leaving: tuple[Key, ...] = ()  # what goes home once the boxes of the next block are on their way
        self.stager = Stager(run, plan, bind, stays, self.dealt)
        self.gathering = Gathering(run, plan)
        run.spread = spread(plan, run.system)
        self.lives = run.data.lifetimes = InGroup(run.scope, plan, self.dealt, run.homes.near, run.homes.cached)

    def start(self, begin: Mapping[str, Affine] | None = None, held: Collection[Key] = ()) -> tuple[Key, ...]:
        """Runs the whole group; what is near once it is done. ``begin``: where axes begin that it is a part of;
        ``held``: what stays near behind it, if it is there."""
        self.stager.given = frozenset(self.run.data.state.of_any())
        members = tuple(range(len(self.group.nests)))
        origin = {a: n for nest in self.group.nests for a, n in nest.origin.items()}
        at = {a: Affine((), origin.get(a, 0)) for a in self.group.axes} | dict(begin or {})
        env: Env = {a: (at[a], self.group.length(a), at[a]) for a in self.group.axes}
        self.lives.box = {a: (first, length) for a, (first, length, _) in env.items()}
        if any(n == 0 for _, n, _ in env.values()):
            members = tuple(i for i in members if all(self.group.length(a) for a in self.group.nests[i].axes))
        where = tuple(w for n in self.group.nests for w in n.where)
        if self.group.domain is not None and members:
            self.group.domain.walk(self, env, members)
            self.run.data.panels.clear()
        elif where and members:
            Guarded(self, where).loops(env, members)
        else:
            self.level(0, env, members)
        left = self.run.data.state.of_any()
        self.empty(held)
        return left

    def empty(self, held: Collection[Key] = ()) -> None:
        """Sends everything home, but panels for all of a domain, and what is ``held``."""
        data, end = self.run.data, self.run.data.state
        with self.lives.closing():
            # what made room while another one went home may have stayed in another memory
            while keys := [k for k in end.of_any() if k not in data.panels and k not in held]:
                leaving = frozenset(keys).__contains__
                for key in keys:
                    if key in end.copies:
                        data.evict(key, leaving=leaving)

    def clear(self) -> None:
        """Sends everything home that is not there already: panels at home stay."""
        data = self.run.data
        self.empty([k for k, c in data.state.copies.items() if c.stage is not None and k[0] == self.run.system.home])

    def box(self, env: Env, members: Members, small: bool, clip: Clip | None = None) -> None:
        """The plan over a box of the domain; what is staged for many calls is not for those of a ``small`` one. Of what
        a ``clip`` is for, the box is a block without loops along its axes."""
        whole, self.clip, self.bare = self.plan, clip, small and clip is None
        if clip is not None:
            self.plan = whole.without({clip.axis, clip.other})
        elif small:
            self.plan = replace(whole, stages=())
        self.lives.box = {a: (at, length) for a, (at, length, _) in env.items()}
        self.level(0, env, members)
        self.plan, self.clip, self.bare = whole, None, False

    # -- levels ------------------------------------------------------------------------------------------------------
    def level(self, d: int, env: Env, members: Members) -> None:
        """Everything below ``d`` loops, for these members, from the present state; shared when seen before."""
        if not members:
            return
        data, scope = self.run.data, self.run.scope
        leaving, self.leaving = self.leaving, ()
        key = (d, tuple(sorted(env.items())), members, leaving, self._standing())
        hit = self.memo.get(key)
        if hit is None:
            was = self.in_pieces
            with data.attempt() as since, self.lives.at(env), scope.recording() as nodes:
                with self.gathering.within(d, env, members):
                    self._stages(d, env, members)
                    self._leave(leaving)
                    self._level_body(d, env, members)
                hit = self.memo[key] = (_shared(nodes), data.state, since)
            self.in_pieces = was
        data.state = hit[1].copy()
        data.since.then(hit[2], scope.ranges)
        scope.out.extend(hit[0])

    def _standing(self) -> object:
        """All that a level depends on besides what it is asked for: two that stand alike are made alike. Left out is
        what is the same for the whole walk (panels for all of a domain, what was near before it), and on purpose where
        in a memory the next tile goes: a body is shared by iterations that would put it elsewhere."""
        run, scope = self.run, self.run.scope
        variables = tuple((v, scope.variables[v], scope.ranges[v]) for v in scope.names)
        return (self.clip, self.bare, self.in_pieces, variables, run.data.state.signature(), run.homes.elsewhere,
                self.lives.standing, self.gathering.turn)  # fmt: skip

    def _stages(self, d: int, env: Env, members: Members) -> None:
        """Brings the boxes that begin here, and pieces of those that began further out. Of a box that is clipped some
        may never be written: what is not is not brought."""
        for n, stage in enumerate(self.plan.stages):
            if self.clip is not None and not self.stager.written(stage, members):
                continue
            if stage.depth == d and self.stager.stage(stage, env, members):
                self.in_pieces |= {n}
            if stage.by == d and n in self.in_pieces:
                self.stager.piece(stage, env, members)

    def _full(self, d: int, axis: str) -> frozenset[int]:
        """Stages being filled across the loop at a depth that are full once its first block is done: they do not depend
        on its axis."""
        reads = {u.buffer for n in self.group.nests for u in n.uses if any(axis in row.names for row in u.index)}
        across = ((n, s) for n in self.in_pieces if (s := self.plan.stages[n]).by is not None and s.depth <= d < s.by)
        return frozenset(n for n, s in across if s.buffer not in reads)

    def _level_body(self, d: int, env: Env, members: Members) -> None:
        if d == len(self.plan.order):
            self._block(env, members)
            return
        axis, block = self.plan.order[d]
        if self.plan.outer <= d < self.plan.inner:
            self._dealt(d, env, members)
            return
        plan, have = self.plan, self.plan.having(d, members)
        if not have or env[axis][1] <= block:
            self.level(d + 1, env, members)
            return
        pre = tuple(i for i in members if i < have[0] and i not in have)
        post = tuple(i for i in members if i > have[0] and i not in have)
        inner = [e for e, (a, n) in enumerate(plan.order) if e > d and plan.having(e, have) and env[a][1] > n]
        peel_pre = any(plan.having(e, pre) for e in inner)
        peel_post = any(plan.having(e, post) for e in inner)
        if pre and not peel_pre:
            self.level(d + 1, env, pre)
        full, was = self._full(d, axis), self.in_pieces
        parts = self._parts(d, env[axis][1], bool(full))
        for number, (part, held) in enumerate(parts):
            if number == 1:
                self.in_pieces -= full
            following = number + 1 < len(parts) and parts[number + 1][0].count == 1
            first = pre if peel_pre and number == 0 else ()
            last = post if peel_post and number == len(parts) - 1 else ()
            apart = bool(full) and number == 0
            self._segment(d, env, axis, part, held, first, have, last, following, apart)
        self.in_pieces = was
        if post and not peel_post:
            self.level(d + 1, env, post)

    def _dealt(self, d: int, env: Env, members: Members) -> None:
        """The blocks of an axis side by side, each on an instance of its own that holds nothing before and after."""
        (axis, block), deal, scope = self.plan.order[d], self.plan.deals[d - self.plan.outer], self.run.scope
        at, length, _ = env[axis]
        self.empty(self._shared(deal))
        first, parts = deal.first, self.plan.shares(axis, length, block)
        if self.plan.outer:
            self.lives.parts[axis] = parts
        for part in parts:
            var, lo = self.plan.variable(d), at + part.start
            low, span = lo.bounds(scope.ranges), part.count * part.size
            self.run.data.state.next = {}
            given = replace(deal, first=first)
            node = Loop(var, (Bound(lo),), (Bound(lo + span),), part.size, Seq(), axis=axis, deal=given)
            self.dealt.append(node)
            bounds = (low[0], low[1] + span - part.size)
            inside = self.lives.within(axis, members)
            with inside, scope.recording() as body, scope.variable(var, lo, part.size, bounds):
                self.level(d + 1, {**env, axis: (Affine.of(var), part.size, Affine.of(var))}, members)
                self.empty(self._shared(deal))
            self.dealt.pop()
            scope.out.append(replace(node, body=Seq(tuple(body))))
            first += part.count * deal.stride

    def _shared(self, deal: Deal) -> list[Key]:
        """Boxes that lie where all instances read them, on their way from home."""
        data, system = self.run.data, self.run.system
        return [k for k, c in data.state.copies.items()
                if c.stage is not None and k[0] != system.home and system.replica_of(k[0]) != deal.group]  # fmt: skip

    def _parts(self, d: int, length: int, apart: bool) -> list[tuple[Segment, int]]:
        """The loops that an axis is cut into, and how many blocks an iteration holds: where some are double-buffered,
        enough for a place each; what is left over then is an iteration on its own. ``apart``: so is the first block."""
        out: list[tuple[Segment, int]] = []
        several, blocks = self.plan.blocks_held(d), self.plan.cut(d, length)
        if apart:
            begin, *others = blocks
            out.append((Segment(begin.start, 1, begin.size), 1))
            behind = Segment(begin.start + begin.size, begin.count - 1, begin.size)
            blocks = (behind, *others) if behind.count else tuple(others)
        for part in blocks:
            even = part.count - part.count % several
            if several == 1:
                out.append((part, 1))
                continue
            if even < 2 * several:  # too few for a loop: one after the other
                out += [(Segment(part.start + n * part.size, 1, part.size), 1) for n in range(part.count)]
                continue
            out.append((Segment(part.start, even, part.size), several))
            if part.count > even:
                out.append((Segment(part.start + even * part.size, part.count - even, part.size), 1))
        return out

    def _segment(
        self, d: int, env: Env, axis: str, part: Segment, together: int, first: Members, have: Members, last: Members,
        following: bool = False, apart: bool = False,
    ) -> None:  # fmt: skip
        """One part of an axis; ``following``: another block comes that is no loop; ``apart``: it fills what the loop
        behind it finds, which begins with nothing else of it."""
        offset, _, outer = env[axis]
        lo = offset + part.start
        outermost = not any(a == axis for a, _ in self.plan.order[:d])
        if part.count == 1:
            inner = {**env, axis: (lo, part.size, lo if outermost else outer)}
            members = tuple(sorted((*first, *have, *last)))
            if part.size == env[axis][1]:
                self.level(d + 1, inner, members)
                return
            before = frozenset(self.run.data.state.copies)
            # other blocks of this axis may want what this one computes
            with self.lives.within(axis, members, self.plan.only(d)):
                self.level(d + 1, inner, members)
            mine = self.own(axis, before, apart)
            later = {k for k in mine if following and self.run.data.state.copies[k].dirty}
            self._leave(tuple(k for k in mine if k not in later))
            self.leaving = tuple(k for k in mine if k in later)
            return
        var = self.plan.variable(d)
        starts = [Affine.of(var) + n * part.size for n in range(together)]
        envs = tuple({**env, axis: (at, part.size, at if outermost else outer)} for at in starts)
        span, step = part.count * part.size, part.size * together
        low = lo.bounds(self.run.scope.ranges)
        bounds = (low[0], low[1] + span - step)
        within = self._within(axis, env)
        if any(within):
            self.clear()
        cut = Cut(var, axis, lo, span, step, bounds, envs, d + 1, self.plan.only(d), within)
        Recur(self, cut, first, have, last).make()

    def _within(self, axis: str, env: Env) -> tuple[tuple[Bound, ...], tuple[Bound, ...]]:
        """The bounds, lower and upper ones, that keep conditions on an axis and on another one, whose loop is around
        this one."""
        lows: list[Bound] = []
        highs: list[Bound] = []
        for w in self.group.main.within:
            c = w.coefficient(axis)
            other = next((a for a in w.names if a != axis), axis)
            if not c or env[other][1] > 1:
                continue
            rest = (w - Affine.of(axis, c)).substitute({other: env[other][0]})
            if c > 0:
                lows.append(Bound(-rest, c))
            else:
                highs.append(Bound(rest - c, -c))
        return tuple(lows), tuple(highs)

    def own(self, axis: str, before: frozenset[Key], always: bool = False) -> tuple[Key, ...]:
        """What is there, was not ``before``, and only a block of the axis that is done could see: it goes home, as at
        the end of a loop, where blocks are as even as can be, or ``always``."""
        if not (self.plan.even or always):
            return ()
        uses, out = [u for n in self.group.nests for u in n.uses], []
        for key in self.run.data.state.of_any():
            mine = [any(axis in row.names for row in u.index) for u in uses if u.buffer == key[1].buffer]
            if mine and all(mine) and key not in before:
                out.append(key)
        return tuple(out)

    def _leave(self, leaving: tuple[Key, ...]) -> None:
        """Sends home what is still there."""
        for key in leaving:
            if key in self.run.data.state.copies:
                self.run.data.evict(key, leaving=leaving.__contains__)

    # -- the innermost block -----------------------------------------------------------------------------------------
    def _block(self, env: Env, members: Members) -> None:
        """Unrolled: every call of the block, in the plan's unroll order."""
        run = self.run
        self.lives.leaf = frozenset(members)
        steps = run.steps(self._ordered([self._calls(i, env) for i in members]))
        calls = [c for step in steps for c in step]
        several = len(run.system.units) > 1
        block = run.data.block = BlockCalls(calls, clipped=self.clip is not None, several=several, onward=self._onward)
        crowded = self._crowded(calls)
        self.lives.begin(calls)
        for step in steps:
            begun = block.begin(len(step))
            try:
                run.step(step)
            except NoSchedule as no:
                no.nest = step[0][0].number if no.nest is None else no.nest
                raise
            self.lives.done = begun.stop
            for t in block.end(begun, run.data.state):
                run.release(t, crowded)
        run.data.block = BlockCalls()
        self.lives.begin([])

    def _ordered(self, nests: list[list[Call]]) -> list[Call]:
        """The calls of a block that is not clipped, where they crowd what is next to the units."""
        run = self.run
        near = {u.homes[0] for calls in nests for c in calls[:1] for u in c[0].uses} - {run.system.home}
        limits = {} if self.clip is not None else {m: run.system.memories[m].limit for m in sorted(near)}
        return ordered(nests, run.scope.ranges, limits, run.data.fit.units)

    def _onward(self, buffer: str) -> bool:
        """Whether nests use a buffer that are not in the present block."""
        return not self.group.users(buffer) <= self.lives.leaf

    def _crowded(self, calls: list[Call]) -> frozenset[str]:
        """The memories that the block's tiles must be brought to and together exceed."""
        run, demand = self.run, {}
        for nest, _, _, tiles in calls:
            for u, t in zip(nest.uses, tiles, strict=True):
                if u.homes[0] != run.system.home and (key := (u.homes[0], t, u.dims)) not in demand:
                    demand[key] = run.data.fit.units(u.homes[0], t)
        total: dict[str, int] = {}
        for (memory, _, _), n in demand.items():
            total[memory] = total.get(memory, 0) + n
        return frozenset(m for m, n in total.items() if n > run.system.memories[m].limit)

    def _calls(self, member: int, env: Env) -> list[Call]:
        """The calls of one nest; a block is run from several states, but its calls are the same."""
        nest = self.group.nests[member]
        key = (member, self.clip, *(env[a] for a in nest.axes))
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
        for combo in self._clipped(order, steps, env):
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

    def _clipped(self, order: list[str], steps: list[list[Step]], env: Env) -> Iterable[tuple[Step, ...]]:
        """The combinations of steps along axes, as much of each as lies in what the box is clipped to, the longest
        first: then what others read the beginning of is there."""
        clip = self.clip
        if clip is None or not {clip.axis, clip.other} <= set(order):
            return product(*steps)
        one, other = order.index(clip.axis), order.index(clip.other)
        first, across = env[clip.axis][0], env[clip.other][0]
        lengths = [high - low for low, high in clip.ranges]
        steps = [*steps]
        steps[one] = sorted(steps[one], key=lambda step: -lengths[(step[0] - first).const])
        out = []
        for combo in product(*steps):
            start, n = clip.of((combo[one][0] - first).const, (combo[other][0] - across).const, combo[other][1])
            if n:
                out.append((*combo[:other], (across + start, n), *combo[other + 1 :]))
        return out

    def _steps(self, nest: Nest, axis: str, at: tuple[Affine, int, Affine]) -> list[Step]:
        offset, n, _ = at
        m: MappedAxis | None = nest.mapped.get(axis)
        size = 1 if m is None else (m.limit or n)
        return [(offset + i, min(size, n - i)) for i in range(0, n, max(1, size))]


def _shared(nodes: list[Node]) -> tuple[Node, ...]:
    """A run of nodes as one shared node when it is more than one."""
    return tuple(nodes) if len(nodes) <= 1 else (Seq(tuple(nodes)),)
