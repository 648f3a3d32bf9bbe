"""Group a chain of products or sums the other way."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.dataflow import levels
from isam.ir.kernel import Access, Kernel, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import readers, splice, writers
from isam.transforms.law import Correspondence, Rewrite, Site, Transform

CHAINS = ("add", "mul")


class Reassociate(Transform):
    """``(a op b) op c = a op (b op c)`` where the inner result is used nowhere else."""

    law = "reassociate"
    equation = "t = a op b; u = t op c  =>  t = b op c; u = a op t"
    needs = frozenset({"reassociates", "rounding"})
    kinds = frozenset({"extra-dependence"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(inner=i, outer=j, kept=k)
            for j in range(len(kernel.statements))
            for i in inner_of(kernel, j)
            for k in (0, 1)
            if isinstance(kernel.statements[i].sources[k], Access)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i, j, k = site["inner"], site["outer"], site["kept"]
        inner, outer = kernel.statements[i], kernel.statements[j]
        at = position(inner, outer)
        kept, moved = inner.sources[k], inner.sources[1 - k]
        first: tuple[Source, ...] = (moved, outer.sources[1 - at])
        joined = replace(outer, dest=inner.dest, sources=first)
        last = replace(outer, sources=(kept, inner.dest) if at == 0 else (inner.dest, kept))
        new, origin = splice(kernel, {i: (), j: ((joined, (i, j)), (last, (i, j)))})
        return Rewrite(new, Correspondence(origin))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        if not self.answers(mismatch):
            return ()
        name = mismatch.about("buffer")
        return tuple(s for s in self.sites(kernel) if kernel.statements[s["inner"]].dest.buffer == name)


def position(inner: Statement, outer: Statement) -> int:
    return next(n for n, x in enumerate(outer.sources) if isinstance(x, Access) and x.buffer == inner.dest.buffer)


def inner_of(kernel: Kernel, j: int) -> tuple[int, ...]:
    """The statement whose result ``j`` takes further with the same operation, over the same axes and index, when
    nothing in between writes what it reads."""
    s = kernel.statements[j]
    if s.op not in CHAINS or s.accumulate:
        return ()
    out: list[int] = []
    for x in s.sources:
        if not isinstance(x, Access) or kernel.buffer(x.buffer).role != "temp":
            continue
        made = writers(kernel, x.buffer)
        if len(made) != 1 or readers(kernel, x.buffer) != (j,) or sum(y == x for y in s.sources) != 1:
            continue
        inner = kernel.statements[made[0]]
        plain = inner.op == s.op and inner.domain == s.domain and inner.dest == x
        plain = plain and s.dest.buffer not in {a.buffer for a in inner.reads}
        if plain and made[0] < j and _untouched(kernel, made[0], j):
            out.append(made[0])
    return tuple(out)


def _untouched(kernel: Kernel, i: int, j: int) -> bool:
    """In one straight-line list, and nothing in between writes what statement ``i`` reads."""
    read = {x.buffer for x in kernel.statements[i].sources if isinstance(x, Access)}
    together = any(level.own >> i & 1 and level.own >> j & 1 for level in levels(kernel))
    return together and not any(s.dest.buffer in read for s in kernel.statements[i + 1 : j])
