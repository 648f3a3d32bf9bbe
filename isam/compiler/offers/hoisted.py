"""Sums that leave a recurrent loop.

What a step of a recurrent loop does not need of the step before may be done for all steps at once before the loop: an
input projection becomes one large product. Whether that pays depends on what else competes for room and bandwidth,
which only schedules tell.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from isam.compiler.offers.subject import one
from isam.ir.kernel import Kernel, recurrences

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject
    from isam.transforms.law import Site
    from isam.transforms.statements import Hoist

AT_ONCE = 32  # steps of a run-time number of them for which sums are taken out of a loop together


@one
def hoisted(of: Subject) -> Steps:
    """What takes sums out of a recurrent loop."""
    return taken_out(of.kernel)


@lru_cache(maxsize=16)
def taken_out(kernel: Kernel) -> Steps:
    """What takes sums out of a recurrent loop; where the number of steps is known at run time only, so many at a time.
    Judged once for a kernel that is compiled for several machines, or again and again to be tuned. What the judge of
    rewritings cannot decide is not offered."""
    from isam.compiler.offers.way import Way
    from isam.transforms.law import taken
    from isam.transforms.statements import Hoist, Parts

    parts, hoist, way = Parts((AT_ONCE,)), Hoist(), Way(kernel, 0)
    cuts = parts.sites(kernel)[:1]
    sums = _sums_in_loops(hoist, taken(parts, kernel, cuts[0]).kernel if cuts else kernel)
    if not sums:  # before anything is judged
        return ()
    with way.attempt():
        for site in cuts:
            way.take(parts, site)
        way.take(hoist, sums[0])
    return way.steps


def _sums_in_loops(hoist: Hoist, kernel: Kernel) -> list[Site]:
    """Where sums may leave loops whose number of steps is known, the fewest statements first."""
    trips = [r.axis.extent for r in recurrences(kernel.body)]
    able = [s for s in hoist.sites(kernel) if any(kernel.statements[i].reduces for i in s["statements"])
            and trips[s["loop"]].is_constant and trips[s["loop"]].const > 1]  # fmt: skip
    return sorted(able, key=lambda s: len(s["statements"]))
