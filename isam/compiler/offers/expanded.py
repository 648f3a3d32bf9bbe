"""Products of bytes for instructions that take them with a sign on one side only, or without what is added to a factor.

``sum a * w`` of two bytes with a sign is ``sum (a + 128) * w - 128 * sum w``: the first factor has no sign any more,
and where ``w`` is constant, the second sum is made once, when it is bound. So it is with zero points: what is added to a
factor and is the same in every step of a sum leaves it. Whether that pays, schedules tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

from isam.ir.dataflow import determined
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Kernel
from isam.ir.mapping import Cover
from isam.ir.table import Some

if TYPE_CHECKING:
    from isam.compiler.offers.way import Way
    from isam.mapper.space import Step

BYTES = {"i8": "u8", "u8": "i8"}
SUM = {"cast", "mul", "add"}  # what an instruction for products of bytes does
SOONER = 5 / 4  # times the points in a cycle, from which on such an instruction is tried


def expanded(kernel: Kernel, cover: Cover, offered: Sequence[Instruction]) -> Iterator[tuple[Step, ...]]:
    """Steps after which every sum that would be sooner done by such an instruction has the factors that it takes. What
    the judge of rewritings cannot decide is not offered."""
    from isam.compiler.offers.way import Way

    way = Way(kernel, 0)
    for m in cover.mappings:
        n = m.statements[-1]
        if (s := kernel.statements[n]).accumulate and s.op == "add" and s.reduces and speed(m.instruction):
            with way.attempt():
                way.at = way.now((n,))[-1]
                _onto(way, m.instruction, offered)
    if way.steps:
        yield way.steps


def speed(i: Instruction) -> float:
    """Points of the sum that the instruction takes in a cycle; 0 where it sums nothing, or that is not said."""
    s = next((s for s in i.body.statements if s.accumulate), None)
    return 0.0 if s is None else prod(i.span(a).most or 1 for a in s.domain.names) / (i.cost.issue or float("inf"))


def _onto(way: Way, own: Instruction, offered: Sequence[Instruction]) -> None:
    """Goes on to where the factors of the sum are bytes, of which some instruction takes more in a cycle."""
    from isam.compiler.offers.way import StepRefused
    from isam.transforms.law import Site
    from isam.transforms.statements.fission import Fusion
    from isam.transforms.values.fold import FOLDS
    from isam.transforms.values.rebase import Rebase

    sources = _bytes(way.kernel, way.at)
    if len(sources) < 2:
        raise StepRefused
    types = [way.kernel.buffer(b).dtype for b, _, _ in sources]
    result = way.kernel.buffer(way.kernel.statements[way.at].dest.buffer).dtype
    fixed = determined(way.kernel) | {b.name for b in way.kernel.buffers if b.role == "const"}
    order = sorted((0, 1), key=lambda k: sources[k][0] in fixed)  # what is summed of the other one is made once then
    added = any(more for _, _, more in sources)
    tries = [(None, types)] * added + [(k, [BYTES[t] if i == k else t for i, t in enumerate(types)]) for k in order]
    most = [max((speed(i) for i in _taking(offered, way.kernel, wanted, result)), default=0.0) for _, wanted in tries]
    least = max(speed(own), 0.0 if added else max(speed(i) for i in [own, *_taking(offered, way.kernel, types, result)]))
    if max(most) < SOONER * least:
        raise StepRefused
    turned, _ = tries[most.index(max(most))]
    if turned is not None:
        way.take(Rebase(), Site.of(statement=sources[turned][1]), late=True)
    _expand(way)
    fusion, folds = Fusion(), {f.law: f for f in FOLDS}
    with way.attempt():  # what was added first begins the sum
        y = way.kernel.statements[way.at].dest.buffer
        for site in (x for x in fusion.sites(way.kernel) if way.kernel.statements[x["second"]].dest.buffer == y):
            way.take(fusion, site, late=True)
            break
        fold = folds["fold-zero-added"]
        for site in (x for x in fold.sites(way.kernel) if way.kernel.statements[x["statement"]].dest.buffer == y):
            way.take(fold, site, late=True)
            break


def _expand(way: Way) -> None:
    """Takes what is the same in every step out of the sum, of one factor after the other."""
    from isam.compiler.offers.way import StepRefused
    from isam.transforms.values.expand import Expand

    law, before = Expand(), len(way.steps)
    while site := next((x for x in law.sites(way.kernel) if x["sum"] == way.at), None):
        way.take(law, site, late=True)
    if len(way.steps) == before:
        raise StepRefused


def _bytes(kernel: Kernel, n: int) -> list[tuple[str, int, bool]]:
    """The bytes that the factors of a sum are widened from: the buffer, the statement that widens it, and whether
    something is added to it that is the same in every step of the sum; none where a factor is something else."""
    from isam.transforms.edit import made_by
    from isam.transforms.factor import product_of

    out: list[tuple[str, int, bool]] = []
    for m in product_of(kernel, n):
        for x in kernel.statements[m].sources:
            at, more = made_by(kernel, m, x), False
            if at and kernel.statements[at[0]].op in ("add", "sub"):
                made = (made_by(kernel, at[0], y) for y in kernel.statements[at[0]].sources)
                at, more = next((f for f in made if f and _of_byte(kernel, f[0])), ()), True
            if at and (name := _of_byte(kernel, at[0])):
                out.append((name, at[0], more))
    return out


def _of_byte(kernel: Kernel, i: int) -> str:
    """The buffer of bytes of which a statement is a cast; '' where it is none."""
    s = kernel.statements[i]
    x = s.sources[0]
    fits = s.op == "cast" and isinstance(x, Access) and kernel.buffer(x.buffer).dtype in BYTES
    return x.buffer if fits and isinstance(x, Access) else ""


def _taking(offered: Sequence[Instruction], kernel: Kernel, factors: Sequence[str], result: str) -> Iterator[Instruction]:
    """The instructions that sum products of such factors."""
    types = [*((("in", t) for t in factors)), ("inout", result)]
    if isinstance(offered, Some):
        offered = offered.that_may_fit(frozenset((*factors, result)), frozenset(SUM))
    for i in offered:
        does = {op for op, _, _ in i.signature}
        if does == SUM and i.takes <= kernel.permits and sorted((b.role, b.dtype) for b in i.body.arguments) == sorted(types):
            yield i
