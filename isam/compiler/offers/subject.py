"""What is offered otherwise, and what its calls leave to be wished for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from math import ceil

from isam.classes import dataclass
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.system.graph import System
from isam.system.hierarchy import capacities

EMPTY = 1.125  # steps of a sum that calls take of each that there is, from which on longer rows are tried


@dataclass(frozen=True)
class Subject:
    """A kernel as it is covered on a machine; ``offered``: the instructions that it was to be covered by."""

    kernel: Kernel
    cover: Cover
    system: System
    offered: Sequence[Instruction]

    @cached_property
    def sums(self) -> dict[str, int]:
        return across_lanes(self.cover)

    @property
    def last_cache(self) -> int:
        """Bytes of the last cache; 0 without one."""
        return max(capacities(self.system), default=0)

    @property
    def unfilled(self) -> Iterator[tuple[int, str, str]]:
        return unfilled(self.kernel, self.cover)


def unfilled(kernel: Kernel, cover: Cover) -> Iterator[tuple[int, str, str]]:
    """Sums of which an instruction takes several steps at once, and whose inner axis leaves some of them empty: the
    statement, the axis around that one, and that one."""
    for m in cover.mappings:
        s = kernel.statements[m.statements[-1]]
        taken = {k: m.instruction.span(i).most for i, k in m.axes}
        for outer, inner in pairwise(s.reduces):
            most, extent = taken.get(inner), s.domain.extent(inner)
            if outer in taken or not most or not extent.is_constant:
                continue
            if ceil(extent.const / most) * most >= EMPTY * extent.const:
                yield m.statements[-1], outer, inner


def across_lanes(cover: Cover) -> dict[str, int]:
    """Per buffer that an instruction sums into, all lanes into one number, how many lanes that are."""
    out: dict[str, int] = {}
    for m in cover.mappings:
        form = m.instruction.sum
        if form is not None and form.across:
            out[next(o.buffer for o in m.operands if o.operand == form.into)] = form.across
    return out
