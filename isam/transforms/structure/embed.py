"""Block-diagonal embedding: what is done for each index apart is done for all together, with zeros off the diagonal. A
depthwise product becomes a dense one."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Literal, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import axis_of, fresh, names_in, readable_whole, splice
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.staging import box_copy
from isam.transforms.structure.rows import moved, product_of


class Embed(Transform):
    """``y[c] += x[c] * w[c]`` is ``y[e] += x[c] * d[c][e]`` over all ``c``, where ``d`` is ``w`` on the diagonal.

    Needs finite values: off the diagonal the lanes are ``x * 0``. Price: as many times the products as ``c`` has
    steps, and a buffer as many times as large.
    """

    law = "embed"
    equation = "y[c] += x[c] * w[c]  =>  d = 0; d[c][c] = w[c]; y[e] += x[c] * d[c][e]"
    needs = frozenset({"finite"})
    kinds = frozenset({"extra-dependence", "axis-missing"})
    grows = True

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(sum=n, product=m, axis=a, diagonal=k)
            for n in range(len(kernel.statements))
            if (m := product_of(kernel, n)) is not None
            for a in kernel.statements[n].domain.names
            for k in (0, 1)
            if _embeds(kernel, n, m, a, k)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        n, m, axis, k = site["sum"], site["product"], site["axis"], site["diagonal"]
        if product_of(kernel, n) != m or not _embeds(kernel, n, m, axis, k):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        product, total = kernel.statements[m], kernel.statements[n]
        w = product.sources[k]
        assert isinstance(w, Access)
        taken = names_in(kernel)
        name, other = fresh(taken, f"{w.buffer}_d"), fresh(taken, f"{axis}_e")
        extent = product.domain.extent(axis)
        old = kernel.buffer(w.buffer)
        wide = Buffer(name, (*old.shape, old.shape[_dim(w, axis)]), old.dtype, "temp", loc=old.loc)
        read = Access(name, (*w.index, Affine.of(other)), w.loc)
        u = product.dest.buffer
        into = Access(u, (*product.dest.index, Affine.of(other)), product.dest.loc)
        axes = (*product.domain.axes, Axis(other, extent))
        sources = tuple(read if j == k else x for j, x in enumerate(product.sources))
        one = replace(product, domain=replace(product.domain, axes=axes), dest=into, sources=sources)
        y = total.dest
        dest = moved(total, y.buffer, _dim(y, axis), Affine.of(other)).dest
        two = replace(total, domain=replace(total.domain, axes=axes), dest=dest, sources=(into,))
        fill, copy = _diagonal(kernel, w, name, _dim(w, axis))
        parts = {m: ((fill, ()), (copy, ()), (one, (m,))), n: ((two, (n,)),)}
        buffers = [replace(b, shape=(*b.shape, extent)) if b.name == u else b for b in kernel.buffers]
        new, origin = splice(kernel, parts, buffers=[*buffers, wide])
        price = f"{w.buffer} on the diagonal, zeros beside it: {extent} times the products"
        relation = ((w.buffer, (w.buffer, name)),)
        back = Correspondence(origin, axes=((axis, (axis, other)),), buffers=relation, meanings=((name, price),))
        return Rewrite(new, back)

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """An axis that an operand may not depend on, or that only some operands have, and that all of these have."""
        at, axis = mismatch.about("statement"), mismatch.about("axis")
        if not self.answers(mismatch):
            return ()
        return tuple(s for s in self.sites(kernel) if at in (s["sum"], s["product"]) and axis in (None, s["axis"]))


def _dim(a: Access, axis: str) -> int:
    return [axis_of(r) for r in a.index].index(axis)


def _embeds(kernel: Kernel, n: int, m: int, axis: str, k: int) -> bool:
    """The axis is a batch: the result, the diagonal factor (each plainly, once) and the other factor depend on it."""
    product, total = kernel.statements[m], kernel.statements[n]
    w, x = product.sources[k], product.sources[1 - k]
    if not isinstance(w, Access) or not isinstance(x, Access) or not readable_whole(kernel, w.buffer, m):
        return False
    for a in (w, total.dest):
        if [axis_of(r) for r in a.index if r.coefficient(axis)] != [axis]:
            return False
    return any(r.coefficient(axis) for r in x.index)


def _diagonal(kernel: Kernel, w: Access, name: str, dim: int) -> tuple[Statement, Statement]:
    """Zeros everywhere, then the factor on the diagonal."""
    copy = box_copy(kernel, w.buffer, lambda index: (*index, index[dim]))
    copy = replace(copy, dest=replace(copy.dest, buffer=name))
    last = fresh(names_in(kernel) | set(copy.domain.names), "e")
    axes = (*copy.domain.axes, Axis(last, copy.domain.axes[dim].extent))
    everywhere = Access(name, tuple(Affine.of(a.name) for a in axes), w.loc)
    return Statement(Domain(axes), everywhere, "copy", (Literal(0),), False, w.loc), copy
