"""A schedule's tree made ready to be followed in time: rows of numbers in place of calls, worked out once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field

from isam.classes import dataclass
from isam.cost.lanes import Lane
from isam.cost.steps import Crossing, Stand, StepCosts, Timed
from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq, Wait, distinct

HOLES = 64  # stretches in which a link was idle that are remembered
Opened = tuple[int, tuple[tuple[int, int], ...]]  # the state of a gate


@dataclass(eq=False, slots=True)
class Gate:
    """An edge, or an instance's part of a link, of a replica's ``group``: ``open`` for a move from that moment on.
    ``holes``: stretches of time before that in which a link has nothing to carry, earliest first."""

    group: str | None
    open: int = 0
    holes: tuple[tuple[int, int], ...] = ()

    def take(self, at: int, ticks: int) -> int:
        """Carries for so many ticks from the moment ``at`` on, in holes first; when it is done. So moves share a link
        in the order of time, whatever the order of the tree."""
        if at >= self.open:
            if at > self.open:
                self.holes = (*self.holes[1 - HOLES :], (self.open, at))
            self.open = at + ticks
            return self.open
        left, end = [], at
        for a, b in self.holes:
            begin = max(a, at)
            used = min(ticks, b - begin) if b > begin else 0
            if used:
                ticks, end = ticks - used, begin + used
                left += [(p, q) for p, q in ((a, begin), (end, b)) if p < q]
            else:
                left.append((a, b))
        self.holes = tuple(left[-HOLES:])
        if ticks:
            self.open += ticks
            end = self.open
        return end

    def saved(self) -> Opened:
        return self.open, self.holes

    def load(self, saved: Opened) -> None:
        self.open, self.holes = saved


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Calls that start together: one, or those of a cluster's members. ``burst``: those of one command of a unit."""

    calls: tuple[Timed, ...]
    interval: int
    latency: int
    burst: bool = False


Through = tuple[Gate, int, int, int]  # a link, for how long, how long after the start; how long something then hops
Row = tuple[Lane, int, int, tuple[tuple[Lane, int], ...], tuple[tuple[Gate, int], ...], Step, tuple[Through, ...]]


@dataclass(eq=False, slots=True)
class Block:
    """Steps one after the other, executed ``times`` times. A row: the stream, for how long it is taken, when results
    are there, for whom it waits and how far they may be behind, the edges it goes along and for how long, the calls,
    the links.
    ``calls``: how many of the steps each stream has; ``size``: how many calls there are in all. ``elsewhere``: its rows
    on instances to which other routes of a mesh lead; ``crossed``: the bytes that cross each mesh."""

    steps: tuple[tuple[Issue, ...], ...]
    rows: tuple[Row, ...]
    calls: tuple[tuple[Lane, int], ...]
    size: int
    crossed: tuple[tuple[Crossing, int], ...] = ()
    times: int = 0
    elsewhere: dict[tuple[int, ...], tuple[Row, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Body:
    """Of a loop's body: its blocks, the streams that run in it, others that it waits for (``still``: that make no call
    meanwhile, with how many calls they may be behind), its gates; the replicas that it deals to, whose streams and
    gates are not in those; ``alike``: all iterations make the same calls; ``groups``: whose units run in it (None:
    units that are there once)."""

    blocks: tuple[Block, ...]
    runs: tuple[Lane, ...]
    waits: tuple[Lane, ...]
    still: tuple[tuple[Lane, tuple[int, ...]], ...]
    gates: tuple[Gate, ...]
    deals: tuple[str, ...]
    alike: bool
    groups: frozenset[str | None]


@dataclass(eq=False)
class Code:
    """``parts``: of every sequence and call in the tree. ``every``: of all instances of a replicated unit, when all
    calls so far were finished, at the begin and at the end of each outermost dealt loop."""

    schedule: Schedule
    dealt: Mapping[str, frozenset[int]]
    lanes: dict[str, Lane] = field(default_factory=dict)
    every: dict[str, Lane] = field(default_factory=dict)
    gates: dict[object, Gate] = field(default_factory=dict)
    parts: dict[int, list[Block | Loop]] = field(default_factory=dict)
    blocks: list[Block] = field(default_factory=list)
    bodies: dict[int, Body] = field(default_factory=dict)
    under: dict[int, tuple[Block, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        system, tree = self.schedule.system, self.schedule.call
        self.streams = {u: system.stream_of(u) for u in system.units}
        self.group_of = {self.streams[u]: system.replica_of(u) for u in system.units}
        self.costs = StepCosts(self.schedule, self.dealt)
        self.meshed = tuple(dict.fromkeys(m.replica for m in system.meshes.values()))
        keep = _kept(tree)
        self.lanes = {s: Lane(s, keep.get(s, 1)) for s in self.group_of}
        self.every = {s: Lane(s, 2 * keep.get(f"{s} of all", 0) + 1) for s, g in self.group_of.items() if g}
        for n in distinct(tree):
            for c in (n.enter, n.first, n.body, n.last, n.exit) if isinstance(n, Loop) else (n,) if n is tree else ():
                if c is not None and not isinstance(c, Loop) and id(c) not in self.parts:
                    self.parts[id(c)] = list(self._parts(c))

    def _parts(self, node: Node) -> Iterable[Block | Loop]:
        """Runs of calls as blocks, loops as they are; sequences in sequences are one."""
        run: list[Issue] = []
        for n in _flat(node):
            if isinstance(n, Loop):
                if run:
                    yield self._block(run)
                run = []
                yield n
            else:
                run.append(n)
        if run:
            yield self._block(run)

    def _block(self, issues: list[Issue]) -> Block:
        steps: list[list[Issue]] = []
        for i in issues:
            if i.joined and steps:
                steps[-1].append(i)
            else:
                steps.append([i])
        fixed = tuple(map(tuple, steps))
        rows = self.rows(fixed, (0,) * len(self.meshed))
        counts: dict[Lane, int] = {}
        crossed: dict[Crossing, int] = {}
        for row in rows:
            counts[row[0]] = counts.get(row[0], 0) + 1
            for t in row[5].calls:
                crossed.update((key, crossed.get(key, 0) + t.bytes) for key, _ in t.crosses)
        block = Block(fixed, rows, tuple(counts.items()), len(issues), tuple(crossed.items()))
        self.blocks.append(block)
        return block

    def rows(self, steps: tuple[tuple[Issue, ...], ...], at: tuple[int, ...]) -> tuple[Row, ...]:
        """Steps on these instances of the replicas that stand on meshes."""
        stand = dict(zip(self.meshed, at, strict=True))
        return tuple(self._row(step, stand) for step in steps)

    def _row(self, issues: tuple[Issue, ...], stand: Stand) -> Row:
        lane = self.lanes[self.streams[issues[0].unit]]
        timed = tuple(self.costs.of(i, stand) for i in issues)
        waits: dict[Lane, int] = {}
        for w in (w for i in issues for w in i.after):
            other, lag = self.awaited(w)
            waits[other] = min(lag, waits.get(other, lag))
        gates: dict[Gate, int] = {}
        links: list[Through] = []
        for t in timed:
            group = self.group_of[self.streams[t.issue.unit]]
            if t.edge is not None:
                gate = self.gates.setdefault((t.edge, group), Gate(group))
                gates[gate] = gates.get(gate, 0) + t.held
            links += [(self.gates.setdefault((k, group), Gate(group)), n, t.lead, t.hops) for k, n, _ in t.links]
            links += [(self.gates.setdefault((k, group), Gate(group)), n, t.lead, t.hops) for k, n in t.crosses]
        interval, latency = max(t.interval for t in timed), max(t.latency for t in timed)
        burst = len(issues) > 1 and len({i.unit for i in issues}) == 1
        if burst:  # one set-up, then call after call
            more = sum(t.interval - t.lead for t in timed[1:])
            interval, latency = interval + more, latency + more
        step = Step(timed, interval, latency, burst)
        return lane, step.interval, step.latency, tuple(waits.items()), tuple(gates.items()), step, tuple(links)

    def awaited(self, wait: Wait) -> tuple[Lane, int]:
        """The stream that a wait is for and how many of its calls may be behind; of all instances, how many moments: a
        dealt loop has one when it begins and one when it ends."""
        if wait.every:
            return self.every[wait.stream], 2 * wait.lag
        return self.lanes[wait.stream], wait.lag

    def body(self, node: Node) -> Body:
        """What a loop's body touches."""
        got = self.bodies.get(id(node))
        if got is None:
            nodes = list(distinct(node))
            loops = [n for n in nodes if isinstance(n, Loop)]
            deals = tuple(sorted({n.deal.group for n in loops if n.deal is not None}))
            blocks = self._under(node)
            rows = [r for b in blocks for r in b.rows]
            runs = {r[0]: None for r in rows}
            lags: dict[Lane, set[int]] = {}
            for other, lag in ((o, lag) for r in rows for o, lag in r[3] if o not in runs):
                lags.setdefault(other, set()).add(lag)
            through = [g for r in rows for g in (*(g for g, _ in r[4]), *(g for g, _, _, _ in r[6]))]
            gates = {g: None for g in through if g.group not in deals}
            outside = tuple(n for n in runs if self.group_of[n.name] not in deals)
            here = {n for n in lags if self.group_of[n.name] in deals}  # of the instances dealt to
            moving = tuple(n for n in here if n is self.every.get(n.name))
            still = tuple((n, tuple(sorted(some))) for n, some in lags.items() if n not in here)
            alike = all(n.trip is not None for n in loops)
            groups = frozenset(self.group_of[n.name] for n in runs)
            got = self.bodies[id(node)] = Body(blocks, outside, moving, still, tuple(gates), deals, alike, groups)
        return got

    def _under(self, node: Node) -> tuple[Block, ...]:
        """All blocks in a node, each once."""
        got = self.under.get(id(node))
        if got is None:
            found: dict[Block, None] = {}
            if isinstance(node, Loop):
                inner = [p for p in (node.enter, node.first, node.body, node.last, node.exit) if p is not None]
                found = {b: None for p in inner for b in self._under(p)}
            else:
                for part in self.parts[id(node)]:
                    found.update({part: None} if isinstance(part, Block) else dict.fromkeys(self._under(part)))
            got = self.under[id(node)] = tuple(found)
        return got


def _flat(node: Node) -> Iterable[Issue | Loop]:
    if isinstance(node, Seq):
        for c in node.children:
            yield from _flat(c)
    else:
        yield node


def _kept(tree: Node) -> dict[str, int]:
    """How many finished calls of each stream someone may ask for."""
    keep: dict[str, int] = {}
    for n in distinct(tree):
        for w in n.after if isinstance(n, Issue) else ():
            name = f"{w.stream} of all" if w.every else w.stream
            keep[name] = max(w.lag + 1, keep.get(name, 1))
    return keep
