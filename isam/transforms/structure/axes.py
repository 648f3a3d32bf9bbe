"""Split an axis; add and remove axes of one element. Statements joined by a temporary change together."""

from __future__ import annotations

from dataclasses import replace

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Kernel, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import accesses, fresh, names_in, splice, writers
from isam.transforms.law import MATCHED, Correspondence, Rewrite, Site, Transform
from isam.transforms.staging import box_copy, reshaped
from isam.transforms.structure.dimensions import divides, split_row


def joined(kernel: Kernel, axis: str) -> tuple[tuple[int, ...], ...]:
    """Statements that have the axis with one extent, in groups joined by temporaries."""
    groups: list[tuple[set[int], set[str], Affine]] = []
    for i, s in enumerate(kernel.statements):
        if axis not in s.domain.names:
            continue
        temps = {a.buffer for a in accesses(s) if kernel.buffer(a.buffer).role == "temp"}
        found, extent = {i}, s.domain.extent(axis)
        for g in [g for g in groups if g[1] & temps and g[2] == extent]:
            groups.remove(g)
            found, temps = found | g[0], temps | g[1]
        groups.append((found, temps, extent))
    return tuple(sorted(tuple(sorted(g[0])) for g in groups))


def axis_names(kernel: Kernel) -> tuple[str, ...]:
    return tuple(dict.fromkeys(n for s in kernel.statements for n in s.domain.names))


@dataclass(frozen=True)
class SplitAxis(Transform):
    """``k < K`` becomes ``k_o < K / f, k_i < f`` with ``k = f * k_o + k_i``; exact division only."""

    factors: tuple[int, ...] = (2, 4, 8, 16)

    law = "split-axis"
    equation = "forall k < f * q  =>  forall k_o < q, k_i < f with k = f * k_o + k_i"
    kinds = frozenset({"axis-missing", "coefficient"})
    grows = True
    inverse = "fuse-axes"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(s for axis in axis_names(kernel) for s in self._along(kernel, axis))

    def _along(self, kernel: Kernel, axis: str) -> list[Site]:
        out: list[Site] = []
        for group in joined(kernel, axis):
            extent = kernel.statements[group[0]].domain.extent(axis)
            out.extend(Site.of(axis=axis, statements=group, factor=f) for f in self.factors if divides(f, extent))
        return out

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        axis, factor, group = site["axis"], site["factor"], site["statements"]
        taken = names_in(kernel)
        outer, inner = fresh(taken, f"{axis}_o"), fresh(taken, f"{axis}_i")
        value = Affine.of(outer, factor) + inner

        def one(s: Statement) -> Statement:
            axes: list[Axis] = []
            for a in s.domain.axes:
                cut = (Axis(outer, split_row(a.extent, factor)[0]), Axis(inner, Affine((), factor)))
                axes.extend(cut if a.name == axis else (a,))
            return s.substitute({axis: value}, axes)

        parts = {i: ((one(kernel.statements[i]), (i,)),) for i in group}
        new, origin = splice(kernel, parts)
        meanings = ((inner, f"{axis} % {factor}"), (outer, f"{axis} // {factor}"))
        return Rewrite(new, Correspondence(origin, axes=((axis, (outer, inner)),), meanings=meanings))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """Splits the axis that came nearest: by the coefficient that the instruction needs and the kernel lacks, else
        by what one call takes where the report says so."""
        if not self.answers(mismatch):
            return ()
        wanted = mismatch.about("limit")
        if mismatch.kind == "coefficient":
            need, have = mismatch.about("need"), mismatch.about("have")
            if have != 1 or not isinstance(need, int) or need < 2 or mismatch.about("axis") is None:
                return ()
            wanted = need
        law = SplitAxis((wanted,)) if isinstance(wanted, int) and wanted > 1 else self
        at, axis = mismatch.about("statement"), mismatch.about("axis")
        found = law.sites(kernel) if axis is None else law._along(kernel, axis)
        return tuple(s for s in found if at is None or at in s["statements"])


class AddUnitAxis(Transform):
    """A statement group gets an axis of one element, and buffers a dimension of size one that it indexes: a
    matrix-vector product becomes a matrix product with one column. Arguments are seen with that dimension,
    which moves no element."""

    law = "add-unit-axis"
    equation = "f(b[i])  =>  forall o < 1: f(b[i][o])"
    kinds = frozenset({"axis-missing"})
    grows = True

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        out: list[Site] = []
        unit = fresh(names_in(kernel), "one")
        for i in range(len(kernel.statements)):
            names = tuple(dict.fromkeys(a.buffer for a in accesses(kernel.statements[i])))
            pairs = [(a, b) for n, a in enumerate(names) for b in names[n + 1 :]]
            out.extend(Site.of(statements=(i,), buffers=some, axis=unit) for some in [*((b,) for b in names), *pairs])
        return tuple(out)

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        group: tuple[int, ...] = site["statements"]
        unit = site["axis"]
        parts = {i: ((_with_axis(kernel.statements[i], unit), (i,)),) for i in group}
        new, origin = splice(kernel, parts)
        back = Correspondence(origin, meanings=((unit, "0"),))
        inside = [b.name for b in kernel.buffers if b.role == "temp" and _only_in(kernel, b.name, group)]
        for buffer in dict.fromkeys((*site["buffers"], *inside)):
            step = _with_dimension(new, buffer, unit)
            new, back = step.kernel, back.then(step.back)
        return Rewrite(new, back)

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The axis nothing can play: given to the buffers of the operands that depend on it."""
        at = mismatch.about("statement")
        if not self.answers(mismatch) or mismatch.about("lacking") is None or at is None:
            return ()
        roles: dict[str, str] = dict(mismatch.about("roles") or ())
        lacking: list[str] = [roles[o] for o in mismatch.about("lacking") if o in roles]
        buffer, near = mismatch.about("buffer"), ""
        if buffer is not None and _is_unit(kernel.statements[at], mismatch.about("axis")):
            near = mismatch.about("axis")
            lacking.append(buffer)
        names = tuple(dict.fromkeys(lacking))
        if not names or any(n not in kernel.by_name for n in names):
            return ()
        group = {i for i in _around(kernel, at) if {a.buffer for a in accesses(kernel.statements[i])} & set(names)}
        if near:  # the axis is there already: only its dimension is missing
            group = {i for i in group | {at} if _is_unit(kernel.statements[i], near)}
        # what a sum starts from has the axis too
        group |= {i for n in names for i in writers(kernel, n) if not kernel.statements[i].accumulate}
        axis = near or fresh(names_in(kernel), "one")
        return (Site.of(statements=tuple(sorted({at, *group})), buffers=names, axis=axis),)


class RemoveUnitAxis(Transform):
    """An axis of one element is 0."""

    law = "remove-unit-axis"
    equation = "forall o < 1: f(o)  =>  f(0)"
    tried = MATCHED

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        one = Affine((), 1)
        return tuple(
            Site.of(axis=a.name, statement=i)
            for i, s in enumerate(kernel.statements)
            for a in s.domain.axes
            if a.extent == one
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i, axis = site["statement"], site["axis"]
        s = kernel.statements[i]
        cut = s.substitute({axis: 0}, [a for a in s.domain.axes if a.name != axis])
        new, origin = splice(kernel, {i: ((cut, (i,)),)})
        return Rewrite(new, Correspondence(origin, axes=((axis, ()),)))


def _around(kernel: Kernel, at: int) -> tuple[int, ...]:
    """Statements joined to one by its temporaries, directly or not."""
    found, edge = {at}, {at}
    while edge:
        temps = {
            a.buffer for i in edge for a in accesses(kernel.statements[i]) if kernel.buffer(a.buffer).role == "temp"
        }
        edge = {
            i for i, s in enumerate(kernel.statements) if i not in found and temps & {a.buffer for a in accesses(s)}
        }
        found |= edge
    return tuple(sorted(found))


def _only_in(kernel: Kernel, buffer: str, group: tuple[int, ...]) -> bool:
    """A temporary that joins statements of the group and nothing else."""
    users = {i for i, s in enumerate(kernel.statements) if any(a.buffer == buffer for a in accesses(s))}
    return len(users) > 1 and users <= set(group)


def _is_unit(s: Statement, axis: str | None) -> bool:
    return axis in s.domain.names and s.domain.extent(axis) == Affine((), 1)


def _with_axis(s: Statement, unit: str) -> Statement:
    """The statement with that axis of one element, unless it has it."""
    if unit in s.domain.names:
        return s
    domain = replace(s.domain, axes=(*s.domain.axes, Axis(unit, Affine((), 1))))
    return replace(s, domain=domain)


def _with_dimension(kernel: Kernel, buffer: str, unit: str) -> Rewrite:
    """A last dimension of size one, indexed by ``unit`` where a statement has that axis (of one element: others may
    have taken the name for another one) and by 0 elsewhere."""
    shape = (*kernel.buffer(buffer).shape, Affine((), 1))
    copied = box_copy(kernel, buffer, lambda index: (*index, Affine()))
    meaning = f"{buffer} with a dimension of size 1"
    view = kernel.buffer(buffer).role != "temp"
    step = reshaped(kernel, buffer, shape, lambda index: (*index, Affine()), copied, meaning, view)

    def indexed(x: Access) -> Access:
        return replace(x, index=(*x.index[:-1], Affine.of(unit))) if x.buffer == buffer else x

    parts = {i: ((s.accessing(indexed), (i,)),) for i, s in enumerate(step.kernel.statements) if _is_unit(s, unit)}
    new, origin = splice(step.kernel, parts)
    return Rewrite(new, step.back.then(Correspondence(origin)))
