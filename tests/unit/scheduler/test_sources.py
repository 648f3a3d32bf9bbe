"""Where operands are fetched from: asked once for what nobody can tell apart, and both answers are right (SCH-4)."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import isam
from isam.approach.choice import Choice
from isam.approach.shipped.greedy import Greedy
from isam.compiler.job import Job
from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, Schedule, distinct
from isam.schedule.why import decisions_behind
from tests.pipeline import compiled, judge, simulated
from tests.unit.scheduler.test_near_homes import LAYERS

PRODUCT, SIZES = isam.einsum("mk,kn->mn"), {"M": 24, "N": 20, "K": 33}


class FromHome(Greedy):
    """Fetches what lies at home from there, however near another copy is."""

    name = "from home"

    def source(self, choice: Choice) -> Any:
        return next((o for o in choice.options if o.kind == "its home"), choice.options[0])


@cache
def made(on: str = "toy", home: bool = False) -> Job:
    job = compiled(PRODUCT, SIZES, simulated(on), FromHome() if home else Greedy(), check=True)
    judge(PRODUCT, SIZES, job)
    return job


def schedule(job: Job) -> Schedule:
    assert job.schedule is not None
    return job.schedule


def asked(job: Job) -> list[Any]:
    return [d for d in schedule(job).trace.decisions if d.point == "source"]


def fetched(job: Job) -> Counter[str]:
    """Moves from home, by buffer."""
    out: Counter[str] = Counter()
    for n in distinct(schedule(job).call):
        if isinstance(n, Issue) and n.is_move:
            out.update(o.tile.buffer for o in n.operands if o.name == "S" and o.place.memory == "dram")
    return out


def test_it_is_asked_once_and_options_can_be_told_apart() -> None:
    for on in ("toy", "toy_pair", "casestudy"):
        decisions = asked(made(on))
        questions = [(d.context["buffer"], d.context["to"], d.options) for d in decisions]
        assert len(questions) == len(set(questions))
        assert all(len(d.options) == len(set(d.options)) == d.count > 1 for d in decisions)
        assert all(set(d.context) == {"buffer", "tile", "to"} for d in decisions)
    assert asked(made()), "nothing was asked"


def test_what_is_decided_holds_for_all_tiles() -> None:
    near, home = made(), made(home=True)
    assert {d.chosen for d in asked(near)} == {0}
    assert all(" its home " in d.label for d in asked(home))
    buffers = {d.context["buffer"] for d in asked(home)}
    assert buffers
    assert all(fetched(home)[b] > fetched(near)[b] for b in buffers)


def test_a_move_leads_back_to_the_decision_on_all_its_like() -> None:
    s = schedule(made())
    (decision, *_) = asked(made())
    buffer, to = decision.context["buffer"], decision.context["to"]
    behind = 0
    for n in distinct(s.call):
        if isinstance(n, Issue) and n.is_move:
            brings = any((o.tile.buffer, o.place.memory) == (buffer, to) for o in n.operands)
            assert (decision in decisions_behind(s, n)) is brings
            behind += brings
    assert behind > 1


def test_a_computing_step_leads_back_to_what_its_group_hands_on() -> None:
    job = compiled(parse_kernel(LAYERS), {"M": 8, "K": 16, "N": 16}, simulated("toy"))
    (decision,) = (d for d in schedule(job).trace.decisions if d.point == "promote")
    numbers = {n for some in decision.context["nests"] for n in some}
    calls = [n for n in distinct(schedule(job).call) if isinstance(n, Issue) and n.nest is not None]
    assert all((decision in decisions_behind(schedule(job), n)) is (n.nest in numbers) for n in calls)
    assert calls
