"""Insert an identity: times one, a number as an array, a product with an identity matrix (TR-1, growth only)."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from isam.ir.affine import Affine
from isam.ir.dtype import DTYPES
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Literal, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import buffer_of, fresh, names_in, splice, used_by
from isam.transforms.law import Correspondence, Rewrite, Site, Transform

PRODUCT_SUM = {("mul", False), ("add", True)}


class TimesOne(Transform):
    """What is summed is multiplied by one first: an instruction that multiplies and adds can then add."""

    law = "times-one"
    wants = frozenset({"add"})
    makes = frozenset({"mul"})
    equation = "y += a  =>  y += a * 1"
    kinds = frozenset({"operation", "escapes"})
    grows = True

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        added = [i for i, s in enumerate(kernel.statements) if s.op == "add" and _numeric(kernel, s)]
        return tuple(Site.of(statement=i) for i in added)

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i = site["statement"]
        s = kernel.statements[i]
        name = fresh(names_in(kernel), "u")
        at = Access(name, tuple(Affine.of(a.name) for a in s.domain.axes), s.loc)
        term = replace(s, dest=at, op="mul", sources=(_added(s), Literal(1)), accumulate=False)
        dtype = kernel.buffer(s.dest.buffer).dtype
        made = Buffer(name, tuple(a.extent for a in s.domain.axes), dtype, "temp", declared=True)
        lines = ((term, (i,)), (replace(s, sources=(at,), accumulate=True), (i,)))
        new, origin = splice(kernel, {i: lines}, buffers=(*kernel.buffers, made))
        return Rewrite(new, Correspondence(origin, meanings=((name, str(_added(s))),)))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction adds products; here nothing is multiplied."""
        return _for_products(self, kernel, mismatch)


class NumberArray(Transform):
    """A number becomes an array that holds it everywhere, for an instruction that takes arrays only."""

    law = "number-array"
    equation = "y[i] = f(x[i], 2)  =>  t[i] = 2; y[i] = f(x[i], t[i])"
    kinds = frozenset({"literal", "axis-missing"})
    grows = True
    inverse = "inline"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(statement=i, source=k, axes=axes)
            for i, s in enumerate(kernel.statements)
            for k, x in enumerate(s.sources)
            if isinstance(x, Literal) and not isinstance(x.value, bool)
            for rank in (0, 1, 2)
            for axes in combinations(s.domain.names, rank)
            if any(isinstance(y, Access) for y in s.sources)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i, k, names = site["statement"], site["source"], site["axes"]
        s = kernel.statements[i]
        axes = tuple(a for a in s.domain.axes if a.name in names)
        name = fresh(names_in(kernel), "c")
        at = Access(name, tuple(Affine.of(a.name) for a in axes), s.loc)
        fill = Statement(Domain(axes), at, "copy", (s.sources[k],), False, s.loc)
        read = replace(s, sources=tuple(at if j == k else x for j, x in enumerate(s.sources)))
        made = Buffer(name, tuple(a.extent for a in axes), _dtype_of(kernel, s), "temp", declared=True)
        new, origin = splice(kernel, {i: ((fill, ()), (read, (i,)))}, buffers=(*kernel.buffers, made))
        return Rewrite(new, Correspondence(origin, meanings=((name, str(s.sources[k])),)))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """An array of that many dimensions is wanted in the place of a number."""
        at, rank = mismatch.about("statement"), mismatch.about("rank")
        if not self.answers(mismatch) or mismatch.about("buffer") is not None:
            return ()
        return tuple(s for s in self.sites(kernel) if s["statement"] == at and len(s["axes"]) == rank)


class IdentityMatrix(Transform):
    """Adding an array is adding its product with an identity matrix, along one of its axes: a matrix product can then
    add, or move. Zeros of the matrix meet every element, so infinities are not admitted."""

    law = "identity-matrix"
    wants = frozenset({"add"})
    makes = frozenset({"mul", "add", "copy"})
    equation = "y[i, j] += x[i, j]  =>  y[i, j] += x[i, k] * e[k, j]   (e[k, j] = 1 where k = j, else 0)"
    needs = frozenset({"reassociates", "rounding", "finite"})
    kinds = frozenset({"operation", "escapes"})
    grows = True

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(statement=i, axis=a.name)
            for i, s in enumerate(kernel.statements)
            if _numeric(kernel, s)
            for a in s.domain.axes
            if _passes(s, a.name) and all(a.name not in w.names for w in s.domain.where)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i, axis = site["statement"], site["axis"]
        s = kernel.statements[i]
        taken = names_in(kernel)
        inner = Axis(fresh(taken, f"{axis}_e"), s.domain.extent(axis))
        outer = Axis(axis, inner.extent)
        matrix, term = fresh(taken, "e"), fresh(taken, "u")
        x = _added(s)
        values = {axis: Affine.of(inner.name)}
        moved = x.substitute(values)
        cell = Access(matrix, (Affine.of(inner.name), Affine.of(axis)), s.loc)
        one = replace(cell, index=(Affine.of(axis), Affine.of(axis)))
        wide = replace(s.domain, axes=(*s.domain.axes, inner))
        at = Access(term, tuple(Affine.of(a.name) for a in wide.axes), s.loc)
        start = () if s.op == "add" else ((replace(s, op="copy", sources=(Literal(0),)), (i,)),)
        lines = (
            (Statement(Domain((inner, outer)), cell, "copy", (Literal(0),), False, s.loc), ()),
            (Statement(Domain((outer,)), one, "copy", (Literal(1),), False, s.loc), ()),
            (Statement(wide, at, "mul", (moved, cell), False, s.loc), (i,)),
            *start,
            (Statement(wide, s.dest, "add", (at,), True, s.loc), (i,)),
        )
        dtype = kernel.buffer(s.dest.buffer).dtype
        made = (Buffer(matrix, (inner.extent, inner.extent), dtype, "temp", declared=True),
                Buffer(term, tuple(a.extent for a in wide.axes), dtype, "temp", declared=True))  # fmt: skip
        new, origin = splice(kernel, {i: lines}, buffers=(*kernel.buffers, *made))
        return Rewrite(new, Correspondence(origin, meanings=((matrix, "an identity matrix"), (inner.name, axis))))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction adds products over an axis; here nothing is multiplied."""
        return _for_products(self, kernel, mismatch)


def _for_products(law: Transform, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
    """The sites of a law at the statement of which an instruction wants products."""
    if not law.answers(mismatch) or not _wants_products(mismatch):
        return ()
    return tuple(s for s in law.sites(kernel) if s["statement"] == mismatch.about("statement"))


def _added(s: Statement) -> Access:
    """The array that is added to the destination (also written ``y = y + x``), or copied there."""
    (x,) = (x for x in s.sources if x != s.dest)
    assert isinstance(x, Access)
    return x


def _numeric(kernel: Kernel, s: Statement) -> bool:
    """Does the statement add an array of numbers to another one, or copy it there?"""
    others = [x for x in s.sources if x != s.dest]
    plain = len(others) == 1 and isinstance(others[0], Access) and buffer_of(others[0]) != s.dest.buffer
    return s.op in ("add", "copy") and plain and DTYPES[kernel.buffer(s.dest.buffer).dtype].kind in "fiu"


def _passes(s: Statement, axis: str) -> bool:
    """Does the axis say which element is read, and where it goes?"""
    return axis in used_by(_added(s)) and axis in used_by(s.dest)


def _wants_products(m: Mismatch) -> bool:
    return set(m.about("does") or ()) >= PRODUCT_SUM


def _dtype_of(kernel: Kernel, s: Statement) -> str:
    """The dtype a number in the statement has: that of the arrays beside it."""
    beside = s.sources[1:] if s.op == "select" else s.sources
    named = [kernel.buffer(x.buffer).dtype for x in beside if isinstance(x, Access)]
    return named[0] if named else kernel.buffer(s.dest.buffer).dtype
