"""Unfold: what several axes index together is copied, or summed up, so that each has a dimension of its own (im2col
and col2im). The copy is folded again by `inline`."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.dtype import DTYPES
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Literal, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import axis_of, fresh, names_in, splice
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.structure.rows import uncertain, used_axes

IDENTITY = {"add": 0, "mul": 1, "max": float("-inf"), "min": float("inf")}


class Unfold(Transform):
    """A source whose rows mix or scale axes is copied first, one dimension per axis. A site with ``dim``: only what
    indexes that dimension gets dimensions of its own there, the others stay as they are; with ``axes``: the dimensions
    are in that order."""

    law = "unfold"
    equation = "f(x[a + b])  =>  u[a][b] = x[a + b]; f(u[a][b])"
    kinds = frozenset({"extra-dependence", "coefficient"})
    grows = True
    inverse = "inline"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(statement=i, source=k)
            for i, s in enumerate(kernel.statements)
            for k, x in enumerate(s.sources)
            if isinstance(x, Access) and is_bent(x, s) and x not in s.sources[:k]
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i, k = site["statement"], site["source"]
        s = kernel.statements[i]
        x = s.sources[k]
        assert isinstance(x, Access)
        taken = names_in(kernel)
        name = fresh(taken, f"{x.buffer}_u")
        axes, read, rows = _rows(kernel, s, x, site.get("dim"), taken)
        if site.get("axes") is not None:
            axes, read, rows = _ordered(axes, x, site["axes"], taken)
        copy = Access(name, tuple(Affine.of(a.name) for a in axes), x.loc)
        into = Statement(Domain(axes, uncertain(kernel, read, axes)), copy, "copy", (read,), False, x.loc)
        after = replace(s, sources=tuple(replace(copy, index=rows) if y == x else y for y in s.sources))
        shape = tuple(a.extent for a in axes)
        buffers = (*kernel.buffers, Buffer(name, shape, kernel.buffer(x.buffer).dtype, "temp", loc=x.loc))
        new, origin = splice(kernel, {i: ((into, ()), (after, (i,)))}, buffers=buffers)
        relation = ((x.buffer, (x.buffer, name)),)
        return Rewrite(new, Correspondence(origin, buffers=relation, meanings=((name, f"{x} for every index"),)))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The access whose rows do not fit: where the report names its statement, there."""
        if not self.answers(mismatch) or mismatch.about("layout"):
            return ()
        buffer, at = mismatch.about("buffer"), mismatch.about("statement")
        found = [s for s in self.sites(kernel) if _source(kernel, s).buffer == buffer]
        return tuple([s for s in found if s["statement"] == at] or found)


def _rows(
    kernel: Kernel, s: Statement, x: Access, dim: int | None, taken: set[str]
) -> tuple[tuple[Axis, ...], Access, tuple[Affine, ...]]:
    """What a copy goes over, what it reads there, and where the statement finds it."""
    axes = used_axes(x, s)
    if dim is None:
        return axes, x, tuple(Affine.of(a.name) for a in axes)
    out: list[Axis] = []
    read, rows = list(x.index), []
    for d, size in enumerate(kernel.buffer(x.buffer).shape):
        plain = next((a for a in axes if axis_of(x.index[d]) == a.name and a.extent == size), None)
        if d == dim or plain is not None:
            own = [a for a in axes if x.index[d].coefficient(a.name)]
            if any(a in out for a in own):
                raise NoSite(f"an axis counts dimension {d} of '{x.buffer}' and another one")
            out += own
            rows += [Affine.of(a.name) for a in own]
            continue
        name = fresh(taken, f"d{d}")
        taken.add(name)
        out.append(Axis(name, size))
        read[d] = Affine.of(name)
        rows.append(x.index[d])
    return tuple(out), replace(x, index=tuple(read)), tuple(rows)


def _ordered(
    axes: tuple[Axis, ...], x: Access, order: tuple[str, ...], taken: set[str]
) -> tuple[tuple[Axis, ...], Access, tuple[Affine, ...]]:
    """The same with dimensions in the order of the axes given; the copy's own axes have names of their own, so that
    what becomes of the statement's is not asked of it."""
    inside = sorted(axes, key=lambda a: order.index(a.name))
    own: dict[str, Affine | int] = {}
    for a in inside:
        name = fresh(taken, f"{a.name}_u")
        taken.add(name)
        own[a.name] = Affine.of(name)
    renamed = tuple(Axis(str(own[a.name]), a.extent) for a in inside)
    return renamed, x.substitute(own), tuple(Affine.of(a.name) for a in inside)


class UnfoldSum(Transform):
    """A sum into overlapping windows is made window by window first; the windows are then added up (col2im)."""

    law = "unfold-sum"
    equation = "y[a + b] += f  =>  u[a][b] = 0; u[a][b] += f; y[a + b] += u[a][b]"
    needs = frozenset({"reassociates", "rounding"})
    kinds = frozenset({"extra-dependence", "coefficient"})
    grows = True

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(statement=i)
            for i, s in enumerate(kernel.statements)
            if s.accumulate and s.op in IDENTITY and is_bent(s.dest, s)
            if s.op in ("add", "mul") or DTYPES[kernel.buffer(s.dest.buffer).dtype].kind == "f"
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i = site["statement"]
        s = kernel.statements[i]
        y, axes = s.dest, used_axes(s.dest, s)
        name = fresh(names_in(kernel), f"{y.buffer}_u")
        window = Access(name, tuple(Affine.of(a.name) for a in axes), y.loc)
        start = Statement(Domain(axes), window, "copy", (Literal(IDENTITY[s.op]),), False, y.loc)
        total = replace(s, dest=window)
        last = Statement(Domain(axes, uncertain(kernel, y, axes)), y, s.op, (window,), True, y.loc)
        shape = tuple(a.extent for a in axes)
        buffers = (*kernel.buffers, Buffer(name, shape, kernel.buffer(y.buffer).dtype, "temp", loc=y.loc))
        new, origin = splice(kernel, {i: ((start, (i,)), (total, (i,)), (last, (i,)))}, buffers=buffers)
        return Rewrite(new, Correspondence(origin, meanings=((name, f"windows of {y.buffer}"),)))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        if not self.answers(mismatch) or mismatch.about("layout"):
            return ()
        name = mismatch.about("buffer")
        return tuple(s for s in self.sites(kernel) if kernel.statements[s["statement"]].dest.buffer == name)


def is_bent(a: Access, s: Statement) -> bool:
    """Do rows of the access mix axes, scale one, or use one twice?"""
    seen: set[str] = set()
    bent = False
    for row in a.index:
        mine = [(n, c) for n, c in row.terms if n in s.domain.names]
        bent = bent or len(mine) > 1 or any(c != 1 or n in seen for n, c in mine)
        seen.update(n for n, _ in mine)
    return bent


def _source(kernel: Kernel, site: Site) -> Access:
    x = kernel.statements[site["statement"]].sources[site["source"]]
    assert isinstance(x, Access)
    return x
