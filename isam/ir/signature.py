"""A kernel's signature as an artifact states it."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from isam.artifact import Argument, Size
from isam.ir.affine import Affine
from isam.ir.kernel import Item, Kernel, Recurrence


def arguments_of(kernel: Kernel) -> tuple[Argument, ...]:
    """Arguments in declared order; their shapes are affine in the sizes still open."""
    return tuple(Argument(b.name, b.role, b.dtype, tuple(_row(d) for d in b.shape)) for b in kernel.arguments)


def sizes_of(kernel: Kernel) -> tuple[Size, ...]:
    """The sizes still open that a caller gives, with the values admitted."""
    return tuple(Size(s.name, s.lo, s.hi, s.multiple_of) for s in kernel.given)


def shown_by(kernel: Kernel) -> frozenset[str]:
    """The sizes still open that follow from the shapes of the arguments."""
    return solved(names for b in kernel.arguments for d in b.shape if (names := frozenset(d.names)))


def solved(rows: Iterable[frozenset[str]]) -> frozenset[str]:
    """The names of which equations over these names leave one open each, in some order."""
    known, every = frozenset[str](), tuple(rows)
    while more := frozenset().union(*(left for names in every if len(left := names - known) == 1)):
        known |= more
    return known


def points_of(kernel: Kernel) -> int | None:
    """Points of all statements in one call, conditions aside; None where that depends on sizes still open."""
    return _points(kernel.body)


def _points(body: tuple[Item, ...]) -> int | None:
    total = 0
    for item in body:
        axes = (item.axis,) if isinstance(item, Recurrence) else item.domain.axes
        within = _points(item.body) if isinstance(item, Recurrence) else 1
        if within is None or any(a.extent.terms for a in axes):
            return None
        total += within * prod(max(0, a.extent.const) for a in axes)
    return total


def _row(e: Affine) -> tuple[int, tuple[tuple[str, int], ...]]:
    return e.const, e.terms
