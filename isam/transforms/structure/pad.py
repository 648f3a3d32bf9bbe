"""A condition that only keeps a read in range becomes a zeroed temporary around the data: padding (MAP-7)."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Literal, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import axis_of, fresh, names_in, readable_whole, splice
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.structure.rows import product_of


class Pad(Transform):
    """``y += x[e] * w where 0 <= e < n`` sums zeros instead: ``x`` is copied into a zeroed box that holds every ``e``.

    Needs finite values: the added lanes are ``0 * w``.
    """

    law = "pad"
    equation = "y += x[e] * w where 0 <= e < n  =>  p = 0; p[i - lo] = x[i]; y += p[e - lo] * w"
    needs = frozenset({"finite"})
    kinds = frozenset({"domain"})
    grows = True
    inverse = "unpad"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(sum=n, product=m, padded=k)
            for n in range(len(kernel.statements))
            for m in _product_of(kernel, n)
            for k in (0, 1)
            if _box(kernel, n, m, k) is not None
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        n, m, k = site["sum"], site["product"], site["padded"]
        box = _box(kernel, n, m, k) if m in _product_of(kernel, n) else None
        if box is None:
            raise NoSite(f"'{self.law}' does not apply at {site}")
        product, total = kernel.statements[m], kernel.statements[n]
        x = product.sources[k]
        assert isinstance(x, Access)
        old = kernel.buffer(x.buffer)
        taken = names_in(kernel)
        name = fresh(taken, f"{x.buffer}_p")
        axes: list[Axis] = []
        for size in (*old.shape, *(Affine((), hi - lo + 1) for lo, hi in box)):
            axes.append(Axis(fresh(taken, f"d{len(axes)}"), size))
            taken.add(axes[-1].name)
        inside, around = axes[: len(old.shape)], axes[len(old.shape) :]
        at = tuple(Affine.of(a.name) for a in inside)
        zero = Access(name, tuple(Affine.of(a.name) for a in around), x.loc)
        into = Access(name, tuple(i - lo for i, (lo, _) in zip(at, box, strict=True)), x.loc)
        read = Access(name, tuple(i - lo for i, (lo, _) in zip(x.index, box, strict=True)), x.loc)
        sources = tuple(read if j == k else s for j, s in enumerate(product.sources))
        before = (
            (Statement(Domain(tuple(around)), zero, "copy", (Literal(0),), False, x.loc), ()),
            (Statement(Domain(tuple(inside)), into, "copy", (Access(x.buffer, at, x.loc),), False, x.loc), ()),
            (replace(product, domain=Domain(product.domain.axes), sources=sources), (m,)),
        )
        after = ((replace(total, domain=Domain(total.domain.axes)), (n,)),)
        shape = tuple(Affine((), hi - lo + 1) for lo, hi in box)
        u = product.dest  # without the condition it may be longer
        terms = tuple(product.domain.extent(axis_of(r)) for r in u.index)
        buffers = [replace(b, shape=terms) if b.name == u.buffer else b for b in kernel.buffers]
        buffers.append(Buffer(name, shape, old.dtype, "temp", declared=True, loc=old.loc))
        new, origin = splice(kernel, {m: before, n: after}, buffers=buffers)
        back = Correspondence(origin, meanings=((name, f"{x.buffer} with a border of zeros"),))
        return Rewrite(new, back)

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        if not self.answers(mismatch):
            return ()
        at = mismatch.about("statement")
        return tuple(s for s in self.sites(kernel) if at is None or at in (s["sum"], s["product"]))


def _product_of(kernel: Kernel, n: int) -> tuple[int, ...]:
    """The product right before the sum ``n`` that this adds, under conditions."""
    m = product_of(kernel, n)
    return (m,) if m is not None and m == n - 1 and kernel.statements[n].domain.where else ()


def _box(kernel: Kernel, n: int, m: int, k: int) -> tuple[tuple[int, int], ...] | None:
    """Per dimension of the padded source the range of its index without conditions; None unless every condition says
    that one of its indices is in range, and both sides' data stays in range without them."""
    total, product = kernel.statements[n], kernel.statements[m]
    x, w = product.sources[k], product.sources[1 - k]
    if not isinstance(x, Access) or total.dest.buffer == x.buffer or not readable_whole(kernel, x.buffer, m):
        return None
    shape = kernel.buffer(x.buffer).shape
    if not all(e.is_constant for e in (*shape, *(a.extent for a in total.domain.axes))):
        return None
    ranges = {a.name: (0, a.extent.const - 1) for a in total.domain.axes}
    if any(n not in ranges for row in x.index for n in row.names):
        return None
    in_range = set(x.index) | {s - 1 - row for row, s in zip(x.index, shape, strict=True)}
    if not all(c in in_range for c in total.domain.where):
        return None
    box = tuple(_hull(row.bounds(ranges), s.const) for row, s in zip(x.index, shape, strict=True))
    return box if _stays(kernel, w, ranges) and _stays(kernel, total.dest, ranges) else None


def _hull(span: tuple[int, int], size: int) -> tuple[int, int]:
    return min(span[0], 0), max(span[1], size - 1)


def _stays(kernel: Kernel, x: object, ranges: dict[str, tuple[int, int]]) -> bool:
    if not isinstance(x, Access):
        return True
    for row, size in zip(x.index, kernel.buffer(x.buffer).shape, strict=True):
        if any(n not in ranges for n in row.names) or not size.is_constant:
            return False
        lo, hi = row.bounds(ranges)
        if lo < 0 or hi >= size.const:
            return False
    return True
