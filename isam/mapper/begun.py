"""Sums in memories that no move leads to: what begins one writes there, or it would have no way in (SYS-6)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from isam.ir.kernel import Access, Kernel, Statement
from isam.mapper.pricing import PricedMapping


def beginning_there(
    candidates: Sequence[PricedMapping], kernel: Kernel, closed: frozenset[str], kept: Collection[str] = ()
) -> tuple[PricedMapping, ...]:
    """The candidates, cheapest first, without those that leave a value where the cheapest way to go on with it cannot
    have it, as it reads that in memories of which all are ``closed``: no move leads there. What cannot go on from
    anywhere is left out where there are other ways. ``kept``: names of instructions that stay."""
    if not closed:
        return tuple(candidates)
    out = list(candidates)
    for c in candidates:
        for buffer, homes in _needed(c, closed):
            last = _writer(kernel, c, buffer)
            if last is None or not any(c is other for other in out):
                continue
            before = [w for w in out if w.mask >> last & 1]
            able = [w for w in before if _leaves(w, buffer) & homes]
            if not able:
                others = [o for o in out if o.mask == c.mask and o is not c]
                drop = [c] if others and c.mapping.instruction.name not in kept else []
            elif next(o for o in out if o.mask == c.mask) is c:
                drop = [w for w in before if not _leaves(w, buffer) & homes and w.mapping.instruction.name not in kept]
            else:
                drop = []
            out = [o for o in out if not any(o is d for d in drop)]
    return tuple(out)


def _needed(c: PricedMapping, closed: frozenset[str]) -> list[tuple[str, frozenset[str]]]:
    """Buffers that it reads in memories of which all are closed, and these."""
    i = c.mapping.instruction
    found = ((o, frozenset(i.contract(o.operand).homes)) for o in c.mapping.operands if o.buffer)
    return [(o.buffer, homes) for o, homes in found
            if homes and homes <= closed and i.operand(o.operand).role != "out"]  # fmt: skip


def _leaves(c: PricedMapping, buffer: str) -> frozenset[str]:
    """Where it leaves what it writes of a buffer."""
    i = c.mapping.instruction
    return frozenset(h for o in c.mapping.operands if o.buffer == buffer and i.operand(o.operand).role != "in"
                     for h in i.contract(o.operand).homes)  # fmt: skip


def _writer(kernel: Kernel, c: PricedMapping, buffer: str) -> int | None:
    """The last statement before it that writes a buffer."""
    first = min((n for n in c.mapping.statements if _touches(kernel.statements[n], buffer)), default=0)
    return max((n for n in range(first) if kernel.statements[n].dest.buffer == buffer), default=None)


def _touches(s: Statement, buffer: str) -> bool:
    return s.dest.buffer == buffer or any(isinstance(x, Access) and x.buffer == buffer for x in s.sources)
