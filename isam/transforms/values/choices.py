"""A choice of the larger is a maximum: relu by max, max by comparison undone (TR-1)."""

from __future__ import annotations

from dataclasses import replace

from isam.classes import dataclass
from isam.ir.kernel import Access, Kernel, Source, Statement
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import (
    buffer_of,
    made_by,
    read_as,
    readers,
    splice,
    together,
    touched_between,
    writers,
    written_between,
)
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform

LARGER = {"gt": 0, "ge": 0, "lt": 1, "le": 1}  # which operand of the comparison is the larger where it holds


class ChoiceToExtremum(Transform):
    """``b``, or ``a`` where ``a > b``, is their maximum; the other way round the minimum. (NaN is neither.)"""

    law = "choice-to-extremum"
    equation = "c = a > b; y = b; y = a where c  =>  y = max(a, b)"
    needs = frozenset({"finite"})
    kinds = frozenset({"operation", "escapes", "dtype"})
    inverse = "max-by-select"
    wants = frozenset({"select"})
    makes = frozenset({"max", "min"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        found = (_parts(kernel, j) for j in range(len(kernel.statements)))
        return tuple(Site.of(compare=p.compare, start=p.start, choose=p.choose) for p in found if p is not None)

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        p = _parts(kernel, site["choose"])
        if p is None:
            raise NoSite(f"'{self.law}' does not apply at {site}")
        everything = (p.compare, p.start, p.choose)
        only = readers(kernel, kernel.statements[p.compare].dest.buffer) == (p.choose,)
        parts = {p.start: (), p.choose: ((p.result, everything),)} | ({p.compare: ()} if only else {})
        new, origin = splice(kernel, parts)
        return Rewrite(new, Correspondence(origin))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """One of the three statements is in question."""
        at = mismatch.about("statement")
        found = self.sites(kernel) if self.answers(mismatch) else ()
        return tuple(s for s in found if at in (s["compare"], s["start"], s["choose"]))


@dataclass(frozen=True, slots=True)
class _Parts:
    compare: int
    start: int
    choose: int
    result: Statement


def _parts(kernel: Kernel, j: int) -> _Parts | None:
    s = kernel.statements[j]
    if s.op != "select":
        return None
    condition, yes = s.sources
    start = next((i for i in reversed(writers(kernel, s.dest.buffer)) if i < j), None)
    made = made_by(kernel, j, condition)
    if start is None or not made or not together(kernel, start, j):
        return None
    first, test = kernel.statements[start], kernel.statements[made[0]]
    same = first.op == "copy" and first.dest == s.dest and first.domain == s.domain
    if not same or test.op not in LARGER or s.dest.buffer in touched_between(kernel, start, j):
        return None
    no = first.sources[0]
    assert isinstance(condition, Access)
    values = read_as(test.dest, condition)
    pair: list[Source] = [x.substitute(values) for x in test.sources]
    if {buffer_of(no), buffer_of(yes)} & written_between(kernel, start, j) or pair not in ([yes, no], [no, yes]):
        return None
    op = "max" if pair[LARGER[test.op]] == yes else "min"
    return _Parts(made[0], start, j, replace(s, op=op, sources=(yes, no), accumulate=False))
