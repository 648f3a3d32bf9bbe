"""The calls of the innermost block, as they are carried out: which tiles they use, and when each is used again."""

from __future__ import annotations

from collections.abc import Sequence

from isam.schedule.tree import Tile
from isam.scheduler.nests import Call, Nest, Use
from isam.scheduler.state import MachineState
from isam.scheduler.turns import Turns


class BlockCalls:
    """``calls``: of a block, in order; none: we are in no block. ``wider``: where the block is ``clipped``, of tiles
    that they read the longer ones that begin with them, which are used together with them. ``turns``: which cells they
    use, where ``several`` units do."""

    def __init__(self, calls: Sequence[Call] = (), *, clipped: bool = False, several: bool = False):
        self.wider = _wider(calls) if clipped else {}
        self.turns = Turns(len(calls) if several else 0)
        self._used = [dict.fromkeys(t for own in tiles for t in (own, self.wider.get(own)) if t is not None)
                      for _, _, _, tiles in calls]  # fmt: skip
        self._later: dict[Tile, list[int]] = {}  # the next one last
        for at, tiles in reversed(list(enumerate(self._used))):
            for t in tiles:
                self._later.setdefault(t, []).append(at)
        self._begun = 0
        self._calls, self._results = calls, dict[tuple[int, str], list[Tile]]()

    def results(self, nest: Nest, use: Use) -> list[Tile]:
        """What all calls of a nest write of an operand, each tile once."""
        key = id(nest), use.name
        if key not in self._results:
            at = nest.uses.index(use)
            self._results[key] = [*dict.fromkeys(tiles[at] for n, _, _, tiles in self._calls if n is nest)]
        return self._results[key]

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
