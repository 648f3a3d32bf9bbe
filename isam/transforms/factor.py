"""Factor a term out of a sum: the step that turns a separable convolution into matrix products (TR-1, TR-3)."""

from __future__ import annotations

from dataclasses import replace

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dataflow import levels
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Literal, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import (
    buffer_of,
    fresh,
    lone,
    names_in,
    readers,
    splice,
    surely_some,
    used_by,
    writers,
    zero_at_all,
)
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.narrow import narrowed


class Factor(Transform):
    """``y += a * p`` where ``p`` does not mention some of the summed axes: those axes are summed first, into a new
    temporary that is zeroed explicitly (IR-7), and ``p`` multiplies the sum."""

    law = "factor"
    equation = "y += a * p over k, r  =>  z = 0; z += a over r; y += z * p over k   (p does not depend on r)"
    needs = frozenset({"reassociates", "rounding"})
    kinds = frozenset({"operation"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(sum=n, product=m, pulled=p)
            for n in range(len(kernel.statements))
            for m in product_of(kernel, n)
            for p in (0, 1)
            if _plan(kernel, n, m, p) is not None
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        n, m, pulled = site["sum"], site["product"], site["pulled"]
        plan = _plan(kernel, n, m, pulled) if m in product_of(kernel, n) else None
        if plan is None:
            raise NoSite(f"'{self.law}' does not apply at {site}")
        return _rewrite(kernel, n, m, pulled, plan)

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction sums where the kernel multiplies: pull the other factor out of that product; or, where that
        product is multiplied on before it is summed, what it is multiplied with."""
        if not self.answers(mismatch) or mismatch.about("need") not in (None, ("add", True)):
            return ()
        at, after = mismatch.about("statement"), mismatch.about("after")
        sites = self.sites(kernel)
        out = [s for s in sites if s["product"] == at]
        if not out and at is not None:
            onwards = multiplied_on(kernel, at)
            return tuple(s for s in sites if _term(kernel, s) == onwards.get(s["product"], ""))
        if after is not None:
            made = kernel.statements[after].dest.buffer
            out = [s for s in out if _term(kernel, s) == made] or out
        return tuple(out)


def _term(kernel: Kernel, site: Site) -> str | None:
    """The buffer that stays in the sum, if it is one."""
    return buffer_of(kernel.statements[site["product"]].sources[1 - site["pulled"]])


def multiplied_on(kernel: Kernel, n: int) -> dict[int, str]:
    """The products that what statement ``n`` makes goes through, each the only one to read the one before, with what
    they read of it."""
    out: dict[int, str] = {}
    while kernel.statements[n].op == "mul" and not kernel.statements[n].accumulate:
        made = kernel.statements[n].dest.buffer
        read = readers(kernel, made)
        if len(read) != 1 or read[0] <= n or kernel.statements[read[0]].op != "mul":
            break
        n = read[0]
        out[n] = made
    return out


@dataclass(frozen=True, slots=True)
class _Plan:
    """All in the axis names of the sum. ``inner``: axes of the inner sum; ``kept``: those the new temporary is indexed
    with; ``where_in``/``where_out``: conditions of the inner and the outer sum."""

    factor: Source
    term: Source
    inner: tuple[Axis, ...]
    kept: tuple[Axis, ...]
    outer: tuple[Axis, ...]
    where_in: tuple[Affine, ...]
    where_out: tuple[Affine, ...]


def product_of(kernel: Kernel, n: int) -> tuple[int, ...]:
    """The one statement whose product the sum ``n`` adds up, when nothing else reads or writes it."""
    s = kernel.statements[n]
    if not (s.accumulate and s.op == "add" and isinstance(s.sources[0], Access)):
        return ()
    u = s.sources[0].buffer
    made = writers(kernel, u)
    if kernel.buffer(u).role != "temp" or len(made) != 1 or readers(kernel, u) != (n,) or made[0] > n:
        return ()
    p = kernel.statements[made[0]]
    same_list = any(level.own >> n & 1 and level.own >> made[0] & 1 for level in levels(kernel))
    return made if p.op == "mul" and same_list else ()


def renaming(product: Statement, total: Statement) -> dict[str, Affine] | None:
    """The product's axes in the sum's names, by the temporary that joins them: plain axes in every dimension."""
    read = total.sources[0]
    assert isinstance(read, Access)
    out: dict[str, Affine] = {}
    for w, r in zip(product.dest.index, read.index, strict=True):
        if not (lone(w) and lone(r)) or w.names[0] in out:
            return None
        out[w.names[0]] = r
    return out if set(out) == set(product.domain.names) else None


def _plan(kernel: Kernel, n: int, m: int, pulled: int) -> _Plan | None:
    total, product = kernel.statements[n], kernel.statements[m]
    values = renaming(product, total)
    if values is None or isinstance(product.sources[1 - pulled], Literal):
        return None

    factor, term = (product.sources[k].substitute(values) for k in (pulled, 1 - pulled))
    moved = [a for a in total.reduces if a not in used_by(factor)]
    if not moved:
        return None
    axes = set(total.domain.names)
    inner = (used_by(term) & axes) | set(moved)
    while True:  # a condition that bounds the inner sum takes all its axes along
        more = {a for w in total.domain.where if inner & set(w.names) for a in w.names if a in axes} - inner
        if not more:
            break
        inner |= more
    kept = inner - set(moved)
    where = total.domain.where
    bounding = [w for w in where if set(moved) & set(w.names)]
    if not zero_at_all(kernel, total.dest.buffer) and not surely_some(total.domain, moved, bounding):
        return None  # what is added where the inner sum is empty is `p * 0`, which is not 0 for every `p`
    return _Plan(
        factor,
        term,
        tuple(a for a in total.domain.axes if a.name in inner),
        tuple(a for a in total.domain.axes if a.name in kept),
        tuple(a for a in total.domain.axes if a.name not in moved),
        tuple(w for w in where if inner & set(w.names)),
        tuple(w for w in where if not set(moved) & set(w.names)),
    )


def _rewrite(kernel: Kernel, n: int, m: int, pulled: int, plan: _Plan) -> Rewrite:
    total, product = kernel.statements[n], kernel.statements[m]
    dtype = kernel.buffer(total.dest.buffer).dtype
    taken = names_in(kernel)
    z, u = fresh(taken, "z"), product.dest.buffer
    index = tuple(Affine.of(a.name) for a in plan.kept)
    outer = tuple(Affine.of(a.name) for a in plan.outer)
    into, joined = Access(z, index, product.loc), Access(u, outer, product.loc)
    sources: list[Source] = [plan.factor, into] if pulled == 0 else [into, plan.factor]
    out_domain = Domain(plan.outer, plan.where_out)
    before = (
        (Statement(Domain(plan.kept), into, "copy", (Literal(0),), False, product.loc), (m, n)),
        (Statement(Domain(plan.inner, plan.where_in), into, "add", (plan.term,), True, product.loc), (m, n)),
        (Statement(out_domain, joined, "mul", tuple(sources), False, product.loc), (m,)),
    )
    after = ((Statement(out_domain, total.dest, "add", (joined,), True, total.loc), (n,)),)
    shape = tuple(a.extent for a in plan.outer)
    buffers = [replace(b, shape=shape) if b.name == u else b for b in kernel.buffers]
    buffers.append(Buffer(z, tuple(a.extent for a in plan.kept), dtype, "temp", declared=False))
    new, origin = splice(kernel, {m: before, n: after}, buffers=buffers)
    summed = ", ".join(a.name for a in plan.inner if a not in plan.kept)
    back = Correspondence(origin, meanings=((z, f"sum of {plan.term} over {summed}"),))
    inside = (z, plan.term.buffer) if isinstance(plan.term, Access) else (z,)
    return narrowed(new, inside, back)
