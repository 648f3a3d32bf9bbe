"""What the strict simulator says when a schedule does something that its machine cannot, or reads what it must not."""

from __future__ import annotations

from isam.diagnostics import InternalError

KINDS = {
    "unit": "the unit does not run the instruction",
    "edge": "no move edge of the machine carries this",
    "placement": "the operand may not live in this memory",
    "apart": "operands that must lie in different memories share one",
    "size": "a size outside the instruction's limits",
    "shape": "the tile has not the operand's shape",
    "dtype": "the buffer has not the operand's element type",
    "contract": "strides or alignment that the instruction does not take",
    "step": "calls that cannot start together",
    "register": "a configuration register that does not hold what is needed",
    "outside": "an address outside its memory, slot or argument",
    "tile": "elements outside the buffer",
    "misaligned": "an address that is not a multiple of the memory's alignment",
    "unwritten": "bytes that were never written",
    "stale": "bytes that hold another element, or an old version of this one",
    "capacity": "more than the memory holds",
    "loop": "a loop that breaks the rules of its parts",
    "name": "something that the schedule does not define",
    "final": "an output that did not reach its home",
}


class SimulationFault(InternalError):
    """The schedule is wrong. ``kind`` is a key of ``KINDS``, ``step`` counts executed calls from 1."""

    def __init__(self, kind: str, message: str, step: int = 0, call: str = "", scope: dict[str, int] | None = None):
        self.kind, self.step, self.call = kind, step, call
        self.scope = dict(scope or {})
        text = f"simulator[{kind}]: {message}"
        if call:
            where = ", ".join(f"{n} = {v}" for n, v in self.scope.items())
            text += f"\n  at step {step}{f' ({where})' if where else ''}: {call}"
        super().__init__(text)
