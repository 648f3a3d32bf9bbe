"""The opinions of the paper's case study (6.2): few paths are looked at, computations stay where their data is."""

from __future__ import annotations

from typing import Any

from isam.approach.choice import Choice
from isam.approach.shipped.greedy import Locality


class CaseStudy(Locality):
    """Nests that touch a buffer in common share loops, the unit that made an operand goes on with it, whoever would be
    done first; data takes the way with the fewest memories on it, of equals the quickest. Else like ``greedy``."""

    name = "casestudy"
    why = "few paths, near its data"

    def device(self, choice: Choice) -> Any:
        """A unit that made what the call takes, of several the one done first; any, where none did."""
        costs, wrote = choice.costs or [0.0] * len(choice.options), choice.context["wrote"]
        return choice.options[min(range(len(costs)), key=lambda i: (choice.options[i] not in wrote, costs[i]))]

    def route(self, choice: Choice) -> Any:
        """The fewest hops: longer ways are not considered."""
        costs = choice.costs or [0.0] * len(choice.options)
        return choice.options[min(range(len(costs)), key=lambda i: (len(choice.options[i].memories), costs[i]))]
