"""Plans of the groups of a cover, found once: of one cover several schedules are made, to be compared, and most groups
are the same in all of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextvars import ContextVar
from typing import NamedTuple

from isam.ir.mapping import Cover
from isam.scheduler.plan import Group, Plan
from isam.scheduler.plans import NOWHERE, plans
from isam.scheduler.plans.boxes import NOTHING, Lasting
from isam.scheduler.plans.dealing import Dealing
from isam.scheduler.routes import Routes, Ways
from isam.system.graph import System


class FoundPlans(NamedTuple):
    """What was found for a group on a machine, whose routes are ``ways``."""

    group: Group
    system: System
    ways: Ways
    plans: tuple[Plan, ...]
    costs: tuple[float, ...]

    def holds(self, group: Group, system: System, routes: Routes) -> bool:
        """Whether the same would be found again. Routes are asked for in the order in which they were then."""
        alike = group.number == self.group.number and group == self.group and system == self.system
        return alike and all(routes.of(*ends) == way for ends, way in self.ways.items())


LATEST: ContextVar[tuple[Cover, dict[object, list[FoundPlans]]] | None] = ContextVar("isam_plans", default=None)


def plans_of(
    cover: Cover,
    group: Group,
    system: System,
    routes: Routes,
    bindable: frozenset[str],
    lasting: Lasting = NOTHING,
    dealing: Dealing | None = None,
    near: Collection[str] = (),
    gathering: Mapping[str, int] = NOWHERE,
    steps: Collection[str] = (),
) -> tuple[list[Plan], list[float]]:
    """As :func:`isam.scheduler.plans.plans` says, for a group of a cover: those of the cover asked for last are kept.
    """
    latest = LATEST.get()
    if latest is None or latest[0] is not cover:
        latest = cover, {}
        LATEST.set(latest)
    numbers = tuple(n.number for n in group.nests)
    key = (numbers, bindable, lasting, dealing, frozenset(near), frozenset(gathering.items()), frozenset(steps))
    known = latest[1].setdefault(key, [])
    got = next((f for f in known if f.holds(group, system, routes)), None)
    if got is None:
        found, costs = plans(group, system, routes, bindable, lasting, dealing, near, gathering, steps)
        got = FoundPlans(group, system, routes.decided(), tuple(found), tuple(costs))
        if group.domain is None:  # blocks of one are worked out while they are walked
            known.append(got)
    return list(got.plans), list(got.costs)
