"""Configuration registers while a schedule runs: each stream has set its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from isam.classes import dataclass
from isam.codegen.simulator.fault import SimulationFault
from isam.schedule.tree import Issue
from isam.system.graph import System


@dataclass
class Registers:
    """What streams have set, by register; what holds for all comes from the reset."""

    system: System
    held: dict[str, tuple[str, str | int]] = field(default_factory=dict)
    last: dict[str, tuple[Issue, dict[str, int]]] = field(default_factory=dict)  # per unit, the call before

    def take(self, issue: Issue, scope: Mapping[str, int]) -> None:
        """Checks what a call needs and keeps what it sets."""
        ins = self.system.instructions[issue.instruction]
        stream = self.system.stream_of(issue.unit)
        at = {o.name: o.place.offset.evaluate(scope) for o in issue.operands} if ins.requires else {}
        for register, value in ins.requires.items():
            need = value if isinstance(value, int) or " " not in value else self._measured(value, issue, at)
            reset = self.system.state[register].reset
            have = self.held.get(register, (stream, reset))
            if need is not None and have != (stream, need):
                what = "nobody knows what it holds" if have[1] is None else f"it holds {have[1]}, set by '{have[0]}'"
                raise SimulationFault("register", f"{ins.name} needs {need} in '{register}': {what}")
        sizes = dict(issue.sizes)
        for register, value in ins.sets.items():
            self.held[register] = stream, sizes.get(value, value) if isinstance(value, str) else value
        if ins.requires:
            self.last[issue.unit] = issue, at

    def _measured(self, value: str, issue: Issue, at: Mapping[str, int]) -> int | None:
        """Bytes between neighbours of an operand, or from the call before in a burst; None where there are none."""
        kind, name, *rest = value.split()
        if kind == "step":
            before = self.last.get(issue.unit)
            return at[name] - before[1][name] if issue.joined and before is not None else None
        o = next(o for o in issue.operands if o.name == name)
        d = o.dims[int(rest[0])]
        return o.place.strides[d] * o.tile.steps[d] if d is not None and o.tile.shape[d] > 1 else None
