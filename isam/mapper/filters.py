"""Cheap filters before matching (MAP-4): families of hundreds of instructions that differ in element types or in sizes
cost a look into a set each, not a match each."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from isam.classes import dataclass
from isam.ir.dtype import ANY
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.table import KINDS, Some
from isam.once import once

MIRROR = {"gt": "lt", "ge": "le"}  # a > b is b < a


@dataclass(frozen=True, slots=True)
class Needs:
    """What any kernel must have for an instruction to fit. ``operations``: with the element type of the result
    (an accumulation may be played by a plain statement and the other way round); ``dtypes``: of operands that are
    arrays, which a number cannot play."""

    operations: frozenset[tuple[str, str]]
    dtypes: frozenset[str]


@once
def needs_of(instruction: Instruction) -> Needs:
    """Made once per instruction."""
    operations = frozenset((MIRROR.get(o, o), d) for o, _, d in instruction.signature)
    dtypes = frozenset(b.dtype for b in instruction.body.arguments if b.shape) - {ANY}
    return Needs(operations, dtypes)


def present(instructions: Sequence[Instruction], kernel: Kernel) -> list[Instruction]:
    """The instructions all of whose operations and element types the kernel has, and whose liberties it grants. Those
    of a machine are looked through once for all kernels that have the same."""
    dtypes = frozenset(b.dtype for b in kernel.buffers)
    if not isinstance(instructions, Some):
        return _present(instructions, kernel, dtypes)
    key = (kernel.operations, dtypes, kernel.permits)
    if key not in instructions.fit:
        if len(instructions.fit) >= KINDS:
            instructions.fit.clear()
        some = instructions.that_may_fit(dtypes, frozenset(o for o, _, _ in kernel.operations))
        instructions.fit[key] = tuple(_present(some, kernel, dtypes))
    return list(instructions.fit[key])


def _present(instructions: Sequence[Instruction], kernel: Kernel, dtypes: frozenset[str]) -> list[Instruction]:
    mine = {(MIRROR.get(o, o), d) for o, _, d in kernel.operations}
    mine |= {(o, ANY) for o, _ in mine}
    return [
        i
        for i in instructions
        if (n := needs_of(i)).operations <= mine and n.dtypes <= dtypes and i.takes <= kernel.permits
    ]


def structure_of(instruction: Instruction) -> Hashable:
    """The body without its name and without element types, with the contracts of the operands: what members of a family
    over element types have in common."""
    body = instruction.body
    operands = tuple((b.name, b.role, b.shape) for b in body.buffers)
    return body.syms, operands, body.body, tuple(instruction.contract(b.name).strides for b in body.arguments)


def one_per_structure(instructions: Sequence[Instruction], kernel: Kernel) -> list[Instruction]:
    """For reports: those whose element types the kernel has, and of the others one per structure that these lack; in
    the order given."""
    dtypes = {b.dtype for b in kernel.buffers}
    fitting = [needs_of(i).dtypes <= dtypes for i in instructions]
    if all(fitting):
        return list(instructions)
    structures = [structure_of(i) for i in instructions]
    seen = {s for s, fits in zip(structures, fitting, strict=True) if fits}
    out: list[Instruction] = []
    for i, s, fits in zip(instructions, structures, fitting, strict=True):
        if fits or s not in seen:
            seen.add(s)
            out.append(i)
    return out
