"""Boxes copied near ahead of their use, possibly in another layout: packing is a move."""

from __future__ import annotations

from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.tree import Tile
from isam.scheduler.plan import Stage
from isam.scheduler.state import StageLayout
from isam.scheduler.trim import Env


def row_range(row: Affine, env: Env) -> tuple[Affine, int]:
    """First index and number of indices that a buffer row takes within the blocks of ``env``."""
    start, n = Affine((), row.const), 1
    for a, c in row.terms:
        if a not in env:
            start = start + Affine.of(a, c)
            continue
        offset, length, _ = env[a]
        start = start + offset * c
        if c < 0:
            start = start + c * (length - 1)
        n += abs(c) * (length - 1)
    return start, n


def layout_of(stage: Stage, box: Tile, dtype: str, align: int = 1) -> tuple[StageLayout, int]:
    """Coefficients of a staged box and its size in bytes; rows begin at multiples of ``align``."""
    rank, cut = len(box.shape), dict(stage.cut)
    coefficients, inner, blocks = [0] * rank, [0] * rank, [1] * rank
    running = size_of(dtype)
    for d in range(rank):
        if cut.get(d, 1) > 1:
            inner[d], blocks[d] = running, cut[d]
            running *= cut[d]
    innermost = True
    for d in reversed(stage.order):
        n = -(-box.shape[d] // blocks[d])
        coefficients[d] = running // blocks[d]
        running *= n
        if innermost and box.shape[d] > 1:
            running = -(-(running + stage.pad) // align) * align
            innermost = False
    return StageLayout(tuple(coefficients), tuple(blocks), tuple(inner)), running
