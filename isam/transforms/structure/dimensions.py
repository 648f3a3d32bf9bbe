"""Split and permute buffer dimensions: how packed operands (IR-11) are reached."""

from __future__ import annotations

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Domain, Kernel, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import accesses, fresh, names_in, readers, writers
from isam.transforms.law import ON_DEMAND, Rewrite, Site, Transform
from isam.transforms.staging import Index, box_copy, reshaped, stageable


@dataclass(frozen=True)
class SplitDimension(Transform):
    """A dimension of size D becomes two, ``D / factor`` and ``factor``, where every index splits exactly. A site with
    ``view``: an argument is seen so."""

    factors: tuple[int, ...] = (2, 4, 8, 16)

    law = "split-dimension"
    equation = "b[f * a + i]  =>  b[a][i]   (0 <= i < f)"
    kinds = frozenset({"extra-dependence", "coefficient"})
    grows = True
    inverse = "fuse-dimensions"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(buffer=b.name, dim=d, factor=f)
            for b in kernel.buffers
            for d, size in enumerate(b.shape)
            for f in self.factors
            if divides(f, size)
            if stageable(kernel, b.name) and _splits(kernel, b.name, d, f)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        buffer, dim, factor = site["buffer"], site["dim"], site["factor"]
        b = kernel.buffer(buffer)
        taken = names_in(kernel)
        axes: list[Axis] = []
        shape = [*b.shape[:dim], split_row(b.shape[dim], factor)[0], Affine((), factor), *b.shape[dim + 1 :]]
        for size in shape:
            name = fresh(taken, f"d{len(axes)}")
            taken.add(name)
            axes.append(Axis(name, size))
        wide = tuple(Affine.of(a.name) for a in axes)
        narrow = (*wide[:dim], wide[dim] * factor + wide[dim + 1], *wide[dim + 2 :])
        source = Access(buffer, narrow, b.loc)
        copied = Statement(Domain(tuple(axes)), Access("", wide, b.loc), "copy", (source,), False, b.loc)

        def remap(index: Index) -> Index:
            whole, rest = split_row(index[dim], factor)
            return (*index[:dim], whole, rest, *index[dim + 1 :])

        meaning = f"{buffer} with dimension {dim} split into {shape[dim]} x {factor}"
        return reshaped(kernel, buffer, shape, remap, copied, meaning, bool(site.get("view")))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        if not self.answers(mismatch):
            return ()
        place = (mismatch.about("buffer"), mismatch.about("row"))
        found = SplitDimension(_coefficients(kernel, *place)).sites(kernel)
        return tuple(s for s in found if (s["buffer"], s["dim"]) == place)


class PermuteDimensions(Transform):
    """Two neighbouring dimensions change places: another layout of the same buffer."""

    law = "permute-dimensions"
    equation = "b[i][j]  =>  b[j][i]"
    kinds = frozenset({"coefficient"})
    inverse = "permute-dimensions"
    tried = ON_DEMAND

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(buffer=b.name, dim=d)
            for b in kernel.buffers
            if stageable(kernel, b.name)
            for d in range(len(b.shape) - 1)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        buffer, d = site["buffer"], site["dim"]
        b = kernel.buffer(buffer)

        def remap(index: Index) -> Index:
            return (*index[:d], index[d + 1], index[d], *index[d + 2 :])

        meaning = f"{buffer} with dimensions {d} and {d + 1} exchanged"
        return reshaped(kernel, buffer, remap(b.shape), remap, box_copy(kernel, buffer, remap), meaning)

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """A dimension that should lie closer moves one place towards the end."""
        if not self.answers(mismatch) or not mismatch.about("layout"):
            return ()
        place = (mismatch.about("buffer"), mismatch.about("row"))
        return tuple(s for s in self.sites(kernel) if (s["buffer"], s["dim"]) == place)


def divides(factor: int, size: Affine) -> bool:
    """Is the size a multiple of the factor, whatever the sizes in it are, and larger where it is a number?"""
    return split_row(size, factor)[1] == Affine() and (not size.is_constant or size.const > factor)


def split_row(row: Affine, factor: int) -> tuple[Affine, Affine]:
    """``row = factor * whole + rest`` with every term on the side its coefficient allows."""
    whole = Affine.from_terms([(n, c // factor) for n, c in row.terms if c % factor == 0], row.const // factor)
    rest = Affine.from_terms([(n, c) for n, c in row.terms if c % factor], row.const % factor)
    return whole, rest


def _splits(kernel: Kernel, buffer: str, dim: int, factor: int) -> bool:
    """Does every access stay within ``0 <= rest < factor``?"""
    for s in (kernel.statements[i] for i in sorted({*readers(kernel, buffer), *writers(kernel, buffer)})):
        ranges = {a.name: (0, a.extent.const - 1) for a in s.domain.axes if a.extent.is_constant}
        for a in accesses(s):
            if a.buffer != buffer:
                continue
            _, rest = split_row(a.index[dim], factor)
            if any(n not in ranges for n in rest.names):
                return False
            lo, hi = rest.bounds(ranges)
            if lo < 0 or hi >= factor:
                return False
    return True


def _coefficients(kernel: Kernel, buffer: str | None, dim: int | None) -> tuple[int, ...]:
    """The coefficients above 1 in that row of any access: the factors by which it could be split."""
    if dim is None:
        return ()
    rows = [a.index[dim] for s in kernel.statements for a in accesses(s) if a.buffer == buffer and dim < len(a.index)]
    return tuple(sorted({c for r in rows for _, c in r.terms if c > 1}))
