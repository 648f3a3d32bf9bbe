"""Windows: what the steps of a sum read of what the steps of its neighbours do."""

from __future__ import annotations

from math import prod

from isam.scheduler.nests import Nest, Use
from isam.scheduler.plans.sets import values_of


def window_alone(main: Nest, use: Use) -> bool:
    """Whether a sum goes over nothing but windows of what is read, which those beside each other share parts of."""
    shared = set[str]()
    for row in use.index:
        inside = [(abs(c), main.length(a)) for a, c in row.terms if a in main.extents]
        if values_of(inside)[0] < prod(n for _, n in inside):
            shared.update(row.names)
    return all(a in shared for a in main.reduced if main.length(a) > 1)
