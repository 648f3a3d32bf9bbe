"""What each call waits for, so that the units of a machine may run apart (SCH-8).

Every unit is a stream: it starts the calls given to it in the order of the schedule's tree. A call that touches what an
earlier call touches, where one of them writes, carries a :class:`~isam.schedule.tree.Wait` on that call's stream, its
own included: how far behind the nearest such call is, in calls of that stream. That is a number, however long the loops
between them run; for all the times that a call is reached the smallest holds (:mod:`isam.scheduler.waits.behind`).
Units for which threads of a process stand need no wait for themselves: a CPU carries a thread out in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq, Wait, children, distinct, mapped
from isam.scheduler.tiles import Ranges
from isam.scheduler.waits.behind import Lookback
from isam.scheduler.waits.footprints import Footprint, Prints, first_value, range_of, values_of
from isam.scheduler.waits.look import Frame, Lags, Met
from isam.scheduler.waits.within import Within, runs


def with_waits(schedule: Schedule) -> Schedule:
    """The schedule with every call's waits; itself where none is needed."""
    if schedule.in_turn():
        return schedule
    t = Tokens(schedule)
    t.visit(schedule.bind, Frame(None, None, Ranges()))
    t.visit(schedule.call, Frame(None, None, Ranges()))
    done: dict[int, Node] = {}
    return replace(schedule, bind=t.marked(schedule.bind, done), call=t.marked(schedule.call, done))


def for_results(schedule: Schedule) -> dict[int, frozenset[Wait]]:
    """Of every call (``id``) of the call part the waits that are for what the nearest call in question writes and it
    reads. The others are for room: that nobody reads or writes any more what it writes."""
    t = Readers(schedule)
    t.visit(schedule.call, Frame(None, None, Ranges()))
    calls = [n for n in distinct(schedule.call) if isinstance(n, Issue)]

    def read(issue: Issue, wait: Wait) -> bool:
        lag = t.lags.get(id(issue), {}).get(Met(wait.stream, wait.every))
        return lag is not None and lag <= wait.lag

    return {id(i): frozenset(w for w in i.after if read(i, w)) for i in calls}


class Tokens:
    """One walk over a schedule's trees; ``lags``: per call and stream the smallest found."""

    def __init__(self, schedule: Schedule):
        system = schedule.system
        streams = {u: system.stream_of(u) for u in system.units}
        groups = {streams[u]: g for u in system.units if (g := system.replica_of(u))}
        owned = {m: g for m in system.memories if (g := system.replica_of(m))}
        whole, scopes = everywhere(schedule)
        inner = frozenset(i for tree in (schedule.bind, schedule.call) for i in nested(tree, frozenset()))
        trees = schedule.bind, schedule.call
        threads = system.threads
        self.ordered = {streams[u] for u in threads.units} if threads else set[str]()  # a thread waits for itself
        self.apart = set(threads.memories) if threads else set[str]()  # nobody else touches these
        self.behind = Lookback(Within(Prints(schedule, streams, scopes), whole, groups, owned, inner), trees)
        self.lags: dict[int, Lags] = {}

    def visit(self, node: Node, at: Frame) -> None:
        """Every place of every call below a node that stands at ``at``."""
        if isinstance(node, Issue):
            self._call(node, at)
        elif isinstance(node, Seq):
            head = 0
            for i, c in enumerate(node.children):
                head = head if isinstance(c, Issue) and c.joined else i
                self.visit(c, Frame(at, node, at.ranges, head))
        elif node.trip != 0:
            inside, there = entered(node, at.ranges), {id(p) for p in runs(node)}
            for part in ("enter", "first", "body", "last", "exit"):
                child = getattr(node, part)
                if id(child) in there:
                    ranges = at.ranges if part in ("enter", "exit") else inside
                    self.visit(child, Frame(at, node, ranges, part=part))

    def _call(self, issue: Issue, at: Frame) -> None:
        lags = self.lags.setdefault(id(issue), {})
        around = dealt_around(at)
        view = self.behind.view(at.ranges, ())
        for mine in self.looks(issue):
            own = mine.stream in self.ordered
            if own and mine.where[0] in self.apart:
                continue
            if own and around:
                found = self._outside(at, mine)
            elif isinstance(at.node, Seq):  # nobody else looks from there
                found = self.behind.in_row(at, at.node, mine, view)
            else:
                found = self.behind.before(at, mine, at.ranges)
            for met, n in found.items():
                if own and met == Met(mine.stream):
                    continue
                if met.every and self.behind.groups[met.stream] not in around:
                    n = 0  # what stands in no dealt loop waits for all of them
                lags[met] = min(n, lags.get(met, n))

    def looks(self, issue: Issue) -> tuple[Footprint, ...]:
        """The accesses with which a call looks back."""
        return self.behind.within.prints.of(issue)

    def _outside(self, at: Frame, mine: Footprint) -> Lags:
        """What a call waits for that stands before the outermost dealt loop around it: inside it meets only its own
        stream. ``mine``: what it touches."""
        bodies: list[tuple[Loop, Frame]] = []  # of which loops we are in, innermost first, and where they stand
        up = at
        while up.parent is not None:
            if isinstance(up.node, Loop) and up.part in ("first", "body", "last"):
                bodies.append((up.node, up.parent))
            up = up.parent
        last = max(n for n, (loop, _) in enumerate(bodies) if loop.deal is not None)
        dealt: tuple[Loop, ...] = ()
        for loop, there in bodies[: last + 1]:
            if loop.deal is not None:
                dealt = (loop, *dealt)
            else:
                mine = mine.over(loop.var, *values_of(loop, there.ranges))
        return self.behind.before(bodies[last][1], mine, at.ranges, dealt)

    def marked(self, node: Node, done: dict[int, Node]) -> Node:
        """The tree with its waits; shared nodes stay shared."""
        got = done.get(id(node))
        if got is not None:
            return got
        if isinstance(node, Issue):
            new: Node = node.waiting(_waits(self.lags.get(id(node), {})))
        else:
            new = mapped(node, lambda part: self.marked(part, done))
        done[id(node)] = new
        return new


class Readers(Tokens):
    """Looks back from what calls read, of what is read and written as well."""

    def looks(self, issue: Issue) -> tuple[Footprint, ...]:
        roles = self.behind.within.prints.schedule.system.instructions[issue.instruction]
        pairs = zip(super().looks(issue), issue.operands, strict=True)
        return tuple(f._replace(writes=False) for f, o in pairs if roles.operand(o.name).role != "out")


def dealt_around(at: Frame | None) -> set[str]:
    """The groups to which loops around a place are dealt."""
    out: set[str] = set()
    while at is not None:
        if isinstance(at.node, Loop) and at.node.deal is not None:
            out.add(at.node.deal.group)
        at = at.parent
    return out


def nested(node: Node, groups: frozenset[str]) -> Iterator[int]:
    """Dealt loops (``id``) that stand in one that is dealt to the same group."""
    if isinstance(node, Loop) and node.deal is not None:
        if node.deal.group in groups:
            yield id(node)
        groups |= {node.deal.group}
    for part in children(node):
        yield from nested(part, groups)


def _waits(lags: Mapping[Met, int]) -> tuple[Wait, ...]:
    return tuple(Wait(met.stream, n, met.every) for met, n in sorted(lags.items()))


def entered(loop: Loop, ranges: Ranges) -> Ranges:
    """The ranges inside a loop; its variable is relative to where it begins, if it ends a fixed way from there."""
    inside = Ranges()
    inside.update(ranges)
    inside.origin.update(ranges.origin)
    inside[loop.var] = range_of(loop, ranges)
    start, widths = first_value(loop), []
    if start is not None and start.terms:
        ends = (b.expr - start for b in loop.hi if b.div == 1)
        widths = [max(0, e.const - 1) // loop.step * loop.step for e in ends if e.is_constant]
    if start is not None and widths:
        inside.origin[loop.var] = start, min(widths)
    return inside


def everywhere(schedule: Schedule) -> tuple[Ranges, dict[int, list[Ranges]]]:
    """Of every loop variable the range of all loops that have it; per call (``id``) the ranges at its places."""
    whole, scopes = Ranges(), dict[int, list[Ranges]]()
    for tree in (schedule.bind, schedule.call):
        _everywhere(tree, Ranges(), whole, scopes)
    return whole, scopes


def _everywhere(node: Node, ranges: Ranges, whole: Ranges, scopes: dict[int, list[Ranges]]) -> None:
    if isinstance(node, Issue):
        scopes.setdefault(id(node), []).append(ranges)
    elif isinstance(node, Seq):
        for c in node.children:
            _everywhere(c, ranges, whole, scopes)
    elif node.trip != 0:
        inside = entered(node, ranges)
        low, high = inside[node.var]
        known = whole.get(node.var, (low, high))
        whole[node.var] = min(low, known[0]), max(high, known[1])
        for part in (node.enter, node.first, node.body, node.last, node.exit):
            if part is not None:
                _everywhere(part, inside, whole, scopes)
