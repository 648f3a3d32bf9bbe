"""What a move that fills writes beside the tile that it copies: a box of bytes around it."""

from __future__ import annotations

from collections.abc import Mapping

from isam.ir.instruction import Instruction
from isam.schedule.tree import Issue, Operand

Reach = tuple[int, int]  # of the box, in bytes from the first element of the tile: its begin, and its end (half open)


def strides_in(instruction: Instruction, o: Operand, size: int) -> tuple[int, ...] | None:
    """Bytes from one element of an operand to the next along each of its dimensions, as its contract says, else as the
    tile lies; None where neither says it."""
    out: list[int] = []
    for need, d in zip(instruction.contract(o.name).strides, o.dims, strict=True):
        if need is None and d is None:
            return None
        out.append(need * size if need is not None else o.place.strides[d or 0] * o.tile.steps[d or 0])
    return tuple(out)


def reach(instruction: Instruction, o: Operand, sizes: Mapping[str, int], size: int) -> Reach | None:
    """Of the operand that a move fills; ``size``: bytes of an element. None: it cannot be told."""
    fill, strides = instruction.fill, strides_in(instruction, o, size)
    assert fill is not None
    if strides is None or any(k < 0 for k in strides):
        return None
    box = [n.evaluate(sizes) for n in fill.box]
    low = -sum(a * k for a, k in zip(fill.at, strides, strict=True))
    return low, low + sum((n - 1) * k for n, k in zip(box, strides, strict=True)) + size


def begin(instruction: Instruction, issue: Issue, o: Operand, size: int) -> int:
    """Bytes from the first element of an operand's tile to where the operand itself begins: that of a box that is
    filled, of which the tile is a part."""
    fill = instruction.fill if issue.is_move else None
    if fill is None or o.name != fill.operand or not any(fill.at):
        return 0
    found = reach(instruction, o, dict(issue.sizes), size)
    return found[0] if found is not None else 0
