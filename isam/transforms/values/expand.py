"""Expand a sum of products whose factor is a sum: what is the same in all its steps is multiplied once (TR-1)."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.dtype import DTYPES
from isam.ir.kernel import Access, Buffer, Domain, Kernel, Literal, Source, Statement
from isam.transforms.edit import (
    Part,
    at_rows,
    buffer_of,
    fresh,
    made_by,
    names_in,
    read_as,
    readers,
    splice,
    used_by,
    written_between,
)
from isam.transforms.factor import Factor, product_of, renaming
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.narrow import narrowed


class Expand(Transform):
    """``y += (p + q) * w``, in integers, where ``q`` is the same in every step of the sum: ``q`` times the sum of all
    ``w``, and the sum of the products of ``p``. What ``w`` is cast from is cast for its own sum anew, in the order in
    which it lies."""

    law = "expand"
    equation = "t = p + q; y += t * w over k  =>  z = 0; z += w over k; y += q * z; y += p * w   (p - q: -q * z)"
    grows = True
    wants = frozenset({"mul", "add"})
    makes = frozenset({"add", "cast", "copy", "neg"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(sum=n, product=m, factor=k, added=j, same=q)
            for n in range(len(kernel.statements))
            for m in product_of(kernel, n)
            for k in (0, 1)
            for j in made_by(kernel, m, kernel.statements[m].sources[k])
            for q in (0, 1)
            if _holds(kernel, n, m, k, j, q)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        if site not in self.sites(kernel):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        n, m, k, j, q = (site[x] for x in ("sum", "product", "factor", "added", "same"))
        total, product, added = (kernel.statements[i] for i in (n, m, j))
        t, w, read = product.sources[k], product.sources[1 - k], total.sources[0]
        assert isinstance(t, Access)
        assert isinstance(w, Access)
        assert isinstance(read, Access)
        p, same = (added.sources[i].substitute(read_as(added.dest, t)) for i in (1 - q, q))
        parts, made, taken = list[Part](), list[Buffer](), names_in(kernel)

        def put(s: Statement, base: str, axes: tuple[str, ...], origin: int) -> Access:
            """The statement over some of its axes, into a temporary of its own, a dimension per axis."""
            name, dtype = fresh(taken, base), kernel.buffer(s.dest.buffer).dtype
            taken.add(name)
            over = tuple(a for n in axes for a in s.domain.axes if a.name == n)
            made.append(Buffer(name, tuple(a.extent for a in over), dtype, "temp", declared=True))
            at = replace(s.dest, buffer=name, index=tuple(Affine.of(a.name) for a in over))
            parts.append((replace(s, domain=Domain(over, s.domain.where), dest=at), (origin,)))
            return at

        if added.op == "sub" and isinstance(same, Literal):
            same = Literal(-same.value)
        elif added.op == "sub":
            axes = tuple(a for a in product.domain.names if a in used_by(same))
            same = put(replace(product, op="neg", sources=(same,)), "q", axes, j)
        own: Source = w
        for c in made_by(kernel, m, w):
            cast = kernel.statements[c]
            x = cast.sources[0]
            if cast.op == "cast" and isinstance(x, Access):
                own = put(cast, "w", at_rows(x) or at_rows(cast.dest) or (), c).substitute(read_as(cast.dest, w))
        u = put(replace(product, sources=_two(k, same, own)), "u", product.domain.names, m)
        at = renaming(product, total)
        assert at is not None
        parts += [(replace(total, sources=(u.substitute(at),)), (n,)), (total, (n,))]
        gone: dict[int, tuple[Part, ...]] = {j: ()} if readers(kernel, t.buffer) == (m,) else {}
        rest = ((replace(product, sources=_two(k, p, w)), (m,)),)
        new, origin = splice(kernel, {**gone, m: rest, n: parts}, buffers=(*kernel.buffers, *made))
        first = next(i for i, s in enumerate(new.statements) if s.dest.buffer == u.buffer)
        step = Factor().apply(new, Site.of(sum=first + 1, product=first, pulled=k))
        return narrowed(step.kernel, (u.buffer,), Correspondence(origin).then(step.back))


def _two(k: int, one: Source, other: Source) -> tuple[Source, Source]:
    """Two factors, the first of them as the one numbered ``k``."""
    return (one, other) if k == 0 else (other, one)


def _holds(kernel: Kernel, n: int, m: int, k: int, j: int, q: int) -> bool:
    total, product, added = (kernel.statements[i] for i in (n, m, j))
    t, w, names = product.sources[k], product.sources[1 - k], renaming(product, total)
    if added.op not in ("add", "sub") or (added.op == "sub" and q == 0) or names is None:
        return False
    if DTYPES[kernel.buffer(total.dest.buffer).dtype].kind not in "iu" or not isinstance(t, Access):
        return False
    if not isinstance(w, Access) or buffer_of(w) == t.buffer or not isinstance(added.sources[1 - q], Access):
        return False
    same = added.sources[q].substitute(read_as(added.dest, t))
    moves = used_by(same.substitute(names)) & set(total.reduces)
    if moves or not total.reduces or (added.op == "sub" and isinstance(same, Access) and product.domain.where):
        return False
    made = (kernel.statements[c] for c in made_by(kernel, m, w))
    late = {buffer_of(x) for x in (same, w, *(x for s in made for x in s.sources))}
    return not late & {total.dest.buffer, *written_between(kernel, m, n)}
