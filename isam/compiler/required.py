"""Which instructions a demand (``require``) means: of a family, the member that fits best as operands lie."""

from __future__ import annotations

from collections.abc import Iterable

from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mapping import Mapping
from isam.system.graph import System


def required(kernel: Kernel, system: System, demanded: Iterable[str]) -> tuple[str, ...]:
    """The names of the instructions, one for each name demanded."""
    from isam.system.names import named

    families = [named(system, name) for name in demanded]
    return tuple(f[0].name if len(f) == 1 else _best(kernel, f) for f in families)


def _best(kernel: Kernel, family: list[Instruction]) -> str:
    from isam.mapper import match
    from isam.mapper.match import Matches

    answers = ((i.name, match(kernel, i)) for i in family)
    fits = {name: min(map(_misplaced, found)) for name, found in answers if isinstance(found, Matches)}
    return min(fits, key=fits.__getitem__) if fits else family[0].name


def _misplaced(mapping: Mapping) -> int:
    """How many operands would have to be copied: another dimension than their last would have to be contiguous."""
    contracts = ((o, mapping.instruction.contract(o.operand).strides) for o in mapping.operands if o.buffer)
    return sum(any(s == 1 and d != len(o.index) - 1 for s, d in zip(strides, o.dims, strict=True))
               for o, strides in contracts)  # fmt: skip
