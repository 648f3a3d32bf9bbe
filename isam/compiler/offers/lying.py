"""Temporaries that nobody said how they lie, with another dimension last: a longer one (three channels of a pixel, or
the taps of a row, fill no vector, the pixels of a row do), or that along which lies what they are made of (of
``y[j] max= v[i] + a[i, j]``, ``j``).

An expression's temporaries lie as the axes of its block stand (IR-5). Which axis lies in lanes, who reads them decides
as well; so both are scheduled, where calls that make one are half empty, or take elements that lie apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover, Mapping

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject

EMPTY = 2  # times as much that a call may take along a dimension than that has, from which on another one comes last


def lying(of: Subject) -> Iterator[Steps]:
    """Steps by which one and steps by which the other dimension comes last."""
    yield longest_last(of.kernel, of.cover)
    yield alike_last(of.kernel, of.cover)


def longest_last(kernel: Kernel, cover: Cover) -> Steps:
    """Steps that put the longest dimension last, of every such temporary that calls make with half of their lanes at
    most; ``cover``: of the kernel as it is written. What the judge of rewritings cannot decide is not offered."""
    return _last(kernel, dict(_short(kernel, cover)))


def alike_last(kernel: Kernel, cover: Cover) -> Steps:
    """Steps that put last the dimension along which an operand lies, of every such temporary whose calls take that
    operand across."""
    return _last(kernel, dict(_across(kernel, cover)))


def as_made(kernel: Kernel) -> Steps:
    """Steps that put last the dimension along which everything lies that such a temporary is made of; for a kernel of
    which there is no cover yet."""
    return _last(kernel, dict(_crosswise(kernel)))


def _last(kernel: Kernel, dims: dict[str, int]) -> Steps:
    """Steps that put a dimension of each of some temporaries last."""
    if not dims:
        return ()
    from isam.compiler.offers.way import Way
    from isam.transforms.law import Site
    from isam.transforms.structure.dimensions import PermuteDimensions

    law, way = PermuteDimensions(), Way(kernel, 0)
    for name, last in dims.items():
        with way.attempt():
            for d in range(last, len(kernel.buffer(name).shape) - 1):
                way.take(law, Site.of(buffer=name, dim=d))
    return way.steps


def _free(kernel: Kernel, name: str) -> bool:
    """Whether it is a temporary of several dimensions that nobody said how it lies."""
    b = kernel.buffer(name)
    return b.role == "temp" and not b.declared and len(b.shape) > 1


def _across(kernel: Kernel, cover: Cover) -> Iterator[tuple[str, int]]:
    """Temporaries that calls take across, or make of what they take across, each with the dimension that it should have
    last: along which the calls go, or along which that lies."""
    from isam.mapper.pricing import Pricing

    pricing = Pricing(kernel)
    for m in cover.mappings:
        dest, tile = kernel.statements[m.statements[-1]].dest, pricing.tile(m)
        for o in m.operands:
            breach = pricing.breach(m.instruction, o, tile) if o.buffer else None
            if breach is None:
                continue
            if _free(kernel, o.buffer):
                yield o.buffer, breach[0]
            elif _free(kernel, dest.buffer):
                along = set(o.index[-1].names)
                yield from ((dest.buffer, d) for d, row in enumerate(dest.index) if along & set(row.names))


def _crosswise(kernel: Kernel) -> Iterator[tuple[str, int]]:
    """Temporaries that lie along another axis than what they are made of, each with the dimension of that axis."""
    from isam.transforms.edit import at_rows, axis_of

    for s in kernel.statements:
        ends = {axis_of(x.index[-1]) for x in s.reads if len(x.index) > 1}
        rows = at_rows(s.dest) or ()
        last = ends.pop() if len(ends) == 1 else ""
        if last in rows[:-1] and not s.accumulate and _free(kernel, s.dest.buffer):
            yield s.dest.buffer, rows.index(last)


def _short(kernel: Kernel, cover: Cover) -> Iterator[tuple[str, int]]:
    """Temporaries whose last dimension leaves lanes empty that another one would fill, each with that one."""
    for m in cover.mappings:
        s = kernel.statements[m.statements[-1]]
        b = kernel.buffer(s.dest.buffer)
        if not _free(kernel, b.name) or b.elements is None:
            continue
        lengths = [e.const for e in b.shape]
        longest = max(range(len(lengths)), key=lambda d: (lengths[d], d))
        lanes = _lanes(m, {n for n, _ in s.dest.index[-1].terms})
        if EMPTY * lengths[-1] <= lanes <= lengths[longest]:
            yield b.name, longest


def _lanes(mapping: Mapping, axes: set[str]) -> int:
    """How much a call may take along some of a kernel's axes."""
    spans = [mapping.instruction.span(i).most for i, k in mapping.axes if k in axes]
    return max((n for n in spans if n is not None), default=0)
