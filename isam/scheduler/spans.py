"""Spans of bytes: what calls touch of a base in memory."""

from __future__ import annotations

from collections.abc import Iterable

Span = tuple[int, int]  # bytes from .. to


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same bytes, in order, without gaps or overlaps between neighbours."""
    out: list[Span] = []
    begin = end = 0
    for low, high in sorted(spans):
        if out and low <= end:
            if high > end:
                end = high
                out[-1] = begin, end
        else:
            begin, end = low, high
            out.append((low, high))
    return out


def within(span: Span, some: Iterable[Span]) -> bool:
    """Whether some spans together hold one."""
    at = span[0]
    for low, high in sorted(some):
        if low <= at < high:
            at = high
    return at >= span[1]
