"""From a kernel and a machine to a callable: the stages in order, each with the reason for its place."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from collections.abc import Mapping as MappingABC
from dataclasses import field, replace
from math import inf
from pathlib import Path
from typing import Any

from isam import registry
from isam.approach.choice import Approach, Decision, Trace
from isam.artifact import Artifact
from isam.classes import dataclass
from isam.compiler.keys import machine_of
from isam.diagnostics import NOWHERE, Diagnostic, InternalError, IsamError, Loc, fail
from isam.garbage import seldom
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover, Mapping
from isam.schedule.tree import Schedule
from isam.system.graph import System

FAR = 4  # times less that the calls of a cover take than those of the first, for it to be scheduled before that


class Refused(IsamError):
    """A legitimate no: ``answer`` is the ``Uncovered`` or ``Infeasible`` that says why and what would help."""

    def __init__(self, code: str, kernel: Kernel, answer: Any, more: Sequence[Diagnostic] = ()):
        self.answer = answer
        found = [Diagnostic(code, str(answer), kernel.loc), *more]
        short: Loc = getattr(answer, "loc", NOWHERE)
        if short != NOWHERE:
            found.append(Diagnostic(code, f"this is what {answer.resource} has", short))
        super().__init__(found)


@dataclass(slots=True)
class Job:
    """One kernel on its way through the stages; every stage reads and fills fields. ``kernel`` has the sizes given."""

    original: Kernel
    system: System
    trace: Trace
    sizes: dict[str, int]
    require: tuple[str, ...] = ()
    check: bool = True
    threads: int = 1
    kernel: Kernel | None = None
    offered: Sequence[Instruction] = ()  # what the cover was chosen from
    cover: Cover | None = None
    others: tuple[Cover, ...] = ()  # of equivalent kernels that may take less time
    schedule: Schedule | None = None
    certificate: Any = None
    artifact: Artifact | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    decided: list[tuple[object, range]] = field(default_factory=list)  # covers and schedules: by which decisions

    def deciding(self, make: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """What ``make`` makes, and which decisions it took."""
        begin = len(self.trace.decisions)
        made = make(*given, **named)
        self.decided.append((made, range(begin, len(self.trace.decisions))))
        return made

    def decisions(self, made: object) -> list[Decision]:
        """Those on a cover or a schedule."""
        return [self.trace.decisions[n] for m, some in self.decided if m is made for n in some]

    def behind(self, *parts: object) -> Trace:
        """The trace without the decisions on covers and schedules other than ``parts``."""
        others = {n for made, some in self.decided if not any(made is p for p in parts) for n in some}
        out = Trace(self.trace.approach)
        out.subject = self.trace.subject
        out.decisions = [d for n, d in enumerate(self.trace.decisions) if n not in others]
        return out


@dataclass(frozen=True, slots=True)
class Stage:
    """``run`` fills in its part of the job; ``why``: the reason for its place in the order."""

    name: str
    run: Callable[[Job], None]
    why: str


def _verify(job: Job) -> None:
    from isam.ir.verify import require

    require(job.original)


def _specialise(job: Job) -> None:
    job.kernel = job.original.with_sizes(job.sizes)
    job.trace.about({"kernel": str(job.kernel), "machine": machine_of(job.system), "options": " ".join(job.require)})


def _normal(job: Job) -> None:
    from isam.ir.normal import normal_form

    assert job.kernel is not None
    job.kernel = normal_form(job.kernel)


def _cover(job: Job) -> None:
    from isam.compiler.emptied import emptied
    from isam.compiler.variants import equivalents
    from isam.mapper.cover import cover

    assert job.kernel is not None
    offered, required = job.system.compute, _required(job)
    first = answer = job.deciding(cover, job.kernel, offered, job.trace, require=required)
    while isinstance(answer, Cover) and (left := (_in_parts(answer) | _beyond(answer, job.system)) - set(required)):
        offered = offered.without(left)
        answer = job.deciding(cover, job.kernel, offered, job.trace, require=required)
    answer = answer or first  # what cannot be scheduled says why
    if not isinstance(answer, Cover):
        raise Refused("uncovered", job.original, answer, emptied(job.original, job.sizes))
    job.cover, job.offered = answer, offered
    others = [job.deciding(cover, job.kernel, offered, job.trace, require=required, ahead=ahead)
              for ahead in equivalents(job.kernel, job.cover, job.system, offered)]  # fmt: skip
    job.others = tuple(o for o in others if isinstance(o, Cover))


def _in_parts(cover: Cover) -> set[str]:
    """The instructions of a cover that leave out points of their boxes: they are mapped, but not scheduled."""
    return {m.instruction.name for m in cover.mappings if not m.instruction.whole}


def _beyond(cover: Cover, system: System) -> set[str]:
    """The instructions of a cover that the CPU does not have, where code for one is made."""
    from isam.system.features import lacking

    if system.backend != "llvm":
        return set()
    have = system.target.features if system.target else None
    return {m.instruction.name for m in cover.mappings if m.instruction.needs and lacking(m.instruction.needs, have)}


def _required(job: Job) -> tuple[str, ...]:
    """The instructions demanded; of a family, the member that fits best as operands lie."""
    from isam.system.names import named

    assert job.kernel is not None
    out = []
    for name in job.require:
        family = named(job.system, name)
        out.append(family[0].name if len(family) == 1 else _best(job.kernel, family))
    return tuple(out)


def _best(kernel: Kernel, family: list[Instruction]) -> str:
    from isam.mapper import match
    from isam.mapper.match import Matches

    answers = ((i.name, match(kernel, i)) for i in family)
    fits = {name: min(map(_turned, found)) for name, found in answers if isinstance(found, Matches)}
    return min(fits, key=fits.__getitem__) if fits else family[0].name


def _turned(mapping: Mapping) -> int:
    """How many operands would have to be copied: another dimension than their last would have to be contiguous."""
    contracts = ((o, mapping.instruction.contract(o.operand).strides) for o in mapping.operands if o.buffer)
    return sum(any(s == 1 and d != len(o.index) - 1 for s, d in zip(strides, o.dims, strict=True))
               for o, strides in contracts)  # fmt: skip


def _plain(job: Job) -> Cover | None:
    """Where steps were taken only because they may save calls: the cover without them, to be compared with in time."""
    from isam.mapper.cover import cover

    assert job.kernel is not None
    assert job.cover is not None
    if not job.cover.notes.get("errors"):
        return None
    answer = job.deciding(cover, job.kernel, job.offered, job.trace, require=_required(job), saves=False)
    return answer if isinstance(answer, Cover) else None


def _schedule(job: Job) -> None:
    from isam.compiler.variants import chosen
    from isam.scheduler import schedule

    job.system.demand_backend()
    assert job.cover is not None
    make = schedule
    if job.trace.approach.tries > 1 and not job.trace.replays:
        from isam.compiler.alternatives import quickest as make
    covers = [c for c in (_plain(job), job.cover, *job.others) if c is not None]
    several = len(covers) > 1  # each is scheduled once; of the one taken there may be more schedules
    if several:
        answers = _scheduled(job, covers)
    else:
        answers = [(c, job.deciding(make, c, job.system, job.trace)) for c in covers]
    done = [(c, s) for c, s in answers if isinstance(s, Schedule)]
    if not done:
        raise Refused("infeasible", job.original, answers[0][1])
    job.cover, job.schedule = chosen(done, job.trace) if several else done[0]
    if several and make is not schedule:
        job.schedule = job.deciding(make, job.cover, job.system, job.trace, (job.schedule, job.decisions(job.schedule)))
    elif several and (job.trace.ahead is not None if job.trace.replays else job.trace.approach.goes_on):
        best = job.deciding(schedule, job.cover, job.system, job.trace)
        job.schedule = best if isinstance(best, Schedule) else job.schedule
    assert job.schedule is not None
    job.schedule = replace(job.schedule, trace=job.behind(job.cover, job.schedule))


def _scheduled(job: Job, covers: Sequence[Cover]) -> list[tuple[Cover, Any]]:
    """A schedule of each cover that may be the quickest, in their order: where calls alone take longer than a schedule
    that was made, none is. Begins with one that may be far quicker than the first."""
    from isam.cost.floor import least
    from isam.cost.timeline import timeline
    from isam.scheduler import schedule

    floors = [least(c, job.system) for c in covers]
    order = sorted(range(len(covers)), key=lambda n: (floors[n] * FAR > floors[0], n))
    made: dict[int, Any] = {}
    best = inf
    for n in order:
        if floors[n] < best or not made:
            made[n] = job.deciding(schedule, covers[n], job.system, job.trace)
            if floors[n] and isinstance(made[n], Schedule) and not covers[n].notes.get("errors"):
                best = min(best, timeline(made[n], {}).seconds)
    return [(covers[n], made[n]) for n in sorted(made)]


def _prove(job: Job) -> None:
    assert job.schedule is not None
    if job.check:
        from isam.proof import prove

        job.certificate = prove(job.schedule)


def _emit(job: Job) -> None:
    emit = registry.load("isam.backends", job.system.backend)
    assert job.schedule is not None
    artifact: Artifact = emit(job.schedule)
    parts = {"kernel.isam": str(job.original).encode(), "trace.json": job.trace.to_json().encode()}
    if "schedule.json" not in artifact.parts:
        from isam.schedule.serial import to_json

        parts["schedule.json"] = to_json(job.schedule).encode()
    if job.certificate is not None:
        parts["certificate.json"] = job.certificate.to_json().encode()
    job.artifact = replace(artifact, parts={**artifact.parts, **parts})


STAGES = (
    Stage("verify", _verify, "first: what follows may rely on a well-formed kernel and reports no faults of the text"),
    Stage("specialise", _specialise, "before the normal form, which simplifies more when sizes are numbers"),
    Stage("normal form", _normal, "before covering: the matcher must not depend on what was typed (IR-2)"),
    Stage("cover", _cover, "before scheduling: which instructions are called decides what has to move"),
    Stage("schedule", _schedule, "the last stage that decides anything; everything later only checks and writes down"),
    Stage("prove", _prove, "on the finished schedule, before any code exists: wrong schedules are never emitted"),
    Stage("emit", _emit, "last: from a proved schedule alone, without a decision left"),
)


def run_stages(job: Job, until: str = "") -> Job:
    """Carries the job through every stage, or as far as the one named ``until``. Raises ``IsamError`` (the input),
    ``InternalError`` (us), which shows the smallest kernel found with which the same stage fails."""
    with seldom():
        return _staged(job, until)


def _staged(job: Job, until: str) -> Job:
    for stage in STAGES:
        start = time.perf_counter()
        try:
            _run(stage, job)
        except InternalError as e:
            if stage.name != "emit":  # where text in a description may be wrong: found by trying each instruction
                e.shown = _shown(job, stage, e)
            raise
        job.seconds[stage.name] = time.perf_counter() - start
        if stage.name == until:
            break
    return job


def _run(stage: Stage, job: Job) -> None:
    try:
        stage.run(job)
    except (IsamError, InternalError):
        raise
    except RecursionError:
        raise fail("too-deep", f"'{job.original.name}' is nested too deeply for the stage '{stage.name}'") from None
    except Exception as e:
        raise _ours(job, stage, e) from e


def _shown(job: Job, stage: Stage, fault: InternalError) -> str:
    """The smallest kernel found with which the stage fails in the same way, as text."""
    from isam.compiler.smallest import smallest

    def shows(kernel: Kernel, sizes: MappingABC[str, int]) -> bool:
        again = Job(kernel, job.system, Trace(job.trace.approach), dict(sizes), job.require, threads=job.threads)
        try:
            for s in STAGES[: STAGES.index(stage)]:
                _run(s, again)
        except (IsamError, InternalError):
            return False
        try:
            _run(stage, again)
        except InternalError as e:
            return type(e) is type(fault)
        except IsamError:
            pass
        return False

    kernel, sizes = smallest(job.original, job.sizes, shows)
    given = ", ".join(f"{n}={v}" for n, v in sizes.items())
    return f"the smallest kernel found that shows it{f' ({given})' if given else ''}:\n{kernel}"


def _ours(job: Job, stage: Stage, e: Exception) -> InternalError:
    sizes = ", ".join(f"{n}={v}" for n, v in job.sizes.items())
    return InternalError(f"the stage '{stage.name}' failed on {job.system.name} with {type(e).__name__}: {e}\n"
                         f"sizes: {sizes or 'none'}\n{job.original}")  # fmt: skip

def new_job(kernel: Kernel, system: System, sizes: MappingABC[str, int], approach: Approach | None,
            **options: Any) -> Job:  # fmt: skip
    """A job with the Approach that the system names unless another is given; ``replay`` as for :func:`compile`."""
    replay = options.pop("replay", None)
    chosen = approach or registry.load("isam.approaches", system.approach)()
    if options.get("threads", 1) > 1:
        system = system.threaded(options["threads"])
    return Job(kernel, system, _replaying(replay) if replay is not None else Trace(chosen), dict(sizes), **options)


def _replaying(replay: Trace | str | Path) -> Trace:
    if isinstance(replay, Trace):
        return Trace.replaying(replay.to_json())
    if not isinstance(replay, Path) and replay.lstrip().startswith("{"):
        return Trace.reading(replay, "the trace given")
    return Trace.reading(Path(replay))
