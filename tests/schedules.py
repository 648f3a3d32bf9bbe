"""Small schedules written by hand, for tests of whatever consumes schedules (no parser, mapper or scheduler needed)."""

from __future__ import annotations

from isam.ir.affine import Affine
from isam.ir.instruction import Cost, Instruction, OperandContract
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Literal, Statement, Sym
from isam.ir.mapping import Cover, Mapping, OperandMap
from isam.schedule.tree import Bound, Issue, Loop, Nest, Node, Operand, Place, Schedule, Seq, Slot, Tile
from isam.scheduler.waits import with_waits
from isam.system.graph import Memory, Move, System, Unit

A_, I_, J_, K_ = Affine.lift, Affine.of("i"), Affine.of("j"), Affine.of("k")


def shape(*sizes: int | str) -> tuple[Affine, ...]:
    return tuple(map(Affine.lift, sizes))


def domain(**axes: int | str) -> Domain:
    return Domain(tuple(Axis(n, Affine.lift(e)) for n, e in axes.items()))


def matmul_kernel(m: int | str, n: int | str, k: int | str, dtype: str = "f32") -> Kernel:
    """C = A B in three-operand form: C = 0; T = A * B; C += T."""
    buffers = (
        Buffer("A", shape(m, k), dtype, "in"), Buffer("B", shape(k, n), dtype, "in"),
        Buffer("C", shape(m, n), dtype, "out"), Buffer("T", shape(m, n, k), dtype, "temp", False),
    )  # fmt: skip
    box = domain(i=m, j=n, k=k)
    c, t = Access("C", (I_, J_)), Access("T", (I_, J_, K_))
    body = (
        Statement(domain(i=m, j=n), c, "copy", (Literal(0),)),
        Statement(box, t, "mul", (Access("A", (I_, K_)), Access("B", (K_, J_)))),
        Statement(box, c, "add", (t,), accumulate=True),
    )
    syms = tuple(Sym(s) for s in (m, n, k) if isinstance(s, str))
    return Kernel("matmul", syms, buffers, body)


def mm4() -> Instruction:
    """C += A B on blocks of up to 4x4x4."""
    box = domain(i="M", j="N", k="K")
    c, t = Access("C", (I_, J_)), Access("t", (I_, J_, K_))
    body = Kernel(
        "mm4", (Sym("M", 0, 4), Sym("N", 0, 4), Sym("K", 0, 4)),
        (Buffer("A", shape("M", "K"), "f32", "in"), Buffer("B", shape("K", "N"), "f32", "in"),
         Buffer("C", shape("M", "N"), "f32", "inout"), Buffer("t", shape("M", "N", "K"), "f32", "temp", False)),
        (Statement(box, t, "mul", (Access("A", (I_, K_)), Access("B", (K_, J_)))),
         Statement(box, c, "add", (t,), accumulate=True)),
    )  # fmt: skip
    homes = {o: OperandContract(("ra", "rb")) for o in "ABC"}
    return Instruction("mm4", body, homes, (("A", "B"),), Cost(4, 12))


def zero4() -> Instruction:
    """C = 0 on a block of up to 4x4."""
    body = Kernel(
        "zero4", (Sym("M", 0, 4), Sym("N", 0, 4)), (Buffer("C", shape("M", "N"), "f32", "out"),),
        (Statement(domain(i="M", j="N"), Access("C", (I_, J_)), "copy", (Literal(0),)),),
    )  # fmt: skip
    return Instruction("zero4", body, {"C": OperandContract(("ra", "rb"))}, (), Cost(1, 1))


def copy() -> Instruction:
    """D = S, a move of a two-dimensional tile."""
    body = Kernel(
        "copy", (Sym("M"), Sym("N")),
        (Buffer("S", shape("M", "N"), "any", "in"), Buffer("D", shape("M", "N"), "any", "out")),
        (Statement(domain(i="M", j="N"), Access("D", (I_, J_)), "copy", (Access("S", (I_, J_)),)),),
    )  # fmt: skip
    return Instruction("copy", body, {}, (), Cost(setup=10, bandwidth=16))


def tiny() -> System:
    """The machine of the language's examples, with an instruction that zeroes a block."""
    memories = (
        Memory("dram", "managed", 2**30, home=True), Memory("sp", "managed", 16 * 1024, align=16),
        Memory("ra", "managed", 512, cells=8, cell=64), Memory("rb", "managed", 512, cells=8, cell=64),
    )  # fmt: skip
    edges = [("dram", "sp"), ("sp", "dram"), ("sp", "ra"), ("ra", "sp"), ("sp", "rb"), ("rb", "sp")]
    return System(
        "tiny", {m.name: m for m in memories},
        {"mm": Unit("mm", ("mm4", "zero4"), 1e9), "dma": Unit("dma", ("copy",), 1e9)},
        tuple(Move(s, t, "copy", "dma") for s, t in edges), {i.name: i for i in (mm4(), zero4(), copy())},
    )  # fmt: skip


def place(memory: str, cell_or_offset: int = 0, strides: tuple[int, ...] = (16, 4)) -> Place:
    """In a register file a cell, in the scratchpad an address."""
    if memory in ("ra", "rb"):
        return Place(memory, "", Affine(), strides, cell_or_offset)
    return Place(memory, "", A_(cell_or_offset), strides)


def at_home(schedule_strides: dict[str, tuple[int, ...]], tile: Tile) -> Place:
    strides = schedule_strides[tile.buffer]
    offset = Affine()
    for s, k in zip(tile.start, strides, strict=True):
        offset = offset + s * k
    return Place("dram", tile.buffer, offset, strides)


def box(buffer: str, start: tuple[Affine | int, ...], extents: tuple[int, ...]) -> Tile:
    return Tile(buffer, tuple(map(A_, start)), extents, (1,) * len(extents))


def move(tile: Tile, source: Place, target: Place) -> Issue:
    sizes = (("M", tile.shape[0]), ("N", tile.shape[1]))
    return Issue("dma", "copy", sizes, (Operand("S", tile, source, (0, 1)), Operand("D", tile, target, (0, 1))))


def loop(var: str, lo: int, hi: int, step: int, body: Node, **parts: Node) -> Loop:
    return Loop(var, (Bound(A_(lo)),), (Bound(A_(hi)),), step, body, axis=var, **parts)


def blocks(extent: int, step: int = 4) -> list[tuple[int, int, int]]:
    """``(lo, hi, step)``: the full blocks, then the rest as a sibling."""
    cut = extent - extent % step
    return ([(0, cut, step)] if cut else []) + ([(cut, extent, extent - cut)] if cut < extent else [])


def matmul_cover(kernel: Kernel) -> Cover:
    c = OperandMap("C", "C", (I_, J_), (0, 1), (1, 1))
    zero = Mapping(zero4(), (0,), (c,), (("i", "i"), ("j", "j")), (), statement_map=((0, 0),))
    product = Mapping(
        mm4(), (1, 2),
        (OperandMap("A", "A", (I_, K_), (0, 1), (1, 1)), OperandMap("B", "B", (K_, J_), (0, 1), (1, 1)), c),
        (("i", "i"), ("j", "j"), ("k", "k")), (), statement_map=((0, 1), (1, 2)),
    )  # fmt: skip
    return Cover(kernel, kernel, (zero, product))


def matmul_on_tiny(m: int, n: int, k: int, pipelined: bool = False) -> Schedule:
    """C = A B in 4x4x4 blocks: C stays in ``ra[1]`` while k runs, then goes home through the scratchpad.

    ``pipelined``: the block of A for the next step is fetched at the end of this one (a ``last`` body without the
    fetch); needs k to be a multiple of 4.
    """
    kernel = matmul_kernel(m, n, k)
    strides = {"A": (4 * k, 4), "B": (4 * n, 4), "C": (4 * n, 4)}

    def fetch(tile: Tile, to: Place, via: int) -> list[Issue]:
        sp = place("sp", via)
        return [move(tile, at_home(strides, tile), sp), move(tile, sp, to)]

    def product(mm: int, nn: int, kk: int) -> Issue:
        c, a, b = box("C", (I_, J_), (mm, nn)), box("A", (I_, K_), (mm, kk)), box("B", (K_, J_), (kk, nn))
        operands = (Operand("A", a, place("ra", 0), (0, 1)), Operand("B", b, place("rb", 0), (0, 1)),
                    Operand("C", c, place("ra", 1), (0, 1)))  # fmt: skip
        return Issue("mm", "mm4", (("K", kk), ("M", mm), ("N", nn)), operands, 1, (("i", I_), ("j", J_), ("k", K_)))

    def reduction(mm: int, nn: int) -> list[Node]:
        if pipelined:
            enter = fetch(box("A", (I_, 0), (mm, 4)), place("ra", 0), 0)
            following = fetch(box("A", (I_, K_ + 4), (mm, 4)), place("ra", 0), 0)
            last = Seq((*fetch(box("B", (K_, J_), (4, nn)), place("rb"), 64), product(mm, nn, 4)))
            return [loop("k", 0, k, 4, Seq((*last.children, *following)), enter=Seq(tuple(enter)), last=last)]
        loops: list[Node] = []
        for lo, hi, kk in blocks(k):
            parts = fetch(box("A", (I_, K_), (mm, kk)), place("ra", 0), 0)
            parts += fetch(box("B", (K_, J_), (kk, nn)), place("rb", 0), 64)
            loops.append(loop("k", lo, hi, kk, Seq((*parts, product(mm, nn, kk)))))
        return loops

    def block(mm: int, nn: int) -> Seq:
        c = box("C", (I_, J_), (mm, nn))
        clear = Issue("mm", "zero4", (("M", mm), ("N", nn)), (Operand("C", c, place("ra", 1), (0, 1)),), 0,
                      (("i", I_), ("j", J_)))  # fmt: skip
        out = [move(c, place("ra", 1), place("sp", 128)), move(c, place("sp", 128), at_home(strides, c))]
        return Seq((clear, *reduction(mm, nn), *out))

    rows = [loop("i", *bi, Seq(tuple(loop("j", *bj, block(bi[2], bj[2])) for bj in blocks(n)))) for bi in blocks(m)]
    homes = {b: Place("dram", b, Affine(), s) for b, s in strides.items()}
    nests = (Nest(0, (("i", A_(m)), ("j", A_(n)))), Nest(1, (("i", A_(m)), ("j", A_(n)), ("k", A_(k)))))
    slots: tuple[Slot, ...] = ()
    return with_waits(Schedule(kernel, tiny(), matmul_cover(kernel), nests, Seq(), Seq(tuple(rows)), slots, homes))
