"""Which temporaries nobody will read any more, and which need room for one block only (IR-5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate
from typing import NamedTuple

from isam.ir.affine import Affine
from isam.schedule.tree import Loop, Tile
from isam.scheduler.homes import NO_FOLD, Fold, Share
from isam.scheduler.near import Near
from isam.scheduler.near_homes import NearHome
from isam.scheduler.nests import Call
from isam.scheduler.plan import Members, Plan
from isam.scheduler.scope import Scope
from isam.scheduler.trim import Env, Segment


class FoldedAxis(NamedTuple):
    """A dimension that needs room for one block of ``axis`` only. ``const``: where it begins; ``depths``: of the loops
    over its blocks, outermost first; ``size``: of the largest of the innermost."""

    dim: int
    axis: str
    const: int
    depths: tuple[int, ...]
    size: int


class Lifetimes:
    """Nothing is known: everything may be read again."""

    def dead(self, tile: Tile) -> bool:
        """Nobody will read the tile once what is being closed is closed."""
        return False

    def spent(self, tile: Tile) -> bool:
        """Nobody will read the tile after the present call."""
        return False

    def finished(self, tile: Tile) -> bool:
        """Nobody will write the tile again."""
        return False

    def fold(self, tile: Tile) -> Fold:
        """Dimensions of the tile's buffer that need room for one block only."""
        return NO_FOLD

    def summed(self, buffer: str) -> bool:
        """Whether nests begin a buffer, or add to it where it lies, and do nothing else with it."""
        return False

    def shares(self) -> tuple[Share, ...]:
        """Which instances work on what we are about, innermost first; nothing where one does everything."""
        return ()


class InGroup(Lifetimes):
    """What follows from a group's plan and where its walk stands.

    ``open``: axes of the kept loops we are in; ``further``: per loop the temporaries that are used behind it, too, by
    nests that lack its axis as those do that take part in one of its iterations; ``only``: per loop the nests that
    alone have it, None where all with its axis do; ``ending``: an iteration is being closed, what only it could see is
    dead; ``leaf``: the nests of the present block; ``reads``: what its calls read of private temporaries, each with the
    position of the last that does; ``near``: where that lies, by buffer; ``done``: how many of them are over;
    ``dealt``: the dealt loops that we are in; ``box``: where each axis begins, and how long it is, in a piece of a
    domain; ``now``: the same of the block of every loop that we are in; ``at_home``: temporaries at home in a near
    memory; ``parts``: how axes are dealt out that are parts of outer blocks; ``nested``: of
    blocks in blocks the room for an inner one will do.
    """

    def __init__(self, scope: Scope, plan: Plan, dealt: list[Loop], at_home: Mapping[str, NearHome], nested: bool):
        self.scope, self.plan, self.group, self.dealt, self.at_home = scope, plan, plan.group, dealt, at_home
        self.nested = nested
        self.open: list[str] = []
        self.further: list[frozenset[str]] = []
        self.only: list[Members | None] = []
        self._here: dict[str, bool] = {}  # what was asked in the present loops, see ``_private_here``
        self.ending = False
        self.leaf: frozenset[int] = frozenset()
        self.reads: dict[Tile, int] = {}
        self.near: dict[str, Near] = {}
        self.done = 0
        self.box: dict[str, tuple[Affine, int]] = {}
        self.now: Env = {}
        self.folds: dict[str, list[FoldedAxis] | None] = {}  # per buffer, see _folds
        self.parts: dict[str, tuple[Segment, ...]] = {}  # of dealt axes, where they are parts of outer blocks

    @property
    def standing(self) -> object:
        """What answers depend on, but for the block of every loop and its calls: the loops that we are in."""
        deals = tuple(n.deal for n in self.dealt)
        spans = tuple(self.box.items()), tuple(self.parts.items())
        return tuple(self.open), tuple(self.only), tuple(self.further), deals, spans

    def begin(self, calls: list[Call]) -> None:
        """A block of these calls, or none."""
        self.reads, self.near, self.done = {}, {}, 0
        for at, (nest, _, _, tiles) in enumerate(calls):
            for u, t in zip(nest.uses, tiles, strict=True):
                if u.reads and t.buffer in self.group.private:
                    if t not in self.reads:
                        self.near.setdefault(t.buffer, Near()).put(t)
                    self.reads[t] = at

    @contextmanager
    def within(self, axis: str, members: Members, only: Members | None = None) -> Iterator[None]:
        """In an iteration of a loop, with those nests that take part in it; ``only``: those that alone have it."""
        self.open.append(axis)
        self.only.append(only)
        self.further.append(frozenset(b for b in self.group.private if self._further(b, members)))
        outside, self._here = self._here, {}
        try:
            yield
        finally:
            self._here = outside
            self.open.pop()
            self.only.pop()
            self.further.pop()

    @contextmanager
    def at(self, env: Env) -> Iterator[None]:
        """In the block of every loop that ``env`` says."""
        around, self.now = self.now, env
        try:
            yield
        finally:
            self.now = around

    @contextmanager
    def closing(self) -> Iterator[None]:
        """What was made here leaves: what only the present iteration could see is dead."""
        around, self.ending = self.ending, True
        try:
            yield
        finally:
            self.ending = around

    def _further(self, buffer: str, members: Members) -> bool:
        users = self.group.users(buffer)
        return not users.isdisjoint(members) and not users <= set(members)

    def dead(self, tile: Tile) -> bool:
        """True when the tile is a temporary that only the iteration being closed could see."""
        return self.ending and self._private_here(tile.buffer)

    def spent(self, tile: Tile) -> bool:
        """True when the tile is a temporary that nothing behind the present block touches: nests before it are done
        with it, because no other iteration sees it."""
        if not (self.leaf and self._private_here(tile.buffer)):
            return False
        if any(i > min(self.leaf) for i in self.group.users(tile.buffer) - self.leaf):
            return False
        near = self.near.get(tile.buffer)
        meeting = () if near is None else near.meeting(tile, self.scope.ranges)
        return all(self.reads[t] < self.done for t in meeting)

    def finished(self, tile: Tile) -> bool:
        """True when the tile lies outside of the present block: blocks of results are worked on one after the other."""
        return all(any(map(self._outside, u.index, tile.start, tile.shape)) for n in self.group.nests for u in n.uses
                   if u.buffer == tile.buffer)  # fmt: skip

    def _outside(self, row: Affine, start: Affine, length: int) -> bool:
        """Whether so many elements along a dimension are none of those that the present block touches."""
        first, span = row, 0
        for a, c in row.terms:
            if a not in self.now or c < 0:
                return False
            at, n, _ = self.now[a]
            first, span = first.substitute({a: at}), span + c * (n - 1)
        away = start - first
        return away.is_constant and not -length < away.const <= span

    def _private_here(self, buffer: str) -> bool:
        """Whether no iteration of an open loop, other than the present one, can see the temporary's elements here."""
        if buffer not in self._here:
            self._here[buffer] = self._is_private_here(buffer)
        return self._here[buffer]

    def _is_private_here(self, buffer: str) -> bool:
        private = self.group.private.get(buffer)
        if private is None:
            return False
        users = self.group.users(buffer)
        if any(only is not None and not users.issubset(only) for only in self.only):
            return False
        between = range(min(users), max(users) + 1)
        lacked = [all(a not in self.group.nests[i].extents for i in between) for a in self.open]
        seen = [n and buffer in some for n, some in zip(lacked, self.further, strict=True)]
        return not any(seen) and all(n or a in private for n, a in zip(lacked, self.open, strict=True))

    def fold(self, tile: Tile) -> Fold:
        """Dimensions of a private temporary that need room for one block only, of the iterations of each instance."""
        if tile.buffer in self.at_home:
            return Fold(tuple(self._part(tile.buffer)))
        if tile.buffer not in self.folds:
            self.folds[tile.buffer] = self._folds(tile.buffer)
        found = self.folds[tile.buffer]
        if found is None:
            return NO_FOLD
        out = [(f.dim, self._origin(f.axis, tile.start[f.dim] - f.const, f.depths) + f.const, f.size) for f in found]
        axes = {f.axis for f in found}
        return Fold(tuple(out), tuple(self._share(n) for n in reversed(self.dealt) if n.axis in axes))

    def shares(self) -> tuple[Share, ...]:
        """Which instances work on what we are about, innermost first."""
        return tuple(self._share(n) for n in reversed(self.dealt))

    def summed(self, buffer: str) -> bool:
        touched = [(n, u) for n in self.group.nests for u in n.uses if u.buffer == buffer]
        whole = all(u.writes and (u.reads or not any(v.reads and v.index for v in n.uses)) for n, u in touched)
        return whole and any(u.reads for _, u in touched) and len({u.homes[0] for _, u in touched}) == 1

    def _part(self, buffer: str) -> Iterator[tuple[int, Affine, int]]:
        """Dimensions of which the present instance has a part, where that begins, and how long it is at most."""
        for d, size in self.at_home[buffer].parts:
            rows = (u.index[d] for n in self.group.nests for u in n.uses if u.buffer == buffer)
            axes = next(rows).names
            loop = next(n for n in self.dealt if n.axis in axes)
            yield d, Affine.of(loop.var), size

    def _folds(self, buffer: str) -> list[FoldedAxis] | None:
        """Per dimension that needs room for one block only the innermost block that all its users go through, where the
        home lies behind caches, else the outermost; around a loop of which an iteration has two blocks, and outside of
        the loops along which others share elements. None for what is not private to a group, nor to the instances."""
        private = self.group.private.get(buffer)
        if not private or not private.issuperset(a for a, _ in self.plan.order[: self.plan.inner]):
            return None
        if self.plan.deals and self.group.domain is not None:  # each piece is dealt by itself
            return None
        if self.plan.outer:  # an axis may have blocks inside of blocks that instances share
            return None
        rows = next(u.index for n in self.group.nests for u in n.uses if u.buffer == buffer)
        users = self.group.users(buffer)
        between = [self.group.nests[i] for i in range(min(users), max(users) + 1)]
        if any(n.origin for n in between):
            return []
        depths, whole = dict[str, tuple[int, ...]](), set[str]()
        for depth, (axis, _) in enumerate(self.plan.order[self.plan.inner :], self.plan.inner):
            only = self.plan.only(depth)
            if only is not None and not users.issubset(only):
                if users.isdisjoint(only):
                    continue
                break  # those that lack the loop want what all its iterations make
            if axis not in private:
                if any(axis in n.extents for n in between):
                    break
            elif depth in self.plan.double_buffered or (axis in depths and not self.nested):
                whole.add(axis)
            elif axis not in whole:
                depths[axis] = (*depths.get(axis, ()), depth)
        return [FoldedAxis(d, axis, row.const, some, self._largest(axis, some)) for axis, some in depths.items()
                for d, row in enumerate(rows) if row.terms == ((axis, 1),)]  # fmt: skip

    def _largest(self, axis: str, depths: tuple[int, ...]) -> int:
        """The largest of the innermost blocks that an axis is cut into."""
        if self.group.domain is not None:  # pieces of any length
            return min(max(self.plan.order[depths[-1]][1], self.group.unit(axis)), self.group.length(axis))
        lengths = {p.size for p in self._shares(axis)} or {self.group.length(axis)}
        for depth in depths:
            lengths = {p.size for n in lengths for p in self.plan.cut(depth, n)}
        return max(lengths, default=1)

    def _shares(self, axis: str) -> tuple[Segment, ...]:
        """How an axis is dealt out; nothing where it is not."""
        block = next((n for a, n, _ in self.plan.dealt if a == axis), None)
        return () if block is None else self.plan.shares(axis, self.group.length(axis), block)

    def _share(self, loop: Loop) -> Share:
        """Which of the instances that a loop is dealt to we are on: all of the loops beside it count."""
        assert loop.deal is not None
        shares = self.parts.get(loop.axis) or self._shares(loop.axis)
        own = next(d for a, _, d in self.plan.dealt if a == loop.axis)
        before = list(accumulate((p.count for p in shares), initial=0))
        at = before.index((loop.deal.first - own.first) // own.stride)
        spans = tuple((p.count * p.size, p.size) for p in shares)
        return Share(Affine.of(loop.var) - loop.lo[0].expr, at, spans)

    def _origin(self, axis: str, start: Affine, depths: tuple[int, ...]) -> Affine:
        """The first element of the block of the axis, of what an instance has, in which ``start`` lies."""
        loop = next((n for n in self.dealt if n.axis == axis), None)
        base, length = self.box.get(axis, (Affine(), self.group.length(axis)))
        if loop is not None:
            base, length = Affine.of(loop.var), loop.step
        for depth in depths:
            base, length = self._block(depth, start, base, length)
        return base

    def _block(self, depth: int, start: Affine, base: Affine, length: int) -> tuple[Affine, int]:
        """Where the block begins in which ``start`` lies, and how long it is: of those that the loop at a depth cuts a
        stretch from ``base`` on into, or the whole stretch, where it lies in none of them."""
        variables, mine = self.scope.variables, self.plan.variable(depth)
        while (rest := start - base).terms:
            name = next((n for n in start.names if n in variables and rest.coefficient(n)), None)
            if name is None:
                return base, length
            if name == mine:
                return Affine.of(name), variables[name].step
            start = start.substitute({name: variables[name].lo})
        for part in self.plan.cut(depth, length):
            if part.start <= rest.const < part.start + part.count * part.size:
                return base + (rest.const - (rest.const - part.start) % part.size), part.size
        return base, length
