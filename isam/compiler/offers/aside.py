"""What a block reads of a buffer that it goes on to overwrite, set aside first.

Each element of ``d[i, j] min= d[i, k] + d[k, j]`` needs a row and a column as they were: all sums are made, and kept,
before the first element is written. With copies of that row and that column each element is written at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from isam.ir.kernel import Access, Kernel
from isam.transforms.edit import together

if TYPE_CHECKING:
    from isam.mapper.space import Step

COPIES = 4  # at most


def set_aside(kernel: Kernel) -> tuple[Step, ...]:
    """Steps that copy what is read along some axes of a block, where a statement behind it overwrites the buffer along
    all of them. What the judge of rewritings cannot decide is not offered."""
    from isam.compiler.offers.way import Way
    from isam.transforms.law import Site
    from isam.transforms.structure.unfold import Unfold

    way, law = Way(kernel, 0), Unfold()
    for _ in range(COPIES):
        found = next(_read_then_written(way.kernel), None)
        if found is None:
            break
        taken = len(way.steps)
        with way.attempt():
            way.take(law, Site.of(statement=found[0], source=found[1]))
        if len(way.steps) == taken:
            break
    return way.steps


def _read_then_written(kernel: Kernel) -> Iterator[tuple[int, int]]:
    """Statements, and which of their sources lie in what one behind them overwrites: one over as large a box, so that
    both could go through it together."""
    for i, s in enumerate(kernel.statements):
        for k, x in enumerate(s.sources):
            if not isinstance(x, Access) or {n for row in x.index for n in row.names}.issuperset(s.domain.names):
                continue
            later = (j for j in kernel.writers.get(x.buffer, ()) if j > i and together(kernel, i, j))
            if any(_extents(kernel, j) == _extents(kernel, i) and _meet(kernel, i, x, j) for j in later):
                yield i, k


def _extents(kernel: Kernel, i: int) -> list[str]:
    return sorted(str(a.extent) for a in kernel.statements[i].domain.axes)


def _meet(kernel: Kernel, i: int, x: Access, j: int) -> bool:
    """Whether something that a statement reads may be written by another one, in the same step of loops around."""
    from isam.ir.poly_domain import domain_set
    from isam.ir.relation import Region, Rel

    def touched(n: int, a: Access) -> Region:
        domain = kernel.statements[n].domain
        return Rel.affine(domain.names, a.index, Region.of(domain_set(domain, kernel.syms))).range()

    return not touched(i, x).apart(touched(j, kernel.statements[j].dest))
