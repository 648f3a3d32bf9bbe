"""Peel: statements over a domain become statements over two disjoint parts of it; unpeel puts two parts together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import Part, accesses, axis_of, fresh, names_in, splice
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.structure.axes import joined
from isam.transforms.structure.rows import inside, users

Cut = tuple[int, Affine, bool]  # statement, condition, whether its part comes second


class Peel(Transform):
    """A group of statements joined by temporaries runs over the points where ``cut >= 0`` and over the others.

    ``cut`` is ``m - 1 - a`` (the first m steps of an axis, then boxes again) or a condition over axes that all
    statements of the group have. ``late``: the points where it holds come second. Nothing may be summed along its
    axes: the order of terms stays.
    """

    law = "peel"
    equation = "forall a < A: f(a)  =>  forall a < m: f(a); forall a < A - m: f(a + m)"
    kinds = frozenset({"domain"})
    grows = True
    inverse = "unpeel"
    summed: ClassVar[bool] = False

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        """After the first and before the last step of every axis, and along conditions of other statements."""
        found = [*_ends(kernel), *_conditions(kernel)]
        return tuple(dict.fromkeys(s for s in found if _peels(kernel, s, self.summed)))

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        group, cut = site["statements"], site["cut"]
        if not _peels(kernel, site, self.summed):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        taken = names_in(kernel)
        private = {n: fresh(taken, f"{n}_p") for n in inside(kernel, group) if _splits(kernel, n, group, cut)}
        along = {n: _along(kernel, group, n, cut) for n in private}
        parts: dict[int, Sequence[Part]] = {}
        for i in group:
            one, two = _parts(kernel.statements[i], cut, along)
            first, second = (two, one) if site["late"] else (one, two)
            parts[i] = ((first, (i,)), (second.renamed(private), (i,)))
        sizes = [_sizes(kernel.buffer(n), along[n], cut) for n in private]
        low, high = zip(*sizes, strict=True) if sizes else ((), ())
        kept, copied = (high, low) if site["late"] else (low, high)
        copies = [replace(b, name=private[b.name]) for b in copied]
        narrow = {b.name: b for b in kept}
        new, origin = splice(kernel, parts, buffers=(*(narrow.get(b.name, b) for b in kernel.buffers), *copies))
        relation = tuple(sorted((n, (n, p)) for n, p in private.items()))
        return Rewrite(new, Correspondence(origin, buffers=relation))

    def demand(self, site: Site) -> tuple[Any, ...]:
        return (site["cut"],)

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The conditions that the statement lacks beside the region's; the part of its elements that others touch."""
        at = mismatch.about("statement")
        if not self.answers(mismatch) or at is None:
            return ()
        cuts: list[Cut] = [(i, c, i < at) for i, c in mismatch.about("conditions") or ()]
        if mismatch.about("relation") == "elements":
            others = users(kernel, kernel.statements[at].dest.buffer)
            cuts.extend(c for i in (at, *others) for c in _shared_elements(kernel, i))
        found = [_site(kernel, *c) for c in dict.fromkeys(cuts)]
        return tuple(s for s in found if s is not None and _peels(kernel, s, self.summed))


class PeelSum(Peel):
    """A sum is taken over one part of its domain, then over the other."""

    law = "peel-sum"
    equation = "forall k < K: y += f(k)  =>  forall k < m: y += f(k); forall k < K - m: y += f(k + m)"
    needs = frozenset({"reassociates"})
    inverse = "unpeel-sum"
    summed = True


def _site(kernel: Kernel, at: int, cut: Affine, late: bool) -> Site | None:
    """The statement with those joined to it that have the cut's axes."""
    names = [n for n in cut.names if n in kernel.statements[at].domain.names]
    if not names:
        return None
    group = next(g for g in joined(kernel, names[0]) if at in g)
    return Site.of(statements=group, cut=cut, late=late)


def _ends(kernel: Kernel) -> Iterator[Site]:
    for i, s in enumerate(kernel.statements):
        for a in s.domain.axes:
            if a.extent.is_constant:
                for m in (1, a.extent.const - 1):
                    site = _site(kernel, i, -Affine.of(a.name) + (m - 1), m > 1)
                    if site is not None:
                        yield site


def _conditions(kernel: Kernel) -> Iterator[Site]:
    wheres = dict.fromkeys(w for s in kernel.statements for w in s.domain.where)
    for i, s in enumerate(kernel.statements):
        for w in wheres:
            if w not in s.domain.where and -w - 1 not in s.domain.where:
                site = _site(kernel, i, w, len(w.names) > 1)
                if site is not None:
                    yield site


def _peels(kernel: Kernel, site: Site, summed: bool) -> bool:
    """Every statement of the group has the cut's axes, and whether one sums along them is as asked."""
    group, cut = site["statements"], site["cut"]
    sizes = {x.name for x in kernel.syms}
    first = {a.name: a.extent for a in kernel.statements[group[0]].domain.axes}
    names = [n for n in cut.names if n in first]
    if any(n not in first and n not in sizes for n in cut.names):
        return False
    for i in group:
        have = kernel.statements[i].domain.names
        if any(n not in have for n in names):
            return False
    if _position(cut, first) == 0:
        return False
    return any(_sums(kernel.statements[i], names) for i in group) is summed


def _sums(s: Statement, names: Sequence[str]) -> bool:
    return s.accumulate and any(n in s.reduces for n in names)


def _position(cut: Affine, extents: dict[str, Affine]) -> int | None:
    """m of a cut ``m - 1 - a`` strictly inside a constant axis, 0 when it lies outside, None for other conditions."""
    if len(cut.terms) != 1 or cut.terms[0][1] != -1:
        return None
    extent = extents[cut.terms[0][0]]
    if not extent.is_constant:
        return None
    return cut.const + 1 if 0 < cut.const + 1 < extent.const else 0


def _parts(s: Statement, cut: Affine, along: Mapping[str, int | None]) -> tuple[Statement, Statement]:
    m = _position(cut, {a.name: a.extent for a in s.domain.axes})
    if not m:
        where = s.domain.where
        one = replace(s, domain=replace(s.domain, where=(*where, cut)))
        return one, replace(s, domain=replace(s.domain, where=(*where, -cut - 1)))
    axis = cut.names[0]
    few = [Axis(a.name, Affine((), m)) if a.name == axis else a for a in s.domain.axes]
    rest = [Axis(a.name, a.extent - m) if a.name == axis else a for a in s.domain.axes]
    moved = s.substitute({axis: Affine.of(axis) + m}, rest).accessing(lambda x: _shifted(x, along, m))
    return s.substitute({}, few), moved


def _along(kernel: Kernel, group: tuple[int, ...], name: str, cut: Affine) -> int | None:
    """The dimension of a part's own temporary that the cut axis runs along, where the cut is a position: each part
    needs its own length of it."""
    for i in group:
        if _position(cut, {a.name: a.extent for a in kernel.statements[i].domain.axes}) is None:
            return None
    index = next(x.index for i in group for x in accesses(kernel.statements[i]) if x.buffer == name)
    return next(d for d, row in enumerate(index) if axis_of(row) == cut.names[0])


def _sizes(b: Buffer, along: int | None, cut: Affine) -> tuple[Buffer, Buffer]:
    """A temporary as long as the part before the cut, and as long as the one behind it."""
    if along is None:
        return b, b
    m = cut.const + 1
    before, behind = b.shape[:along], b.shape[along + 1 :]
    rest = b.shape[along] - m  # under a condition it may be shorter than the axis, and end before the cut
    rest = Affine() if rest.is_constant and rest.const < 0 else rest
    return replace(b, shape=(*before, Affine((), m), *behind)), replace(b, shape=(*before, rest, *behind))


def _shifted(x: Access, along: Mapping[str, int | None], m: int) -> Access:
    d = along.get(x.buffer)
    return x if d is None else replace(x, index=(*x.index[:d], x.index[d] - m, *x.index[d + 1 :]))


def _splits(kernel: Kernel, name: str, group: tuple[int, ...], cut: Affine) -> bool:
    """Does every point read of the temporary only what points of its own part wrote? Then each part has its own."""
    found = {x.index for i in group for x in accesses(kernel.statements[i]) if x.buffer == name}
    if len(found) != 1:
        return False
    (index,) = found
    names = set(kernel.statements[group[0]].domain.names)
    return {n for n in cut.names if n in names} <= {axis_of(r) for r in index}


def _shared_elements(kernel: Kernel, at: int) -> Iterator[Cut]:
    """Cuts of a statement where another one begins or ends to touch what it writes; the shared part lies next to it."""
    s = kernel.statements[at]
    for i in users(kernel, s.dest.buffer):
        for x in accesses(kernel.statements[i]) if i != at else ():
            if x.buffer != s.dest.buffer:
                continue
            for mine, row in zip(s.dest.index, x.index, strict=True):
                spans = [_span(r, t.domain) for r, t in ((mine, s), (row, kernel.statements[i]))]
                if None in spans or len(mine.terms) != 1 or mine.terms[0][1] != 1:
                    continue
                (lo, _), (start, end) = (span or (0, 0) for span in spans)
                for m, below in ((start, False), (end + 1, True)):
                    yield at, -Affine.of(mine.names[0]) + (m - lo - 1), below == (at < i)


def _span(row: Affine, domain: Domain) -> tuple[int, int] | None:
    """Least and largest value over the box, where it is a number."""
    ranges = {a.name: (0, a.extent.const - 1) for a in domain.axes if a.extent.is_constant}
    return row.bounds(ranges) if all(n in ranges for n in row.names) else None
