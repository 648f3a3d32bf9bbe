"""Decisions of a recording as advice: what was decided before is decided again where it is offered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isam.approach.choice import Approach, Choice, Decision, Trace, label_of
from isam.approach.shipped.greedy import Greedy
from isam.diagnostics import fail


class Replay(Greedy):
    """Follows a recording as far as it fits: at the n-th choice of a point the option that bears the recorded label;
    from the first that is not offered on, that point is decided like ``greedy``. A recording of another size, machine
    or version is advice this way; :meth:`isam.approach.choice.Trace.replaying` accepts none but the same.
    """

    name = "replay"
    why = "as recorded, else lowest predicted cost"

    def __init__(self, recording: Trace | str | None = None):
        if recording is None:
            raise fail("approach-argument", "the Approach 'replay' needs a recording", hint="replay:FILE")
        decisions = (Trace.replaying(recording) if isinstance(recording, str) else recording).recorded
        self._left: dict[str, list[Decision]] = {}
        for d in reversed(decisions):
            self._left.setdefault(d.point, []).append(d)

    @property
    def goes_on(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the recording decides on more schedules of what was taken: not where that gave way."""
        return bool(self._left.get("tile")) and not self._left.get("variant")

    @classmethod
    def given(cls, argument: str) -> Approach:
        """``replay:out.json`` follows what that file recorded."""
        return cls(Trace.reading(Path(argument)))

    def decide(self, choice: Choice) -> Any:
        """The recorded option where it is offered."""
        left = self._left.get(choice.point, [])
        if left:
            label = left.pop().label
            for option in choice.options:
                if label_of(option) == label:
                    return option
            left.clear()
        return super().decide(choice)
