"""Which cover is taken: what cannot be proved gives way to another, visibly; what is wrong never does."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest

import isam
import isam.proof
from isam.approach.choice import Approach, Decision, Trace
from isam.approach.shipped.greedy import Greedy
from isam.approach.shipped.replay import Replay
from isam.approach.shipped.strategies import BestFirst
from isam.compiler.job import Job
from isam.compiler.report import report
from isam.compiler.stages import new_job, plain_stages, run_stages
from isam.compiler.variants import LEFT_OUT
from isam.diagnostics import IsamError
from isam.ir.text import parse_kernel
from isam.proof import ProofError, Violation, prove
from isam.schedule.serial import to_json
from isam.schedule.tree import Schedule
from tests.on_the_tree import on_the_tree
from tests.pipeline import judge, simulated
from tests.unit.scheduler.test_agree import LAYER, machine
from tests.unit.scheduler.test_agree import SIZES as LAYER_SIZES
from tests.unit.test_partial import SOFTMAX

SIZES = {"M": 3, "N": 40}
WRITTEN, AGREEING = "as written", "smaller calls that agree"
ADD = """kernel twice(M, N)
  in  a: f32[M, N]
  out y: f32[M, N]
  forall i < M, j < N
    y[i, j] = a[i, j] + a[i, j]
"""


class Refusing:
    """Proves schedules but those of some variants, of which it finds what ``executed`` says."""

    def __init__(self, chosen: Collection[str] | None, executed: tuple[Violation, ...] | None = None):
        self.chosen, self.executed, self.asked = chosen, executed, 0

    def __call__(self, schedule: Schedule) -> Any:
        self.asked += 1
        taken = [d for d in schedule.trace.decisions if d.point == "variant"]
        if self.chosen is None or (taken and taken[-1].label in self.chosen):
            raise ProofError(schedule, [Violation(8, "stale", "planted")], self.executed)
        return prove(schedule)


def job(text: str = SOFTMAX, approach: Approach | None = None, replay: Trace | None = None) -> Job:
    return new_job(parse_kernel(text), simulated("host-avx512"), SIZES, approach or Greedy(), replay=replay)


def labels(done: Job) -> list[str]:
    return [d.label for d in done.trace.decisions if d.point == "variant"]


def quickest() -> str:
    (label,) = labels(run_stages(job()))
    assert label != WRITTEN
    return label


@pytest.mark.parametrize("approach", [Greedy(), BestFirst()], ids=lambda a: a.name)
def test_what_cannot_be_proved_gives_way(monkeypatch: pytest.MonkeyPatch, approach: Approach) -> None:
    first = quickest()
    monkeypatch.setattr(isam.proof, "prove", Refusing([first]), raising=False)
    done = run_stages(job(approach=approach))
    assert done.unproved == [first]
    assert labels(done)[0] == first
    assert first not in labels(done)[1:]
    assert done.certificate is not None
    assert "could not be proved, and gave way\n  " + first in report(done)
    again = [d for d in done.trace.decisions if d.point == "variant"][1]
    assert again.context["unproved"] == [first]
    assert first not in again.context["options"]
    judge(parse_kernel(SOFTMAX), SIZES, done)
    replayed = run_stages(job(replay=done.trace))
    assert replayed.unproved == [first]
    assert replayed.schedule is not None
    assert done.schedule is not None
    assert to_json(replayed.schedule) == to_json(done.schedule)


def test_nothing_is_said_where_the_first_is_proved() -> None:
    done = run_stages(job())
    assert done.unproved == []
    assert "gave way" not in report(done)
    assert [d.context["unproved"] for d in done.trace.decisions if d.point == "variant"] == [[]]


def test_what_is_wrong_never_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Refusing([quickest()], (Violation(8, "stale", "met"),))
    monkeypatch.setattr(isam.proof, "prove", wrong, raising=False)
    with pytest.raises(ProofError, match="is wrong"):
        plain_stages(job())


def test_where_none_is_proved_the_last_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = Refusing(None)
    monkeypatch.setattr(isam.proof, "prove", refusing, raising=False)
    begun = job()
    with pytest.raises(ProofError, match="is not proved"):
        plain_stages(begun)
    assert len(begun.unproved) == len(set(begun.unproved)) >= 1
    assert len(begun.candidates) == 1


def test_a_kernel_with_one_cover_has_nothing_to_give_way_to(monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = Refusing(None)
    monkeypatch.setattr(isam.proof, "prove", refusing, raising=False)
    begun = new_job(parse_kernel(ADD), simulated("casestudy"), SIZES, Greedy())
    with pytest.raises(ProofError, match="is not proved"):
        plain_stages(begun)
    assert begun.unproved == []
    assert len(begun.candidates) == 1


def test_what_was_not_worth_scheduling_is_scheduled_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of the kernel as written alone take longer than another schedule: it has none until it is needed."""
    from isam.cost import floor

    monkeypatch.setattr(floor, "least_seconds", lambda cover, system: 1.0 if not cover.steps else 1e-9)
    done = run_stages(job())
    assert [c.answer is None for c in done.candidates if not c.ahead] == [True]
    monkeypatch.setattr(isam.proof, "prove", Refusing({" then ".join(c.ahead) for c in done.candidates if c.ahead}),
                        raising=False)  # fmt: skip
    done = run_stages(job())
    assert labels(done)[-2:] == [LEFT_OUT, WRITTEN]
    assert done.unproved == labels(done)[:-2]
    judge(parse_kernel(SOFTMAX), SIZES, done)
    again = run_stages(job(replay=done.trace))
    assert again.schedule is not None
    assert done.schedule is not None
    assert to_json(again.schedule) == to_json(done.schedule)
    assert again.unproved == done.unproved
    assert again.trace.to_json() == done.trace.to_json()
    advised = run_stages(job(approach=Replay(done.trace)))
    assert [d.point for d in advised.trace.decisions] == [d.point for d in done.trace.decisions]


@pytest.mark.parametrize("waits", [0.0, 2.0])
def test_what_waits_for_caches_counts_before_others_are_left_out(monkeypatch: pytest.MonkeyPatch, waits: float) -> None:
    """A cover whose calls take longer than those of a schedule may be quicker than its calls and its waiting."""
    from isam.cost import compared, floor

    monkeypatch.setattr(floor, "least_seconds", lambda cover, system: 1.0 if not cover.steps else 1e-9)
    monkeypatch.setattr(compared, "beside", lambda schedule, sizes: waits if schedule.cover.steps else 0.0)
    done = run_stages(job())
    assert [c.answer is None for c in done.candidates if not c.ahead] == [waits < 1]
    assert (labels(done) == [WRITTEN]) is (waits > 1)


def test_a_campaign_sees_what_would_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isam.proof, "prove", Refusing([quickest()]), raising=False)
    with on_the_tree(), pytest.raises(ProofError, match="is not proved"):
        plain_stages(job())  # of which no smaller kernel is looked for


def test_smaller_calls_that_agree_give_way_to_large_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isam.proof, "prove", Refusing([AGREEING]), raising=False)
    done = run_stages(new_job(LAYER, machine(), LAYER_SIZES, None))
    assert done.unproved == [AGREEING]
    assert labels(done) == [AGREEING, WRITTEN]
    assert done.schedule is not None
    assert [d.chosen for d in done.schedule.trace.decisions if d.point == "agree"] == [0]
    judge(LAYER, LAYER_SIZES, done)
    again = run_stages(new_job(LAYER, machine(), LAYER_SIZES, None, replay=done.trace))
    assert again.schedule is not None
    assert to_json(again.schedule) == to_json(done.schedule)


def recording(decisions: Sequence[Decision]) -> Trace:
    """A trace that made these decisions."""
    trace = Trace(Greedy())
    trace.decisions += decisions
    return trace


def test_decisions_that_a_schedule_never_asks_for_are_refused() -> None:
    """A schedule of nothing decides nothing, however often it is made."""
    stray = next(d for d in run_stages(job()).trace.decisions if d.point == "tile")
    nothing = parse_kernel("kernel nothing(N)\n  in  x: f32[N]\n  inout y: f32[N]\n")
    with pytest.raises(IsamError, match="goes on after decision"):
        run_stages(new_job(nothing, simulated("toy"), {"N": 4}, Greedy(), replay=recording([stray])))


def test_a_trace_that_goes_on_is_refused() -> None:
    """Also where it says that the last there is gave way."""
    done = run_stages(job())
    last = done.trace.decisions[-1]
    for more in (last, next(d for d in done.trace.decisions if d.point == "variant")):
        again = recording([*done.trace.decisions, more])
        again.subject = done.trace.subject
        with pytest.raises(IsamError, match=r"recorded trace (goes on|does not fit)"):
            run_stages(job(replay=again))
