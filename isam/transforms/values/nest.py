"""Split one reduction into nested ones: partial results in a temporary, then a reduction over those (TR-1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dtype import DTYPES
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Literal, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import fresh, names_in, splice, used_by
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.structure.axes import SplitAxis, joined

NEUTRAL: dict[str, float | int] = {"add": 0, "mul": 1, "max": float("-inf"), "min": float("inf")}


def neutral(op: str, dtype: str) -> float | int | None:
    """What an accumulation over nothing leaves (IR-7); None where the language cannot write it: the least integer is a
    different number in every dtype, and exact arithmetic knows no least number."""
    return NEUTRAL[op] if op in ("add", "mul") or DTYPES[dtype].kind == "f" else None


@dataclass(frozen=True)
class NestSum(Transform):
    """``y op= a`` over ``k, r`` reduces ``r`` first, into one partial result per ``k``: many small sums side by side,
    as vector instructions make them. An axis may be cut first (``factor``), so that ``k`` is a part of it. At a site
    that keeps none (``kept`` is empty) the whole sum is made by itself, and then added to what is there."""

    law: str = "nest-sum"  # type: ignore[misc]
    ops: tuple[str, ...] = ("add", "mul")
    needs: frozenset[str] = frozenset({"reassociates", "rounding"})  # type: ignore[misc]
    factors: tuple[int, ...] = ()

    equation = "y op= a over k, r  =>  p[k] = identity; p[k] op= a over r; y op= p[k] over k"
    kinds = frozenset({"axis-missing"})
    grows = True
    inverse = "join"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        sums = [n for n, s in enumerate(kernel.statements) if _reduces(kernel, s, self.ops)]
        return tuple(x for n in sums for k in kernel.statements[n].reduces for x in self.along(kernel, n, k))

    def along(self, kernel: Kernel, n: int, axis: str) -> Iterator[Site]:
        """The sites at which a sum keeps a summed axis, or a part of it."""
        s = kernel.statements[n]
        if len(s.reduces) > 1 and _plan(kernel, s, (axis,)) is not None:
            yield Site.of(sum=n, kept=axis, factor=0)
        for f in self.factors if _plan(kernel, s, ()) is not None else ():  # the other part of the axis is summed first
            if _cuts(kernel, n, axis, f):
                yield Site.of(sum=n, kept=axis, factor=f)

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        n, kept, factor = site["sum"], site["kept"], site["factor"]
        back = Correspondence.identity(kernel)
        if factor:
            cut = SplitAxis((factor,)).apply(kernel, _cut_site(kernel, n, kept, factor))
            inner = next(new for new, text in cut.back.meanings if text == f"{kept} % {factor}")
            kernel, back, kept = cut.kernel, cut.back, inner
        step = _rewrite(kernel, n, (kept,) if kept else ())
        return Rewrite(step.kernel, back.then(step.back))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction keeps an axis of its result that the kernel sums away: partial results keep it."""
        at, axis = mismatch.about("statement"), mismatch.about("axis")
        if not self.answers(mismatch) or at is None:
            return ()
        s = kernel.statements[at]
        lacking = {dict(mismatch.about("roles") or ()).get(o) for o in mismatch.about("lacking") or ()}
        if s.dest.buffer not in lacking:
            return ()
        limit = mismatch.about("limit")
        law = replace(self, factors=(limit,)) if isinstance(limit, int) and limit > 1 else self
        found = [x for x in law.sites(kernel) if x["sum"] == at and (axis is None or x["kept"] == axis)]
        return tuple(x for x in found if x["factor"] or _fits(s.domain.extent(x["kept"]), limit))


NEST_SUMS = (
    NestSum(),
    NestSum("nest-extremum", ("max", "min"), frozenset({"exact"})),
)


def _fits(extent: Affine, limit: int | None) -> bool:
    return limit is None or (extent.is_constant and extent.const <= limit)


def _reduces(kernel: Kernel, s: Statement, ops: tuple[str, ...]) -> bool:
    return s.accumulate and s.op in ops and isinstance(s.sources[0], Access)


def _begin(kernel: Kernel, s: Statement) -> Source:
    """What partial results begin with: the identity, or, of an extremum that has none the language can write, what
    the whole result begins with: that it counts once more changes nothing."""
    value = neutral(s.op, kernel.buffer(s.dest.buffer).dtype)
    return s.dest if value is None else Literal(value)


def _cut_site(kernel: Kernel, n: int, axis: str, factor: int) -> Site:
    group = next(g for g in joined(kernel, axis) if n in g)
    return Site.of(axis=axis, statements=group, factor=factor)


def _cuts(kernel: Kernel, n: int, axis: str, factor: int) -> bool:
    return _cut_site(kernel, n, axis, factor) in SplitAxis((factor,)).sites(kernel)


@dataclass(frozen=True, slots=True)
class _Plan:
    """``axes``: those of the partial results; ``where``: their conditions."""

    axes: tuple[Axis, ...]
    where: tuple[Affine, ...]


def _plan(kernel: Kernel, s: Statement, kept: tuple[str, ...], alone: bool = False) -> _Plan | None:
    """None where a condition on summed axes also bounds the result's place, unless the whole sum is made by itself
    (``alone``): where it has no term, the identity is added."""
    inner = set(s.reduces) - set(kept)
    axes = tuple(a for a in s.domain.axes if a.name not in inner)
    mixed = {n for w in s.domain.where if inner & set(w.names) for n in w.names}
    if (mixed & used_by(s.dest) and not alone) or s.dest.buffer == getattr(s.sources[0], "buffer", ""):
        return None
    return _Plan(axes, tuple(w for w in s.domain.where if not inner & set(w.names)))


def _rewrite(kernel: Kernel, n: int, kept: tuple[str, ...]) -> Rewrite:
    s = kernel.statements[n]
    plan = _plan(kernel, s, kept, alone=not kept)
    dtype = kernel.buffer(s.dest.buffer).dtype
    if plan is None:
        raise NoSite(f"no partial results for {s.dest} over {', '.join(kept)}")
    name = fresh(names_in(kernel), "p")
    partial = Access(name, tuple(Affine.of(a.name) for a in plan.axes), s.loc)
    lines = (
        (Statement(Domain(plan.axes), partial, "copy", (_begin(kernel, s),), False, s.loc), ()),
        (replace(s, dest=partial), (n,)),
        (replace(s, domain=Domain(plan.axes, plan.where), sources=(partial,)), (n,)),
    )
    made = Buffer(name, tuple(a.extent for a in plan.axes), dtype, "temp", declared=True)
    new, origin = splice(kernel, {n: lines}, buffers=(*kernel.buffers, made))
    meaning = f"partial results of {s.dest}"
    return Rewrite(new, Correspondence(origin, meanings=((name, meaning),)))
