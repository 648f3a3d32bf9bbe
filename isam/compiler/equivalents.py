"""Equivalent kernels that may be scheduled too, and compared by the time that their schedules take (`variants.py`).

What a step of a recurrent loop does not need of the step before may be done for all steps at once before the loop: an
input projection becomes one large product. Whether that pays depends on what else competes for room and bandwidth,
which only schedules tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING

from isam.compiler.again import made_again
from isam.compiler.lying import longest_last
from isam.compiler.quicker import quicker
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Kernel, recurrences
from isam.ir.mapping import Cover
from isam.scheduler.plans.traffic import caches

if TYPE_CHECKING:
    from isam.mapper.space import Step
    from isam.system.graph import System
    from isam.transforms.law import Site
    from isam.transforms.statements import Hoist

EMPTY = 1.125  # steps of a sum that calls take of each that there is, from which on longer rows are tried
AT_ONCE = 32  # steps of a run-time number of them for which sums are taken out of a loop together


def equivalents(kernel: Kernel, cover: Cover, system: System,
                offered: Sequence[Instruction]) -> Iterator[tuple[Step, ...]]:  # fmt: skip
    """Steps to equivalent kernels that may take less time than the one that is covered; ``offered``: what it was to be
    covered by."""
    if ahead := taken_out(kernel, system):
        yield ahead
    if not cover.steps and (ahead := made_once(kernel)):
        yield ahead
    if not cover.steps and (ahead := speculated(kernel)):
        yield ahead
    if ahead := longest_last(kernel, cover):
        yield ahead
    sums = across_lanes(cover)
    yield from quicker(kernel, cover, offered, sums)
    for at, outer, inner in unfilled(kernel, cover):
        from isam.compiler.longer import longer_row

        if ahead := longer_row(kernel, at, outer, inner):
            yield ahead
    if sums:
        from isam.compiler.partial import in_lanes

        if ahead := in_lanes(kernel, sums, max(caches(system), default=0)):
            yield ahead
    if not cover.steps and (ahead := made_again(kernel, cover, sums, system)):
        yield ahead
    if any(system.spread(m.instruction.name)[1] > 1 for m in cover.mappings):
        from isam.compiler.splits import split_sums

        yield from split_sums(kernel, cover, system)


def made_once(kernel: Kernel) -> tuple[Step, ...]:
    """What is the same along a dimension of a temporary, and was typed as if it were not, is made once. What the judge
    of rewritings cannot decide stays."""
    if not any(_typed_wide(kernel, b.name) for b in kernel.buffers if b.role == "temp"):
        return ()
    from isam.compiler.way import StepRefused, Way
    from isam.transforms.narrow import Narrow

    law, way = Narrow(), Way(kernel, 0)
    while sites := law.sites(way.kernel):
        try:
            way.take(law, sites[0])
        except StepRefused:
            break
    return way.steps


def speculated(kernel: Kernel) -> tuple[Step, ...]:
    """Temporaries that are made at the points of some condition only are made at all of a box: more work, in calls as
    large as they may be."""
    temps = {b.name for b in kernel.buffers if b.role == "temp"}
    some = [n for n, s in enumerate(kernel.statements) if s.domain.where and s.dest.buffer in temps]
    if not some:
        return ()
    from isam.compiler.way import StepRefused, Way
    from isam.transforms.law import Site
    from isam.transforms.structure.speculate import Speculate

    law, way = Speculate(), Way(kernel, 0)
    for n in some:
        with suppress(StepRefused):
            way.take(law, Site.of(statement=n))
    return way.steps


def _typed_wide(kernel: Kernel, name: str) -> bool:
    """Whether all that is written to a temporary is without an axis that it is written along."""
    free = [_axes(s.dest) - set[str]().union(*(_axes(x) for x in s.sources if isinstance(x, Access)))
            for s in kernel.statements if s.dest.buffer == name]  # fmt: skip
    return bool(free) and all(free)


def _axes(x: Access) -> set[str]:
    return {n for row in x.index for n in row.names}


def unfilled(kernel: Kernel, cover: Cover) -> Iterator[tuple[int, str, str]]:
    """Sums of which an instruction takes several steps at once, and whose inner axis leaves some of them empty: the
    statement, the axis around that one, and that one."""
    for m in () if cover.steps else cover.mappings:
        s = kernel.statements[m.statements[-1]]
        taken = {k: m.instruction.span(i).most for i, k in m.axes}
        for outer, inner in pairwise(s.reduces):
            most, extent = taken.get(inner), s.domain.extent(inner)
            if outer in taken or not most or not extent.is_constant:
                continue
            if ceil(extent.const / most) * most >= EMPTY * extent.const:
                yield m.statements[-1], outer, inner


def across_lanes(cover: Cover) -> dict[str, int]:
    """Per buffer that an instruction sums into, all lanes into one number, how many lanes that are."""
    out: dict[str, int] = {}
    for m in cover.mappings:
        s = next((s for s in m.instruction.body.statements if s.accumulate and s.reduces), None)
        if s is not None and not any(row.names for row in s.dest.index) and len(s.reduces) == 1:
            most = m.instruction.span(s.reduces[0]).most
            if most and most > 1:
                into = next(o.buffer for o in m.operands if o.operand == s.dest.buffer)
                out[into] = most
    return out


def taken_out(kernel: Kernel, system: System) -> tuple[Step, ...]:
    """What takes sums out of a recurrent loop, where that may pay: on machines with a memory that is filled ahead.
    Where the number of steps is known at run time only, so many at a time. What the judge of rewritings cannot decide
    is not offered."""
    near = any(m.cells is None and not m.home and m.kind == "managed" for m in system.memories.values())
    return _out_of_loops(kernel) if near and any(True for _ in recurrences(kernel.body)) else ()


@lru_cache(maxsize=16)
def _out_of_loops(kernel: Kernel) -> tuple[Step, ...]:
    """Whatever the machine; judged once for a kernel that is compiled for several, or again and again to be tuned."""
    from isam.mapper.space import Step
    from isam.proof.equivalence import Equivalence
    from isam.transforms.statements import Hoist, Parts

    parts, hoist, judge = Parts((AT_ONCE,)), Hoist(), Equivalence()
    steps = [Step(parts, site, None) for site in parts.sites(kernel)[:1]]
    kernels = [kernel, *(parts.apply(kernel, s.site).kernel for s in steps)]
    sums = _sums_in_loops(hoist, kernels[-1])
    if not sums:
        return ()
    steps.append(Step(hoist, sums[0], None))
    kernels.append(hoist.apply(kernels[-1], sums[0]).kernel)
    return tuple(steps) if all(judge.judge(a, b) for a, b in pairwise(kernels)) else ()


def _sums_in_loops(hoist: Hoist, kernel: Kernel) -> list[Site]:
    """Where sums may leave loops whose number of steps is known, the fewest statements first."""
    trips = [r.axis.extent for r in recurrences(kernel.body)]
    able = [s for s in hoist.sites(kernel) if any(kernel.statements[i].reduces for i in s["statements"])
            and trips[s["loop"]].is_constant and trips[s["loop"]].const > 1]  # fmt: skip
    return sorted(able, key=lambda s: len(s["statements"]))
