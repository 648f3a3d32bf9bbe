"""Unpad: who reads a border of zeros into a sum leaves those terms out instead (pad's inverse)."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Kernel, Literal, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import Part, axis_of, is_full_box, readers, splice, together, writers, written_between
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.structure.rows import product_of, uncertain

Pairs = dict[int, int]  # products with the sums of what they make


class Unpad(Transform):
    """Sums of products with zeros around some data run over the data only, under a condition.

    Needs finite values: the terms left out are ``0 * w``.
    """

    law = "unpad"
    equation = "p = 0; p[i - lo] = x[i]; y += p[e] * w  =>  y += x[e + lo] * w where 0 <= e + lo < n"
    needs = frozenset({"finite"})
    kinds = frozenset({"domain"})
    inverse = "pad"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(buffer=b.name)
            for b in kernel.buffers
            if b.role == "temp" and _copy(kernel, b.name) is not None and _read_by(kernel, b.name)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        name = site["buffer"]
        if site not in self.sites(kernel):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        copy = _copy(kernel, name)
        assert copy is not None
        x = copy.sources[0]
        assert isinstance(x, Access)

        def inside(a: Access) -> Access:
            values: dict[str, Affine] = {}
            for row, e in zip(copy.dest.index, a.index, strict=True):
                axis = row.names[0]
                values[axis] = e - (row - axis)
            return Access(x.buffer, tuple(r.substitute(values) for r in x.index), a.loc)

        parts: dict[int, tuple[Part, ...]] = dict.fromkeys(writers(kernel, name), ())
        for m, n in _read_by(kernel, name).items():
            product, total = kernel.statements[m], kernel.statements[n]
            k = next(k for k, y in enumerate(product.sources) if isinstance(y, Access) and y.buffer == name)
            padded = product.sources[k]
            assert isinstance(padded, Access)
            read = inside(padded)
            where = (*product.domain.where, *uncertain(kernel, read, product.domain.axes))
            domain = replace(product.domain, where=tuple(dict.fromkeys(where)))
            sources = tuple(read if j == k else y for j, y in enumerate(product.sources))
            parts[m] = ((replace(product, domain=domain, sources=sources), (m, *writers(kernel, name))),)
            parts[n] = ((replace(total, domain=domain), (n,)),)
        new, origin = splice(kernel, parts)
        origin = tuple(tuple(sorted(o)) for o in origin)
        return Rewrite(new, Correspondence(origin, buffers=((name, (x.buffer,)),)))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction has a condition where the kernel reads zeros."""
        at = mismatch.about("statement")
        if not self.answers(mismatch) or mismatch.about("relation") != "instruction-where":
            return ()
        return tuple(s for s in self.sites(kernel) if any(at in p for p in _read_by(kernel, s["buffer"]).items()))


def _copy(kernel: Kernel, name: str) -> Statement | None:
    """The copy of a whole buffer into the temporary, after zeros everywhere; None where it is made otherwise."""
    made = writers(kernel, name)
    if len(made) != 2:
        return None
    zero, copy = (kernel.statements[i] for i in made)
    x = copy.sources[0]
    zeros = zero.op == "copy" and isinstance(zero.sources[0], Literal) and zero.sources[0].value == 0
    if not zeros or not is_full_box(kernel, zero) or copy.op != "copy" or copy.domain.where:
        return None
    if not isinstance(x, Access):
        return None
    names = [axis_of(r) for r in x.index]
    shifted = [r.names[0] if len(r.terms) == 1 and r.terms[0][1] == 1 else "" for r in copy.dest.index]
    sizes = dict(zip(names, kernel.buffer(x.buffer).shape, strict=True))
    whole = all(sizes.get(a.name) == a.extent for a in copy.domain.axes)
    return copy if whole and sorted(names) == sorted(shifted) == sorted(copy.domain.names) else None


def _read_by(kernel: Kernel, name: str) -> Pairs:
    """The products that read the temporary, with their sums; empty where anything else reads it, or the data changes
    before the last of them."""
    made, used = writers(kernel, name), readers(kernel, name)
    sums = {product_of(kernel, n): n for n in range(len(kernel.statements))}
    pairs = {m: sums[m] for m in used if m in sums}
    x = kernel.statements[made[-1]].sources[0]
    if len(pairs) < len(used) or not used or used[0] < made[-1] or not isinstance(x, Access):
        return {}
    once = all(sum(isinstance(y, Access) and y.buffer == name for y in kernel.statements[m].sources) == 1 for m in used)
    kept = x.buffer not in written_between(kernel, made[-1], used[-1])
    return pairs if once and kept and together(kernel, *made, *used) else {}
