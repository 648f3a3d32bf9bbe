"""How a box lies in the memory that it is staged in, and what it takes there."""

from __future__ import annotations

from collections.abc import Sequence

from isam.scheduler.state import StageLayout


def layout_of(shape: Sequence[int], size: int, order: Sequence[int], cut: Sequence[tuple[int, int]] = (), pad: int = 0,
              align: int = 1) -> tuple[StageLayout, int]:  # fmt: skip
    """The layout of a box with elements of ``size`` bytes, and the bytes from its begin to its end. Rows begin at
    multiples of ``align``; ``order``, ``cut`` and ``pad``: those of a staged box."""
    rank = len(shape)
    coefficients, inner, blocks = [0] * rank, [0] * rank, [1] * rank
    running = size
    for d, block in cut:
        inner[d], blocks[d] = running, block
        running *= block
    innermost = True
    for d in reversed(order):
        n = -(-shape[d] // blocks[d])
        coefficients[d] = running // blocks[d]
        running *= n
        if innermost and shape[d] > 1:
            running = -(-(running + pad) // align) * align
            innermost = False
    return StageLayout(tuple(coefficients), tuple(blocks), tuple(inner)), running


def room_of(total: int, align: int) -> int:
    """What is taken by ``total`` bytes where the next box begins at a multiple of ``align``."""
    return -(-total // max(1, align)) * max(1, align)


def box_room(sides: Sequence[int], size: int, align: int) -> int:
    """What a box takes that lies as its buffer does."""
    return room_of(layout_of(sides, size, range(len(sides)), align=align)[1], align)
