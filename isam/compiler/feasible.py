"""Whether a machine carries a kernel out: by which instructions, and whether it holds and moves what they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.compiler.job import Job, Refused
from isam.compiler.stages import new_job, run_stages
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover, Mapping
from isam.ir.sizes import unsized
from isam.schedule.tree import Schedule
from isam.system.graph import SEMANTICS_ONLY, System

if TYPE_CHECKING:
    from isam.compiler.grants import Grant
    from isam.mapper.uncovered import Uncovered
    from isam.scheduler.infeasible import Infeasible


@dataclass(frozen=True, slots=True)
class Feasibility:
    """Falsy where the answer is no. ``cover``: the instructions that carry out every statement, or None; ``schedule``:
    one that calls them, or None; ``no``: why there is no cover (``Uncovered``), or no schedule (``Infeasible``).
    ``left``: sizes that have to be given before there can be a schedule. ``grants``: permissions that the kernel does
    not give, with which it would be carried out far more quickly."""

    kernel: Kernel
    system: System
    cover: Cover | None = None
    schedule: Schedule | None = None
    no: Uncovered | Infeasible | None = None
    left: tuple[str, ...] = ()
    grants: tuple[Grant, ...] = ()

    def __bool__(self) -> bool:
        return self.no is None

    @property
    def fits(self) -> bool:
        """Whether instructions carry out every statement."""
        return self.cover is not None

    @property
    def scheduled(self) -> bool | None:
        """Whether the machine holds and moves what they need; None: not asked, since there is no cover, sizes are open
        or nothing is scheduled on this machine."""
        return self.schedule is not None if self.fits and is_asked(self.system, self.left) else None

    @property
    def mappings(self) -> tuple[Mapping, ...]:
        """How the statements are carried out; none where they are not."""
        return self.cover.mappings if self.cover is not None else ()

    @property
    def steps(self) -> tuple[str, ...]:
        """The transforms applied first."""
        return tuple(map(str, self.cover.steps)) if self.cover is not None else ()

    def __str__(self) -> str:
        if self.cover is None:
            return str(self.no)
        lines = [f"every statement of {self.kernel.name} is carried out on {self.system.name}"]
        lines += [f"  rewritten by {s}" for s in self.steps]
        return "\n".join([*lines, *(f"  {m}" for m in self.mappings), self._ahead(), *map(str, self.grants)])

    def _ahead(self) -> str:
        if self.no is not None:
            return str(self.no)
        if self.schedule is not None:
            return "and there is a schedule: the machine holds and moves what they need"
        return not_asked(self.system, self.left)


def feasibility(kernel: Kernel, system: System) -> Feasibility:
    """As far as the sizes put into ``kernel`` allow: a cover, and where none is open a schedule. Raises ``IsamError``:
    the kernel is wrong."""
    from isam.compiler.grants import grants

    left = unsized(kernel)
    job, no = as_far(new_job(kernel, system, {}, None), "schedule" if is_asked(system, left) else "cover")
    return Feasibility(kernel, system, job.cover, job.schedule, no, left, grants(job) if no is None else ())


def as_far(job: Job, until: str) -> tuple[Job, Uncovered | Infeasible | None]:
    """The job after the stage ``until``, or where one refused, with the answer that says why."""
    try:
        return run_stages(job, until), None
    except Refused as e:
        return job, e.answer


def is_asked(system: System, left: tuple[str, ...]) -> bool:
    """Whether there can be a schedule."""
    return system.backend != SEMANTICS_ONLY and not left


def not_asked(system: System, left: tuple[str, ...]) -> str:
    """Why nothing was scheduled."""
    if system.backend == SEMANTICS_ONLY:
        return f"no schedule: '{system.name}' has no back end, nothing is scheduled on it"
    return f"no schedule yet, the sizes {', '.join(left)} are open"
