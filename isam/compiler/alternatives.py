"""Several schedules of one cover, each timed; the quickest is kept (APP-1, APP-4).

The first is what the Approach decides. From then on the core offers, at the choice point "schedule", to take one
decision of a schedule that was made otherwise, or to keep the quickest; what follows that decision is left to the
Approach again. How many are made is the Approach's ``tries``, what may be taken otherwise its ``varied``.

The trace holds the decisions of the schedule that is kept and no others: it replays like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import Any

from isam.approach.choice import Approach, Behind, Choice, Decision, Trace
from isam.classes import dataclass
from isam.compiler.watch import told
from isam.cost import compared
from isam.ir.kernel import USUAL_TRIP
from isam.ir.mapping import Cover
from isam.schedule.tree import Schedule
from isam.scheduler import schedule
from isam.scheduler.infeasible import Infeasible
from isam.system.graph import System

Script = tuple[tuple[int, int], ...]  # which decisions are taken otherwise, and by which option


@dataclass(frozen=True, slots=True, eq=False)
class MadeSchedule:
    """A schedule that was made, timed (``inf``: there is none) and, but for the quickest, dropped. ``way``: what it is
    made by; None for the first. ``beside``: which decisions are on what was made beside it, to be compared. ``moved``:
    from the first plan on one was taken otherwise that is not on that: then those stay as they are, as only one of both
    is taken."""

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


class Scripted(Behind):
    """Another Approach, but for the first decisions, which are given: the options taken."""

    def __init__(self, base: Approach, taken: Sequence[int]):
        super().__init__(base)
        self.taken, self.asked = taken, 0

    def decide(self, choice: Choice) -> Any:
        self.asked += 1
        if self.asked > len(self.taken):
            return super().decide(choice)
        return choice.options[self.taken[self.asked - 1]]


def quickest_schedule(cover: Cover, system: System, trace: Trace,
                      known: tuple[Schedule, Sequence[Decision]] | None = None,
                      by: Approach | None = None) -> Schedule | Infeasible:  # fmt: skip
    """The quickest of the schedules that the trace's Approach asks for; its decisions are added to the trace.

    ``Infeasible`` when the first one is: the Approach's own decisions come first. ``known``: the first, made already,
    and the decisions on it. ``by``: who decides on each of them, where that is not quite the trace's Approach.
    """
    best, least, count = None, None, 0
    for made, answer in schedules(cover, system, trace, known, by):
        count += 1
        if least is None or made.seconds < least.seconds:
            best, least = answer, made
    assert best is not None
    assert least is not None
    keep(trace, least, f"in the quickest of {count} schedules timed")
    return best


def schedules(cover: Cover, system: System, trace: Trace, known: tuple[Schedule, Sequence[Decision]] | None = None,
              by: Approach | None = None) -> Iterator[tuple[MadeSchedule, Schedule | Infeasible]]:  # fmt: skip
    """The schedules that the trace's Approach asks for, one after the other, each as soon as it is made."""
    approach, by = trace.approach, by or trace.approach
    if known is None:
        answer, first = _make(cover, system, by, 0, None)
    else:
        answer, first = known[0], MadeSchedule(0, None, tuple(known[1]), seconds(known[0]))
    yield first, answer
    made, open_ = [first], _ways(first, approach)
    while isinstance(answer, Schedule) and open_ and len(made) < approach.tries:
        least = min(made, key=lambda m: m.seconds)
        context = {"made": len(made), "tries": approach.tries, "_made": tuple(made)}
        way = trace.answer(Choice("schedule", (least, *open_), context))
        if not isinstance(way, Otherwise):
            break
        open_.remove(way)
        other, new = _make(cover, system, by, len(made), way)
        yield new, other
        made.append(new)
        told("schedules made and timed", len(made), approach.tries)
        open_ += _ways(new, approach)


def _make(cover: Cover, system: System, by: Approach, number: int,
          way: Otherwise | None) -> tuple[Schedule | Infeasible, MadeSchedule]:  # fmt: skip
    """A schedule by the decisions of another one up to that which ``way`` takes otherwise, then by whoever decides."""
    given = () if way is None else (*(d.chosen for d in way.made.decisions[: way.at]), way.option)
    trace = Trace(Scripted(by, given))
    answer = schedule(cover, system, trace)
    took = seconds(answer) if isinstance(answer, Schedule) else inf
    moved = way is not None and (way.made.moved or _moves(way.at, trace))
    return answer, MadeSchedule(number, way, tuple(trace.decisions), took, frozenset(trace.beside), moved)


def _moves(at: int, trace: Trace) -> bool:
    """Whether a decision is one of the schedule itself, from its first plan on."""
    first = next((n for n, d in enumerate(trace.decisions) if d.point == "tile"), 0)
    return at >= first and at not in trace.beside


def seconds(schedule: Schedule) -> float:
    """What a schedule takes in time, with usual numbers for sizes that are not known."""
    return compared.seconds(schedule, schedule.kernel.usual(USUAL_TRIP))


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


def keep(trace: Trace, kept: MadeSchedule, why: str) -> None:
    """Adds the decisions of the schedule that is kept to the trace, those taken otherwise for this reason."""
    given = {at for at, _ in kept.script}
    trace.decisions += [replace(d, why=why) if at in given else d for at, d in enumerate(kept.decisions)]
