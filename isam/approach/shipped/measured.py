"""Schedules run beside each other on this CPU: the quickest is taken, if it is so by more than noise."""

from __future__ import annotations

from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from isam.approach.choice import Approach, Choice
from isam.approach.shipped.greedy import INEXACT, Greedy
from isam.diagnostics import fail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isam.compiler.alternatives import Otherwise
    from isam.compiler.measured import Ran

MARGIN = 0.02  # of the time: less is no gain, whatever the noise is found to be
MADE = 3  # schedules made per one that is run
MOST = 512  # schedules run: some minutes


class Measured(Greedy):
    """Decides like ``greedy``; then has schedules made with one decision taken otherwise, runs the first of each
    variant and those predicted to take least beside each other, and keeps what was decided unless another one is
    quicker by more than noise. On machines whose code does not run here the quickest by the time predicted is kept."""

    name = "measured"
    why = "lowest predicted cost"
    reasons = MappingProxyType({**Greedy.reasons, "measure": "quickest as run, beyond noise"})
    varied = ("fuse", "tile", "prefetch", "stream", "upfront", "pipeline", "serpentine")

    def __init__(self, runs: int = 8):
        if not isinstance(runs, int) or not 2 <= runs <= MOST:
            raise fail("approach-argument", f"the Approach '{self.name}' runs 2 to {MOST} schedules, not {runs!r}",
                       hint="for example measured:16")  # fmt: skip
        self.runs = runs
        self.tries = MADE * runs

    @classmethod
    def given(cls, argument: str) -> Approach:
        """``measured:16`` runs 16 schedules."""
        return cls(int(argument) if argument.isdecimal() and len(argument) < 9 else argument)  # type: ignore[arg-type]

    def schedule(self, choice: Choice) -> Any:
        """What is predicted to cost least, of the fewest decisions taken otherwise, each decision in turn: of most
        nobody says what other options would cost."""
        ways: Sequence[Otherwise] = choice.options[1:]
        varied = Counter(m.script[-1][0] for m in choice.context["_made"] if m.script)
        return min(ways, key=lambda w: (len(w.made.script), varied[w.at], w.ratio))

    def measure(self, choice: Choice) -> Any:
        """The quickest, where it is so by more than the noise of the measurement; one whose results are less exact only
        where it takes half the time."""
        options: Sequence[Ran] = choice.options
        weights = [INEXACT if r.schedule and r.schedule.cover.errors else 1.0 for r in options]
        took = [w * r.seconds for w, r in zip(weights, options, strict=True)]
        best = took.index(min(took))
        return options[best if took[best] * (1 + MARGIN + choice.context["noise"]) < took[0] else 0]
