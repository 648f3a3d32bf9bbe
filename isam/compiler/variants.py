"""Equivalent kernels that are scheduled too, and compared by the time that their schedules take.

What a step of a recurrent loop does not need of the step before may be done for all steps at once before the loop: an
input projection becomes one large product. Whether that pays depends on what else competes for room and bandwidth,
which only schedules tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from isam.approach.choice import Choice, Trace
from isam.classes import dataclass
from isam.ir.kernel import Kernel, recurrences
from isam.ir.mapping import Cover
from isam.schedule.tree import Schedule

if TYPE_CHECKING:
    from isam.mapper.space import Step
    from isam.system.graph import System


@dataclass(frozen=True)
class Variant:
    """An option at ``variant``: a schedule, and by which steps its kernel was made from the one as written.
    ``errors``: how far its results may be from exact ones, where steps were inexact."""

    schedule: Schedule
    ahead: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()

    def label(self) -> str:
        return " then ".join(self.ahead) or "as written"


def equivalents(kernel: Kernel, cover: Cover, system: System) -> Iterator[tuple[Step, ...]]:
    """Steps to equivalent kernels that may take less time than the one that is covered."""
    if ahead := taken_out(kernel, system):
        yield ahead
    if sums := across_lanes(cover):
        from isam.compiler.partial import in_lanes

        if ahead := in_lanes(kernel, sums):
            yield ahead
    if any(system.spread(m.instruction.name)[1] > 1 for m in cover.mappings):
        from isam.compiler.splits import split_sums

        yield from split_sums(kernel, cover, system)


def across_lanes(cover: Cover) -> dict[str, int]:
    """Per buffer that an instruction sums into, all lanes into one number, how many lanes that are."""
    out: dict[str, int] = {}
    for m in cover.mappings:
        s = next((s for s in m.instruction.body.statements if s.accumulate and s.reduces), None)
        if s is not None and not any(row.names for row in s.dest.index) and len(s.reduces) == 1:
            most = m.instruction.span(s.reduces[0]).most
            if most and most > 1:
                into = next(o.buffer for o in m.operands if o.operand == s.dest.buffer)
                out[into] = most
    return out


def taken_out(kernel: Kernel, system: System) -> tuple[Step, ...]:
    """What takes sums out of a recurrent loop, where that may pay: on machines with a memory that is filled ahead. What
    the judge of rewritings cannot decide is not offered."""
    near = any(m.cells is None and not m.home and m.kind == "managed" for m in system.memories.values())
    loops = tuple(recurrences(kernel.body))
    if not near or not loops or any(not r.axis.extent.is_constant or r.axis.extent.const < 2 for r in loops):
        return ()
    from isam.mapper.space import Step
    from isam.proof.equivalence import equivalent
    from isam.transforms.statements import Hoist

    law = Hoist()
    able = [s for s in law.sites(kernel) if any(kernel.statements[i].reduces for i in s["statements"])]
    if not able:
        return ()
    site = min(able, key=lambda s: len(s["statements"]))
    return (Step(law, site, None),) if equivalent(kernel, law.apply(kernel, site).kernel) else ()


def chosen(covers: Sequence[tuple[Cover, Schedule]], trace: Trace) -> tuple[Cover, Schedule]:
    """The cover and the schedule that the Approach takes."""
    if len(covers) == 1:
        return covers[0]
    from isam.cost.timeline import timeline

    least = len(covers[0][0].steps)  # the first is the kernel as written; one that saves calls takes steps beyond that
    taken = [c.notes.get("ahead", 0) or max(0, len(c.steps) - least) for c, _ in covers]
    options = [Variant(s, c.steps[:n], c.notes.get("errors", ())) for (c, s), n in zip(covers, taken, strict=True)]
    costs = [timeline(s).seconds for _, s in covers]
    taken = trace.choose(Choice("variant", options, {"options": [o.label() for o in options]}, costs))
    return next(pair for pair, option in zip(covers, options, strict=True) if option is taken)
