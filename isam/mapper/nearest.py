"""The near misses of an instruction, ranked: the one place that says which contradiction to lead with (MAP-8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mismatch import Mismatch
from isam.mapper.match import match, near_misses, normal
from isam.mapper.report import same
from isam.mapper.retyped import retyped


def ranked(found: Iterable[Mismatch]) -> list[Mismatch]:
    """The deepest first: it came nearest; of one depth as they were met."""
    return sorted(found, key=lambda m: -m.depth)


def nearest(kernel: Kernel, instruction: Instruction, *, strided: bool = False) -> list[Mismatch]:
    """Why ``instruction``, which does not fit, does not: the reason first, then what else was met. Where it would fit
    but for element types, they are the reason: what else was met is about statements that stand for the conversion.

    A machine may lay operands out with steps, so it is asked first what stands in the way even then; that operands lie
    so is the reason only where nothing else is.
    """
    for some in dict.fromkeys((True, strided)):
        found = match(kernel, instruction, strided=some)
        if isinstance(found, Mismatch):
            others = near_misses(kernel, instruction, strided=some)
            more = [] if some == strided else near_misses(kernel, instruction, strided=strided)
            types = retyped(normal(kernel), instruction, strided=some)
            first = [types.mismatch()] if types is not None else []
            return _distinct([*first, found, *ranked([*others, *more])])
    return []


def _distinct(found: Iterable[Mismatch]) -> list[Mismatch]:
    out: list[Mismatch] = []
    for m in found:
        if not any(same(m, other) for other in out):
            out.append(m)
    return out


def closest(kernel: Kernel, instructions: Sequence[Instruction]) -> Instruction:
    """The one that fits; where none does, the one that came nearest."""
    if len(instructions) == 1:
        return instructions[0]
    fits = next((i for i in instructions if match(kernel, i)), None)
    return fits or max(instructions, key=lambda i: nearest(kernel, i)[0].depth)
