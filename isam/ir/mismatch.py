"""A "no" of the mapper is a report, not a boolean (MAP-8). Returned, never raised; falsy."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from isam.classes import dataclass
from isam.diagnostics import NOWHERE, Loc

KINDS = (
    "operation",         # the instruction does one operation here, the kernel another
    "axis-missing",      # the instruction has an axis that nothing in the kernel can play
    "extra-dependence",  # a row not chosen depends on a chosen column (MAP-2 ii)
    "coefficient",       # the chosen sub-matrix has another coefficient than the instruction
    "dtype",
    "extent",
    "escapes",           # a temporary inside the region is used outside it
    "aliasing",
    "literal",
    "domain",            # a `where` the instruction cannot respect
    "budget",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Why an instruction does not fit: what the kernel has, what the instruction needs, where in both files.

    ``depth`` counts the pairs agreed before the contradiction: the deepest report is the one shown.
    ``partial``: the pairs agreed so far, in the user's names. ``subject``: names the transforms can act on
    (statement index, buffer, axes).
    """

    kind: str
    have: str
    need: str
    kernel_loc: Loc = NOWHERE
    instruction_loc: Loc = NOWHERE
    instruction: str = ""
    depth: int = 0
    partial: tuple[tuple[str, str], ...] = ()
    subject: tuple[tuple[str, Any], ...] = field(default=())

    def __bool__(self) -> bool:
        return False

    def about(self, key: str) -> Any:
        return next((value for name, value in self.subject if name == key), None)

    def __str__(self) -> str:
        text = f"no match [{self.kind}]: the instruction {self.instruction or '?'} needs {self.need}"
        text += f"; the kernel has {self.have}"
        text += f"\n  kernel:      {self.kernel_loc}\n  instruction: {self.instruction_loc}"
        if self.partial:
            text += "\n  agreed so far: " + ", ".join(f"{a} = {b}" for a, b in self.partial)
        return text
