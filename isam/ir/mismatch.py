"""A "no" of the mapper is a report, not a boolean (MAP-8). Returned, never raised; falsy."""

from __future__ import annotations

from dataclasses import field
from typing import Any, NamedTuple

from isam.classes import dataclass
from isam.diagnostics import NOWHERE, Loc


class Reason(NamedTuple):
    """What a kind of mismatch means, and what helps."""

    meaning: str
    helps: str

    def __str__(self) -> str:
        return f"{self.meaning} {self.helps}"


KINDS: dict[str, Reason] = {
    "operation": Reason(
        "The instruction does another operation where the kernel has this one, more or fewer statements, or takes "
        "liberties that the kernel does not grant.",
        "Write the kernel as the instruction computes, allow more with 'permits', or take another instruction."),
    "axis-missing": Reason(
        "The instruction has an axis that nothing in the kernel can play: it makes more at once than is asked for.",
        "Give the kernel that axis (an extent of 1 counts), or an instruction without it."),
    "extra-dependence": Reason(
        "An index of the kernel depends on an axis that the instruction's operand may not depend on.",
        "Give the axis a dimension of its own (a copy, as im2col makes it, or another layout), or let a loop around "
        "the calls run over it."),
    "coefficient": Reason(
        "An axis has another step in the kernel's index, or another distance in memory, than the operand admits.",
        "Copy the array or exchange its dimensions, so that the distance is the one needed."),
    "dtype": Reason(
        "The arrays have another type of element than the operands.",
        "Convert to the type that the instruction takes, or choose an instruction of that type."),
    "extent": Reason(
        "Calls of admitted sizes cannot take as many steps along an axis as the kernel has.",
        "Change the size to a number that they can take, or pad the array to it."),
    "escapes": Reason(
        "A value that stays inside the instruction is used elsewhere in the kernel.",
        "Compute it a second time for the other use, or take an instruction that gives it as a result."),
    "aliasing": Reason(
        "The instruction has one array where the kernel has two, or two where the kernel has one.",
        "Copy the array, or name the same one in both places."),
    "literal": Reason(
        "A number stands where the instruction has another number or an array, or an array where it has a number.",
        "Write the instruction's number, or hand the number over as an array."),
    "domain": Reason(
        "Statements of the kernel do not run together as those of the instruction: another 'where', other elements, "
        "a step left over, or a write in between.",
        "Give the statements the same axes and conditions, and write them one after the other."),
    "budget": Reason(
        "The search ended before it had an answer: too many pairs to try, or too many statements for one instruction.",
        "Match a smaller kernel or part of it, or give the search a larger budget."),
}  # fmt: skip


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
