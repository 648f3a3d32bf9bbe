"""Several schedules made and timed, the quickest kept: strategies, traces, and what a user may decide."""

from __future__ import annotations

from typing import Any

import pytest

from isam.approach.choice import Approach, Choice, Trace
from isam.approach.shipped.greedy import Greedy, Locality
from isam.approach.shipped.replay import Replay
from isam.approach.shipped.strategies import Beam, BestFirst, Exhaustive, MonteCarlo, Random
from isam.compiler.alternatives import MadeSchedule, Otherwise
from isam.compiler.job import Job, Refused
from isam.compiler.stages import new_job, run_stages
from isam.compiler.watch import WATCH
from isam.cost.timeline import timeline
from isam.diagnostics import IsamError
from isam.ir.text import parse_kernel
from isam.schedule.serial import to_json
from isam.schedule.tree import Schedule
from isam.system.load import load_system
from tests.corpus import CASES
from tests.machines.small import CLIP, FREE, SAME, instruction, small
from tests.pipeline import compiled, judge, simulated

SIZES = {"M": 9, "N": 13, "K": 21}


def made(approach: Approach, on: str = "casestudy", replay: Trace | None = None) -> Job:
    job = new_job(CASES["matmul"].load(), load_system(on), SIZES, approach)
    if replay is not None:
        job.trace = Trace.replaying(replay.to_json())
    return run_stages(job)


def seconds(job: Job) -> float:
    assert isinstance(job.schedule, Schedule)
    return timeline(job.schedule).seconds


def written(job: Job) -> str:
    assert isinstance(job.schedule, Schedule)
    return to_json(job.schedule)


class Watched(Exhaustive):
    """Remembers what was made."""

    tries = 25
    seen: tuple[MadeSchedule, ...] = ()

    def schedule(self, choice: Choice) -> Any:
        self.seen = choice.context["_made"]
        return super().schedule(choice)


@pytest.mark.parametrize("approach", [BestFirst(), Beam(2), MonteCarlo(3), Random(1)], ids=lambda a: a.name)
def test_never_slower_than_the_first_and_proved(approach: Approach):
    job = made(approach)
    assert seconds(job) <= seconds(made(Greedy()))
    assert job.certificate is not None
    judge(CASES["matmul"].load(), SIZES, job)


def test_the_quickest_of_all_that_were_made_is_kept_and_no_script_comes_twice():
    approach = Watched()
    job = made(approach)
    assert len(approach.seen) > 20
    assert seconds(job) <= min(m.seconds for m in approach.seen)
    scripts = [m.script for m in approach.seen]
    assert len(set(scripts)) == len(scripts)
    assert all(len(approach.seen[m.parent].script) == len(m.script) - 1 for m in approach.seen if m.parent is not None)


def test_the_trace_replays_to_the_same_schedule():
    class Slowest(Exhaustive):
        """Keeps looking, so that what is kept is seldom the first."""

        tries = 20

    job = made(Slowest())
    again = made(Greedy(), replay=job.trace)
    assert written(again) == written(job)
    assert again.trace.to_json().splitlines()[1:] == job.trace.to_json().splitlines()[1:]


def test_the_same_twice():
    assert written(made(MonteCarlo(5))) == written(made(MonteCarlo(5)))


def test_a_user_may_stop_and_may_pick():
    asked: list[int] = []

    class Mine(Greedy):
        name, tries, varied = "mine", 10, ("tile",)

        def schedule(self, choice: Choice) -> Any:
            asked.append(choice.context["made"])
            ways = [o for o in choice.options if isinstance(o, Otherwise)]
            return ways[-1] if len(asked) < 3 else choice.options[0]

    made(Mine())
    assert asked == [1, 2, 3]


def test_what_was_not_offered_is_refused():
    class Wrong(Greedy):
        name, tries = "wrong", 2

        def schedule(self, choice: Choice) -> Any:
            return "another"

    with pytest.raises(IsamError, match="not one of the"):
        made(Wrong())


def test_no_room_is_said_as_before():
    """A machine whose memory cannot hold the product: the first answer counts."""
    sizes = {"M": 100_000, "N": 100_000, "K": 100_000}
    answers = []
    for approach in (Greedy(), BestFirst()):
        job = new_job(CASES["matmul"].load(), load_system("toy"), sizes, approach)
        with pytest.raises(Refused) as no:
            run_stages(job)
        answers.append(str(no.value.answer))
    assert answers[0] == answers[1]


class LargeCalls(Greedy):
    """Takes no smaller calls that agree, which it could fuse."""

    def variant(self, choice):
        return choice.options[0]


@pytest.mark.parametrize("on", ["toy", "casestudy"])
def test_locality_fuses_what_touches_a_buffer_in_common(on: str):
    case = CASES["requantised_matmul"]
    jobs = [run_stages(new_job(case.load(), simulated(on), case.small[-1], a)) for a in (LargeCalls(), Locality())]
    fused = [sum(d.label == "True" for d in j.schedule.trace.decisions if d.point == "fuse") for j in jobs]
    assert fused[1] > fused[0]
    judge(case.load(), case.small[-1], jobs[1])


def test_equivalent_kernels_are_looked_at_alike_and_replay():
    """What may leave a recurrent loop is another kernel: both have their quickest schedule, and the trace fits."""
    sizes = {"T": 4, "B": 2, "X": 5, "H": 3}

    class Few(BestFirst):
        tries = 3

    job = run_stages(new_job(CASES["gru"].load(), simulated("toy"), sizes, Few()), "schedule")
    assert any(d.point == "variant" for d in job.trace.decisions)
    again = new_job(CASES["gru"].load(), simulated("toy"), sizes, Greedy())
    again.trace = Trace.replaying(job.trace.to_json())
    assert written(run_stages(again, "schedule")) == written(job)


BROKEN_UP = """kernel bytes(M, N, K)
  in  A: u8[M, K]
  in  B: i8[K, N]
  out C: i32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    a[i, j, k] = i32(A[i, k])
    b[i, j, k] = i32(B[k, j])
    t[i, j, k] = a[i, j, k] * b[i, j, k]
    C[i, j] += t[i, j, k]
"""


def test_what_is_typed_along_axes_that_it_does_not_depend_on_is_made_once():
    """As written, scalars have to be cast for every point; made once, groups of bytes are multiplied."""
    sizes = {"M": 6, "N": 32, "K": 8}
    kernel = parse_kernel(BROKEN_UP)
    job = compiled(kernel, sizes, simulated("host-avx512"))
    judge(kernel, sizes, job, 5)
    assert job.cover is not None
    assert {m.instruction.name for m in job.cover.mappings} == {"copy_s_i32", "dot4_u8_i8"}
    taken = next(d.label for d in job.trace.decisions if d.point == "variant")
    assert taken == "narrow (buffer a, dim 1) then narrow (buffer b, dim 0)"


@pytest.mark.parametrize(("name", "on"), [("matmul", "toy"), ("conv2d", "casestudy")])
def test_a_recording_as_advice_leads_to_the_schedule_kept_of_one_candidate(name: str, on: str):
    case = CASES[name]
    sizes = dict.fromkeys(case.small[-1], 13)
    jobs = [run_stages(new_job(case.load(), simulated(on), sizes, a), "schedule") for a in (Greedy(), Beam())]
    assert seconds(jobs[1]) < seconds(jobs[0])
    assert not any(d.point == "variant" for d in jobs[1].trace.decisions)
    advised = run_stages(new_job(case.load(), simulated(on), sizes, Replay(jobs[1].trace.to_json())), "schedule")
    assert seconds(advised) == seconds(jobs[1])


def test_who_watches_is_told_how_many_were_made():
    told: list[tuple[str, int, int]] = []
    token = WATCH.set(lambda what, n, most: told.append((what, n, most)))
    try:
        made(Beam(2))
    finally:
        WATCH.reset(token)
    assert told == [("schedules made and timed", n, 8) for n in range(2, 9)]


UNEQUAL = """kernel steps(T, F)
  in  a: f32[T, F]
  in  b: f32[T, F]
  out y: f32[T, F]
  forall t < T, f < F
    s[t, f] = a[t, f] + b[t, f]
  forall t < T, f < F
    y[t, f] = max(s[t, f], 0)
"""
ADD = """
  in  A: f32[M, N]
  in  B: f32[M, N]
  out D: f32[M, N]
  forall i < M, j < N
    D[i, j] = A[i, j] + B[i, j]
"""


@pytest.mark.parametrize("make", [MonteCarlo, Random, Exhaustive, Beam, BestFirst])
def test_more_is_made_of_smaller_calls_that_agree(make: type[BestFirst]):
    """What is decided otherwise is a decision of the schedule taken, whose nests agree where the Approach had not."""
    home, cost = "homes: [sp]", "cost: {issue: 4 cycles, latency: 8 cycles}"
    machine = small(
        "limits",
        {"sp": "capacity: 2 KiB"},  # no home for the sums
        ["dram <-> sp"],
        instruction("add(M <= 6, N <= 10)", ADD, home, cost),
        instruction("top(M <= 4, N <= 12)", CLIP, home, cost),
        copy=instruction("copy(M, N)", SAME, FREE, "cost: {setup: 10 cycles, bandwidth: 16 B/cycle}"),
    )
    kernel, sizes = parse_kernel(UNEQUAL), {"T": 24, "F": 24}
    few = make()
    few.tries = 6
    job = compiled(kernel, sizes, machine, few, check=True)
    judge(kernel, sizes, job)
    assert "agree" in next(d.label for d in job.trace.decisions if d.point == "variant")
