"""Round an axis up: a 45-wide axis runs over 48, its buffers have zeros in the lanes added, and nobody sees those."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import isfinite
from typing import ClassVar

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dataflow import levels
from isam.ir.kernel import Access, Axis, Buffer, Kernel, Literal, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import Part, accesses, axis_of, fresh, names_in, splice, writers
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.staging import box_copy
from isam.transforms.structure.axes import axis_names, joined
from isam.transforms.structure.rows import filled, resized

Wide = dict[str, int]  # buffers with the dimension that grows
ZERO_OF_ZEROS = frozenset({"copy", "cast", "neg", "add", "sub", "mul", "max", "min"})


@dataclass(frozen=True)
class RoundUp(Transform):
    """An axis along which nothing is summed gets more steps: what they compute is written beside the result. A site
    with ``near``: zeros in a temporary are written just before it is made, not at the begin of the kernel."""

    factors: tuple[int, ...] = (4, 16)

    law = "round-up"
    equation = "forall i < n: y[i] = f(x[i])  =>  x' = 0; x'[i] = x[i]; forall i < m: y'[i] = f(x'[i]); y[i] = y'[i]"
    kinds = frozenset({"extent"})
    grows = True
    summed: ClassVar[bool] = False

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        found = (
            Site.of(axis=a, statements=group, extent=-(-n // f) * f)
            for a in axis_names(kernel)
            for group in dict.fromkeys(_group(kernel, a, g) for g in joined(kernel, a))
            for n in (_extent(kernel, a, group),)
            for f in self.factors
        )
        return tuple(dict.fromkeys(s for s in found if self._holds(kernel, s)))

    def _holds(self, kernel: Kernel, site: Site) -> bool:
        axis, group = site["axis"], site["statements"]
        wide = _wide(kernel, axis, group)
        if not 0 < _extent(kernel, axis, group) < site["extent"]:
            return False
        if wide is None or any(_summed(kernel.statements[i], axis) for i in group) is not self.summed:
            return False
        zeros = _zeros(kernel, axis, group, wide)
        return all(
            not _summed(s, axis) or (s.accumulate and s.op == "add" and _is_zero(s.sources[0], axis, zeros))
            for s in (kernel.statements[i] for i in group)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        axis, group, extent = site["axis"], site["statements"], site["extent"]
        wide = _wide(kernel, axis, group) if self._holds(kernel, site) else None
        if wide is None:
            raise NoSite(f"'{self.law}' does not apply at {site}")
        size = Affine((), extent)
        taken = names_in(kernel)
        names = {b: b if kernel.buffer(b).role == "temp" else fresh(taken, f"{b}_w") for b in wide}
        made: list[Buffer] = []
        first: list[Part] = []
        last: list[Part] = []
        before: dict[int, list[Part]] = {}
        for b, d in wide.items():
            old = kernel.buffer(b)
            new = replace(resized(old, d, size), name=names[b], role="temp", declared=True)
            made.append(new)
            if old.role == "inout" or _unfilled(kernel, b, group):
                maker = _maker(kernel, b) if site.get("near") else None
                (first if maker is None else before.setdefault(maker, [])).append((filled(kernel, new), ()))
            into, back = _copies(kernel, b, names[b])
            first.extend([(into, ())] if old.role in ("in", "const", "inout") else [])
            last.extend([(back, ())] if old.role in ("out", "inout") else [])
        wider = ((i, _widened(kernel, i, site, names, size)) for i in range(len(kernel.statements)))
        parts = {i: (*before.get(i, ()), (s, (i,))) for i, s in wider}
        kept = [b for b in kernel.buffers if b.name not in wide or b.role != "temp"]
        new, origin = splice(kernel, parts, buffers=[*kept, *made], first=first, last=last)
        relation = tuple(sorted((b, (b, n)) for b, n in names.items() if b != n))
        meanings = tuple((n, f"{b} with room for {extent} along dimension {wide[b]}") for b, n in names.items())
        return Rewrite(new, Correspondence(origin, buffers=relation, meanings=meanings))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The axis of which a call takes other numbers of steps, to the next number that calls take."""
        padded, axis, at = (mismatch.about(k) for k in ("padded", "axis", "statement"))
        if not self.answers(mismatch) or padded is None:
            return ()
        found = (_group(kernel, axis, g) for g in joined(kernel, axis) if at in g)
        sites = (Site.of(axis=axis, statements=g, extent=padded) for g in found)
        return tuple(s for s in sites if self._holds(kernel, s))


class RoundUpSum(RoundUp):
    """A summed axis gets more steps, in which zeros are added: neutral but for the sign of a zero."""

    law = "round-up-sum"
    equation = "forall k < n: y += a[k] * b[k]  =>  a', b' = a, b beside zeros; forall k < m: y += a'[k] * b'[k]"
    needs = frozenset({"reassociates"})
    summed = True


def _extent(kernel: Kernel, axis: str, group: tuple[int, ...]) -> int:
    """The axis' extent, 0 where it is no number."""
    e = kernel.statements[group[0]].domain.extent(axis)
    return e.const if e.is_constant else 0


def _group(kernel: Kernel, axis: str, group: tuple[int, ...]) -> tuple[int, ...]:
    """With the statements that have the axis and share what the group writes along it."""
    extent = kernel.statements[group[0]].domain.extent(axis)
    found = set(group)
    while True:
        written = {kernel.statements[i].dest.buffer for i in found if not _summed(kernel.statements[i], axis)}
        more = {
            i
            for i, s in enumerate(kernel.statements)
            if axis in s.domain.names and s.domain.extent(axis) == extent and s.dest.buffer in written
        }
        more |= {i for g in joined(kernel, axis) if more & set(g) for i in g}
        if more <= found:
            return tuple(sorted(found))
        found |= more


def _wide(kernel: Kernel, axis: str, group: tuple[int, ...]) -> Wide | None:
    """The buffers that the axis indexes, plainly, each in one dimension of its extent; None where it is otherwise."""
    extent = kernel.statements[group[0]].domain.extent(axis)
    out: Wide = {}
    for i in group:
        for a in accesses(kernel.statements[i]):
            dims = [d for d, r in enumerate(a.index) if r.coefficient(axis)]
            if not dims:
                continue
            d = dims[0]
            if len(dims) > 1 or axis_of(a.index[d]) != axis or kernel.buffer(a.buffer).shape[d] != extent:
                return None
            if out.setdefault(a.buffer, d) != d:
                return None
    return out or None


def _summed(s: Statement, axis: str) -> bool:
    """The destination does not mention the axis."""
    return axis in s.reduces


def _zeros(kernel: Kernel, axis: str, group: tuple[int, ...], wide: Wide) -> frozenset[str]:
    """The buffers that hold zeros in the lanes added, whatever the group writes there."""
    zeros = set(wide)
    while True:
        lost = {
            s.dest.buffer
            for s in (kernel.statements[i] for i in group)
            if s.dest.buffer in zeros and not _keeps_zero(s, axis, zeros)
        }
        if not lost:
            return frozenset(zeros)
        zeros -= lost


def _keeps_zero(s: Statement, axis: str, zeros: set[str]) -> bool:
    """Zeros go into the added lanes of the destination: made of zeros alone, or zeros times a number."""
    known = [_is_zero(x, axis, zeros) or (s.op == "mul" and _is_finite(x)) for x in s.sources]
    made = s.accumulate or any(_is_zero(x, axis, zeros) for x in s.sources)
    return s.op in ZERO_OF_ZEROS and all(known) and made


def _is_finite(x: Source) -> bool:
    return isinstance(x, Literal) and isfinite(x.value)


def _is_zero(x: Source, axis: str, zeros: Iterable[str]) -> bool:
    """Is the source zero in the lanes added?"""
    if isinstance(x, Literal):
        return x.value == 0
    return x.buffer in zeros and any(r.coefficient(axis) for r in x.index)


def _unfilled(kernel: Kernel, buffer: str, group: tuple[int, ...]) -> bool:
    """Some lanes of the temporary could be read before the group has written them."""
    made = writers(kernel, buffer)
    first = kernel.statements[made[0]] if made else None
    return first is None or not set(made) <= set(group) or bool(first.domain.where)


def _maker(kernel: Kernel, buffer: str) -> int | None:
    """The statement that first writes a buffer, where it stands in no loop."""
    made = writers(kernel, buffer)
    return made[0] if made and levels(kernel)[0].own >> made[0] & 1 else None


def _copies(kernel: Kernel, buffer: str, name: str) -> tuple[Statement, Statement]:
    """Into the wide buffer, and back."""
    into = box_copy(kernel, buffer, lambda index: index)
    source = into.sources[0]
    assert isinstance(source, Access)
    into = replace(into, dest=replace(into.dest, buffer=name))
    return into, replace(into, dest=source, sources=(into.dest,))


def _widened(kernel: Kernel, i: int, site: Site, names: dict[str, str], size: Affine) -> Statement:
    """The statement on the wide buffers, and over more steps where it belongs to the group."""
    s = kernel.statements[i]

    new = s.renamed(names)
    if i not in site["statements"]:
        return new
    axes = tuple(Axis(a.name, size) if a.name == site["axis"] else a for a in s.domain.axes)
    return replace(new, domain=replace(s.domain, axes=axes))
