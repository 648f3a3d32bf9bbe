"""Where a user's own Approach decided and there is no schedule: whether its choices led there, and at which point."""

from __future__ import annotations

from isam import registry
from isam.approach.choice import Approach, Trace, place
from isam.approach.steered import Except
from isam.compiler.job import Job, Refused
from isam.diagnostics import Diagnostic, IsamError


def led(job: Job, no: Refused) -> list[Diagnostic]:
    """The choice points at which other answers, those of the machine's own Approach, do give a schedule: one by one,
    or all together. None where the machine's own decided, or finds no schedule either. Each is tried before it is
    said."""
    mine = job.trace.approach
    usual: type[Approach] = registry.load("isam.approaches", job.system.approach)
    if job.trace.replays or type(mine) is usual or not _possible(job, usual()):
        return []
    code, theirs = no.diagnostics[0].code, f"as '{usual.name}' decides, which the machine names, there is a schedule"
    asked = dict.fromkeys(d.point for d in job.trace.decisions)
    alone = [p for p in asked if _differs(type(mine), usual, p) and _possible(job, Except(mine, p, usual()))]
    if not alone:
        what = f"several choices of the Approach '{mine.name}' led here: {theirs}"
        return [Diagnostic(code, what, place(type(mine).decide), f"leave it out, or derive it from '{usual.name}'")]
    return [Diagnostic(code, f"what the Approach '{mine.name}' chose at '{p}' led here: there {theirs}",
                       place(getattr(type(mine), p)), _taken(job, p)) for p in alone]  # fmt: skip


def _differs(mine: type[Approach], usual: type[Approach], point: str) -> bool:
    return getattr(mine, point) is not getattr(usual, point) or mine.decide is not usual.decide


def _taken(job: Job, point: str) -> str:
    first = next(d for d in job.trace.decisions if d.point == point)
    return f"it took, first: {first.label} (of {first.count} options)"


def _possible(job: Job, approach: Approach) -> bool:
    """Whether there is a schedule by this Approach."""
    from isam.compiler.stages import scheduled

    again = Job(job.original, job.system, Trace(approach), dict(job.sizes), job.require, threads=job.threads)
    try:
        scheduled(again)
    except IsamError:
        return False
    return True
