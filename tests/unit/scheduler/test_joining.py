"""Whether tiles move in one piece or one by one is the Approach's to say: both are right, asked once for all that are
alike (SCH-9)."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from isam.approach.choice import Choice
from isam.approach.shipped.greedy import Greedy
from isam.compiler.job import Job
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, distinct
from isam.schedule.why import decisions_behind
from isam.scheduler.joining import APART, TOGETHER
from isam.scheduler.recur import calls
from isam.system.graph import System
from tests.pipeline import compiled, judge, simulated
from tests.unit.scheduler import test_begun, test_in_blocks, test_near_homes

CASES: dict[str, tuple[Kernel, dict[str, int], System]] = {
    "leaving": (parse_kernel(test_near_homes.LAYERS), {"M": 8, "K": 16, "N": 16}, simulated("toy")),
    "beside": (test_in_blocks.SOFTMAX, {"M": 64, "N": 64}, test_in_blocks.machine(4096)),
    "drained": (test_begun.HANDED, {"M": 32, "N": 32, "K": 32},
                test_begun.machine([test_begun.FED, test_begun.DRAINED], test_begun.MXU, test_begun.MZERO,
                                   test_begun.CLIPPED)),
}  # fmt: skip


class Saying(Greedy):
    """Takes the schedule that is made first, in which tiles move as it is told."""

    name = "saying"

    def __init__(self, answer: str):
        self.answer = answer

    def join(self, choice: Choice) -> Any:
        return self.answer

    def variant(self, choice: Choice) -> Any:
        return choice.options[0]


@cache
def made(case: str, answer: str) -> Job:
    kernel, sizes, system = CASES[case]
    job = compiled(kernel, sizes, system, Saying(answer), check=True)
    judge(kernel, sizes, job)
    return job


def joins(job: Job) -> list[Any]:
    assert job.schedule is not None
    return [d for d in job.schedule.trace.decisions if d.point == "join"]


@pytest.mark.parametrize("case", CASES)
def test_both_answers_are_right(case: str) -> None:
    together, apart = made(case, TOGETHER), made(case, APART)
    assert {d.label for d in joins(together)} == {TOGETHER}
    assert {d.label for d in joins(apart)} == {APART}
    assert together.schedule is not None
    assert apart.schedule is not None
    assert calls(together.schedule.call) < calls(apart.schedule.call)


@pytest.mark.parametrize("case", CASES)
def test_first_comes_what_takes_less_by_a_margin(case: str) -> None:
    decisions = joins(made(case, APART)) + joins(made(case, TOGETHER))
    for d in decisions:
        first, second = d.costs
        assert sorted(d.options) == sorted((APART, TOGETHER))
        assert (first < second) if d.options[0] == TOGETHER else (second >= 0.5 * first)
    assert any(d.options[0] == TOGETHER for d in decisions)


def test_moves_lead_back_to_it_and_calls_do_not() -> None:
    job = made("drained", TOGETHER)
    assert job.schedule is not None
    issues = [n for n in distinct(job.schedule.call) if isinstance(n, Issue)]
    behind = [n for n in issues if "join" in {d.point for d in decisions_behind(job.schedule, n)}]
    assert behind
    assert all(n.is_move for n in behind)
    assert {o.tile.buffer for n in behind for o in n.operands} <= {d.context["buffer"] for d in joins(job)}


def test_it_is_asked_once_for_all_that_are_alike() -> None:
    """Each pass asks for itself."""
    kernel, sizes, system = CASES["drained"]
    job = compiled(kernel, sizes, system, Saying(TOGETHER))
    assert job.schedule is not None
    passes, seen = 1 + any(d.point == "promote" for d in job.schedule.trace.decisions), {}
    for d in joins(job):
        key = tuple(map(str, d.context.values())), d.options, d.costs
        seen[key] = seen.get(key, 0) + 1
    assert seen
    assert max(seen.values()) <= passes
