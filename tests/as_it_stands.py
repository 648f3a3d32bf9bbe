"""A cover of a kernel as it stands: without the search for equivalent ones."""

from __future__ import annotations

from isam.approach.choice import Approach, Trace
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.mapper.as_it_stands import Selection, selection, settle
from isam.mapper.demand import Demand
from isam.mapper.uncovered import Uncovered


def cover_as_it_stands(kernel: Kernel, demand: Demand) -> Cover | Uncovered:
    found = selection(kernel, demand)
    return settle(found, Trace(Approach())) if isinstance(found, Selection) else found
