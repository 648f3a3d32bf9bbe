"""A schedule that may be taken: of which cover it is, and by which decisions it is made.

Whatever the reason for which a cover is scheduled once more is (another option may be quicker, a choice is left to
time, a schedule cannot be proved, registers do not hold a tile), it is this that is made again, by other decisions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from math import inf
from typing import TYPE_CHECKING

from isam.approach.choice import Approach, Decision, Trace
from isam.approach.steered import Scripted
from isam.classes import dataclass
from isam.ir.mapping import Cover
from isam.schedule.tree import Schedule
from isam.system.graph import System

if TYPE_CHECKING:
    from isam.scheduler.infeasible import Infeasible


@dataclass(slots=True, eq=False)
class Candidate:
    """``by``: who decides. ``ahead``: the steps by which the cover's kernel was made from the one as written; of one
    that is decided otherwise at a choice point left to time, also what that is called.

    ``answer``: the ``Schedule``, or the ``Infeasible`` that says why there is none; None while it is not made. Once it
    is made, ``decisions``: by which ones; ``beside``: the numbers of those on what was made beside it, to be compared.
    """

    cover: Cover
    by: Approach
    ahead: tuple[str, ...] = ()
    answer: Schedule | Infeasible | None = None
    decisions: tuple[Decision, ...] = ()
    beside: frozenset[int] = frozenset()
    timed: dict[tuple[tuple[str, int], ...] | None, float] = field(default_factory=dict)  # seconds, by run-time sizes

    def __repr__(self) -> str:
        return f"<{self.label()}>"

    def label(self) -> str:
        return named(self.ahead)

    @property
    def feasible(self) -> bool:
        """Whether it is made, and has a schedule."""
        return isinstance(self.answer, Schedule)

    @property
    def schedule(self) -> Schedule:
        assert isinstance(self.answer, Schedule)
        return self.answer

    def seconds(self, sizes: Mapping[str, int] | None = None) -> float:
        """What it is compared by, with these numbers for sizes known at run time, else usual ones; ``inf`` where it has
        no schedule."""
        from isam.cost.compared import seconds

        if not self.feasible:
            return inf
        key = None if sizes is None else tuple(sorted(sizes.items()))
        if key not in self.timed:
            self.timed[key] = seconds(self.schedule, sizes)
        return self.timed[key]

    def make(self, system: System, trace: Trace | None = None) -> None:
        """Schedules it, where a trace is given by what that replays."""
        from isam.scheduler import schedule

        trace = trace or Trace(self.by)
        begin = len(trace.decisions)
        self.answer = schedule(self.cover, system, trace)
        self.decisions = tuple(trace.decisions[begin:])
        self.beside = frozenset(n - begin for n in trace.beside if n >= begin)

    def again(self, system: System, given: Sequence[int], rejected: Collection[int] = ()) -> Candidate:
        """The same, made once more, with the first decisions ``given`` by the numbers of their options, and the next
        one without those ``rejected``."""
        other = self.unmade()
        other.make(system, Trace(Scripted(self.by, given, rejected)))
        return other

    def unmade(self, by: Approach | None = None, *ahead: str) -> Candidate:
        """The same cover, to be scheduled once more, perhaps by somebody else."""
        return Candidate(self.cover, by or self.by, (*self.ahead, *ahead))

    def explain(self, why: Mapping[int, str]) -> None:
        """Gives some of its decisions, by their numbers, other reasons."""
        self.decisions = tuple(replace(d, why=why.get(n, d.why)) for n, d in enumerate(self.decisions))


def named(ahead: Sequence[str]) -> str:
    """What a schedule is called by what was done ahead of it."""
    return " then ".join(ahead) or "as written"
