"""The calls of the innermost block, as they are carried out: which tiles they use, and when each is used again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from isam.schedule.tree import Tile
from isam.scheduler.nests import Call, Nest, Use
from isam.scheduler.state import Key, MachineState
from isam.scheduler.tiles import disjoint
from isam.scheduler.turns import Turns


class BlockCalls:
    """``calls``: of a block, in order; none: we are in no block. ``wider``: where the block is ``clipped``, of tiles
    that they read the longer ones that begin with them, which are used together with them. ``turns``: which cells they
    use, where ``several`` units do. ``onward``: whether other nests of the group use a buffer."""

    def __init__(self, calls: Sequence[Call] = (), *, clipped: bool = False, several: bool = False,
                 onward: Callable[[str], bool] = lambda _: False):  # fmt: skip
        self.wider = _wider(calls) if clipped else {}
        self.turns = Turns(len(calls) if several else 0)
        self._used = [dict.fromkeys(t for own in tiles for t in (own, self.wider.get(own)) if t is not None)
                      for _, _, _, tiles in calls]  # fmt: skip
        self._later: dict[Tile, list[int]] = {}  # the next one last
        for at, tiles in reversed(list(enumerate(self._used))):
            for t in tiles:
                self._later.setdefault(t, []).append(at)
        self._begun = 0
        self.promised: dict[Key, int] = {}  # where room for results to come begins
        self.calls, self.onward = calls, onward
        self.waited_for: bool | None = None  # whether calls wait for what they are brought; None: nobody asked
        self._firsts: dict[str, _First] = {}  # by buffer
        self._changed: dict[Tile, int] = {}  # the last call that may write a part of it before it is used; -1: none
        self._results: dict[tuple[int, str], list[Tile]] = {}  # by nest and operand

    def results(self, nest: Nest, use: Use) -> list[Tile]:
        """What all calls of a nest write of an operand, each tile once."""
        key = nest.number, use.name
        if key not in self._results:
            at = nest.uses.index(use)
            self._results[key] = [*dict.fromkeys(tiles[at] for n, _, _, tiles in self.calls if n is nest)]
        return self._results[key]

    def read_ahead(self, tile: Tile, use: Use) -> list[Tile]:
        """The tiles of a buffer that calls from the present one on use first, and read as this one is read."""
        used, now = self._first(tile.buffer).used, self.turns.now
        return [t for t, (at, u) in used.items() if at >= now and u.reads and _alike(u, use)]

    def changes(self, tile: Tile, ranges: Mapping[str, tuple[int, int]]) -> bool:
        """Whether a call from the present one on, before the first that uses a tile, may write a part of it."""
        if tile not in self._changed:
            first = self._first(tile.buffer)
            until, _ = first.used[tile]
            mine = (at for at, t in reversed(first.written) if at < until and not disjoint(tile, t, ranges))
            self._changed[tile] = next(mine, -1)
        return self._changed[tile] >= self.turns.now

    def written_ahead(self, tile: Tile, use: Use) -> list[Tile]:
        """The tiles of a buffer that calls from the present one on write anew, as this one is written."""
        now = self.turns.now
        return [t for t, (at, u) in self._first(tile.buffer).made.items() if at >= now and _alike(u, use)]

    def firsts(self) -> Iterator[tuple[Tile, Use, bool]]:
        """What the calls find and what they leave: a tile, the operand that it is, whether it is read. Not what they
        leave to one another, nor sums, which the next block may go on with."""
        buffers = dict.fromkeys(t.buffer for _, _, _, tiles in self.calls for t in tiles)
        sums = {u.buffer for nest, _, _, _ in self.calls if nest.reduced for u in nest.uses if u.writes}
        for buffer in buffers:
            first = self._first(buffer)
            written, handed = {t for _, t in first.written}, any(u.reads and not u.writes for _, u in first.all)
            for t, (_, u) in first.used.items():
                if u.reads:
                    yield t, u, True
                if t in written and not (handed or buffer in sums or self.onward(buffer)):
                    yield t, u, False

    def _first(self, buffer: str) -> _First:
        """When tiles of a buffer are used first, and which are written when."""
        if buffer not in self._firsts:
            found = self._firsts[buffer] = _First({}, {}, [], [])
            for at, (nest, _, _, tiles) in enumerate(self.calls):
                for u, t in zip(nest.uses, tiles, strict=True):
                    if t.buffer == buffer:
                        found.used.setdefault(t, (at, u))
                        if u.writes and not u.reads:
                            found.made.setdefault(t, (at, u))
                        found.written.extend([(at, t)] if u.writes else [])
                        found.all.append((t, u))
        return self._firsts[buffer]

    def next_use(self, tile: Tile) -> int | None:
        """The next of the calls to come that uses a tile."""
        uses = self._later.get(tile)
        return uses[-1] if uses else None

    def last_use(self, tile: Tile) -> int | None:
        """The last of the calls to come that uses a tile."""
        uses = self._later.get(tile)
        return uses[0] if uses else None

    def begin(self, count: int) -> range:
        """The next calls, so many that start together; those to come are the ones behind them."""
        calls = range(self._begun, self._begun + count)
        self.turns.now, self._begun = calls.start, calls.stop
        for t in (t for at in calls for t in self._used[at]):
            self._later[t].pop()
        return calls

    def end(self, calls: range, state: MachineState) -> list[Tile]:
        """These calls are over; the tiles that none behind them uses."""
        used = [t for at in calls for t in self._used[at]]
        if self.turns.calls:
            self.turns.use(state, used)
        return [t for t in dict.fromkeys(reversed(used)) if not self._later[t]][::-1]


class _First(NamedTuple):
    """Of tiles of a buffer: the first call that uses each, and that makes each anew, with how; which calls write which;
    how each is used."""

    used: dict[Tile, tuple[int, Use]]
    made: dict[Tile, tuple[int, Use]]
    written: list[tuple[int, Tile]]
    all: list[tuple[Tile, Use]]


def _alike(one: Use, two: Use) -> bool:
    """Whether two operands may lie in the same memories, in the same way."""
    return (one.homes, one.dims, one.strides) == (two.homes, two.dims, two.strides)


def _wider(calls: Sequence[Call]) -> dict[Tile, Tile]:
    """Of what calls read and none writes, which tile is the beginning of which longer one."""
    read, written = dict[Tile, None](), set[str]()
    for nest, _, _, tiles in calls:
        for u, t in zip(nest.uses, tiles, strict=True):
            if u.writes:
                written.add(t.buffer)
            else:
                read[t] = None
    longest: dict[object, Tile] = {}
    for t in sorted(read, key=lambda t: -sum(t.shape)):
        longest.setdefault((t.buffer, t.start, t.steps), t)
    found = ((t, longest[t.buffer, t.start, t.steps]) for t in read if t.buffer not in written)
    return {t: w for t, w in found if sum(a != b for a, b in zip(t.shape, w.shape, strict=True)) == 1}
