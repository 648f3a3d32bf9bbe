"""The smallest change with which an instruction would fit: offered only after the matcher has agreed to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.mapper.match import Matches, match, match_untyped
from isam.mapper.search import reach


@dataclass(frozen=True, slots=True)
class Remedy:
    """``change``: what to do, in words; ``steps``: laws applied one after the other (none: another sort of change)."""

    change: str
    steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.change


def remedies(kernel: Kernel, instruction: Instruction) -> tuple[Remedy, ...]:
    """Changes after which ``instruction`` fits ``kernel`` (in normal form), each of them checked."""
    out = [*_strides(kernel, instruction), *_types(kernel, instruction)]
    found = reach(kernel, instruction)
    if found and found.paths[0].steps:
        steps = tuple(map(str, found.paths[0].steps))
        out.append(Remedy("rewrite the kernel (the search does so itself): " + ", then ".join(steps), steps))
    return tuple(out)


def _strides(kernel: Kernel, instruction: Instruction) -> Iterator[Remedy]:
    found = match(kernel, instruction, strided=True, normalise=False)
    if isinstance(found, Matches):
        rows = [f"{o.buffer} with step {s}" for o in found.first.operands for s in o.steps if s != 1]
        yield Remedy(f"operands that may be strided: {', '.join(rows)}")


def _types(kernel: Kernel, instruction: Instruction) -> Iterator[Remedy]:
    found = match_untyped(kernel, instruction)
    if found is None:
        return
    wrong = [
        f"{o.buffer} is {kernel.buffer(o.buffer).dtype}, {o.operand} takes {instruction.operand(o.operand).dtype}"
        for o in found.operands
        if o.buffer and kernel.buffer(o.buffer).dtype != instruction.operand(o.operand).dtype
    ]
    if wrong:
        yield Remedy(f"the same element types: {'; '.join(wrong)}")
