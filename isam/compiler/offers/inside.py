"""Products with the zeros around some data, left out of the sums that they would be added to.

A padded image is copied into a box of zeros, so that every sum has all of its terms: of 7 x 7 pixels and 3 x 3 taps 18%
of them are zero. Where zero times anything is zero (whole numbers; floats of which the user says that none is infinite)
sums may run over the data alone. That is no box any more, and is scheduled in several: whether it pays is a matter of
time.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from isam.compiler.offers.subject import one
from isam.ir.counting import admitted
from isam.ir.kernel import Kernel, Literal

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject

LEAST = 1 / 16  # of the terms of all sums: fewer are not worth a schedule of several boxes
MOST = 4  # borders


@one
def inside(of: Subject) -> Steps:
    """Steps after which sums leave out what they would add of zeros around some data, where those are many of their
    terms. What the judge of rewritings cannot decide is not offered."""
    kernel = of.kernel
    if kernel.syms or not any(True for _ in _bordered(kernel)):
        return ()
    from isam.compiler.offers.way import Way
    from isam.transforms.structure.unpad import Unpad

    way = Way(kernel, 0)
    way.take_each(Unpad(), Unpad().sites, MOST)
    return way.steps if _terms(way.kernel) <= (1 - LEAST) * _terms(kernel) else ()


def _bordered(kernel: Kernel) -> Iterator[str]:
    """Temporaries of zeros that something is copied into, where zero times anything is zero."""
    from isam.transforms.edit import zero_at_all

    for b in kernel.buffers:
        made = [kernel.statements[i] for i in kernel.writers.get(b.name, ())]
        if b.role == "temp" and len(made) == 2 and all(s.op == "copy" for s in made) and zero_at_all(kernel, b.name):
            zero, data = (s.sources[0] for s in made)
            if isinstance(zero, Literal) and zero.value == 0 and not isinstance(data, Literal):
                yield b.name


def _terms(kernel: Kernel) -> int:
    """How many terms all sums have together."""
    total = 0
    for s in kernel.statements:
        if s.accumulate and s.reduces:
            box = {a.name: a.extent.const for a in s.domain.axes}
            counted = admitted(box, s.domain.where)
            total += prod(box.values()) if counted is None else counted
    return total
