"""Join nested reductions into one: the inverse of nesting (TR-1)."""

from __future__ import annotations

from dataclasses import replace

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import REDUCTIONS, Access, Axis, Domain, Kernel, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import (
    at_rows,
    buffer_of,
    fresh,
    is_full_box,
    names_in,
    readers,
    splice,
    together,
    writers,
    written_between,
)
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.values.nest import neutral


class Join(Transform):
    """Partial results that are only reduced further, with the same operation, need not be kept: one reduction."""

    law = "join"
    equation = "p[k] = identity; p[k] op= a over r; y op= p[k] over k  =>  y op= a over k, r"
    needs = frozenset({"reassociates", "rounding"})
    kinds = frozenset({"operation", "escapes"})
    inverse = "nest-sum"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        found = (_parts(kernel, n) for n in range(len(kernel.statements)))
        return tuple(Site.of(sum=p.outer) for p in found if p is not None)

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        p = _parts(kernel, site["sum"])
        if p is None:
            raise NoSite(f"'{self.law}' does not apply at {site}")
        name = kernel.statements[p.inner].dest.buffer
        new, origin = splice(kernel, {p.start: (), p.inner: (), p.outer: ((p.joined, (p.start, p.inner, p.outer)),)})
        return Rewrite(new, Correspondence(origin, buffers=((name, ()),)))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """Something stands between the terms and the result that the instruction sums them into."""
        at = mismatch.about("statement")
        if not self.answers(mismatch):
            return ()
        found = (_parts(kernel, n) for n in range(len(kernel.statements)))
        return tuple(Site.of(sum=p.outer) for p in found if p is not None and at in (p.start, p.inner, p.outer))


@dataclass(frozen=True, slots=True)
class _Parts:
    start: int
    inner: int
    outer: int
    joined: Statement


def _parts(kernel: Kernel, n: int) -> _Parts | None:
    """The statements that fill the temporary which ``n`` reduces (or adds to its destination in place)."""
    outer = kernel.statements[n]
    p = _reduced(outer)
    if p is None or kernel.buffer(p.buffer).role != "temp" or readers(kernel, p.buffer) != (n,):
        return None
    made = writers(kernel, p.buffer)
    if len(made) != 2 or made[1] > n or not together(kernel, *made, n):
        return None
    start, inner = (kernel.statements[i] for i in made)
    value = neutral(outer.op, kernel.buffer(p.buffer).dtype)
    number = getattr(start.sources[0], "value", None)
    if value is None or start.op != "copy" or number != value or not is_full_box(kernel, start):
        return None
    term, rows = inner.sources[0], at_rows(inner.dest)
    if not inner.accumulate or inner.op != outer.op or rows is None:
        return None
    if any(inner.domain.extent(a) != size for a, size in zip(rows, kernel.buffer(p.buffer).shape, strict=True)):
        return None
    if buffer_of(term) in written_between(kernel, made[1], n) | {outer.dest.buffer}:
        return None
    return _Parts(made[0], made[1], n, _joined(kernel, p, inner, outer, rows))


def _reduced(outer: Statement) -> Access | None:
    """The access that a reduction (or ``y = y + p``) adds to its destination."""
    if outer.op not in REDUCTIONS:
        return None
    others = [x for x in outer.sources if x != outer.dest]
    own = len(outer.sources) - len(others)
    return others[0] if own == (0 if outer.accumulate else 1) and isinstance(others[0], Access) else None


def _joined(kernel: Kernel, p: Access, inner: Statement, outer: Statement, rows: tuple[str, ...]) -> Statement:
    taken = names_in(kernel)
    values: dict[str, Affine | int] = dict(zip(rows, p.index, strict=True))
    axes = list(outer.domain.axes)
    for a in inner.domain.axes:
        if a.name not in rows:
            name = a.name if a.name not in outer.domain.names else fresh(taken, a.name)
            values[a.name] = Affine.of(name)
            axes.append(Axis(name, a.extent))
    where = (*outer.domain.where, *(w.substitute(values) for w in inner.domain.where))
    term = inner.sources[0].substitute(values)
    return replace(outer, domain=Domain(tuple(axes), where), sources=(term,), accumulate=True)
