"""Two axes of a sum as one, where an instruction takes several steps of a sum at once and the inner axis leaves some of
them empty: the seven taps of a row and three channels are a row of 21, ten pairs and a half instead of fourteen.

Rows have to lie one after the other for that, in the buffers too. Whether it pays to lay one out so, schedules tell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from isam.compiler.offers.way import StepRefused, Way
from isam.ir.affine import Affine
from isam.ir.kernel import Access, Kernel, Statement
from isam.transforms.edit import accesses, axis_of
from isam.transforms.law import Site
from isam.transforms.staging import viewable
from isam.transforms.structure.axes import joined
from isam.transforms.structure.fuse import FuseAxes, FuseDimensions
from isam.transforms.structure.rows import inside, users

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject


def longer_rows(of: Subject) -> Iterator[Steps]:
    """For each such sum, steps that put its two axes together."""
    for at, outer, inner in of.unfilled:
        yield longer_row(of.kernel, at, outer, inner)


def longer_row(kernel: Kernel, at: int, outer: str, inner: str) -> Steps:
    """Steps that put two axes of the sum at a statement together. What the judge of rewritings cannot decide is not
    offered."""
    way = Way(kernel, at)
    try:
        put_together(way, outer, inner)
    except StepRefused:
        return ()
    return way.steps


def put_together(way: Way, outer: str, inner: str, view: bool = False, region: Collection[int] = ()) -> None:
    """Goes on to where two axes at the sum are one. ``view``: arguments are seen otherwise for that, not copied.
    ``region``: only there, in statements of the kernel that the way began with, and where what they write is used; who
    makes what they read keeps both axes, and writes it where one finds it. Raises ``StepRefused``."""
    dimensions, group = FuseDimensions(), _joining(way, outer, region)
    if not group or not all(_straight(way.kernel, i, outer, inner) for i in group):
        raise StepRefused
    while (pair := _apart(way.kernel, group, outer, inner)) is not None:
        site = Site.of(buffer=pair[0], dim=pair[1])
        way.take(dimensions, seen(way.kernel, site) if view else site)
        group = _joining(way, outer, region)
    way.take(FuseAxes(), Site.of(outer=outer, inner=inner, statements=group))


def _joining(way: Way, axis: str, region: Collection[int]) -> tuple[int, ...]:
    """The statements in which two axes become one: all that share the outer one; of a ``region``, those of it, and all
    that use temporaries which such statements write."""
    along = {i for group in joined(way.kernel, axis) for i in group if way.at in group}
    if not region:
        return tuple(sorted(along))
    found, edge = set[int](), along.intersection(way.now(region))
    while edge:
        found |= edge
        written = {way.kernel.statements[i].dest.buffer for i in edge}
        edge = {i for b in written if way.kernel.buffer(b).role == "temp" for i in users(way.kernel, b)} & along - found
    return tuple(sorted(found))


def seen(kernel: Kernel, site: Site) -> Site:
    """The site, where it is a dimension of an argument that can be seen otherwise, with that instead of a copy."""
    return Site.of(**dict(site.at), view=True) if viewable(kernel.buffer(site["buffer"])) else site


def _straight(kernel: Kernel, at: int, outer: str, inner: str) -> bool:
    """Whether a statement goes through rows of the inner axis one after the other, in all that it touches: there they
    are one row, or lie in dimensions that may become one."""
    s = kernel.statements[at]
    if inner not in s.domain.names or not (size := s.domain.extent(inner)).is_constant:
        return False
    for x in accesses(s):
        d = _neighbours(kernel, s, x, outer, inner)
        rows = [r for n, r in enumerate(x.index) if d is None or n not in (d, d + 1)]
        if any(r.coefficient(outer) != size.const * r.coefficient(inner) for r in rows):
            return False
    return True


def _apart(kernel: Kernel, group: Sequence[int], outer: str, inner: str) -> tuple[str, int] | None:
    """A buffer with the two axes in neighbouring dimensions, which statements of the group do not have to themselves:
    such dimensions follow the axes."""
    private = inside(kernel, group)
    for s in (kernel.statements[n] for n in group):
        for x in (x for x in accesses(s) if x.buffer not in private):
            if (d := _neighbours(kernel, s, x, outer, inner)) is not None:
                return x.buffer, d
    return None


def _neighbours(kernel: Kernel, s: Statement, x: Access, outer: str, inner: str) -> int | None:
    """The first of two neighbouring dimensions that two axes go through, the inner one alone, but for axes of one step,
    and in full."""
    single = {a.name: 0 for a in s.domain.axes if a.extent == Affine((), 1)}
    shape, extent = kernel.buffer(x.buffer).shape, s.domain.extent(inner)
    found = (d for d in range(len(shape) - 1) if shape[d + 1] == extent and outer in x.index[d].names)
    return next((d for d in found if axis_of(x.index[d + 1].substitute(single)) == inner), None)
