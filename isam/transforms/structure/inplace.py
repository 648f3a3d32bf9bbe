"""In place: a temporary of which each element becomes one element of a result lies where that result will lie."""

from __future__ import annotations

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Domain, Kernel, Recurrence, Statement
from isam.transforms.edit import lone, readers, splice, writers
from isam.transforms.law import TAKEN, Correspondence, NoSite, Rewrite, Site, Transform


class InPlace(Transform):
    """The one statement that writes an argument is the last to read a temporary, at every point one element of each:
    what is written to the temporary is written to the argument, and made into the result there."""

    law = "in-place"
    equation = "t[i] = f(i); g(t[e]); y[i] = h(t[i])  =>  y[i] = f(i); g(y[e]); y[i] = h(y[i])"
    needs = frozenset({"exact"})
    kinds = frozenset()
    tried = TAKEN

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        temps = [b.name for b in kernel.buffers if b.role == "temp"]
        outs = [b.name for b in kernel.buffers if b.role == "out"]
        return tuple(Site.of(buffer=t, into=y) for y in outs for t in temps if _taken(kernel, t, y) is not None)

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        name, into = site["buffer"], site["into"]
        last = _taken(kernel, name, into)
        if last is None:
            raise NoSite(f"'{self.law}' does not apply at {site}")
        rows = next(a.index for a in last.reads if a.buffer == name)
        axes = [row.names[0] for row in rows]

        def moved(a: Access) -> Access:
            if a.buffer != name:
                return a
            values = dict(zip(axes, a.index, strict=True))
            return Access(into, tuple(row.substitute(values) for row in last.dest.index), a.loc)

        parts = {i: ((s.accessing(moved), (i,)),) for i, s in enumerate(kernel.statements)}
        new, origin = splice(kernel, parts)
        return Rewrite(new, Correspondence(origin, buffers=((name, (into,)),)))


def _taken(kernel: Kernel, name: str, into: str) -> Statement | None:
    """The statement that makes a result of a temporary, element by element, the first to write it and the last to touch
    the temporary."""
    made, used = writers(kernel, into), (*writers(kernel, name), *readers(kernel, name))
    t, y = kernel.buffer(name), kernel.buffer(into)
    if (t.role, y.role) != ("temp", "out") or t.dtype != y.dtype or made[:1] != (max(used, default=-1),):
        return None
    s = kernel.statements[made[0]]
    read = [a.index for a in s.reads if a.buffer == name]
    if len({*read}) != 1 or s.domain.where or any(isinstance(i, Recurrence) for i in kernel.body):
        return None
    rows = read[0]
    whole = all(lone(row) and s.domain.extent(row.names[0]) == n for row, n in zip(rows, t.shape, strict=True))
    if not whole or sorted(row.names[0] for row in rows) != sorted(s.domain.names):
        return None
    told = {n for row in s.dest.index for n in row.names} == set(s.domain.names)
    return s if told and all(_counts(row, s.domain) for row in s.dest.index) else None


def _counts(row: Affine, domain: Domain) -> bool:
    """Whether a row tells the values of its axes apart, as a number does its digits: each weighs more than all that
    lighter ones make up together."""
    reach = 0
    for name, weight in sorted(row.terms, key=lambda t: abs(t[1])):
        extent = domain.extent(name)
        if abs(weight) <= reach or not extent.is_constant:
            return len(row.terms) == 1
        reach += abs(weight) * (extent.const - 1)
    return True
