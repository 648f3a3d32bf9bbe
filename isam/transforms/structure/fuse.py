"""Fuse two axes into one, and two buffer dimensions into one: what was a box of rows is one long row."""

from __future__ import annotations

from typing import Any

from isam.ir.affine import Affine
from isam.ir.kernel import Axis, Kernel, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import accesses, axis_of, fresh, names_in, splice
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.staging import Index, box_copy, reshaped, stageable
from isam.transforms.structure.axes import axis_names, joined
from isam.transforms.structure.rows import inside


class FuseDimensions(Transform):
    """Two neighbouring dimensions become one, row after row; the inner size is a number. A site with ``view``: an
    argument is seen so."""

    law = "fuse-dimensions"
    equation = "b[i][j]  =>  b[J * i + j]   (0 <= j < J)"
    kinds = frozenset({"domain", "extra-dependence"})
    grows = True
    inverse = "split-dimension"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(buffer=b.name, dim=d)
            for b in kernel.buffers
            if stageable(kernel, b.name)
            for d, size in enumerate(b.shape[1:])
            if size.is_constant
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        buffer, d = site["buffer"], site["dim"]
        shape = kernel.buffer(buffer).shape
        size = shape[d + 1].const

        def remap(index: Index) -> Index:
            return (*index[:d], index[d] * size + index[d + 1], *index[d + 2 :])

        new = (*shape[:d], shape[d] * size, *shape[d + 2 :])
        meaning = f"{buffer} with dimensions {d} and {d + 1} as one"
        return reshaped(kernel, buffer, new, remap, box_copy(kernel, buffer, remap), meaning, bool(site.get("view")))

    def demand(self, site: Site) -> tuple[Any, ...]:
        return (site["buffer"],)

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """An operand whose axes share a row wants them in one dimension; an axis left over wants to be fused first
        where it indexes data."""
        if mismatch.about("shares"):
            row = mismatch.about("row")
            places = [(mismatch.about("buffer"), d) for d in (row, row - 1)]
            return tuple(s for s in self.sites(kernel) if (s["buffer"], s["dim"]) in places)
        if mismatch.about("relation") == "left-over":
            axis = mismatch.about("axis")
            return tuple(s for s in self.sites(kernel) if _indexes_pair(kernel, s["buffer"], s["dim"], axis))
        return ()


class FuseAxes(Transform):
    """Two axes that every access takes proportionally are one: the outer's column is the inner's times its extent. A
    site may name some only of the statements that share them: others go on in two loops."""

    law = "fuse-axes"
    equation = "forall a < A, b < B: f(B * a + b)  =>  forall c < A * B: f(c)"
    kinds = frozenset({"domain"})
    inverse = "split-axis"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(outer=a, inner=b, statements=group)
            for a in axis_names(kernel)
            for group in joined(kernel, a)
            for b in kernel.statements[group[0]].domain.names
            if a != b and _fuses(kernel, group, a, b)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        a, b, group = site["outer"], site["inner"], site["statements"]
        if not _fuses(kernel, group, a, b):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        name = fresh(names_in(kernel), f"{a}_{b}")
        size = kernel.statements[group[0]].domain.extent(b).const
        back = Correspondence.identity(kernel)
        for buffer, dim in _pairs(kernel, group, a, b):
            step = FuseDimensions().apply(kernel, Site.of(buffer=buffer, dim=dim))
            kernel, back = step.kernel, back.then(step.back)

        def one(s: Statement) -> Statement:
            axes = [Axis(name, x.extent * size) if x.name == a else x for x in s.domain.axes if x.name != b]
            return s.substitute({a: 0, b: Affine.of(name)}, axes)

        new, origin = splice(kernel, {i: ((one(kernel.statements[i]), (i,)),) for i in group})
        step = Correspondence(origin, axes=((a, (name,)), (b, (name,))), meanings=((name, f"{size}*{a} + {b}"),))
        return Rewrite(new, back.then(step))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        if mismatch.about("relation") != "left-over":
            return ()
        axis = mismatch.about("axis")
        return tuple(s for s in self.sites(kernel) if axis in (s["outer"], s["inner"]))


def _pairs(kernel: Kernel, group: tuple[int, ...], a: str, b: str) -> tuple[tuple[str, int], ...]:
    """Dimensions (a, b) of temporaries that only the group uses: they are fused with the axes."""
    size = kernel.statements[group[0]].domain.extent(b)
    out: list[tuple[str, int]] = []
    for name in inside(kernel, group):
        shape = kernel.buffer(name).shape
        rows = [x.index for i in group for x in accesses(kernel.statements[i]) if x.buffer == name]
        for d in range(len(shape) - 1):
            if shape[d + 1] == size and all((axis_of(r[d]), axis_of(r[d + 1])) == (a, b) for r in rows):
                out.append((name, d))
                break
    return tuple(out)


def _fuses(kernel: Kernel, group: tuple[int, ...], a: str, b: str) -> bool:
    """Does every statement have both axes, the inner one with one extent, and take them proportionally?"""
    both = bool(group) and all({a, b} <= set(kernel.statements[i].domain.names) for i in group)
    if not both or not (first := kernel.statements[group[0]].domain.extent(b)).is_constant:
        return False
    kept = set(_pairs(kernel, group, a, b))
    for i in group:
        s = kernel.statements[i]
        if s.domain.extent(b) != first or not _in_order(s, a, b):
            return False
        rows = [
            r
            for x in accesses(s)
            for d, r in enumerate(x.index)
            if (x.buffer, d) not in kept and (x.buffer, d - 1) not in kept
        ]
        if any(r.coefficient(a) != first.const * r.coefficient(b) for r in (*rows, *s.domain.where)):
            return False
    return True


def _in_order(s: Statement, a: str, b: str) -> bool:
    """Does the fused axis keep the order of an accumulation's terms? Always when nothing is summed up along it."""
    names = s.domain.names
    return names.index(b) == names.index(a) + 1 or not (s.accumulate and a in s.reduces)


def _indexes_pair(kernel: Kernel, buffer: str, dim: int, axis: str | None) -> bool:
    """Some access has that axis alone in one of the two dimensions and another one alone in the other."""
    for group in joined(kernel, axis or ""):
        for x in (x for i in group for x in accesses(kernel.statements[i]) if x.buffer == buffer):
            pair = axis_of(x.index[dim]), axis_of(x.index[dim + 1])
            if axis in pair and all(pair) and buffer not in inside(kernel, group):
                return True
    return False
