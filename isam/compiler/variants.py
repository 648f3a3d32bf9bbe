"""Which covers are scheduled, and which schedule is taken.

A kernel may be covered in several ways: as it is written, with steps that may save calls, as an equivalent kernel that
may take less time; and a cover may have a second schedule, by the second option at a choice point that is timed. Each
that may be the quickest is scheduled, the Approach is asked at ``variant``, and what it takes is scheduled further
where the Approach wants more schedules. One that cannot be proved gives way: the Approach is asked again, without it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

from isam.approach.choice import Approach, Behind, Choice, Trace
from isam.approach.questions import TIMED, Question
from isam.classes import dataclass
from isam.compiler.job import Candidate, Job, Refused
from isam.ir.kernel import USUAL_TRIP, Kernel
from isam.ir.mapping import Cover
from isam.schedule.tree import Schedule
from isam.scheduler.infeasible import Infeasible
from isam.system.graph import System

PATIENCE = 60.0  # seconds after which no further schedules are made to be run
AHEAD = 5 / 4  # times less that the calls of a cover take than those of the first, for it to be scheduled before that


@dataclass(frozen=True)
class Variant:
    """An option at ``variant``: a schedule, and what was done ahead: the steps by which its kernel was made from the
    one as written, and of a second schedule what the choice point calls it that is decided otherwise. ``errors``: how
    far its results may be from exact ones, where steps were inexact."""

    schedule: Schedule
    ahead: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    def label(self) -> str:
        return " then ".join(self.ahead) or "as written"


def select(job: Job) -> None:
    """Fills in the cover and the schedule. Raises :class:`Refused` where there is none."""
    assert job.cover is not None
    covers = [c for c in (job.plain, job.cover, *job.others) if c is not None]
    least = len(covers[0].steps)  # the first is the kernel as written; one that saves calls takes steps beyond that
    job.candidates = [Candidate(c, c.steps[: c.ahead or max(0, len(c.steps) - least)]) for c in covers]
    _compete(job)
    _take(job)


def give_way(job: Job) -> bool:
    """Takes another schedule than the one taken, which could not be proved; False where there is none."""
    assert job.taken is not None
    left = [c for c in job.candidates if c is not job.taken]
    if not any(isinstance(c.answer, Schedule) for c in left):
        _compete(job)
        left = [c for c in job.candidates if c is not job.taken]
    if not any(isinstance(c.answer, Schedule) for c in left):
        return False
    job.unproved.append(Variant(job.taken.answer, job.taken.ahead).label())
    job.candidates = left
    _take(job)
    return True


def gave_way(job: Job) -> bool:
    """Whether what is taken gave way when the decisions that are replayed were recorded."""
    return job.trace.ahead is not None and job.trace.ahead.point == "variant"


def _compete(job: Job) -> None:
    """Schedules each candidate that may be the quickest and was not scheduled yet: where calls alone take longer than
    a schedule that was made does in all, by what schedules are compared by, none is. Begins with one that may be far
    quicker than the first."""
    from isam.cost.floor import least_seconds

    waiting = [c for c in job.candidates if c.answer is None]
    floors = [least_seconds(c.cover, job.system) for c in waiting] if len(waiting) > 1 else [0.0]
    order = sorted(range(len(waiting)), key=lambda n: (floors[n] * AHEAD > floors[0], n))
    best = inf
    for at, n in enumerate(order):
        c = waiting[n]
        if floors[n] < best or not at:
            _make(job, c)
            if floors[n] and isinstance(c.answer, Schedule) and not c.cover.errors:
                best = min(best, _seconds(c, {}))


def _make(job: Job, candidate: Candidate) -> None:
    """Schedules a candidate; also, as one of its own, by the second option at each choice point that is timed and where
    the first was taken: what that saves and what it costs, only both in time say."""
    from isam.scheduler import schedule

    candidate.answer = job.deciding(schedule, candidate.cover, job.system, job.trace)
    if not isinstance(candidate.answer, Schedule):
        return
    made, at = job.decisions(candidate.answer), job.candidates.index(candidate) + 1
    for question in TIMED:
        if any(question.left_to_time(d) and not d.chosen for d in made):
            by = Second(job.trace.approach, question)
            answer = job.deciding(_decided, candidate.cover, job.system, job.trace, by)
            job.candidates.insert(at, Candidate(candidate.cover, (*candidate.ahead, question.timed), answer, by))


class Second(Behind):
    """Another Approach, but where it is asked one question it takes the option after the first."""

    def __init__(self, base: Approach, question: Question):
        super().__init__(base)
        self.question = question

    def decide(self, choice: Choice) -> Any:
        own = super().decide(choice)  # asked in any case: a recording goes on from one decision to the next
        return choice.options[1] if self.question.left_to_time(choice) else own


def _decided(cover: Cover, system: System, trace: Trace, by: Approach) -> Schedule | Infeasible:
    """The schedule by another's decisions."""
    from isam.scheduler import schedule

    if trace.replays:
        return schedule(cover, system, trace)
    other = Trace(by)
    answer = schedule(cover, system, other)
    trace.decisions += other.decisions
    return answer


def _take(job: Job) -> None:
    """Asks the Approach which schedule is taken where there are several covers, also where no other one was worth
    making, and makes more of it."""
    from isam.compiler.alternatives import quickest_schedule
    from isam.compiler.measured import is_measured
    from isam.scheduler import schedule

    made = [c for c in job.candidates if isinstance(c.answer, Schedule)]
    if not made:
        raise Refused("infeasible", job.original, next(c.answer for c in job.candidates if c.answer is not None))
    alone = len(job.candidates) == 1 and not job.unproved
    if is_measured(job):
        _take_run(job, made, alone)
        return
    taken = made[0] if alone else _chosen(made, job)
    known: Schedule = taken.answer
    if job.trace.approach.tries > 1 and not job.trace.replays:
        mine = known, job.decisions(known)
        best = job.deciding(quickest_schedule, taken.cover, job.system, job.trace, mine, taken.by)
    elif job.trace.replays:
        best = known
        while job.trace.ahead is not None and job.trace.ahead.point != "variant":
            best = job.deciding(schedule, taken.cover, job.system, job.trace)
    elif job.trace.approach.goes_on and not alone:
        best = job.deciding(schedule, taken.cover, job.system, job.trace)
    else:
        best = known
    job.taken = taken
    settle(job, best if isinstance(best, Schedule) else known)


def _take_run(job: Job, made: Sequence[Candidate], alone: bool) -> None:
    """As :func:`_take`, but the quickest of several schedules when they are run: the first of each candidate, then, of
    what would be taken by the time predicted, those that the Approach wants made."""
    from isam.compiler.alternatives import MadeSchedule, keep, schedules
    from isam.compiler.measured import Ran, quickest_run

    asked = None if alone else _question(made, job)
    first = made[0] if asked is None else made[asked.options.index(job.trace.answer(asked))]
    mine = first.answer, job.decisions(first.answer)
    found: dict[Ran, tuple[Candidate, MadeSchedule | None]] = {}
    end = time.monotonic() + PATIENCE
    for m, answer in schedules(first.cover, job.system, job.trace, mine, first.by):
        if isinstance(answer, Schedule):
            found[Ran(m.what or "by prediction", m.seconds, answer)] = first, m
        if time.monotonic() > end:
            break
    for c in made:
        if c is not first:
            label = Variant(c.answer, c.ahead).label()
            found[Ran(label, _seconds(c, c.answer.kernel.usual(USUAL_TRIP)), c.answer)] = c, None
    head, *rest = found
    best = quickest_run(job, [head, *sorted(rest, key=lambda r: (found[r][1] is not None, r.predicted))])
    taken, kept = found[best]
    count = sum(not r.unfit for r in job.ran)
    why = f"the quickest of {count} that were run" if best is not head else f"by prediction; {count} were run"
    if asked is not None:
        job.trace.record(asked, made.index(taken), why)
    if kept is not None and kept.script:
        begin = len(job.trace.decisions)
        keep(job.trace, kept, why)
        job.decided.append((best.schedule, range(begin, len(job.trace.decisions))))
    assert best.schedule is not None
    job.taken = taken
    settle(job, best.schedule)


def settle(job: Job, schedule: Schedule) -> None:
    """Takes a schedule of the candidate that is taken."""
    assert job.taken is not None
    job.cover, job.as_made = job.taken.cover, schedule
    job.schedule = replace(schedule, trace=job.behind(job.cover, schedule))


def _chosen(made: Sequence[Candidate], job: Job) -> Candidate:
    asked = _question(made, job)
    taken = job.trace.choose(asked)
    return next(c for c, option in zip(made, asked.options, strict=True) if option is taken)


def _question(made: Sequence[Candidate], job: Job) -> Choice:
    """Which of the candidates is taken, by the time predicted."""
    options = [Variant(c.answer, c.ahead, c.cover.errors) for c in made]
    known = _numbers([o.schedule.kernel for o in options])
    costs = [sum(_seconds(c, sizes) for sizes in known) for c in made]
    context = {"options": [o.label() for o in options], "unproved": list(job.unproved)}
    return Choice("variant", options, context, costs)


def _seconds(candidate: Candidate, sizes: dict[str, int]) -> float:
    """What a schedule is compared by, with these numbers for sizes known at run time."""
    from isam.cost.compared import seconds

    key = tuple(sorted(sizes.items()))
    if key not in candidate.timed:
        candidate.timed[key] = seconds(candidate.answer, sizes)
    return candidate.timed[key]


def _numbers(kernels: Sequence[Kernel]) -> list[dict[str, int]]:
    """With which sizes known at run time only schedules of equivalent kernels are compared: with many steps, some of
    them left over, and where one does so many at a time with fewer than that, too."""
    usual = [k.usual(USUAL_TRIP) for k in kernels]
    many = {s.name: max(u[s.name] for u in usual) for s in kernels[0].given}
    few = {of: min(many[of], n - 1) for k in kernels for of, n in (s.whole for s in k.follow if s.whole)}
    return [many, {**many, **few}] if few else [many]
