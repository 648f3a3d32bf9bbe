"""Sums that go on from what cannot be brought to where they are made: by themselves, and added to that afterwards.

No move leads to accumulators that are only zeroed, added to and drained. A sum that begins with a bias, or goes on from
what the caller gave, is made there from zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from isam.compiler.offers.subject import one
from isam.ir.mapping import Cover, Mapping

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject

SUMS = 8  # at most


@one
def by_themselves(of: Subject) -> Steps:
    """Steps that make such sums by themselves."""
    stuck = frozenset(_stuck(of.cover, of.system.closed))
    if not stuck:
        return ()
    from isam.compiler.offers.way import Way
    from isam.transforms.law import Site
    from isam.transforms.values.nest import NEST_SUMS

    way = Way(of.kernel, 0)
    for law in NEST_SUMS:
        way.take_each(law, lambda k, ops=law.ops: [
            Site.of(sum=n, kept="", factor=0) for n, s in enumerate(k.statements)
            if s.dest.buffer in stuck and s.accumulate and s.reduces and s.op in ops
        ], SUMS)  # fmt: skip
    return way.steps


def _stuck(cover: Cover, closed: frozenset[str]) -> Iterator[str]:
    """Buffers that are summed up in closed memories, to which no move leads, and come from elsewhere."""
    last: dict[str, Mapping] = {}
    for m in cover.mappings:
        for o in m.operands:
            operand, homes = m.instruction.operand(o.operand), frozenset(m.instruction.contract(o.operand).homes)
            if o.buffer and operand.role == "inout" and homes and homes <= closed:
                before = last.get(o.buffer)
                if before is None or not _homes(before, o.buffer) & homes:
                    yield o.buffer
        last |= {o.buffer: m for o in m.operands if m.instruction.operand(o.operand).role in ("out", "inout")}


def _homes(m: Mapping, buffer: str) -> frozenset[str]:
    return frozenset(h for o in m.operands if o.buffer == buffer for h in m.instruction.contract(o.operand).homes)
