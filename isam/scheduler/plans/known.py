"""Plans of the groups of a cover, found once: of one cover several schedules are made, to be compared, and most groups
are the same in all of them."""

from __future__ import annotations

from typing import NamedTuple

from isam.ir.mapping import Cover
from isam.once import once
from isam.scheduler.plan import Plan
from isam.scheduler.plans import plans
from isam.scheduler.plans.request import Request
from isam.scheduler.routes import Ways


class FoundPlans(NamedTuple):
    """What was found for a request, with the ways that its routes had decided on by then."""

    request: Request
    ways: Ways
    plans: tuple[Plan, ...]
    costs: tuple[float, ...]

    def holds(self, request: Request) -> bool:
        """Whether the same would be found again. Routes are asked for in the order in which they were then."""
        alike = request.group.number == self.request.group.number and request == self.request
        return alike and all(request.routes.of(*ends) == way for ends, way in self.ways.items())


@once
def _found(cover: Cover) -> dict[tuple[int, ...], list[FoundPlans]]:
    """By the numbers of a group's nests; filled in as they are asked for."""
    return {}


def plans_of(cover: Cover, request: Request) -> tuple[list[Plan], list[float]]:
    """As :func:`isam.scheduler.plans.plans` says, for a group of a cover."""
    known = _found(cover).setdefault(tuple(n.number for n in request.group.nests), [])
    got = next((f for f in known if f.holds(request)), None)
    if got is None:
        found, costs = plans(request)
        got = FoundPlans(request, request.routes.decided(), tuple(found), tuple(costs))
        if request.group.domain is None:  # blocks of one are worked out while they are walked
            known.append(got)
    return list(got.plans), list(got.costs)
