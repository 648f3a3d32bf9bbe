"""Schedules of single vector instructions: every operand loaded, one issue, the results stored."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from isam.codegen.llvm.lanes import lanes_of
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.schedule.tree import Bound, Issue, Loop, Node, Operand, Place, Schedule, Seq, Tile
from isam.system.graph import System

J = "J"
LOADS = {("v", 0): ("splat", ""), ("v", 1): ("load", "J"),
         ("g", 1): ("load_group", "P"), ("g", 2): ("load_groups", "JP")}  # fmt: skip


def at_home(buffer: str, rank: int, size: int, offset: int = 0) -> Place:
    return Place("ram", buffer, Affine((), offset), (size,) * rank)


def single(system: System, instruction: Instruction, sizes: dict[str, int]) -> Schedule:
    """The schedule of a kernel that is the instruction's own body at ``sizes``."""
    kernel = instruction.body.with_sizes(sizes)
    moves_in: list[Issue] = []
    moves_out: list[Issue] = []
    operands: list[Operand] = []
    cell = 0
    for b in kernel.arguments:
        rank, size = len(b.shape), size_of(b.dtype)
        shape = tuple(d.const for d in b.shape)
        steps = tuple(size * prod(shape[d + 1 :]) for d in range(rank))
        tile = Tile(b.name, (Affine(),) * rank, shape, (1,) * rank)
        dims = tuple(range(rank))
        memory = (instruction.contract(b.name).homes or ("v",))[0]
        home = Operand("S", tile, Place("ram", b.name, Affine(), steps), dims)
        here = Operand("D", tile, Place(memory, "", Affine(), steps, cell), dims)
        cell += 2
        load, names = LOADS[memory, rank]
        given = tuple(zip(names, shape, strict=True))
        if b.role != "out":
            moves_in.append(Issue("core", load, given, (home, here)))
        if b.role in ("out", "inout"):
            back = (replace(here, name="S"), replace(home, name="D"))
            moves_out.append(Issue("core", "store" if rank else "store_scalar", given, back))
        operands.append(replace(here, name=b.name))
    issue = Issue("core", instruction.name, tuple(sizes.items()), tuple(operands), 0, ())
    return whole(system, kernel, Seq((*moves_in, issue, *moves_out)))


def whole(system: System, kernel: Kernel, call: Seq) -> Schedule:
    homes = {b.name: at_home(b.name, len(b.shape), 1) for b in kernel.arguments}
    return Schedule(kernel, system, Cover(kernel, kernel, ()), (), Seq(), call, (), homes)


def mapped(system: System, instruction: Instruction, n: int) -> Schedule:
    """``D[i] = f(A[i], ...)`` over ``n`` elements by a vector instruction: a loop over whole vectors, then a tail."""
    lanes = lanes_of(system)
    kernel = instruction.body.with_sizes({J: n})
    size = {b.name: size_of(b.dtype) for b in kernel.arguments}

    def step(start: Affine, count: int) -> Seq:
        tile = {b: Tile(b, (start,), (count,), (1,)) for b in size}
        home = {b: Place("ram", b, start * size[b], (size[b],)) for b in size}
        cell = {b: Place("v", "", Affine(), (size[b],), 2 * i) for i, b in enumerate(size)}
        given = ((J, count),)

        def issue(name: str, *operands: tuple[str, str, Place]) -> Issue:
            return Issue("core", name, given, tuple(Operand(o, tile[b], p, (0,)) for o, b, p in operands))

        return Seq((*(issue("load", ("S", b, home[b]), ("D", b, cell[b])) for b in size if b != "D"),
                    issue(instruction.name, *((b, b, cell[b]) for b in size)),
                    issue("store", ("S", "D", cell["D"]), ("D", "D", home["D"]))))  # fmt: skip

    whole_part = n - n % lanes
    parts: list[Node] = []
    if whole_part:
        bounds = (Bound(Affine()),), (Bound(Affine((), whole_part)),)
        parts.append(Loop("i", *bounds, lanes, step(Affine.of("i"), lanes)))
    if n % lanes:
        parts.append(step(Affine((), whole_part), n % lanes))
    return whole(system, kernel, Seq(tuple(parts)))
