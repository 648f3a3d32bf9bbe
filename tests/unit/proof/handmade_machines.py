"""Kernels and machines written down value by value, for schedules made by hand."""

from __future__ import annotations

from isam.ir.affine import Affine
from isam.ir.instruction import Instruction, OperandContract
from isam.ir.kernel import PERMITS_DEFAULT, Access, Axis, Buffer, Domain, Kernel, Literal, Statement, Sym
from isam.system.graph import Memory, Move, System, Unit

V = Affine.of


def lit(n: int | Affine | str) -> Affine:
    return Affine.lift(n)


def acc(buffer: str, *index: int | Affine | str) -> Access:
    return Access(buffer, tuple(lit(i) for i in index))


def dom(**extents: int | Affine | str) -> Domain:
    return Domain(tuple(Axis(n, lit(e)) for n, e in extents.items()))


def buf(name: str, role: str, *shape: int | Affine | str, dtype: str = "f32") -> Buffer:
    return Buffer(name, tuple(lit(s) for s in shape), dtype, role)


def kern(
    name: str, buffers: list[Buffer], body: list, syms: tuple[Sym, ...] = (), permits: frozenset[str] = frozenset()
) -> Kernel:
    return Kernel(name, syms, tuple(buffers), tuple(body), permits)


def sizes(**hi: int | None) -> tuple[Sym, ...]:
    return tuple(Sym(n, 0, h) for n, h in hi.items())


# kernels -------------------------------------------------------------------------------------------------------------
def matmul(m: int, n: int, k: int, const: bool = False, permits: frozenset[str] = PERMITS_DEFAULT) -> Kernel:
    ij, ijk = dom(i=m, j=n), dom(i=m, j=n, k=k)
    return kern(
        "matmul",
        [
            buf("A", "in", m, k),
            buf("B", "const" if const else "in", k, n),
            buf("C", "out", m, n),
            buf("T", "temp", m, n, k),
        ],
        [
            Statement(ij, acc("C", "i", "j"), "copy", (Literal(0),)),
            Statement(ijk, acc("T", "i", "j", "k"), "mul", (acc("A", "i", "k"), acc("B", "k", "j"))),
            Statement(ijk, acc("C", "i", "j"), "add", (acc("T", "i", "j", "k"),), True),
        ],
        permits=permits,
    )


# machines ------------------------------------------------------------------------------------------------------------
def mm_body(name: str, **hi: int | None) -> Kernel:
    d = dom(i="M", j="N", k="K")
    return kern(
        name,
        [
            buf("A", "in", "M", "K"),
            buf("B", "in", "K", "N"),
            buf("C", "inout", "M", "N"),
            buf("T", "temp", "M", "N", "K"),
        ],
        [
            Statement(d, acc("T", "i", "j", "k"), "mul", (acc("A", "i", "k"), acc("B", "k", "j"))),
            Statement(d, acc("C", "i", "j"), "add", (acc("T", "i", "j", "k"),), True),
        ],
        sizes(**hi),
    )


def copy2(name: str, dtype: str = "any") -> Kernel:
    return kern(
        name,
        [buf("S", "in", "M", "N", dtype=dtype), buf("D", "out", "M", "N", dtype=dtype)],
        [Statement(dom(i="M", j="N"), acc("D", "i", "j"), "copy", (acc("S", "i", "j"),))],
        sizes(M=None, N=None),
    )


def fill(name: str, **hi: int | None) -> Kernel:
    names = list(hi)
    index = ["i", "j"][: len(names)]
    return kern(
        name,
        [buf("C", "out", *names)],
        [Statement(dom(**dict(zip(index, names, strict=True))), acc("C", *index), "copy", (Literal(0),))],
        sizes(**hi),
    )


def tiny() -> System:
    """Scratchpad, two register files of 8 cells of 64 bytes, a 4x4 matrix unit."""
    regs = OperandContract(("ra", "rb"))
    ins = [
        Instruction("mm4", mm_body("mm4", M=4, N=4, K=4), dict.fromkeys("ABC", regs), (("A", "B"),)),
        Instruction("zero4", fill("zero4", M=4, N=4), {"C": regs}),
        Instruction(
            "relu4",
            kern(
                "relu4",
                [buf("X", "in", "M", "N"), buf("Y", "out", "M", "N")],
                [Statement(dom(i="M", j="N"), acc("Y", "i", "j"), "max", (acc("X", "i", "j"), Literal(0)))],
                sizes(M=4, N=4),
            ),
            {"X": regs, "Y": regs},
        ),
        Instruction("copy", copy2("copy")),
    ]
    mems = [
        Memory("dram", "managed", 1 << 20, home=True),
        Memory("sp", "managed", 16384, align=16),
        Memory("ra", "managed", 512, cells=8, cell=64),
        Memory("rb", "managed", 512, cells=8, cell=64),
    ]
    both = [("dram", "sp"), ("sp", "ra"), ("sp", "rb")]
    moves = tuple(Move(a, b, "copy", "dma") for x, y in both for a, b in ((x, y), (y, x)))
    units = [Unit("mm", ("mm4", "zero4", "relu4"), 1e9), Unit("dma", ("copy",), 1e9)]
    return System("tiny", {m.name: m for m in mems}, {u.name: u for u in units}, moves, {i.name: i for i in ins})


def vec(cells: int = 8) -> System:
    """Vectors of four floats in registers that the code generator allocates; packing is a move from ram to ram."""
    d = dom(j="N")
    fma = kern(
        "fma",
        [buf("a", "in"), buf("B", "in", "N"), buf("C", "inout", "N"), buf("t", "temp", "N")],
        [
            Statement(d, acc("t", "j"), "mul", (acc("a"), acc("B", "j"))),
            Statement(d, acc("C", "j"), "add", (acc("t", "j"),), True),
        ],
        sizes(N=4),
    )
    one = OperandContract(("v",))
    ins = [
        Instruction("fma", fma, {"a": OperandContract(("ram",)), "B": one, "C": one}),
        Instruction("vzero", fill("vzero", N=4), {"C": one}),
        Instruction("vmove", copy2("vmove", "f32")),
        Instruction("pack", copy2("pack", "f32")),
        Instruction(
            "vmax",
            kern(
                "vmax",
                [buf("X", "in", "N"), buf("Y", "out", "N")],
                [Statement(d, acc("Y", "j"), "max", (acc("X", "j"), Literal(0)))],
                sizes(N=4),
            ),
            {"X": one, "Y": one},
        ),
        Instruction(
            "vadd",
            kern(
                "vadd",
                [buf("X", "in", "N"), buf("Y", "inout", "N")],
                [Statement(d, acc("Y", "j"), "add", (acc("X", "j"),), True)],
                sizes(N=4),
            ),
            {"X": one, "Y": one},
        ),
    ]
    mems = [Memory("ram", "managed", 1 << 24, home=True), Memory("v", "counted", 16 * cells, cells=cells, cell=16)]
    moves = (Move("ram", "v", "vmove", "cpu"), Move("v", "ram", "vmove", "cpu"), Move("ram", "ram", "pack", "cpu"))
    unit = Unit("cpu", tuple(i.name for i in ins), 3e9)
    return System("vec", {m.name: m for m in mems}, {"cpu": unit}, moves, {i.name: i for i in ins})
