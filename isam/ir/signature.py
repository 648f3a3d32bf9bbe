"""A kernel's signature as an artifact states it."""

from __future__ import annotations

from isam.artifact import Argument, Size
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel


def arguments_of(kernel: Kernel) -> tuple[Argument, ...]:
    """Arguments in declared order; their shapes are affine in the sizes still open."""
    return tuple(Argument(b.name, b.role, b.dtype, tuple(_row(d) for d in b.shape)) for b in kernel.arguments)


def sizes_of(kernel: Kernel) -> tuple[Size, ...]:
    """The sizes still open, with the values admitted."""
    return tuple(Size(s.name, s.lo, s.hi, s.multiple_of) for s in kernel.syms)


def _row(e: Affine) -> tuple[int, tuple[tuple[str, int], ...]]:
    return e.const, e.terms
