"""Instructions that do far more in a cycle than those of a cover, and fit after some steps: tiles beside vectors.

The search for covers ends where a kernel is carried out as it stands. An instruction that takes its operands in groups
needs an axis cut first, and a factor laid out in groups; whether that pays, schedules tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.mapper.filters import present
from isam.mapper.pricing import Pricing

if TYPE_CHECKING:
    from isam.compiler.way import Way
    from isam.mapper.space import Step
    from isam.transforms.law import Site

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
    from isam.mapper.search import reach

    found = [(r.paths[0], i) for i in able if (r := reach(kernel, i, statement=statement)).paths and r.paths[0].steps]
    if found:
        path, instruction = min(found, key=lambda f: f[0].price)
        begin = way.state()
        for mine in (region, ()):
            if _taken(way, path.steps, mine, instruction):
                return
            way.back_to(begin)


def _taken(way: Way, steps: Sequence[Step], region: Sequence[int], instruction: Instruction) -> bool:
    """Takes steps found for the kernel that the way began with, all of them or says no. ``region``: statements, besides
    which no axis is cut: what makes an operand, or goes on with the result, keeps its axes; empty: as the steps say,
    where the way begins with them."""
    from isam.compiler.way import Refused
    from isam.mapper.match import match

    if not region and way.steps:
        return False
    for n, step in enumerate(steps):
        site = _confined(way, step, region) if region and n == 0 else step.site
        if site is None or (n and {"statement", "statements"} & dict(site.at).keys()):
            return False  # numbers of another kernel
        try:
            way.take(step.transform, site)
        except Refused:
            return False
    return not region or bool(match(way.kernel, instruction, region=way.now(region)))


def _confined(way: Way, step: Step, region: Sequence[int]) -> Site | None:
    """Where an axis is cut, if in no statement besides those of a region; None: another kind of step."""
    from isam.transforms.law import Site
    from isam.transforms.structure.axes import SplitAxis

    if not isinstance(step.transform, SplitAxis):
        return None
    mine = way.now(set(step.site["statements"]) & set(region))
    return Site.of(**dict(step.site.at) | {"statements": mine})


def rate(i: Instruction) -> float:
    """Points of the sum that the instruction takes in a cycle at most; 0 where it has none."""
    s = next((s for s in i.body.statements if s.accumulate), None)
    return 0.0 if s is None else prod(i.span(a).most or 1 for a in s.domain.names) / (1.0 + (i.cost.issue or 0.0))


def _types(i: Instruction) -> list[tuple[str, str]]:
    return sorted((b.role, b.dtype) for b in i.body.arguments)
