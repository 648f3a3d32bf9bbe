"""Which covers are scheduled, and which schedule is taken.

A kernel may be covered in several ways: as it is written, with steps that may save calls, as an equivalent kernel that
may take less time; and a cover may have a second schedule, by the second option at a choice point that is timed. Each
that may be the quickest is scheduled, the Approach is asked at ``variant``, and what it takes is scheduled further
where the Approach wants more schedules. One that cannot be proved gives way: the Approach is asked again, without it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import inf

from isam.approach.choice import Choice
from isam.approach.questions import TIMED
from isam.approach.steered import Second
from isam.classes import dataclass
from isam.compiler.candidate import Candidate, named
from isam.compiler.job import Job, Refused
from isam.ir.kernel import USUAL_TRIP, Kernel
from isam.ir.mapping import Cover
from isam.schedule.tree import Schedule

LEFT_OUT = "those left out are scheduled"
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
        return named(self.ahead)


def select(job: Job) -> None:
    """Fills in the cover and the schedule. Raises :class:`Refused` where there is none."""
    assert job.cover is not None
    covers = [c for c in (job.plain, job.cover, *job.others) if c is not None]
    job.candidates = [Candidate(c, job.trace.approach, _ahead(c, covers[0])) for c in covers]
    _compete(job)
    _take(job)


def _ahead(cover: Cover, plain: Cover) -> tuple[str, ...]:
    """The steps that a cover is called by: those that were offered, or those by which it saves calls, which ``plain``,
    that of the kernel as written, does without."""
    return cover.steps[: cover.ahead] if cover.ahead else tuple(s for s in cover.steps if s not in plain.steps)


def give_way(job: Job) -> bool:
    """Takes another schedule than the one taken, which could not be proved; False where there is none."""
    assert job.taken is not None
    left = [c for c in job.candidates if c is not job.taken]
    if not any(c.feasible for c in left):
        _go_on(job)
        _compete(job)
        left = [c for c in job.candidates if c is not job.taken]
    if not any(c.feasible for c in left):
        return False
    job.unproved.append(job.taken.label())
    job.candidates = left
    _take(job)
    return True


def _go_on(job: Job) -> None:
    """Notes that those left out are scheduled now: what is decided from here on is not on what was taken."""
    assert job.taken is not None
    asked = Choice("variant", (LEFT_OUT,), {"unproved": [*job.unproved, job.taken.label()]})
    if job.trace.replays:
        job.trace.choose(asked)
    else:
        job.trace.record(asked, 0, "what was taken cannot be proved")


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
            if floors[n] and not c.cover.errors:
                best = min(best, c.seconds({}))


def _make(job: Job, candidate: Candidate) -> None:
    """Schedules a candidate; also, as one of its own, by the second option at each choice point that is timed and where
    the first was taken: what that saves and what it costs, only both in time say."""
    job.scheduled(candidate)
    if not candidate.feasible:
        return
    at = job.candidates.index(candidate) + 1
    asked = [q for q in TIMED if any(q.left_to_time(d) and not d.chosen for d in candidate.decisions)]
    seconds = [job.scheduled(candidate.unmade(Second(candidate.by, q), q.timed)) for q in asked]
    job.candidates[at:at] = seconds


def _take(job: Job) -> None:
    """Asks the Approach which schedule is taken where there are several covers, also where no other one was worth
    making, and makes more of it."""
    from isam.compiler.measured import is_measured

    made = [c for c in job.candidates if c.feasible]
    if not made:
        raise Refused("infeasible", job.original, next(c.answer for c in job.candidates if c.answer is not None))
    alone = len(job.candidates) == 1 and not job.unproved
    if is_measured(job):
        _take_run(job, made, alone)
        return
    first = made[0] if alone else _chosen(made, job)
    best = _further(job, first)
    job.take(best if best.feasible else first, first)


def _further(job: Job, first: Candidate) -> Candidate:
    """Of what is chosen more schedules, where the Approach wants them or a recording has them; the one that is kept."""
    from isam.compiler.alternatives import quickest

    trace, best = job.trace, first
    if trace.replays:
        while trace.ahead is not None and trace.ahead.point != "variant":
            best = job.scheduled(first.unmade())
            if not best.decisions:
                break  # they are of something else, as is said when nothing asks for them
    elif trace.approach.tries > 1:
        best = quickest(job, first)
    elif trace.approach.goes_on:
        best = job.scheduled(first.unmade(trace.approach))
    return best


def _take_run(job: Job, made: Sequence[Candidate], alone: bool) -> None:
    """As :func:`_take`, but the quickest of several schedules when they are run: the first of each candidate, then, of
    what would be taken by the time predicted, those that the Approach wants made."""
    from isam.compiler.alternatives import MadeSchedule, alternatives, keep
    from isam.compiler.measured import Ran, quickest_run

    asked = None if alone else _question(made, job)
    first = made[0] if asked is None else _of(made, asked, job.trace.answer(asked))
    others: dict[Candidate, MadeSchedule] = {}
    end = time.monotonic() + PATIENCE
    for m, c in alternatives(first, job.system, job.trace.approach):
        if c.feasible and c is not first:
            others[c] = m
        if time.monotonic() > end:
            break
    rest = [Ran(c.label(), c.seconds(), c) for c in made if c is not first]
    rest += [Ran(m.what, m.seconds, c) for c, m in others.items()]
    rest.sort(key=lambda r: (r.candidate in others, r.predicted))
    best = quickest_run(job, [Ran("by prediction", first.seconds(), first), *rest])
    assert best.candidate is not None
    taken, count = best.candidate, sum(not r.unfit for r in job.ran)
    why = f"the quickest of {count} that were run" if taken is not first else f"by prediction; {count} were run"
    of = first if taken in others else taken
    if asked is not None:
        job.trace.record(asked, made.index(of), why)
    if taken in others:
        keep(job, taken, others[taken], why)
    job.take(taken, of)


def _chosen(made: Sequence[Candidate], job: Job) -> Candidate:
    asked = _question(made, job)
    return _of(made, asked, job.trace.choose(asked))


def _of(made: Sequence[Candidate], asked: Choice, option: Variant) -> Candidate:
    """The candidate of an option."""
    return next(c for c, o in zip(made, asked.options, strict=True) if o is option)


def _question(made: Sequence[Candidate], job: Job) -> Choice:
    """Which of the candidates is taken, by the time predicted."""
    options = [Variant(c.schedule, c.ahead, c.cover.errors) for c in made]
    known = _numbers([c.schedule.kernel for c in made])
    costs = [sum(c.seconds(sizes) for sizes in known) for c in made]
    context = {"options": [o.label() for o in options], "unproved": list(job.unproved)}
    return Choice("variant", options, context, costs)


def _numbers(kernels: Sequence[Kernel]) -> list[dict[str, int]]:
    """With which sizes known at run time only schedules of equivalent kernels are compared: with many steps, some of
    them left over, and where one does so many at a time with fewer than that, too."""
    usual = [k.usual(USUAL_TRIP) for k in kernels]
    many = {s.name: max(u[s.name] for u in usual) for s in kernels[0].given}
    few = {of: min(many[of], n - 1) for k in kernels for of, n in (s.whole for s in k.follow if s.whole)}
    return [many, {**many, **few}] if few else [many]
