"""Temporaries that are made at fewer points than they were typed at, or at more: once where an axis is not needed, and
everywhere instead of where a condition holds.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from isam.compiler.offers.subject import one
from isam.ir.kernel import Access, Kernel

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject


@one
def made_once(of: Subject) -> Steps:
    """What is the same along a dimension of a temporary, and was typed as if it were not, is made once. What the judge
    of rewritings cannot decide stays."""
    if not any(_typed_wide(of.kernel, b.name) for b in of.kernel.buffers if b.role == "temp"):
        return ()
    from isam.compiler.offers.way import StepRefused, Way
    from isam.transforms.narrow import Narrow

    law, way = Narrow(), Way(of.kernel, 0)
    while sites := law.sites(way.kernel):
        try:
            way.take(law, sites[0])
        except StepRefused:
            break
    return way.steps


@one
def speculated(of: Subject) -> Steps:
    """Temporaries that are made at the points of some condition only are made at all of a box: more work, in calls as
    large as they may be."""
    temps = {b.name for b in of.kernel.buffers if b.role == "temp"}
    some = [n for n, s in enumerate(of.kernel.statements) if s.domain.where and s.dest.buffer in temps]
    if not some:
        return ()
    from isam.compiler.offers.way import StepRefused, Way
    from isam.transforms.law import Site
    from isam.transforms.structure.speculate import Speculate

    law, way = Speculate(), Way(of.kernel, 0)
    for n in some:
        with suppress(StepRefused):
            way.take(law, Site.of(statement=n))
    return way.steps


def _typed_wide(kernel: Kernel, name: str) -> bool:
    """Whether all that is written to a temporary is without an axis that it is written along."""
    free = [_axes(s.dest) - set[str]().union(*(_axes(x) for x in s.sources if isinstance(x, Access)))
            for s in kernel.statements if s.dest.buffer == name]  # fmt: skip
    return bool(free) and all(free)


def _axes(x: Access) -> set[str]:
    return {n for row in x.index for n in row.names}
