"""A legitimate no of the scheduler: demand, bound, what is resident, what would help. Returned; falsy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import cached_property

from isam.classes import dataclass
from isam.diagnostics import NOWHERE, Loc


@dataclass(frozen=True)
class Infeasible:
    """``resource`` (a memory, an edge, an operand) was asked for ``demand`` where ``bound`` is what there is. ``terms``
    lists who takes part; ``helps`` finds out what would help, once somebody wants to know."""

    resource: str
    demand: str
    bound: str
    terms: tuple[str, ...] = ()
    memory: str = ""  # the memory that is full, where that is the reason
    smaller: bool = False  # whether a smaller call may do with less
    row: int = 0  # how long its rows would have to be, where that is the reason
    path: tuple[str, ...] = ()  # memories that no move carries it along, where that is the reason
    loc: Loc = field(default=NOWHERE, compare=False)  # where the description says how much it holds
    helps: Callable[[], tuple[str, ...]] | None = field(default=None, compare=False, repr=False)

    def __bool__(self) -> bool:
        return False

    @cached_property
    def levers(self) -> tuple[str, ...]:
        """What would help, each tried before it is said: several schedules are made for that."""
        return () if self.helps is None else self.helps()

    def __str__(self) -> str:
        text = f"no schedule: {self.resource} needs {self.demand}, but {self.bound}"
        text += "".join(f"\n  - {t}" for t in self.terms)
        return text + "".join(f"\n  would help: {lever}" for lever in self.levers)


class NoSchedule(Exception):
    """Carries an :class:`Infeasible` out of the dry run; caught by ``schedule``. ``nest``: by number, the one for whose
    call there is no room."""

    def __init__(self, reason: Infeasible):
        super().__init__(str(reason))
        self.reason = reason
        self.nest: int | None = None
