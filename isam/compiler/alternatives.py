"""Several schedules of one cover, each timed; the quickest is kept (APP-1, APP-4).

The first is what the Approach decides. From then on the core offers, at the choice point "schedule", to take one
decision of a schedule that was made otherwise, or to keep the quickest; what follows that decision is left to the
Approach again. How many are made is the Approach's ``tries``, what may be taken otherwise its ``varied``.

Of those made besides, the trace of the compilation gets the decisions of the one that is kept: it replays like any
other.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from isam.approach.choice import Approach, Choice, Decision, Trace
from isam.classes import dataclass
from isam.compiler.candidate import Candidate
from isam.compiler.job import Job
from isam.compiler.watch import told
from isam.system.graph import System

Script = tuple[tuple[int, int], ...]  # which decisions are taken otherwise, and by which option


@dataclass(frozen=True, slots=True, eq=False)
class MadeSchedule:
    """What is told of a schedule that was made and timed (``inf``: there is none). ``way``: what it is made by; None
    for the first. ``beside``: which decisions are on what was made beside it, to be compared. ``moved``: from the first
    plan on one was taken otherwise that is not on that: then those stay as they are, as only one of both is taken."""

    number: int
    way: Otherwise | None
    decisions: tuple[Decision, ...]
    seconds: float
    beside: frozenset[int] = frozenset()
    moved: bool = False

    @property
    def parent(self) -> int | None:
        return None if self.way is None else self.way.made.number

    @property
    def script(self) -> Script:
        return () if self.way is None else (*self.way.made.script, (self.way.at, self.way.option))

    @property
    def what(self) -> str:
        """What was decided otherwise; '' of the first."""
        return "; ".join(_said(self.decisions[at]) for at, _ in self.script)

    def label(self) -> str:
        return f"keep schedule {self.number}, {self.seconds * 1e6:.4g} us"


@dataclass(frozen=True, slots=True, eq=False)
class Otherwise:
    """One decision of a schedule taken otherwise. ``ratio``: the predicted cost of that option over the least."""

    made: MadeSchedule
    at: int
    option: int
    ratio: float

    def label(self) -> str:
        d = self.made.decisions[self.at]
        return f"schedule {self.made.number} with {d.point} {self.at} otherwise: option {self.option} of {d.count}"


def _said(d: Decision) -> str:
    """What was decided, and of what."""
    parts = [d.context[k] for k in ("nest", "group", "loop", "buffer", "buffers") if d.context.get(k)]
    of = ", ".join(str(x) for part in parts for x in (part if isinstance(part, list | tuple) else [part]))
    return f"{d.point}{f' of {of}' if of else ''}: {d.label}"


def quickest(job: Job, first: Candidate) -> Candidate:
    """The quickest of the schedules that the job's Approach asks for, beginning with one that is made. Where that is
    another one, its decisions are added to the trace."""
    best, least, count = first, None, 0
    for made, candidate in alternatives(first, job.system, job.trace.approach):
        count += 1
        if least is None or made.seconds < least.seconds:
            best, least = candidate, made
    if least is not None and least.way is not None:
        keep(job, best, least, f"in the quickest of {count} schedules timed")
    return best


def keep(job: Job, candidate: Candidate, made: MadeSchedule, why: str) -> None:
    """Adds the decisions of the schedule that is kept to the trace, those taken otherwise for this reason."""
    candidate.explain({at: why for at, _ in made.script})
    job.record(candidate)


def alternatives(first: Candidate, system: System, approach: Approach) -> Iterator[tuple[MadeSchedule, Candidate]]:
    """The schedules that the Approach asks for, one after the other, each as soon as it is made, the first before."""
    made = [_made(first, 0)]
    yield made[0], first
    open_ = _ways(made[0], approach)
    while open_ and len(made) < approach.tries:
        least = min(made, key=lambda m: m.seconds)
        context = {"made": len(made), "tries": approach.tries, "_made": tuple(made)}
        way = Trace(approach).answer(Choice("schedule", (least, *open_), context))
        if not isinstance(way, Otherwise):
            break
        open_.remove(way)
        other = first.again(system, [*(d.chosen for d in way.made.decisions[: way.at]), way.option])
        made.append(_made(other, len(made), way))
        yield made[-1], other
        told("schedules made and timed", len(made), approach.tries)
        open_ += _ways(made[-1], approach)


def _made(candidate: Candidate, number: int, way: Otherwise | None = None) -> MadeSchedule:
    moved = way is not None and (way.made.moved or _moves(way.at, candidate))
    return MadeSchedule(number, way, candidate.decisions, candidate.seconds(), candidate.beside, moved)


def _moves(at: int, candidate: Candidate) -> bool:
    """Whether a decision is one of the schedule itself, from its first plan on."""
    first = next((n for n, d in enumerate(candidate.decisions) if d.point == "tile"), 0)
    return at >= first and at not in candidate.beside


def _ways(made: MadeSchedule, approach: Approach) -> list[Otherwise]:
    """What of a schedule may be decided otherwise, after the last decision that was: so no script comes twice."""
    if made.seconds == inf:
        return []
    after, out = -1 if made.way is None else made.way.at, []
    still = made.beside if made.moved else frozenset()
    for at, d in enumerate(made.decisions):
        if at > after and d.point in approach.varied and at not in still:
            least = min(d.costs, default=0.0)
            ratios = [c / least if least > 0 else 1.0 for c in d.costs] or [1.0] * d.count
            out += [Otherwise(made, at, o, ratios[o]) for o in range(d.count) if o != d.chosen]
    return sorted(out, key=lambda w: w.ratio)
