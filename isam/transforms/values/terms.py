"""Sums of several terms: each is summed by itself, and what is subtracted is negated once it is summed (TR-1). What
multiplies and adds takes one product at a time: products of complex numbers, or two products of one layer, need that.
"""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.dtype import DTYPES
from isam.ir.kernel import Access, Buffer, Domain, Kernel, Literal, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.ir.ranges import nonnegative
from isam.transforms.edit import (
    Part,
    axis_of,
    buffer_of,
    fresh,
    lone,
    made_by,
    names_in,
    read_as,
    readers,
    splice,
    used_by,
    written_between,
)
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.values.fold import is_exact


class SumApart(Transform):
    """A sum of sums is one sum per term; of differences, and of what is negated, terms are negated first."""

    law = "sum-apart"
    equation = "t = p + q; y += t  =>  y += p; y += q   (p - q: y += -q; -(p + q): y += -p; y += -q)"
    needs = frozenset({"reassociates", "rounding"})
    kinds = frozenset({"operation", "escapes"})
    wants = frozenset({"add"})
    makes = frozenset({"add", "neg"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(sum=n, terms=j)
            for n, s in enumerate(kernel.statements)
            if s.accumulate and s.op == "add"
            for j in made_by(kernel, n, s.sources[0])
            if _terms(kernel, n, j)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        n, j = site["sum"], site["terms"]
        if site not in self.sites(kernel):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        total, made = kernel.statements[n], kernel.statements[j]
        read, taken = total.sources[0], names_in(kernel)
        assert isinstance(read, Access)
        buffers, parts, sums = list[Buffer](), list[Part](), list[Part]()
        for x, negative in _terms(kernel, n, j):
            term = x.substitute(read_as(made.dest, read))
            if negative and isinstance(term, Literal):
                term = Literal(-term.value)
            elif negative:
                buffer, negation = _negation(kernel, made, x, fresh(taken, "n"))
                taken.add(buffer.name)
                buffers.append(buffer)
                parts.append((negation, (j,)))
                term = negation.dest.substitute(read_as(made.dest, read))
            sums.append((replace(total, sources=(term,)), (n,)))
        only = readers(kernel, read.buffer) == (n,)
        parts += [] if only else [(made, (j,))]
        new, origin = splice(kernel, {j: parts, n: sums}, buffers=(*kernel.buffers, *buffers))
        meanings = tuple((b.name, f"minus what is subtracted in {made.dest}") for b in buffers)
        return Rewrite(new, Correspondence(origin, buffers=((read.buffer, ()),) if only else (), meanings=meanings))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction sums what the kernel adds to something else first."""
        if not self.answers(mismatch) or mismatch.about("need") not in (None, ("add", True)):
            return ()
        at = mismatch.about("statement")
        return tuple(s for s in self.sites(kernel) if at in (None, s["sum"], s["terms"]))


class NegatedSum(Transform):
    """A sum of what is negated is the sum, negated once."""

    law = "negate-sum"
    equation = "t = -u; y += t over k  =>  z = 0; z += u over k; n = -z; y += n"
    needs = frozenset({"reassociates", "rounding"})
    kinds = frozenset({"operation", "escapes"})
    grows = True
    wants = frozenset({"add"})
    makes = frozenset({"add", "copy", "neg"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(sum=n, negated=j)
            for n, s in enumerate(kernel.statements)
            if s.accumulate and s.op == "add" and s.reduces and _is_box(kernel, s)
            for j in made_by(kernel, n, s.sources[0])
            if kernel.statements[j].op == "neg" and isinstance(kernel.statements[j].sources[0], Access)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        n, j = site["sum"], site["negated"]
        if site not in self.sites(kernel):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        total, negated = kernel.statements[n], kernel.statements[j]
        read = total.sources[0]
        assert isinstance(read, Access)
        u = negated.sources[0].substitute(read_as(negated.dest, read))
        taken, dtype = names_in(kernel), kernel.buffer(total.dest.buffer).dtype
        kept = Domain(tuple(a for a in total.domain.axes if a.name not in total.reduces))
        made = list[Buffer]()

        def put(base: str) -> Access:
            """A temporary with an element per result."""
            name = fresh(taken, base)
            taken.add(name)
            made.append(Buffer(name, tuple(a.extent for a in kept.axes), dtype, "temp", declared=True))
            return Access(name, tuple(Affine.of(a.name) for a in kept.axes), total.loc)

        z, m = put("z"), put("n")
        lines = (
            (Statement(kept, z, "copy", (Literal(0),), False, total.loc), (n,)),
            (replace(total, dest=z, sources=(u,)), (n,)),
            (Statement(kept, m, "neg", (z,), False, total.loc), (j, n)),
            (Statement(kept, total.dest, "add", (m,), True, total.loc), (n,)),
        )
        only = readers(kernel, read.buffer) == (n,)
        parts = {n: lines} | ({j: ()} if only else {})
        new, origin = splice(kernel, parts, buffers=(*kernel.buffers, *made))
        meanings = ((z.buffer, f"the sum of {buffer_of(u)}"), (m.buffer, f"minus the sum of {buffer_of(u)}"))
        return Rewrite(new, Correspondence(origin, buffers=((read.buffer, ()),) if only else (), meanings=meanings))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction sums what the kernel negates."""
        if not self.answers(mismatch) or mismatch.about("need") not in (None, ("add", True)):
            return ()
        at = mismatch.about("statement")
        return tuple(s for s in self.sites(kernel) if at in (None, s["sum"], s["negated"]))


def _terms(kernel: Kernel, n: int, j: int) -> tuple[tuple[Source, bool], ...]:
    """What statement ``j`` adds up for the sum ``n``, each with whether it is negated; nothing where it adds none, or a
    number whose opposite its type lacks."""
    terms, dtype = _added(kernel, n, j), kernel.buffer(kernel.statements[j].dest.buffer).dtype
    numbers = (x.value for x, negative in terms if negative and isinstance(x, Literal))
    lacks = DTYPES[dtype].kind != "f" and not all(is_exact(-v, dtype) for v in numbers)
    return () if lacks else terms


def _added(kernel: Kernel, n: int, j: int) -> tuple[tuple[Source, bool], ...]:
    """The same, whatever the numbers."""
    s = kernel.statements[j]
    if s.accumulate or s.op not in ("add", "sub", "neg"):
        return ()
    if s.op != "neg":
        return (s.sources[0], False), (s.sources[1], s.op == "sub")
    inner = [kernel.statements[m] for m in made_by(kernel, j, s.sources[0])]
    if not inner or inner[0].accumulate or inner[0].op not in ("add", "sub"):
        return ()
    read = s.sources[0]
    assert isinstance(read, Access)
    p, q = (x.substitute(read_as(inner[0].dest, read)) for x in inner[0].sources)
    if inner[0].op == "sub" and buffer_of(q) in written_between(kernel, j, n) | {kernel.statements[n].dest.buffer}:
        return ()
    return (p, True), (q, inner[0].op == "add")


def _negation(kernel: Kernel, made: Statement, x: Source, name: str) -> tuple[Buffer, Statement]:
    """Minus a term, made where the terms are added up: once for what is the same along an axis, which then has steps
    for certain."""
    needed = used_by(x).union(*(w.names for w in made.domain.where))
    axes = [a for a in made.domain.axes if a.name in needed or not nonnegative(a.extent - 1, kernel.syms)]
    like, kept = kernel.buffer(made.dest.buffer), {a.name for a in axes}
    rows = [(size, row) for size, row in zip(like.shape, made.dest.index, strict=True) if axis_of(row) in kept]
    at = Access(name, tuple(row for _, row in rows), made.loc)
    buffer = Buffer(name, tuple(size for size, _ in rows), like.dtype, "temp", declared=True)
    domain = replace(made.domain, axes=tuple(axes))
    return buffer, replace(made, domain=domain, dest=at, op="neg", sources=(x,))


def _is_box(kernel: Kernel, total: Statement) -> bool:
    """Whether there is a result for every point of the axes that are not summed, whatever the conditions say."""
    kept = [a for a in total.domain.axes if a.name not in total.reduces]
    shape = kernel.buffer(total.dest.buffer).shape
    rows = {row.names[0]: size for row, size in zip(total.dest.index, shape, strict=True) if lone(row)}
    return all(rows.get(a.name) == a.extent for a in kept)


TERMS = (SumApart(), NegatedSum())
