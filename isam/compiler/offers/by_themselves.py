"""Sums that go on from what is not where they are made: by themselves, and added to that afterwards.

No move leads to accumulators that are only zeroed, added to and drained. A sum that begins with a bias, or goes on from
what the caller gave, is made there from zero. Where other units can make it, it need not be: they may take far longer.
Where a move leads there (tiles), what a sum begins with would take it, and a place on the way, for every block.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from isam.ir.kernel import Kernel, Literal
from isam.ir.mapping import Cover, Mapping

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject

SUMS = 8  # at most


def by_themselves(of: Subject) -> Iterator[Steps]:
    """Steps that make such sums by themselves: those that have to be, then those as well that others make now, and
    those that begin with what is brought."""
    kernel, cover, closed = of.kernel, of.cover, of.system.closed
    stuck = frozenset(b for b, homes in _begun_elsewhere(cover) if homes <= closed)
    others = frozenset(_elsewhere(kernel, cover, closed)) if closed else frozenset[str]()
    yield _apart(kernel, stuck)
    for more in dict.fromkeys((stuck | others, stuck | brought(of))):
        if more > stuck:
            yield _apart(kernel, more)


def brought(of: Subject) -> frozenset[str]:
    """Buffers that are summed up in cells with names next to a unit, behind caches, and begin elsewhere."""
    cells = of.system.named
    return frozenset(b for b, homes in _begun_elsewhere(of.cover) if homes <= cells) if cells else frozenset()


def from_zero(of: Subject, sums: frozenset[str]) -> Steps:
    """Steps that make sums by themselves; none for sizes known at run time: no schedule can be timed then."""
    return () if of.kernel.syms else _apart(of.kernel, sums)


def _apart(kernel: Kernel, sums: frozenset[str]) -> Steps:
    """Steps that make the sums in these buffers by themselves."""
    if not sums:
        return ()
    from isam.compiler.offers.way import Way
    from isam.transforms.law import Site
    from isam.transforms.values.nest import NEST_SUMS

    way = Way(kernel, 0)
    for law in NEST_SUMS:
        way.take_each(law, lambda k, ops=law.ops: [
            Site.of(sum=n, kept="", factor=0) for n, s in enumerate(k.statements)
            if s.dest.buffer in sums and s.accumulate and s.reduces and s.op in ops
        ], SUMS)  # fmt: skip
    return way.steps


def _begun_elsewhere(cover: Cover) -> Iterator[tuple[str, frozenset[str]]]:
    """Buffers that are summed up in memories in which they do not begin, and these memories."""
    last: dict[str, Mapping] = {}
    for m in cover.mappings:
        for o in m.operands:
            operand, homes = m.instruction.operand(o.operand), frozenset(m.instruction.contract(o.operand).homes)
            if o.buffer and operand.role == "inout" and homes:
                before = last.get(o.buffer)
                if before is None or not _homes(before, o.buffer) & homes:
                    yield o.buffer, homes
        last |= {o.buffer: m for o in m.operands if m.instruction.operand(o.operand).role in ("out", "inout")}


def _elsewhere(kernel: Kernel, cover: Cover, closed: frozenset[str]) -> Iterator[str]:
    """Buffers summed up in other memories that begin with more than a number, or come from the caller."""
    there = {b for m in cover.mappings for s in m.statements for b in (cover.kernel.statements[s].dest.buffer,)
             if _homes(m, b) and _homes(m, b) <= closed}  # fmt: skip
    for n, s in enumerate(kernel.statements):
        if s.accumulate and s.reduces and s.dest.buffer not in there:
            before = (k for k in reversed(kernel.statements[:n]) if k.dest.buffer == s.dest.buffer)
            first = next((k for k in before if not k.accumulate), None)
            if first is None or not (first.op == "copy" and isinstance(first.sources[0], Literal)):
                yield s.dest.buffer


def _homes(m: Mapping, buffer: str) -> frozenset[str]:
    return frozenset(h for o in m.operands if o.buffer == buffer for h in m.instruction.contract(o.operand).homes)
