"""What schedules of one kernel are compared by: the time of their calls, and what calls wait for beside that.

Which model tells what: mappings are compared by cycles of calls and lines that they touch (``mapper.pricing``), plans
of a group by cycles of its block and bytes (``scheduler.plans``), covers before they are scheduled by the least that
their calls take (``floor``), schedules by what is here. A report takes the ``timeline`` alone: what each unit does.
"""

from __future__ import annotations

from collections.abc import Mapping

from isam.cost.chained import chained
from isam.cost.swept import waiting
from isam.cost.timeline import timeline
from isam.ir.kernel import USUAL_TRIP
from isam.schedule.tree import Schedule


def seconds(schedule: Schedule, sizes: Mapping[str, int] | None = None) -> float:
    """Seconds with these numbers for sizes known at run time, else with usual ones."""
    sizes = schedule.kernel.usual(USUAL_TRIP) if sizes is None else sizes
    return timeline(schedule, sizes).seconds + beside(schedule, sizes)


def beside(schedule: Schedule, sizes: Mapping[str, int]) -> float:
    """Seconds that are in no timeline: steps wait for what the step before leaves, and, told where all sizes are known,
    calls for caches."""
    return chained(schedule, sizes) + (0.0 if schedule.kernel.syms else waiting(schedule))
