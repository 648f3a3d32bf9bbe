"""A product by hand whose boxes are brought into a scratchpad by turns: two places, a kept loop of products on each."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.instruction import OperandContract
from isam.schedule.tree import Issue, Nest, Node, Operand, Place, Schedule, Seq
from isam.scheduler.waits import with_waits
from isam.system.graph import Memory, Move, System, Unit
from tests.schedules import A_, I_, at_home, box, copy, loop, matmul_cover, matmul_kernel, mm4, move, zero4


def near(bandwidth: float = 16) -> System:
    """A matrix unit that works on a scratchpad, a unit that moves."""
    memories = (Memory("dram", "managed", 2**40, home=True), Memory("sp", "managed", 2**24, align=16))
    homes = {o: OperandContract(("sp",)) for o in "ABC"}
    mm = replace(mm4(), operands=homes, apart=())
    zero = replace(zero4(), operands={"C": OperandContract(("sp",))})
    carry = replace(copy(), cost=replace(copy().cost, bandwidth=bandwidth))
    moves = tuple(Move(s, t, "copy", "dma") for s, t in (("dram", "sp"), ("sp", "dram")))
    units = {"mm": Unit("mm", ("mm4", "zero4"), 1e9), "dma": Unit("dma", ("copy",), 1e9)}
    return System("near", {m.name: m for m in memories}, units, moves, {i.name: i for i in (mm, zero, carry)})


def product(deep: int, boxes: int, places: int = 2, rows: int = 2, bandwidth: float = 16) -> Schedule:
    """``C[i, :] = A[i, :] B`` for blocks of four rows; the sum over ``boxes`` boxes, ``deep`` elements each, a body of
    the kept loop works on ``places`` of them."""
    m, n, k = 4 * rows, 4, deep * boxes
    kernel, system = matmul_kernel(m, n, k), near(bandwidth)
    strides = {"A": (4 * k, 4), "B": (4 * n, 4), "C": (4 * n, 4)}
    result = box("C", (I_, 0), (4, 4))
    at_c = Place("sp", "", Affine(), (16, 4))
    c = Operand("C", result, at_c, (0, 1))
    size = 32 * deep  # bytes of a box of A and one of B

    def turn(which: int) -> list[Node]:
        at = Affine.of("q", 1, which * deep)
        a, b = box("A", (I_, at), (4, deep)), box("B", (at, 0), (deep, 4))
        to_a, to_b = (Place("sp", "", A_(64 + which * size + half), s)
                      for half, s in ((0, (4 * deep, 4)), (size // 2, (16, 4))))  # fmt: skip
        p = Affine.of(f"p{which}")
        mine_a = replace(to_a, offset=to_a.offset + (p - at) * 4)
        mine_b = replace(to_b, offset=to_b.offset + (p - at) * 16)
        operands = (Operand("A", box("A", (I_, p), (4, 4)), mine_a, (0, 1)),
                    Operand("B", box("B", (p, 0), (4, 4)), mine_b, (0, 1)), c)  # fmt: skip
        mm = Issue("mm", "mm4", (("K", 4), ("M", 4), ("N", 4)), operands, 1, (("i", I_), ("j", A_(0)), ("k", p)))
        sweep = replace(loop("x", 0, 0, 4, mm), var=f"p{which}", axis="k")
        lo, hi = (sweep.lo[0]._replace(expr=at + e) for e in (0, deep))
        sweep = replace(sweep, lo=(lo,), hi=(hi,))
        return [move(a, at_home(strides, a), to_a), move(b, at_home(strides, b), to_b), sweep]

    clear = Issue("mm", "zero4", (("M", 4), ("N", 4)), (c,), 0, (("i", I_), ("j", A_(0))))
    turns = Seq(tuple(node for which in range(places) for node in turn(which)))
    body = Seq((clear, loop("q", 0, k, places * deep, turns), move(result, at_c, at_home(strides, result))))
    homes = {b: Place("dram", b, Affine(), s) for b, s in strides.items()}
    nests = (Nest(0, (("i", A_(m)), ("j", A_(n)))), Nest(1, (("i", A_(m)), ("j", A_(n)), ("k", A_(k)))))
    cover = matmul_cover(kernel)
    mappings = tuple(replace(x, instruction=system.instructions[x.instruction.name]) for x in cover.mappings)
    call = loop("i", 0, m, 4, body)
    return with_waits(Schedule(kernel, system, replace(cover, mappings=mappings), nests, Seq(), call, (), homes))
