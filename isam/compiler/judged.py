"""Covers whose rewritings are shown to keep the meaning: a step that is not makes room for covers without it.

A law may be right where its judge cannot show that, or claim too much: either way nothing is wrong with the kernel, and
the search goes on without the step (a second time: without the law). Where that leads nowhere, the refusal says which
steps were not taken, and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isam.compiler.job import Job, Refused
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover, Rewriting

if TYPE_CHECKING:
    from isam.ir.instruction import Instruction
    from isam.mapper.uncovered import Uncovered


def covered(job: Job, offered: Sequence[Instruction], demanded: Sequence[str], *, sure: bool = False,
            saves: bool = True) -> Cover | Uncovered:  # fmt: skip
    """A cover as the mapper finds it, of which no step is undecided; ``saves``: as demanded of the mapper. Unless it is
    to be ``sure``, two are judged later: one with steps that only save calls, which may give way to one without, and
    one for sizes that have to be given first (a sum over none of anything is what nobody asks for)."""
    from isam.mapper.barred import NOTHING
    from isam.mapper.cover import cover
    from isam.mapper.demand import Demand

    while True:
        barred = job.barred or NOTHING
        demand = Demand(offered, demanded, saves, barred)
        answer = job.deciding(cover, job.kernel, demand, job.trace)
        found = None
        if isinstance(answer, Cover) and (sure or job.sure or not (answer.errors or _open(job.kernel))):
            found = undecided(answer)
        if found is None:
            return answer
        job.barred = barred.and_also(*found)


def plainly(job: Job, demanded: Sequence[str]) -> Cover | None:
    """Where steps of the job's cover were taken only because they may save calls: the cover without them, to be
    compared with in time, and which they give way to where they are not proved. Where nothing but such steps leads to a
    cover, the job's own becomes one whose steps are judged at once."""
    from isam.mapper.uncovered import told

    assert job.cover is not None
    if not job.cover.errors or _open(job.kernel):  # without sizes there will be no schedule to compare
        return None
    if isinstance(answer := covered(job, job.offered, demanded, saves=False), Cover):
        return answer
    if not isinstance(answer := covered(job, job.offered, demanded, sure=True), Cover):
        raise Refused("uncovered", job.original, told(answer, job.offered))
    job.cover = answer
    return None


def undecided(cover: Cover) -> tuple[Kernel, Rewriting, str] | None:
    """The first step that is not shown to keep the meaning: from where it is taken, the step, and what is not shown."""
    if not cover.chain:
        return None
    from isam.proof.rewritten import judged

    before = cover.original
    for step, verdict in zip(cover.chain, judged(cover), strict=False):
        if not verdict:
            return before, step, "; ".join(verdict.why)
        before = step.kernel
    return None


def _open(kernel: Kernel | None) -> bool:
    """Whether sizes have to be given before there can be a schedule."""
    from isam.ir.sizes import unsized

    return kernel is not None and bool(unsized(kernel))
