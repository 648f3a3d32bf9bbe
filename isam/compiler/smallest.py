"""The smallest kernel found that shows a fault of ours: what a report of it should hold."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from isam.ir.kernel import Access, Buffer, Item, Kernel, Recurrence, Statement

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
    """The kernel without one of its statements, the last ones first: with all that only made what it reads, as a line
    of the text is several statements; then alone."""
    for n in reversed(range(len(kernel.statements))):
        for gone in dict.fromkeys((_with_parts(kernel, n), frozenset((n,)))):
            body = tuple(_without(kernel.body, gone, [0]))
            if body:
                left = replace(kernel, body=body, template=None)
                yield replace(left, buffers=_used(kernel.buffers, left.statements)), sizes


def _with_parts(kernel: Kernel, n: int) -> frozenset[int]:
    """A statement, and those before it whose results nobody else reads and the text does not name."""
    gone = {n}
    for i in reversed(range(n)):
        made = kernel.statements[i].dest.buffer
        readers = {j for j, s in enumerate(kernel.statements) if made in _read(s)}
        if not kernel.buffer(made).declared and readers <= gone:
            gone.add(i)
    return frozenset(gone)


def _used(buffers: tuple[Buffer, ...], statements: tuple[Statement, ...]) -> tuple[Buffer, ...]:
    """The buffers that are left; what nothing makes or begins any more is given, what nobody reads is a result."""
    out = []
    for b in buffers:
        touching = [s for s in statements if b.name in (s.dest.buffer, *_read(s))]
        if b.role in ("temp", "out") and touching:
            first, written = touching[0], any(s.dest.buffer == b.name for s in touching)
            given = first.dest.buffer != b.name or first.accumulate or b.name in _read(first)
            read = any(b.name in _read(s) for s in touching)
            if given or not read:
                b = replace(b, role=("inout" if written else "in") if given else "out", declared=True)
        if touching:
            out.append(b)
    return tuple(out)


def _read(s: Statement) -> list[str]:
    return [a.buffer for a in s.sources if isinstance(a, Access)]


def _without(body: tuple[Item, ...], gone: frozenset[int], seen: list[int]) -> Iterator[Item]:
    for it in body:
        if isinstance(it, Recurrence):
            inner = tuple(_without(it.body, gone, seen))
            if inner:
                yield replace(it, body=inner)
        else:
            seen[0] += 1
            if seen[0] - 1 not in gone:
                yield it


def _sizes(kernel: Kernel, sizes: Sizes) -> Iterator[tuple[Kernel, Sizes]]:
    """The kernel with one of its sizes smaller: much first."""
    for name, value in sizes.items():
        for less in dict.fromkeys((1, value // 2, value * 3 // 4, value - 1)):
            if 0 < less < value:
                yield kernel, {**sizes, name: less}
