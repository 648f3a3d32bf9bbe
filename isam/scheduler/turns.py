"""Cells in turn: of those that are free, what is brought takes the one that calls have left alone for longest, so that
a move need not wait for a call that has only just been given to a unit.

The body of a loop names its cells once and for all: one that a call takes near the end of an iteration is taken again
by those at the begin of the next, so that the way there counts as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from isam.schedule.tree import Tile
from isam.scheduler.state import MachineState
from isam.system.graph import Memory


class Turns:
    """Of a block of so many ``calls``: when each cell was used first and last, in calls. ``now``: the present one."""

    def __init__(self, calls: int = 0):
        self.calls, self.now = calls, 0
        self._used: dict[tuple[str, int], tuple[int, int]] = {}

    def use(self, state: MachineState, tiles: Iterable[Tile]) -> None:
        """The present call uses these tiles."""
        for key in (k for t in tiles for k in state.holding(t)):
            cell = state.copies[key].place.cell
            for n in range(state.copies[key].units) if cell is not None else ():
                at = key[0], (cell or 0) + n
                self._used[at] = self._used.get(at, (self.now, 0))[0], self.now

    def find(self, state: MachineState, memory: Memory, units: int, until: int) -> int | None:
        """Where in a memory there is room for so many cells or bytes; ``until``: the last call that will use them."""
        at = state.find_room(memory, units)
        if at is None or memory.cells is None or not self.calls or self._apart(memory.name, at, units, until) == inf:
            return at
        return max(state.rooms(memory, units), key=lambda n: self._apart(memory.name, n, units, until))

    def _apart(self, memory: str, at: int, units: int, until: int) -> float:
        """The fewest calls between those that use some cells: before now, and after what is put there now."""
        used = (self._used.get((memory, at + n)) for n in range(units))
        found = (min(self.now - last, self.calls + first - until) for first, last in filter(None, used))
        return min(found, default=inf)
