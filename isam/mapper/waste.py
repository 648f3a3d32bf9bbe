"""Covers that would keep a product's temporary at the size of its domain (IR-5): asked about like a failure.

Such a cover is complete, but a temporary that passes from one instruction to another would be allocated larger than
anything the caller hands in. The matcher is asked why no instruction takes its writer and reader together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from isam.ir.dataflow import bits
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Statement
from isam.ir.mismatch import Mismatch
from isam.mapper.cover import Offer
from isam.mapper.pricing import number
from isam.mapper.uncovered import reports
from isam.transforms.edit import readers, writers


def wasted(found: Offer, instructions: Sequence[Instruction]) -> tuple[Mismatch, ...]:
    """The mismatches at temporaries that the best covers keep although they are larger than every argument."""
    kernel = found.kernel
    sizes = [math.prod(number(d) for d in b.shape) for b in kernel.arguments]
    largest = max(sizes, default=0)
    kept = {i: r for _, s in found.levels for r in s.covers[0] for i in bits(r.mask)}
    out: list[Mismatch] = []
    for b in kernel.buffers:
        if b.role != "temp" or math.prod(number(d) for d in b.shape) <= largest:
            continue
        users = (*writers(kernel, b.name), *readers(kernel, b.name))
        if any(not _is_product(kernel.statements[i]) for i in writers(kernel, b.name)):
            continue
        if len({kept[i] for i in users if i in kept}) > 1:
            out.extend(m for m in reports(kernel, instructions, writers(kernel, b.name)).mismatches)
    return tuple(out)


def _is_product(s: Statement) -> bool:
    return s.op == "mul" and not s.accumulate and all(isinstance(x, Access) for x in s.sources)
