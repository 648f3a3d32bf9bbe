"""Sums that add nothing at the sizes given: what they begin with stays, and an instruction has to write it alone."""

from __future__ import annotations

from collections.abc import Mapping

from isam.diagnostics import Diagnostic
from isam.ir.kernel import REDUCTIONS, Kernel

HINT = ("instructions that begin such a sum themselves carry out none without terms: add one that writes what it "
        "begins with, or call the kernel only where there are terms")


def emptied(kernel: Kernel, sizes: Mapping[str, int]) -> list[Diagnostic]:
    """Where they stand in the kernel, and which sizes make them so.

    >>> from isam.ir.text import parse
    >>> k = parse("kernel p(N, K)\\n in a: f32[N, K]\\n inout c: f32[N]\\n forall i < N, k < K\\n  c[i] += a[i, k]")
    >>> [d.message for d in emptied(k, {"N": 4, "K": 0})]
    ['this sum has no terms where K = 0; what it begins with is left']
    >>> emptied(k, {"N": 4, "K": 2}), emptied(k, {"N": 0, "K": 0})
    ([], [])
    """
    known = kernel.sizes(sizes)
    out = []
    for s in kernel.statements:
        if not (s.accumulate and s.op in REDUCTIONS):
            continue
        none = [a for a in s.domain.axes if set(a.extent.names) <= known.keys() and a.extent.evaluate(known) <= 0]
        kept = {n for row in s.dest.index for n in row.names}
        if none and kept.isdisjoint(a.name for a in none):
            names = sorted({n for a in none for n in a.extent.names})
            where = f" where {', '.join(f'{n} = {known[n]}' for n in names)}" if names else ""
            message = f"this sum has no terms{where}; what it begins with is left"
            out.append(Diagnostic("uncovered", message, s.loc, hint=HINT))
    return out
