"""Take a factor into a sum: the inverse of factoring, for instructions that multiply before they sum (TR-1)."""

from __future__ import annotations

from dataclasses import replace

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Literal, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import (
    at_rows,
    buffer_of,
    fresh,
    is_full_box,
    names_in,
    readers,
    splice,
    surely_some,
    together,
    writers,
    written_between,
    zero_at_all,
)
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform


class Distribute(Transform):
    """``z * p``, where ``z`` is a sum used nowhere else, is the sum of the products; where that is summed up further,
    one sum remains."""

    law = "distribute"
    equation = "z = 0; z += a over r; y += z * p over k  =>  y += a * p over k, r"
    needs = frozenset({"reassociates", "rounding"})
    kinds = frozenset({"operation", "escapes"})
    grows = True
    wants = frozenset({"mul", "add"})
    inverse = "factor"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(product=m, source=k)
            for m in range(len(kernel.statements))
            for k in (0, 1)
            if _parts(kernel, m, k) is not None
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        parts = _parts(kernel, site["product"], site["source"])
        if parts is None:
            raise NoSite(f"'{self.law}' does not apply at {site}")
        return _rewrite(kernel, site["source"], parts)

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction multiplies what it sums; the kernel multiplies the sum."""
        at = mismatch.about("statement")
        if not self.answers(mismatch) or at is None:
            return ()
        out: list[Site] = []
        for s in self.sites(kernel):
            parts = _parts(kernel, s["product"], s["source"])
            if parts is not None and at in (parts.product, parts.inner, parts.outer):
                out.append(s)
        return tuple(out)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Statements: ``start`` zeroes ``z``, ``inner`` sums into it, ``product`` multiplies, ``outer`` sums that up (None:
    the product is the result). ``term``, ``axes``, ``where``: what the inner sum adds, in the product's names."""

    start: int
    inner: int
    product: int
    outer: int | None
    term: Source
    axes: tuple[Axis, ...]
    where: tuple[Affine, ...]


def _parts(kernel: Kernel, m: int, k: int) -> _Parts | None:
    product = kernel.statements[m]
    if product.op != "mul" or product.accumulate:
        return None
    z = product.sources[k]
    if not isinstance(z, Access) or kernel.buffer(z.buffer).role != "temp":
        return None
    made = writers(kernel, z.buffer)
    if len(made) != 2 or readers(kernel, z.buffer) != (m,) or not together(kernel, *made, m) or made[1] > m:
        return None
    start, inner = (kernel.statements[i] for i in made)
    if start.sources != (Literal(0),) or start.op != "copy" or not is_full_box(kernel, start):
        return None
    named = _in_names_of(kernel, product, z, inner)
    if named is None or buffer_of(product.sources[1 - k]) == z.buffer:
        return None
    term, axes, where = named
    if buffer_of(term) in written_between(kernel, made[1], m):
        return None
    if not zero_at_all(kernel, z.buffer) and not surely_some(inner.domain, inner.reduces, inner.domain.where):
        return None  # where nothing is summed up, there was `0 * p`, which is not 0 for every `p`
    outer = _sum_of(kernel, m)
    if where and outer is not None and not _same_names(kernel, m, outer):
        return None
    return _Parts(made[0], made[1], m, outer, term, axes, where)


def _in_names_of(
    kernel: Kernel, product: Statement, z: Access, inner: Statement
) -> tuple[Source, tuple[Axis, ...], tuple[Affine, ...]] | None:
    """What a whole sum adds, its summed axes (renamed) and conditions, in the names of the product that reads it."""
    rows = at_rows(inner.dest)
    if not (inner.op == "add" and inner.accumulate and isinstance(inner.sources[0], Access)) or rows is None:
        return None
    if any(inner.domain.extent(a) != size for a, size in zip(rows, kernel.buffer(z.buffer).shape, strict=True)):
        return None
    taken, values, axes = names_in(kernel), {}, []
    values.update(zip(rows, z.index, strict=True))
    for a in inner.domain.axes:
        if a.name not in rows:
            name = a.name if a.name not in _names_near(kernel, product) else fresh(taken, a.name)
            values[a.name] = Affine.of(name)
            axes.append(Axis(name, a.extent))
    where = tuple(w.substitute(values) for w in inner.domain.where)
    return inner.sources[0].substitute(values), tuple(axes), where


def _names_near(kernel: Kernel, product: Statement) -> set[str]:
    """Axes of the product and of whoever reads it: new axes must not be called like these."""
    near = [product, *(kernel.statements[i] for i in readers(kernel, product.dest.buffer))]
    return {n for s in near for n in s.domain.names}


def _sum_of(kernel: Kernel, m: int) -> int | None:
    """The one sum that adds up the product ``m``, when nothing else uses it."""
    u = kernel.statements[m].dest.buffer
    found = readers(kernel, u)
    if kernel.buffer(u).role != "temp" or writers(kernel, u) != (m,) or len(found) != 1:
        return None
    s = kernel.statements[found[0]]
    fits = s.op == "add" and s.accumulate and found[0] > m and together(kernel, m, found[0])
    return found[0] if fits else None


def _same_names(kernel: Kernel, m: int, n: int) -> bool:
    """Do the product and the sum over it speak of the same axes, so that a condition of one holds in the other?"""
    product, total = kernel.statements[m], kernel.statements[n]
    return product.dest == total.sources[0] and at_rows(product.dest) == product.domain.names == total.domain.names


def _rewrite(kernel: Kernel, k: int, p: _Parts) -> Rewrite:
    product = kernel.statements[p.product]
    z, u = buffer_of(product.sources[k]), product.dest.buffer
    more = tuple(Affine.of(a.name) for a in p.axes)
    sources = tuple(p.term if j == k else x for j, x in enumerate(product.sources))
    wide = Domain((*product.domain.axes, *p.axes), (*product.domain.where, *p.where))
    origin = (p.inner, p.product)
    if p.outer is not None:
        total = kernel.statements[p.outer]
        read = total.sources[0]
        assert isinstance(read, Access)
        over = Domain((*total.domain.axes, *p.axes), (*total.domain.where, *p.where))
        new_read = replace(read, index=(*read.index, *more))
        at = replace(product.dest, index=(*product.dest.index, *more))
        multiplied = replace(product, domain=wide, sources=sources, dest=at)
        summed = replace(total, domain=over, sources=(new_read,))
        shape = (*kernel.buffer(u).shape, *(a.extent for a in p.axes))
        buffers = [replace(b, shape=shape) if b.name == u else b for b in kernel.buffers]
        parts = {p.start: (), p.inner: (), p.product: ((multiplied, origin),), p.outer: ((summed, (p.start, p.outer)),)}
        new, back = splice(kernel, parts, buffers=buffers)
        return Rewrite(new, Correspondence(back, buffers=((z, ()),)))
    name = fresh(names_in(kernel), "u")
    at = Access(name, (*(Affine.of(a.name) for a in product.domain.axes), *more), product.loc)
    zero = Statement(product.domain, product.dest, "copy", (Literal(0),), False, product.loc)
    lines = (
        (replace(product, domain=wide, dest=at, sources=sources), origin),
        (zero, (p.start,)),
        (Statement(wide, product.dest, "add", (at,), True, product.loc), (p.inner,)),
    )
    made = Buffer(name, tuple(a.extent for a in wide.axes), kernel.buffer(u).dtype, "temp", declared=True)
    parts = {p.start: (), p.inner: (), p.product: lines}
    new, back = splice(kernel, parts, buffers=(*kernel.buffers, made))
    return Rewrite(new, Correspondence(back, buffers=((z, ()),), meanings=((name, f"terms of {product.dest}"),)))

