"""Sums of several terms: each is summed by itself, and what is subtracted is negated once it is summed (TR-1). What
multiplies and adds takes one product at a time: products of complex numbers, or two products of one layer, need that.
"""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Buffer, Domain, Kernel, Literal, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import (
    Part,
    buffer_of,
    fresh,
    lone,
    made_by,
    names_in,
    read_as,
    readers,
    splice,
    within_step,
)
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform


class SumApart(Transform):
    """A sum of sums is one sum per term; of differences, what is subtracted is negated first."""

    law = "sum-apart"
    equation = "t = p + q; y += t  =>  y += p; y += q   (p - q: y += -q)"
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
            if kernel.statements[j].op in ("add", "sub") and not kernel.statements[j].accumulate
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        n, j = site["sum"], site["terms"]
        if site not in self.sites(kernel):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        total, terms = kernel.statements[n], kernel.statements[j]
        read = total.sources[0]
        assert isinstance(read, Access)
        p, q = (x.substitute(read_as(terms.dest, read)) for x in terms.sources)
        made, parts = list[Buffer](), list[Part]()
        if terms.op == "sub" and isinstance(q, Literal):
            q = Literal(-q.value)
        elif terms.op == "sub":
            buffer, at = within_step(kernel, terms, fresh(names_in(kernel), "n"), kernel.buffer(read.buffer).dtype)
            made.append(buffer)
            parts.append((replace(terms, dest=at, op="neg", sources=terms.sources[1:]), (j,)))
            q = replace(read, buffer=buffer.name)
        only = readers(kernel, read.buffer) == (n,)
        parts += [] if only else [(terms, (j,))]
        sums = tuple((replace(total, sources=(x,)), (n,)) for x in (p, q))
        new, origin = splice(kernel, {j: parts, n: sums}, buffers=(*kernel.buffers, *made))
        meanings = tuple((b.name, f"minus what is subtracted in {terms.dest}") for b in made)
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


def _is_box(kernel: Kernel, total: Statement) -> bool:
    """Whether there is a result for every point of the axes that are not summed, whatever the conditions say."""
    kept = [a for a in total.domain.axes if a.name not in total.reduces]
    shape = kernel.buffer(total.dest.buffer).shape
    rows = {row.names[0]: size for row, size in zip(total.dest.index, shape, strict=True) if lone(row)}
    return all(rows.get(a.name) == a.extent for a in kept)


TERMS = (SumApart(), NegatedSum())
