"""Follows a schedule's tree in time: which state the streams, edges and instances of a machine are in (SCH-13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from isam.cost.compiled import Block, Body, Code, Opened, Row
from isam.cost.instances import Local, Replicated, later, repeated
from isam.cost.lanes import PAST, Lane, Saved, State, since
from isam.cost.steps import Crossing
from isam.schedule.tree import Loop, Node, Schedule

KNOWN = 4096  # iterations that are remembered
Told = Callable[..., None]


class Begin(NamedTuple):
    """The state in which an iteration begins, ``at`` which moment; how often blocks were executed, how many calls
    streams had made and how many moments there were for those who wait for every instance by then."""

    state: State
    at: int
    times: list[int]
    totals: list[int]
    states: dict[str, list[Local]]
    every: dict[Lane, int]
    carried: dict[Crossing, list[int]]


class After(NamedTuple):
    """What an iteration left behind, relative to when it could begin: the state in which the next one begins, ``at``
    which moment; of its streams what they remember and how many calls they made; of gates what changed; how often
    blocks were executed."""

    state: State
    at: int
    lanes: tuple[Saved, ...]
    gates: tuple[Opened | None, ...]
    times: list[int]


class Clock:
    """One walk over a schedule's call tree."""

    coded: type[Code] = Code

    def __init__(self, schedule: Schedule, dealt: Mapping[str, frozenset[int]], told: Told | None, whole: bool):
        self.schedule, self.told, self.whole = schedule, told, whole
        self.code = self.coded(schedule, dealt)
        self.groups: dict[str, Replicated] = {}
        for name, r in schedule.system.replicas.items():
            lanes = [self.code.lanes[s] for s, g in self.code.group_of.items() if g == name]
            gates = [g for g in self.code.gates.values() if g.group == name]
            local = Local(tuple(n.saved() for n in lanes), tuple(g.saved() for g in gates))
            model, carried = [0] * r.count, dict[Crossing, list[int]]()
            if name in self.code.meshed:
                model = self.code.costs.models(name)
                mine = {m.name for m in schedule.system.meshes.values() if m.replica == name}
                keys = sorted({k for b in self.code.blocks for k, _ in b.crossed if k[0] in mine})
                carried = {k: [0] * r.count for k in keys}
            self.groups[name] = Replicated([local] * r.count, lanes, gates, model, carried)
        self.carried = {k: (g, c) for g in self.groups.values() for k, c in g.carried.items()}
        self.meshed = [self.groups[name] for name in self.code.meshed]
        self.followed, self.scope = 0, dict[str, int]()
        self.known: dict[tuple[int, State], After] = {}

    def run(self, scope: dict[str, int]) -> None:
        self.node(self.schedule.call, scope)

    @property
    def end(self) -> int:
        """When everything is finished."""
        tops = [lane.top for lane in self.code.lanes.values()]
        return max([0, *tops, *(n.top for g in self.groups.values() for s in g.kinds() for n in s.lanes)])

    # -- the tree ----------------------------------------------------------------------------------------------------
    def node(self, node: Node, scope: dict[str, int]) -> None:
        if isinstance(node, Loop):
            self.loop(node, scope)
            return
        for part in self.code.parts[id(node)]:
            if isinstance(part, Block):
                self.scope = scope
                self.block(part)
            else:
                self.node(part, scope)

    def loop(self, loop: Loop, scope: dict[str, int]) -> None:
        values = loop.values(scope)
        if not values:
            return
        if loop.deal is not None:
            self.dealt(loop, values, scope)
            return
        self.node(loop.enter, scope)
        if loop.first is not None:
            self.node(loop.first, {**scope, loop.var: values[0]})
        self.middle(loop, values[loop.first is not None : len(values) - (loop.last is not None)], scope)
        if loop.last is not None:
            self.node(loop.last, {**scope, loop.var: values[-1]})
        self.node(loop.exit, scope)

    def middle(self, loop: Loop, values: range, scope: dict[str, int]) -> None:
        """Iterations one by one until one begins as the one before did, the rest at once. What one of them leaves that
        began in the same state before is known."""
        body = self.code.body(loop.body)
        if not body.alike or self.whole or len(values) < 2:
            for v in values:
                self.node(loop.body, {**scope, loop.var: v})
            return
        remembers = not (body.deals or self.meshed or self.told)
        begin = self.begin(body, None)
        for n, v in enumerate(values):
            key = id(loop.body), begin.state
            after = self.known.get(key) if remembers else None
            if after is None:
                opened = [g.saved() for g in body.gates]
                self.node(loop.body, {**scope, loop.var: v})
                following = self.begin(body, begin)
                if remembers and len(self.known) < KNOWN and _forgotten(body, begin):
                    self.known[key] = self.after(body, begin, following, opened)
            else:
                following = self.recall(body, begin, after)
            if following.state == begin.state and n + 1 < len(values):
                self.repeat(body, begin, following.at - begin.at, len(values) - n - 1)
                return
            begin = following

    def after(self, body: Body, begin: Begin, following: Begin, opened: list[Opened]) -> After:
        """What an iteration left, relative to when it could begin."""
        at = begin.at
        lanes = tuple([n.later(-at, n.total - t) for n, t in zip(body.runs, begin.totals, strict=True)])
        now = [(g.saved(), was) for g, was in zip(body.gates, opened, strict=True)]
        gates = tuple([None if state == was else later(state, -at) for state, was in now])
        return After(following.state, following.at - at, lanes, gates, self.gained(body, begin.times))

    def recall(self, body: Body, begin: Begin, after: After) -> Begin:
        """The same iteration again, from the same state at another moment."""
        at, totals = begin.at, []
        for lane, saved in zip(body.runs, after.lanes, strict=True):
            totals.append(lane.total + saved.total)
            lane.load(saved.later(at, totals[-1]))
        for gate, state in zip(body.gates, after.gates, strict=True):
            if state is not None:
                gate.load(later(state, at))
        self.count(body, after.times, 1)
        return Begin(after.state, at + after.at, self.counted(body), totals, {}, {}, {})

    # -- what is added up --------------------------------------------------------------------------------------------
    def counted(self, body: Body) -> list[int]:
        """How often its blocks were executed so far."""
        return [b.times for b in body.blocks]

    def gained(self, body: Body, before: list[int]) -> list[int]:
        """How often since then."""
        return [b.times - n for b, n in zip(body.blocks, before, strict=True)]

    def count(self, body: Body, more: list[int], times: int) -> None:
        """So many times as often again."""
        for b, n in zip(body.blocks, more, strict=False):
            b.times += n * times

    # -- calls -------------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        block.times += 1
        self.followed += block.size
        told = self.told
        for key, size in block.crossed:
            g, carried = self.carried[key]
            carried[g.at] += size
        for row in self.rows(block) if block.crossed else block.rows:
            lane, interval, latency, waits, gates = row[:5]
            start = lane.free
            for other, lag in waits:
                tail = other.tail
                if lag < len(tail):
                    t = tail[~lag]
                    if t > start:
                        start = t
                elif other.older:
                    start = max(start, other.back(lag))
            for gate, _ in gates:
                if gate.open > start:
                    start = gate.open
            for gate, held in gates:
                gate.open = start + held
            for gate, held, lead, hops in row[6]:
                late = gate.take(start + lead, held) - start
                if late > interval:
                    interval = late
                if late + hops > latency:
                    latency = late + hops
            lane.free = start + interval
            finish = start + latency
            if finish > lane.top:
                lane.top = finish
            else:
                finish = lane.top
            lane.tail.append(finish)
            if told is not None:
                self._tell(told, row, start, interval - row[1])
        for lane, n in block.calls:
            lane.total += n
            if len(lane.tail) > 2 * lane.keep + 64:
                lane.trim()

    def rows(self, block: Block) -> tuple[Row, ...]:
        """A block's rows on the present instances."""
        at = tuple(g.model[g.at] for g in self.meshed)
        if not any(at):
            return block.rows
        if at not in block.elsewhere:
            block.elsewhere[at] = self.code.rows(block.steps, at)
        return block.elsewhere[at]

    def _tell(self, told: Told, row: Row, start: int, late: int) -> None:
        for t in row[5].calls:
            group = self.code.group_of[self.code.streams[t.issue.unit]]
            instance = self.groups[group].at if group else 0
            free, finish = start + t.interval + late, start + t.latency + late
            told(t.issue, start, free, finish, t.edge, t.bytes, instance, self.scope)

    # -- instances ---------------------------------------------------------------------------------------------------
    def dealt(self, loop: Loop, values: range, scope: dict[str, int]) -> None:
        """Every iteration on its instance, from where that one stands; equal ones from equal states once."""
        assert loop.deal is not None
        name, deal, body = loop.deal.group, loop.deal, self.code.body(loop.body)
        g = self.groups[name]
        base, outermost = g.at, not g.dealing
        g.store()
        if outermost:
            g.dealing, g.followed = True, {}
            self._all_known(name)
        share = body.alike and not body.deals and body.groups <= {name} and not self.whole
        for n, v in enumerate(values):
            i = base + deal.first + deal.stride * n
            known = g.followed.get((id(loop.body), id(g.states[i]), g.model[i])) if share else None
            if known is None:
                old, times = g.states[i], self.counted(body)
                before = {k: c[i] for k, c in g.carried.items()}
                g.switch(i)
                self.node(loop.body, {**scope, loop.var: v})
                g.store()
                more = self.gained(body, times)
                moved = {k: c[i] - before[k] for k, c in g.carried.items()}
                g.followed[id(loop.body), id(old), g.model[i]] = g.states[i], more, moved, old
            else:
                g.states[i] = known[0]
                self.count(body, known[1], 1)
                for k, size in known[2].items():
                    g.carried[k][i] += size
        g.switch(base)
        if outermost:
            g.dealing = False
            self._all_known(name)

    def _all_known(self, name: str) -> None:
        """When all calls of all instances are finished, for those who wait for every one."""
        g = self.groups[name]
        kinds = g.kinds()
        for k, lane in enumerate(g.lanes):
            every = self.code.every[lane.name]
            every.top = max(s.lanes[k].top for s in kinds)
            every.tail.append(every.top)
            every.total += 1
            if len(every.tail) > 2 * every.keep + 64:
                every.trim()

    # -- repetition --------------------------------------------------------------------------------------------------
    def begin(self, body: Body, before: Begin | None) -> Begin:
        """What may influence what follows, relative to the first moment in which a call of the body may start. What is
        over by then does not matter."""
        frees = [lane.free for lane in body.runs]
        states, every = self._instances(body, before, frees) if body.deals else ({}, {})
        at = min(frees, default=0)
        lanes = tuple([lane.since(at) for lane in (*body.runs, *body.waits)])
        still = tuple([_since(lane.back(lag), at) for lane, lags in body.still for lag in lags])
        opens = tuple([_opened(g.open, g.holes, at) for g in body.gates])
        dealt = tuple([self._relative(self.groups[name], at) for name in body.deals])
        times, totals = self.counted(body), [lane.total for lane in body.runs]
        carried = {k: list(c) for k, (_, c) in self.carried.items()}
        return Begin((lanes, still, opens, dealt), at, times, totals, states, every, carried)

    def _instances(
        self, body: Body, before: Begin | None, frees: list[int]
    ) -> tuple[dict[str, list[Local]], dict[Lane, int]]:
        """The states of all instances that a body deals to, and how many moments there were for those who wait for
        every one. Adds to ``frees`` when streams of theirs may start that made calls meanwhile."""
        for name in body.deals:
            self.groups[name].store()
        states = {name: list(self.groups[name].states) for name in body.deals}
        for name, locals_ in states.items():
            made = zip(before.states[name], locals_, strict=True) if before else ()
            for was, now in {(id(w), id(n)): (w, n) for w, n in made}.values():
                frees += [n.free for w, n in zip(was.lanes, now.lanes, strict=True) if w.total != n.total]
        every = {e: e.total for name in body.deals for n in self.groups[name].lanes for e in (self.code.every[n.name],)}
        return states, every

    def _relative(self, g: Replicated, at: int) -> State:
        """The states of all instances: which are the same, and what each kind is."""
        kinds: dict[int, int] = {}
        told: list[State] = []
        for s in g.states:
            if id(s) not in kinds:
                kinds[id(s)] = len(told)
                lanes = tuple([since(saved, lane.keep, at) for lane, saved in zip(g.lanes, s.lanes, strict=True)])
                told.append((lanes, tuple(_opened(*t, at) for t in s.gates)))
        return tuple(kinds[id(s)] for s in g.states), tuple(told)

    def repeat(self, body: Body, before: Begin, shift: int, times: int) -> None:
        """As many more iterations like the last, each ``shift`` later."""
        for lane, total in zip(body.runs, before.totals, strict=True):
            lane.repeat(lane.total - total, shift, times)
        for gate in body.gates:
            gate.load(later(gate.saved(), shift * times))
        self.count(body, self.gained(body, before.times), times)
        for key, (_, carried) in self.carried.items():
            carried[:] = [n + (n - was) * times for n, was in zip(carried, before.carried[key], strict=True)]
        for name in body.deals:
            g, made = self.groups[name], {}
            for i, (was, now) in enumerate(zip(before.states[name], g.states, strict=True)):
                key = id(was), id(now)
                if key not in made:
                    made[key] = repeated(g, was, now, shift, times)
                g.states[i] = made[key]
            g.switch(g.at)
            for lane in g.lanes:
                every = self.code.every[lane.name]
                every.repeat(every.total - before.every[every], shift, times)


def _forgotten(body: Body, begin: Begin) -> bool:
    """Whether its streams remember no call from before an iteration."""
    return all(n.total - t >= n.keep for n, t in zip(body.runs, begin.totals, strict=True))


def _since(moment: int, at: int) -> int:
    return moment - at if moment > at else PAST


def _opened(moment: int, stretches: tuple[tuple[int, int], ...], at: int) -> State:
    """What of a gate's state matters from a moment on, relative to it."""
    holes = tuple([(max(0, a - at), b - at) for a, b in stretches if b > at]) if stretches else ()
    return _since(moment, at), holes
