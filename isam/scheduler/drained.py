"""Sums over part of a box in accumulators that no move leads to: they are only zeroed, added to and drained.

There a sum goes on in the loops in which it begins. So both nests run over blocks of results: such a block is begun as
a whole, what the domain has of it is added in loops that may have no iteration, and it is drained. Where the conditions
say which results there are, others are begun and drained by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.schedule.tree import Bound
from isam.scheduler.begun_together import takes_part
from isam.scheduler.blocks import BLOCKS, Blocks, of_block, takes_any
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.scheduler.nests import Nest, Use, sizes_of, tile_of
from isam.scheduler.oblique import Line, Strip, strips_between
from isam.scheduler.shared_loops import rename, shareable
from isam.scheduler.state import Key
from isam.scheduler.trim import Env
from isam.system.graph import System

if TYPE_CHECKING:
    from isam.scheduler.plan import Members
    from isam.scheduler.walk import Walk

Piece = Callable[[Env], None]


@dataclass(frozen=True, slots=True)
class Drained:
    """A sum over the points of some ``strips`` of its axes ``x`` and ``y``; of ``x``, by which blocks of results go,
    ``length`` values from ``first`` on, and ``height`` of ``y`` from ``bottom`` on. ``added``: ``y`` is summed over."""

    x: str
    y: str
    strips: tuple[Strip, ...]
    first: int
    length: int
    bottom: int
    height: int
    added: bool

    def block(self, nest: Nest) -> Nest:
        """The nest over one block: what a plan is made for."""
        return of_block(nest, (a for a in (self.x, self.y) if a in nest.extents))

    def walk(self, walk: Walk, env: Env, members: Members) -> None:
        Draining(walk, self, env, members).run()


def summed_there(nest: Nest, system: System) -> Use | None:
    """What a nest that does not run over a box adds up where no move leads."""
    if not nest.where or not system.closed:
        return None
    return next((u for u in nest.uses if u.reads and u.writes and system.closed.issuperset(u.homes)), None)


def drained(nest: Nest) -> Drained | None:
    """The strips of such a sum, whose conditions tie one axis, or two: one of the results, and another one."""
    tied = [a for a in nest.axes if any(w.coefficient(a) for w in nest.where)]
    if {n for w in nest.where for n in w.names} != set(tied) or len(tied) > 2:
        return None
    results = [a for a in nest.axes if a not in nest.reduced]
    if any(not nest.extents[a].is_constant or not takes_any(nest, a) for a in (*tied, *results)):
        return None
    for x in sorted(results, key=lambda a: (a not in tied, nest.axes.index(a))):
        others = [a for a in tied if a != x] or [a for a in nest.axes if a != x]
        found = strips_between(nest, x, others[0]) if len(others) == 1 or not set(tied) - {x} else None
        if found is not None:
            y = others[0]
            return Drained(x, y, found, nest.origin.get(x, 0), nest.length(x), nest.origin.get(y, 0), nest.length(y),
                           y in nest.reduced)  # fmt: skip
    return None


class Draining(Blocks):
    """Walks a plan for one block over such a domain: blocks of results, one after the other. ``rows``: what is added to
    cannot be taken in part (cells, registers, columns of a memory with rows), so that each row of a block has a place
    of its own."""

    def __init__(self, walk: Walk, domain: Drained, env: Env, members: Members):
        super().__init__(walk, env, members)
        self.domain = domain
        main = walk.group.nests[members[-1]]
        self.begin, self.sum = members[:-1], members[-1:]
        self.held: frozenset[Key] = frozenset()  # what is being added to
        self.results = [a for a in main.axes if a not in main.reduced]
        use = next(u for u in main.uses if u.reads and u.writes)
        self.unit, data, memory = main.unit(domain.x), walk.run.data, walk.run.system.memories[use.homes[0]]
        units = {a: main.unit(a) for a in main.axes}
        origin = dict.fromkeys(main.axes, Affine())
        whole = tile_of(use, origin, sizes_of(main, units))
        row = tile_of(use, {**origin, domain.x: Affine((), 1)}, sizes_of(main, {**units, domain.x: 1}))
        self.rows = not takes_part(data, use, memory, whole, row)
        self.block = {a: walk.plan.register_block(a) for a in self.results}
        most = min(self.block[domain.x], max(self.unit, BLOCKS[-1]))
        if self.rows:
            most = max(1, min(most, memory.limit // max(1, data.fit.units(memory.name, row))))
            self.block = {a: units[a] for a in self.results}
        unit = main.unit(domain.y)
        self.block[domain.x] = most - most % unit if domain.added and most >= unit else most  # whole calls along y

    def run(self) -> None:
        whole, d = self.walk.plan, self.domain
        inner = whole.without(set(self.results)) if whole.simple else whole.without(self.walk.group.axes)
        self.walk.plan = replace(inner, double_buffered=frozenset(), deals=(), alone=(), gathered=(), outer=0,
                                 stages=inner.stages if whole.simple else ())  # fmt: skip
        at = d.first
        for s in d.strips:
            self._without(at, s.start - at)
            self._strip(s)
            at = s.start + s.length
        self._without(at, d.first + d.length - at)
        self.walk.plan = whole

    # -- blocks of results -------------------------------------------------------------------------------------------
    def _without(self, x: int, n: int) -> None:
        """Results with which no point of the domain has to do."""
        d = self.domain
        if n > 0:
            axes = [d.x, *(a for a in self.results if a != d.x)]
            spans = {a: (Affine(), self.walk.group.length(a)) for a in axes} | {d.x: (Affine((), x), n)}
            if not d.added:
                spans[d.y] = (Affine((), d.bottom), d.height)
            self._each(axes, spans, self._only_begun)

    def _strip(self, s: Strip) -> None:
        """Blocks of a strip: in a loop, where what they have to do is the same but for whole pieces."""
        size = self.block[self.domain.x]
        parts = [(s.start + at, min(size, s.length - at)) for at in range(0, s.length, size)]
        bands = self._bands(s)
        able = [n == size and all(_even(low, high, at - s.start, n) for low, high, _ in bands) for at, n in parts]
        k = 0
        while k < len(parts):
            at, n = parts[k]
            end = k + 1
            while able[k] and end < len(parts) and able[end]:
                end += 1
            if end - k > 1:
                start, last = Affine((), at), parts[end - 1][0]
                hi = (Bound(Affine((), last + size)),)
                self.loop(self.domain.x, (Bound(start),), hi, size, start, (at, last),
                          lambda var: self._rows(var, var - s.start, size, bands))  # fmt: skip
            else:
                self._rows(Affine((), at), Affine((), at - s.start), n, bands)
            k = end

    def _bands(self, s: Strip) -> list[tuple[Line, Line, bool]]:
        """Between which lines a strip has something to add, or only begins; of what is begun with all its sum there is
        but that."""
        if self.domain.added:
            return [(s.low, s.high, True)]
        bottom, top = Line(0, self.domain.bottom), Line(0, self.domain.bottom + self.domain.height)
        return [(bottom, s.low, False), (s.low, s.high, True), (s.high, top, False)]

    def _rows(self, x: Affine, t: Affine, n: int, bands: Sequence[tuple[Line, Line, bool]]) -> None:
        """The blocks of ``n`` rows from ``x`` on, which are as far from where their strip begins as ``t`` says."""
        d = self.domain
        rows = {d.x: (x, n)}
        if not d.added:
            others = [a for a in self.results if a not in (d.x, d.y)]
            spans = {a: (Affine(), self.walk.group.length(a)) for a in others}
            for low, high, adds in bands:
                piece = self._whole if adds else self._only_begun
                self._each(others, {**rows, **spans}, lambda env, low=low, high=high, piece=piece:
                           self._between(env, t, low, high, lambda e: self._cut(e, piece)))  # fmt: skip
            return
        ((low, high, _),) = bands
        others = [a for a in self.results if a != d.x]
        spans = {a: (Affine(), self.walk.group.length(a)) for a in others}
        self._each(others, {**rows, **spans}, lambda env: self._added(env, t, low, high))

    def _added(self, env: Env, t: Affine, low: Line, high: Line) -> None:
        """One block: begun, added to, drained."""
        self._by_rows(env, self.begin)
        state = self.walk.run.data.state
        self.held = frozenset(k for k in state.of_any() if state.copies[k].dirty)
        self._between(env, t, low, high, lambda e: self._by_rows(e, self.sum))
        self.held = frozenset()
        self.walk.empty()

    def _whole(self, env: Env) -> None:
        self._by_rows(env, self.begin)
        self._by_rows(env, self.sum)
        self.walk.empty()

    def _only_begun(self, env: Env) -> None:
        self._by_rows(env, self.begin)
        self.walk.empty()

    def _by_rows(self, env: Env, members: Members) -> None:
        """The plan over a block, row by row where each has a place of its own."""
        x, n, _ = env[self.domain.x]
        for at in range(n) if self.rows else ():
            self.walk.box({**self.env, **env, self.domain.x: (x + at, 1, x + at)}, members, small=True)
        if not self.rows:
            self.walk.box({**self.env, **env}, members, small=n == 1)

    def _each(self, axes: Iterable[str], spans: dict[str, tuple[Affine, int]], piece: Piece) -> None:
        """Blocks of some axes, one axis inside the other."""
        axis, *others = [*axes] or [""]
        if not axis:
            piece({a: (at, n, at) for a, (at, n) in spans.items()})
            return
        at, n = spans[axis]
        self._blocks(axis, at, at + n, min(self.block[axis], n),
                     lambda start, size: self._each(others, {**spans, axis: (start, size)}, piece))  # fmt: skip

    def _cut(self, env: Env, piece: Piece) -> None:
        """A piece of results in blocks of ``y``."""
        y, n, _ = env[self.domain.y]
        self._blocks(self.domain.y, y, y + n, min(self.block[self.domain.y], n),
                     lambda start, size: piece({**env, self.domain.y: (start, size, start)}))  # fmt: skip

    # -- between lines -----------------------------------------------------------------------------------------------
    def _between(self, env: Env, t: Affine, low: Line, high: Line, piece: Piece) -> None:
        """What lies between two lines, in the order of ``y``: what rows have above the line that others have not, what
        all have in common, and the same below."""
        n = env[self.domain.x][1]
        first, last, size = (low.ends(n)[1], high.ends(n)[0], 1) if t.is_constant else _pieces(low, high, n)
        begin, end = (t * line.slope + at for line, at in ((low, first), (high, last)))
        rows = [(t * low.slope + low.at(r), t * high.slope + high.at(r)) for r in range(n)]
        if (end - begin).is_constant and (end - begin).const <= 0:
            self._fringe(env, rows, piece)
            return
        self._fringe(env, [(at, begin) for at, _ in rows], piece)
        rest = (end - begin).const if (end - begin).is_constant else (last - first) % size
        before, after = (rest, 0) if high.slope else (0, rest)
        self._column(env, begin, before, piece)
        self._blocks(self.domain.y, begin + before, end - after, size, lambda y, k: self._column(env, y, k, piece))
        self._column(env, end - after, after, piece)
        self._fringe(env, [(end, at) for _, at in rows], piece)

    def _fringe(self, env: Env, rows: Sequence[tuple[Affine, Affine]], piece: Piece) -> None:
        """What rows have from one place to before another, as much of it as can be in calls of many rows."""
        x, n = env[self.domain.x][0], len(rows)
        size = self.unit if n > self.unit else 1
        for r in range(0, n, size):
            some = rows[r : r + size]
            here = {**env, self.domain.x: (x + r, len(some), x + r)}
            first, last = max((b for b, _ in some), key=_const), min((e for _, e in some), key=_const)
            if len(some) == 1 or (last - first).const > 0:
                self._fringe(here, [(b, first) for b, _ in some if len(some) > 1], piece)
                self._column(here, first, (last - first).const, piece)
                self._fringe(here, [(last, e) for _, e in some if len(some) > 1], piece)
            else:
                self._fringe(here, some, piece)

    def _column(self, env: Env, y: Affine, n: int, piece: Piece) -> None:
        if n > 0:
            piece({**env, self.domain.y: (y, n, y)})

    # -- loops -------------------------------------------------------------------------------------------------------
    def _blocks(self, axis: str, begin: Affine, end: Affine, size: int, body: Callable[[Affine, int], None]) -> None:
        """From ``begin`` to ``end`` in blocks, the last one as long as is left; where that is not a number, there are
        whole ones."""
        span = end - begin
        whole = span.const - span.const % size if span.is_constant else 0
        if span.is_constant and whole <= size:
            for at in range(0, span.const, size):
                body(begin + at, min(size, span.const - at))
            return
        stop = begin + whole if span.is_constant else end
        ranges = self.walk.run.scope.ranges
        values = begin.bounds(ranges)[0], (stop - size).bounds(ranges)[1]
        if values[1] >= values[0]:
            lo, hi = (Bound(begin),), (Bound(stop),)
            self.loop(axis, lo, hi, size, begin, values, lambda var: body(var, size), self.held)
            self._demand_held()
        if stop != end:
            body(stop, (end - stop).const)

    def _demand_held(self) -> None:
        """What is added to has to be there still: nothing brings it back."""
        state, memories = self.walk.run.data.state, self.walk.run.system.memories
        for key in self.held:
            if key not in state.copies or not state.copies[key].dirty:
                what, m = f"{key[1]}, which is being added to", memories[key[0]]
                raise NoSchedule(Infeasible(f"memory '{m.name}'", what, "it had to make way", memory=m.name, loc=m.loc))


def _const(at: Affine) -> int:
    return at.const


def _even(low: Line, high: Line, t: int, n: int) -> bool:
    """Whether a loop may do what ``n`` rows from the ``t``-th on have between two lines: in every block it is the same
    for each of them, but for whole pieces of what all have in common."""
    if low.slope == high.slope:
        return True
    first, last, _ = _pieces(low, high, n)
    return last + high.slope * t >= first + low.slope * t


def _pieces(low: Line, high: Line, n: int) -> tuple[int, int, int]:
    """From where to where what the first ``n`` rows have in common between two lines is whole pieces but for a constant
    rest at a level line, and how long these are."""
    first, last, step = low.ends(n)[1], high.ends(n)[0], abs(high.slope - low.slope) * n
    size = next((k for k in range(min(step, BLOCKS[0]), 0, -1) if step % k == 0), 1)
    return (-(-first // size) * size if low.slope else first), (last // size * size if high.slope else last), size


def _begins(nest: Nest, use: Use) -> bool:
    """Whether a nest begins what another one adds to, and does nothing else: it may run right before."""
    return not (nest.where or nest.origin) and [u.buffer for u in nest.uses if u.writes] == [use.buffer] and all(
        u.writes and not u.reads and set(u.homes) & set(use.homes) for u in nest.uses if u.index
    )  # fmt: skip


def begin_of(nests: Sequence[Nest], n: Nest, use: Use) -> Nest | None:
    """The nest before ``n`` that begins what it adds to, with its axes, if nothing in between touches that; None also
    where some axis of it is none of the sum's."""
    before = [p for p in nests if p.number < n.number and any(u.buffer == use.buffer for u in p.uses)]
    if not before or not _begins(before[-1], use):
        return None
    first = before[-1]
    names = {a: b for b, some in (shareable(first, n) or {}).items() for a in some}
    if names.keys() != first.extents.keys() or len({*names.values()}) < len(names):
        return None
    return rename(first, names) if {*names.values()} == {*n.extents} - {*n.reduced} else None
