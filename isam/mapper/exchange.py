"""Whether the sources of an instruction's operations are tried in one order only: the other one finds nothing new."""

from __future__ import annotations

from isam.ir.instruction import Instruction
from isam.mapper.dataflow import Form, Pattern, Source, pattern_of
from isam.mapper.match import normal, symmetries_of
from isam.once import once


@once
def exchangeable(instruction: Instruction) -> bool:
    """Whether it has operations that commute, and the sources of each may be exchanged by a symmetry that changes
    nothing else: then mappings with sources in the other order are in the orbits of those in the order as it stands.
    Not where two of them have a source in common, whose orders a kernel may have written differently."""
    pattern = pattern_of(instruction, normal(instruction.body))
    both = [n.sources for n in pattern.flow.nodes if n.views[0].commutes]
    buffers = [s.buffer for sources in both for s in sources if isinstance(s, Form)]
    alone = len(set(buffers)) == len(buffers)
    return bool(both) and alone and all(_exchanged(pattern, *sources) for sources in both)


def _exchanged(pattern: Pattern, one: Source, two: Source) -> bool:
    if not (isinstance(one, Form) and isinstance(two, Form)) or {one.buffer, two.buffer} & pattern.temps:
        return False
    other = {one.buffer: two.buffer, two.buffer: one.buffer}
    return len(other) == 2 and any(
        all(a == b for a, b in (*m.statement_map, *m.axes))
        and all(o.buffer == other.get(o.operand, o.operand) for o in m.operands)
        for m in symmetries_of(pattern)
    )
