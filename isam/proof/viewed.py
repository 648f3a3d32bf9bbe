"""Arguments that two kernels see in different shapes, with the same elements one after the other: both as one row.

A caller gives memory. A kernel that reads ``x: f32[4, 6]`` and one that reads ``x: f32[2, 12]`` of it are compared as
what they do with ``x: f32[24]``. A dimension of one says of no element where it lies, whatever the others are: that of
``y: f32[N, 1]`` is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from math import prod

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Buffer, Item, Kernel, Recurrence

ONE = Affine((), 1)


def in_rows(a: Kernel, b: Kernel) -> tuple[Kernel, Kernel]:
    """Both kernels with arguments of the same name, role and type without dimensions of one where only these differ,
    and in one dimension where they are of known sizes and the same length. Other arguments stay as they are."""
    theirs = {x.name: x for x in b.arguments}
    differ = [x for x in a.arguments if x.name in theirs and x != theirs[x.name]]
    names = {x.name for x in differ if _but_for_ones(x, theirs[x.name])}
    a, b = (_without_ones(a, names), _without_ones(b, names)) if names else (a, b)
    names = {x.name for x in differ if _one_row(x, theirs[x.name])} - names
    return (_flat(a, names), _flat(b, names)) if names else (a, b)


def _but_for_ones(x: Buffer, y: Buffer) -> bool:
    long = [tuple(d for d in b.shape if d != ONE) for b in (x, y)]
    return replace(x, shape=y.shape) == y and long[0] == long[1]


def _without_ones(kernel: Kernel, names: Collection[str]) -> Kernel:
    """What indexes a dimension of one within it is 0."""

    def long(x: Access) -> Access:
        if x.buffer not in names:
            return x
        rows = zip(x.index, kernel.buffer(x.buffer).shape, strict=True)
        return replace(x, index=tuple(index for index, size in rows if size != ONE))

    kept = (replace(b, shape=tuple(d for d in b.shape if d != ONE)) if b.name in names else b for b in kernel.buffers)
    return _accessing(kernel, tuple(kept), long)


def _one_row(x: Buffer, y: Buffer) -> bool:
    known = all(d.is_constant and d.const >= 0 for d in (*x.shape, *y.shape))
    return x.shape != y.shape and replace(x, shape=y.shape) == y and known and _length(x) == _length(y)


def _length(x: Buffer) -> int:
    return prod(d.const for d in x.shape)


def _flat(kernel: Kernel, names: Collection[str]) -> Kernel:
    def row(x: Access) -> Access:
        if x.buffer not in names:
            return x
        at = Affine()
        for index, size in zip(x.index, kernel.buffer(x.buffer).shape, strict=True):
            at = at * size.const + index
        return replace(x, index=(at,))

    buffers = (replace(b, shape=(Affine((), _length(b)),)) if b.name in names else b for b in kernel.buffers)
    return _accessing(kernel, tuple(buffers), row)


def _accessing(kernel: Kernel, buffers: tuple[Buffer, ...], new: Callable[[Access], Access]) -> Kernel:
    """The kernel with other buffers, and ``new`` accesses to them."""
    return replace(kernel, buffers=buffers, body=_with(kernel.body, new), template=None)


def _with(body: tuple[Item, ...], new: Callable[[Access], Access]) -> tuple[Item, ...]:
    return tuple(replace(it, body=_with(it.body, new)) if isinstance(it, Recurrence) else it.accessing(new)
                 for it in body)  # fmt: skip
