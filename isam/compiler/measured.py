"""Schedules run on this CPU beside each other, so that the quickest is taken (measured choice).

The first is the one that the Approach takes by the time predicted. Each is proved before it runs; what cannot be
proved, has no code, is the same code as another one, or computes something else takes no part, and says why. What was
found is remembered (:mod:`isam.tune.database`): the same kernel on the same machine is decided alike, without a run.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from isam import registry
from isam.approach.choice import Choice, Trace
from isam.classes import dataclass
from isam.compiler.candidate import Candidate
from isam.compiler.job import Job
from isam.compiler.keys import findings_key
from isam.compiler.watch import told
from isam.diagnostics import InternalError, IsamError, fail
from isam.ir.kernel import USUAL_TRIP
from isam.schedule.serial import to_json
from isam.schedule.tree import Schedule
from isam.tune.timing import shown

if TYPE_CHECKING:
    from isam.runtime.entry import Entry
    from isam.system.graph import System
    from isam.tune.database import Found

SAME = "the same code as schedule"
PATIENCE = 60.0  # seconds after which no further ones are proved and emitted
KINDS: dict[str, type | tuple[type, ...]] = {
    "what": str, "unfit": str, "taken": bool, "final": bool, "predicted": (int, float), "seconds": (int, float),
    "median": (int, float), "noise": (int, float),
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ran:
    """A schedule and the seconds of a call: predicted, and as measured the best and the median. ``what``: what is
    otherwise than in the first. ``final``: it was among the quickest, or is the first, and these are the times of the
    second round, which counts; ``noise``: by how much two runs of it differ there, known of the first. ``unfit``: why
    it takes no part; '' if it does. ``candidate``: None once one was taken."""

    what: str
    predicted: float
    candidate: Candidate | None = None
    seconds: float = 0.0
    median: float = 0.0
    final: bool = False
    noise: float = 0.0
    unfit: str = ""
    taken: bool = False

    def __repr__(self) -> str:
        return f"<{self.what}: {shown(self.seconds)}>"

    def label(self) -> str:
        return self.what

    @property
    def schedule(self) -> Schedule | None:
        return None if self.candidate is None else self.candidate.schedule


def rows(ran: Sequence[Ran]) -> list[dict[str, Any]]:
    """What came of each, as plain values."""
    return [{f.name: getattr(r, f.name) for f in fields(r) if f.name != "candidate"} for r in ran]


def table(ran: Sequence[Ran]) -> list[str]:
    """A line per schedule: best, median, predicted, what is otherwise, those of the second round first; then those that
    take no part, and why."""
    fit = [r for r in ran if not r.unfit and r.seconds]
    lines = [f"  {'best':>9} {'median':>9} {'predicted':>9}"] if fit else []
    for final in (True, False):
        some = [r for r in fit if r.final == final]
        lines += ["  left out after the first round"] if some and not final else []
        for r in some:
            times = " ".join(f"{shown(s):>9}" for s in (r.seconds, r.median, r.predicted))
            lines.append(f"{'*' if r.taken else ' '} {times}  {r.what}")
    lines += [f"  not run: {r.what}: {r.unfit}" for r in ran if r.unfit and not r.unfit.startswith(SAME)]
    same = sum(r.unfit.startswith(SAME) for r in ran)
    return lines + ([f"  not run: {same} that are the same code as one of these"] if same else [])


def runs(job: Job) -> int:
    """How many schedules are run at most, as the Approach says; nothing is run for a replay. Raises ``IsamError``."""
    approach = job.trace.approach
    if not isinstance(approach.runs, int):
        raise fail("approach-value", f"'runs' of the Approach '{approach.name}' is {approach.runs!r}, no whole number")
    return 1 if job.trace.replays else approach.runs


def may_run(system: System) -> bool:
    """Whether what is made for a machine is code for this CPU."""
    from isam.system.features import lacking

    return system.backend == "llvm" and system.target is None and not lacking(system.needs)


def is_measured(job: Job) -> bool:
    """Whether schedules are run beside each other, so that the quickest is taken; else by the time predicted."""
    return runs(job) > 1 and may_run(job.system)


def quickest_run(job: Job, made: Sequence[Ran]) -> Ran:
    """Which of several schedules, the first of which is taken by the time predicted, the Approach takes once as many as
    it wants were run. What came of each is left in ``job.ran``."""
    entries, unfit = _entries(job.system, made, job.trace.approach.runs)
    ran = [replace(m, unfit=why) for m, why in zip(made, unfit, strict=False)]  # up to as many as are run
    fit = [n for n, e in enumerate(entries) if e is not None]
    best = 0
    if 0 in fit and len(fit) > 1:
        best = _raced(job, ran, {n: e for n, e in enumerate(entries) if e is not None})
    job.ran = tuple(replace(r, candidate=None, taken=n == best) for n, r in enumerate(ran))
    return made[best]


def _raced(job: Job, ran: list[Ran], entries: Mapping[int, Entry]) -> int:
    """Runs what has an entry, fills in what came of it, and asks which one is taken."""
    from isam.tune.measure import run_beside

    kernel = job.original.with_sizes({**job.original.usual(USUAL_TRIP), **job.sizes})
    inexact = [at for at, n in enumerate(entries) if (made := ran[n].schedule) is not None and made.cover.errors]
    found = run_beside(list(entries.values()), kernel, threads=job.threads, inexact=inexact)
    if isinstance(found, str):
        ran[:] = [replace(r, unfit=r.unfit or found) for r in ran]
        return 0
    for n, run in zip(entries, found.runs, strict=True):
        ran[n] = replace(ran[n], seconds=run.best, median=run.median, unfit=run.unfit, final=run.final)
    ran[0] = replace(ran[0], noise=found.noise)
    if ran[0].unfit:
        raise InternalError(f"{kernel.name} on {job.system.name} computes something else: {ran[0].unfit}\n{kernel}")
    took = [ran[n] for n, run in zip(entries, found.runs, strict=True) if run.final]
    context = {"predicted": [r.predicted for r in took], "noise": found.noise,
               "unfit": [f"{r.what}: {r.unfit}" for r in ran if r.unfit]}  # fmt: skip
    return ran.index(job.trace.answer(Choice("measure", took, context, [r.seconds for r in took])))


def _entries(system: System, made: Sequence[Ran], most: int) -> tuple[list[Entry | None], list[str]]:
    """Callables for the first ``most`` of those that are proved and have code of their own; for the others up to there
    the reason why not."""
    entries: list[Entry | None] = []
    unfit: list[str] = []
    known = Known()
    end = time.monotonic() + PATIENCE
    for n, m in enumerate(made):
        assert m.schedule is not None
        entry, why = _entry(system, m.schedule, known, n)
        entries.append(entry)
        unfit.append(why)
        fit = sum(e is not None for e in entries)
        told("schedules proved and emitted, to be run", fit, most)
        if fit >= most or time.monotonic() > end:
            break
    return entries, unfit


class Known:
    """Numbers of the contenders met so far, by their schedules and by their code."""

    def __init__(self) -> None:
        self.schedules, self.codes = dict[str, int](), dict[bytes, int]()


def _entry(system: System, schedule: Schedule, known: Known, number: int) -> tuple[Entry | None, str]:

    from isam.proof import ProofError, prove
    from isam.runtime.entry import Entry

    if (same := known.schedules.setdefault(to_json(schedule), number)) != number:
        return None, f"{SAME} {same}"
    try:
        prove(schedule)
    except ProofError as e:
        return None, f"it cannot be proved: {str(e).partition(chr(10))[0]}"
    try:
        artifact = registry.load("isam.backends", system.backend)(schedule)
    except IsamError as e:
        return None, f"it has no code: {e.diagnostics[0].message}"
    if (same := known.codes.setdefault(artifact.parts["object.o"], number)) != number:
        return None, f"{SAME} {same}"
    return Entry(artifact, system.functions()), ""


def recalled(job: Job) -> Job | None:
    """The job with the decisions that were found best before, when as many schedules were run; None where there are
    none."""
    found = None if job.anew else _recalled(job)
    if found is None:
        return None
    try:
        ran = tuple(Ran(**row) for row in found.runs)
        kinds = all(isinstance(getattr(r, n), kind) for r in ran for n, kind in KINDS.items())
        trace = Trace.replaying(found.trace)
    except (IsamError, TypeError):
        return None
    return replace(job, trace=trace, ran=ran, remembered=True, seconds={}, decided=[], candidates=[],
                   unproved=[]) if kinds else None


def found_before(job: Job) -> str:
    """The decisions found, '' where there are none."""
    found = _recalled(job)
    return found.trace if found is not None else ""


def _recalled(job: Job) -> Found | None:
    from isam.tune.database import recall

    key = _key(job)
    found = recall(job.findings, key) if job.findings is not None and key is not None else None
    return found if found is not None and found.asked >= runs(job) else None


def remember(job: Job) -> None:
    """Keeps what was found, for the same kernel on the same machine; not that nothing could be run."""
    from isam.tune.database import remember as keep

    key = _key(job) if len(job.ran) == 1 or any(r.seconds for r in job.ran) else None
    if job.findings is not None and key is not None:
        job.remembered = keep(job.findings, key, job.original.name, job.trace.to_json(), rows(job.ran), runs(job))


def _key(job: Job) -> str | None:
    """None where schedules are not run, or nobody can tell what that depends on."""
    if not is_measured(job):
        return None
    return findings_key(job.original, job.system, job.sizes, job.trace.approach, job.require)
