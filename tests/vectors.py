"""Schedules of single vector instructions: every operand loaded, one issue, the results stored."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.schedule.tree import Issue, Operand, Place, Schedule, Seq, Tile
from isam.system.graph import System

J = "J"


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
        n = b.shape[0].const if rank else 1
        tile = Tile(b.name, (Affine(),) * rank, (n,) * rank, (1,) * rank)
        dims = tuple(range(rank))
        home = Operand("S", tile, at_home(b.name, rank, size), dims)
        here = Operand("D", tile, Place("v", "", Affine(), (size,) * rank, cell), dims)
        cell += 2
        given = (("J", n),) * rank
        if b.role != "out":
            moves_in.append(Issue("core", "load" if rank else "splat", given, (home, here)))
        if b.role in ("out", "inout"):
            back = (replace(here, name="S"), replace(home, name="D"))
            moves_out.append(Issue("core", "store" if rank else "store_scalar", given, back))
        operands.append(replace(here, name=b.name))
    issue = Issue("core", instruction.name, tuple(sizes.items()), tuple(operands), 0, ())
    return whole(system, kernel, Seq((*moves_in, issue, *moves_out)))


def whole(system: System, kernel: Kernel, call: Seq) -> Schedule:
    homes = {b.name: at_home(b.name, len(b.shape), 1) for b in kernel.arguments}
    return Schedule(kernel, system, Cover(kernel, kernel, ()), (), Seq(), call, (), homes)
