"""What looking back from a call is about: where from, seen how, what was found, what was passed."""

from __future__ import annotations

from dataclasses import field
from typing import NamedTuple

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.schedule.byte_ranges import ByteRange
from isam.schedule.tree import Loop, Seq
from isam.scheduler.tiles import Ranges, bounds_of
from isam.scheduler.waits.footprints import Footprint, values_of


class Met(NamedTuple):
    """A stream with a call in question; ``every``: of other instances than the one that looks."""

    stream: str
    every: bool = False


Calls = dict[Met, int]  # calls of a stream on the looker's instance; of every instance: outermost dealt loops
NONE: Calls = {}
Lags = dict[Met, int]


@dataclass(eq=False)
class Frame:
    """Where one looks back from: the begin of the ``index``-th child of a sequence, or of a ``part`` of a loop, that
    stands in ``parent``. ``ranges``: of the variables in scope there."""

    parent: Frame | None
    node: Seq | Loop | None
    ranges: Ranges
    index: int = 0
    part: str = ""
    known: dict[object, Lags] = field(default_factory=dict)

    @property
    def begins(self) -> bool:
        """Whether nothing stands before it."""
        return self.parent is None or (isinstance(self.node, Seq) and not self.index and self.parent.begins)


@dataclass(eq=False, slots=True)
class View:
    """How what is found reads where one looks from: the values of variables that are not in scope there. ``dealt``: the
    dealt loops around the place one looks from that are still to be met on the way; None: it is another way.

    Many accesses look the same way: what lies there is put into these terms once for all of them."""

    values: dict[str, Affine]
    ranges: Ranges
    dealt: tuple[Loop, ...] | None = ()
    _inside: dict[tuple[str, Affine], View] = field(default_factory=dict)
    _after: dict[tuple[str, int], View] = field(default_factory=dict)
    _seen: dict[int, tuple[Footprint, Footprint]] = field(default_factory=dict)
    _lumps: dict[object, list[Footprint]] = field(default_factory=dict)
    _reach: dict[object, ByteRange] = field(default_factory=dict)
    _alike: dict[int, View] = field(default_factory=dict)
    _elsewhere: View | None = None

    def within(self, var: str, value: Affine) -> View:
        got = self._inside.get((var, value))
        if got is None:
            values = {**self.values, var: value.substitute(self.values)}
            got = self._inside[var, value] = View(values, self.ranges, self.dealt)
        return got

    def later(self, var: str, by: int) -> View:
        """From where a variable is so much more, and that is known."""
        got = self._after.get((var, by))
        if got is None:
            got = self._after[var, by] = View(self.values, self.ranges.later(var, by), self.dealt)
        return got

    def elsewhere(self) -> View:
        """The same in a dealt loop that says nothing about the looker's instance."""
        if self._elsewhere is None:
            self._elsewhere = View(self.values, self.ranges, None if self.dealt or self.dealt is None else ())
        return self._elsewhere

    def alike(self, loop: Loop) -> View:
        """Inside a loop that deals iterations as the next of the looker's own does: in that instance's."""
        got = self._alike.get(id(loop))
        if got is None:
            assert self.dealt
            values = {**self.values, loop.var: self._own(loop)}
            got = self._alike[id(loop)] = View(values, self.ranges, self.dealt[1:])
        return got

    def _own(self, loop: Loop) -> Affine:
        """The value of a dealt loop's variable on the looker's instance, of a loop that deals iterations alike: as far
        from its begin as that of the looker's own loop, which may have begun elsewhere where loops are around it."""
        assert self.dealt
        (begin,) = loop.lo
        return Affine.of(self.dealt[0].var) + begin.expr.substitute(self.values) - begin.expr

    def seen(self, f: Footprint) -> Footprint:
        if not self.values:
            return f
        got = self._seen.get(id(f))
        if got is None:
            got = self._seen[id(f)] = f, f.put(self.values)
        return got[1]

    def reach(self, low: Affine, high: Affine, mine: Footprint) -> ByteRange:
        """Numbers between which an access must lie to meet one: what it adds to ``low``, where its bytes begin, is less
        than the second, and what it adds to ``high`` more than the first."""
        if not (low.terms or high.terms or mine.low.terms or mine.high.terms):
            return mine.low.const, mine.high.const
        key = (low.terms, high.terms, mine.low.terms, mine.high.terms)
        got = self._reach.get(key)
        if got is None:
            begin, end = low.substitute(self.values), high.substitute(self.values)
            least = bounds_of(Affine(mine.low.terms) - end, self.ranges)[0]
            got = self._reach[key] = least, -bounds_of(begin - Affine(mine.high.terms), self.ranges)[0]
        return mine.low.const + got[0], mine.high.const + got[1]

    def lumped(self, prints: tuple[Footprint, ...], var: str, between: tuple[Affine, Affine]) -> list[Footprint]:
        """Footprints as they read for all values of a variable between two."""
        key = (id(prints), var, between)
        got = self._lumps.get(key)
        if got is None:
            low, high = (v.substitute(self.values) for v in between)
            others = {n: v for n, v in self.values.items() if n != var}
            got = self._lumps[key] = [f.at(others).over(var, low, high) for f in prints]
        return got

    def dealt_lump(self, prints: tuple[Footprint, ...], loop: Loop, others: bool) -> list[Footprint]:
        """Footprints of a dealt loop's body as they read for all iterations; ``others``: but the looker's own, of a
        loop that is :meth:`alike`."""
        key = (id(prints), id(loop))
        got = self._lumps.get(key)
        if got is None:
            low, high = (v.substitute(self.values) for v in values_of(loop, self.ranges))
            spans = [(low, high)]
            if others:
                own = self._own(loop)
                spans = [(low, own - loop.step), (own + loop.step, high)]
            values = {n: v for n, v in self.values.items() if n != loop.var}
            got = self._lumps[key] = [f.at(values).over(loop.var, *span) for f in prints for span in spans]
        return got


@dataclass(slots=True)
class Look:
    """A look back for one access: what was found so far, and how many calls were passed. ``span``: see
    :meth:`isam.scheduler.waits.within.Within.span`, of ``mine``."""

    mine: Footprint
    span: ByteRange
    found: Lags = field(default_factory=dict)
    passed: Calls = field(default_factory=dict)

    def find(self, lags: Lags) -> None:
        for met, n in lags.items():
            if met not in self.found:
                self.found[met] = n + self.passed.get(met, 0)

    def move(self, calls: Calls, times: int = 1) -> None:
        for met, n in calls.items():
            self.passed[met] = self.passed.get(met, 0) + n * times
