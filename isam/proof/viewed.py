"""Arguments that two kernels see in different shapes, with the same elements one after the other: both as one row.

A caller gives memory. A kernel that reads ``x: f32[4, 6]`` and one that reads ``x: f32[2, 12]`` of it are compared as
what they do with ``x: f32[24]``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import prod

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Buffer, Item, Kernel, Recurrence


def in_rows(a: Kernel, b: Kernel) -> tuple[Kernel, Kernel]:
    """Both kernels with arguments of the same name, role, type and length, of known sizes, in one dimension where
    their shapes differ. Other arguments stay as they are."""
    theirs = {x.name: x for x in b.arguments}
    names = {x.name for x in a.arguments if x.name in theirs and _one_row(x, theirs[x.name])}
    return (_flat(a, names), _flat(b, names)) if names else (a, b)


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

    def item(it: Item) -> Item:
        if isinstance(it, Recurrence):
            return replace(it, body=tuple(map(item, it.body)))
        return it.accessing(row)

    buffers = (replace(b, shape=(Affine((), _length(b)),)) if b.name in names else b for b in kernel.buffers)
    return replace(kernel, buffers=tuple(buffers), body=tuple(map(item, kernel.body)), template=None)
