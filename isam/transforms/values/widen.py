"""Compute in a wider dtype: cast the operands, do the operation there, cast the result back (TR-1, IR-10)."""

from __future__ import annotations

from dataclasses import replace

from isam.classes import dataclass
from isam.ir.dtype import DTYPES
from isam.ir.kernel import Access, Buffer, Kernel, Literal, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import accesses, fresh, names_in, splice
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.values.casts import DIGITS, LEAST, MOST, holds
from isam.transforms.values.fold import is_exact

RING = ("add", "sub", "mul", "neg")
ORDER = ("max", "min")
ROUNDED = ("add", "sub", "mul", "div", "sqrt")


@dataclass(frozen=True)
class Widen(Transform):
    """``y = a op b`` is done in a wider dtype. Integers wrap the same way after the ring operations; of floats the five
    basic operations round the same when the wider dtype has at least ``2 p + 2`` digits (Figueroa, "When is double
    rounding innocuous?", SIGNUM 1995), and its exponents reach as far twice; extrema are the same always."""

    targets: tuple[str, ...] = ("i16", "i32", "i64", "f32", "f64")

    law = "widen"
    equation = "y = a op b  =>  y = i8(i32(a) op i32(b))"
    kinds = frozenset({"dtype", "operation"})
    grows = True
    judge = "interpreter"
    makes = frozenset({"cast"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(statement=i, dtype=d)
            for i, s in enumerate(kernel.statements)
            for d in self.targets
            if _same(kernel, s, d)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i, dtype = site["statement"], site["dtype"]
        s = kernel.statements[i]
        if not _same(kernel, s, dtype):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        shape, taken = kernel.buffer(s.dest.buffer).shape, names_in(kernel)
        made: list[Buffer] = []
        lines: list[Statement] = []

        def put(op: str, *sources: Source) -> Access:
            name = fresh(taken, "w")
            taken.add(name)
            made.append(Buffer(name, shape, dtype, "temp", declared=True))
            at = replace(s.dest, buffer=name)
            lines.append(replace(s, dest=at, op=op, sources=sources))
            return at

        wide = tuple(put("cast", x) if isinstance(x, Access) else x for x in s.sources)
        back = replace(s, op="cast", sources=(put(s.op, *wide),))
        new, origin = splice(kernel, {i: tuple((x, (i,)) for x in (*lines, back))}, buffers=(*kernel.buffers, *made))
        meanings = tuple((b.name, f"part of {s.dest}") for b in made)
        return Rewrite(new, Correspondence(origin, meanings=meanings))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction does it in another dtype: in the one it needs, or in any that some instruction has."""
        at, need = mismatch.about("statement"), mismatch.about("need")
        if not self.answers(mismatch) or (mismatch.kind == "operation" and not mismatch.about("missing")):
            return ()
        offered = mismatch.about("dtypes") or (need,)
        return tuple(s for s in self.sites(kernel) if s["statement"] == at and s["dtype"] in offered)


def _same(kernel: Kernel, s: Statement, wide: str) -> bool:
    """Does the operation give the same number when it is done in the wider dtype?"""
    names = {kernel.buffer(a.buffer).dtype for a in accesses(s)}
    if s.accumulate or len(names) != 1 or not any(isinstance(x, Access) for x in s.sources):
        return False
    (narrow,) = names
    numbers = [x.value for x in s.sources if isinstance(x, Literal)]
    if narrow == wide or not holds(wide, narrow) or not all(is_exact(v, narrow) for v in numbers):
        return False  # a number that the narrow dtype rounds would not be rounded in the wide one
    if s.op in ORDER:
        return True
    if DTYPES[narrow].kind in "iu":
        return s.op in RING and DTYPES[wide].kind in "iu"
    reaches = LEAST[wide] <= 2 * LEAST[narrow] and MOST[wide] >= 2 * MOST[narrow]
    rounds = DIGITS[wide] >= 2 * DIGITS[narrow] + 2 and reaches
    return s.op == "neg" or (s.op in ROUNDED and rounds)
