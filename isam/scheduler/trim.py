"""Cutting a range into blocks: few sizes, even where the edge would be thin (MAP-6)."""

from __future__ import annotations

from isam.classes import dataclass
from isam.ir.affine import Affine

Env = dict[str, tuple[Affine, int, Affine]]  # axis -> offset, length, origin of its outermost block


@dataclass(frozen=True, slots=True)
class Segment:
    """``count`` blocks of ``size`` elements from ``start`` on."""

    start: int
    count: int
    size: int


def even_segments(length: int, block: int, unit: int) -> tuple[Segment, ...]:
    """As few blocks of whole units as cover ``length`` with at most ``block`` elements each, as even as they can be;
    the last is short by what the last unit lacks.

    >>> [(s.count, s.size) for s in even_segments(1376, 224, 32)]
    [(1, 224), (6, 192)]
    >>> [(s.count, s.size) for s in even_segments(999, 96, 32)]
    [(10, 96), (1, 39)]
    """
    units, most = -(-length // unit), max(1, block // unit)
    blocks = -(-units // most)
    small, more = divmod(units, max(1, blocks))
    sizes = [((small + 1) * unit, more), (small * unit, blocks - more)]
    out, start = [], 0
    for size, count in sizes:
        full = min(count, (length - start) // size) if size else 0
        if full:
            out.append(Segment(start, full, size))
            start += full * size
        if full < count and start < length:
            out.append(Segment(start, 1, length - start))
            start = length
    return tuple(out)


def segments(length: int, block: int, unit: int, keep_full: bool) -> tuple[Segment, ...]:
    """Disjoint runs of equal blocks that cover ``length``; blocks are multiples of ``unit`` but for the last.

    ``keep_full``: full blocks and a rest (a reduction's unrolled steps). Otherwise blocks are as even as possible, so
    that no thin edge is left.

    >>> [(s.count, s.size) for s in segments(1000, 14, 1, False)]
    [(64, 14), (8, 13)]
    >>> [(s.count, s.size) for s in segments(999, 32, 16, False)]
    [(31, 32), (1, 7)]
    """
    if length <= block:
        return (Segment(0, 1, length),) if length else ()
    block = max(unit, block - block % unit)
    units, rest = divmod(length, unit)
    per = block // unit
    out: list[tuple[int, int]] = []
    if keep_full or unit > 1:
        full, left = divmod(units, per)
        out.append((full, per * unit))
        if left * unit + rest:
            out.append((1, left * unit + rest))
    else:
        blocks = -(-units // per)
        small, more = divmod(units, blocks)
        out.append((more, small + 1))
        out.append((blocks - more, small))
    result, start = [], 0
    for count, size in out:
        if count and size:
            result.append(Segment(start, count, size))
            start += count * size
    return tuple(result)
