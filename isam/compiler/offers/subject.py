"""What is offered otherwise, and what its calls leave to be wished for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, wraps
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.system.graph import System
from isam.system.hierarchy import capacities

if TYPE_CHECKING:
    from isam.mapper.space import Step

    Steps = tuple[Step, ...]

EMPTY = 1.125  # steps of a sum that calls take of each that there is, from which on longer rows are tried


@dataclass(frozen=True)
class Subject:
    """A kernel as it is covered on a machine; ``offered``: the instructions that it was to be covered by."""

    kernel: Kernel
    cover: Cover
    system: System
    offered: Sequence[Instruction]

    def rewritten(self, kernel: Kernel) -> Subject:
        """The same of a kernel that steps from this one lead to: what its calls leave to be wished for is as before."""
        return replace(self, kernel=kernel)

    @cached_property
    def sums(self) -> dict[str, int]:
        """Per buffer that an instruction sums into, all lanes into one number, how many lanes that are."""
        out: dict[str, int] = {}
        for m in self.cover.mappings:
            form = m.instruction.sum
            if form is not None and form.across:
                out[next(o.buffer for o in m.operands if o.operand == form.into)] = form.across
        return out

    @property
    def last_cache(self) -> int:
        """Bytes of the last cache; 0 without one."""
        return max(capacities(self.system), default=0)

    @property
    def unfilled(self) -> Iterator[tuple[int, str, str]]:
        """Sums of which an instruction takes several steps at once, and whose inner axis leaves some of them empty: the
        statement, the axis around that one, and that one."""
        for m in self.cover.mappings:
            s = self.kernel.statements[m.statements[-1]]
            taken = {k: m.instruction.span(i).most for i, k in m.axes}
            for outer, inner in pairwise(s.reduces):
                most, extent = taken.get(inner), s.domain.extent(inner)
                if outer in taken or not most or not extent.is_constant:
                    continue
                if ceil(extent.const / most) * most >= EMPTY * extent.const:
                    yield m.statements[-1], outer, inner


def one(make: Callable[[Subject], Steps]) -> Callable[[Subject], tuple[Steps]]:
    """An offer of one kernel, as the table wants it: of several."""

    @wraps(make)
    def several(of: Subject) -> tuple[Steps]:
        return (make(of),)

    return several
