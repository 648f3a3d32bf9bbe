"""What a block reads of a buffer that it goes on to overwrite, set aside first.

Each element of ``s[i, j] = d[i, k] + d[k, j]`` and then ``d[i, j] min= s[i, j]`` needs a row and a column as they were:
all sums are made, and kept, before the first element is written. With copies of that row and that column each element
is written at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from isam.compiler.offers.subject import one
from isam.ir.kernel import Access, Kernel

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject

COPIES = 4  # at most


@one
def set_aside(of: Subject) -> Steps:
    """Steps that copy what is read along some axes of a block, where a statement behind it overwrites the buffer along
    all of them. What the judge of rewritings cannot decide is not offered."""
    if not any(True for _ in _overwritten(of.kernel)):
        return ()
    from isam.compiler.offers.way import Way
    from isam.transforms.law import Site
    from isam.transforms.structure.unfold import Unfold

    way = Way(of.kernel, 0)
    way.take_each(Unfold(), lambda k: [Site.of(statement=i, source=n) for i, n in _read_then_written(k)], COPIES)
    return way.steps


def _overwritten(kernel: Kernel) -> Iterator[tuple[int, int, int]]:
    """Statements, their sources that do not go along all axes, and statements behind them that write there."""
    for i, s in enumerate(kernel.statements):
        for k, x in enumerate(s.sources):
            if isinstance(x, Access) and not {n for row in x.index for n in row.names}.issuperset(s.domain.names):
                yield from ((i, k, j) for j in kernel.writers.get(x.buffer, ()) if j > i)


def _read_then_written(kernel: Kernel) -> list[tuple[int, int]]:
    """Statements, and which of their sources lie in what one behind them overwrites: one over as large a box, so that
    both could go through it together."""
    from isam.transforms.edit import together

    return list(dict.fromkeys(
        (i, k) for i, k, j in _overwritten(kernel)
        if together(kernel, i, j) and _extents(kernel, j) == _extents(kernel, i) and _meet(kernel, i, k, j)
    ))  # fmt: skip


def _extents(kernel: Kernel, i: int) -> list[str]:
    return sorted(str(a.extent) for a in kernel.statements[i].domain.axes)


def _meet(kernel: Kernel, i: int, k: int, j: int) -> bool:
    """Whether something that a source of a statement reads may be written by another one, in the same step of loops
    around."""
    from isam.ir.poly_domain import domain_set
    from isam.ir.relation import Region, Rel

    def touched(n: int, a: Access) -> Region:
        domain = kernel.statements[n].domain
        return Rel.affine(domain.names, a.index, Region.of(domain_set(domain, kernel.syms))).range()

    source = kernel.statements[i].sources[k]
    assert isinstance(source, Access)
    return not touched(i, source).apart(touched(j, kernel.statements[j].dest))
