"""Sums cut into parts that the groups of a machine make side by side (split reductions).

A product of few elements and long sums leaves most of a machine idle: its blocks are fewer than the units. Where the
kernel lets sums be taken in another order, parts of a sum become partial results in main memory, added up afterwards.
Whether that pays depends on what the partial results cost on their way, which only schedules tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, prod

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel, Recurrence, Statement
from isam.ir.mapping import Cover, Mapping
from isam.mapper.pricing import Pricing
from isam.mapper.space import Step
from isam.proof.equivalence import equivalent
from isam.system.graph import System
from isam.transforms.law import Site, Transform, dtypes_at, granted
from isam.transforms.structure.axes import SplitAxis, joined
from isam.transforms.structure.dimensions import PermuteDimensions, SplitDimension
from isam.transforms.structure.peel import PeelSum
from isam.transforms.values.nest import NESTS

WORTH = 0.9  # of the rounds of calls that the undivided sum takes; above that no schedule is made


@dataclass(frozen=True)
class Work:
    """Of one mapping that sums: how many ``blocks`` of results its calls make, over how many ``points`` in all, how
    much of a summed axis a call takes (``step``)."""

    mapping: Mapping
    blocks: int
    points: int
    step: int


def split_sums(kernel: Kernel, cover: Cover, system: System) -> Iterator[tuple[Step, ...]]:
    """Steps that divide the largest sum of ``kernel``, where the calls of ``cover`` then take fewer rounds on the units
    of the machine. What the judge of rewritings cannot decide is not offered."""
    sums = [n for n, s in enumerate(kernel.statements) if s.accumulate and s.reduces and _fixed(s)]
    works = [w for m in cover.mappings if (w := _work(cover.kernel, m)) is not None]
    if not sums or not works or any(isinstance(i, Recurrence) for i in kernel.body):
        return
    at = max(sums, key=lambda n: _points(kernel.statements[n]))
    s, work = kernel.statements[at], max(works, key=lambda w: w.points)
    axis = max(s.reduces, key=lambda n: s.domain.extent(n).const)
    groups, units = system.spread(work.mapping.instruction.name)
    extent = s.domain.extent(axis).const
    for most in dict.fromkeys((ceil(groups / work.blocks), groups)):
        most = min(most, extent // (2 * work.step))
        if most > 1 and _rounds(work.blocks, most, units) < WORTH * _rounds(work.blocks, 1, units):
            lengths = (_length(extent, n, work.step) for n in range(most, most // 2, -1))
            steps = tuple(_steps(kernel, at, axis, min(lengths, key=lambda n: _calls(extent, n, work.step))))
            if _sound(kernel, steps):
                yield steps


def _length(extent: int, parts: int, step: int) -> int:
    """How long each of so many parts is: as even as whole calls are, unless all parts are the same."""
    return extent // parts if extent % parts == 0 else extent // parts // step * step


def _calls(extent: int, length: int, step: int) -> int:
    """Calls of the longest chain: those of a part, and those of what is left over."""
    return ceil(length / step) + ceil(extent % length / step)


def _rounds(blocks: int, parts: int, units: int) -> float:
    """How often all units are called, in times of an undivided sum."""
    return ceil(blocks * parts / units) / parts


def _fixed(s: Statement) -> bool:
    return all(a.extent.is_constant for a in s.domain.axes)


def _points(s: Statement) -> int:
    return prod(a.extent.const for a in s.domain.axes)


def _work(kernel: Kernel, m: Mapping) -> Work | None:
    s = max((kernel.statements[i] for i in m.statements), key=lambda s: (s.accumulate and bool(s.reduces)))
    if not s.accumulate or not s.reduces or not _fixed(s):
        return None
    tile = Pricing(kernel).tile(m)
    blocks = prod(ceil(a.extent.const / max(1, tile.get(a.name, 1))) for a in s.domain.axes if a.name not in s.reduces)
    return Work(m, blocks, _points(s), max(tile.get(n, 1) for n in s.reduces))


def _steps(kernel: Kernel, at: int, axis: str, length: int) -> Iterator[Step]:
    """Parts of ``length`` become partial results; what is left over is summed as before, ahead of them."""
    extent = kernel.statements[at].domain.extent(axis).const
    whole = extent // length * length
    if whole < extent:
        group = next(g for g in joined(kernel, axis) if at in g)
        cut = Affine.of(axis, -1) + (whole - 1)
        step = Step(PeelSum(), Site.of(statements=group, cut=cut, late=True), None)
        kernel, at = _taken(kernel, step, at, late=True)
        yield step
    group = next(g for g in joined(kernel, axis) if at in g)
    step = Step(SplitAxis((length,)), Site.of(axis=axis, statements=group, factor=length), None)
    names = set(kernel.statements[at].domain.names)
    kernel, at = _taken(kernel, step, at)
    yield step
    outer = next(n for n in kernel.statements[at].domain.names if n not in names)
    law = SplitDimension((length,))
    while site := next((x for x in law.sites(kernel) if kernel.buffer(x["buffer"]).role == "temp"), None):
        step = Step(law, site, None)
        kernel, at = _taken(kernel, step, at)
        yield step
    law = next(law for law in NESTS if kernel.statements[at].op in law.ops)
    step = Step(law, Site.of(sum=at, kept=outer, factor=0), None)
    known = {b.name for b in kernel.buffers}
    kernel, at = _taken(kernel, step, at)
    yield step
    made = next(b for b in kernel.buffers if b.name not in known)
    index = next(x.dest.index for x in kernel.statements if x.dest.buffer == made.name)
    for d in reversed(range(index.index(Affine.of(outer)))):  # a part's results lie together
        yield Step(PermuteDimensions(), Site.of(buffer=made.name, dim=d), None)


def _taken(kernel: Kernel, step: Step, at: int, *, late: bool = False) -> tuple[Kernel, int]:
    """The kernel after a step, and where the first (``late``: the last) of what a statement became stands."""
    rewrite = step.transform.apply(kernel, step.site)
    places = [n for n, old in enumerate(rewrite.back.statements) if at in old]
    return rewrite.kernel, places[-1 if late else 0]


def _sound(kernel: Kernel, steps: tuple[Step, ...]) -> bool:
    """Whether the user grants what the steps need, and the judge of rewritings follows each."""
    for step in steps:
        law: Transform = step.transform
        if not granted(kernel, law.needs, dtypes_at(kernel, step.site)):
            return False
        after = law.apply(kernel, step.site).kernel
        if not equivalent(kernel, after):
            return False
        kernel = after
    return True
