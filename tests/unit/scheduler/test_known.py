"""Plans of equal groups are found once for all schedules of a cover, and are those that would be found again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.approach.choice import Trace
from isam.approach.shipped.greedy import Greedy
from isam.schedule.serial import to_json
from isam.scheduler.nests import nests_of
from isam.scheduler.plan import Group, Plan
from isam.scheduler.plans import known
from isam.scheduler.plans.known import FoundPlans, plans_of
from isam.scheduler.plans.request import Request
from isam.scheduler.routes import Routes
from isam.scheduler.stays import smaller
from tests.corpus import CASES
from tests.pipeline import compiled, of_corpus, simulated

SIZES = {"B": 2, "X": 5, "H": 6, "T": 3}


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[Group]:
    """The groups whose plans are found."""
    plans, out = known.plans, list[Group]()

    def watched(request: Request) -> tuple[list[Plan], list[float]]:
        out.append(request.group)
        return plans(request)

    monkeypatch.setattr(known, "plans", watched)
    return out


def test_the_same_schedule_is_made_of_fewer(found: list[Group], monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, machine = CASES["lstm"].load(), simulated("casestudy")
    first = to_json(compiled(kernel, SIZES, machine).schedule)
    once = len(found)
    monkeypatch.setattr(FoundPlans, "holds", lambda *_: False)
    assert to_json(compiled(kernel, SIZES, machine).schedule) == first
    assert once < len(found) - once


def test_what_else_is_asked_is_found_anew(found: list[Group]) -> None:
    """Of another machine, a group with another number, another cover, or where elements go another way."""
    job = of_corpus("matmul")
    assert job.cover is not None
    system, cover = job.system, replace(job.cover)  # of which nothing is known
    group = Group((nests_of(cover, system)[-1],))
    routes = Routes(system, Trace(Greedy()))

    def count(of: Group = group, on=system, by: Routes = routes, covers=cover) -> int:
        before = len(found)
        plans_of(covers, Request(of, on, by))
        return len(found) - before

    assert (count(), count(), count(of=Group(nests_of(cover, system)[-1:]))) == (1, 0, 0)
    assert count(on=smaller(system, "sp", 1024)) == 1
    assert count(of=replace(group, number=7)) == 1
    other = Routes(system, Trace(Greedy()))
    ends, way = next((e, w) for e, w in routes.decided().items() if w is not None)
    other._known[ends] = (*way, way[-1])
    assert not FoundPlans(Request(group, system, routes), routes.decided(), (), ()).holds(Request(group, system, other))
    assert (count(), count(covers=replace(cover)), count()) == (0, 1, 0)


def test_lists_that_are_given_out_may_be_changed() -> None:
    job = of_corpus("matmul")
    assert job.cover is not None
    group, routes = Group(nests_of(job.cover, job.system)), Routes(job.system, Trace(Greedy()))
    options, costs = plans_of(job.cover, Request(group, job.system, routes))
    count = len(options)
    options.clear()
    costs.clear()
    assert [len(x) for x in plans_of(job.cover, Request(group, job.system, routes))] == [count, count]
