"""Instructions that do far more in a cycle than those of a cover, and fit after some steps: tiles beside vectors.

The search for covers ends where a kernel is carried out as it stands. An instruction that takes its operands in groups
needs an axis cut first, and a factor laid out in groups; whether that pays, schedules tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Kernel
from isam.ir.mapping import Cover
from isam.mapper.filters import present
from isam.mapper.pricing import Pricing

if TYPE_CHECKING:
    from isam.compiler.way import Way
    from isam.mapper.space import Step

TIMES = 10.0  # so many times the points in a cycle are looked for
TRIED = 2  # instructions
LARGE = 1 / 8  # of the points of the largest sum: others that are to be taken more quickly, too


def quicker(kernel: Kernel, cover: Cover, offered: Sequence[Instruction],
            across: Mapping[str, int]) -> Iterator[tuple[Step, ...]]:  # fmt: skip
    """Steps after which such instructions carry out the large sums; what the judge of rewritings cannot decide is not
    offered. ``across``: per buffer into which others are summed across lanes, how many these are."""
    if cover.steps:
        return
    sums = [(m, n) for m in cover.mappings for n in m.statements[-1:] if kernel.statements[n].accumulate]
    trips = Pricing(kernel).trips
    points = {n: trips[n] * prod(max(1, a.extent.const) for a in kernel.statements[n].domain.axes) for _, n in sums}
    way: Way | None = None
    for m, n in sorted(sums, key=lambda pair: -points[pair[1]]):
        if points[n] < LARGE * max(points.values()):
            break
        able = _quick(m.instruction, offered, kernel)
        if able:
            from isam.compiler.way import Way

            way = way or Way(kernel, 0)
            _onto(way, kernel, able, n, m.statements)
    if way is not None and way.steps:
        from isam.compiler.partial import in_lanes
        yield (*way.steps, *in_lanes(way.kernel, {b: 2*n for b, n in across.items()}))


def _quick(instruction: Instruction, offered: Sequence[Instruction], kernel: Kernel) -> list[Instruction]:
    """The instructions that may do the same sum far more quickly, the quickest first."""
    own = rate(instruction)
    if own < 1.0:  # a scalar: what vectors could not take, fits nothing larger
        return []
    types = _types(instruction)
    able = [i for i in present(offered, kernel) if rate(i) >= TIMES * own and _types(i) == types]
    return sorted(able, key=rate, reverse=True)[:TRIED]


def _onto(way: Way, kernel: Kernel, able: Sequence[Instruction], statement: int, region: Sequence[int]) -> None:
    """Goes on to where one of the instructions carries out a sum; nowhere, where none can. ``statement``: the sum in
    the kernel that the way began with, ``region``: what belongs to it there."""
    from isam.compiler.way import Refused

    found = [f for i in able for f in _laid_out(way.kernel, i, way.now((statement,))[0], way.now(region))]
    begin = way.state()
    for _, steps in sorted(found, key=lambda f: f[0]):
        try:
            for s in steps:
                way.take(s.transform, s.site)
            return
        except Refused:
            way.back_to(begin)
    if way.steps:
        return  # what else is searched for is found for the kernel as it was
    from isam.mapper.search import reach

    reached = [r.paths[0] for i in able if (r := reach(kernel, i, statement=statement)).paths and r.paths[0].steps]
    try:
        for s in min(reached, key=lambda p: p.price).steps if reached else ():
            way.take(s.transform, s.site)
    except Refused:
        way.back_to(begin)


def _laid_out(kernel: Kernel, instruction: Instruction, at: int,
              region: Sequence[int]) -> Iterator[tuple[tuple[float, float], tuple[Step, ...]]]:  # fmt: skip
    """Ways to what an instruction takes that sums over neighbours in groups, with the prices of its calls then: an axis
    of the sum is cut into as many, and a dimension of one operand. The axis is cut in no statement besides ``region``:
    what makes an operand, or goes on with the result, keeps its axes."""
    from isam.mapper.match import match
    from isam.mapper.space import Step
    from isam.transforms.law import Site
    from isam.transforms.structure.axes import SplitAxis
    from isam.transforms.structure.dimensions import SplitDimension, divides

    summed = {a for x in instruction.body.statements if x.accumulate for a in x.reduces}
    s, sizes = kernel.statements[at], {n for a, n in instruction.fixed if a in summed}
    for axis, size in ((a, n) for a in reversed(s.reduces) for n in sizes if divides(n, s.domain.extent(a))):
        mine = tuple(i for i in region if axis in kernel.statements[i].domain.names)
        cut = Step(SplitAxis((size,)), Site.of(axis=axis, statements=mine, factor=size), None)
        changed = cut.transform.apply(kernel, cut.site).kernel
        read = dict.fromkeys(x.buffer for i in region for x in changed.statements[i].sources if isinstance(x, Access))
        law = SplitDimension((size,))
        for site in (x for x in law.sites(changed) if x["buffer"] in read):
            rewrite = law.apply(changed, site)
            there = [n for n, old in enumerate(rewrite.back.statements) if set(old) & set(region)]
            found = match(rewrite.kernel, instruction, strided=True, normalise=False, region=there)
            if found:
                price = min(Pricing(rewrite.kernel).candidate(m).price for m in found)
                yield price, (cut, Step(law, site, None))


def rate(i: Instruction) -> float:
    """Points of the sum that the instruction takes in a cycle at most; 0 where it has none."""
    s = next((s for s in i.body.statements if s.accumulate), None)
    return 0.0 if s is None else prod(i.span(a).most or 1 for a in s.domain.names) / (1.0 + (i.cost.issue or 0.0))


def _types(i: Instruction) -> list[tuple[str, str]]:
    return sorted((b.role, b.dtype) for b in i.body.arguments)
