"""What a kernel is to be carried out by."""

from __future__ import annotations

from collections.abc import Sequence

from isam.classes import dataclass
from isam.ir.instruction import Instruction
from isam.mapper.barred import NOTHING, Barred


@dataclass(frozen=True)
class Demand:
    """``instructions``: those offered; ``require``: names of those that must be used; ``saves``: whether steps are
    taken that nothing asks for but that may save calls; ``barred``: steps that are not taken."""

    instructions: Sequence[Instruction]
    require: Sequence[str] = ()
    saves: bool = True
    barred: Barred = NOTHING
