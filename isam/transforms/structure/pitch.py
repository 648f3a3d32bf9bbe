"""Pitch: a buffer's rows lie further apart than they are long (a padded leading dimension); trim: room that no access
uses is given back."""

from __future__ import annotations

import math

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.ir.mismatch import Mismatch
from isam.ir.ranges import nonnegative, upper
from isam.transforms.edit import accesses, splice
from isam.transforms.law import Correspondence, Rewrite, Site, Transform
from isam.transforms.staging import box_copy, reshaped, stageable
from isam.transforms.structure.rows import resized


@dataclass(frozen=True)
class Pitch(Transform):
    """A dimension has room for more than its elements; nobody reads or writes the rest."""

    factors: tuple[int, ...] = (16,)

    law = "pitch"
    equation = "b[i][j] in M x N  =>  p[i][j] in M x P   (N < P, p[i][j] = b[i][j])"
    kinds = frozenset({"coefficient"})
    grows = True
    inverse = "trim"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(buffer=b.name, dim=d, size=-(-n.const // f) * f)
            for b in kernel.buffers
            if stageable(kernel, b.name)
            for d, n in enumerate(b.shape)
            for f in self.factors
            if n.is_constant and n.const % f
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        buffer, d, size = site["buffer"], site["dim"], site["size"]
        shape = resized(kernel.buffer(buffer), d, Affine((), size)).shape
        copied = box_copy(kernel, buffer, lambda index: index)
        meaning = f"{buffer} with room for {size} along dimension {d}"
        return reshaped(kernel, buffer, shape, lambda index: index, copied, meaning)

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The dimension behind the one whose stride should be larger."""
        place = _stride(kernel, mismatch)
        if place is None:
            return ()
        buffer, d, size = place
        n = kernel.buffer(buffer).shape[d]
        if not stageable(kernel, buffer) or not n.is_constant or n.const >= size:
            return ()
        return (Site.of(buffer=buffer, dim=d, size=size),)


class Trim(Transform):
    """A temporary ends where its last access does."""

    law = "trim"
    equation = "t[i][j] in M x P, j < N < P  =>  t[i][j] in M x N"
    kinds = frozenset({"coefficient"})
    inverse = "pitch"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        found = (
            Site.of(buffer=b.name, dim=d, size=_used(kernel, b.name, d))
            for b in kernel.buffers
            if b.role == "temp"
            for d in range(len(b.shape))
        )
        return tuple(s for s in found if s["size"] > 0 and _is_less(kernel, s))

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        size = Affine((), site["size"])
        buffers = [resized(b, site["dim"], size) if b.name == site["buffer"] else b for b in kernel.buffers]
        new, origin = splice(kernel, {}, buffers=buffers)
        return Rewrite(new, Correspondence(origin))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        place = _stride(kernel, mismatch)
        return tuple(s for s in self.sites(kernel) if (s["buffer"], s["dim"], s["size"]) == place)


def _stride(kernel: Kernel, mismatch: Mismatch) -> tuple[str, int, int] | None:
    """(buffer, dimension, size) with which the stride that a report asks for would come about."""
    buffer, row, need = (mismatch.about(k) for k in ("buffer", "row", "need"))
    if mismatch.kind != "coefficient" or not mismatch.about("layout") or buffer not in kernel.by_name:
        return None
    shape = kernel.buffer(buffer).shape
    behind = shape[row + 2 :]
    if row + 1 >= len(shape) or not all(n.is_constant for n in behind):
        return None
    inner = math.prod(n.const for n in behind)
    return (buffer, row + 1, need // inner) if inner > 0 and need % inner == 0 else None


def _used(kernel: Kernel, buffer: str, d: int) -> int:
    """One more than the largest index along a dimension, 0 where that is not known as a number."""
    ends = [upper(a.index[d], s.domain.axes) for s in kernel.statements for a in accesses(s) if a.buffer == buffer]
    return max((e.const for e in ends), default=-1) + 1 if all(e.is_constant for e in ends) else 0


def _is_less(kernel: Kernel, site: Site) -> bool:
    size = kernel.buffer(site["buffer"]).shape[site["dim"]]
    return nonnegative(size - site["size"] - 1, kernel.syms)
