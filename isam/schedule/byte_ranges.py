"""Ranges of bytes: what calls touch of a base in memory."""

from __future__ import annotations

from collections.abc import Iterable

ByteRange = tuple[int, int]  # first byte, first one behind


def merged(ranges: Iterable[ByteRange]) -> list[ByteRange]:
    """The same bytes, in order, without gaps or overlaps between neighbours."""
    out: list[ByteRange] = []
    begin = end = 0
    for low, high in sorted(ranges):
        if out and low <= end:
            if high > end:
                end = high
                out[-1] = begin, end
        else:
            begin, end = low, high
            out.append((low, high))
    return out


def within(one: ByteRange, some: Iterable[ByteRange]) -> bool:
    """Whether some ranges together hold one."""
    at = one[0]
    for low, high in sorted(some):
        if low <= at < high:
            at = high
    return at >= one[1]
