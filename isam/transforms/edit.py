"""Cutting and splicing kernels: what every law needs to build its result and the way back."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.dataflow import levels
from isam.ir.dtype import DTYPES
from isam.ir.kernel import FAR, Access, Buffer, Domain, Item, Kernel, Literal, Recurrence, Source, Statement
from isam.once import once

Part = tuple[Statement, tuple[int, ...]]  # a new statement and the old ones it carries out


def splice(
    kernel: Kernel,
    parts: Mapping[int, Sequence[Part]],
    *,
    buffers: Sequence[Buffer] | None = None,
    first: Sequence[Part] = (),
    last: Sequence[Part] = (),
    loops: Mapping[int, tuple[Sequence[Part], Sequence[Part], Sequence[Part]]] | None = None,
) -> tuple[Kernel, tuple[tuple[int, ...], ...]]:
    """Replaces statements by lists of statements; ``first`` and ``last`` go to both ends of the kernel; of recurrent
    ``loops``, by number, some go before one, others to the begin of its step and others to the end. Returns the kernel
    and, per new statement, the old statements it carries out."""
    spliced = _Spliced(parts, loops or {})
    body = spliced.walk(kernel.body, first, last)
    new = replace(kernel, body=body, buffers=tuple(buffers or kernel.buffers), template=None)
    return without_unused(new), tuple(spliced.origins)


class _Spliced:
    """Statements replaced as they are come to, and what the new ones carry out."""

    def __init__(self, parts: Mapping[int, Sequence[Part]], loops: Mapping[int, Sequence[Sequence[Part]]]):
        self.parts, self.loops = parts, loops
        self.origins: list[tuple[int, ...]] = []
        self.at = self.number = 0  # the statement and the recurrent loop that come next

    def walk(self, body: tuple[Item, ...], begin: Sequence[Part] = (), end: Sequence[Part] = ()) -> tuple[Item, ...]:
        out: list[Item] = []
        self._put(out, begin)
        for it in body:
            if isinstance(it, Recurrence):
                before, *within = self.loops.get(self.number, ((), (), ()))
                self.number += 1
                self._put(out, before)
                out.append(replace(it, body=self.walk(it.body, *within)))
                continue
            self._put(out, self.parts.get(self.at, ((it, (self.at,)),)))
            self.at += 1
        self._put(out, end)
        return tuple(out)

    def _put(self, out: list[Item], new: Sequence[Part]) -> None:
        for s, origin in new:
            out.append(s)
            self.origins.append(origin)


def without_unused(kernel: Kernel) -> Kernel:
    """Temporaries that no statement mentions any more are dropped."""
    used = {a.buffer for s in kernel.statements for a in (s.dest, *s.reads)}
    return replace(kernel, buffers=tuple(b for b in kernel.buffers if b.role != "temp" or b.name in used))


def within_step(kernel: Kernel, s: Statement, name: str, dtype: str) -> tuple[Buffer, Access]:
    """A temporary for what is made and read where a statement stands, and its element there: it lies as what the
    statement writes, without what goes along recurrent loops alone, of which it is needed for one step."""
    own = set(s.domain.names)
    like = kernel.buffer(s.dest.buffer).shape
    rows = [(d, e) for d, e in zip(like, s.dest.index, strict=True) if not e.names or own & set(e.names)]
    shape, index = tuple(d for d, _ in rows), tuple(e for _, e in rows)
    return Buffer(name, shape, dtype, "temp", declared=True), Access(name, index, s.loc)


def fresh(taken: Iterable[str], base: str) -> str:
    """A name not taken: ``base``, or ``base`` with the smallest number that makes it new."""
    names = set(taken)
    if base not in names:
        return base
    return next(f"{base}{n}" for n in range(2, len(names) + 3) if f"{base}{n}" not in names)


def names_in(kernel: Kernel) -> set[str]:
    """Every name in use: sizes, buffers and axes."""
    return set(_names_in(kernel))


@once
def _names_in(kernel: Kernel) -> frozenset[str]:  # most laws ask for it at every site
    loops = {n for s in kernel.statements for n in mentioned(s)}
    loops |= {r.axis.name for level in levels(kernel) for r in level.recurrences}
    return frozenset({s.name for s in kernel.syms} | {b.name for b in kernel.buffers} | loops)


def mentioned(s: Statement) -> set[str]:
    """Axes and sizes a statement mentions anywhere."""
    rows = [r for a in accesses(s) for r in a.index]
    return {n for e in (*rows, *s.domain.where) for n in e.names} | set(s.domain.names)


def accesses(s: Statement) -> tuple[Access, ...]:
    """Every access of a statement, the destination first."""
    return (s.dest, *(x for x in s.sources if isinstance(x, Access)))


def used_by(x: Source) -> frozenset[str]:
    """Axes (and sizes) that a source's index mentions."""
    return frozenset() if isinstance(x, Literal) else frozenset(n for row in x.index for n in row.names)


def writers(kernel: Kernel, buffer: str) -> tuple[int, ...]:
    return kernel.writers.get(buffer, ())


def readers(kernel: Kernel, buffer: str) -> tuple[int, ...]:
    """Statements with the buffer among their sources (an accumulation's own destination not counted)."""
    return kernel.readers.get(buffer, ())


def is_full_box(kernel: Kernel, s: Statement) -> bool:
    """Does the statement write every element of its destination once, whatever it held before? An index in range that
    takes as many values as there are elements takes all of them, forwards or backwards."""
    shape = kernel.buffer(s.dest.buffer).shape
    seen: set[str] = set()
    for row, size in zip(s.dest.index, shape, strict=True):
        if len(row.terms) != 1 or row.terms[0][0] in seen:
            return False
        name = row.terms[0][0]
        if name not in s.domain.names or s.domain.extent(name) != size:
            return False
        seen.add(name)
    return not s.accumulate and not s.domain.where and seen == set(s.domain.names)


def readable_whole(kernel: Kernel, buffer: str, at: int) -> bool:
    """Is every element of the buffer there when statement ``at`` is carried out: given with the call, or written before
    it, in one go or in parts, in its own list or in one around that?"""
    if kernel.buffer(buffer).role in ("in", "const", "inout"):
        return True
    around = [level.own for level in levels(kernel) if any(m >> at & 1 for m in (level.own, *level.inner))]
    before = [i for i in writers(kernel, buffer) if i < at and any(own >> i & 1 for own in around)]
    made = [kernel.statements[i] for i in before]
    return any(is_full_box(kernel, s) for s in made) or _in_parts(kernel, buffer, made)


def _in_parts(kernel: Kernel, buffer: str, made: Iterable[Statement]) -> bool:
    """Do several statements together write every element of the buffer? One whose place depends on a recurrent loop
    writes no certain ones."""
    sizes = {s.name for s in kernel.syms}
    parts = [s for s in made if not s.accumulate and _named(s) <= sizes.union(s.domain.names)]
    if len(parts) < 2:
        return False
    from isam.ir.poly_domain import context, domain_set, footprint, shape_set

    left = shape_set(kernel.buffer(buffer).shape).given(context(kernel.syms))
    for s in parts:
        left = left - footprint(domain_set(s.domain, kernel.syms), s.dest)
    return left.is_empty()


def _named(s: Statement) -> set[str]:
    """What the place and the domain of what a statement writes depend on."""
    rows = (*s.dest.index, *s.domain.where, *(a.extent for a in s.domain.axes))
    return {n for row in rows for n in row.names}


def axis_of(row: Affine) -> str:
    """The name that the row consists of, or '' when it is anything else."""
    return row.terms[0][0] if not row.const and len(row.terms) == 1 and row.terms[0][1] == 1 else ""


def lone(row: Affine) -> bool:
    """Is the index a single name, as it stands?"""
    return bool(axis_of(row))


def together(kernel: Kernel, *at: int) -> bool:
    """Do the statements stand in one straight-line list: all in the body, or all in one recurrent loop?"""
    wanted = sum(1 << i for i in set(at))
    return any(level.own & wanted == wanted for level in levels(kernel))


def fills_anew(kernel: Kernel, i: int) -> bool:
    """Does all that a reader finds come from the last time the statement was carried out? In a recurrent loop only
    when it writes every element."""
    looped = any(level.recurrences for level in levels(kernel) if level.own >> i & 1)
    return not looped or is_full_box(kernel, kernel.statements[i])


def touches(s: Statement) -> set[str]:
    """Every buffer the statement reads or writes."""
    return {a.buffer for a in accesses(s)}


def written_between(kernel: Kernel, first: int, last: int) -> set[str]:
    """Buffers that some statement strictly between two others writes."""
    return {s.dest.buffer for s in kernel.statements[first + 1 : last]}


def touched_between(kernel: Kernel, first: int, last: int) -> set[str]:
    """Buffers that some statement strictly between two others reads or writes."""
    return {b for s in kernel.statements[first + 1 : last] for b in touches(s)}


def at_rows(a: Access) -> tuple[str, ...] | None:
    """The axes an access is indexed with, one whole axis per dimension and each once; None where it is otherwise."""
    names = tuple(row.terms[0][0] for row in a.index if lone(row))
    return names if len(names) == len(a.index) and len(set(names)) == len(names) else None


def read_as(made: Access, read: Access) -> dict[str, Affine]:
    """The axes of a statement that makes something, one per dimension, in the names of one that reads it."""
    rows = at_rows(made)
    assert rows is not None
    return dict(zip(rows, read.index, strict=True))


def buffer_of(x: Source) -> str:
    """The buffer a source reads; '' for a number."""
    return x.buffer if isinstance(x, Access) else ""


def made_by(kernel: Kernel, j: int, x: Source) -> tuple[int, ...]:
    """The one statement that makes the temporary which ``j`` reads as ``x``, over plain axes, with nothing that it read
    changed since."""
    if not isinstance(x, Access) or kernel.buffer(x.buffer).role != "temp":
        return ()
    made = writers(kernel, x.buffer)
    if len(made) != 1 or made[0] > j or not together(kernel, made[0], j):
        return ()
    s = kernel.statements[made[0]]
    rows, read = at_rows(s.dest), {buffer_of(a) for a in s.sources}
    plain = rows is not None and set(rows) == set(s.domain.names)
    changed = read & (written_between(kernel, made[0], j) | {kernel.statements[j].dest.buffer})
    return made if plain and not changed and fills_anew(kernel, made[0]) else ()


def zero_at_all(kernel: Kernel, buffer: str) -> bool:
    """Whether zero times a value of a buffer's dtype is zero: of floats where the user says that none is infinite."""
    return DTYPES[kernel.buffer(buffer).dtype].kind != "f" or "finite" in kernel.permits


def surely_some(domain: Domain, summed: Collection[str], where: Sequence[Affine]) -> bool:
    """Whether, wherever the other axes stand, some point of the summed axes meets the conditions ``where``: the same
    corner of their box for all, which is enough for what kernels say."""
    ends = {a.name: a.extent - 1 for a in domain.axes}
    if any(ends[n].is_constant and ends[n].const < 0 for n in summed):
        return False
    free = {n: (0, FAR) for e in (*ends.values(), *where) for n in e.names}  # sizes, axes of loops around
    ranges = free | {n: (0, e.const if e.is_constant else FAR) for n, e in ends.items()}
    corners = itertools.product(*(((n, Affine()), (n, ends[n])) for n in summed))
    return any(all(w.substitute(dict(c)).bounds(ranges)[0] >= 0 for w in where) for c in map(list, corners))
