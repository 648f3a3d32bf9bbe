"""Which bytes a call touches, and which a whole part of a schedule's tree does: hulls per stream, memory and base."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.tree import Issue, Loop, Operand, Schedule
from isam.scheduler.state import Ranges, bounds_of
from isam.system.graph import CACHED

PIECES = 6  # of what one stream reads or writes behind one base
Where = tuple[str, str]  # a memory and a base in it


class Footprint(NamedTuple):
    """Bytes ``low`` to ``high`` (half open) behind a base, or bytes of whole cells, read or written by ``stream``."""

    where: Where
    stream: str
    low: Affine
    high: Affine
    writes: bool

    def at(self, values: Mapping[str, Affine]) -> Footprint:
        """With loop variables replaced."""
        if not values or not (self.low.terms or self.high.terms):
            return self
        low, high = self.low.substitute(values), self.high.substitute(values)
        return self if low is self.low and high is self.high else self._replace(low=low, high=high)

    def over(self, var: str, least: Affine, most: Affine) -> Footprint:
        """The hull for a variable between two values."""
        down, up = self.low.coefficient(var), self.high.coefficient(var)
        if not down and not up:
            return self
        low = self.low.substitute({var: least if down > 0 else most})
        return self._replace(low=low, high=self.high.substitute({var: most if up > 0 else least}))


def clash(one: Footprint, two: Footprint, ranges: Ranges) -> bool:
    """Whether two accesses behind one base may meet, and one of them writes."""
    return (one.writes or two.writes) and not (
        _never_less(one.low, two.high, ranges) or _never_less(two.low, one.high, ranges)
    )


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
        out += pieces if len(pieces) <= PIECES else [_both(pieces[0], pieces[-1])]
    return tuple(out)


def _both(one: Footprint, two: Footprint) -> Footprint:
    low, high = min(one.low.const, two.low.const), max(one.high.const, two.high.const)
    return one._replace(low=Affine(one.low.terms, low), high=Affine(one.high.terms, high))


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

    def __init__(self, schedule: Schedule, stream_of: Mapping[str, str]):
        self.schedule, self.stream_of = schedule, stream_of
        self._known: dict[int, tuple[Footprint, ...]] = {}
        self._writes: dict[str, frozenset[str]] = {}

    def of(self, issue: Issue) -> tuple[Footprint, ...]:
        known = self._known.get(id(issue))
        if known is None:
            written = self._written(issue.instruction)
            known = tuple(self._print(issue, o, o.name in written) for o in issue.operands)
            self._known[id(issue)] = known
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
        dtype = self.schedule.dtype(o.tile.buffer)
        spans = [k * s * (n - 1) for k, s, n in zip(p.strides, o.tile.steps, o.tile.shape, strict=True)]
        low = p.offset + sum(min(0, s) for s in spans)
        high = p.offset + (sum(max(0, s) for s in spans) + size_of(dtype))
        if p.cell is not None:  # whole cells
            size = m.cell or 1
            first = p.cell + (low.const // size if not low.terms else 0)
            last = p.cell + (-(-high.const // size) if not high.terms else m.limit)
            low, high = Affine((), first * size), Affine((), last * size)
        return Footprint((m.name, p.base), self.stream_of[issue.unit], low, high, writes)


