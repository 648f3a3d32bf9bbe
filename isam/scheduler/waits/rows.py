"""What the children of a sequence touch, place by place. A sequence is looked back over from each of its children."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable
from dataclasses import field
from operator import attrgetter
from typing import NamedTuple

from isam.classes import dataclass
from isam.schedule.tree import Node
from isam.scheduler.waits.footprints import Footprint, Where
from isam.scheduler.waits.look import Calls, Met, Span

FEW = 64  # accesses that are looked over one by one
_at = attrgetter("at")


class Touch(NamedTuple):
    """The ``at``-th child of a sequence; ``one``: one access of a call by a stream, None where there may be several."""

    at: int
    child: Node
    one: Footprint | None
    met: Met
    span: Span


Some = tuple[Met | None, list[Touch], list[int]]  # of a stream, or loops; and at which child each is, negative


@dataclass(eq=False, slots=True)
class Touched:
    """Who touches a place, the last first; ``streams``: all of them, where that can be said."""

    touches: list[Touch]
    streams: frozenset[Met] | None = None
    _near: dict[Span, list[Some]] = field(default_factory=dict)
    _sorted: tuple[list[int], list[int], int] | None = None

    def near(
        self, span: Span, end: int, meets: Callable[[Footprint], bool], found: Container[Met] = ()
    ) -> list[Touch]:
        """What touches bytes between two numbers in children before ``end``, the last first: loops, and of the single
        accesses of each stream that is not ``found`` yet the last that ``meets`` the one that looks. Many look at the
        same bytes."""
        got = self._near.get(span)
        if got is None:
            streams: dict[Met | None, list[Touch]] = {}
            for t in self._some(span):
                streams.setdefault(None if t.one is None else t.met, []).append(t)
            got = self._near[span] = [(met, ts, [-t.at for t in ts]) for met, ts in streams.items()]
        out: list[Touch] = []
        for met, touches, ats in got:
            if met is not None and met in found:
                continue
            begin = bisect_right(ats, -end)
            if met is None:
                out += touches[begin:]
                continue
            for n in range(begin, len(touches)):
                one = touches[n].one
                if one is not None and meets(one):
                    out.append(touches[n])
                    break
        if len(out) > 1:
            out.sort(key=_at, reverse=True)
        return out

    def _some(self, span: Span) -> Iterable[Touch]:
        """By where accesses begin, and how long the longest is."""
        (first, last), every = span, self.touches
        if len(every) < FEW:
            return [t for t in every if t.span[0] < last and first < t.span[1]]
        if self._sorted is None:
            order = sorted(range(len(every)), key=lambda n: every[n].span[0])
            longest = max([t.span[1] - t.span[0] for t in every])
            self._sorted = [every[n].span[0] for n in order], order, longest
        begins, order, longest = self._sorted
        found = order[bisect_left(begins, first - longest) : bisect_left(begins, last)]
        return [every[n] for n in sorted(found) if first < every[n].span[1]]


@dataclass(eq=False, slots=True)
class Row:
    """A sequence: calls before each child (and after all), and who touches what: writes alone, for a reader waits for
    nothing else, and all."""

    before: list[Calls]
    written: dict[Where, Touched]
    touched: dict[Where, Touched]

    def meeting(self, mine: Footprint) -> Touched | None:
        """What an access may have to wait for."""
        return (self.touched if mine.writes else self.written).get(mine.where)
