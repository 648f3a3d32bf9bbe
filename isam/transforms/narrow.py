"""Narrow a temporary: drop a dimension along which every element is the same."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.kernel import Access, Axis, Kernel, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import accesses, splice, writers
from isam.transforms.law import Correspondence, Rewrite, Site, Transform


class Narrow(Transform):
    """``t[i, k] = f(i)``  =>  ``t[i] = f(i)``: a value that does not depend on ``k`` is made once."""

    law = "narrow"
    equation = "t[i, k] = f(i); g(t[i, e])  =>  t[i] = f(i); g(t[i])"
    needs = frozenset({"exact"})
    kinds = frozenset({"extra-dependence"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(buffer=b.name, dim=d)
            for b in kernel.buffers
            if b.role == "temp"
            for d in range(len(b.shape))
            if _constant_along(kernel, b.name, d)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        name, dim = site["buffer"], site["dim"]

        def cut(x: Source) -> Source:
            if isinstance(x, Access) and x.buffer == name:
                return replace(x, index=x.index[:dim] + x.index[dim + 1 :])
            return x

        def statement(s: Statement) -> Statement:
            dest, sources = cut(s.dest), tuple(map(cut, s.sources))
            assert isinstance(dest, Access)
            if s.dest.buffer != name:
                return replace(s, dest=dest, sources=sources)
            gone = s.dest.index[dim].names
            axes = tuple(a for a in s.domain.axes if a.name not in gone)
            return replace(s, domain=replace(s.domain, axes=axes), dest=dest, sources=sources)

        buffers = tuple(
            replace(b, shape=b.shape[:dim] + b.shape[dim + 1 :]) if b.name == name else b for b in kernel.buffers
        )
        parts = {i: ((statement(s), (i,)),) for i, s in enumerate(kernel.statements)}
        new, origin = splice(kernel, parts, buffers=buffers)
        return Rewrite(new, Correspondence(origin))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        if not self.answers(mismatch):
            return ()
        return tuple(s for s in self.sites(kernel) if s["buffer"] == mismatch.about("buffer"))


def _constant_along(kernel: Kernel, name: str, dim: int) -> bool:
    """Every writer's row ``dim`` is one whole axis, either way round, that nothing else there mentions."""
    size = kernel.buffer(name).shape[dim]
    found = writers(kernel, name)
    return bool(found) and all(_drops(kernel.statements[i], name, dim, size) for i in found)


def _drops(s: Statement, name: str, dim: int, size: object) -> bool:
    row = s.dest.index[dim]
    if len(row.terms) != 1:
        return False
    axis = row.terms[0][0]
    if axis not in s.domain.names or s.domain.extent(axis) != size or not _positive(s.domain.axes, axis):
        return False
    rows = [r for a in accesses(s) for d, r in enumerate(a.index) if not (a.buffer == name and d == dim)]
    return not any(r.coefficient(axis) for r in (*rows, *s.domain.where))


def _positive(axes: tuple[Axis, ...], axis: str) -> bool:
    """An axis without elements writes nothing: dropping it would."""
    extent = next(a.extent for a in axes if a.name == axis)
    return not extent.is_constant or extent.const > 0


def narrowed(kernel: Kernel, names: tuple[str, ...], back: Correspondence) -> Rewrite:
    """Narrows the temporaries ``names`` as far as it goes."""
    law = Narrow()
    while True:
        site = next((s for s in law.sites(kernel) if s["buffer"] in names), None)
        if site is None:
            return Rewrite(kernel, back)
        step = law.apply(kernel, site)
        kernel, back = step.kernel, back.then(step.back)
