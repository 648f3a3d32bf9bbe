"""Instructions that do far more in a cycle than those of a cover, and fit after some steps: tiles beside vectors.

The search for covers ends where a kernel is carried out as it stands. An instruction that takes its operands in groups
needs an axis cut first, and a factor laid out in groups; whether that pays, schedules tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel, Statement
from isam.ir.mapping import Cover
from isam.mapper.filters import present

if TYPE_CHECKING:
    from isam.mapper.space import Step

TIMES = 10.0  # so many times the points in a cycle are looked for
TRIED = 2  # instructions


def quicker(kernel: Kernel, cover: Cover, offered: Sequence[Instruction]) -> Iterator[tuple[Step, ...]]:
    """Steps after which such an instruction carries out the largest sum; what the judge of rewritings cannot decide is
    not offered."""
    if cover.steps:
        return
    sums = [(m, s) for m in cover.mappings for n in m.statements[-1:] if (s := kernel.statements[n]).accumulate]
    if not sums:
        return
    mapping, s = max(sums, key=lambda pair: _points(pair[1]))
    own = rate(mapping.instruction)
    if own < 1.0:  # a scalar: what vectors could not take, fits nothing larger
        return
    able = [i for i in present(offered, kernel) if rate(i) >= TIMES * own and _types(i) == _types(mapping.instruction)]
    tried = sorted(able, key=rate, reverse=True)[:TRIED]
    if not tried:
        return
    from isam.mapper.search import reach
    from isam.proof.equivalence import Equivalence

    found = (reach(kernel, i, statement=mapping.statements[-1]) for i in tried)
    best = min((r.paths[0] for r in found if r.paths), key=lambda p: p.price, default=None)
    if best is not None and best.steps and Equivalence().judge(kernel, best.kernel):
        yield best.steps


def rate(i: Instruction) -> float:
    """Points of the sum that the instruction takes in a cycle at most; 0 where it has none."""
    s = next((s for s in i.body.statements if s.accumulate), None)
    return 0.0 if s is None else prod(i.span(a).most or 1 for a in s.domain.names) / (1.0 + (i.cost.issue or 0.0))


def _points(s: Statement) -> int:
    return prod(max(1, a.extent.const) for a in s.domain.axes)


def _types(i: Instruction) -> list[tuple[str, str]]:
    return sorted((b.role, b.dtype) for b in i.body.arguments)
