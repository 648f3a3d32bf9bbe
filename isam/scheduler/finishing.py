"""What is done to the tree that the dry run leaves, in order: each takes a schedule and returns it, or another."""

from __future__ import annotations

from collections.abc import Callable

from isam.approach.choice import Trace
from isam.classes import dataclass
from isam.schedule.tree import Schedule
from isam.scheduler.bursts import with_bursts
from isam.scheduler.configure import with_registers
from isam.scheduler.pipelining import with_pipelining
from isam.scheduler.prefetch import with_prefetches
from isam.scheduler.serpentine import with_serpentines
from isam.scheduler.streaming import with_streaming
from isam.scheduler.upfront import with_moves_upfront
from isam.scheduler.waits import with_waits


@dataclass(frozen=True, slots=True)
class Finish:
    """``run``: what is done, by what the Approach answers (``asks``) or by rule; ``why``: the reason for its place."""

    run: Callable[..., Schedule]
    why: str
    asks: bool = True


FINISHES = (
    Finish(with_prefetches, "first: it reads the sweeps of loops, whose blocks are cut and woven later"),
    Finish(with_moves_upfront, "before blocks are woven: moves go before the calls of their own block"),
    Finish(with_streaming, "before blocks are woven: what is found again is seen in whole ones"),
    Finish(with_pipelining, "behind all that concerns a single block: it weaves two of them"),
    Finish(with_bursts, "behind all that moves calls: only neighbours are joined", asks=False),
    Finish(with_registers, "behind bursts: a command is configured once, for all calls that it stands for", asks=False),
    Finish(with_waits, "behind all that adds or moves calls: what each waits for stands before it", asks=False),
    Finish(with_serpentines, "last: only loops in which nothing waits go backwards"),
)


def finished(schedule: Schedule, trace: Trace) -> Schedule:
    """The schedule, once all of this was done. Raises ``NoSchedule`` where a register of a unit cannot be set."""
    for finish in FINISHES:
        schedule = finish.run(schedule, trace) if finish.asks else finish.run(schedule)
    return schedule
