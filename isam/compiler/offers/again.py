"""Temporaries that are cheaper made again than kept (rematerialisation; Briggs, Cooper, Torczon, PLDI 1992, do it for
registers).

A value that a sum goes over and that is needed again once the sum is known, as the centred values of a layer norm are,
has to be kept in between. Where it is one quick operation on what is read anyway, and more than the nearest cache
holds, it may take less time to make it a second time: both are scheduled. Not of sums across rows: what is kept of a
block of columns lies together, while parts of long rows that are read again lie on few sets of a cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from isam.compiler.offers.subject import one
from isam.ir.kernel import Access, Kernel, Statement, recurrences
from isam.ir.mapping import Cover
from isam.system.hierarchy import capacities

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject
    from isam.system.graph import System

QUICK = 1.0  # cycles that a call may take which makes it again: no more than one that keeps it


@one
def made_again(of: Subject) -> Steps:
    """Steps by which every such temporary is made once for those who read it before a sum over it is done and once for
    those who wait for that; what is summed across lanes is made in parts then. What the judge of rewritings cannot
    decide is not offered."""
    kernel = of.kernel
    found = () if any(True for _ in recurrences(kernel.body)) else tuple(_kept(kernel, of.cover, of.system))
    if not found:
        return ()
    from isam.compiler.offers.partial import in_lanes
    from isam.compiler.offers.way import Way
    from isam.transforms.law import Site
    from isam.transforms.statements import Duplicate

    law, way = Duplicate(), Way(kernel, 0)
    for name, late in found:
        with way.attempt():
            way.take(law, Site.of(buffer=name, readers=way.now(late), late=True))
    return (*way.steps, *in_lanes(of.rewritten(way.kernel))) if way.steps else ()


def _kept(kernel: Kernel, cover: Cover, system: System) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Such temporaries, each with the statements that read it after a sum over it."""
    nearest = next(iter(capacities(system)), 0)
    cycles = [(m, m.instruction.cost.issue) for m in cover.mappings]
    quick = {n for m, issue in cycles if issue is not None and issue <= QUICK for n in m.statements}
    for b in kernel.buffers:
        writers = kernel.writers.get(b.name, ())
        if b.role != "temp" or (b.bytes or 0) <= nearest or len(writers) != 1 or writers[0] not in quick:
            continue
        s = kernel.statements[writers[0]]
        read = [kernel.buffer(name) for name in _reads(kernel, writers[0])]
        kept = any(x.role == "temp" and (x.bytes or 0) > nearest for x in read)  # would be, in its place
        if s.accumulate or kept or sum(x.bytes or 0 for x in read) >= 2 * (b.bytes or 0):
            continue
        late = _after_sums(kernel, b.name)
        if late and set(kernel.readers[b.name]) - set(late):
            yield b.name, late


def _after_sums(kernel: Kernel, name: str) -> tuple[int, ...]:
    """The statements that read a buffer and something that is summed over its rows."""
    made, summed = {name}, set[str]()
    for n, s in enumerate(kernel.statements):
        if summed & _reads(kernel, n):
            summed.add(s.dest.buffer)
        elif made & _reads(kernel, n):
            (summed if _along_rows(s, made) else made).add(s.dest.buffer)
    return tuple(n for n in kernel.readers.get(name, ()) if summed & _reads(kernel, n))


def _along_rows(s: Statement, made: set[str]) -> bool:
    """Whether a statement sums along the last dimension of what it reads of these."""
    rows = [x.index[-1] for x in s.sources if isinstance(x, Access) and x.buffer in made and x.index]
    return any(a in row.names for row in rows for a in s.reduces)


def _reads(kernel: Kernel, n: int) -> set[str]:
    return {x.buffer for x in kernel.statements[n].sources if isinstance(x, Access)}
