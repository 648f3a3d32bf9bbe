"""The smallest change with which an instruction fits a kernel, in three currencies (MAP-8).

*program*: laws that rewrite the kernel, what its user has to grant for them; *shape*: sizes and layouts of arguments;
*hardware*: what the instruction would have to accept. A change is offered only after the matcher has been run again on
what was changed, and says how the instruction is used then.
"""

from __future__ import annotations

from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mismatch import Mismatch
from isam.mapper.match import never, normal
from isam.mapper.repair.hardware import accepting
from isam.mapper.repair.program import rewriting
from isam.mapper.repair.repair import CURRENCIES, Repair, smallest
from isam.mapper.repair.shape import reshaping
from isam.mapper.repair.types import casting

__all__ = ["CURRENCIES", "Repair", "repairs"]


def repairs(kernel: Kernel, instruction: Instruction, near: tuple[Mismatch, ...]) -> tuple[Repair, ...]:
    """Changes after which ``instruction`` fits ``kernel`` (in normal form), the smallest first in each currency.
    ``near``: what stands in the way. None where ``instruction`` carries out no kernel at all."""
    if never(kernel, instruction, normal(instruction.body)) is not None:
        return ()
    found = [*rewriting(kernel, instruction), *casting(kernel, instruction), *reshaping(kernel, instruction, near)]
    found += accepting(kernel, instruction, near)
    return smallest(found)
