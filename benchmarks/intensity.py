"""How much a shape computes per byte that it moves: where it lies on a roofline picture.

A call moves at least what its kernel is given and what it returns: every operand goes in once, whole, and every result
goes out once. So of a product of m x n x k in f32 it is 4 (m k + k n + m n) bytes for 2 m n k operations; of bytes the
result has four each, of bf16 two. Of a convolution the image counts as it is given, without what pads it, and whole,
also where a stride skips some of it; of a recurrent unit the weights count once, however many steps read them. An
intensity is therefore the most that any caching could reach.
"""

from __future__ import annotations

from functools import cache
from math import prod

from isam.ir.dtype import size_of
from isam.ir.sizes import with_constants

from .kernels import kernel_of
from .shapes import GROUPS, Shape


def moved(shape: Shape) -> int:
    """Bytes that a call moves at least."""
    kernel, sizes = with_constants(*kernel_of(shape))
    arguments = kernel.with_sizes(sizes).arguments
    return sum((1 + (b.role == "inout")) * prod(int(n) for n in b.shape) * size_of(b.dtype) for b in arguments)


@cache
def intensity(group: str, name: str) -> float | None:
    """Operations per byte of a shape of a group, by its name; None of one that is not measured any more."""
    found = _shape(group, name)
    return found.flops / moved(found) if found else None


def within(group: str, name: str) -> float:
    """The share of the operations counted that cannot be left out: of a convolution those within the image."""
    return getattr(_shape(group, name), "within", 1.0)


def _shape(group: str, name: str) -> Shape | None:
    return next((s for s in GROUPS.get(group, ()) if s.name == name), None)
