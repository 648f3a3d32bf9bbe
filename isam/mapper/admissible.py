"""Whether calls carry out as many steps of an axis as a kernel has, and where its sizes are open: at which (MAP-6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import gcd, lcm

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.condition import Condition
from isam.ir.kernel import Sym
from isam.ir.mismatch import Mismatch
from isam.ir.span import Span
from isam.mapper.extend import Extension, Pair

LONGEST = 64  # elements of a call of which a condition tells apart what is left over
PERIOD = 128  # a condition speaks of remainders on division by at most so much where blocks of several sizes would do
TRIED = 100_000  # numbers tried before two conditions count as holding together somewhere


def admissible(
    state: Extension, whole: frozenset[int], guarded: frozenset[int], pairs: list[Pair]
) -> tuple[Condition, ...] | Mismatch:
    """The conditions on open sizes under which calls take what the kernel has of every axis, all of those in ``whole``
    in one call; or why there are no such sizes. ``guarded``: region axes of which a condition leaves any number."""
    found: dict[Condition, None] = {}
    for c, k in enumerate(state.axes):
        one = c in whole
        span = state.pattern.spans[c] if one else _alike(state.pattern.spans[c], state.pattern.spans)
        if k in guarded and not (span.free and (not one or span.least == 0)):
            return _guarded(state, c, span, one, pairs)
        extent = state.classes[k]
        if extent.is_constant:
            fits = span.admits(extent.const) if one else span.cut(extent.const) is not None
            asked = None
        else:
            values = Values.of(extent, state.kernel.syms)
            asked = simplified(condition(span, extent, one), values)
            same = [x for x in found if x.expr == extent]
            fits = asked is None or possible([*same, asked], values)
        if not fits:
            return _refused(state, c, span, one, pairs)
        if asked is not None:
            found[asked] = None
    return tuple(found)


def _alike(span: Span, spans: Sequence[Span]) -> Span:
    """What calls take of an axis together. Where several axes have one size, calls are cut alike along all of them: as
    often as need be what the least call takes that takes something of each."""
    others = [s for s in spans if s.sym == span.sym]
    if span.sym is None or len(others) < 2:
        return span
    size = max(s.size(s.least + max(0, -(-(1 - s.least) // s.step)) * s.step) for s in others)
    block = size * span.each + span.more
    return Span(0, None, block) if span.most is None or block <= span.most else Span(0, 0)


def condition(span: Span, extent: Affine, whole: bool) -> Condition:
    """When calls of one axis carry out ``extent`` steps: one call, where it is ``whole``; else several. Never holds
    where they do not; may leave out numbers that only blocks of odd sizes reach."""
    if whole:
        return Condition(extent, span.least, span.most, *_periodic(span.step, {span.least % span.step}))
    step, least = span.step, max(span.least, 1)
    if span.most is not None and span.most < least:
        return Condition(extent, most=0)
    if span.least % step == 0 and least <= step:
        return Condition(extent, step=step)
    if span.most is None:
        return Condition(extent, least, None, *_periodic(step, {least % step}), some=(0,))
    period = span.nearest(LONGEST) or least
    rests = {0, *range(least, period, step)}
    for other in range(period - step, least - 1, -step):
        if lcm(period, other) <= PERIOD:
            here = {0, *range(least, other, step)}
            both = lcm(period, other)
            rests = {n for n in range(both) if n % period in rests or n % other in here}
            period = both
    return Condition(extent, 0, None, *_periodic(period, rests))


def _periodic(step: int, rests: Iterable[int]) -> tuple[int, tuple[int, ...]]:
    """The same remainders on division by the least number that tells them: the least one that, added to any of them,
    gives another. (It divides ``step``: the greatest common divisor of the two would do as well.)"""
    some = set(rests)
    for d in range(1, step):
        if all((r + d) % step in some for r in some):
            return d, tuple(sorted({r % d for r in some}))
    return step, tuple(sorted(some))


@dataclass(frozen=True, slots=True)
class Values:
    """What an extent with sizes in it may be: ``low``, ``low + by``, ... up to ``high`` (None: without end); ``zero``:
    below zero, too, which counts as zero. Every value is one of these; of several sizes not all of them need be values.
    """

    low: int
    high: int | None
    by: int
    zero: bool

    @staticmethod
    def of(extent: Affine, syms: Sequence[Sym]) -> Values:
        known = {s.name: s for s in syms}
        low: int | None = extent.const
        high: int | None = extent.const
        by = 0
        for name, c in extent.terms:
            s = known.get(name, Sym(name))
            m = s.multiple_of
            least, most = -(-s.lo // m) * m, None if s.hi is None else s.hi // m * m
            ends = (least, most) if c > 0 else (most, least)
            low = None if low is None or ends[0] is None else low + c * ends[0]
            high = None if high is None or ends[1] is None else high + c * ends[1]
            by = gcd(by, c * m)
        return Values(max(extent.const % by, low or 0), high, by, low is None or low < 0)

    def from_(self, least: int, most: int | None = None) -> Iterator[int]:
        """In order, at least ``least``; to the end, or to ``most``."""
        n = self.low + max(0, -(-(least - self.low) // self.by)) * self.by
        ends = [e for e in (self.high, most) if e is not None]
        while not ends or n <= min(ends):
            yield n
            n += self.by

    def __contains__(self, n: int) -> bool:
        return (n == 0 and self.zero) or next(self.from_(n), None) == n


def simplified(c: Condition, values: Values) -> Condition | None:
    """The condition without what is so for all ``values``; None: it always holds. Where it begins at zero it must admit
    zero, as every :func:`condition` does."""
    residues = {n % c.step for n in islice(values.from_(c.least), c.step)}
    few = len(c.some) + 1  # of more than that one is not admitted
    below = {*islice(values.from_(0, c.least - 1), few), *((0,) if values.zero else ())}
    some = tuple(sorted({n for n in (*c.some, *((0,) if values.zero and c.admits(0) else ())) if n in values}))
    inside = residues <= set(c.rests) and (c.most is None or (values.high is not None and values.high <= c.most))
    if inside and all(c.admits(n) for n in below):
        return None
    most = None if c.most is None or (values.high is not None and values.high <= c.most) else c.most
    least = c.least if below or c.least == most else 0  # one number alone is told as that number
    step, rests = (1, (0,)) if residues <= set(c.rests) else _periodic(c.step, set(c.rests) & residues or c.rests)
    return Condition(c.expr, least, most, step, rests, some)


def possible(conditions: Sequence[Condition], values: Values) -> bool:
    """Whether all of them hold for one of the values, as far as numbers are tried."""
    least, period = max(c.least for c in conditions), lcm(values.by, *(c.step for c in conditions))
    ends = [c.most for c in conditions if c.most is not None]
    begin = next(values.from_(least), least)
    few = [n for c in conditions for n in (*c.some, 0) if n in values]
    more = values.from_(begin, min([*ends, begin + period]))
    tried = [*few, *islice(more, TRIED)]
    return len(tried) >= TRIED or any(all(c.admits(n) for c in conditions) for n in tried)


def _guarded(state: Extension, c: int, span: Span, whole: bool, pairs: list[Pair]) -> Mismatch:
    name, axis = state.pattern.axis_names[c], state.class_name(state.axes[c])
    pair = next(p for p in pairs if c in p.plays.axes)
    return state._mismatch(
        "domain", f"a condition on axis {axis}, which leaves any number of its steps",
        f"{'at least 1' if whole and span.free else span} along {name} in every call", pair.node, pair.plays,
        instruction_axis=name, axis=axis, relation="guard",
    )  # fmt: skip


def _refused(state: Extension, c: int, span: Span, whole: bool, pairs: list[Pair]) -> Mismatch:
    """All must be in one call where the axis is whole, else in several, of which the last takes what is left."""
    k = state.axes[c]
    extent, name, axis = state.classes[k], state.pattern.axis_names[c], state.class_name(k)
    pair = next(p for p in pairs if c in p.plays.axes)
    need = f"{span} along {name}, all in one call" if whole else f"{span} along {name} in every call"
    if not extent.is_constant:
        return state._mismatch(
            "extent", f"{extent} steps of axis {axis}, never so many at the sizes that it admits", need, pair.node,
            pair.plays, instruction_axis=name, axis=axis)  # fmt: skip
    padded = span.padded(extent.const)
    pad = "" if padded is None or (whole and not span.admits(padded)) else f" (padding would make them {padded})"
    return state._mismatch(
        "extent", f"{extent} steps of axis {axis}{pad}", need, pair.node, pair.plays, instruction_axis=name, axis=axis,
        need=span.most if whole else span.most if span.least == span.most else span.step, have=extent.const,
        padded=padded if pad else None,
    )  # fmt: skip
