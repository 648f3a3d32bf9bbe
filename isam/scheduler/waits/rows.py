"""What the children of a sequence touch, place by place. A sequence is looked back over from each of its children."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container
from dataclasses import field
from operator import attrgetter
from typing import NamedTuple

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.schedule.byte_ranges import ByteRange
from isam.schedule.tree import Node
from isam.scheduler.waits.footprints import Footprint, Where
from isam.scheduler.waits.look import Calls, Met

FEW = 64  # accesses that are looked over one by one
_at = attrgetter("at")


class ChildAccess(NamedTuple):
    """The ``at``-th child of a sequence; ``one``: one access of a call by a stream, None where there may be several."""

    at: int
    child: Node
    one: Footprint | None
    met: Met
    span: ByteRange


Some = tuple[list[ChildAccess], list[int]]  # and at which child each is, negative


@dataclass(eq=False, slots=True)
class Alike:
    """Touches, the last first, by ``spans`` between numbers: accesses of one stream whose bytes begin at ``low`` and
    end at ``high``, but for numbers; or loops by where all that they touch lies."""

    met: Met | None
    low: Affine
    high: Affine
    touches: list[ChildAccess] = field(default_factory=list)
    spans: list[ByteRange] = field(default_factory=list)
    _between: dict[ByteRange, Some] = field(default_factory=dict)
    _sorted: tuple[list[int], list[int], int] | None = None

    def before(self, end: int, span: ByteRange) -> tuple[list[ChildAccess], int]:
        """Touches that meet a span, and where those in children before ``end`` begin. Many look at the same bytes."""
        got = self._between.get(span)
        if got is None:
            touches = self._some(span)
            got = self._between[span] = touches, [-t.at for t in touches]
        return got[0], bisect_right(got[1], -end)

    def _some(self, span: ByteRange) -> list[ChildAccess]:
        """By where accesses begin, and how long the longest is."""
        (first, last), spans = span, self.spans
        if len(spans) < FEW:
            return [t for t, s in zip(self.touches, spans, strict=True) if s[0] < last and first < s[1]]
        if self._sorted is None:
            order = sorted(range(len(spans)), key=spans.__getitem__)
            self._sorted = [spans[n][0] for n in order], order, max([high - low for low, high in spans])
        begins, order, longest = self._sorted
        found = order[bisect_left(begins, first - longest) : bisect_left(begins, last)]
        return [self.touches[n] for n in sorted(found) if first < spans[n][1]]


@dataclass(eq=False, slots=True)
class Touched:
    """Who touches a place, the last first; ``streams``: all of them."""

    touches: list[ChildAccess]
    streams: frozenset[Met]
    _alike: list[Alike] | None = None

    def near(
        self,
        span: ByteRange,
        end: int,
        reach: Callable[[Affine, Affine], ByteRange],
        meets: Callable[[Footprint], bool],
        found: Container[Met] = (),
    ) -> list[ChildAccess]:
        """What touches bytes between two numbers in children before ``end``, the last first: loops, and of the single
        accesses of each stream that is not ``found`` yet the last that ``meets`` the one that looks: of each kind, so
        a stream may have several. ``reach``: between which numbers accesses that begin and end so must lie."""
        if self._alike is None:
            self._alike = self._sorted_out()
        out: list[ChildAccess] = []
        for some in self._alike:
            if some.met is None:
                touches, begin = some.before(end, span)
                out += touches[begin:]
            elif some.met not in found:
                touches, begin = some.before(end, reach(some.low, some.high))
                for n in range(begin, len(touches)):
                    t = touches[n]
                    if t.span[0] < span[1] and span[0] < t.span[1] and t.one is not None and meets(t.one):
                        out.append(t)
                        break
        if len(out) > 1:
            out.sort(key=_at, reverse=True)
        return out

    def _sorted_out(self) -> list[Alike]:
        known: dict[object, Alike] = {}
        for t in self.touches:
            low, high = (Affine(), Affine()) if t.one is None else (Affine(t.one.low.terms), Affine(t.one.high.terms))
            met = None if t.one is None else t.met
            some = known.setdefault((met, low, high), Alike(met, low, high))
            some.touches.append(t)
            some.spans.append(t.span if t.one is None else (t.one.low.const, t.one.high.const))
        return list(known.values())


Places = dict[Where, Touched]


@dataclass(eq=False, slots=True)
class Row:
    """A sequence: calls before each child (and after all), and who touches what: writes alone, for a reader waits for
    nothing else, and all."""

    before: list[Calls]
    written: Places
    touched: Places

    def meeting(self, mine: Footprint) -> Touched | None:
        """What an access may have to wait for."""
        return (self.touched if mine.writes else self.written).get(mine.where)
