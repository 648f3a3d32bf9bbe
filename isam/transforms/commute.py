"""Exchange the sources of a commutative operation."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.kernel import COMMUTATIVE, Kernel
from isam.transforms.edit import splice
from isam.transforms.law import MATCHED, Correspondence, Rewrite, Site, Transform


class Commute(Transform):
    """``a * b = b * a``, also for ``+ max min`` and symmetric comparisons. (The matcher tries both orders itself.)"""

    law = "commute"
    equation = "a op b  =>  b op a"
    tried = MATCHED

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(statement=i)
            for i, s in enumerate(kernel.statements)
            if s.op in COMMUTATIVE and len(s.sources) == 2 and s.sources[0] != s.sources[1]
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i = site["statement"]
        s = kernel.statements[i]
        new, origin = splice(kernel, {i: ((replace(s, sources=s.sources[::-1]), (i,)),)})
        return Rewrite(new, Correspondence(origin))
