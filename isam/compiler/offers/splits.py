"""Sums cut into parts that the groups of a machine make side by side (split reductions).

A product of few elements and long sums leaves most of a machine idle: its blocks are fewer than the units. Where the
kernel lets sums be taken in another order, parts of a sum become partial results in main memory, added up afterwards.
Whether that pays depends on what the partial results cost on their way, which only schedules tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, prod
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.compiler.offers.way import StepRefused, Way
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel, Recurrence, Statement
from isam.ir.mapping import Mapping
from isam.mapper.pricing import Pricing
from isam.system.busy import idle, rounds
from isam.transforms.law import Site
from isam.transforms.structure.axes import SplitAxis
from isam.transforms.structure.dimensions import PermuteDimensions
from isam.transforms.values.nest import NEST_SUMS

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject


@dataclass(frozen=True)
class Work:
    """Of one mapping that sums: how many ``blocks`` of results its calls make, over how many ``points`` in all, how
    much of an axis a call takes (``tile``)."""

    mapping: Mapping
    blocks: int
    points: int
    tile: dict[str, int]


def split_sums(of: Subject) -> Iterator[Steps]:
    """Steps that divide the largest sum, where the calls of the cover then take fewer rounds on the units
    of the machine. What the judge of rewritings cannot decide is not offered."""
    kernel, cover, system = of.kernel, of.cover, of.system
    sums = [n for n, s in enumerate(kernel.statements) if s.accumulate and s.reduces and _fixed(s)]
    pricing = Pricing(cover.kernel)
    works = [w for m in cover.mappings if (w := _work(pricing, m)) is not None]
    if not sums or not works or any(isinstance(i, Recurrence) for i in kernel.body):
        return
    at = max(sums, key=lambda n: _points(kernel.statements[n]))
    own = [] if cover.steps else [w for w in works if at in w.mapping.statements]
    s, work = kernel.statements[at], max(own or works, key=lambda w: w.points)
    if not work.points:
        return
    axis = max(s.reduces, key=lambda n: s.domain.extent(n).const / max(1, work.tile.get(n, 1)))
    extent, step = s.domain.extent(axis).const, max(1, work.tile.get(axis, 1))
    groups, units = system.spread(work.mapping.instruction.name)
    most = [min(n, extent // (2 * step)) for n in (ceil(groups / work.blocks), groups)]
    able = [n for n in most if n > 1 and idle(work.blocks, work.blocks * n, units)]
    for length in dict.fromkeys(_length(extent, n, step, work.blocks, units) for n in able):
        if steps := _steps(kernel, at, axis, length):
            yield steps


def _length(extent: int, most: int, step: int, blocks: int, units: int) -> int:
    """How long each of at ``most`` so many parts is, whole calls but where all parts are the same: so that the longest
    chain of calls, those of what is left over among them, is short."""
    lengths: list[int] = []
    for n in range(most, most // 2, -1):
        down = extent // n // step * step
        lengths += [extent // n] * (extent % n == 0) + [down, down + step]

    def chain(length: int) -> int:
        parts, rest = divmod(extent, length)
        return rounds(blocks * parts, units) * ceil(length / step) + rounds(blocks, units) * ceil(rest / step)

    return min((n for n in lengths if 1 < extent // n <= most), key=chain)


def _fixed(s: Statement) -> bool:
    return all(a.extent.is_constant for a in s.domain.axes)


def _points(s: Statement) -> int:
    return prod(a.extent.const for a in s.domain.axes)


def _work(pricing: Pricing, m: Mapping) -> Work | None:
    statements = (pricing.kernel.statements[i] for i in m.statements)
    s = next((s for s in statements if s.accumulate and s.reduces and _fixed(s)), None)
    if s is None:
        return None
    tile = pricing.tile(m)
    blocks = prod(ceil(a.extent.const / max(1, tile.get(a.name, 1))) for a in s.domain.axes if a.name not in s.reduces)
    return Work(m, blocks, _points(s), tile)


def _steps(kernel: Kernel, at: int, axis: str, length: int) -> Steps:
    """Parts of ``length`` become partial results; what is left over is summed as before, ahead of them."""
    way = Way(kernel, at)
    try:
        _divide(way, axis, length)
    except StepRefused:
        return ()
    return way.steps


def _divide(way: Way, axis: str, length: int) -> None:
    extent = way.kernel.statements[way.at].domain.extent(axis).const
    if extent % length:
        way.peel_sum(axis, extent // length * length)
    names, split = set(way.kernel.statements[way.at].domain.names), SplitAxis((length,))
    way.take(split, Site.of(axis=axis, statements=way.group(axis), factor=length))
    outer = next(n for n in way.kernel.statements[way.at].domain.names if n not in names)
    way.split_temporaries(length)
    known = {b.name for b in way.kernel.buffers}
    nest = next((law for law in NEST_SUMS if way.kernel.statements[way.at].op in law.ops), None)
    if nest is None:
        raise StepRefused
    way.take(nest, Site.of(sum=way.at, kept=outer, factor=0))
    made = next(b.name for b in way.kernel.buffers if b.name not in known)
    index = next(s.dest.index for s in way.kernel.statements if s.dest.buffer == made)
    for d in reversed(range(index.index(Affine.of(outer)))):  # a part's results lie together
        way.take(PermuteDimensions(), Site.of(buffer=made, dim=d))
