"""What the steps of a recurrent loop write: elements that no step has reached hold what they held before the loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.kernel import Domain, Item, Recurrence, Statement, Sym
from isam.ir.poly_domain import domain_set
from isam.ir.relation import Region, Rel


def reached(loop: Recurrence, syms: Sequence[Sym], whole: bool) -> dict[str, Region]:
    """Per buffer, the elements written by all steps of the loop (``whole``), or by those before the present one."""
    counter = f"{loop.axis.name} earlier"
    by = {loop.axis.name: Affine.of(counter)}
    least = [] if whole else [Affine.of(loop.axis.name, 1, -1) - counter]
    out: dict[str, Region] = {}
    for s, inner in _within(loop.body, ()):
        outer = [(counter, loop.axis.extent), *((r.axis.name, r.axis.extent.substitute(by)) for r in inner)]
        axes = tuple(replace(a, extent=a.extent.substitute(by)) for a in s.domain.axes)
        where = (*(w.substitute(by) for w in s.domain.where), *least)
        points = Region.of(domain_set(Domain(axes, where), syms, outer))
        names = (*(n for n, _ in outer), *s.domain.names)
        written = Rel.affine(names, [row.substitute(by) for row in s.dest.index], points).range()
        out[s.dest.buffer] = out[s.dest.buffer] | written if s.dest.buffer in out else written
    return out


def _within(items: Sequence[Item], loops: tuple[Recurrence, ...]) -> Iterator[tuple[Statement, tuple[Recurrence, ...]]]:
    for it in items:
        if isinstance(it, Recurrence):
            yield from _within(it.body, (*loops, it))
        else:
            yield it, loops
