"""What offers are asked about, in tests: a kernel, as it is covered or not yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from isam.compiler.job import Job
from isam.compiler.offers import Subject
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.system.graph import System
from tests.pipeline import simulated


def covered(cover: Cover, system: System, offered: Sequence[Instruction] = ()) -> Subject:
    return Subject(cover.kernel, cover, system, offered)


def of_job(job: Job) -> Subject:
    """The subject of a job, as its stage has it."""
    assert job.kernel is not None
    assert job.cover is not None
    return Subject(job.kernel, job.cover, job.system, job.offered)


def uncovered(kernel: Kernel, system: System | str = "host-avx512") -> Subject:
    """A kernel of which nothing is carried out yet: for offers that ask about it alone."""
    return Subject(kernel, Cover(kernel, kernel, ()), simulated(system), ())


@dataclass(frozen=True)
class Summed(Subject):
    """A subject that says by itself what is summed across how many lanes, and how large the last cache is."""

    sums: dict[str, int] = field(default_factory=dict)  # type: ignore[assignment]
    last_cache: int = 0  # type: ignore[assignment]


def summed(kernel: Kernel, sums: dict[str, int], cache: int = 0) -> Summed:
    return Summed(kernel, Cover(kernel, kernel, ()), simulated("host-avx512"), (), sums, cache)
