"""Two axes of a sum as one, where an instruction takes several steps of a sum at once and the inner axis leaves some of
them empty: the seven taps of a row and three channels are a row of 21, ten pairs and a half instead of fourteen.

Rows have to lie one after the other for that, in the buffers too. Whether it pays to lay one out so, schedules tell.
"""

from __future__ import annotations

from isam.compiler.way import StepRefused, Way
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.mapper.space import Step
from isam.transforms.edit import accesses
from isam.transforms.law import Site
from isam.transforms.staging import viewable
from isam.transforms.structure.fuse import FuseAxes, FuseDimensions
from isam.transforms.structure.rows import axis_of, inside


def longer_row(kernel: Kernel, at: int, outer: str, inner: str) -> tuple[Step, ...]:
    """Steps that put two axes of the sum at a statement together. What the judge of rewritings cannot decide is not
    offered."""
    way = Way(kernel, at)
    try:
        put_together(way, outer, inner)
    except StepRefused:
        return ()
    return way.steps


def put_together(way: Way, outer: str, inner: str, view: bool = False) -> None:
    """Goes on to where two axes at the sum are one. ``view``: arguments are seen otherwise for that, not copied. Raises
    ``StepRefused``."""
    dimensions, axes = FuseDimensions(), FuseAxes()
    while (pair := _apart(way, outer, inner)) is not None:
        site = Site.of(buffer=pair[0], dim=pair[1])
        way.take(dimensions, seen(way.kernel, site) if view else site)
    wanted = (outer, inner)
    site = next((x for x in axes.sites(way.kernel) if (x["outer"], x["inner"]) == wanted and way.at in x["statements"]),
                None)  # fmt: skip
    if site is None:
        raise StepRefused
    way.take(axes, site)


def seen(kernel: Kernel, site: Site) -> Site:
    """The site, where it is a dimension of an argument that can be seen otherwise, with that instead of a copy."""
    return Site.of(**dict(site.at), view=True) if viewable(kernel.buffer(site["buffer"])) else site


def _apart(way: Way, outer: str, inner: str) -> tuple[str, int] | None:
    """A buffer with the two axes in neighbouring dimensions, the inner one alone, but for axes of one step, and in
    full."""
    group = way.group(outer)
    private = inside(way.kernel, group)  # these follow the axes
    extent = way.kernel.statements[way.at].domain.extent(inner)
    for s in (way.kernel.statements[n] for n in group):
        single = {a.name for a in s.domain.axes if a.extent == Affine((), 1)}
        for x in (x for x in accesses(s) if x.buffer not in private):
            shape = way.kernel.buffer(x.buffer).shape
            for d in range(len(shape) - 1):
                row = x.index[d + 1].substitute(dict.fromkeys(single, 0))
                if shape[d + 1] == extent and axis_of(row) == inner and outer in x.index[d].names:
                    return x.buffer, d
    return None
