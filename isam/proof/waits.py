"""That no call starts too early (obligation 8, SCH-8): what may be running still when it starts touches nothing of what
it touches, or both only read. For all trips of the loops, on the tree.

A call's wait says that all but the last ``lag`` calls of a stream have finished. So of every two calls that may meet,
the earlier one must be farther behind than that. Of each way in which one may come before the other
(:mod:`isam.proof.ways`) it is shown that what they touch lies apart, or else that enough calls of the earlier one's
stream lie between them (:mod:`isam.proof.standing`); where each holds of some iterations, that one of them holds of
all.

What many calls have in common (the loops around them, how addresses depend on those) is looked at once for all of
them; numbers decide the rest. The slow judge is :mod:`isam.proof.races`, which starts call after call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.once import once
from isam.proof.boxes import Box, disjoint
from isam.proof.context import Context, of_sizes
from isam.proof.facts import Facts
from isam.proof.pairs import FEW, Ranges, pairs
from isam.proof.standing import Body, Counts, Event, Mine, Step, bodies
from isam.proof.violation import Findings
from isam.proof.ways import EARLY, OTHER, SAME, Way, ways
from isam.schedule.tree import Issue, Node, Operand, Schedule

if TYPE_CHECKING:
    import numpy as np

    from isam.proof.digits import Layout
    from isam.proof.state import Spot, Target

Lags = dict[tuple[str, bool], int]  # per stream, and of its own instance or of every one
Bounds = tuple[Affine, Affine]
WORD = 1 << 58  # the sum of a few such numbers is a machine word


class Side(NamedTuple):
    """What must hold where two boxes meet in a dimension: an early one's number less a late one's is less than minus
    what all pairs have in common at the least (None: nothing is known of that)."""

    least: int | None
    early: np.ndarray
    late: np.ndarray


class Between(NamedTuple):
    """How many events lie between two calls: ``far``, what all pairs have in common, of which ``least`` is known, then
    what comes ``behind`` each early one and ``ahead`` of each late one; ``lags``: how many need not have finished when
    that begins, below 0 where nothing is waited for."""

    far: Affine
    least: int | None
    behind: np.ndarray
    ahead: np.ndarray
    lags: np.ndarray


@dataclass(eq=False, slots=True)
class Access:
    """What a call touches: ``at`` is where its step stands in the row of its body, ``lags`` are those of the step."""

    at: int
    issue: Issue
    lags: Lags
    operand: Operand
    target: Target
    box: Box  # the first side bytes, those behind it elements, where one of those has one address


@dataclass(eq=False)
class Bundle:
    """Accesses of one stream to one base in one body, whose boxes differ in numbers alone."""

    body: Body
    spot: Spot
    stream: str
    writes: bool
    ctx: Context
    some: list[Access] = field(default_factory=list)
    _lags: dict[tuple[str, bool], np.ndarray] = field(default_factory=dict)

    def lags(self, stream: str, every: bool, scale: int) -> np.ndarray:
        """Per access how many calls of a stream need not have finished; below 0 where none is waited for."""
        got = self._lags.get((stream, every))
        if got is None:
            got = self._lags[stream, every] = _array([a.lags.get((stream, every), -1) * scale for a in self.some])
        return got

    @once
    def numbers(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Per access where its step stands, and the numbers in the bounds of its box."""
        import numpy as np

        low, high = (_array([[side[k].const for side in a.box] for a in self.some]) for k in (0, 1))
        return np.array([a.at for a in self.some]), low, high

    def within(self, top: Body) -> np.ndarray:
        """Per access where in the row of a body around it stands what holds it."""
        at = self.numbers()[0]
        return at if self.body is top else at * 0 + self.body.below(top)[0].at

    @once
    def spread(self) -> tuple[float, float]:
        """The bytes between which all of them lie, in any iteration."""
        low = [self.ctx.lower(a.box[0][0]) for a in self.some]
        high = [self.ctx.upper(a.box[0][1]) for a in self.some]
        return (min(-inf if n is None else n for n in low), max(inf if n is None else n for n in high))


@dataclass
class Waits:
    """Judges one of a schedule's trees."""

    facts: Facts
    out: Findings
    counts: Counts = field(init=False)
    _ways: dict[tuple[int, int], list[Way]] = field(default_factory=dict)
    _rows: dict[object, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        schedule = self.facts.legality.schedule
        self.system = schedule.system
        self.sizes = of_sizes(schedule.cover.kernel.syms)
        self.counts = Counts(schedule)
        self.group = {s: self.system.replica_of(u) or "" for u, s in self.counts.streams.items()}
        self.threads = {r.name for r in self.system.replicas.values() if r.threads}
        self.groups = tuple(self.system.replicas)

    def check(self, tree: Node) -> None:
        by_spot: dict[Spot, list[Bundle]] = {}
        for bundle in self.bundles(tree):
            by_spot.setdefault(bundle.spot, []).append(bundle)
        for some in by_spot.values():
            for late in some:
                for early in some:
                    if early.writes or late.writes:
                        self.pair(early, late)

    def bundles(self, tree: Node) -> list[Bundle]:
        """What all calls of a tree touch."""
        known: dict[object, Bundle] = {}
        contexts: dict[int, Context] = {}
        for body in bodies(tree):
            around = self.sizes if body.parent is None else contexts[id(body.parent)]
            var = body.var()
            ctx = contexts[id(body)] = around if var is None else around.with_var(var)
            for at, step in enumerate(body.row):
                if not isinstance(step, tuple):
                    continue
                lags = _lags(step)
                for issue in step:
                    written = self.facts.legality.written(issue.instruction)
                    stream = self.counts.streams[issue.unit]
                    for o in issue.operands:
                        t, box, writes = self.facts.target(o), self.box(o), o.name in written
                        key = id(body), t.spot, stream, writes, tuple([(lo.terms, hi.terms) for lo, hi in box])
                        got = known.get(key)
                        if got is None:
                            got = known[key] = Bundle(body, t.spot, stream, writes, ctx)
                        got.some.append(Access(at, issue, lags, o, t, box))
        return list(known.values())

    def box(self, o: Operand) -> Box:
        """The bytes that an operand touches, of cells whole ones, then its elements where they have one address."""
        t, p = self.facts.target(o), o.place
        if t.cells is not None:
            cell = self.system.memories[t.spot[0]].cell or 1
            return ((Affine((), t.cells[0] * cell), Affine((), (t.cells[1] + 1) * cell)),)
        own = self.facts.instances.at(p) - p.offset  # slots of instances lie apart there
        elements = t.hull if self.facts.legality.one_address(p.base) else ()
        return ((t.low - own, t.high - own), *elements)

    # -- two calls, of which the first stands before the second in some way --------------------------------------------
    def pair(self, early: Bundle, late: Bundle) -> None:
        """Looks at all pairs of an access of the one and an access of the other."""
        (low, high), (begin, end) = early.spread(), late.spread()
        if high <= begin or end <= low:
            return
        owner, group = self.system.replica_of(early.spot[0]) or "", self.group[early.stream]
        for way in self.ways(early.body, late.body):
            if way.on.get(owner, SAME) == OTHER:
                continue  # in another instance's memory
            if group in self.threads and group == self.group[late.stream] and way.on.get(group, SAME) != OTHER:
                continue  # a CPU carries a thread out in order, whatever units it stands for
            self.look(early, late, way)

    def ways(self, early: Body, late: Body) -> list[Way]:
        key = id(early), id(late)
        got = self._ways.get(key)
        if got is None:
            got = self._ways[key] = list(ways(early, late, self.sizes, self.groups))
        return got

    def look(self, early: Bundle, late: Bundle, way: Way) -> None:
        """The pairs in question that come about in one way, many at once, then one by one what numbers leave open."""
        sides = self.sides(early, late, way)
        large = len(early.some) * len(late.some) > FEW
        apart = self.apart(early, late, way) if large else []
        ranges = self.ranges(early, late, way, sides, apart) if large else []
        for a, b in pairs(len(early.some), len(late.some), ranges):
            for s in sides:
                if s.least is not None:
                    near = s.early[a] - s.late[b] < -s.least
                    a, b = a[near], b[near]
            one, two = way.tops
            if one is two and not way.turned:
                before = early.within(one)[a] < late.within(two)[b]
                a, b = a[before], b[before]
            if not len(a):
                continue
            apart = apart or self.apart(early, late, way)
            for n in apart:
                if n.least is not None:
                    near = (n.lags[b] < 0) | (n.behind[a] + (n.ahead - n.lags)[b] <= -n.least)
                    a, b = a[near], b[near]
            for x, y in zip(map(int, a), map(int, b), strict=True):
                self.one(early, late, way, x, y, apart)

    def one(self, early: Bundle, late: Bundle, way: Way, a: int, b: int, apart: list[Between]) -> None:
        """One pair of accesses."""
        told = [(n.far + int(n.behind[a] + n.ahead[b]), int(n.lags[b])) for n in apart if n.lags[b] >= 0]
        if not self.safe(early.some[a], late.some[b], way, told):
            name = f"{early.some[a].issue.instruction} on '{early.stream}'"
            what = f"may start before {name}, which touches the same bytes, is done"
            self.out.add(8, "race", what, late.some[b].issue)

    def sides(self, early: Bundle, late: Bundle, way: Way) -> list[Side]:
        """What must hold where two boxes meet: first of bytes."""
        _, low, high = early.numbers()
        _, begin, end = late.numbers()
        out: list[Side] = []
        for k, (side, other) in enumerate(_sides(early.some[0].box, late.some[0].box)):
            below, above = (Affine(e.terms).substitute(way.names) for e in side)
            out.append(Side(way.ctx.lower(below - Affine(other[1].terms)), low[:, k], end[:, k]))
            out.append(Side(way.ctx.lower(Affine(other[0].terms) - above), -high[:, k], -begin[:, k]))
        return out

    def apart(self, early: Bundle, late: Bundle, way: Way) -> list[Between]:
        """Of each kind of waits for the earlier one's stream."""
        out: list[Between] = []
        for e, every in self.events(early, way):
            far, behind, ahead = self.distances(early, late, way, e)
            lags = late.lags(early.stream, every, self.counts.scale)
            if every and not late.body.dealt(e.group):
                out.append(Between(far, 1, behind * 0, ahead * 0, lags * 0 - (lags < 0)))  # it waits for all of them
            else:
                out.append(Between(far, way.ctx.lower(far), behind, ahead, lags))
        return out

    def ranges(self, early: Bundle, late: Bundle, way: Way, sides: list[Side],
               apart: list[Between]) -> list[Ranges]:  # fmt: skip
        """Where what a late access may meet lies: in its row, by how many calls come in between, and by addresses."""
        import numpy as np

        one, two = way.tops
        many = len(early.some)
        first, stop = np.zeros(len(late.some), np.int64), np.full(len(late.some), many)
        if one is two and not way.turned:
            stop = np.searchsorted(early.within(one), late.within(two))
        for n in apart:
            if n.least is not None:
                near = np.searchsorted(-n.behind, _plus(n.ahead - n.lags, n.least))  # ever less is behind later ones
                first = np.maximum(first, np.where(n.lags < 0, 0, near))
        out = [Ranges(first, stop, np.arange(many))]
        begins, ends = sides[:2]
        if begins.least is not None and ends.least is not None:
            order, longest = begins.early.argsort(kind="stable"), int((-ends.early - begins.early).max())
            low = begins.early[order]
            out.append(Ranges(np.searchsorted(low, _plus(-ends.late, ends.least - longest), "right"),
                              np.searchsorted(low, _plus(begins.late, -begins.least)), order))  # fmt: skip
        return out

    def events(self, early: Bundle, way: Way) -> Iterator[tuple[Event, bool]]:
        """What waits for a stream are counted in, and whether those are the waits for every instance."""
        group = self.group[early.stream]
        if way.on.get(group, SAME) != OTHER:
            yield Event(group, early.stream), False
        if group:
            yield Event(group), True

    def distances(self, early: Bundle, late: Bundle, way: Way, e: Event) -> tuple[Affine, np.ndarray, np.ndarray]:
        """How many events lie between two calls, the earlier one among them: what all pairs have in common, and what
        each access of the one and of the other adds."""
        mine, (one, two) = way.mine(e.group), way.tops
        (at, where), (before, behind) = ((early.numbers()[0], late.numbers()[0]),
                                         (early.within(one), late.within(two)))  # fmt: skip
        after = self.rest(one, before, e, mine) + (self.counts.scale if e.stream else 0)
        ahead = self.row(two, e, mine)[behind]
        if early.body is not one:
            inside = len(early.body.dealt(e.group)) > len(one.dealt(e.group))
            after = after + self.rest(early.body, at, e, way.mine(e.group, inside))
        if late.body is not two:
            ahead = ahead + self.row(late.body, e, mine)[where]
        if one is two and not way.turned:
            ahead = ahead - self.row(one, e, mine)[-1]
        return way.distance(self.counts, e), after, ahead

    def row(self, body: Body, e: Event, mine: Mine) -> np.ndarray:
        key = id(body), e, id(mine)
        got = self._rows.get(key)
        if got is None:
            got = self._rows[key] = _array(self.counts.row(body, e, mine))
        return got

    def rest(self, body: Body, at: np.ndarray, e: Event, mine: Mine) -> np.ndarray:
        """Events of a body behind some of its children."""
        row = self.row(body, e, mine)
        return row[-1] - row[at + 1]

    def safe(self, a: Access, b: Access, way: Way, told: list[tuple[Affine, int]]) -> bool:
        """Whether two accesses never meet while the earlier one may be running: so long as of everything that is
        ``told`` no more lies between than the wait leaves."""
        ctx = way.ctx
        for far, lag in told:
            ctx = ctx.given(Affine((), lag) - far)
        left = [ctx.upper(Affine((), lag) - far) for far, lag in told]
        if any(n is not None and n < 0 for n in left):
            return True
        sides = _sides(tuple([(lo.substitute(way.names), hi.substitute(way.names)) for lo, hi in a.box]), b.box)
        if any(disjoint((one,), (two,), ctx) for one, two in sides):
            return True
        if a.target.cells is not None or b.target.cells is not None:
            return False
        sizes = self.facts.legality.buffers
        size = sizes[a.target.buffer].bytes, sizes[b.target.buffer].bytes
        return self.facts.isl.no_clash(self.layout(a, way.names, EARLY), self.layout(b, {}, ""), size, False, ctx)

    def layout(self, a: Access, names: Mapping[str, Affine], mark: str) -> Layout:
        """The elements of an access and where they lie."""
        t, p = a.target, a.operand.place
        names = {**names, **{v.name: Affine.of(v.name + mark) for v in t.over}}
        over = tuple(replace(v, name=v.name + mark) for v in t.over)
        offset = t.offset - (self.facts.instances.at(p) - p.offset)
        box = tuple([(lo.substitute(names), hi.substitute(names)) for lo, hi in t.box])
        return box, offset.substitute(names), t.strides, over


def _sides(one: Box, two: Box) -> list[tuple[Bounds, Bounds]]:
    """What two boxes may be apart in: bytes, and elements where both have them."""
    return list(zip(one, two, strict=True)) if len(one) == len(two) else [(one[0], two[0])]


def _array(numbers: list[Any]) -> np.ndarray:
    """Numbers as machine words where their sums surely are such, else as they are."""
    import numpy as np

    out = np.array(numbers, object)
    return out.astype(np.int64) if out.size == 0 or np.abs(out).max() < WORD else out


def _plus(numbers: np.ndarray, n: int) -> np.ndarray:
    """Numbers and one that may be no machine word."""
    return numbers + n if abs(n) < WORD else numbers.astype(object) + n


def _lags(step: Step) -> Lags:
    """What a step waits for: the calls of one start together."""
    out: Lags = {}
    for issue in step:
        for w in issue.after:
            key = w.stream, w.every
            out[key] = min(w.lag, out.get(key, w.lag))
    return out


def check_waits(schedule: Schedule, facts: Facts, out: Findings) -> None:
    """Whether calls that wait for too little may start too early."""
    if schedule.in_turn():
        return
    for tree in (schedule.bind, schedule.call):
        Waits(facts, out).check(tree)
