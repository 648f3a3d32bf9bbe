"""Fission and its inverse: a statement with two operands as an assignment and an accumulation (TR-1)."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.kernel import REDUCTIONS, Kernel, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import (
    at_rows,
    buffer_of,
    splice,
    together,
    touched_between,
    writers,
    written_between,
)
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform


class Fission(Transform):
    """``y = a op b`` writes ``a`` first and takes ``b`` in after, as accumulating instructions do."""

    law = "fission"
    equation = "y = a op b  =>  y = a; y op= b   (b is not y)"
    kinds = frozenset({"operation"})
    grows = True
    inverse = "fusion"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(statement=i, first=k)
            for i, s in enumerate(kernel.statements)
            if s.op in REDUCTIONS and not s.accumulate
            for k in (0, 1)
            if s.sources[k] != s.dest and buffer_of(s.sources[1 - k]) != s.dest.buffer
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i, k = site["statement"], site["first"]
        s = kernel.statements[i]
        start = replace(s, op="copy", sources=(s.sources[k],))
        after = replace(s, sources=(s.sources[1 - k],), accumulate=True)
        new, origin = splice(kernel, {i: ((start, (i,)), (after, (i,)))})
        return Rewrite(new, Correspondence(origin))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction accumulates with this operation; the kernel applies it to two operands."""
        at, does = mismatch.about("statement"), mismatch.about("does") or ()
        if not self.answers(mismatch) or at is None or (kernel.statements[at].op, True) not in does:
            return ()
        return tuple(s for s in self.sites(kernel) if s["statement"] == at)


class Fusion(Transform):
    """``y = a; y op= b`` over the same elements is one operation."""

    law = "fusion"
    equation = "y = a; y op= b  =>  y = a op b"
    kinds = frozenset({"operation"})
    inverse = "fission"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(first=i, second=j)
            for j, s in enumerate(kernel.statements)
            for i in writers(kernel, s.dest.buffer)
            if _first(kernel, i, j) is not None
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i, j = site["first"], site["second"]
        first = _first(kernel, i, j)
        if first is None:
            raise NoSite(f"'{self.law}' does not apply at {site}")
        s = kernel.statements[j]
        both = replace(s, sources=(first, *_added(s)), accumulate=False)
        new, origin = splice(kernel, {i: (), j: ((both, (i, j)),)})
        return Rewrite(new, Correspondence(origin))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction applies the operation to two operands and the kernel accumulates; or nothing copies."""
        at, need = mismatch.about("statement"), mismatch.about("need")
        if not self.answers(mismatch):
            return ()
        found = [s for s in self.sites(kernel) if at in (s["first"], s["second"])]
        lost = mismatch.about("missing")
        return tuple(s for s in found if (lost and at == s["first"]) or need == (_op(kernel, s), False))


def _op(kernel: Kernel, site: Site) -> str:
    return kernel.statements[site["second"]].op


def _added(s: Statement) -> tuple[Source, ...]:
    """What an accumulation, or ``y = y op b``, takes in."""
    return s.sources if s.accumulate else tuple(x for x in s.sources if x != s.dest)


def _first(kernel: Kernel, i: int, j: int) -> Source | None:
    """What statement ``i`` writes, in the names of the accumulation ``j`` over the very same elements."""
    first, second = kernel.statements[i], kernel.statements[j]
    if i >= j or first.op != "copy" or not together(kernel, i, j):
        return None
    if second.op not in REDUCTIONS or second.dest.buffer != first.dest.buffer:
        return None
    x, y, added = first.sources[0], first.dest.buffer, _added(second)
    if len(added) != 1 or y in {buffer_of(x), buffer_of(added[0])} or y in touched_between(kernel, i, j):
        return None
    if buffer_of(x) in written_between(kernel, i, j):
        return None
    values = _same_elements(first, second)
    return None if values is None else x.substitute(values)


def _same_elements(first: Statement, second: Statement) -> dict[str, Affine | int] | None:
    """The first statement's axes in the second's names when both touch each element once, the same ones."""
    a, b = at_rows(first.dest), at_rows(second.dest)
    if a is None or b is None or set(a) != set(first.domain.names) or set(b) != set(second.domain.names):
        return None
    values: dict[str, Affine | int] = {x: Affine.of(y) for x, y in zip(a, b, strict=True)}
    same = all(first.domain.extent(x) == second.domain.extent(y) for x, y in zip(a, b, strict=True))
    where = {w.substitute(values) for w in first.domain.where}
    return values if same and where == set(second.domain.where) else None
