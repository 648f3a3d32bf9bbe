"""Tiles that the registers do not hold, as the code tells: they are rejected, and the Approach is asked for others.

How many registers a block needs is predicted when it is planned; what a function's own code needs, or an element that
is brought to where a call reads it, only the assembly says. Where an innermost loop saves vectors to the stack, each
choice of a tile is made again without the option taken, everything before it as it was, until one spills nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from isam import registry
from isam.approach.choice import Approach, Choice, Decision, Trace
from isam.artifact import Artifact
from isam.classes import dataclass
from isam.compiler.alternatives import Scripted, seconds
from isam.compiler.job import Job
from isam.compiler.measured import is_measured
from isam.compiler.variants import settle
from isam.diagnostics import IsamError
from isam.schedule.tree import Schedule

MINOR = 1 / 20  # of the instructions of a loop: fewer that save and load vectors hide behind the others
MOST = 8  # schedules that are made at most


@dataclass(frozen=True, slots=True, eq=False)
class Written:
    """A schedule, proved where that is asked for, with its code and the decisions that it was made by."""

    schedule: Schedule
    artifact: Artifact
    decisions: tuple[Decision, ...]
    certificate: Any = None

    @property
    def spills(self) -> tuple[int, int]:
        """Of an innermost loop's instructions those that save vectors and load saved ones, and how many it has."""
        saved, instructions = self.artifact.provenance.get("spills", (0, 1))
        return saved, instructions

    @property
    def spilled(self) -> float:
        return self.spills[0] / self.spills[1]


class Without(Scripted):
    """Another Approach, but for the first decisions, which are given, and some options of the one after them, which it
    does not get to see."""

    def __init__(self, base: Approach, taken: Sequence[int], rejected: set[int]):
        super().__init__(base, taken)
        self.rejected = rejected

    def decide(self, choice: Choice) -> Any:
        if self.asked == len(self.taken):
            left = [n for n in range(len(choice.options)) if n not in self.rejected]
            costs = None if choice.costs is None else [choice.costs[n] for n in left]
            offered = replace(choice, options=[choice.options[n] for n in left], costs=costs)
            self.asked += 1
            return Trace(self.base).answer(offered)  # one of these, as is checked there
        return super().decide(choice)


def written(job: Job) -> Artifact:
    """The code of the schedule that is taken, once tiles that registers do not hold have made way. Raises
    ``IsamError`` and ``InternalError`` where it has no code."""
    assert job.schedule is not None
    emit = registry.load("isam.backends", job.system.backend)
    first = Written(job.schedule, emit(job.schedule), tuple(job.decisions(job.as_made)), job.certificate)
    if first.spilled <= MINOR or job.trace.replays or is_measured(job):
        return first.artifact
    best = _roomiest(job, first)
    if best is first:
        return first.artifact
    begin = len(job.trace.decisions)
    job.trace.decisions += best.decisions
    job.decided.append((best.schedule, range(begin, len(job.trace.decisions))))
    settle(job, best.schedule)
    job.certificate = best.certificate
    return best.artifact


def settled(job: Job) -> None:
    """Takes what :func:`written` would take, of a job that is proved and whose code nobody asks for; nothing else where
    it has no code here."""
    if job.system.backend == "llvm":
        with suppress(IsamError):
            written(job)


def _roomiest(job: Job, first: Written) -> Written:
    """What spills least of the schedules with one tile after the other decided again: of each until that changes
    nothing, as it is another's loop that spills. None takes longer, by what is predicted, than the first does with what
    it saves and loads, of which half hides behind other instructions."""
    best, left, at = first, MOST, 0
    limit = seconds(first.schedule) * (1 + first.spilled / 2)
    while at < len(best.decisions):
        tile, before = best.decisions[at], best.decisions[:at]
        rejected = {tile.chosen}
        while tile.point == "tile" and left and len(rejected) < tile.count:
            left -= 1
            schedule, decisions = _again(job, before, rejected)
            if not isinstance(schedule, Schedule) or seconds(schedule) > limit:
                break
            rejected.add(decisions[at].chosen)
            other = _written(job, schedule, decisions)
            if other is not None and other.spills == best.spills:
                break
            if other is not None and other.spilled < best.spilled:
                best = other
            if best.spilled <= MINOR:
                return best
        at += 1
    return best


def _again(job: Job, before: Sequence[Decision], rejected: set[int]) -> tuple[Any, list[Decision]]:
    """A schedule by these decisions, then one without the options rejected, then the Approach's; its decisions."""
    from isam.scheduler import schedule

    assert job.taken is not None
    by = Without(job.taken.by or job.trace.approach, [d.chosen for d in before], rejected)
    trace = Trace(by)
    answer = schedule(job.taken.cover, job.system, trace)
    at = len(before)
    trace.decisions[:at] = before
    why = f"{trace.decisions[at].why}, of those that spill no registers"
    trace.decisions[at] = replace(trace.decisions[at], why=why)
    return answer, trace.decisions


def _written(job: Job, schedule: Schedule, decisions: Sequence[Decision]) -> Written | None:
    """The code of a schedule that can be proved, where that is asked for; None where it cannot, though nothing shows it
    wrong, or has none."""
    from isam.proof import ProofError, prove

    try:
        certificate = prove(schedule) if job.check else None
        artifact: Artifact = registry.load("isam.backends", job.system.backend)(schedule)
    except ProofError as e:
        if e.executed:
            raise
        return None
    except IsamError:
        return None
    return Written(schedule, artifact, tuple(decisions), certificate)
