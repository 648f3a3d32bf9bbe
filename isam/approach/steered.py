"""Approaches that decide as another one does, but for some choices: so a schedule is made again, otherwise."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from isam.approach.choice import Approach, Behind, Choice, Trace
from isam.approach.questions import Question


class Scripted(Behind):
    """The first decisions are given, by the numbers of their options. Of the options of the next one those that are
    rejected are not offered to the other Approach."""

    def __init__(self, base: Approach, taken: Sequence[int], rejected: Collection[int] = ()):
        super().__init__(base)
        self.taken, self.rejected, self.asked = tuple(taken), rejected, 0

    def decide(self, choice: Choice) -> Any:
        at, self.asked = self.asked, self.asked + 1
        if at < len(self.taken):
            return choice.options[self.taken[at]]
        if at > len(self.taken) or not self.rejected:
            return super().decide(choice)
        left = [n for n in range(len(choice.options)) if n not in self.rejected]
        costs = None if choice.costs is None else [choice.costs[n] for n in left]
        offered = replace(choice, options=[choice.options[n] for n in left], costs=costs)
        return Trace(self.base).answer(offered)  # one of these, as is checked there


class Second(Behind):
    """Where a question is left to time, the option after the first is taken."""

    def __init__(self, base: Approach, question: Question):
        super().__init__(base)
        self.question = question

    def decide(self, choice: Choice) -> Any:
        own = super().decide(choice)  # asked in any case: a recording goes on from one decision to the next
        return choice.options[1] if self.question.left_to_time(choice) else own

    def because(self, choice: Choice) -> str:
        """A reason of its own where it decides."""
        return "to be timed beside the first" if self.question.left_to_time(choice) else super().because(choice)


class Except(Behind):
    """One point is decided as by a third Approach."""

    def __init__(self, base: Approach, point: str, other: Approach):
        super().__init__(base)
        self.point, self.other = point, other

    def _who(self, choice: Choice) -> Approach:
        return self.other if choice.point == self.point else self.base

    def decide(self, choice: Choice) -> Any:
        return self._who(choice).decide(choice)

    def because(self, choice: Choice) -> str:
        return self._who(choice).because(choice)
