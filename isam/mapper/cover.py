"""Which instructions carry out a kernel, or an equivalent one that the search finds (SEL-1 to SEL-3, TR-2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from isam.approach.choice import Choice, Trace
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.mapper.as_it_stands import settle
from isam.mapper.demand import Demand
from isam.mapper.recalled import follow
from isam.mapper.search import Step, find
from isam.mapper.steps import errors, needed, rewritings
from isam.mapper.uncovered import Uncovered
from isam.transforms.law import Correspondence, taken


def cover(kernel: Kernel, demand: Demand, trace: Trace, *, ahead: Sequence[Step] = ()) -> Cover | Uncovered:
    """Picks instructions for every statement of ``kernel``, or of an equivalent kernel that the search finds; ``steps``
    and ``back`` of the cover tell. Transforms are tried where a statement cannot be carried out or a product's
    temporary would be kept whole (:mod:`isam.mapper.as_it_stands` has the covers of a kernel as it stands).

    ``kernel``: in normal form, sizes given (recurrent trips may stay symbols). ``ahead``: steps that are taken before
    anything is looked at. Where several kernels can be carried out, which one to take is a choice of the Approach,
    cheapest first. Returns a falsy :class:`Uncovered` with the reports when some statement cannot be carried out.
    """
    original, back = kernel, Correspondence.identity(kernel)
    for s in ahead:
        rewrite = taken(s.transform, kernel, s.site)
        kernel, back = rewrite.kernel, back.then(rewrite.back)
        follow(kernel, original)
    result = find(kernel, demand, trace)
    if not result.paths:
        assert result.uncovered is not None
        notes = {"states": result.states, "blind expansions": result.blind_expansions, "complete": result.complete}
        return replace(result.uncovered, notes=notes, undecided=demand.barred.why)
    path = result.paths[0]
    if len(result.paths) > 1:
        costs = [p.price[0] for p in result.paths]
        path = trace.choose(Choice("kernel", result.paths, {"options": [p.label() for p in result.paths]}, costs))
    made = settle(path.found, trace)
    steps = (*ahead, *path.steps)
    back = back.then(path.back) if ahead and path.steps else back if ahead else path.back
    notes = {
        **made.notes,
        "numerics": sorted(needed(steps)),
        "because": tuple(s.reason for s in steps),
        "blind expansions": result.blind_expansions,
    }
    backs, chain = (back,) if steps else (), rewritings(original, steps)
    told = {"ahead": len(ahead), "errors": errors(original, steps), "notes": notes}
    return replace(made, original=original, steps=tuple(map(str, steps)), back=backs, chain=chain, **told)
