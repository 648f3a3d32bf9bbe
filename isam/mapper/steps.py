"""Chains of rewriting steps: which numerics they use, through which kernels they lead, how far results may be off."""

from __future__ import annotations

from collections.abc import Sequence

from isam.ir.kernel import Kernel
from isam.ir.mapping import Rewriting
from isam.mapper.space import Step
from isam.transforms.law import Correspondence, taken
from isam.transforms.saving import ErrorBound


def needed(steps: Sequence[Step]) -> frozenset[str]:
    """The numerics that steps use, beyond exact ones."""
    return frozenset().union(*(s.transform.needs for s in steps)) - {"exact"}


def rewritings(kernel: Kernel, steps: Sequence[Step]) -> tuple[Rewriting, ...]:
    """The chain of kernels that the steps lead through: what the proof asks for."""
    out: list[Rewriting] = []
    for s in steps:
        kernel = taken(s.transform, kernel, s.site).kernel
        out.append(Rewriting(s.transform.law, str(s.site), tuple(sorted(s.transform.needs)), kernel))
    return tuple(out)


def errors(kernel: Kernel, steps: Sequence[Step]) -> tuple[str, ...]:
    """How far results may be from exact ones where steps were inexact: per sum of the user's, of all steps on it."""
    found: dict[int, ErrorBound] = {}
    original, back = kernel, Correspondence.identity(kernel)
    for s in steps:
        bound = s.transform.error(kernel, s.site)
        if bound is not None:
            total = max(back.statements[s.site["sum"]])
            found[total] = found[total].within(bound) if total in found else bound
        rewrite = taken(s.transform, kernel, s.site)
        kernel, back = rewrite.kernel, back.then(rewrite.back)
    return tuple(f"{original.statements[i].dest.buffer}: {bound}" for i, bound in sorted(found.items()))
