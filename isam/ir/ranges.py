"""Exact bounds of affine expressions over boxes with symbolic extents: the fast path before integer sets."""

from __future__ import annotations

from collections.abc import Iterable

from isam.ir.affine import Affine
from isam.ir.kernel import Axis, Sym


def upper(expr: Affine, axes: Iterable[Axis]) -> Affine:
    """The largest value over a box that is not empty, affine in the sizes.

    >>> str(upper(Affine.of("h") + "r", [Axis("h", Affine.of("H")), Axis("r", Affine.lift(3))]))
    'H + 1'
    """
    return expr.substitute({a.name: a.extent - 1 if expr.coefficient(a.name) > 0 else 0 for a in axes})


def lower(expr: Affine, axes: Iterable[Axis]) -> Affine:
    """The smallest value over a box that is not empty, affine in the sizes."""
    return expr.substitute({a.name: a.extent - 1 if expr.coefficient(a.name) < 0 else 0 for a in axes})


def nonnegative(expr: Affine, syms: Iterable[Sym], occupied: Iterable[Axis] = ()) -> bool:
    """Whether ``expr >= 0`` for all admitted sizes for which the box ``occupied`` is not empty.

    Sufficient, not necessary: each size takes its worst value by itself.
    """
    low = {s.name: s.lo for s in syms}
    high = {s.name: s.hi for s in syms}
    for s in syms:
        if s.whole is not None and expr.coefficient(s.name):  # the other size: so many whole parts, and what is left
            (of, n), left = s.whole, f"{s.whole[0]} % {s.whole[1]}"
            expr = expr.substitute({of: Affine.of(s.name, n) + Affine.of(left)})
            low[left], high[left] = 0, n - 1
    for a in occupied:
        if len(a.extent.terms) == 1:  # c * N + k >= 1
            (name, c), k = a.extent.terms[0], a.extent.const
            if c > 0:
                low[name] = max(low.get(name, 0), -((k - 1) // c))
            else:
                top = (k - 1) // -c
                high[name] = top if high.get(name) is None else min(high[name] or 0, top)
    worst = expr.const
    for name, c in expr.terms:
        bound = low.get(name, 0) if c > 0 else high.get(name)
        if bound is None:
            return False
        worst += c * bound
    return worst >= 0
