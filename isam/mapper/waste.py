"""Covers that would keep a product's temporary at the size of its domain (IR-5), or multiply each of its elements
before they are summed: asked about like a failure.

Such a cover is complete, but a temporary that passes from one instruction to another would be allocated larger than
anything the caller hands in, or what could be summed first is multiplied again for every element of the result. The
matcher is asked why no instruction takes its writer and reader together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from isam.ir.dataflow import bits
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Kernel, Statement
from isam.ir.mismatch import Mismatch
from isam.mapper.as_it_stands import Selection
from isam.mapper.pricing import number
from isam.mapper.uncovered import reports
from isam.transforms.edit import readers, writers


def wasted(found: Selection, instructions: Sequence[Instruction]) -> tuple[Mismatch, ...]:
    """The mismatches at temporaries that the best covers keep although they are larger than every argument, or are
    summed along an axis that what they are multiplied with does not have."""
    kernel = found.kernel
    sizes = [math.prod(number(d) for d in b.shape) for b in kernel.arguments]
    largest = max(sizes, default=0)
    kept = {i: r for _, s in found.levels for r in s.covers[0] for i in bits(r.mask)}
    out: list[Mismatch] = []
    for b in kernel.buffers:
        if b.role != "temp":
            continue
        if math.prod(number(d) for d in b.shape) <= largest and not _summed_late(kernel, b.name):
            continue
        users = (*writers(kernel, b.name), *readers(kernel, b.name))
        if any(not _is_product(kernel.statements[i]) for i in writers(kernel, b.name)):
            continue
        if len({kept[i] for i in users if i in kept}) > 1:
            out.extend(m for m in reports(kernel, instructions, writers(kernel, b.name)).mismatches)
    return tuple(out)


def _summed_late(kernel: Kernel, name: str) -> bool:
    """Whether a temporary is multiplied with what has an axis more, and lacks one that the products are then summed
    along: summed first, it would be multiplied fewer times."""
    read = readers(kernel, name)
    s = kernel.statements[read[0]] if len(read) == 1 else None
    if s is None or not _is_product(s):
        return False
    made = readers(kernel, s.dest.buffer)
    total = kernel.statements[made[0]] if len(made) == 1 else None
    if total is None or not (total.accumulate and total.op == "add" and isinstance(total.sources[0], Access)):
        return False
    along = zip(s.dest.index, total.sources[0].index, strict=True)
    summed = {a for row, at in along for a in row.names if set(at.names) & set(total.reduces)}
    mine, other = (set(_axes(x)) for x in sorted(s.reads, key=lambda x: x.buffer != name))
    return bool(summed & mine - other) and bool(other - mine)


def _axes(x: Access) -> Iterator[str]:
    return (n for row in x.index for n in row.names)


def _is_product(s: Statement) -> bool:
    return s.op == "mul" and not s.accumulate and all(isinstance(x, Access) for x in s.sources)
