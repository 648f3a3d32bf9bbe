"""Run an axis backwards, or lay a buffer dimension out backwards: how a flipped filter becomes a plain one."""

from __future__ import annotations

from typing import ClassVar

from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import accesses, fresh, names_in, splice
from isam.transforms.law import Correspondence, Rewrite, Site, Transform
from isam.transforms.staging import Index, box_copy, reshaped, stageable
from isam.transforms.structure.axes import axis_names, joined


class ReverseAxis(Transform):
    """An axis along which nothing is summed runs from its end: ``k`` is ``K - 1 - k``."""

    law = "reverse-axis"
    equation = "forall k < K: f(k)  =>  forall k < K: f(K - 1 - k)"
    kinds = frozenset({"coefficient"})
    grows = True
    inverse = "reverse-axis"
    summed: ClassVar[bool] = False

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(axis=axis, statements=group)
            for axis in axis_names(kernel)
            for group in joined(kernel, axis)
            if any(_sums(kernel, i, axis) for i in group) is self.summed
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        axis, group = site["axis"], site["statements"]
        extent = kernel.statements[group[0]].domain.extent(axis)
        name = fresh(names_in(kernel), f"{axis}_r")
        value = extent - 1 - name

        def axes(i: int):
            s = kernel.statements[i]
            return [type(a)(name, a.extent) if a.name == axis else a for a in s.domain.axes]

        parts = {i: ((kernel.statements[i].substitute({axis: value}, axes(i)), (i,)),) for i in group}
        new, origin = splice(kernel, parts)
        meaning = ((name, f"{extent} - 1 - {axis}"),)
        return Rewrite(new, Correspondence(origin, axes=((axis, (name,)),), meanings=meaning))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The axis that a row takes with a negative coefficient where the instruction does not."""
        if not _is_backwards(mismatch):
            return ()
        names = _axes_of(kernel, mismatch)
        return tuple(s for s in self.sites(kernel) if s["axis"] in names)


class ReverseSum(ReverseAxis):
    """A summed axis runs from its end: the terms are added the other way round."""

    law = "reverse-sum"
    equation = "forall k < K: y += f(k)  =>  forall k < K: y += f(K - 1 - k)"
    needs = frozenset({"reassociates"})
    inverse = "reverse-sum"
    summed = True


class ReverseDimension(Transform):
    """A buffer whose dimension lies the other way round."""

    law = "reverse-dimension"
    equation = "b[i]  =>  r[D - 1 - i]   (r[D - 1 - i] = b[i])"
    kinds = frozenset({"coefficient"})
    grows = True
    inverse = "reverse-dimension"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(buffer=b.name, dim=d)
            for b in kernel.buffers
            if stageable(kernel, b.name)
            for d in range(len(b.shape))
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        buffer, d = site["buffer"], site["dim"]
        shape = kernel.buffer(buffer).shape

        def remap(index: Index) -> Index:
            return (*index[:d], shape[d] - 1 - index[d], *index[d + 1 :])

        meaning = f"{buffer} with dimension {d} backwards"
        return reshaped(kernel, buffer, shape, remap, box_copy(kernel, buffer, remap), meaning)

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        if not _is_backwards(mismatch):
            return ()
        place = (mismatch.about("buffer"), mismatch.about("row"))
        return tuple(s for s in self.sites(kernel) if (s["buffer"], s["dim"]) == place)


def _sums(kernel: Kernel, i: int, axis: str) -> bool:
    s = kernel.statements[i]
    return s.accumulate and axis in s.reduces


def _is_backwards(mismatch: Mismatch) -> bool:
    """The kernel's coefficient and the needed one have different signs."""
    return mismatch.kind == "coefficient" and mismatch.about("have") * mismatch.about("need") < 0


def _axes_of(kernel: Kernel, mismatch: Mismatch) -> tuple[str, ...]:
    """The axis the mismatch names, or those with a negative coefficient in the row it names."""
    if mismatch.about("axis"):
        return (mismatch.about("axis"),)
    buffer, row = mismatch.about("buffer"), mismatch.about("row")
    rows: list[Affine] = [
        x.index[row]
        for s in kernel.statements
        for x in accesses(s)
        if x.buffer == buffer and row is not None and row < len(x.index)
    ]
    return tuple(n for r in rows for n, c in r.terms if c < 0)
