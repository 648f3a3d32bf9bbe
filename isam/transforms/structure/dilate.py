"""Dilate: a factor that is read at every step is spread out with zeros in between, so that strides become one. With
`skew` and `reverse` the gradients of a strided convolution are plain convolutions."""

from __future__ import annotations

from dataclasses import replace

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Kernel, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import accesses, axis_of, fresh, names_in, readable_whole, splice
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.staging import box_copy
from isam.transforms.structure.rows import filled, moved, product_of, resized


@dataclass(frozen=True)
class Dilate(Transform):
    """``y[f * a] += x[a] * w`` steps through ``y`` one by one: ``x`` is copied into a zeroed buffer, every f-th place.

    Needs finite values: the added lanes are ``0 * w``. Price: f times the products.
    """

    factors: tuple[int, ...] = (2, 3)

    law = "dilate"
    equation = "forall a < A: y[f * a] += x[a] * w  =>  d = 0; d[f * a] = x[a]; forall c: y[c] += d[c] * w"
    needs = frozenset({"finite"})
    kinds = frozenset({"coefficient", "axis-missing"})
    grows = True

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(sum=n, product=m, spread=k, axis=a, factor=f)
            for n in range(len(kernel.statements))
            if (m := product_of(kernel, n)) is not None
            for k in (0, 1)
            for a in kernel.statements[m].domain.names
            for f in self.factors
            if _spreads(kernel, n, m, k, a, f)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        n, m, k, axis, f = (site[key] for key in ("sum", "product", "spread", "axis", "factor"))
        if product_of(kernel, n) != m or not _spreads(kernel, n, m, k, axis, f):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        product, total = kernel.statements[m], kernel.statements[n]
        x, u = product.sources[k], product.dest
        assert isinstance(x, Access)
        taken = names_in(kernel)
        name, wide = fresh(taken, f"{x.buffer}_d"), fresh(taken, f"{axis}_d")
        size = (product.domain.extent(axis) - 1) * f + 1
        dim, at = (([axis_of(r) for r in a.index].index(axis)) for a in (x, u))
        old = kernel.buffer(x.buffer)
        made = replace(resized(old, dim, (old.shape[dim] - 1) * f + 1), name=name, role="temp", declared=True)
        copy = box_copy(kernel, x.buffer, lambda i: (*i[:dim], i[dim] * f, *i[dim + 1 :]))
        copy = replace(copy, dest=replace(copy.dest, buffer=name))
        read = Access(name, (*x.index[:dim], Affine.of(wide), *x.index[dim + 1 :]), x.loc)

        def stepped(s: Statement) -> Statement:
            axes = [Axis(wide, size) if a.name == axis else a for a in s.domain.axes]
            step = {axis: Affine.of(wide)}
            rows = moved(_divided(s, axis, f), u.buffer, at, Affine.of(axis))
            return rows.substitute(step, axes)

        one = stepped(replace(product, sources=tuple(read if j == k else y for j, y in enumerate(product.sources))))
        parts = {m: ((filled(kernel, made), ()), (copy, ()), (one, (m,))), n: ((stepped(total), (n,)),)}
        buffers = [resized(b, at, size) if b.name == u.buffer else b for b in kernel.buffers]
        new, origin = splice(kernel, parts, buffers=(*buffers, made))
        meanings = ((name, f"{x.buffer} with {f - 1} zeros after each: {f} times the products"), (wide, f"{f}*{axis}"))
        relation = ((x.buffer, (x.buffer, name)),)
        return Rewrite(new, Correspondence(origin, axes=((axis, (wide,)),), buffers=relation, meanings=meanings))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The axis whose coefficient is a multiple of the one needed; an axis that is scattered in steps together with
        one that a source lacks (`skew` then gives it to that source)."""
        have, need, at, axis = (mismatch.about(k) for k in ("have", "need", "statement", "axis"))
        if mismatch.kind == "axis-missing":
            return tuple(s for f in _steps(kernel, mismatch) for s in Dilate((f,)).sites(kernel) if at == s["product"])
        if not self.answers(mismatch) or axis is None or not need or have % need or have // need < 2:
            return ()
        found = Dilate((have // need,)).sites(kernel)
        return tuple(s for s in found if s["axis"] == axis and at in (s["sum"], s["product"]))


def _steps(kernel: Kernel, mismatch: Mismatch) -> tuple[int, ...]:
    """Coefficients above one beside the missing axis in rows of what the product is summed into."""
    at, axis = mismatch.about("statement"), mismatch.about("axis")
    totals = [s for n, s in enumerate(kernel.statements) if at is not None and product_of(kernel, n) == at]
    rows = [r for s in totals for r in s.dest.index if axis and r.coefficient(axis)]
    return tuple(sorted({c for r in rows for n, c in r.terms if n != axis and c > 1}))


def _spreads(kernel: Kernel, n: int, m: int, k: int, axis: str, f: int) -> bool:
    """One source takes the axis plainly, once; everything else takes it in multiples of the factor, and something does;
    no condition speaks of it."""
    product, total = kernel.statements[m], kernel.statements[n]
    x = product.sources[k]
    if not isinstance(x, Access) or [axis_of(r) for r in x.index if r.coefficient(axis)] != [axis]:
        return False
    if not readable_whole(kernel, x.buffer, m):
        return False
    other = product.sources[1 - k]
    rows = [r.coefficient(axis) for a in (other, total.dest) if isinstance(a, Access) for r in a.index]
    if any(w.coefficient(axis) for w in total.domain.where):
        return False
    return any(rows) and not any(c % f for c in rows)


def _divided(s: Statement, axis: str, f: int) -> Statement:
    """The statement with the axis' coefficients divided by the factor."""
    for a in accesses(s):
        for d, row in enumerate(a.index):
            c = row.coefficient(axis)
            s = moved(s, a.buffer, d, row - Affine.of(axis, c - c // f))
    return s
