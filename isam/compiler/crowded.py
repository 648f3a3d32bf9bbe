"""Tiles that the registers do not hold, as the code tells: they are rejected, and the Approach is asked for others.

How many registers a block needs is predicted when it is planned; what a function's own code needs, or an element that
is brought to where a call reads it, only the assembly says. Where an innermost loop saves vectors to the stack, each
choice of a tile is made again without the option taken, everything before it as it was, until one spills nothing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from isam import registry
from isam.artifact import Artifact
from isam.classes import dataclass
from isam.compiler.candidate import Candidate
from isam.compiler.job import Job
from isam.compiler.measured import is_measured
from isam.diagnostics import IsamError

MINOR = 1 / 20  # of the instructions of a loop: fewer that save and load vectors hide behind the others
MOST = 8  # schedules that are made at most


@dataclass(frozen=True, slots=True, eq=False)
class Emitted:
    """A candidate with its code, proved where that is asked for."""

    candidate: Candidate
    artifact: Artifact
    certificate: Any = None

    @property
    def spills(self) -> tuple[int, int]:
        """Of an innermost loop's instructions those that save vectors and load saved ones, and how many it has."""
        saved, instructions = self.artifact.provenance.get("spills", (0, 1))
        return saved, instructions

    @property
    def spilled(self) -> float:
        return self.spills[0] / self.spills[1]


def written(job: Job) -> Artifact:
    """The code of the schedule that is taken, once tiles that registers do not hold have made way. Raises
    ``IsamError`` and ``InternalError`` where it has no code."""
    assert job.schedule is not None
    assert job.taken is not None
    emit = registry.load("isam.backends", job.system.backend)
    first = Emitted(job.taken, emit(job.schedule), job.certificate)
    if first.spilled <= MINOR or job.trace.replays or is_measured(job):
        return first.artifact
    best = _roomiest(job, first)
    if best is not first:
        job.record(best.candidate)
        job.take(best.candidate, first.candidate)
        job.certificate = best.certificate
    return best.artifact


def settled(job: Job) -> None:
    """Takes what :func:`written` would take, of a job that is proved and whose code nobody asks for; nothing else where
    it has no code here."""
    if job.system.backend == "llvm":
        with suppress(IsamError):
            written(job)


def _roomiest(job: Job, first: Emitted) -> Emitted:
    """What spills least of the schedules with one tile after the other decided again: of each until that changes
    nothing, as it is another's loop that spills. None takes longer, by what is predicted, than the first does with what
    it saves and loads, of which half hides behind other instructions."""
    best, left, at = first, MOST, 0
    limit = first.candidate.seconds() * (1 + first.spilled / 2)
    while at < len(decisions := best.candidate.decisions):
        rejected = {decisions[at].chosen}
        while decisions[at].point == "tile" and left and len(rejected) < decisions[at].count:
            left -= 1
            candidate = _again(job, best.candidate, at, rejected)
            if candidate.feasible and candidate.seconds() > limit:
                break
            rejected.add(candidate.decisions[at].chosen)
            other = _emitted(job, candidate) if candidate.feasible else None
            if other is not None and other.spills == best.spills:
                break
            if other is not None and other.spilled < best.spilled:
                best = other
            if best.spilled <= MINOR:
                return best
        at += 1
    return best


def _again(job: Job, made: Candidate, at: int, rejected: set[int]) -> Candidate:
    """A candidate made again: the decisions before the one at ``at`` as they were, that one without the options
    rejected, then whoever decides."""
    before = made.decisions[:at]
    other = made.again(job.system, [d.chosen for d in before], rejected)
    why = f"{other.decisions[at].why}, of those that spill no registers"
    other.explain({at: why, **{n: d.why for n, d in enumerate(before)}})
    return other


def _emitted(job: Job, candidate: Candidate) -> Emitted | None:
    """The code of a candidate that can be proved, where that is asked for; None where it cannot, though nothing shows
    it wrong, or has none."""
    from isam.proof import ProofError, prove

    try:
        certificate = prove(candidate.schedule) if job.check else None
        artifact: Artifact = registry.load("isam.backends", job.system.backend)(candidate.schedule)
    except ProofError as e:
        if e.executed:
            raise
        return None
    except IsamError:
        return None
    return Emitted(candidate, artifact, certificate)
