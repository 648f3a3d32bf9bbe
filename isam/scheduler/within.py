"""What the nodes of a tree do as wholes: how many calls they make on which stream, what they touch, where they run."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import field
from functools import reduce
from itertools import islice
from operator import or_
from typing import NamedTuple

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.schedule.tree import Issue, Loop, Node, Seq, children
from isam.scheduler.footprints import Footprint, Prints, Where, hulls, values_of
from isam.scheduler.look import NONE, Calls, Look, Met, Span
from isam.scheduler.state import Ranges, bounds_of

FEW = 64  # accesses that are looked over one by one
NOBODY = Footprint(("", ""), "", Affine(), Affine(), False)  # who looks where only calls are counted


class Touch(NamedTuple):
    """The ``at``-th child of a sequence; ``one``: one access of a call by a stream, None where there may be several."""

    at: int
    child: Node
    one: Footprint | None
    met: Met
    span: Span


Some = tuple[Met | None, list[Touch], list[int]]  # of a stream, or loops; and at which child each is, negative


@dataclass(frozen=True, slots=True)
class Row:
    """A sequence: calls before each child (and after all), and which children touch what, the last first. Who reads
    waits for writes only: of ``touching`` and ``streams`` there are those for a reader (False) and all (True)."""

    before: tuple[Calls, ...]
    touching: dict[tuple[Where, bool], tuple[Touch, ...]]
    streams: dict[tuple[Where, bool], frozenset[Met]]  # who touches it, where that can be said
    _near: dict[tuple[Where, bool, Span], tuple[Some, ...]] = field(default_factory=dict)
    _sorted: dict[tuple[Where, bool], tuple[list[int], list[int], int]] = field(default_factory=dict)

    def near(self, where: Where, writes: bool, span: Span, end: int, meets: Callable[[Footprint], bool]) -> list[Touch]:
        """What touches bytes between two numbers in children before ``end``, the last first: loops, and of the single
        accesses of each stream the last that ``meets`` the one that looks. A row is looked over from many places for
        each access."""
        key = (where, writes, span)
        got = self._near.get(key)
        if got is None:
            streams: dict[Met | None, list[Touch]] = {}
            for t in self._some(where, writes, span):
                streams.setdefault(None if t.one is None else t.met, []).append(t)
            got = self._near[key] = tuple((met, ts, [-t.at for t in ts]) for met, ts in streams.items())
        out: list[Touch] = []
        for met, touches, ats in got:
            before = map(touches.__getitem__, range(bisect_right(ats, -end), len(ats)))
            out += before if met is None else islice((t for t in before if t.one is not None and meets(t.one)), 1)
        return sorted(out, key=lambda t: -t.at)

    def _some(self, where: Where, writes: bool, span: Span) -> tuple[Touch, ...]:
        """By where accesses begin, and how long the longest is."""
        (first, last), all_ = span, self.touching.get((where, writes), ())
        if len(all_) < FEW:
            return tuple([t for t in all_ if t.span[0] < last and first < t.span[1]])
        got = self._sorted.get((where, writes))
        if got is None:
            order = sorted(range(len(all_)), key=lambda n: all_[n].span[0])
            longest = max(t.span[1] - t.span[0] for t in all_)
            got = self._sorted[where, writes] = ([all_[n].span[0] for n in order], order, longest)
        begins, order, longest = got
        found = order[bisect_left(begins, first - longest) : bisect_left(begins, last)]
        return tuple([all_[n] for n in sorted(found) if first < all_[n].span[1]])


@dataclass
class Within:
    """``groups``: the replicated group of a stream. ``inner``: dealt loops (``id``) that stand in one that is dealt to
    the same group."""

    prints: Prints
    ranges: Ranges  # of every variable, wherever it stands
    groups: dict[str, str]
    inner: frozenset[int]
    _calls: dict[object, Calls] = field(default_factory=dict)
    _rows: dict[object, Row] = field(default_factory=dict)
    _reach: dict[object, dict[Where, tuple[Footprint, ...]]] = field(default_factory=dict)
    _met_by: dict[object, tuple[Footprint, ...]] = field(default_factory=dict)
    _deals: dict[int, bool] = field(default_factory=dict)
    _ran: dict[object, int] = field(default_factory=dict)

    def instances(self, node: Node, loop: Loop) -> int:
        """On which instances a part of a dealt loop runs, as bits: counted from what the loops around them add."""
        assert loop.deal is not None
        if isinstance(node, Issue):
            return 1
        key = (id(node), loop.deal.group)
        if key not in self._ran:
            parts = reduce(or_, (self.instances(p, loop) for p in children(node)), 0)
            mine = isinstance(node, Loop) and node.deal is not None and node.deal.group == loop.deal.group
            self._ran[key] = dealt_to(node, parts) if mine else parts
        return self._ran[key]

    def ours(self, dealt: tuple[Loop, ...] | None, loop: Loop) -> int:
        """The instances on which the looker may be."""
        assert loop.deal is not None
        mine = [d for d in dealt or () if d.deal is not None and d.deal.group == loop.deal.group]
        return reduce(lambda bits, d: dealt_to(d, bits), mine, 1) if mine else -1

    def calls(self, node: Node, dealt: tuple[Loop, ...] | None) -> Calls:
        """How many calls a node makes at least, per stream. Of replicated units: on the looker's instance. How many
        loops it deals, for those who ask about every instance."""
        got = self._calls.get(id(node)) if dealt == () or not self.groups else None
        if got is not None:
            return got
        if isinstance(node, Issue):
            stream = self.prints.stream_of[node.unit]
            if node.joined or (stream in self.groups and dealt != ()):
                return NONE
            got = self._calls[id(node)] = {Met(stream): 1}
            return got
        key = self._key(node, dealt)
        got = self._calls.get(key)
        if got is None:
            if isinstance(node, Seq):
                got = self.row(node, dealt).before[-1]
            elif node.deal is not None:
                got = self._dealt_calls(node, dealt)
            else:
                got = self._loop_calls(node, dealt)
            self._calls[key] = got
        return got

    def _loop_calls(self, loop: Loop, dealt: tuple[Loop, ...] | None) -> Calls:
        if not loop.trip:
            return NONE
        look = Look(NOBODY, (0, 0))
        ends = [p for p in (loop.first, loop.last) if p is not None]
        for part in (loop.enter, *ends, loop.exit):
            look.move(self.calls(part, dealt))
        look.move(self.calls(loop.body, dealt), loop.trip - len(ends))
        return look.passed

    def _dealt_calls(self, loop: Loop, dealt: tuple[Loop, ...] | None) -> Calls:
        """Units that are not replicated do all iterations; an instance is known to do its own."""
        assert loop.deal is not None
        if not loop.trip:
            return NONE
        inside = self.calls(loop.body, dealt[1:] if dealt and alike(dealt, loop) else None)
        own = {m: n if m.stream in self.groups else n * loop.trip for m, n in inside.items() if not m.every}
        theirs = [s for s, g in self.groups.items() if g == loop.deal.group and id(loop) not in self.inner]
        return own | {Met(s, True): 1 for s in theirs}

    def _key(self, node: Node, dealt: tuple[Loop, ...] | None) -> object:
        replicated = self.groups and dealt != ()
        return (id(node), tuple(map(id, dealt)) if dealt else dealt) if replicated or self.deals(node) else id(node)

    def span(self, f: Footprint) -> Span:
        """Between which numbers its bytes lie, whatever the variables are: what lies apart by this never meets."""
        return bounds_of(f.low, self.ranges)[0], bounds_of(f.high, self.ranges)[1]

    def deals(self, node: Node) -> bool:
        """Whether a loop in it is dealt."""
        got = self._deals.get(id(node))
        if got is None:
            parts = children(node)
            got = (isinstance(node, Loop) and node.deal is not None) or any(map(self.deals, parts))
            self._deals[id(node)] = got
        return got

    def row(self, seq: Seq, dealt: tuple[Loop, ...] | None) -> Row:
        plain = self._rows.get(id(seq)) if dealt == () or not self.groups else None
        if plain is not None:
            return plain
        key = self._key(seq, dealt)
        got = self._rows.get(key)
        if got is None:
            total, before = Look(NOBODY, (0, 0)), [NONE]
            touching: dict[tuple[Where, bool], list[Touch]] = {}
            for i, c in enumerate(seq.children):
                total.move(self.calls(c, dealt))
                before.append(dict(total.passed))
                for where, prints in self.reach(c).items():
                    plain = isinstance(c, Issue) and (dealt == () or prints[0].stream not in self.groups)
                    spans = [self.span(f) for f in prints]
                    for writes in (False, True):
                        some = [x for x in zip(prints, spans, strict=True) if writes or x[0].writes]
                        if some:
                            touching.setdefault((where, writes), []).extend(_touches(i, c, some, plain))
            reach = {} if self.deals(seq) else self.reach(seq)
            streams = {(w, writes): frozenset(Met(f.stream) for f in fs if writes or f.writes)
                       for w, fs in reach.items() for writes in (False, True)}  # fmt: skip
            got = Row(tuple(before), {w: tuple(reversed(t)) for w, t in touching.items()}, streams)
            self._rows[key] = got
        return got

    def met_by(self, node: Node, mine: Footprint) -> tuple[Footprint, ...]:
        """What a node touches of where an access lies; for who reads only the writes."""
        key = (id(node), mine.where, mine.writes)
        got = self._met_by.get(key)
        if got is None:
            got = self._met_by[key] = tuple(f for f in self.reach(node).get(mine.where, ()) if f.writes or mine.writes)
        return got

    def reach(self, node: Node) -> dict[Where, tuple[Footprint, ...]]:
        """Everything that a node touches, in terms of the variables around it."""
        got = self._reach.get(id(node))
        if got is None:
            found: list[Footprint] = []
            if isinstance(node, Issue):
                found = list(self.prints.of(node))
            else:
                for part in runs(node):
                    mine = [f for fs in self.reach(part).values() for f in fs]
                    if isinstance(node, Loop) and part is not node.enter and part is not node.exit:
                        low, high = values_of(node, self.ranges)
                        mine = [f.over(node.var, low, high) for f in mine]
                    found += mine
            by: dict[Where, list[Footprint]] = {}
            for f in hulls(found):
                by.setdefault(f.where, []).append(f)
            got = self._reach[id(node)] = {w: tuple(fs) for w, fs in by.items()}
        return got


def _touches(at: int, child: Node, prints: list[tuple[Footprint, Span]], plain: bool) -> list[Touch]:
    """A child's accesses one by one, or all of them together."""
    if plain:
        return [Touch(at, child, f, Met(f.stream), span) for f, span in prints]
    return [Touch(at, child, None, Met(""), (min(s[0] for _, s in prints), max(s[1] for _, s in prints)))]


def runs(node: Node) -> tuple[Node, ...]:
    """The parts of a node that are executed at all."""
    if not isinstance(node, Loop):
        return children(node)
    peeled = [p for p in (node.first, node.last) if p is not None]
    body = () if node.trip is not None and node.trip <= len(peeled) else (node.body,)
    return () if node.trip == 0 else (node.enter, *peeled, *body, node.exit)


def dealt_to(loop: Node, inside: int) -> int:
    """Where the iterations of a dealt loop run, as bits, of what runs on ``inside`` within one."""
    assert isinstance(loop, Loop)
    assert loop.deal is not None
    deal = loop.deal
    return reduce(or_, (inside << deal.first + deal.stride * t for t in range(loop.trip or 0)), 0)


def alike(dealt: tuple[Loop, ...] | None, loop: Loop) -> bool:
    """Whether the loop deals iterations as the next of the looker's own does."""
    if not dealt:
        return False
    own = dealt[0]
    return (own.deal, own.trip, own.lo, own.step) == (loop.deal, loop.trip, loop.lo, loop.step)
