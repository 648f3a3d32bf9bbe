"""Results that lie between each other in memory, woven and stored together.

Stores of elements a few apart leave alone what lies between them. Where a sequence of calls has stores of all that lies
there, an element of each in turn (real and imaginary parts), these are carried out with the last of them: vectors that
have an element of each in turn, made by shuffles, stored whole. Nothing in between may touch what they write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.codegen.llvm.irtext import ELEMENT, Function
from isam.codegen.llvm.transposed import Across, Side, carried, touched
from isam.codegen.llvm.vectors import Spaced, put_row, spaced, woven
from isam.codegen.llvm.verbs import ELEMENTS
from isam.ir.dtype import size_of
from isam.schedule.tree import Issue, Node

if TYPE_CHECKING:
    from isam.codegen.llvm.lower import Lowering


@dataclass
class Weave:
    """Stores of a sequence by their place in it, in the order of what they write; ``values``: of those that have been
    carried out."""

    calls: dict[int, Across]
    at: Spaced
    values: dict[int, str] = field(default_factory=dict)

    @property
    def first(self) -> Across:
        return next(iter(self.calls.values()))

    def write(self, fn: Function, pointer: str) -> None:
        """``pointer``: to the first element of the first of them."""
        at, left = self.at, self.at.count * self.at.step
        for k, value in enumerate(woven(fn, [self.values[i] for i in self.calls], at)):
            count = min(at.lanes, left - k * at.lanes)
            if count > 0:
                put_row(fn, value, fn.gep(pointer, k * at.lanes * at.size), at.element, count, at.of, at.size)


def weaves(low: Lowering, calls: Sequence[Node]) -> dict[int, Weave]:
    """Which of the calls of a sequence are carried out together, by their place in it."""
    alike: dict[tuple[object, ...], dict[int, int]] = {}  # from where on: which call
    found: dict[int, tuple[Across, Spaced]] = {}
    for i, c in enumerate(calls):
        one = _store(low, c) if isinstance(c, Issue) else None
        if one is not None:
            found[i] = one
            o = one[0].side.operand
            alike.setdefault((o.place.base, o.place.offset.terms, one[1]), {}).setdefault(o.place.offset.const, i)
    out: dict[int, Weave] = {}
    stores = {i: a for i, (a, _) in found.items()}
    for (*_, at), places in alike.items():
        assert isinstance(at, Spaced)
        begins = sorted(places)
        while begins:
            run = [places.get(begins[0] + k * at.size) for k in range(at.step)]
            mine = [i for i in run if i is not None]
            if len(mine) == at.step and not touched(low, calls, mine, stores):
                out |= dict.fromkeys(mine, Weave({i: stores[i] for i in mine}, at))
                begins = [b for b in begins if places[b] not in mine]
            else:
                begins.pop(0)
    return out


def _store(low: Lowering, issue: Issue) -> tuple[Across, Spaced] | None:
    """A call that does nothing but store a vector, elements apart from each other."""
    if len(issue.operands) != 2:
        return None
    register, memory = issue.operands
    if len(memory.dims) != 1 or (d := memory.dims[0]) is None:
        return None
    dtype, count = low.dtype(issue, memory), memory.tile.shape[d]
    step = memory.place.strides[d] * memory.tile.steps[d]
    at = spaced(ELEMENT[dtype], size_of(dtype), count, step, low.vector)
    if at is None or (count < low.lanes and not low.vector.any):
        return None
    cell = low.flow.cell(register)
    if cell is None or low.flow.cell(memory) is not None:
        return None
    verb = carried(low, issue)
    if verb is None or verb.holds != ELEMENTS or not verb.stores or issue.prefetch is not None:
        return None
    return Across(Side(memory, size_of(dtype), count, step), register, cell, False, dtype), at
