"""Unpeel: two statements that do the same over two disjoint parts of a domain are one over both (peel's inverse)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Domain, Kernel, Statement
from isam.ir.mismatch import Mismatch
from isam.ir.normal import one_to_one
from isam.ir.ranges import nonnegative
from isam.transforms.edit import splice, together
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform


class Unpeel(Transform):
    """``f(a)`` for ``a < m`` and ``f(a + m)`` for ``a < n`` are ``f(a)`` for ``a < m + n``; and so are the points where
    a condition holds and those where it does not."""

    law = "unpeel"
    equation = "forall a < m: f(a); forall a < n: f(a + m)  =>  forall a < m + n: f(a)"
    kinds = frozenset({"domain"})
    inverse = "peel"
    summed: ClassVar[bool] = False

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        n = len(kernel.statements)
        return tuple(
            Site.of(first=i, second=j)
            for i in range(n)
            for j in range(i + 1, n)
            if next(self._found(kernel, i, j), None) is not None
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i, j = site["first"], site["second"]
        made = next(self._found(kernel, i, j), None)
        if made is None:
            raise NoSite(f"'{self.law}' does not apply at {site}")
        new, origin = splice(kernel, {i: ((made, (i, j)),), j: ()})
        return Rewrite(new, Correspondence(origin))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """Parts of what the region touches only in part."""
        if not self.answers(mismatch) or mismatch.about("relation") not in ("elements", "conditions"):
            return ()
        at = mismatch.about("statement")
        name = kernel.statements[at].dest.buffer if at is not None else None
        return tuple(s for s in self.sites(kernel) if kernel.statements[s["first"]].dest.buffer == name)

    def _found(self, kernel: Kernel, i: int, j: int) -> Iterator[Statement]:
        s, t = kernel.statements[i], kernel.statements[j]
        if (s.dest.buffer, s.op, s.accumulate) != (t.dest.buffer, t.op, t.accumulate) or not _meet(kernel, i, j):
            return
        for whole, names in _wholes(kernel, s, t):
            if any(n in whole.reduces for n in names) is self.summed and _well_formed(whole):
                yield whole


class UnpeelSum(Unpeel):
    """Two parts of one sum are taken in one go."""

    law = "unpeel-sum"
    equation = "forall k < m: y += f(k); forall k < n: y += f(k + m)  =>  forall k < m + n: y += f(k)"
    needs = frozenset({"reassociates"})
    inverse = "peel-sum"
    summed = True


def _wholes(kernel: Kernel, s: Statement, t: Statement) -> Iterator[tuple[Statement, tuple[str, ...]]]:
    """The statement over both domains, and the axes along which they were cut."""
    if len(s.domain.axes) != len(t.domain.axes):
        return
    mine = dict(zip(t.domain.names, s.domain.names, strict=True))
    renamed = {n: Affine.of(m) for n, m in mine.items()}
    axes = [Axis(mine[a.name], a.extent) for a in t.domain.axes]
    other = t.substitute(renamed, axes)
    if _same(s, other) and s.domain.axes == other.domain.axes:
        for w in s.domain.where:
            rest = set(s.domain.where) - {w}
            if set(other.domain.where) == rest | {-w - 1}:
                kept = tuple(x for x in s.domain.where if x != w)
                yield replace(s, domain=Domain(s.domain.axes, kept)), w.names
    for p, (a, b) in enumerate(zip(s.domain.axes, axes, strict=True)):
        alike = all(x == y for q, (x, y) in enumerate(zip(s.domain.axes, axes, strict=True)) if q != p)
        for low, high, under, over in ((s, other, a, b), (other, s, b, a)) if alike else ():
            if not all(nonnegative(x.extent, kernel.syms) for x in (under, over)):
                continue
            moved = high.substitute({a.name: Affine.of(a.name) - under.extent}, axes)
            if _same(low, moved) and set(low.domain.where) == set(moved.domain.where):
                whole = tuple(Axis(a.name, a.extent + b.extent) if x is a else x for x in s.domain.axes)
                yield replace(low, domain=Domain(whole, low.domain.where)), (a.name,)


def _same(s: Statement, t: Statement) -> bool:
    return s.dest == t.dest and s.sources == t.sources


def _meet(kernel: Kernel, i: int, j: int) -> bool:
    """Can the second statement run where the first stands?"""
    t = kernel.statements[j]
    read = {a.buffer for a in t.reads}
    for x in kernel.statements[i + 1 : j]:
        if x.dest.buffer in read | {t.dest.buffer} or any(a.buffer == t.dest.buffer for a in x.reads):
            return False
    return together(kernel, i, j)


def _well_formed(s: Statement) -> bool:
    """No point reads what another one writes, and a plain assignment writes every element once."""
    own = [x for x in s.sources if isinstance(x, Access) and x.buffer == s.dest.buffer]
    if any(x.index != s.dest.index for x in own) or (own and not one_to_one(s)):
        return False
    return one_to_one(s) or (s.accumulate and s.op != "select")
