"""The smallest kernel found that shows a fault of ours: what a report of it should hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from isam.ir.kernel import Access, Item, Kernel, Recurrence

SECONDS = 4.0  # of processor time, all attempts together

Sizes = Mapping[str, int]


def smallest(kernel: Kernel, sizes: Sizes, shows: Callable[[Kernel, Sizes], bool]) -> tuple[Kernel, Sizes]:
    """Statements left out and sizes made smaller, one at a time, as long as the fault shows and time is left."""
    end = time.process_time() + SECONDS
    best: tuple[Kernel, Sizes] = kernel, sizes
    found = True
    while found:
        found = False
        for smaller in (*_kernels(*best), *_sizes(*best)):
            if time.process_time() > end:
                return best
            if shows(*smaller):
                best, found = smaller, True
                break
    return best


def _kernels(kernel: Kernel, sizes: Sizes) -> Iterator[tuple[Kernel, Sizes]]:
    """The kernel without one of its statements, the last ones first."""
    for n in reversed(range(len(kernel.statements))):
        body = tuple(_without(kernel.body, n, [0]))
        left = replace(kernel, body=body, template=None)
        used = {a.buffer for s in left.statements for a in (s.dest, *s.sources) if isinstance(a, Access)}
        left = replace(left, buffers=tuple(b for b in kernel.buffers if b.name in used))
        if body:
            yield left, sizes


def _without(body: tuple[Item, ...], n: int, seen: list[int]) -> Iterator[Item]:
    for it in body:
        if isinstance(it, Recurrence):
            inner = tuple(_without(it.body, n, seen))
            if inner:
                yield replace(it, body=inner)
        else:
            seen[0] += 1
            if seen[0] - 1 != n:
                yield it


def _sizes(kernel: Kernel, sizes: Sizes) -> Iterator[tuple[Kernel, Sizes]]:
    """The kernel with one of its sizes smaller: much first."""
    for name, value in sizes.items():
        for less in dict.fromkeys((1, value // 2, value * 3 // 4, value - 1)):
            if 0 < less < value:
                yield kernel, {**sizes, name: less}
