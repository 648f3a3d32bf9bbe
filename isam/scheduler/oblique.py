"""Domains between lines: of two axes, one runs between bounds that are affine in the other (triangles, bands).

Such a domain is cut into *strips*, in each of which one line bounds it below and one above. A strip is walked in square
blocks that lie in it as a whole; what is left along its edges is cut again into smaller blocks, and at last into rows.
So all but few calls are as large as those of a box.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.schedule.tree import Bound
from isam.scheduler.blocks import BLOCKS, Blocks, Clip, of_block, takes_any
from isam.scheduler.nests import Nest
from isam.scheduler.trim import Env

if TYPE_CHECKING:
    from isam.scheduler.plan import Members
    from isam.scheduler.walk import Walk


@dataclass(frozen=True, slots=True)
class Line:
    """``slope * x + const``."""

    slope: int
    const: int

    def at(self, x: int) -> int:
        return self.slope * x + self.const

    def from_(self, x: int) -> Line:
        """The same line, ``x`` counted from there on."""
        return Line(self.slope, self.at(x))

    def ends(self, n: int) -> tuple[int, int]:
        """The least and the greatest value over the first ``n`` integers."""
        return min(self.const, self.at(n - 1)), max(self.const, self.at(n - 1))


@dataclass(frozen=True, slots=True)
class Strip:
    """The points ``start <= x < start + length`` with ``low(x - start) <= y < high(x - start)``, none of them empty."""

    start: int
    length: int
    low: Line
    high: Line

    @property
    def plain(self) -> bool:
        """Whether rows of blocks begin at one ``y``, or are equally long: what follows of others takes the proof long,
        if it finds it."""
        return _level(self.low, self.high)


@dataclass(frozen=True, slots=True)
class Oblique:
    """A domain of the axes ``x`` and ``y``, in strips. ``across``: calls take many values of ``x``, so that what is
    left at the edges is cut into columns, not rows."""

    x: str
    y: str
    strips: tuple[Strip, ...]
    across: bool = False

    def block(self, nest: Nest) -> Nest:
        """The nest over one block: what a plan is made for."""
        return of_block(nest, (self.x, self.y), self.largest())

    def largest(self) -> int:
        """How many elements the largest blocks that it is cut into have along each axis."""
        level = [s for s in self.strips if s.plain]
        some = (size for size in BLOCKS if any(_whole(s.length // size, size, s.low, s.high) for s in level))
        return next(some, BLOCKS[0])

    def walk(self, walk: Walk, env: Env, members: Members) -> None:
        Strips(walk, self, env, members).run()


def oblique(nest: Nest, exact: bool) -> Oblique | None:
    """The strips of a nest whose conditions tie two of its axes; None where they are otherwise, or where the order in
    which a sum adds its terms counts (``exact``), or where calls take multiples."""
    tied = {n for w in nest.where for n in w.names}
    if len(tied) != 2 or not tied <= nest.extents.keys() or (exact and nest.reduced):
        return None
    if any(not nest.extents[a].is_constant or not takes_any(nest, a) for a in tied):
        return None
    x, y = sorted(tied, key=lambda a: (nest.unit(a) > 1, a in nest.reduced, nest.axes.index(a)))
    for short in (0, BLOCKS[0]):
        for a, b in ((x, y), (y, x)):
            strips = strips_between(nest, a, b)
            if strips is not None and all(s.plain or s.length <= short for s in strips):
                return Oblique(a, b, strips, across=b != y)
    return None


def strips_between(nest: Nest, x: str, y: str) -> tuple[Strip, ...] | None:
    """The strips in which ``y`` runs between lines over ``x``; None where no line says where it begins or ends."""
    if any(abs(w.coefficient(y)) > 1 for w in nest.where):
        return None
    lows, highs = [Line(0, nest.origin.get(y, 0))], [Line(0, nest.origin.get(y, 0) + nest.length(y))]
    first, last = nest.origin.get(x, 0), nest.origin.get(x, 0) + nest.length(x)
    for w in nest.where:
        side, line = w.coefficient(y), Line(w.coefficient(x), w.const)
        if side == 0:
            first, last = _trimmed(first, last, line)
        elif side > 0:
            lows.append(Line(-line.slope, -line.const))
        else:
            highs.append(Line(line.slope, line.const + 1))
    return tuple(_strips(first, last, lows, highs))


def _trimmed(first: int, last: int, w: Line) -> tuple[int, int]:
    """The values of ``x`` from ``first`` to before ``last`` where a line is not negative."""
    if w.slope > 0:
        return max(first, -(w.const // w.slope)), last
    if w.slope < 0:
        return first, min(last, w.const // -w.slope + 1)
    return first, last if w.const >= 0 else first


def _strips(first: int, last: int, lows: list[Line], highs: list[Line]) -> list[Strip]:
    """Between neighbouring crossings of two lines none of them changes places with another."""
    if first >= last:
        return []
    lines = [*lows, *highs]
    cuts = {first, last}
    for n, one in enumerate(lines):
        for other in lines[:n]:
            if one.slope != other.slope:
                at = (other.const - one.const) // (one.slope - other.slope)
                cuts |= {c for c in (at, at + 1) if first < c < last}
    out: list[tuple[int, int, set[Line], set[Line]]] = []
    for begin, end in pairwise(sorted(cuts)):
        here = [[(k.at(begin), k.at(end - 1)) for k in some] for some in (lows, highs)]
        low = {k for k, ends in zip(lows, here[0], strict=True) if ends == max(here[0])}
        high = {k for k, ends in zip(highs, here[1], strict=True) if ends == min(here[1])}
        if max(here[0])[0] >= min(here[1])[0]:
            continue
        if out and out[-1][1] == begin and low & out[-1][2] and high & out[-1][3]:
            begin, _, also, above = out.pop()
            low, high = low & also, high & above
        out.append((begin, end, low, high))
    return [Strip(b, e - b, _flattest(low).from_(b), _flattest(high).from_(b)) for b, e, low, high in out]


def _level(low: Line, high: Line) -> bool:
    return low.slope in (0, high.slope)


def _flattest(lines: set[Line]) -> Line:
    """One of several that are the same where they count."""
    return min(lines, key=lambda k: (abs(k.slope), k.slope, k.const))


class Strips(Blocks):
    """Walks a plan for one block over the strips of a domain."""

    def __init__(self, walk: Walk, domain: Oblique, env: Env, members: Members):
        super().__init__(walk, env, members)
        self.domain = domain

    def run(self) -> None:
        if self.walk.plan.simple and self.domain.strips:
            self._ahead()
        for s in self.domain.strips:
            self._strip(Affine((), s.start), Affine(), s.length, s.low, s.high, BLOCKS)

    def _ahead(self) -> None:
        """Lays out what many blocks read before all of them."""
        x, y, strips = self.domain.x, self.domain.y, self.domain.strips
        size = self.domain.largest()
        first, last = min(s.start for s in strips), max(s.start + s.length for s in strips)
        low, high = min(s.low.ends(s.length)[0] for s in strips), max(s.high.ends(s.length)[1] for s in strips)
        points = sum(s.high.at(k) - s.low.at(k) for s in strips for k in range(s.length))
        spans = {x: (first, last - first), y: (low, high - low)}
        whole = {a: (Affine((), at), n, Affine((), at)) for a, (at, n) in spans.items()}
        block = {a: (Affine((), at), min(n, size), Affine((), at)) for a, (at, n) in spans.items()}
        for stage in self.walk.plan.stages:
            self.walk.stager.ahead(stage, {**self.env, **whole}, self.members, points / size**2, {**self.env, **block})

    def _strip(self, x: Affine, y: Affine, n: int, low: Line, high: Line, sizes: tuple[int, ...]) -> None:
        """``n`` values of x from ``x`` on; the lines count from there, and from ``y`` on."""
        if low.slope == high.slope == 0:
            self._box(x, n, y + low.const, high.const - low.const)
        elif not self._blocks(x, y, n, low, high, sizes):
            begin, end = low.ends(n)[1], high.ends(n)[0]
            if end - begin <= BLOCKS[0]:
                self._slices(x, y, n, low, high)
            else:  # slices of what reaches far are many: what all of them share is a box
                self._box(x, n, y + begin, end - begin)
                self._strip(x, y, n, low, Line(0, begin), ())
                self._strip(x, y, n, Line(0, end), high, ())

    def _blocks(self, x: Affine, y: Affine, n: int, low: Line, high: Line, sizes: tuple[int, ...]) -> bool:
        """The strip in blocks of the first of ``sizes`` of which it has some, and of smaller ones where these leave
        something; False where it has none."""
        able = ((k, whole) for k, size in enumerate(sizes) if (whole := _whole(n // size, size, low, high)) is not None)
        found = next(able, None) if _level(low, high) else None
        if found is None:
            return False
        k, (begin, end, inner) = found
        size, smaller = sizes[k], sizes[k + 1 :]
        first, done = begin * size, end * size

        def block(var: Affine) -> None:
            below, above = (y + (var - x - first) * line.slope + line.slope * first for line in (low, high))
            self._row(var, size, below + inner[0], above + inner[1])
            self._strip(var, below, size, low, Line(0, inner[0]), smaller)
            self._strip(var, above, size, Line(0, inner[1]), high, smaller)

        self._strip(x, y, first, low, high, smaller)
        self._loop(self.domain.x, x + first, x + done, size, block)
        self._edge(x + done, y, n - done, low.from_(done), high.from_(done), smaller)
        return True

    def _slices(self, x: Affine, y: Affine, n: int, low: Line, high: Line) -> None:
        """Row by row, or column by column."""
        if low.slope == high.slope and n > 1:
            length = high.const - low.const
            self._loop(self.domain.x, x, x + n, 1,
                       lambda var: self._box(var, 1, y + (var - x) * low.slope + low.const, length))  # fmt: skip
        elif self._slanted(x, y, n, low, high):
            return
        elif self.domain.across:
            self._columns(x, y, n, low, high)
        else:
            for row in range(n):
                self._box(x + row, 1, y + low.at(row), high.at(row) - low.at(row))

    def _slanted(self, x: Affine, y: Affine, n: int, low: Line, high: Line) -> bool:
        """Rows, or columns, side by side in what registers hold, so that they share their loops and what they read;
        False where calls take many elements of both axes, or nothing is shared."""
        one, other, rows = self.domain.x, self.domain.y, [(low.at(k), high.at(k)) for k in range(n)]
        first, across = x, y
        if self.domain.across:
            one, other, first, across = other, one, y + low.ends(n)[0], x
            rows = [_inside(n, low, high, k) for k in range(low.ends(n)[0], high.ends(n)[1])]
        most = self._rows(one, other)
        if most < 2:
            return False
        for begin, end in _together(rows, lambda some: self._fits(other, some, most)):
            some = rows[begin:end]
            start = min(a for a, _ in some)
            length = max(b for _, b in some) - start
            ranges = tuple((a - start, b - start) for a, b in some)
            at = {one: (first + begin, end - begin, first + begin), other: (across + start, length, across + start)}
            self.box(at, False, Clip(one, other, ranges))
        return True

    def _rows(self, one: str, other: str) -> int:
        """How many registers of results a block has, each of a value of one axis; where the other one is summed over,
        how many values; 0 where rows cannot be side by side."""
        walk, plan = self.walk, self.walk.plan
        group = walk.group
        if not plan.simple or group.private or any(n.unit(one) > 1 or one in n.reduced for n in group.nests):
            return 0
        if not any(set(n.reduced) - {one, other} or other in n.reduced for n in group.nests):
            return 0
        most = plan.register_block(one)
        return most if other in group.main.reduced else most * -(-plan.register_block(other) // group.unit(other))

    def _fits(self, other: str, rows: list[tuple[int, int]], most: int) -> bool:
        """Whether registers hold the results of such rows."""
        group = self.walk.group
        wide = 1 if other in group.main.reduced else -(-_width(rows) // group.unit(other))
        return len(rows) * wide <= most

    def _columns(self, x: Affine, y: Affine, n: int, low: Line, high: Line) -> None:
        """What is left of a strip, for each y by itself: there one value of x follows the other."""
        for column in range(low.ends(n)[0], high.ends(n)[1]):
            inside = [at for at in range(n) if low.at(at) <= column < high.at(at)]
            if inside:
                self._box(x + inside[0], len(inside), y + column, 1)

    def _edge(self, x: Affine, y: Affine, n: int, low: Line, high: Line, sizes: tuple[int, ...]) -> None:
        """A strip of fewer values than a block has: what all of them share is a box."""
        begin, end = low.ends(n)[1], high.ends(n)[0]
        if n < 2 or end <= begin:
            self._strip(x, y, n, low, high, sizes)
            return
        self._box(x, n, y + begin, end - begin)
        self._strip(x, y, n, low, Line(0, begin), sizes)
        self._strip(x, y, n, Line(0, end), high, sizes)

    def _row(self, x: Affine, n: int, y: Affine, end: Affine) -> None:
        """Square blocks side by side."""
        if (end - y).is_constant:
            self._box(x, n, y, (end - y).const)
        else:
            self._loop(self.domain.y, y, end, n, lambda var: self._box(x, n, var, n))

    def _loop(self, axis: str, start: Affine, end: Affine, step: int, body: Callable[[Affine], None]) -> None:
        scope = self.walk.run.scope
        if (end - start).is_constant and (end - start).const <= step:
            if end != start:
                body(start)
            return
        bounds = start.bounds(scope.ranges)[0], (end - step).bounds(scope.ranges)[1]
        if bounds[1] >= bounds[0]:
            self.loop(axis, (Bound(start),), (Bound(end),), step, start, bounds, body)

    def _box(self, x: Affine, n: int, y: Affine, length: int) -> None:
        """A box: along an axis that an instance has no loop for in the plan, made for a block, block by block."""
        size, one, other = self.domain.largest(), self.domain.x, self.domain.y
        looped = self.walk.plan.looped
        if n > size and one not in looped:
            whole = n // size * size
            self._loop(one, x, x + whole, size, lambda var: self._box(var, size, y, length))
            self._box(x + whole, n - whole, y, length)
        elif length > size and other not in looped:
            whole = length // size * size
            self._loop(other, y, y + whole, size, lambda var: self._box(x, n, var, size))
            self._box(x, n, y + whole, length - whole)
        elif n > 0 and length > 0:
            at = {self.domain.x: (x, n, x), self.domain.y: (y, length, y)}
            self.box(at, small=min(n, length) == 1)


def _inside(n: int, low: Line, high: Line, column: int) -> tuple[int, int]:
    """Which of ``n`` rows have a column."""
    inside = [at for at in range(n) if low.at(at) <= column < high.at(at)]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)


def _width(rows: list[tuple[int, int]]) -> int:
    return max(b for _, b in rows) - min(a for a, _ in rows)


def _together(rows: list[tuple[int, int]], fits: Callable[[list[tuple[int, int]]], bool]) -> list[tuple[int, int]]:
    """Which rows, from one to before another, go together: as many as fit."""
    out: list[tuple[int, int]] = []
    begin = 0
    for at in range(1, len(rows) + 1):
        if at == len(rows) or not fits(rows[begin : at + 1]):
            out.append((begin, at))
            begin = at
    return out


def _whole(count: int, size: int, low: Line, high: Line) -> tuple[int, int, tuple[int, int]] | None:
    """Of ``count`` rows of blocks those whose blocks can be told from their edges: the first, the one after the last,
    and where in the first row of all their blocks begin and end, as multiples of ``size``. None where no row has a
    block."""
    begin, end = -(-low.ends(size)[1] // size) * size, high.ends(size)[0] // size * size
    rows = [t for t in range(count) if end - begin + (high.slope - low.slope) * size * t >= 0]
    if not rows or all(end - begin + (high.slope - low.slope) * size * t == 0 for t in rows):
        return None
    return rows[0], rows[-1] + 1, (begin, end)
