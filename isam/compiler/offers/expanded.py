"""Products of bytes for instructions that take them with a sign on one side only, or without what is added to a factor.

``sum a * w`` of two bytes with a sign is ``sum (a + 128) * w - 128 * sum w``: the first factor has no sign any more,
and where ``w`` is constant, the second sum is made once, when it is bound. So it is with zero points: what is added to
a factor and is the same in every step of a sum leaves it. Whether that pays, schedules tell.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.ir.dataflow import determined
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Kernel
from isam.ir.table import Some

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject
    from isam.compiler.offers.way import Way

BYTES = {"i8": "u8", "u8": "i8"}
SUM = {"cast", "mul", "add"}  # what an instruction for products of bytes does
SOONER = 5 / 4  # times the points in a cycle, from which on such an instruction is tried


def expanded(of: Subject) -> Iterator[Steps]:
    """Steps after which every sum that would be sooner done by such an instruction has the factors that it takes. What
    the judge of rewritings cannot decide is not offered."""
    from isam.compiler.offers.way import Way

    kernel, offered = of.kernel, of.offered
    way, sums = Way(kernel, 0), list[tuple[int, Instruction]]()
    for m in of.cover.mappings:
        n = m.statements[-1]
        if (s := kernel.statements[n]).accumulate and s.op == "add" and s.reduces and rate(m.instruction):
            with way.attempt():
                way.at = way.now((n,))[-1]
                _onto(way, m.instruction, offered)
                sums.append((n, m.instruction))
    if way.steps:
        yield way.steps
        if more := _further(Way(way.kernel, 0), [(way.now((n,))[-1], i) for n, i in sums], offered):
            yield (*way.steps, *more)


def _further(way: Way, sums: Sequence[tuple[int, Instruction]], offered: Sequence[Instruction]) -> Steps:
    """Steps after which instructions that do far more in a cycle, with operands laid out for them, carry the sums out.
    ``sums``: with the instructions that did before."""
    from isam.compiler.offers.quicker import TIMES, TRIED, onto, work
    from isam.transforms.edit import made_by
    from isam.transforms.factor import product_of

    kernel = way.kernel
    for n, own in sums:
        types = [kernel.buffer(f.buffer).dtype for f in narrow_factors(kernel, n)]
        found = taking(offered, kernel, types, kernel.buffer(kernel.statements[n].dest.buffer).dtype)
        able = sorted((i for i in found if work(i) >= TIMES * work(own)), key=work, reverse=True)
        if able:
            (m,) = product_of(kernel, n)
            casts = {i for x in kernel.statements[m].sources for i in made_by(kernel, m, x)}
            onto(way, able[:TRIED], n, sorted({*casts, m, n}), True)
    return way.steps


def rate(i: Instruction) -> float:
    """Points of the sum that the instruction takes in a cycle; 0 where it sums nothing, or that is not said."""
    return 0.0 if i.sum is None else i.sum.rate


def _onto(way: Way, own: Instruction, offered: Sequence[Instruction]) -> None:
    """Goes on to where the factors of the sum are bytes, of which some instruction takes more in a cycle."""
    from isam.compiler.offers.way import StepRefused
    from isam.transforms.law import Site
    from isam.transforms.values.rebase import Rebase

    kernel, found = way.kernel, narrow_factors(way.kernel, way.at)
    if len(found) < 2:
        raise StepRefused
    types, added = [kernel.buffer(f.buffer).dtype for f in found], any(f.added for f in found)
    fixed = determined(kernel) | {b.name for b in kernel.buffers if b.role == "const"}
    order = sorted((0, 1), key=lambda k: found[k].buffer in fixed)  # what is summed of the other one is made once then
    tries = [(k, [BYTES[t] if i == k else t for i, t in enumerate(types)]) for k in order]
    result = kernel.buffer(kernel.statements[way.at].dest.buffer).dtype
    asis = max((rate(i) for i in taking(offered, kernel, types, result)), default=0.0)
    rates = [max((rate(i) for i in taking(offered, kernel, t, result)), default=0.0) for _, t in tries]
    best = max(rates)
    if max(asis if added else 0.0, best) < SOONER * rate(own) or (not added and best < SOONER * asis):
        raise StepRefused
    if best >= SOONER * asis:
        way.take(Rebase(), Site.of(statement=found[tries[rates.index(best)][0]].cast), late=True)
    taken_out(way)
    apart(way)
    begun(way)


def taken_out(way: Way) -> None:
    """Takes what is the same in every step out of the sum, of one factor after the other."""
    from isam.compiler.offers.way import StepRefused
    from isam.transforms.values.expand import Expand

    law, before = Expand(), len(way.steps)
    while site := next((x for x in law.sites(way.kernel) if x["sum"] == way.at), None):
        way.take(law, site, late=True)
    if len(way.steps) == before:
        raise StepRefused


def apart(way: Way) -> None:
    """Nothing else reads what the factors are widened to."""
    from isam.transforms.edit import readers
    from isam.transforms.factor import product_of
    from isam.transforms.law import Site
    from isam.transforms.statements.duplicate import Duplicate

    for k in (0, 1):
        for m in product_of(way.kernel, way.at):
            x = way.kernel.statements[m].sources[k]
            if isinstance(x, Access) and len(readers(way.kernel, x.buffer)) > 1:
                way.take(Duplicate(), Site.of(buffer=x.buffer, readers=(m,)), late=True)


def begun(way: Way) -> None:
    """What is added to the sum first begins it, where it began with zero."""
    from isam.transforms.statements.fission import Fusion
    from isam.transforms.values.fold import FOLDS, Fold, zero_added

    fusion, y = Fusion(), way.kernel.statements[way.at].dest.buffer
    fold = next(f for f in FOLDS if isinstance(f, Fold) and f.rule is zero_added)
    with way.attempt():
        for law, key in ((fusion, "second"), (fold, "statement")):
            sites = (x for x in law.sites(way.kernel) if way.kernel.statements[x[key]].dest.buffer == y)
            if (site := next(sites, None)) is not None:
                way.take(law, site, late=True)


@dataclass(frozen=True, slots=True)
class Factor:
    """A factor of a sum: the buffer that statement ``cast`` widens, whether something is ``added`` to that."""

    buffer: str
    cast: int
    added: bool


def narrow_factors(kernel: Kernel, n: int, narrow: Container[str] = BYTES) -> list[Factor]:
    """The factors of a sum of products that are bytes, or numbers of other dtypes."""
    from isam.transforms.edit import made_by
    from isam.transforms.factor import product_of

    out: list[Factor] = []
    for m in product_of(kernel, n):
        for x in kernel.statements[m].sources:
            at, added = made_by(kernel, m, x), False
            if at and kernel.statements[at[0]].op in ("add", "sub"):
                made = (made_by(kernel, at[0], y) for y in kernel.statements[at[0]].sources)
                at, added = next((f for f in made if f and _cast_of(kernel, f[0], narrow)), ()), True
            if at and (name := _cast_of(kernel, at[0], narrow)):
                out.append(Factor(name, at[0], added))
    return out


def _cast_of(kernel: Kernel, i: int, narrow: Container[str]) -> str:
    """The buffer of such a dtype of which a statement is a cast; '' where it is none."""
    s = kernel.statements[i]
    x = s.sources[0]
    fits = s.op == "cast" and isinstance(x, Access) and kernel.buffer(x.buffer).dtype in narrow
    return x.buffer if fits and isinstance(x, Access) else ""


def taking(
    offered: Sequence[Instruction], kernel: Kernel, factors: Sequence[str], result: str
) -> Iterator[Instruction]:
    """The instructions that sum products of such factors."""
    types = sorted([*(("in", t) for t in factors), ("inout", result)])
    if isinstance(offered, Some):
        offered = offered.that_may_fit(frozenset((*factors, result)), frozenset(SUM))
    for i in offered:
        does = {op for op, _, _ in i.signature}
        if does == SUM and i.takes <= kernel.permits and sorted((b.role, b.dtype) for b in i.body.arguments) == types:
            yield i
