"""Domains in which axes begin, or end, at lines over variables of loops around the nest (elimination, substitution).

An axis that begins at a line is cut from its end on: into the largest blocks, as many as fit between; what is left
before the first of them into smaller ones, and at last into elements. One that ends at a line is cut from its beginning
on. So blocks lie where they do whatever the line's value is, and of each smaller size there are but a few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import FAR
from isam.schedule.tree import Bound
from isam.scheduler.blocks import BLOCKS, Blocks, of_block, takes_any
from isam.scheduler.nests import Nest
from isam.scheduler.trim import Env

if TYPE_CHECKING:
    from isam.scheduler.plan import Members
    from isam.scheduler.walk import Walk

Body = Callable[[Affine, int], None]  # for a block, where it begins and how long it is
SIZES = (*BLOCKS, 4, 1)  # elements of a block: what is left of one size is cut into the next
FEWER = (BLOCKS[-1], 1)  # where many axes have sides: each size of one is walked with each of the others
MANY = 3
CALLS = 16  # of a block along one axis


@dataclass(frozen=True, slots=True)
class Side:
    """``line <= axis < end``; with ``upper`` ``end <= axis < line``. The line is never beyond the axis on the side that
    ``end`` is not on."""

    axis: str
    line: Affine
    end: int
    upper: bool = False


@dataclass(frozen=True, slots=True)
class Outer:
    """A domain of which some axes are bounded from outside, the outermost first."""

    sides: tuple[Side, ...]

    def block(self, nest: Nest) -> Nest:
        """The nest over one block: what a plan is made for."""
        return of_block(nest, (s.axis for s in self.sides))

    def walk(self, walk: Walk, env: Env, members: Members) -> None:
        Halves(walk, self, env, members).run()


def outer(nest: Nest, around: Mapping[str, Affine], exact: bool) -> Outer | None:
    """How the conditions of a nest bound its axes by variables of the recurrent loops ``around`` it, each with how
    often it runs; None where they do otherwise, or where the order in which a sum adds its terms counts (``exact``), or
    where calls take multiples."""
    if exact and nest.reduced:
        return None
    ranges = {n: (0, int(e) - 1 if e.is_constant else FAR) for n, e in around.items()}
    tied = dict.fromkeys(a for a in nest.axes if any(w.coefficient(a) for w in nest.where))
    sides = [_side(nest, a, ranges) for a in sorted(tied, key=lambda a: (nest.unit(a) > 1, a in nest.reduced))]
    mine = [sum(bool(w.coefficient(a)) for a in nest.axes) == 1 for w in nest.where]
    return Outer(tuple(s for s in sides if s is not None)) if all(mine) and None not in sides else None


def _side(nest: Nest, axis: str, ranges: Mapping[str, tuple[int, int]]) -> Side | None:
    """How one axis is bounded, where one line does it."""
    if not nest.extents[axis].is_constant or not takes_any(nest, axis):
        return None
    first = nest.origin.get(axis, 0)
    lows, highs = [Affine((), first)], [Affine((), first + nest.length(axis))]
    for w in nest.where:
        c = w.coefficient(axis)
        rest = w - Affine.of(axis, c)
        if c and (abs(c) > 1 or any(n not in ranges for n in rest.names)):
            return None
        if c > 0:
            lows.append(-rest)
        elif c < 0:
            highs.append(rest + 1)
    low = next((e for e in lows if all((d - e).bounds(ranges)[1] <= 0 for d in lows)), None)
    high = next((e for e in highs if all((d - e).bounds(ranges)[0] >= 0 for d in highs)), None)
    if low is None or high is None or low.is_constant == high.is_constant:
        return None
    return Side(axis, low, high.const) if high.is_constant else Side(axis, high, low.const, upper=True)


class Halves(Blocks):
    """Walks a plan for one block over a domain with sides."""

    def __init__(self, walk: Walk, domain: Outer, env: Env, members: Members):
        super().__init__(walk, env, members)
        self.sides = domain.sides

    def run(self) -> None:
        self._side(0, {})

    def _side(self, n: int, at: Env) -> None:
        """The ``n``-th side and those after it, where those before it are."""
        if n == len(self.sides):
            self.box(at, small=any(length == 1 for _, length, _ in at.values()))
            return
        s = self.sides[n]
        most = min(self.env[s.axis][1], CALLS * self.walk.group.unit(s.axis))
        sizes = tuple(k for k in (SIZES if len(self.sides) < MANY else FEWER) if k <= most)
        gap = (s.line - s.end if s.upper else s.end - s.line).bounds(self.walk.run.scope.ranges)
        self._cut(s, Affine((), s.end), gap, sizes,
                  lambda start, k: self._side(n + 1, {**at, s.axis: (start, k, start)}))  # fmt: skip

    def _cut(self, s: Side, end: Affine, gap: tuple[int, int], sizes: tuple[int, ...], body: Body) -> None:
        """What lies between a side's line and ``end``, which is so many elements at least and at most, in blocks of the
        first of ``sizes``, and in smaller ones what is left at the line: in a loop of one iteration, whose variable
        says where that is."""
        size, *smaller = sizes
        between = s.line - end
        most = gap[1] // size
        if size == 1:
            first, last = (end, s.line) if s.upper else (s.line, end)
            low, high = first.bounds(self.walk.run.scope.ranges)
            values = low, high + max(0, gap[1] - 1)
            self.loop(s.axis, (Bound(first),), (Bound(last),), 1, first, values, lambda var: body(var, 1))
        elif most <= 0:
            self._cut(s, end, gap, tuple(smaller), body)
        else:
            def whole(var: Affine) -> None:
                body(end + var * size, size)

            def rest(var: Affine) -> None:
                self._cut(s, end + var * size, (0, size - 1), tuple(smaller), body)

            none, first = Bound(Affine()), Affine((), -most)
            if s.upper:
                self.loop(s.axis, (none,), (Bound(between, size),), 1, Affine(), (0, most - 1), whole)
                lo, hi = (none, Bound(between - size + 1, size)), (Bound(between + size, size),)
                self.loop(s.axis, lo, hi, 1, Affine(), (0, most), rest)
            else:
                self.loop(s.axis, (Bound(between, size),), (none,), 1, first, (-most, -1), whole)
                lo, hi = (Bound(between, size),), (Bound(Affine((), 1)), Bound(between + 2 * size - 1, size))
                self.loop(s.axis, lo, hi, 1, first, (-most, 0), rest)
