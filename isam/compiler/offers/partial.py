"""Sums that an instruction makes across the lanes of a vector, as partial sums in lanes (split reductions).

Adding up the lanes of a vector takes several times as long as adding one vector to another. Where the kernel lets sums
be taken in another order, as many partial results as there are lanes are summed side by side, and added up once, at the
end. What is left over where an axis does not divide into vectors is summed ahead, across lanes. Whether that pays, only
schedules tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from isam.caches import PERIOD
from isam.compiler.offers.subject import one
from isam.compiler.offers.way import StepRefused, Way
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.ir.kernel import Access, Kernel, Recurrence, Statement
from isam.transforms.edit import readers
from isam.transforms.law import Site
from isam.transforms.structure.inplace import InPlace
from isam.transforms.structure.peel import PeelSum
from isam.transforms.values.nest import NEST_SUMS, NestSum

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject

SIDE_BY_SIDE = 8  # additions that a unit has under way: fewer sums than that become longer vectors
ALONE = 2  # times the lanes of a vector where rows come one after the other (measured)
LONG = 8  # vectors of that many lanes that such a row has at least (measured)


@one
def partial(of: Subject) -> Steps:
    """Steps that make partial results of what is summed across lanes."""
    return in_lanes(of)


def in_lanes(of: Subject, wider: int = 1) -> Steps:
    """Steps that make partial results of what an instruction sums across lanes, as many as there are lanes, or
    ``wider``, a multiple of that, wherever a sum goes. What the judge of rewritings cannot decide is not offered; nor
    anything for sizes known at run time: no schedule can be timed then."""
    kernel, cache = of.kernel, of.last_cache if wider == 1 else 0
    if kernel.syms or any(isinstance(i, Recurrence) for i in kernel.body):
        return ()
    way = Way(kernel, 0)
    _in_place(way)
    before = way.steps
    found = of.sums.items()
    for lanes, n in ((wider * m, n) for b, m in found for n, s in enumerate(kernel.statements) if s.dest.buffer == b):
        for at, law, axis, part in _sums(way.kernel, way.now((n,)), lanes, cache):
            further = replace(way, at=at)
            try:
                _in_parts(further, law, axis, part)
            except StepRefused:
                continue
            way = further
            break
    return () if way.steps == before else way.steps


def _in_place(way: Way) -> None:
    """What is summed and becomes the result afterwards, element by element, lies where the result will: a row of it is
    brought once."""
    law = InPlace()
    for site in law.sites(way.kernel):
        if any(way.kernel.statements[n].reduces for n in readers(way.kernel, site["buffer"])):
            with suppress(StepRefused):
                way.take(law, site)
            return


def _in_parts(way: Way, law: NestSum, axis: str, part: int) -> None:
    """The sum gets ``part`` partial results; of an axis that divides into so many, what it sums is laid out as it is
    read."""
    extent = way.kernel.statements[way.at].domain.extent(axis).const
    left = extent % part
    flat = left and _counted_with_others(way, axis)
    if left:
        cut = Affine.of(axis, -1) + (extent - left - 1)
        group = (way.at,) if flat else way.group(axis)
        way.take(PeelSum(), Site.of(statements=group, cut=cut, late=True), late=True)
    way.take(law, Site.of(sum=way.at, kept=axis, factor=0 if extent - left == part else part))
    if not flat:
        way.split_temporaries(part)


def _counted_with_others(way: Way, axis: str) -> bool:
    """Whether a row of what is written along the axis counts it with others: with their ends made on their own, rows
    no longer lie side by side when they are made, and what lies where is no box, which proofs would need."""
    rows = (row for n in way.group(axis) for row in way.kernel.statements[n].dest.index)
    return any(axis in row.names and len(row.names) > 1 for row in rows)


def _sums(kernel: Kernel, among: Sequence[int], lanes: int, cache: int) -> Iterator[tuple[int, NestSum, str, int]]:
    """Those of some statements that are sums, each with the law of its operation, an axis, the last one first, and how
    many partial results that may have: numbers that divide it first."""
    for at, s in ((n, kernel.statements[n]) for n in among):
        law = next((law for law in NEST_SUMS if s.op in law.ops), None)
        if not (s.accumulate and s.reduces) or law is None:
            continue
        extents = {a.name: a.extent.const for a in s.domain.axes}
        beside = prod(n for name, n in extents.items() if name not in s.reduces)
        parts = dict.fromkeys((lanes * max(1, SIDE_BY_SIDE // max(1, beside)), lanes))
        for axis in reversed(s.reduces):
            if cache and extents[axis] >= LONG * ALONE * lanes and one_by_one(kernel, s, cache):
                parts = dict.fromkeys((ALONE * lanes, lanes))
            for part in sorted(parts, key=lambda n: extents[axis] % n > 0):
                if extents[axis] // part > (1 if len(s.reduces) == 1 else 0):
                    yield at, law, axis, part


def one_by_one(kernel: Kernel, s: Statement, cache: int) -> bool:
    """Whether a sum goes over rows as short and as many as some argument has that is gone through several times and of
    which the last cache does not hold half: they are taken one after the other
    (``isam.scheduler.plans.conflicts.short_rows``)."""
    shapes = {b.shape for b in kernel.arguments
              if len(b.shape) > 1 and (b.bytes or 0) > cache // 2 and len(readers(kernel, b.name)) > 1
              and size_of(b.dtype) * b.shape[-1].const <= PERIOD}  # fmt: skip
    return any(kernel.buffer(x.buffer).shape in shapes for x in s.sources if isinstance(x, Access))
