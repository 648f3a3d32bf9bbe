"""Steps after which an instruction's calls are fuller: the pixels of several rows of an image as one row, windows of
few channels as rows of their own, groups of neighbours along a sum with zeros behind.

What the judge of rewritings cannot decide is left as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from isam.compiler.offers.longer import put_together
from isam.compiler.offers.way import StepRefused, Way
from isam.ir.kernel import Access, Kernel
from isam.ir.sumform import SumForm
from isam.transforms.law import Site
from isam.transforms.structure.roundup import RoundUpSum
from isam.transforms.structure.unfold import Unfold

COPIED = 3 / 2  # times as many calls without, from which on a copy for it pays


def fill(way: Way, form: SumForm, statement: int, region: Sequence[int], part: bool = True) -> bool:
    """Goes on to where calls of what sums so are as full as they can be at a sum. ``statement``: the sum in the
    kernel that the way began with, ``region``: what belongs to it there; ``part``: also where what makes an operand
    has to keep two axes where the sum has one. Whether that is so."""
    rows = _in_rows(way, form, region)
    parted = not rows and part and _in_rows(way, form, region, only=region)
    if not _in_windows(way, form, statement, region):
        if not rows and not parted:
            _in_rows(way, form, region, copied=True)
        with suppress(StepRefused):
            _filled(way, form, region)
    return parted


def _in_rows(way: Way, form: SumForm, region: Sequence[int], copied: bool = False,
             only: Sequence[int] = ()) -> bool:  # fmt: skip
    """Goes on to where two axes that are not summed over are one, where its calls are fuller then: of an image the
    pixels of all rows, one after the other; ``copied``: where that saves many calls, of a copy that has them so;
    ``only``: at the sum and behind it. Whether it came there."""
    s = way.kernel.statements[way.at]
    most = form.width
    *_, outer, inner, _ = ("", "", "", *(a for a in s.domain.names if a not in s.reduces))
    if not outer or not all(s.domain.extent(a).is_constant for a in (outer, inner)):
        return False
    rows, length = s.domain.extent(outer).const, s.domain.extent(inner).const
    apart, together = rows * -(-length // most), -(-rows * length // most)
    if rows < 2 or together >= apart or (copied and apart < COPIED * together):
        return False
    with way.attempt():
        if copied:
            _unfolded(way, region, outer, inner)
        put_together(way, outer, inner, view=True, region=only)
        return True
    return False


def _unfolded(way: Way, region: Sequence[int], outer: str, inner: str) -> None:
    """Goes on to where what is read along two axes that something else moves along, too, or that leave elements out, is
    copied so that each has a dimension of its own, in the order of the loops (im2col)."""
    law = Unfold()
    while site := next((x for x in law.sites(way.kernel) if _slides(way, x, region, outer, inner)), None):
        names = way.kernel.statements[site["statement"]].domain.names
        way.take(law, Site.of(**dict(site.at), axes=names))


def _slides(way: Way, site: Site, region: Sequence[int], outer: str, inner: str) -> bool:
    """Whether a source at a statement of the region moves along both axes."""
    x = way.kernel.statements[site["statement"]].sources[site["source"]]
    named = {n for row in x.index for n in row.names} if isinstance(x, Access) else set[str]()
    return site["statement"] in way.now(region) and {outer, inner} <= named


def _in_windows(way: Way, form: SumForm, statement: int, region: Sequence[int]) -> bool:
    """Goes on to where the windows that slide over an image are rows of their own, one after the other, zeros behind:
    where a row of taps and channels together nearly fills a call, and neither does alone. Whether it came there."""
    s, most = way.kernel.statements[way.at], form.depth
    *_, outer, inner = ("", *s.reduces) if len(s.reduces) < 2 else s.reduces
    if form.group < 2 or not outer or not all(s.domain.extent(a).is_constant for a in (outer, inner)):
        return False
    taps, channels = (s.domain.extent(a).const for a in (outer, inner))
    window = _window(way.kernel, way.now(region), outer, inner)
    if min(taps, channels) < 2 or not most // 2 < taps * channels < most or window is None:
        return False
    n, source, dim = window
    image = way.kernel.statements[n].sources[source]
    assert isinstance(image, Access)
    with way.attempt():
        way.take(Unfold(), Site.of(statement=n, source=source, dim=dim))
        put_together(way, outer, inner, view=True)
        axis = way.kernel.statements[way.at].reduces[-1]
        mine = tuple(i for i in way.now(region) if axis in way.kernel.statements[i].domain.names)
        way.take(RoundUpSum((most,)), Site.of(axis=axis, statements=mine, extent=most, near=True))
        _longer(way, image.buffer)
        way.at = way.now((statement,))[0]
        return True
    return False


def _longer(way: Way, buffer: str) -> None:
    """Goes on to where what makes a buffer does so in longer rows. ``at`` is somewhere else then."""
    for n in range(sum(s.dest.buffer == buffer for s in way.kernel.statements)):
        made = [i for i, s in enumerate(way.kernel.statements) if s.dest.buffer == buffer]
        names = way.kernel.statements[made[n]].domain.names
        if len(names) >= 2:
            with way.attempt():
                way.at = made[n]
                put_together(way, *names[-2:], view=True)


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


def _filled(way: Way, form: SumForm, region: Sequence[int]) -> None:
    """Goes on to a sum whose innermost axis is whole groups of those that the instruction takes, zeros behind, and
    fills its calls: where it is short, it is one with the axis around it."""
    size, most = form.group, form.depth
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
        with way.attempt():
            put_together(way, outer[-1], inner)
