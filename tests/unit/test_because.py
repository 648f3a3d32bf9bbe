"""Reasons in traces: those of the class whose method decided."""

from __future__ import annotations

from typing import Any

from isam.approach.choice import POINTS, Approach, Choice, Trace
from isam.approach.shipped.casestudy import CaseStudy
from isam.approach.shipped.greedy import Greedy, Locality
from isam.approach.shipped.replay import Replay
from isam.approach.shipped.strategies import Beam, BestFirst
from isam.compiler.stages import new_job, run_stages
from isam.system.load import load_system
from tests.corpus import CASES


class Smallest(Greedy):
    name, why = "smallest", "to see what it costs"

    def tile(self, choice: Choice) -> Any:
        return choice.options[-1]


class Quiet(Smallest):
    def fuse(self, choice: Choice) -> Any:
        return choice.options[0]


class All(Greedy):
    why = "as I say"

    def decide(self, choice: Choice) -> Any:
        return super().decide(choice)


def because(approach: Approach, point: str, costs: tuple[float, ...] | None = (1.0,)) -> str:
    return approach.because(Choice(point, (1,), costs=costs))


def test_what_is_inherited_is_the_opinion_of_the_base():
    assert because(Smallest(), "tile") == "to see what it costs"
    assert because(Smallest(), "source") == because(Smallest(), "cover") == Greedy.why
    assert because(Smallest(), "fuse") == because(Greedy(), "fuse") == Greedy.reasons["fuse"]
    assert because(Smallest(), "cover", None) == because(Greedy(), "cover", None) == Approach.why  # nothing to compare
    assert because(Approach(), "tile") == Approach.why
    assert because(CaseStudy(), "fuse") == Locality.why
    assert because(CaseStudy(), "route") == CaseStudy.why
    assert because(CaseStudy(), "victim") == Greedy.reasons["victim"]


def test_reasons_are_of_choice_points_that_the_class_decides_itself():
    assert Greedy.reasons.keys() <= set(POINTS)
    for point in POINTS:
        generic = getattr(Greedy, point) in (Greedy._cheapest, Approach._first)
        assert generic != (point in Greedy.reasons), point

    class Terse(Greedy):
        why, reasons = "as it was", {"tile": "few of them", "tail": 3}
        tile = tail = fuse = Greedy._cheapest

    said = {p: because(Terse(), p) for p in ("tile", "tail", "fuse", "serpentine")}
    own = {"tile": "few of them", "tail": "as it was", "fuse": "as it was"}
    assert said == {**own, "serpentine": Greedy.reasons["serpentine"]}


def test_who_overrides_decide_decides_everything():
    assert {because(All(), p) for p in ("tile", "cover", "fuse")} == {"as I say"}
    assert because(Replay(Trace(Greedy())), "tile") == Replay.why


def test_strategies_speak_for_steps_and_schedules_alone():
    mine, points = BestFirst(), ("search", "schedule", "tile")
    assert [because(mine, p) for p in points] == [BestFirst.why, BestFirst.why, Greedy.why]


def test_one_class_without_words_has_those_that_it_inherits_and_an_instance_its_own():
    assert because(Quiet(), "fuse") == Smallest.why
    mine = Smallest()
    mine.why = "today"
    assert because(mine, "mapping") == "today"


def test_the_trace_says_so_also_where_several_schedules_are_made_and_replays_to_identical_bytes():
    class Few(Smallest):
        tries = 3

    for approach in (Smallest(), Few(), Beam(2)):
        sizes = {"M": 9, "N": 13, "K": 21}
        job = run_stages(new_job(CASES["matmul"].load(), load_system("toy"), sizes, approach), "schedule")
        reasons = {(d.point, d.why) for d in job.trace.decisions if not d.why.startswith("in the quickest")}
        assert {w for p, w in reasons if p in ("cover", "source")} <= {Greedy.why, Approach.why}
        assert {w for p, w in reasons if p in ("mapping", "fuse")} <= set(Greedy.reasons.values())
        if isinstance(approach, Smallest):
            assert ("tile", Smallest.why) in reasons
        again = new_job(CASES["matmul"].load(), load_system("toy"), sizes, None)
        again.trace = Trace.replaying(job.trace.to_json())
        assert run_stages(again, "schedule").trace.to_json() == job.trace.to_json()
