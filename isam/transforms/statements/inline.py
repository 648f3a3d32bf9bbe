"""Inline a temporary: who reads a copy reads the original (TR-1)."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.infer import groups
from isam.ir.kernel import Access, Kernel, Literal, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import (
    at_rows,
    buffer_of,
    fills_anew,
    readers,
    splice,
    together,
    writers,
    written_between,
)
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform


class Inline(Transform):
    """A temporary that holds a copy, or a number, is replaced in one reader by what it is a copy of."""

    law = "inline"
    equation = "t[i] = x[i]; y = f(t[e])  =>  y = f(x[e])"
    kinds = frozenset({"operation", "escapes", "extra-dependence"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(buffer=b.name, statement=j)
            for b in kernel.buffers
            for i in _copy_into(kernel, b.name)
            for j in readers(kernel, b.name)
            if _reader(kernel, i, j) is not None
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        name, j = site["buffer"], site["statement"]
        found = _copy_into(kernel, name)
        reader = _reader(kernel, found[0], j) if found else None
        if reader is None:
            raise NoSite(f"'{self.law}' does not apply at {site}")
        i = found[0]
        if readers(kernel, name) != (j,):
            new, origin = splice(kernel, {j: ((reader, (j,)),)})
            return Rewrite(new, Correspondence(origin))
        new, origin = splice(kernel, {i: (), j: ((reader, (i, j)),)})
        return Rewrite(new, Correspondence(origin, buffers=((name, ()),)))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """A copy stands where the instruction wants something else, or no instruction copies; or it gave axes rows of
        their own that the instruction wants in one."""
        if mismatch.kind == "extra-dependence":
            buffer = mismatch.about("buffer") if mismatch.about("shares") else None
            return tuple(s for s in self.sites(kernel) if s["buffer"] == buffer)
        at = mismatch.about("statement")
        if not self.answers(mismatch) or at is None:
            return ()
        return tuple(s for s in self.sites(kernel) if s["buffer"] == kernel.statements[at].dest.buffer)


def _copy_into(kernel: Kernel, name: str) -> tuple[int, ...]:
    """The one statement that fills the temporary, when it is a copy; in a recurrent loop, one of every element."""
    made = writers(kernel, name)
    if len(made) != 1 or kernel.buffer(name).role != "temp":
        return ()
    s = kernel.statements[made[0]]
    rows = at_rows(s.dest)
    if s.op != "copy" or rows is None or set(rows) != set(s.domain.names):
        return ()
    return made if fills_anew(kernel, made[0]) else ()


def _reader(kernel: Kernel, i: int, j: int) -> Statement | None:
    """The reader with the original in place of the copy; None where that would change its meaning."""
    copy, s = kernel.statements[i], kernel.statements[j]
    x, name = copy.sources[0], copy.dest.buffer
    if i > j or not together(kernel, i, j) or buffer_of(x) in written_between(kernel, i, j) | {s.dest.buffer}:
        return None
    rows = at_rows(copy.dest)
    assert rows is not None

    def swap(y: Source) -> Source:
        if not isinstance(y, Access) or y.buffer != name:
            return y
        values: dict[str, Affine | int] = dict(zip(rows, y.index, strict=True))
        return x.substitute(values)

    new = replace(s, sources=tuple(map(swap, s.sources)))
    return new if _typed(kernel, s, new) else None


def _typed(kernel: Kernel, old: Statement, new: Statement) -> bool:
    """A number has no dtype of its own: some array must still say in which one the operation works."""
    if not any(isinstance(x, Literal) for x in new.sources):
        return True
    return not any(all(isinstance(m, Literal) for m in g.members) for g in groups(new))
