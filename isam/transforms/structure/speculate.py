"""Speculation: what only some points of a box compute is computed at all of them, where nobody reads the others."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.dtype import DTYPES
from isam.ir.kernel import Access, Kernel, Recurrence, Statement
from isam.ir.poly_domain import domain_set, footprint
from isam.transforms.edit import readable_whole, splice
from isam.transforms.law import TAKEN, Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.structure.rows import uncertain


class Speculate(Transform):
    """A statement that writes a temporary loses its conditions: the points that they leave out write elements which
    no statement reads, and what they read is there. An operation that may fail on some values stays."""

    law = "speculate"
    equation = "t[i, j] = f(i, j) where j <= i; g(t[i, j] where j <= i)  =>  t[i, j] = f(i, j); ..."
    needs = frozenset({"exact"})
    kinds = frozenset()
    tried = TAKEN

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        if any(isinstance(i, Recurrence) for i in kernel.body):
            return ()
        return tuple(Site.of(statement=n) for n, s in enumerate(kernel.statements) if _free(kernel, n, s))

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        n = site["statement"]
        s = kernel.statements[n]
        if any(isinstance(i, Recurrence) for i in kernel.body) or not _free(kernel, n, s):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        new, origin = splice(kernel, {n: ((replace(s, domain=replace(s.domain, where=())), (n,)),)})
        return Rewrite(new, Correspondence(origin))


def _free(kernel: Kernel, n: int, s: Statement) -> bool:
    """Whether statement ``n`` may lose its conditions."""
    name = s.dest.buffer
    if not s.domain.where or kernel.buffer(name).role != "temp" or _fails(kernel, s):
        return False
    sources = [x for x in s.sources if isinstance(x, Access)]
    if any(uncertain(kernel, x, s.domain.axes) for x in (s.dest, *sources)):
        return False
    if not all(readable_whole(kernel, x.buffer, n) for x in s.reads):
        return False
    own = {a for row in s.dest.index for a in row.names if len(row.terms) == 1}
    if not s.accumulate and not own >= set(s.domain.names):
        return False
    left = domain_set(replace(s.domain, where=()), kernel.syms) - domain_set(s.domain, kernel.syms)
    more = footprint(left, s.dest)
    return all(more.is_disjoint(footprint(domain_set(r.domain, kernel.syms), x))
               for r in kernel.statements[n + 1 :] for x in r.reads if x.buffer == name)  # fmt: skip


def _fails(kernel: Kernel, s: Statement) -> bool:
    """Whether the operation has no result for some values."""
    return s.op == "div" and DTYPES[kernel.buffer(s.dest.buffer).dtype].kind != "f"
