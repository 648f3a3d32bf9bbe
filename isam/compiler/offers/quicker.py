"""Instructions that do far more in a cycle than those of a cover, and fit after some steps: tiles beside vectors.

The search for covers ends where a kernel is carried out as it stands. An instruction that takes its operands in groups
needs an axis cut first, and a factor laid out in groups; whether that pays, schedules tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING

from isam.ir.dtype import size_of
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Kernel
from isam.ir.mapping import Mapping as Mapped
from isam.mapper.filters import present
from isam.mapper.pricing import Pricing

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject
    from isam.compiler.offers.way import Way
    from isam.transforms.law import Site

TIMES = 10.0  # so many times the points for the price of a call are looked for
TRIED = 2  # instructions
WIDER = 2  # times the lanes in parts that sums across them are made in: neighbours that go into a group stay together
LARGE = 1 / 8  # of the points of the largest sum: others that are to be taken more quickly, too


def quicker(of: Subject) -> Iterator[Steps]:
    """Steps after which such instructions carry out the large sums, all there are and, where a sum has one axis instead
    of two that what makes its operands has, without that; what the judge of rewritings cannot decide is not offered."""
    kernel = of.kernel
    sums = [(m, n) for m in of.cover.mappings for n in m.statements[-1:]
            if kernel.statements[n].accumulate and kernel.statements[n].reduces]  # fmt: skip
    trips = Pricing(kernel).trips
    points = {n: trips[n] * prod(max(1, a.extent.const) for a in kernel.statements[n].domain.axes) for _, n in sums}
    large = LARGE * max(points.values(), default=0)
    able = list[tuple[int, tuple[int, ...], list[Instruction]]]()
    for m, n in sorted((pair for pair in sums if points[pair[1]] >= large), key=lambda pair: -points[pair[1]]):
        region, before = widened_ahead(kernel, m)
        if found := _quick(m.instruction, before, of.offered, kernel):
            able.append((n, region, found))
    if not able:
        return
    from isam.compiler.offers.partial import in_lanes
    from isam.compiler.offers.way import Way

    for part in (True, False):
        way = Way(kernel, 0)
        parted = [onto(way, found, n, region, part) for n, region, found in able]
        if way.steps:
            yield (*way.steps, *in_lanes(of.rewritten(way.kernel), WIDER))
        if not any(parted):
            break


def _quick(instruction: Instruction, before: Mapping[str, str], offered: Sequence[Instruction],
           kernel: Kernel) -> list[Instruction]:  # fmt: skip
    """The instructions that may do the same sum far more quickly, the quickest first; ``before``: what types operands
    were widened from."""
    own = work(instruction)
    if own < 1.0:  # a scalar: what vectors could not take, fits nothing larger
        return []
    types = _types(instruction, before)
    able = [i for i in present(offered, kernel) if work(i) >= TIMES * own and _types(i) == types]
    return sorted(able, key=work, reverse=True)[:TRIED]


def widened_ahead(kernel: Kernel, mapping: Mapped) -> tuple[tuple[int, ...], dict[str, str]]:
    """The statements of a sum with those that do nothing but widen an operand for it, which another instruction may do
    by itself; of these operands the types before."""
    from isam.transforms.edit import made_by

    region, before = set(mapping.statements), dict[str, str]()
    operands = {o.buffer: o.operand for o in mapping.operands if o.buffer}
    for j in mapping.statements:
        for x in kernel.statements[j].reads:
            at = made_by(kernel, j, x)
            s = kernel.statements[at[0]] if at and x.buffer in operands and at[0] not in mapping.statements else None
            if s is None or s.op != "cast" or not region.issuperset(kernel.readers[x.buffer]):
                continue
            narrow = kernel.buffer(s.reads[0].buffer).dtype
            if size_of(narrow) < size_of(kernel.buffer(x.buffer).dtype):
                region.add(at[0])
                before[operands[x.buffer]] = narrow
    return tuple(sorted(region)), before


def onto(way: Way, able: Sequence[Instruction], statement: int, region: Sequence[int], part: bool) -> bool:
    """Goes on to where one of the instructions carries out a sum; nowhere, where none can. ``statement``: the sum in
    the kernel that the way began with, ``region``: what belongs to it there; ``part``: as for :func:`fill`. Whether a
    part of the kernel has one axis there where another has two."""
    from isam.compiler.offers.fuller import fill
    from isam.compiler.offers.way import StepRefused

    with way.attempt():
        way.at = way.now((statement,))[0]
        form = able[0].sum
        assert form is not None
        parted = fill(way, form, statement, region, part)
        found = [f for i in able for f in _laid_out(way.kernel, i, way.at, way.now(region))]
        for _, steps in sorted(found, key=lambda f: f[0]):
            with way.attempt():
                for s in steps:
                    way.take(s.transform, s.site)
                return parted
        raise StepRefused
    return False


def _laid_out(kernel: Kernel, instruction: Instruction, at: int,
              region: Sequence[int]) -> Iterator[tuple[tuple[float, float], Steps]]:  # fmt: skip
    """Ways to what an instruction takes that sums over neighbours in groups, with the prices of its calls then: an axis
    of the sum is cut into as many, and a dimension of one operand. The axis is cut in no statement besides ``region``:
    what makes an operand, or goes on with the result, keeps its axes."""
    from isam.compiler.offers.longer import seen
    from isam.mapper.match import Matches, match
    from isam.mapper.space import Step
    from isam.transforms.law import Site, taken
    from isam.transforms.structure.axes import SplitAxis
    from isam.transforms.structure.dimensions import SplitDimension, divides
    from isam.transforms.structure.unfold import Unfold

    s, size = kernel.statements[at], instruction.sum.group if instruction.sum else 1
    for axis in (a for a in reversed(s.reduces) if size > 1 and divides(size, s.domain.extent(a))):
        mine = tuple(i for i in region if axis in kernel.statements[i].domain.names)
        cut = Step(SplitAxis((size,)), Site.of(axis=axis, statements=mine, factor=size), None)
        changed = taken(cut.transform, kernel, cut.site).kernel
        read = dict.fromkeys(x.buffer for i in region for x in changed.statements[i].sources if isinstance(x, Access))
        parted = [x for x in SplitDimension((size,)).sites(changed) if x["buffer"] in read]
        other = [x for x in Unfold().sites(changed) if x["statement"] in region]  # a copy, where what is there stays
        other = [x for x in other if _source(changed, x) not in {y["buffer"] for y in parted}]
        parted = [seen(changed, x) for x in parted]
        ways = [Step(SplitDimension((size,)), x, None) for x in parted] + [Step(Unfold(), x, None) for x in other]
        for way in ways:
            rewrite = taken(way.transform, changed, way.site)
            there = [n for n, old in enumerate(rewrite.back.statements) if set(old) & set(region)]
            found = match(rewrite.kernel, instruction, strided=True, normalise=False, region=there, why=False)
            if isinstance(found, Matches):
                yield min(Pricing(rewrite.kernel).candidate(m).price for m in found), (cut, way)


def _source(kernel: Kernel, site: Site) -> str:
    """The buffer that a site names by its statement and source."""
    source = kernel.statements[site["statement"]].sources[site["source"]]
    return source.buffer if isinstance(source, Access) else ""


def work(i: Instruction) -> float:
    """Points of the sum that the instruction takes for the price of a call; 0 where it has none."""
    return 0.0 if i.sum is None else i.sum.work


def _types(i: Instruction, before: Mapping[str, str] = MappingProxyType({})) -> list[tuple[str, str]]:
    """Roles and types of its operands; of some those ``before`` they were widened."""
    return sorted((b.role, before.get(b.name, b.dtype)) for b in i.body.arguments)
