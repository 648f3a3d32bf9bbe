"""Which bytes a call touches, and which a whole part of a schedule's tree does: hulls per stream, memory and base.

The hull of a box of an array holds what lies beside the box, too. So a footprint says in addition which bytes of a row
it touches: boxes side by side in the same rows do not meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import NamedTuple

from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.fills import Reach, reach
from isam.schedule.tree import Issue, Loop, Operand, Schedule
from isam.scheduler.tiles import Ranges, bounds_of
from isam.system.graph import CACHED

PIECES = 6  # of what one stream reads or writes behind one base
Where = tuple[str, str]  # a memory and a base in it


class Columns(NamedTuple):
    """Of every ``pitch`` bytes behind the base those from ``low`` to ``high`` (half open, both within the pitch)."""

    pitch: int
    low: Affine
    high: Affine


class Footprint(NamedTuple):
    """Bytes ``low`` to ``high`` (half open) behind a base, or bytes of whole cells, read or written by ``stream``; no
    others than ``columns`` say."""

    where: Where
    stream: str
    low: Affine
    high: Affine
    writes: bool
    columns: tuple[Columns, ...] = ()

    def at(self, values: Mapping[str, Affine]) -> Footprint:
        """With loop variables replaced."""
        if not values or not (self.low.terms or self.high.terms):
            return self
        low, high = self.low.substitute(values), self.high.substitute(values)
        if low is self.low and high is self.high:
            return self
        columns = tuple(Columns(c.pitch, c.low.substitute(values), c.high.substitute(values)) for c in self.columns)
        return self._replace(low=low, high=high, columns=columns)

    def put(self, values: Mapping[str, Affine]) -> Footprint:
        """As :meth:`at`; its columns also where they alone speak of the variables."""
        if not values or not (self.low.terms or self.high.terms or self.columns):
            return self
        columns = tuple([Columns(c.pitch, c.low.substitute(values), c.high.substitute(values)) for c in self.columns])
        low, high = self.low.substitute(values), self.high.substitute(values)
        return Footprint(self.where, self.stream, low, high, self.writes, columns)

    def over(self, var: str, least: Affine, most: Affine) -> Footprint:
        """The hull for a variable between two values."""
        if not self.low.coefficient(var) and not self.high.coefficient(var):
            return self
        low, high = _spread(self.low, self.high, var, least, most)
        columns = tuple(Columns(c.pitch, *_spread(c.low, c.high, var, least, most)) for c in self.columns)
        return self._replace(low=low, high=high, columns=columns)


def _spread(low: Affine, high: Affine, var: str, least: Affine, most: Affine) -> tuple[Affine, Affine]:
    down, up = low.coefficient(var), high.coefficient(var)
    return low.substitute({var: least if down > 0 else most}), high.substitute({var: most if up > 0 else least})


def clash(one: Footprint, two: Footprint, ranges: Ranges) -> bool:
    """Whether two accesses behind one base may meet, and one of them writes."""
    if not (one.writes or two.writes) or _apart(one, two, ranges):
        return False
    for c in one.columns:
        for d in two.columns:
            if c.pitch == d.pitch and _apart(c, d, ranges):
                return False
    return True


def _apart(one: Footprint | Columns, two: Footprint | Columns, ranges: Ranges) -> bool:
    """Whether one stretch of bytes surely ends before the other begins."""
    return _never_less(one.low, two.high, ranges) or _never_less(two.low, one.high, ranges)


def _never_less(a: Affine, b: Affine, ranges: Ranges) -> bool:
    """Whether ``a >= b`` for certain."""
    if a.terms == b.terms:
        return a.const >= b.const
    return bounds_of(a - b, ranges)[0] >= 0


def hulls(prints: Iterable[Footprint]) -> tuple[Footprint, ...]:
    """Fewer footprints that hold all of these. What differs in the distance to the base only is one where it meets, and
    one in any case where more than ``PIECES`` would be left."""
    alike: dict[object, list[Footprint]] = {}
    for f in dict.fromkeys(prints):
        alike.setdefault((f.where, f.stream, f.writes, f.low.terms, f.high.terms), []).append(f)
    out: list[Footprint] = []
    for group in alike.values():
        plain = group[0].low.terms == group[0].high.terms
        pieces: list[Footprint] = []
        for f in sorted(group, key=lambda f: f.low.const):
            if pieces and (not plain or f.low.const <= pieces[-1].high.const):
                f = _both(pieces.pop(), f)
            pieces.append(f)
        out += pieces if len(pieces) <= PIECES else [reduce(_both, pieces)]
    return tuple(out)


def _both(one: Footprint, two: Footprint) -> Footprint:
    """The hull of two that differ in their distance to the base only."""
    low, high = _hull(one, two)
    theirs = {(d.pitch, d.low.terms, d.high.terms): d for d in two.columns}
    pairs = ((c, theirs.get((c.pitch, c.low.terms, c.high.terms))) for c in one.columns)
    columns = tuple(Columns(c.pitch, *_hull(c, d)) for c, d in pairs if d is not None)
    return one._replace(low=low, high=high, columns=columns)


def _hull(one: Footprint | Columns, two: Footprint | Columns) -> tuple[Affine, Affine]:
    low, high = min(one.low.const, two.low.const), max(one.high.const, two.high.const)
    return Affine(one.low.terms, low), Affine(one.high.terms, high)


def first_value(loop: Loop) -> Affine | None:
    """The value of the first iteration where it is affine."""
    (start, *more) = loop.lo
    return start.expr if not more and start.div == 1 else None


def values_of(loop: Loop, ranges: Ranges) -> tuple[Affine, Affine]:
    """The least and the greatest value of a loop's variable: affine where the trip is known, else numbers."""
    first = first_value(loop)
    low, high = range_of(loop, ranges)
    if first is None:
        return Affine((), low), Affine((), high)
    return first, first + (loop.trip - 1) * loop.step if loop.trip else Affine((), high)


def range_of(loop: Loop, ranges: Ranges) -> tuple[int, int]:
    """The least and the greatest value of the loop's variable, as numbers."""
    first = first_value(loop)
    if first is not None and loop.trip:
        low, high = bounds_of(first, ranges)
        return low, high + (loop.trip - 1) * loop.step
    low = max(-(-bounds_of(b.expr, ranges)[0] // b.div) for b in loop.lo)
    high = min(bounds_of(b.expr, ranges)[1] // b.div for b in loop.hi)
    return low, max(low, high - 1)


class Prints:
    """The footprints of the calls of a schedule, each worked out once."""

    def __init__(self, schedule: Schedule, stream_of: Mapping[str, str], scopes: Mapping[int, list[Ranges]]):
        """``scopes``: per call (``id``) the ranges of the variables at every place where it stands."""
        self.schedule, self.stream_of, self.scopes = schedule, stream_of, scopes
        self._known: dict[int, tuple[Footprint, ...]] = {}
        self._same: dict[object, Footprint] = {}  # calls share tiles and places: whoever made one, others read it
        self._writes: dict[str, frozenset[str]] = {}

    def of(self, issue: Issue) -> tuple[Footprint, ...]:
        known = self._known.get(id(issue))
        if known is None:
            written = self._written(issue.instruction)
            known = tuple([self._shared(issue, o, o.name in written) for o in issue.operands])
            self._known[id(issue)] = known
        return known

    def _shared(self, issue: Issue, o: Operand, writes: bool) -> Footprint:
        """That of an operand; one that another call has in the same place, where neither loops nor fills change it."""
        if o.place.offset.terms or (issue.is_move and self.schedule.system.instructions[issue.instruction].fill):
            return self._print(issue, o, writes)
        stream, key = self.stream_of[issue.unit], (id(o.tile), id(o.place))
        known = self._same.get((*key, stream, writes))
        if known is None:
            other = self._same.get(key)
            if other is None:
                known = self._same[key] = self._print(issue, o, writes)
            else:
                known = Footprint(other.where, stream, other.low, other.high, writes, other.columns)
            self._same[*key, stream, writes] = known
        return known

    def _written(self, name: str) -> frozenset[str]:
        if name not in self._writes:
            args = self.schedule.system.instructions[name].body.arguments
            self._writes[name] = frozenset(b.name for b in args if b.role in ("out", "inout"))
        return self._writes[name]

    def _print(self, issue: Issue, o: Operand, writes: bool) -> Footprint:
        p, memories = o.place, self.schedule.system.memories
        m = memories[p.memory]
        while m.kind == CACHED:  # in front of the memory that is meant
            m = memories[m.of]
        size, stream = size_of(self.schedule.dtype(o.tile.buffer)), self.stream_of[issue.unit]
        tile = o.tile
        spans = [k * s * (n - 1) for k, s, n in zip(p.strides, tile.steps, tile.shape, strict=True)]
        begin, end = sum([s for s in spans if s < 0]), sum([s for s in spans if s > 0]) + size
        before, behind = self._beside(issue, o, end, size)
        low, high = p.offset + (begin + before), p.offset + (end + behind)
        if p.cell is not None:  # whole cells
            cell = m.cell or 1
            first = p.cell + (low.const // cell if not low.terms else 0)
            last = p.cell + (-(-high.const // cell) if not high.terms else m.limit)
            return Footprint((m.name, p.base), stream, Affine((), first * cell), Affine((), last * cell), writes)
        if before or behind:
            return Footprint((m.name, p.base), stream, low, high, writes)
        pitches = dict.fromkeys([abs(k) for k in p.strides if abs(k) > size])
        columns = [c for k in pitches if (c := self._columns(issue, p.offset, spans, k, size))]
        return Footprint((m.name, p.base), stream, low, high, writes, tuple(columns))

    def _beside(self, issue: Issue, o: Operand, end: int, size: int) -> Reach:
        """Bytes before and behind a tile that the move which brings it fills."""
        if not issue.is_move:
            return 0, 0
        instruction = self.schedule.system.instructions[issue.instruction]
        fill = instruction.fill
        found = reach(instruction, o, dict(issue.sizes), size) if fill is not None and o.name == fill.operand else None
        return (0, 0) if found is None else (min(0, found[0]), max(0, found[1] - end))

    def _columns(self, issue: Issue, offset: Affine, spans: list[int], pitch: int, size: int) -> Columns | None:
        """The columns of an operand in rows of so many bytes; None where it may go beyond the end of a row."""
        inside = [s for s in spans if s % pitch]
        terms = tuple([(n, c) for n, c in offset.terms if c % pitch])
        begin = offset.const % pitch + sum([s for s in inside if s < 0])
        start, high = Affine(terms, begin), Affine(terms, begin + sum(map(abs, inside)) + size)
        if not terms:
            return Columns(pitch, start, high) if begin >= 0 and high.const <= pitch else None
        for ranges in self.scopes[id(issue)]:
            if bounds_of(start, ranges)[0] < 0 or bounds_of(high, ranges)[1] > pitch:
                return None
        return Columns(pitch, start, high)


