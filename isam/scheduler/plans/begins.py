"""Where tiles begin within a box: a memory with an alignment is read at multiples of it only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from isam.ir.dtype import size_of
from isam.scheduler.nests import Nest, Use
from isam.scheduler.plan import Group
from isam.system.graph import Memory

Loops = Sequence[tuple[str, int]]  # axes, and how much of them an iteration takes


def readable(nest: Nest | Group, use: Use, loops: Loops, block: Mapping[str, int], sides: Sequence[int],
          memory: Memory, align: int) -> float:  # fmt: skip
    """The share of an operand's tiles that begin where they may be read, at multiples of ``align``, in a box with so
    many elements along each dimension: ``loops`` over it, and in their body a ``block`` of each axis, every tile of
    which is known.

    Rows of a box begin at multiples of the alignment: what counts is how tiles follow each other along the innermost of
    its dimensions; in a memory with rows, along that which lies within them."""
    long = [d for d, n in enumerate(sides) if n > 1]
    if align <= 1 or not long:
        return 1.0
    row, size = use.index[within_rows(use) if memory.row else long[-1]], size_of(use.dtype)
    if any(row.coefficient(a) * n * size % align for a, n in loops):
        return 0.0
    at = {0: 1}  # how many tiles begin so many bytes behind a multiple
    for axis, c in row.terms:
        unit = nest.unit(axis)
        at = further(at, c * unit * size, -(-block.get(axis, 1) // unit), align)
    return at.get(0, 0) / sum(at.values()) if at else 1.0


def within_rows(use: Use) -> int:
    """The dimension of a buffer that lies within the rows of a memory, where an operand is brought there in a box."""
    return use.dims[-1] if use.dims else len(use.index) - 1


def further(at: dict[int, int], step: int, count: int, align: int) -> dict[int, int]:
    """The same for tiles that follow those of ``at`` in so many steps."""
    out: dict[int, int] = {}
    period = align // gcd(step, align)
    for rest, n in at.items():
        for i in range(min(count, period)):
            there = (rest + i * step) % align
            out[there] = out.get(there, 0) + n * -(-(count - i) // period)
    return out
