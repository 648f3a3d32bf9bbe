"""Element-wise kernels written by hand for the machine `casestudy`, from its description alone, beside the products.

A cluster computes a box of whole 32x32 tiles (of rows, where there is one row). The boxes of the sources are asked
for first, a row of tiles each; tiles go to ``rc`` and ``rd``, where the vector unit reads them, the results of it go
to other cells of ``rc``, to the scratchpad, and home as soon as a row of tiles is done. The tiles of the next call
are brought while the vector unit works. Waits are worked out on paper; those that follow from the order of a stream
are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover, Mapping, OperandMap
from isam.ir.normal import normal_form
from isam.ir.text import parse_kernel
from isam.schedule.tree import Bound, Deal, Issue, Loop, Nest, Node, Operand, Place, Schedule, Seq, Tile, Wait
from isam.system.graph import System

T = 32  # rows and columns of a register tile
CLUSTERS = 24
CELLS = 8  # of ``rc`` for sources, and as many for results
BYTES = {"f32": 4, "bf16": 2}
V = Affine.of


@dataclass(frozen=True, slots=True)
class Op:
    """``value`` of a result's element; what computes it on tiles, and on the one row that there is. ``row``: the second
    source is one row for all."""

    name: str
    value: str
    tiles: str
    vectors: str
    sources: int = 2
    row: bool = False
    to: str = "f32"


ADD = Op("add", "A[i, j] + B[i, j]", "t_add_tt_f32", "v_add_vv_f32")
SUB = Op("sub", "A[i, j] - B[i, j]", "t_sub_tt_f32", "v_sub_vv_f32")
MUL = Op("mul", "A[i, j] * B[i, j]", "t_mul_tt_f32", "v_mul_vv_f32")
BIAS = Op("bias", "A[i, j] + B[j]", "t_add_tr_f32", "v_add_vv_f32", row=True)
SIGMOID = Op("sigmoid", "sigmoid(A[i, j])", "t_sigmoid", "v_sigmoid", 1)
TANH = Op("tanh", "tanh(A[i, j])", "t_tanh", "v_tanh", 1)
CAST = Op("cast", "bf16(A[i, j])", "c_t_f32_bf16", "c_v_f32_bf16", 1, to="bf16")
OPS = (ADD, SUB, MUL, BIAS, SIGMOID, TANH, CAST)


@dataclass(frozen=True, slots=True)
class Grid:
    """``down`` x ``across`` clusters, each with ``rows`` x ``cols`` tiles; one row of elements where ``single``."""

    down: int
    across: int
    rows: int
    cols: int
    single: bool = False

    @property
    def size(self) -> tuple[int, int]:
        """The padded problem."""
        return 1 if self.single else self.down * self.rows * T, self.across * self.cols * T


def grids(m: int, n: int) -> Iterator[Grid]:
    """Ways to deal out the tiles of a problem: all rows to each cluster, or a row of tiles to clusters of its own."""
    tall, wide = ceil(m / T), ceil(n / T)
    for down in dict.fromkeys((1, min(tall, CLUSTERS))):
        cols = ceil(wide / (CLUSTERS // down))
        yield Grid(down, ceil(wide / cols), ceil(tall / down), cols, m == 1)


def kernel(op: Op, m: int, n: int) -> Kernel:
    """The operation at one size."""
    b = {0: "", 1: f"  in  B: f32[{'N' if op.row else 'M, N'}]\n"}[op.sources - 1]
    text = f"kernel {op.name}(M, N)\n  in  A: f32[M, N]\n{b}  out D: {op.to}[M, N]\n  forall i < M, j < N\n"
    return normal_form(parse_kernel(f"{text}    D[i, j] = {op.value}\n").with_sizes({"M": m, "N": n}))


def written(op: Op, grid: Grid, system: System) -> Schedule:
    """The kernel for the padded problem."""
    m, n = grid.size
    k = kernel(op, m, n)
    name = op.vectors if grid.single else op.tiles
    over = {"A": ("i", "j"), "B": ("j",) if op.row else ("i", "j"), "D": ("i", "j")}
    buffers = [b.name for b in k.arguments]
    dims = {b: tuple(d for d, a in enumerate(over[b]) if not grid.single or a == "j") for b in buffers}
    operands = tuple(OperandMap(b, b, tuple(map(V, over[b])), dims[b], (1,) * len(dims[b])) for b in buffers)
    axes, outer = ((("j", "j"),), ("i",)) if grid.single else ((("i", "i"), ("j", "j")), ())
    mapping = Mapping(system.instructions[name], (0,), operands, axes, outer, statement_map=((0, 0),))
    nests = (Nest(0, (("i", Affine((), m)), ("j", Affine((), n)))),)
    homes = {b: Place(system.home, b, Affine(), _strides(op, b, n)) for b in buffers}
    return Schedule(k, system, Cover(k, k, (mapping,)), nests, Seq(), _Writer(op, grid, name).tree(), (), homes)


def _strides(op: Op, b: str, wide: int) -> tuple[int, ...]:
    size = BYTES[op.to if b == "D" else "f32"]
    return (size,) if op.row and b == "B" else (wide * size, size)


@dataclass(frozen=True, slots=True)
class _Writer:
    op: Op
    grid: Grid
    instruction: str

    @property
    def tall(self) -> int:
        """Rows of a tile."""
        return 1 if self.grid.single else T

    def tree(self) -> Node:
        g = self.grid
        m, n = g.size
        across = _loop("jg", n, g.cols * T, Seq(tuple(self.part())), Deal("cluster", 0, 1))
        return _loop("ig", m, g.rows * self.tall, across, Deal("cluster", 0, g.across))

    def part(self) -> Iterator[Issue]:
        """What one cluster does: every tile but the first is brought before the one before it is worked on."""
        g, op = self.grid, self.op
        for r in range(g.rows):
            yield self.load("A", r)
            if op.sources > 1 and (r == 0 or not op.row):
                yield self.load("B", r)
        count = g.rows * g.cols
        yield from self.bring(0)
        for k in range(count):
            if k + 1 < count:
                yield from self.bring(k + 1)
            yield self.compute(k, count)
            yield self.out(k)
            if (k + 1) % g.cols == 0:
                yield self.store(k // g.cols)

    def bring(self, k: int) -> Iterator[Issue]:
        """Tile ``k`` of the sources, once its row of tiles is there and the call before that used the cell is done."""
        op, rows = self.op, self.grid.rows
        r = k // self.grid.cols
        loads = rows if op.sources == 1 else rows + 1 if op.row else 2 * rows
        free = (Wait("vec", CELLS - 2),) if k >= CELLS else ()
        for b, unit in list(zip("AB", ("xc", "xd"), strict=True))[: op.sources]:
            nth = r if op.sources == 1 else (r + (r > 0) if b == "A" else 1) if op.row else 2 * r + (b == "B")
            tile = self.tile(b, k)
            place = _cell(unit, k % CELLS, BYTES["f32"], len(tile.shape))
            yield _move(unit, "tile", tile, (self.near(b, k), place), (Wait("ld", loads - 1 - nth), *free))

    def compute(self, k: int, count: int) -> Issue:
        """Behind tile ``k`` on ``xc`` stand the result before it and the tile after it."""
        ahead = int(k + 1 < count)
        after = [Wait("xc", int(k > 0) + ahead)]
        places = {"A": _cell("xc", k % CELLS, 4), "B": _cell("xd", k % CELLS, 4, 1 if self.op.row else 2),
                  "D": _cell("xc", CELLS + k % CELLS, BYTES[self.op.to])}  # fmt: skip
        if self.op.sources > 1:
            after.append(Wait("xd", ahead))
        names = [*"AB"[: self.op.sources], "D"]
        operands = tuple(Operand(b, self.tile(b, k), places[b], self.dims(b)) for b in names)
        i, j = self.at(k)
        sizes = (("J", T),) if self.grid.single else (("M", T), ("N", T))
        return Issue("vec", self.instruction, sizes, operands, 0, (("i", i), ("j", j)), tuple(after))

    def out(self, k: int) -> Issue:
        source = _cell("xc", CELLS + k % CELLS, BYTES[self.op.to])
        return _move("xc", "tile", self.tile("D", k), (source, self.near("D", k)), (Wait("vec", 0),))

    # -- boxes and tiles ---------------------------------------------------------------------------------------------
    def dims(self, b: str) -> tuple[int, ...]:
        return (0,) if self.op.row and b == "B" else (1,) if self.grid.single else (0, 1)

    def at(self, k: int) -> tuple[Affine, Affine]:
        r, c = divmod(k, self.grid.cols)
        return V("ig") + r * self.tall, V("jg") + c * T

    def tile(self, b: str, k: int) -> Tile:
        i, j = self.at(k)
        return Tile(b, (j,), (T,), (1,)) if self.op.row and b == "B" else Tile(b, (i, j), (self.tall, T), (1, 1))

    def box(self, b: str, r: int) -> Tile:
        """A row of tiles."""
        i, j, wide = V("ig") + r * self.tall, V("jg"), self.grid.cols * T
        return Tile(b, (j,), (wide,), (1,)) if self.op.row and b == "B" else Tile(b, (i, j), (self.tall, wide), (1, 1))

    def near(self, b: str, k: int, whole: bool = False) -> Place:
        """A tile in the scratchpad, or the row of tiles that begins there."""
        r, c = divmod(k, self.grid.cols)
        size, wide = BYTES[self.op.to if b == "D" else "f32"], self.grid.cols * T
        box = self.tall * wide * BYTES["f32"]
        strides = (size,) if self.op.row and b == "B" else (wide * size, size)
        r = 0 if self.op.row and b == "B" else r
        begin = "ABD".index(b) * self.grid.rows * box + r * box
        return Place("sp", "", Affine((), begin + (0 if whole else c * T * size)), strides)

    def home(self, b: str, r: int) -> Place:
        strides = _strides(self.op, b, self.grid.size[1])
        at = Affine()
        for s, k in zip(self.box(b, r).start, strides, strict=True):
            at = at + s * k
        return Place("hbm", b, at, strides)

    def load(self, b: str, r: int) -> Issue:
        return _move("ld", "box", self.box(b, r), (self.home(b, r), self.near(b, r * self.grid.cols, whole=True)), ())

    def store(self, r: int) -> Issue:
        ends = (self.near("D", r * self.grid.cols, whole=True), self.home("D", r))
        return _move("st", "box", self.box("D", r), ends, (Wait("xc", 0),))


def _move(unit: str, by: str, tile: Tile, ends: tuple[Place, Place], after: tuple[Wait, ...]) -> Issue:
    dims = tuple(range(len(tile.shape))) if len(tile.shape) > 1 else (None, 0)
    operands = tuple(Operand(name, tile, place, dims) for name, place in zip("SD", ends, strict=True))
    shape = tile.shape if len(tile.shape) > 1 else (1, *tile.shape)
    return Issue(unit, by, (("M", shape[0]), ("N", shape[1])), operands, after=after)


def _cell(unit: str, number: int, size: int, rank: int = 2) -> Place:
    return Place({"xc": "rc", "xd": "rd"}[unit], "", Affine(), (T * size, size)[2 - rank :], number)


def _loop(var: str, end: int, step: int, body: Node, deal: Deal) -> Loop:
    return Loop(var, (Bound(Affine()),), (Bound(Affine((), end)),), step, body, axis=var[0], deal=deal)
