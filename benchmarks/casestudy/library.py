"""A kernel written by hand for the machine `casestudy`, from its description alone (hwdesc/casestudy/README.md).

A cluster computes blocks of ``rows`` x ``cols`` tiles of 32x32 of C, one after the other. The sums stay in registers
for the whole reduction, those of the first matrix unit in ``rc``, those of the second in ``rd``. The reduction is cut
into an even number of chunks: ``ld`` brings a chunk of B to one of two places of the scratchpad while the other is
worked on, and a chunk of A, which stays for all blocks of a panel (where all chunks fit) or lies at one of two places
like B. Tiles go to one of two sets of registers while the products read the other. Of a finished block every tile goes
out as soon as its last product is done, and the first product of the next block may take its place.

Waits are worked out on paper, below; those that follow from the order of a stream are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from isam.ir.affine import Affine
from isam.schedule.tree import Bound, Deal, Issue, Loop, Node, Operand, Place, Schedule, Seq, Tile, Wait
from isam.system.graph import System

from .problem import ADD, BYTES, NEW, OVER, cover, homes, product

T = 32  # rows and columns of a register tile
SETS = 2  # of registers for tiles, and of places for chunks
V = Affine.of
Waits = tuple[Wait, ...]


@dataclass(frozen=True, slots=True)
class Tiling:
    """A block of C in tiles. The units share the rows where there are two at least, else the columns."""

    name: str
    rows: int
    cols: int

    @property
    def steps(self) -> int:
        """Products of each unit for one step of the reduction."""
        return self.rows * self.cols // 2

    @property
    def pairs(self) -> tuple[tuple[tuple[int, int], tuple[int, int]], ...]:
        """The tiles of both units, step by step."""
        if self.rows > 1:
            return tuple(((i, j), (i + self.rows // 2, j)) for i in range(self.rows // 2) for j in range(self.cols))
        return tuple(((0, j), (0, j + self.cols // 2)) for j in range(self.cols // 2))


@dataclass(frozen=True, slots=True)
class Part:
    """What is computed: a grid of ``down`` x ``across`` clusters, each ``panels`` x ``blocks`` blocks; the reduction in
    ``chunks`` of ``length`` elements; whether a panel's chunks of A stay (``kept``)."""

    tiling: Tiling
    down: int
    across: int
    panels: int
    blocks: int
    chunks: int
    length: int
    kept: bool

    @property
    def size(self) -> tuple[int, int, int]:
        """The padded problem."""
        t = self.tiling
        return (self.down * self.panels * t.rows * T, self.across * self.blocks * t.cols * T, self.chunks * self.length)

    @property
    def places(self) -> tuple[int, int, int]:
        """Where A, B and finished blocks begin in the scratchpad; see :attr:`room`."""
        t = self.tiling
        a = (self.chunks if self.kept else SETS) * self.length * t.rows * T * BYTES["A"]
        return 0, a, a + SETS * self.length * t.cols * T * BYTES["B"]

    @property
    def room(self) -> int:
        """Bytes of the scratchpad that are used."""
        return self.places[2] + self.tiling.steps * 2 * T * T * BYTES["C"]


def written(part: Part, system: System) -> Schedule:
    """The kernel for the padded problem."""
    kernel = product(*part.size)
    how, nests = cover(kernel, system)
    return Schedule(kernel, system, how, nests, Seq(), _Writer(part, part.size).tree(), (), homes(kernel, system))


@dataclass
class _Writer:
    part: Part
    size: tuple[int, int, int]
    pairs: dict[tuple[bool, ...], Node] = field(default_factory=dict)
    chunks: dict[tuple[object, ...], Node] = field(default_factory=dict)

    def tree(self) -> Node:
        """Panels of rows and blocks of columns, dealt out. Only the last block of all goes out without another behind
        it that is under way."""
        p, t = self.part, self.part.tiling
        rows, cols = t.rows * T, t.cols * T
        tall, wide = p.panels * rows, p.blocks * cols
        last = V("jg") + (wide - cols)
        first, others = self.panel(None), self.panel((V("ib") - rows, last))
        ends = Seq(tuple(self.stores(V("ig") + (tall - rows), last)))
        panels = _loop("ib", V("ig"), V("ig") + tall, rows, others, "i", first=first, leave=ends)
        across = _loop("jg", 0, self.size[1], wide, panels, "j", deal=Deal("cluster", 0, 1))
        return _loop("ig", 0, self.size[0], tall, across, "i", deal=Deal("cluster", 0, p.across))

    def panel(self, before: tuple[Affine, Affine] | None) -> Node:
        """The blocks of a panel; the first brings its chunks of A. ``before``: the block before it."""
        p, cols = self.part, self.part.tiling.cols * T
        first = self.block(True, before)
        others = self.block(not p.kept, (V("ib"), V("jb") - cols))
        return _loop("jb", V("jg"), V("jg") + p.blocks * cols, cols, others, "j", first=first)

    def block(self, brings: bool, before: tuple[Affine, Affine] | None) -> Node:
        """Two chunks are on their way, the block before goes out, then chunk by chunk: products, and the one after the
        next is brought to where this one was. The tiles go to the scratchpad."""
        p, more = self.part, SETS * self.part.length
        head = [n for h in range(SETS) for n in self.loads(h, Affine(), brings, at_start=True)]
        head += self.stores(*before) if before else ()
        if p.chunks == SETS:
            only = self.pair(brings, True, False)
            return Seq((*head, _loop("kb", 0, more, more, only, "k"), *self.out()))
        first, body, last = (self.pair(brings, n, m) for n, m in ((True, True), (False, True), (False, False)))
        sums = _loop("kb", 0, self.size[2], more, body, "k", first=first, last=last)
        return Seq((*head, sums, *self.out()))

    def pair(self, brings: bool, new: bool, more: bool) -> Node:
        """Two chunks. ``new``: the first of a sum; ``more``: others follow."""
        key = (brings, new, more)
        if key not in self.pairs:
            parts: list[Node] = []
            for h in range(SETS):
                parts.append(self.chunk(h, brings, new and h == 0, more or h == 0))
                parts += self.loads(h, V("kb") + SETS * self.part.length, brings) if more else ()
            self.pairs[key] = Seq(tuple(parts))
        return self.pairs[key]

    def loads(self, h: int, k: Affine, brings: bool, *, at_start: bool = False) -> Iterator[Issue]:
        """Brings the chunk for place ``h`` of the pair at ``k`` once the last read of the place is done. Right before
        stand the reads of the chunk that was there last; at a block's start, for ``h`` 0, those of one more."""
        p, t = self.part, self.part.tiling
        here, later, k0 = p.length // T, int(at_start and h == 0), k + h * p.length
        if brings:  # where A is kept, all other chunks have been read since, but for those that are still to come
            chunks = (p.chunks - SETS if p.kept else 0) + later
            place = self.at("A", h, pair=k)
            yield self.box("ld", "A", V("ib"), k0, t.rows * T, p.length, place, (Wait("xa", chunks * here * t.rows),))
        after = (Wait("xb", later * here * t.cols),)
        yield self.box("ld", "B", k0, V("jb"), p.length, t.cols * T, self.at("B", h), after)

    def chunk(self, h: int, brings: bool, new: bool, ahead: bool) -> Node:
        """Products of the chunk at place ``h``. ``ahead``: the next is on its way."""
        key = (h, brings, new, ahead)
        if key not in self.chunks:
            k0 = V("kb") + h * self.part.length

            def body(new: bool) -> Node:
                return Seq(tuple(n for e in range(SETS) for n in self.step(h, e, brings, new and e == 0, ahead)))

            first = body(True) if new else None
            self.chunks[key] = _loop("k", k0, k0 + self.part.length, SETS * T, body(False), "k", first=first)
        return self.chunks[key]

    def step(self, h: int, e: int, brings: bool, new: bool, ahead: bool) -> Iterator[Issue]:
        """One step of the reduction with the register set ``e``: tiles in, products."""
        t, k = self.part.tiling, V("k") + e * T
        orders = [list(dict.fromkeys(x[own] for pair in t.pairs for x in pair)) for own in (0, 1)]
        for b, own in (("A", 0), ("B", 1)):
            before: int | None = None
            for n, x in enumerate(orders[own]):
                waits = []
                if n == 0 and e == 0 and (b == "B" or brings):  # boxes come in the order A, B, and those of the next
                    waits.append(Wait("ld", int(b == "A") + (1 + brings) * ahead))
                last = max(s for s, pair in enumerate(t.pairs) if any(y[own] == x for y in pair))
                if last != before:  # the register was read two steps of the reduction ago
                    waits.append(Wait("pair", 2 * t.steps - 1 - last))
                before = last
                at = (V("ib") + x * T, k) if b == "A" else (k, V("jb") + x * T)
                yield self.tile(b, h, at, x, e, tuple(waits))
        seen = [-1, -1]
        for s, pair in enumerate(t.pairs):
            waits = []
            for unit, own in (("xa", 0), ("xb", 1)):
                newest = max(orders[own].index(x[own]) for x in pair)
                if newest > seen[own]:
                    waits.append(Wait(unit, len(orders[own]) - 1 - newest))
                    seen[own] = newest
            if new:  # the tiles that were there have gone out
                waits += [Wait(u, t.steps - 1 - s) for u in ("xc", "xd")]
            else:
                waits.append(Wait("pair", t.steps - 1))
            for u, x in enumerate(pair):
                yield self.mma(u, s, x, e, k, new, () if u else tuple(waits))

    def mma(self, unit: int, s: int, x: tuple[int, int], e: int, k: Affine, new: bool, after: Waits) -> Issue:
        t, i, j = self.part.tiling, V("ib") + x[0] * T, V("jb") + x[1] * T
        operands = (
            _operand("A", (i, k), (T, T), _cell("ra", e * t.rows + x[0], 2)),
            _operand("B", (k, j), (T, T), _cell("rb", e * t.cols + x[1], 2)),
            _operand("C", (i, j), (T, T), _cell(("rc", "rd")[unit], s, 4)),
        )
        point, sizes = (("i", i), ("j", j), ("k", k)), (("M", T), ("N", T), ("K", T))
        name, nest = ("mma_new_bf16", NEW) if new else ("mma_bf16", ADD)
        return Issue(("mx0", "mx1")[unit], name, sizes, operands, nest, point, after, joined=unit == 1)

    def out(self) -> Iterator[Issue]:
        """A block's tiles go to the scratchpad as their sums are done and the boxes of the block before have gone."""
        t = self.part.tiling
        for s, pair in enumerate(t.pairs):
            for u, x in enumerate(pair):
                waits = [Wait("pair", t.steps - 1 - s)]
                if s % self.across == 0:  # the boxes were sent in this order
                    waits.append(Wait("st", t.rows - 1 - self.boxes.index(x[0])))
                source = _cell(("rc", "rd")[u], s, 4)
                at = (V("ib") + x[0] * T, V("jb") + x[1] * T)
                yield _move(("xc", "xd")[u], "tile", "C", at, (T, T), (source, self.stage(*x)), tuple(waits))

    def stores(self, i: Affine, j: Affine) -> Iterator[Issue]:
        """A block's rows of tiles go to main memory, each as soon as it is in the scratchpad."""
        t = self.part.tiling
        for row in self.boxes:
            units = [u for u in (0, 1) if any(pair[u][0] == row for pair in t.pairs)]
            last = max(s for s, pair in enumerate(t.pairs) if any(x[0] == row for x in pair))
            after = tuple(Wait(("xc", "xd")[u], t.steps - 1 - last) for u in units)
            yield self.box("st", "C", i + row * T, j, T, t.cols * T, self.stage(row, 0), after)

    @property
    def across(self) -> int:
        """Steps for a row of tiles, or for one row of each unit."""
        t = self.part.tiling
        return t.steps // max(1, t.rows // 2)

    @property
    def boxes(self) -> list[int]:
        """The rows of tiles in the order in which they are done."""
        return list(dict.fromkeys(x[0] for pair in self.part.tiling.pairs for x in pair))

    # -- places ------------------------------------------------------------------------------------------------------
    def at(self, b: str, h: int, i: int | Affine = 0, k: int | Affine = 0, j: int | Affine = 0, *,
           pair: Affine | None = None) -> Place:  # fmt: skip
        """An element of the chunk at place ``h`` of the ``pair`` (this one): ``i`` and ``k`` of A, ``k`` and ``j`` of
        B, counted within it."""
        p, t = self.part, self.part.tiling
        wide = (p.length if b == "A" else t.cols * T) * BYTES[b]
        down, right = (i, k) if b == "A" else (k, j)
        start = h * p.length * (t.rows if b == "A" else t.cols) * T * BYTES[b] + p.places[b == "B"]
        offset = Affine.lift(down) * wide + Affine.lift(right) * BYTES[b] + start
        if b == "A" and p.kept:
            offset = offset + (V("kb") if pair is None else pair) * (t.rows * T * BYTES[b])
        return Place("sp", "", offset, (wide, BYTES[b]))

    def stage(self, i: int, j: int) -> Place:
        """A tile of a finished block."""
        wide = self.part.tiling.cols * T * BYTES["C"]
        return Place("sp", "", Affine() + self.part.places[2] + i * T * wide + j * T * BYTES["C"], (wide, BYTES["C"]))

    # -- moves -------------------------------------------------------------------------------------------------------
    def box(self, unit: str, b: str, i: Affine, j: Affine, m: int, n: int, place: Place, after: Waits) -> Issue:
        rows = self.size[{"i": 0, "j": 1, "k": 2}[OVER[b][1]]] * BYTES[b]
        home = Place("hbm", b, i * rows + j * BYTES[b], (rows, BYTES[b]))
        ends = (home, place) if unit == "ld" else (place, home)
        return _move(unit, "box", b, (i, j), (m, n), ends, after)

    def tile(self, b: str, h: int, at: tuple[Affine, Affine], x: int, e: int, after: Waits) -> Issue:
        t, p = self.part.tiling, self.part
        inside = V("k") - V("kb") + (e * T - h * p.length)
        source = self.at("A", h, x * T, inside) if b == "A" else self.at("B", h, k=inside, j=x * T)
        per = t.rows if b == "A" else t.cols
        unit, file = ("xa", "ra") if b == "A" else ("xb", "rb")
        return _move(unit, "tile", b, at, (T, T), (source, _cell(file, e * per + x, 2)), after)


def _move(unit: str, by: str, b: str, at: tuple[Affine, Affine], shape: tuple[int, int], ends: tuple[Place, Place],
          after: Waits) -> Issue:  # fmt: skip
    operands = tuple(_operand(b, at, shape, place, name) for name, place in zip("SD", ends, strict=True))
    return Issue(unit, by, (("M", shape[0]), ("N", shape[1])), operands, after=after)


def _operand(b: str, at: tuple[Affine, ...], shape: tuple[int, ...], place: Place, name: str = "") -> Operand:
    return Operand(name or b, Tile(b, at, shape, (1,) * len(shape)), place, tuple(range(len(shape))))


def _cell(file: str, number: int, size: int) -> Place:
    return Place(file, "", Affine(), (T * size, size), number)


def _loop(var: str, lo: Affine | int, hi: Affine | int, step: int, body: Node, axis: str, *, first: Node | None = None,
          last: Node | None = None, leave: Node | None = None, deal: Deal | None = None) -> Loop:  # fmt: skip
    ends = ((Bound(Affine.lift(lo)),), (Bound(Affine.lift(hi)),))
    return Loop(var, *ends, step, body, first=first, last=last, exit=leave or Seq(), axis=axis, deal=deal)
