"""What the nodes of a tree do as wholes: how many calls they make on which stream, what they touch, where they run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import reduce
from operator import or_

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.schedule.byte_ranges import ByteRange
from isam.schedule.tree import Issue, Loop, Node, Seq, children
from isam.scheduler.tiles import Ranges, bounds_of
from isam.scheduler.waits.footprints import Footprint, Prints, Where, hulls, values_of
from isam.scheduler.waits.look import NONE, Calls, Look, Met
from isam.scheduler.waits.rows import ChildAccess, Places, Row, Touched

_new = tuple.__new__  # makes a touch without the detour over keyword arguments
NOBODY = Footprint(("", ""), "", Affine(), Affine(), False)  # who looks where only calls are counted


@dataclass
class Within:
    """``groups``: the replicated group of a stream; ``owned``: of a memory that every instance has for itself.
    ``inner``: dealt loops (``id``) that stand in one that is dealt to the same group."""

    prints: Prints
    ranges: Ranges  # of every variable, wherever it stands
    groups: dict[str, str]
    owned: dict[str, str]
    inner: frozenset[int]
    met: dict[str, Met] = field(default_factory=dict)  # a stream on the looker's instance
    one: dict[str, Calls] = field(default_factory=dict)  # one call of it
    _calls: dict[object, Calls] = field(default_factory=dict)
    _rows: dict[object, Row] = field(default_factory=dict)
    _touched: dict[tuple[int, bool], tuple[Places, Places]] = field(default_factory=dict)
    _reach: dict[object, dict[Where, tuple[Footprint, ...]]] = field(default_factory=dict)
    _met_by: dict[object, tuple[Footprint, ...]] = field(default_factory=dict)
    _streams: dict[object, frozenset[Met]] = field(default_factory=dict)
    _deals: dict[int, bool] = field(default_factory=dict)
    _nested: dict[int, bool] = field(default_factory=dict)
    _terms: dict[int, int] = field(default_factory=dict)
    _numbers: dict[object, int] = field(default_factory=dict)
    _ran: dict[object, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.met = {s: Met(s) for s in self.prints.stream_of.values()}
        self.one = {s: {met: 1} for s, met in self.met.items()}

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
        if isinstance(node, Issue):
            stream = self.prints.stream_of[node.unit]
            return NONE if node.joined or (stream in self.groups and dealt != ()) else self.one[stream]
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
        inside = self.calls(loop.body, dealt[1:] if dealt and self.alike(dealt, loop) else None)
        own = {m: n if m.stream in self.groups else n * loop.trip for m, n in inside.items() if not m.every}
        theirs = [s for s, g in self.groups.items() if g == loop.deal.group and id(loop) not in self.inner]
        return own | {Met(s, True): 1 for s in theirs}

    def _key(self, node: Node, dealt: tuple[Loop, ...] | None) -> object:
        """Equal where a node makes the same calls: which loops are dealt counts only where one in it may be alike."""
        if not self.deals(node):
            return (id(node), True) if self.groups and dealt != () else id(node)
        return id(node), tuple([self.terms_of(d) for d in dealt]) if dealt else dealt

    def terms_of(self, loop: Loop) -> int:
        """A number that loops have in common that deal iterations alike."""
        got = self._terms.get(id(loop))
        if got is None:
            got = self._terms[id(loop)] = self._numbers.setdefault(_terms(loop), len(self._numbers))
        return got

    def alike(self, dealt: tuple[Loop, ...] | None, loop: Loop) -> bool:
        """Whether the loop deals iterations as the next of the looker's own does."""
        return bool(dealt) and self.terms_of(dealt[0]) == self.terms_of(loop)

    def span(self, f: Footprint) -> ByteRange:
        """Between which numbers its bytes lie, whatever the variables are: what lies apart by this never meets."""
        if not (f.low.terms or f.high.terms):
            return f.low.const, f.high.const
        return bounds_of(f.low, self.ranges)[0], bounds_of(f.high, self.ranges)[1]

    def deals(self, node: Node) -> bool:
        """Whether a loop in it is dealt."""
        got = self._deals.get(id(node))
        if got is None:
            parts = children(node)
            got = (isinstance(node, Loop) and node.deal is not None) or any(map(self.deals, parts))
            self._deals[id(node)] = got
        return got

    def nested(self, node: Node) -> bool:
        """Whether a dealt loop in it stands in another one."""
        got = self._nested.get(id(node))
        if got is None:
            own = isinstance(node, Loop) and node.deal is not None
            got = self.deals(node) and any(self.deals(p) if own else self.nested(p) for p in children(node))
            self._nested[id(node)] = got
        return got

    def row(self, seq: Seq, dealt: tuple[Loop, ...] | None) -> Row:
        plain = self._rows.get(id(seq)) if dealt == () or not self.groups else None
        if plain is not None:
            return plain
        key = self._key(seq, dealt)
        got = self._rows.get(key)
        if got is None:
            got = self._rows[key] = self._row(seq, dealt)
        return got

    def _row(self, seq: Seq, dealt: tuple[Loop, ...] | None) -> Row:
        before = [NONE]
        for c in seq.children:
            passed = before[-1].copy()
            for met, n in self.calls(c, dealt).items():
                passed[met] = passed.get(met, 0) + n
            before.append(passed)
        own = dealt == () or not self.groups
        got = self._touched.get((id(seq), own))
        if got is None:
            got = self._touched[id(seq), own] = self._touches(seq, own)
        return Row(before, *got)

    def _touches(self, seq: Seq, own: bool) -> tuple[Places, Places]:
        """Who writes and who touches what; ``own``: every call is one of the instance that looks."""
        written: dict[Where, list[ChildAccess]] = {}
        touched: dict[Where, list[ChildAccess]] = {}
        for i, c in enumerate(seq.children):
            if isinstance(c, Issue) and (own or self.prints.stream_of[c.unit] not in self.groups):
                for f in self.prints.of(c):
                    t = _new(ChildAccess, (i, c, f, self.met[f.stream], self.span(f)))
                    touched.setdefault(f.where, []).append(t)
                    if f.writes:
                        written.setdefault(f.where, []).append(t)
            else:
                for where, prints in self.reach(c).items():
                    touched.setdefault(where, []).append(self._lump(i, c, prints))
                    if writes := [f for f in prints if f.writes]:
                        written.setdefault(where, []).append(self._lump(i, c, writes))

        deals, nested = self.deals(seq), self.nested(seq)

        def listed(touches: dict[Where, list[ChildAccess]], writes: bool) -> Places:
            some = {w: [f for f in fs if f.writes or not writes] for w, fs in self.reach(seq).items()}
            return {w: Touched(ts[::-1], self.may_meet(some[w], own, deals, nested)) for w, ts in touches.items()}

        return listed(written, True), listed(touched, False)

    def _lump(self, at: int, child: Node, prints: Sequence[Footprint]) -> ChildAccess:
        """All accesses of a child to one place together."""
        spans = [self.span(f) for f in prints]
        return ChildAccess(at, child, None, Met(""), (min(s[0] for s in spans), max(s[1] for s in spans)))

    def met_by(self, node: Node, mine: Footprint) -> tuple[Footprint, ...]:
        """What a node touches of where an access lies; for who reads only the writes."""
        key = (id(node), mine.where, mine.writes)
        got = self._met_by.get(key)
        if got is None:
            got = self._met_by[key] = tuple(f for f in self.reach(node).get(mine.where, ()) if f.writes or mine.writes)
        return got

    def may_meet(self, some: Iterable[Footprint], own: bool, deals: bool, nested: bool) -> frozenset[Met]:
        """Whom accesses may turn out to be by, looked at by their own instance (``own``) or from inside a dealt loop;
        ``deals``: there are dealt loops among what is looked at; ``nested``: one of those stands in another."""
        met = {self.met[f.stream] for f in some}
        if self.groups and (deals or not own):
            for f in some:
                group = self.groups.get(f.stream)
                alone = not own and not nested and self.owned.get(f.where[0]) == group
                if group is not None and not alone:
                    met.add(Met(f.stream, True))
        return frozenset(met)

    def streams(self, node: Node, mine: Footprint, dealt: tuple[Loop, ...] | None) -> frozenset[Met]:
        """Whom an access may meet in a node."""
        own = dealt == () or not self.groups
        key = (id(node), mine.where, mine.writes, own)
        got = self._streams.get(key)
        if got is None:
            got = self._streams[key] = self.may_meet(self.met_by(node, mine), own, self.deals(node), self.nested(node))
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
                    if isinstance(part, Issue) and isinstance(node, Seq):
                        found += self.prints.of(part)
                        continue
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


def _terms(loop: Loop) -> object:
    return loop.deal, loop.trip, loop.lo, loop.step
