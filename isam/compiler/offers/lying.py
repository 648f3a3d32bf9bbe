"""Temporaries that nobody said how they lie, with a longer dimension last: three channels of a pixel, or the taps of a
row, fill no vector, the pixels of a row do.

An expression's temporaries lie as the axes of its block stand (IR-5). Which axis lies in lanes, who reads them decides
as well; so both are scheduled, where calls that make one are half empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover, Mapping

if TYPE_CHECKING:
    from isam.mapper.space import Step

EMPTY = 2  # times as much that a call may take along a dimension than that has, from which on another one comes last


def longest_last(kernel: Kernel, cover: Cover) -> tuple[Step, ...]:
    """Steps that put the longest dimension last, of every such temporary that calls make with half of their lanes at
    most; ``cover``: of the kernel as it is written. What the judge of rewritings cannot decide is not offered."""
    short = dict(_short(kernel, cover))
    if not short:
        return ()
    from isam.compiler.offers.way import Way
    from isam.transforms.law import Site
    from isam.transforms.structure.dimensions import PermuteDimensions

    law, way = PermuteDimensions(), Way(kernel, 0)
    for name, longest in short.items():
        with way.attempt():
            for d in range(longest, len(kernel.buffer(name).shape) - 1):
                way.take(law, Site.of(buffer=name, dim=d))
    return way.steps


def _short(kernel: Kernel, cover: Cover) -> Iterator[tuple[str, int]]:
    """Temporaries whose last dimension leaves lanes empty that another one would fill, each with that one."""
    for m in cover.mappings:
        s = kernel.statements[m.statements[-1]]
        b = kernel.buffer(s.dest.buffer)
        if b.role != "temp" or b.declared or len(b.shape) < 2 or b.elements is None:
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
