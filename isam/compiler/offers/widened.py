"""Products of bytes for instructions that sum products of words: VPMADDWD, where nothing sums those of bytes exactly.

Each factor is made an array of words ahead: a constant one when it is bound, another one once for all rows or columns
it is multiplied with. What is added to a factor leaves the sum first, as it does for instructions that take bytes.
Whether that pays, schedules tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isam.compiler.offers.expanded import SOONER, apart, begun, narrow_factors, rate, taken_out, taking
from isam.compiler.offers.subject import one
from isam.ir.dtype import DTYPES
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject
    from isam.compiler.offers.way import Way

INTEGERS = [d.name for d in DTYPES.values() if d.kind in "iu"]


@one
def widened(of: Subject) -> Steps:
    """Steps after which every sum that would be sooner done by such an instruction has factors that were widened ahead.
    What the judge of rewritings cannot decide is not offered."""
    from isam.compiler.offers.way import Way

    kernel, way = of.kernel, Way(of.kernel, 0)
    for m in of.cover.mappings:
        n = m.statements[-1]
        if (s := kernel.statements[n]).accumulate and s.op == "add" and s.reduces and rate(m.instruction):
            with way.attempt():
                way.at = way.now((n,))[-1]
                _onto(way, m.instruction, of.offered)
    return way.steps


def _onto(way: Way, own: Instruction, offered: Sequence[Instruction]) -> None:
    """Goes on to where the factors of the sum are of a dtype in between, of which some instruction takes more in a
    cycle."""
    from isam.compiler.offers.way import StepRefused
    from isam.transforms.law import Site
    from isam.transforms.values.split_cast import SplitCast

    found = narrow_factors(way.kernel, way.at, INTEGERS)
    types = [way.kernel.buffer(f.buffer).dtype for f in found]
    dtype = _between(way.kernel, way.at, types, rate(own), offered)
    if not dtype:
        raise StepRefused
    if any(f.added for f in found):
        taken_out(way)
    apart(way)
    for k in (0, 1):
        f = narrow_factors(way.kernel, way.at, INTEGERS)[k]
        if way.kernel.buffer(f.buffer).dtype != dtype:
            way.take(SplitCast(), Site.of(statement=f.cast, dtype=dtype), late=True)
    begun(way)


def _between(kernel: Kernel, n: int, types: Sequence[str], own: float, offered: Sequence[Instruction]) -> str:
    """The dtype that has the numbers of both factors and of which most are taken in a cycle; '' where that is not far
    more than the sum takes as it is. ``own``: points of it in a cycle."""
    from isam.transforms.values.casts import holds

    result = kernel.buffer(kernel.statements[n].dest.buffer).dtype
    if len(types) != 2:
        return ""

    def most(a: str, b: str) -> float:
        return max((rate(i) for i in taking(offered, kernel, (a, b), result)), default=0.0)

    wider = [d for d in INTEGERS if {*types} != {d} and all(holds(d, t) for t in types)]
    speeds = {d: most(d, d) for d in wider}
    best = max(speeds, key=lambda d: speeds[d], default="")
    return best if best and speeds[best] >= SOONER * max(own, most(*types)) else ""
