"""Skew: a sum that is scattered over its destination is gathered instead, one point of the destination at a time. With
`pad` and `reverse` this is the view that turns the input gradient of a convolution into a convolution."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.kernel import Axis, Kernel, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import accesses, axis_of, fresh, names_in, splice
from isam.transforms.law import Correspondence, Rewrite, Site, Transform
from isam.transforms.structure.rows import moved, product_of, resized


class Skew(Transform):
    """``y[a + b] += f(a, b)`` runs over ``c = a + b`` and ``b``, where ``c - b`` is an ``a``."""

    law = "skew"
    equation = "forall a < A, b: y[a + b] += f(a, b)  =>  forall c < C, b where 0 <= c - b < A: y[c] += f(c - b, b)"
    needs = frozenset({"reassociates"})
    kinds = frozenset({"extra-dependence", "axis-missing"})
    grows = True

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(sum=n, axis=a, dim=d)
            for n, s in enumerate(kernel.statements)
            for d, row in enumerate(s.dest.index)
            for a in s.domain.names
            if row.coefficient(a) == 1 and any(b != a for b in row.names if b in s.domain.names)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        n, axis, dim = site["sum"], site["axis"], site["dim"]
        total = kernel.statements[n]
        made = product_of(kernel, n)
        group = (n,) if made is None else (made, n)
        name = fresh(names_in(kernel), f"{axis}_s")
        value = Affine.of(name) - (total.dest.index[dim] - axis)
        size = kernel.buffer(total.dest.buffer).shape[dim]
        kept = (value, total.domain.extent(axis) - 1 - value)
        u, at = ("", 0) if made is None else _place(kernel.statements[made], axis)

        def one(s: Statement) -> Statement:
            axes = [Axis(name, size) if a.name == axis else a for a in s.domain.axes]
            new = s.substitute({axis: value}, axes)
            new = replace(new, domain=replace(new.domain, where=(*new.domain.where, *kept)))
            return moved(new, u, at, Affine.of(name))

        buffers = [resized(b, at, size) if b.name == u else b for b in kernel.buffers]
        new, origin = splice(kernel, {i: ((one(kernel.statements[i]), (i,)),) for i in group}, buffers=buffers)
        meaning = ((name, str(total.dest.index[dim])),)
        return Rewrite(new, Correspondence(origin, axes=((axis, (name,)),), meanings=meaning))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """A row of the destination depends on an axis it should not, or a source does not on one it should."""
        if not self.answers(mismatch):
            return ()
        buffer, row, axis = (mismatch.about(k) for k in ("buffer", "row", "axis"))
        out: list[Site] = []
        for s in self.sites(kernel):
            y = kernel.statements[s["sum"]].dest
            if mismatch.kind == "extra-dependence":
                fits = (y.buffer, s["dim"]) == (buffer, row)
            else:
                made = product_of(kernel, s["sum"])
                reads = [x for i in (made, s["sum"]) if i is not None for x in accesses(kernel.statements[i])]
                moves = any(x.buffer == buffer and any(r.coefficient(s["axis"]) for r in x.index) for x in reads)
                fits = moves and axis != s["axis"] and bool(y.index[s["dim"]].coefficient(axis or ""))
            out.extend([s] if fits else [])
        return tuple(out)


def _place(product: Statement, axis: str) -> tuple[str, int]:
    """The product's temporary and its dimension that the axis indexes."""
    return product.dest.buffer, [axis_of(r) for r in product.dest.index].index(axis)
