"""The exponential of a sum is a product: what the online softmax rests on (TR-1, SCH-11)."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.kernel import Access, Buffer, Kernel, Source
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import fresh, made_by, names_in, read_as, readers, splice, within_step
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform


class ExpOfSum(Transform):
    """``exp(a + b) = exp(a) * exp(b)``: a factor that does not depend on the summed axes can then leave a sum. Larger
    numbers appear on the way than in the result, so nothing may overflow (``finite``)."""

    law = "exp-of-sum"
    equation = "t = a + b; y = exp(t)  =>  y = exp(a) * exp(b)   (a - b: exp(a) * exp(-b))"
    needs = frozenset({"reassociates", "rounding", "finite"})
    kinds = frozenset({"operation", "extra-dependence"})
    grows = True
    judge = "float bound"
    wants = frozenset({"exp"})
    makes = frozenset({"mul", "neg"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(inner=i, outer=j)
            for j, s in enumerate(kernel.statements)
            if s.op == "exp"
            for i in made_by(kernel, j, s.sources[0])
            if kernel.statements[i].op in ("add", "sub")
            and all(isinstance(x, Access) for x in kernel.statements[i].sources)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i, j = site["inner"], site["outer"]
        if site not in self.sites(kernel):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        inner, s = kernel.statements[i], kernel.statements[j]
        x = s.sources[0]
        assert isinstance(x, Access)
        values = read_as(inner.dest, x)
        taken, like = names_in(kernel), kernel.buffer(s.dest.buffer)
        made: list[Buffer] = []
        lines = []

        def put(op: str, *sources: Source) -> Access:
            name = fresh(taken, "v")
            taken.add(name)
            buffer, at = within_step(kernel, s, name, like.dtype)
            made.append(buffer)
            lines.append(replace(s, dest=at, op=op, sources=sources))
            return at

        a, b = (y.substitute(values) for y in inner.sources)
        factors = (put("exp", a), put("exp", put("neg", b) if inner.op == "sub" else b))
        lines.append(replace(s, op="mul", sources=factors))
        only = readers(kernel, x.buffer) == (j,)
        parts = {j: tuple((line, (i, j)) for line in lines)} | ({i: ()} if only else {})
        new, origin = splice(kernel, parts, buffers=(*kernel.buffers, *made))
        return Rewrite(new, Correspondence(origin, buffers=((x.buffer, ()),) if only else ()))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """An instruction that multiplies stands where the kernel adds exponents, or the sum depends on too much."""
        at, need = mismatch.about("statement"), mismatch.about("need")
        wanted = mismatch.kind == "extra-dependence" or mismatch.about("missing") or need == ("mul", False)
        if not self.answers(mismatch) or not wanted:
            return ()
        return tuple(s for s in self.sites(kernel) if at in (s["inner"], s["outer"]))
