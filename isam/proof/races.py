"""Races: two calls that touch the same bytes, one of them writing, of which the later may start before the earlier has
finished (SCH-8). The slow judge: every call of a schedule with small trips, one by one.

Of a call it is known which calls have finished when it starts: those its waits name, those that had finished when the
calls it waits for started, and those that had finished when the call before it on its own stream started. Instances of
a replica have streams and memories of their own; calls of a cluster that are joined are one step, and start when all of
them may. The calls of one command of a unit are carried out one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from isam.classes import dataclass
from isam.ir.dtype import size_of
from isam.proof.filled import with_boxes
from isam.proof.geometry import resolve
from isam.proof.violation import Violation, issue_text
from isam.schedule.tree import Issue, Loop, Node, Operand, Schedule

Stream = tuple[str, int]  # of an instance
Known = dict[Stream, int]  # per stream how many of its steps have surely finished


@dataclass(slots=True)
class _Touch:
    """An earlier access in the ``number``-th step of ``stream``: bytes from ``low`` to ``high``, those in ``mask`` (its
    bits, from ``low`` on)."""

    low: int
    high: int
    mask: int
    stream: Stream
    number: int
    writes: bool
    issue: Issue


@dataclass(frozen=True, slots=True)
class At:
    """Where a call stands: the values of loop variables, the instance of each replica, and for those the number of the
    outermost loop dealt to it."""

    scope: dict[str, int]
    instance: dict[str, int] = field(default_factory=dict)
    begun: dict[str, int] = field(default_factory=dict)


@dataclass
class _Races:
    schedule: Schedule
    most: int
    found: list[Violation] = field(default_factory=list)
    known: dict[Stream, list[Known]] = field(default_factory=dict)  # per stream and step: what had finished by then
    touched: dict[tuple[str, str, int], list[_Touch]] = field(default_factory=dict)
    masks: dict[int, int] = field(default_factory=dict)
    begun: dict[str, list[Known]] = field(default_factory=dict)  # steps given when each outermost dealt loop began

    def __post_init__(self) -> None:
        system = self.schedule.system
        self.stream = {u: system.stream_of(u) for u in system.units}
        self.group = {self.stream[u]: system.replica_of(u) or "" for u in system.units}
        self.threads = {r.name for r in system.replicas.values() if r.threads}
        self.owner = {m: system.replica_of(m) or "" for m in system.memories}

    def step(self, calls: list[tuple[Issue, At]]) -> None:
        """Calls that start together."""
        head, at = calls[0]
        name = self.stream[head.unit]
        stream = name, at.instance.get(self.group[name], 0)
        mine = self.known.setdefault(stream, [])
        finished: Known = dict(mine[-1]) if mine else {}
        for issue, where in calls:
            for s, done in self.awaited(issue, where):
                for t, n in self.known[s][done - 1].items() if done > 0 else ():
                    finished[t] = max(n, finished.get(t, 0))
                finished[s] = max(done, finished.get(s, 0))
        if self.group[name] in self.threads:  # a CPU carries a thread out in order, whatever units it stands for
            for s, past in self.known.items():
                if past and self.alike(s, stream):
                    finished = {t: max(n, finished.get(t, 0)) for t, n in (finished | past[-1]).items()}
                    finished[s] = len(past)
        for issue, where in calls:
            for o in issue.operands:
                self.touch(issue, o, stream, len(mine), finished, where)
        mine.append(finished)

    def alike(self, one: Stream, two: Stream) -> bool:
        """Whether two streams are of the same instance of a group."""
        return (self.group[one[0]], one[1]) == (self.group[two[0]], two[1])

    def awaited(self, issue: Issue, at: At) -> Iterator[tuple[Stream, int]]:
        """Streams with how many of their steps a call's waits say are finished."""
        for w in issue.after:
            group = self.group.get(w.stream, "")
            if w.every:
                number = at.begun.get(group)
                given = None if number is None else self.begun[group][number - w.lag] if w.lag <= number else {}
                for s, past in list(self.known.items()):
                    if s[0] == w.stream:
                        yield s, len(past) if given is None else given.get(s, 0)
            else:
                s = w.stream, at.instance.get(group, 0)
                yield s, len(self.known.setdefault(s, [])) - w.lag

    def touch(self, issue: Issue, o: Operand, stream: Stream, number: int, finished: Known, at: At) -> None:
        writes = self.schedule.system.instructions[issue.instruction].operand(o.name).role in ("out", "inout")
        low, high = self.bytes_of(o, at.scope)
        mask = self.mask_of(o)
        memory = resolve(self.schedule.system, o.place.memory)
        where = memory, o.place.base, at.instance.get(self.owner[memory], 0)
        touched, over = self.touched.setdefault(where, []), set[int]()
        for t in [t for t in touched if low < t.high and t.low < high]:
            meets = (writes or t.writes) and _common(low, mask, t.low, t.mask)
            own = t.issue.unit == issue.unit and (t.stream, t.number) == (stream, number)
            done = finished.get(t.stream, 0) > t.number
            if meets and not own and not done:
                name = f"{t.issue.instruction} on '{t.stream[0]}'"
                what = f"may start before {name}, which touches the same bytes, is done"
                self.found.append(Violation(8, "race", what, issue_text(issue)))
            hidden = writes and low <= t.low and t.high <= high and not t.mask & ~(mask >> (t.low - low))
            if hidden and done:  # whoever is after this write is after that access too
                over.add(id(t))
        if over:
            touched[:] = [t for t in touched if id(t) not in over]
        touched.append(_Touch(low, high, mask, stream, number, writes, issue))

    def mask_of(self, o: Operand) -> int:
        """Which bytes from its lowest on an operand touches, as bits; of whole cells all."""
        got = self.masks.get(id(o))
        if got is None:
            got = (1 << size_of(self.schedule.dtype(o.tile.buffer))) - 1
            for stride, step, n in zip(o.place.strides, o.tile.steps, o.tile.shape, strict=True):
                one, far = got, abs(stride * step)
                for k in range(1, n):
                    got |= one << (far * k)
            if o.place.cell is not None:
                got = -1
            self.masks[id(o)] = got
        return got

    def bytes_of(self, o: Operand, scope: Mapping[str, int]) -> tuple[int, int]:
        size = size_of(self.schedule.dtype(o.tile.buffer))
        low = high = o.place.offset.evaluate(scope)
        for stride, step, n in zip(o.place.strides, o.tile.steps, o.tile.shape, strict=True):
            far = stride * step * (n - 1)
            low, high = low + min(0, far), high + max(0, far)
        high += size
        if o.place.cell is not None:
            cell = self.schedule.system.memories[o.place.memory].cell or 1
            low, high = o.place.cell + low // cell, o.place.cell + -(-high // cell)
        return low, high

    def node(self, node: Node, at: At) -> None:
        """Every step in the tree's order."""
        if len(self.found) >= self.most:
            return
        if isinstance(node, Issue):
            self.step([(node, at)])
        elif isinstance(node, Loop):
            self.loop(node, at)
        else:
            for head, *more in _steps(node.children):
                if isinstance(head, Issue):
                    self.step([(head, at), *((i, at) for i in more if isinstance(i, Issue))])
                else:
                    self.node(head, at)

    def loop(self, loop: Loop, at: At) -> None:
        values = loop.values(at.scope)
        if values:
            self.node(loop.enter, at)
        for n, v in enumerate(values):
            last = v == values[-1] and loop.last is not None
            peeled = loop.last if last else loop.first if v == values[0] else None
            inside = At({**at.scope, loop.var: v}, at.instance, at.begun)
            if loop.deal is not None:
                inside = self.dealt(loop, inside, n)
            self.node(loop.body if peeled is None else peeled, inside)
        if values:
            self.node(loop.exit, at)

    def dealt(self, loop: Loop, at: At, n: int) -> At:
        assert loop.deal is not None
        group = loop.deal.group
        instance = at.instance.get(group, 0) + loop.deal.first + loop.deal.stride * n
        begun = at.begun
        if group not in at.instance:
            loops = self.begun.setdefault(group, [])
            if n == 0:
                loops.append({s: len(past) for s, past in self.known.items()})
            begun = {**begun, group: len(loops) - 1}
        return At(at.scope, {**at.instance, group: instance}, begun)


def _common(low: int, mask: int, other: int, theirs: int) -> bool:
    """Whether two accesses have a byte in common."""
    return bool(mask >> (other - low) & theirs if low <= other else theirs >> (low - other) & mask)


def _steps(children: tuple[Node, ...]) -> list[list[Node]]:
    """Children with the calls that are joined to them."""
    out: list[list[Node]] = []
    for c in children:
        if isinstance(c, Issue) and c.joined and out:
            out[-1].append(c)
        else:
            out.append([c])
    return out


def calls(node: Node, scope: dict[str, int]) -> Iterator[tuple[Issue, dict[str, int]]]:
    """Every call in the tree's order, with the values of the loop variables around it."""
    if isinstance(node, Issue):
        yield node, scope
    elif isinstance(node, Loop):
        values = node.values(scope)
        if values:
            yield from calls(node.enter, scope)
        for v in values:
            peeled = node.last if v == values[-1] and node.last is not None else node.first if v == values[0] else None
            yield from calls(node.body if peeled is None else peeled, {**scope, node.var: v})
        if values:
            yield from calls(node.exit, scope)
    else:
        for c in node.children:
            yield from calls(c, scope)


def check_races(schedule: Schedule, symbols: Mapping[str, int] | None = None, most: int = 20) -> list[Violation]:
    """Races of bind and of call, each on its own, at most about ``most``. ``symbols``: run-time sizes."""
    out: list[Violation] = []
    if schedule.in_turn():
        return out
    schedule = with_boxes(schedule)
    for tree in (schedule.bind, schedule.call):
        r = _Races(schedule, most)
        r.node(tree, At(schedule.cover.kernel.sizes(symbols or {})))
        out += r.found
    return out
