"""Orders in which the space of rewritten kernels may be walked (TR-2, APP-4).

At the choice point "search" the core offers every step that a mismatch asks for, and to stop once something is
solved; ``_states`` in the context holds what was looked at: number, parent, distance from the goal, price. A strategy
is nothing but a rule that picks from these, so it needs no access to the search. All decide like ``greedy`` elsewhere.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

from isam.approach.choice import Approach, Choice
from isam.approach.shipped.greedy import Greedy
from isam.diagnostics import fail

if TYPE_CHECKING:
    from isam.mapper.space import Expansion, State


class Strategy(Greedy):
    """Stops when the core expects nothing better; picks steps by :meth:`_next`."""

    patient = False  # goes on to the end of the space or of the budget

    def search(self, choice: Choice) -> Any:
        """A step by the strategy's rule, or to stop; a finished path by its price."""
        states: tuple[State[Any], ...] = choice.context.get("_states", ())
        steps = [o for o in choice.options if hasattr(o, "step")]
        if not steps or (not hasattr(choice.options[0], "step") and not self.patient):
            return self._cheapest(choice)
        return self._next(steps, states)

    def _next(self, steps: list[Expansion], states: tuple[State[Any], ...]) -> Expansion:
        raise NotImplementedError


class BestFirst(Strategy):
    """The step out of the kernel with the least sum of steps taken and distance left; a larger ``weight`` trusts the
    distance more and finds something sooner, perhaps by a longer path."""

    name = "best-first"
    why = "least steps and distance together"

    def __init__(self, weight: float = 1.0):
        self.weight = weight

    @classmethod
    def given(cls, argument: str) -> Approach:
        """``best-first:2`` has weight 2."""
        return cls(_number(cls, argument, float))

    def _next(self, steps: list[Expansion], states: tuple[State[Any], ...]) -> Expansion:
        return min(steps, key=lambda e: len(e.state.steps) + self.weight * e.state.look.distance)


class Beam(Strategy):
    """Level by level, from the ``width`` kernels of each level that are nearest to the goal; when these lead nowhere
    the next best take their place, so that nothing is lost but time."""

    name = "beam"
    why = "among the nearest of its level"

    def __init__(self, width: int = 4):
        self.width = max(1, width)

    @classmethod
    def given(cls, argument: str) -> Approach:
        """``beam:8`` keeps eight kernels per level."""
        return cls(_number(cls, argument, int))

    def _next(self, steps: list[Expansion], states: tuple[State[Any], ...]) -> Expansion:
        levels: dict[int, list[State[Any]]] = {}
        for s in sorted(states, key=lambda s: (s.look.distance, s.number)):
            levels.setdefault(len(s.steps), []).append(s)
        kept = {s.number for level in levels.values() for s in level[: self.width]}
        inside = [e for e in steps if e.state.number in kept]
        return min(inside or steps, key=lambda e: (len(e.state.steps), e.state.look.distance, e.state.number))


class MonteCarlo(Strategy):
    """A tree search (UCT) whose leaves are valued by their distance and price instead of by playing on: it goes down
    where values are high or visits few, and takes a step never taken before, drawn by ``seed``."""

    name = "mcts"
    why = "highest upper confidence bound"

    def __init__(self, seed: int = 0, exploration: float = 0.5):
        self.seed = seed
        self.exploration = exploration

    @classmethod
    def given(cls, argument: str) -> Approach:
        """``mcts:7`` draws by the seed 7."""
        return cls(_number(cls, argument, int))

    def _next(self, steps: list[Expansion], states: tuple[State[Any], ...]) -> Expansion:
        untried: dict[int, list[Expansion]] = {}
        for e in steps:
            untried.setdefault(e.state.number, []).append(e)
        least = min((s.look.price[0] for s in states if s.solved), default=1.0)
        children: dict[int | None, list[int]] = {}
        visits, values = [1] * len(states), [_value(s, least) for s in states]
        open_ = [s.number in untried for s in states]
        own = list(values)
        for s in reversed(states):  # a child has a higher number than its parent
            children.setdefault(s.parent, []).append(s.number)
            if s.parent is not None:
                visits[s.parent] += visits[s.number]
                values[s.parent] += values[s.number]
                open_[s.parent] = open_[s.parent] or open_[s.number]
        at = 0
        while True:
            reach = self.exploration * math.sqrt(math.log(visits[at] + 1))
            below = [
                (values[c] / visits[c] + reach / math.sqrt(visits[c]), -c) for c in children.get(at, ()) if open_[c]
            ]
            if at in untried and (not below or own[at] + reach >= max(below)[0]):
                return random.Random(f"{self.seed} {len(states)}").choice(untried[at])
            at = -max(below)[1]


class Exhaustive(Strategy):
    """Everything, shortest paths first, until the space or the budget ends: for small kernels, and to judge others."""

    name = "exhaustive"
    why = "nothing is left out"
    patient = True

    def _next(self, steps: list[Expansion], states: tuple[State[Any], ...]) -> Expansion:
        return min(steps, key=lambda e: len(e.state.steps))


class Random(Strategy):
    """Any step, drawn by ``seed`` and by how much was looked at: what every other strategy should beat."""

    name = "random"
    why = "drawn"

    def __init__(self, seed: int = 0):
        self.seed = seed

    @classmethod
    def given(cls, argument: str) -> Approach:
        """``random:7`` draws by the seed 7."""
        return cls(_number(cls, argument, int))

    def _next(self, steps: list[Expansion], states: tuple[State[Any], ...]) -> Expansion:
        return random.Random(f"{self.seed} {len(states)} {len(steps)}").choice(steps)


def _value(s: State[Any], least: float) -> float:
    """Between 0 and 1 by distance, above 1 when solved, the more the cheaper."""
    if s.solved:
        return 1.0 + least / max(least, s.look.price[0], 1e-9)
    return 0.0 if s.look.hopeless else 1.0 / (1.0 + s.look.distance)


def _number(cls: type[Approach], argument: str, kind: type[Any]) -> Any:
    try:
        return kind(argument)
    except ValueError:
        raise fail("approach-argument", f"'{argument}' is no number, which the Approach '{cls.name}' takes") from None
