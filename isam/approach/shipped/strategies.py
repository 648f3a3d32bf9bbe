"""Orders in which the space of rewritten kernels may be walked (TR-2, APP-4).

At the choice point "search" the core offers every step that a mismatch asks for, and to stop once something is
solved; ``_states`` in the context holds what was looked at: number, parent, distance from the goal, price. A strategy
is nothing but a rule that picks from these, so it needs no access to the search.

At "schedule" the core offers what may be decided otherwise in the schedules made so far, with their times; the same
rules pick from that. All decide like ``greedy`` elsewhere.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

from isam.approach.choice import Approach, Choice
from isam.approach.shipped.greedy import Greedy
from isam.diagnostics import fail

if TYPE_CHECKING:
    from isam.compiler.alternatives import MadeSchedule, Otherwise
    from isam.mapper.space import Expansion, State


class Strategy(Greedy):
    """Stops when the core expects nothing better; picks steps by :meth:`_next`, schedules by :meth:`_other`."""

    patient = False  # goes on to the end of the space or of the budget
    tries = 8

    def search(self, choice: Choice) -> Any:
        """A step by the strategy's rule, or to stop; a finished path by its price."""
        states: tuple[State[Any], ...] = choice.context.get("_states", ())
        steps = [o for o in choice.options if hasattr(o, "step")]
        if not steps or (not hasattr(choice.options[0], "step") and not self.patient):
            return self._cheapest(choice)
        return self._next(steps, states)

    def schedule(self, choice: Choice) -> Any:
        """Something otherwise, by the strategy's rule, as long as there is anything."""
        ways = [o for o in choice.options if hasattr(o, "ratio")]
        return self._other(ways, choice.context["_made"]) if ways else choice.options[0]

    def because(self, choice: Choice) -> str:
        """Steps and schedules are picked by the rule of the strategy itself."""
        return self.why if choice.point in ("search", "schedule") else super().because(choice)

    def _next(self, steps: list[Expansion], states: tuple[State[Any], ...]) -> Expansion:
        raise NotImplementedError

    def _other(self, ways: list[Otherwise], made: tuple[MadeSchedule, ...]) -> Otherwise:
        """Of the quickest schedule what is predicted to cost least."""
        return min(ways, key=lambda w: (w.made.seconds, w.ratio))


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
        width = _number(cls, argument, int)
        if width < 1:
            raise fail("approach-argument", f"the Approach '{cls.name}' keeps at least one kernel, not {width}",
                       hint="for example beam:4")  # fmt: skip
        return cls(width)

    def _next(self, steps: list[Expansion], states: tuple[State[Any], ...]) -> Expansion:
        levels: dict[int, list[State[Any]]] = {}
        for s in sorted(states, key=lambda s: (s.look.distance, s.number)):
            levels.setdefault(len(s.steps), []).append(s)
        kept = {s.number for level in levels.values() for s in level[: self.width]}
        inside = [e for e in steps if e.state.number in kept]
        return min(inside or steps, key=lambda e: (len(e.state.steps), e.state.look.distance, e.state.number))

    def _other(self, ways: list[Otherwise], made: tuple[MadeSchedule, ...]) -> Otherwise:
        """One way of each of the ``width`` quickest in turn."""
        kept = {m.number for m in sorted(made, key=lambda m: m.seconds)[: self.width]}
        tried: dict[int | None, int] = {}
        for m in made:
            tried[m.parent] = tried.get(m.parent, 0) + 1
        inside = [w for w in ways if w.made.number in kept]
        return min(inside or ways, key=lambda w: (tried.get(w.made.number, 0), w.made.seconds, w.ratio))


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
        at = self._descend([s.parent for s in states], [_value(s, least) for s in states], set(untried))
        return random.Random(f"{self.seed} {len(states)}").choice(untried[at])

    def _other(self, ways: list[Otherwise], made: tuple[MadeSchedule, ...]) -> Otherwise:
        untried: dict[int, list[Otherwise]] = {}
        for w in ways:
            untried.setdefault(w.made.number, []).append(w)
        least = min(m.seconds for m in made)
        values = [least / m.seconds if m.seconds > 0 else 1.0 for m in made]
        at = self._descend([m.parent for m in made], values, set(untried))
        weights = [1 / w.ratio**4 for w in untried[at]]  # what is predicted to be near is likelier
        return random.Random(f"{self.seed} {len(made)}").choices(untried[at], weights)[0]

    def _descend(self, parents: list[int | None], own: list[float], untried: set[int]) -> int:
        """The node at which something new is tried; nodes are numbered, a child later than its parent."""
        children: dict[int | None, list[int]] = {}
        visits, values, open_ = [1] * len(own), list(own), [n in untried for n in range(len(own))]
        for n in reversed(range(len(own))):
            parent = parents[n]
            children.setdefault(parent, []).append(n)
            if parent is not None:
                visits[parent] += visits[n]
                values[parent] += values[n]
                open_[parent] = open_[parent] or open_[n]
        at = 0
        while True:
            reach = self.exploration * math.sqrt(math.log(visits[at] + 1))
            below = [
                (values[c] / visits[c] + reach / math.sqrt(visits[c]), -c) for c in children.get(at, ()) if open_[c]
            ]
            if at in untried and (not below or own[at] + reach >= max(below)[0]):
                return at
            at = -max(below)[1]


class Exhaustive(Strategy):
    """Everything, shortest paths first, until the space or the budget ends: for small kernels, and to judge others."""

    name = "exhaustive"
    why = "nothing is left out"
    patient = True
    tries = 512
    varied = ("tail", "fuse", "tile", "device", "place", "route", "source", "victim")

    def _next(self, steps: list[Expansion], states: tuple[State[Any], ...]) -> Expansion:
        return min(steps, key=lambda e: len(e.state.steps))

    def _other(self, ways: list[Otherwise], made: tuple[MadeSchedule, ...]) -> Otherwise:
        return min(ways, key=lambda w: (len(w.made.script), w.ratio))


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

    def _other(self, ways: list[Otherwise], made: tuple[MadeSchedule, ...]) -> Otherwise:
        return random.Random(f"{self.seed} {len(made)} {len(ways)}").choice(ways)


def _value(s: State[Any], least: float) -> float:
    """Between 0 and 1 by distance, above 1 when solved, the more the cheaper."""
    if s.solved:
        return 1.0 + least / max(least, s.look.price[0], 1e-9)
    return 0.0 if s.look.hopeless else 1.0 / (1.0 + s.look.distance)


def _number(cls: type[Approach], argument: str, kind: type[Any]) -> Any:
    try:
        found = kind(argument)
    except ValueError:
        found = math.nan
    if math.isfinite(found):
        return found
    raise fail("approach-argument", f"'{argument}' is no number, which the Approach '{cls.name}' takes")
