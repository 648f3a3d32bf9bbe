"""A cover scheduled with calls as large as they may be, and with smaller ones where nests could agree on those
(:mod:`isam.scheduler.agree`): what calls of one size save and what they cost, only both in time say.

The trace holds the decisions on the schedule that is taken and no others: it replays like any other.
"""

from __future__ import annotations

from dataclasses import replace

from isam.approach.choice import Choice, Trace
from isam.compiler.alternatives import Scripted, seconds
from isam.compiler.variants import Variant
from isam.ir.mapping import Cover
from isam.schedule.tree import Schedule
from isam.scheduler import schedule as make
from isam.scheduler.agree import offered
from isam.scheduler.infeasible import Infeasible
from isam.system.graph import System

AGREEING = "smaller calls that agree"


def schedule(cover: Cover, system: System, trace: Trace) -> Schedule | Infeasible:
    """The schedule that the Approach decides, or the same with smaller calls where it takes that at ``variant``."""
    begin = len(trace.decisions)
    answer = make(cover, system, trace)
    mine = trace.decisions[begin:]
    script = {at: d.count - 1 for at, d in enumerate(mine) if offered(d) and not d.chosen}
    if trace.replays or not script or not isinstance(answer, Schedule):
        return answer
    other = Trace(Scripted(trace.approach, tuple(script.items())))
    smaller = make(cover, system, other)
    if not isinstance(smaller, Schedule):
        return answer
    options = [Variant(answer), Variant(smaller, (AGREEING,))]
    costs = [seconds(o.schedule) for o in options]
    taken = trace.answer(Choice("variant", options, {"options": [o.label() for o in options], "unproved": []}, costs))
    if taken is options[0]:
        return answer
    why = "in the quicker of 2 schedules timed"
    trace.decisions[begin:] = [replace(d, why=why) if at in script else d for at, d in enumerate(other.decisions)]
    return replace(smaller, trace=trace)
