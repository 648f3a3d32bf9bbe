"""An index of a buffer's tiles by where they lie: those that may meet another one are found without asking each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import product
from math import prod

from isam.ir.affine import Affine, Terms
from isam.schedule.tree import Tile
from isam.scheduler.tiles import bounds_of, disjoint

FEW = 8  # tiles that are asked one by one
Kind = tuple[tuple[Terms, int], ...]  # per dimension the variables that a tile begins at, and how far it goes
Cells = dict[tuple[int, ...], tuple[Tile, ...]]


class Near:
    """Tiles, cheap to copy. Those of one kind lie in a grid whose cells are as large as they are, by the numbers in
    what they begin at."""

    __slots__ = ("_kinds",)

    def __init__(self) -> None:
        self._kinds: dict[Kind, Cells] = {}

    def copy(self) -> Near:
        other = Near()
        other._kinds = {kind: dict(cells) for kind, cells in self._kinds.items()}
        return other

    def put(self, tile: Tile) -> None:
        cells, at = self._cell(tile)
        known = cells.get(at, ())
        if tile not in known:
            cells[at] = (*known, tile)

    def drop(self, tile: Tile) -> None:
        cells, at = self._cell(tile)
        left = tuple([t for t in cells[at] if t != tile])
        if left:
            cells[at] = left
        else:
            del cells[at]

    def meeting(self, tile: Tile, ranges: Mapping[str, tuple[int, int]]) -> Iterator[Tile]:
        """The tiles that may share an element with this one, in any order."""
        for kind, cells in self._kinds.items():
            for tiles in cells.values() if len(cells) <= FEW else self._around(kind, cells, tile, ranges):
                for t in tiles:
                    if not disjoint(t, tile, ranges):
                        yield t

    def _cell(self, tile: Tile) -> tuple[Cells, tuple[int, ...]]:
        sides = zip(tile.start, tile.shape, tile.steps, strict=True)
        kind = tuple([(s[0], max(1, (n - 1) * k + 1)) for s, n, k in sides])
        at = tuple([s[1] // far for s, (_, far) in zip(tile.start, kind, strict=True)])
        return self._kinds.setdefault(kind, {}), at

    @staticmethod
    def _around(
        kind: Kind, cells: Cells, tile: Tile, ranges: Mapping[str, tuple[int, int]]
    ) -> Iterator[tuple[Tile, ...]] | Collection[tuple[Tile, ...]]:
        """What lies in the cells that the tile reaches, and before them: what begins there may end in these."""
        sides: list[range] = []
        for (terms, far), t, m, q in zip(kind, tile.start, tile.shape, tile.steps, strict=True):
            low, high = (t[1], t[1]) if t[0] == terms else bounds_of(t - Affine(terms), ranges)
            sides.append(range((low - far + 1) // far, (high + max(0, (m - 1) * q)) // far + 1))
        if prod([s.stop - s.start for s in sides]) >= len(cells):
            return cells.values()
        return (cells[at] for at in product(*sides) if at in cells)
