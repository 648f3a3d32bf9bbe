"""How tiles fit a machine's memories: in which form, in how much room, at which strides, on which way they get there.

Nothing here depends on what lies where at the moment; everything is worked out once per memory and shape.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.tree import Place, Tile
from isam.scheduler import move as mv
from isam.scheduler.homes import Homes
from isam.scheduler.nests import Use
from isam.scheduler.places import order_of, packed, units_needed
from isam.scheduler.routes import Routes
from isam.scheduler.state import Copy, Form
from isam.system.graph import COUNTED, System

if TYPE_CHECKING:
    from isam.scheduler.hops import Hop


class Fit:
    """``routes``: the ways that are taken."""

    def __init__(self, system: System, homes: Homes, routes: Routes):
        self.system, self.homes, self.routes = system, homes, routes
        self._edges: dict[tuple[str, str], tuple[mv.Carrier, ...]] = {}
        self._units: dict[object, int] = {}
        self._forms: dict[object, Form] = {}
        self._boxes: dict[object, mv.FilledBox | None] = {}
        self._laid: dict[object, tuple[int, tuple[int, ...]]] = {}
        self.hops: dict[object, Hop | None] = {}  # what :class:`isam.scheduler.hops.Hops` found, by what it was asked
        self.direct: dict[object, list[Hop] | None] = {}
        self.filled_whole: dict[object, bool] = {}

    def placed(self, memory: str, tile: Tile, at: int, form: Form = None) -> Place:
        """The place of a tile in room of its own, which begins at a byte or cell."""
        key = (memory, tile.buffer, tile.shape, tile.steps, form)
        if key not in self._laid:
            self._laid[key] = self._lies(memory, tile, form)
        ahead, strides = self._laid[key]
        if self.system.memories[memory].cells is not None:
            return Place(memory, "", Affine((), ahead), strides, cell=at)
        return Place(memory, "", Affine((), at + ahead), strides)

    def _lies(self, memory: str, tile: Tile, form: Form) -> tuple[int, tuple[int, ...]]:
        """Where in room of its own a tile begins, and its strides, in bytes."""
        box = self.box(memory, tile, form)
        if box is None:
            return 0, packed(self.system.memories[memory], tile, self.homes.dtype(tile.buffer), 0, form).strides
        return box.ahead, tuple(s // k if s % k == 0 else s for s, k in zip(box.strides, tile.steps, strict=True))

    def copy(self, memory: str, tile: Tile, place: Place, dirty: bool, form: Form = None) -> Copy:
        """What the state is told of a tile that lies in room of its own."""
        box = self.box(memory, tile, form)
        return Copy(place, dirty, self.units(memory, tile, form), ahead=0 if box is None else box.ahead)

    def box(self, memory: str, tile: Tile, form: Form = None) -> mv.FilledBox | None:
        """What is written with a tile where only moves that fill lead to a memory; None elsewhere."""
        key = (memory, tile.buffer, tile.shape, form)
        if key not in self._boxes:
            m, dtype, order = self.system.memories[memory], self.homes.dtype(tile.buffer), order_of(tile, form)
            edges = [e for e in self.system.moves_by_edge if e[1] == memory and memory in self.system.filled]
            into = [c for e in edges for c in self.carriers_of(*e) if c.instruction.fill and mv.admits(c, dtype)]
            ways = [(c, dims) for c in into for dims in mv.assignments(c, tile, form, False)]
            alike = [(c, dims) for c, dims in ways if tuple(dims[a] for a in c.target_axes) == form]
            alike = alike or [(c, dims) for c, dims in ways if mv.lies_in_order(c, dims, order)]
            found = [b for c, dims in alike if (b := mv.filled_box(c, dims, tile, size_of(dtype))) is not None]
            found = [b for b in found if m.cells is not None or b.ahead % max(1, m.align) == 0]
            self._boxes[key] = min(found, key=lambda b: b.bytes, default=None)
        return self._boxes[key]

    def free(self, memory: str, tile: Tile, form: Form = None) -> tuple[int, int] | None:
        """Bytes around a tile, from its first element, that are its own in such a memory, or in whole registers."""
        box, m = self.box(memory, tile, form), self.system.memories[memory]
        if m.kind == COUNTED:
            return 0, self.units(memory, tile, form) * (m.cell or 1)
        if box is None:
            return None
        return -box.ahead, self.units(memory, tile, form) * (m.cell or 1 if m.cells is not None else 1) - box.ahead

    def form(self, memory: str, tile: Tile, dims: tuple[int | None, ...],
             strides: tuple[int | None, ...] = ()) -> Form:  # fmt: skip
        """As :func:`isam.scheduler.move.form_of`, worked out once for tiles of one shape."""
        key = (memory, tile.shape, dims, strides)
        if key not in self._forms:
            self._forms[key] = mv.form_of(self.system, memory, tile, dims, strides)
        return self._forms[key]

    def units(self, memory: str, tile: Tile, form: Form = None) -> int:
        key = (memory, tile.buffer, tile.shape, tile.steps, form)
        known = self._units.get(key)
        if known is None:
            m, dtype, box = self.system.memories[memory], self.homes.dtype(tile.buffer), self.box(memory, tile, form)
            known = units_needed(m, tile, dtype, form)
            if box is not None:
                grain = (m.cell if m.cells is not None else m.row) or 1
                known = -(-box.bytes // grain) * (1 if m.cells is not None else grain)
            self._units[key] = known
        return known

    def roomy(self, operands: Iterable[tuple[Use, Tile, str]]) -> bool:
        """Whether these operands, each with what it covers and where it is to lie, fit together, everything else
        evicted, and in rows where there are some, along whichever dimension these go. What is read keeps its place
        while the same tile is written to another."""
        demand: dict[str, list[int]] = {}
        for memory, tile, _ in {(m, t, u.writes and not u.reads) for u, t, m in operands}:
            row = self.system.memories[memory].row
            if row and tile.shape and min(tile.shape) * size_of(self.homes.dtype(tile.buffer)) > row:
                return False
            if memory != self.system.home:
                demand.setdefault(memory, []).append(self.units(memory, tile))
        return all(self._together(memory, sizes) for memory, sizes in demand.items())

    def _together(self, memory: str, sizes: list[int]) -> bool:
        """Whether so much has room side by side: where bytes are addressed, each begins at a multiple; the last one may
        end anywhere."""
        m = self.system.memories[memory]
        grain = max(1, m.align) if m.cells is None else 1
        ends = [-n % grain for n in sizes]
        return sum(sizes) + sum(ends) - min(ends) <= m.limit

    def carriers_of(self, source: str, target: str) -> tuple[mv.Carrier, ...]:
        """The move instructions on one edge, taken apart once."""
        if (source, target) not in self._edges:
            self._edges[source, target] = mv.carriers(self.system, source, target)
        return self._edges[source, target]

    def alike(self, c: mv.Carrier) -> tuple[mv.Carrier, ...]:
        """The carriers on its edge that differ from it in nothing but who issues them, itself among them."""
        return tuple(o for o in self.carriers_of(c.move.source, c.move.target) if o.move.by == c.move.by)

    def route(self, source: str, target: str, dtype: str) -> tuple[str, ...] | None:
        """The way between two memories that elements of a type take."""
        return self.routes.of(source, target, dtype)
