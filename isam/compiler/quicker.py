"""Instructions that do far more in a cycle than those of a cover, and fit after some steps: tiles beside vectors.

The search for covers ends where a kernel is carried out as it stands. An instruction that takes its operands in groups
needs an axis cut first, and a factor laid out in groups; whether that pays, schedules tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
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
    from isam.transforms.law import Site

TIMES = 10.0  # so many times the points in a cycle are looked for
TRIED = 2  # instructions
WIDER = 2  # times the lanes in parts that sums across them are made in: neighbours that go into a group stay together
COPIED = 3 / 2  # times as many calls without, from which on a copy for it pays
LARGE = 1 / 8  # of the points of the largest sum: others that are to be taken more quickly, too


def quicker(kernel: Kernel, cover: Cover, offered: Sequence[Instruction],
            across: Mapping[str, int]) -> Iterator[tuple[Step, ...]]:  # fmt: skip
    """Steps after which such instructions carry out the large sums; what the judge of rewritings cannot decide is not
    offered. ``across``: per buffer into which others are summed across lanes, how many these are."""
    if cover.steps:
        return
    sums = [(m, n) for m in cover.mappings for n in m.statements[-1:]
            if kernel.statements[n].accumulate and kernel.statements[n].reduces]  # fmt: skip
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
            _onto(way, able, n, m.statements)
    if way is not None and way.steps:
        from isam.compiler.partial import in_lanes

        wider = {b: WIDER * n for b, n in across.items()}
        yield (*way.steps, *in_lanes(way.kernel, wider))


def _quick(instruction: Instruction, offered: Sequence[Instruction], kernel: Kernel) -> list[Instruction]:
    """The instructions that may do the same sum far more quickly, the quickest first."""
    own = rate(instruction)
    if own < 1.0:  # a scalar: what vectors could not take, fits nothing larger
        return []
    types = _types(instruction)
    able = [i for i in present(offered, kernel) if rate(i) >= TIMES * own and _types(i) == types]
    return sorted(able, key=rate, reverse=True)[:TRIED]


def _onto(way: Way, able: Sequence[Instruction], statement: int, region: Sequence[int]) -> None:
    """Goes on to where one of the instructions carries out a sum; nowhere, where none can. ``statement``: the sum in
    the kernel that the way began with, ``region``: what belongs to it there."""
    from isam.compiler.way import StepRefused

    begin = way.state()
    way.at = way.now((statement,))[0]
    rows = _in_rows(way, able[0], region)
    if not _in_windows(way, able[0], statement, region):
        if not rows:
            _in_rows(way, able[0], region, copied=True)
        with suppress(StepRefused):
            _filled(way, able[0], region)
    found = [f for i in able for f in _laid_out(way.kernel, i, way.at, way.now(region))]
    for _, steps in sorted(found, key=lambda f: f[0]):
        before = way.state()
        try:
            for s in steps:
                way.take(s.transform, s.site)
            return
        except StepRefused:
            way.back_to(before)
    way.back_to(begin)


def _in_rows(way: Way, instruction: Instruction, region: Sequence[int], copied: bool = False) -> bool:
    """Goes on to where two axes that are not summed over are one, where its calls are fuller then: of an image the
    pixels of all rows, one after the other; ``copied``: where that saves many calls, of a copy that has them so.
    Whether it came there."""
    from isam.compiler.longer import put_together
    from isam.compiler.way import StepRefused

    s = way.kernel.statements[way.at]
    most = max((instruction.span(a).most or 1 for a in _parallel(instruction)), default=1)
    *_, outer, inner, _ = ("", "", "", *(a for a in s.domain.names if a not in s.reduces))
    if not outer or not all(s.domain.extent(a).is_constant for a in (outer, inner)):
        return False
    rows, length = s.domain.extent(outer).const, s.domain.extent(inner).const
    apart, together = rows * -(-length // most), -(-rows * length // most)
    if rows < 2 or together >= apart or (copied and apart < COPIED * together):
        return False
    before = way.state()
    try:
        if copied:
            _unfolded(way, region, outer, inner)
        put_together(way, outer, inner, view=True)
    except StepRefused:
        way.back_to(before)
        return False
    return True


def _unfolded(way: Way, region: Sequence[int], outer: str, inner: str) -> None:
    """Goes on to where what is read along two axes that something else moves along, too, or that leave elements out, is
    copied so that each has a dimension of its own, in the order of the loops (im2col)."""
    from isam.transforms.law import Site
    from isam.transforms.structure.unfold import Unfold

    law = Unfold()
    while site := next((x for x in law.sites(way.kernel) if _slides(way, x, region, outer, inner)), None):
        names = way.kernel.statements[site["statement"]].domain.names
        way.take(law, Site.of(**dict(site.at), axes=names))


def _slides(way: Way, site: Site, region: Sequence[int], outer: str, inner: str) -> bool:
    """Whether a source at a statement of the region moves along both axes."""
    x = way.kernel.statements[site["statement"]].sources[site["source"]]
    named = {n for row in x.index for n in row.names} if isinstance(x, Access) else set[str]()
    return site["statement"] in way.now(region) and {outer, inner} <= named


def _in_windows(way: Way, instruction: Instruction, statement: int, region: Sequence[int]) -> bool:
    """Goes on to where the windows that slide over an image are rows of their own, one after the other, zeros behind:
    where a row of taps and channels together nearly fills a call, and neither does alone. Whether it came there."""
    from isam.compiler.longer import put_together
    from isam.compiler.way import StepRefused
    from isam.transforms.law import Site
    from isam.transforms.structure.roundup import RoundUpSum
    from isam.transforms.structure.unfold import Unfold

    s, (size, most) = way.kernel.statements[way.at], _groups(instruction)
    *_, outer, inner = ("", *s.reduces) if len(s.reduces) < 2 else s.reduces
    if size < 2 or not outer or not all(s.domain.extent(a).is_constant for a in (outer, inner)):
        return False
    taps, channels = (s.domain.extent(a).const for a in (outer, inner))
    window = _window(way.kernel, way.now(region), outer, inner)
    if min(taps, channels) < 2 or not most // 2 < taps * channels < most or window is None:
        return False
    before = way.state()
    n, source, dim = window
    image = way.kernel.statements[n].sources[source]
    try:
        way.take(Unfold(), Site.of(statement=n, source=source, dim=dim))
        put_together(way, outer, inner, view=True)
        axis = way.kernel.statements[way.at].reduces[-1]
        mine = tuple(i for i in way.now(region) if axis in way.kernel.statements[i].domain.names)
        way.take(RoundUpSum((most,)), Site.of(axis=axis, statements=mine, extent=most))
    except StepRefused:
        way.back_to(before)
        return False
    assert isinstance(image, Access)
    _longer(way, image.buffer)
    way.at = way.now((statement,))[0]
    return True


def _longer(way: Way, buffer: str) -> None:
    """Goes on to where what makes a buffer does so in longer rows. ``at`` is somewhere else then."""
    from isam.compiler.longer import put_together
    from isam.compiler.way import StepRefused

    for n in range(sum(s.dest.buffer == buffer for s in way.kernel.statements)):
        made = [i for i, s in enumerate(way.kernel.statements) if s.dest.buffer == buffer]
        names = way.kernel.statements[made[n]].domain.names
        before = way.state()
        if len(names) >= 2:
            way.at = made[n]
            try:
                put_together(way, *names[-2:], view=True)
            except StepRefused:
                way.back_to(before)


def _window(kernel: Kernel, region: Sequence[int], outer: str, inner: str) -> tuple[int, int, int] | None:
    """Where something is read that one axis of a sum slides over while another goes through its last dimension: the
    statement, the source and the dimension."""
    for n in region:
        for k, x in enumerate(kernel.statements[n].sources):
            if isinstance(x, Access) and len(x.index) > 1 and x.index[-1].names == (inner,):
                row = x.index[-2]
                if outer in row.names and len(row.names) > 1:
                    return n, k, len(x.index) - 2
    return None


def _parallel(instruction: Instruction) -> list[str]:
    """The axes of an instruction's sum that are not summed over."""
    s = next(s for s in instruction.body.statements if s.accumulate)
    return [a for a in s.domain.names if a not in s.reduces]


def _filled(way: Way, instruction: Instruction, region: Sequence[int]) -> None:
    """Goes on to a sum whose innermost axis is whole groups of those that the instruction takes, zeros behind, and
    fills its calls: where it is short, it is one with the axis around it."""
    from isam.compiler.longer import put_together
    from isam.compiler.way import StepRefused
    from isam.transforms.law import Site
    from isam.transforms.structure.roundup import RoundUpSum

    size, most = _groups(instruction)
    *_, inner = way.kernel.statements[way.at].reduces
    extent = way.kernel.statements[way.at].domain.extent(inner)
    if size < 2 or not extent.is_constant:
        return
    whole = -(-extent.const // size) * size
    if whole > extent.const:
        mine = tuple(i for i in way.now(region) if inner in way.kernel.statements[i].domain.names)
        way.take(RoundUpSum((size,)), Site.of(axis=inner, statements=mine, extent=whole))
    outer = way.kernel.statements[way.at].reduces[:-1]
    if outer and 2 * whole <= most and way.kernel.statements[way.at].domain.extent(outer[-1]).const > 1:
        before = way.state()
        try:
            put_together(way, outer[-1], inner)
        except StepRefused:
            way.back_to(before)


def _groups(instruction: Instruction) -> tuple[int, int]:
    """Neighbours along a sum that the instruction takes in a group, and how many of them in all; (1, 1): no groups."""
    fixed = dict(instruction.fixed)
    s = next(s for s in instruction.body.statements if s.accumulate)
    size = prod(fixed[a] for a in s.reduces if a in fixed)
    return size, size * prod(instruction.span(a).most or 1 for a in s.reduces if a not in fixed)


def _laid_out(kernel: Kernel, instruction: Instruction, at: int,
              region: Sequence[int]) -> Iterator[tuple[tuple[float, float], tuple[Step, ...]]]:  # fmt: skip
    """Ways to what an instruction takes that sums over neighbours in groups, with the prices of its calls then: an axis
    of the sum is cut into as many, and a dimension of one operand. The axis is cut in no statement besides ``region``:
    what makes an operand, or goes on with the result, keeps its axes."""
    from isam.compiler.longer import seen
    from isam.mapper.match import Matches, match
    from isam.mapper.space import Step
    from isam.transforms.law import Site
    from isam.transforms.structure.axes import SplitAxis
    from isam.transforms.structure.dimensions import SplitDimension, divides
    from isam.transforms.structure.unfold import Unfold

    s, (size, _) = kernel.statements[at], _groups(instruction)
    for axis in (a for a in reversed(s.reduces) if size > 1 and divides(size, s.domain.extent(a))):
        mine = tuple(i for i in region if axis in kernel.statements[i].domain.names)
        cut = Step(SplitAxis((size,)), Site.of(axis=axis, statements=mine, factor=size), None)
        changed = cut.transform.apply(kernel, cut.site).kernel
        read = dict.fromkeys(x.buffer for i in region for x in changed.statements[i].sources if isinstance(x, Access))
        parted = [x for x in SplitDimension((size,)).sites(changed) if x["buffer"] in read]
        other = [x for x in Unfold().sites(changed) if x["statement"] in region]  # a copy, where what is there stays
        other = [x for x in other if _source(changed, x) not in {y["buffer"] for y in parted}]
        parted = [seen(changed, x) for x in parted]
        ways = [Step(SplitDimension((size,)), x, None) for x in parted] + [Step(Unfold(), x, None) for x in other]
        for way in ways:
            rewrite = way.transform.apply(changed, way.site)
            there = [n for n, old in enumerate(rewrite.back.statements) if set(old) & set(region)]
            found = match(rewrite.kernel, instruction, strided=True, normalise=False, region=there)
            if isinstance(found, Matches):
                yield min(Pricing(rewrite.kernel).candidate(m).price for m in found), (cut, way)


def _source(kernel: Kernel, site: Site) -> str:
    """The buffer that a site names by its statement and source."""
    source = kernel.statements[site["statement"]].sources[site["source"]]
    return source.buffer if isinstance(source, Access) else ""


def rate(i: Instruction) -> float:
    """Points of the sum that the instruction takes in a cycle at most; 0 where it has none."""
    s = next((s for s in i.body.statements if s.accumulate), None)
    return 0.0 if s is None else prod(i.span(a).most or 1 for a in s.domain.names) / (1.0 + (i.cost.issue or 0.0))


def _types(i: Instruction) -> list[tuple[str, str]]:
    return sorted((b.role, b.dtype) for b in i.body.arguments)
