"""What would help where a memory is too small, or no move carries what lies apart: tried before it is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import lcm

from isam.scheduler.infeasible import Infeasible
from isam.system.graph import System

HALVINGS = 12  # of the range in which the least that a memory would have to hold is looked for


def levers(system: System, reason: Infeasible, possible: Callable[[System], bool]) -> tuple[str, ...]:
    """What would help: longer rows, the least that the full memory would have to hold, or a move that takes elements
    apart; ``possible``: whether there is a schedule on a machine."""
    if reason.path:
        return tuple(_strides(system, reason.path, possible))
    m = system.memories.get(reason.memory)
    if m is None:
        return ()
    if m.row:
        row = next(m.row * 2**n for n in range(1, 64) if m.row * 2**n >= reason.row)
        longer = replace(m, row=row, align=lcm(m.align, row))
        if reason.row and possible(replace(system, memories={**system.memories, m.name: longer})):
            return (f"rows of {row} bytes in '{m.name}'",)
    what, grain = ("bytes of", max(1, m.align)) if m.cells is None else ("cells in", 1)

    def works(n: int) -> bool:
        larger = replace(m, capacity=n) if m.cells is None else replace(m, cells=n, capacity=n * (m.cell or 1))
        return possible(replace(system, memories={**system.memories, m.name: larger}))

    tried = [m.limit * factor for factor in (1, 2, 4, 8, 16, 64)]
    enough = next((n for n in range(1, len(tried)) if works(tried[n])), None)
    if enough is None:
        return ()
    low, high = tried[enough - 1], tried[enough]
    for _ in range(HALVINGS):
        middle = (low + high) // 2 // grain * grain
        if middle <= low:
            break
        low, high = (low, middle) if works(middle) else (middle, high)
    return (f"{high} {what} '{m.name}'",)


def _strides(system: System, path: Sequence[str], possible: Callable[[System], bool]) -> Iterator[str]:
    """The moves along a path, each with an operand whose strides its contract would have to leave free."""
    for edge in pairwise(path):
        for i in {m.by: system.instructions[m.by] for m in system.moves_by_edge.get(edge, ())}.values():
            for b in i.body.arguments:
                contract = i.contract(b.name)
                if not any(contract.strides):
                    continue
                freed = replace(contract, strides=(None,) * len(contract.strides))
                other = replace(i, operands={**i.operands, b.name: freed})
                if possible(replace(system, instructions={**system.instructions, i.name: other})):
                    said = ", ".join("free" for _ in contract.strides)
                    yield f"'strides: {{{b.name}: [{said}]}}' of '{i.name}', which takes elements side by side only"
