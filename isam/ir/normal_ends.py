"""Axes that begin and end where conditions on them alone say (``where 1 <= i < 99``): the box behind is the domain."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.kernel import Axis, Domain, Statement


def within_ends(s: Statement) -> Statement:
    """The statement over shorter axes, each counted from its first value on, without the conditions that say so; itself
    where there are none. Axes of open length keep theirs: what is left of them might be nothing.

    >>> from isam.ir.text import parse
    >>> k = parse("kernel p\\n inout a: f32[9]\\n forall i < 9 where 2 <= i < 5\\n  a[i] = 0")
    >>> print(within_ends(k.statements[0]).dest, within_ends(k.statements[0]).domain.axes[0].extent)
    a[i + 2] 3
    """
    begin: dict[str, Affine | int] = {}
    axes: list[Axis] = []
    for a in s.domain.axes:
        alone = [w for w in s.domain.where if w.names == (a.name,)]
        if not alone or not a.extent.is_constant:
            axes.append(a)
            continue
        bounds = [(w.coefficient(a.name), w.const) for w in alone]
        first = max(0, *(-(c // k) for k, c in bounds if k > 0), 0)
        last = min(a.extent.const - 1, *(c // -k for k, c in bounds if k < 0), a.extent.const - 1)
        begin[a.name] = Affine.of(a.name) + first
        axes.append(Axis(a.name, Affine((), max(0, last - first + 1))))
    if not begin:
        return s
    where = tuple([w for w in s.domain.where if len(w.names) != 1 or w.names[0] not in begin])
    return replace(s, domain=Domain(s.domain.axes, where)).substitute(begin, axes)
