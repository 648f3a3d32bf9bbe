"""From a kernel and a machine to a callable: the stages in order, each with the reason for its place."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from collections.abc import Mapping as MappingABC
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isam import registry
from isam.approach.choice import Approach, Trace
from isam.classes import dataclass
from isam.compiler.job import Job, Refused
from isam.compiler.keys import machine_of
from isam.diagnostics import InternalError, IsamError, as_path, fail
from isam.garbage import seldom
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.ir.table import Table
from isam.room import roomy
from isam.system.graph import System

if TYPE_CHECKING:
    from isam.mapper.space import Step


@dataclass(frozen=True, slots=True)
class Stage:
    """``run`` fills in its part of the job; ``why``: the reason for its place in the order."""

    name: str
    run: Callable[[Job], None]
    why: str


def _verify(job: Job) -> None:
    """Refuses a kernel that is not well formed, with every fault at once."""
    from isam.ir.verify import require

    require(job.original)


def _specialise(job: Job) -> None:
    """Gives the kernel the sizes that are known."""
    job.kernel = job.original.with_sizes(job.sizes)
    job.trace.about({"kernel": str(job.kernel), "machine": machine_of(job.system), "options": " ".join(job.require)})


def _normal(job: Job) -> None:
    """Brings the kernel into the one form that matching looks at."""
    from isam.ir.normal import normal_form

    assert job.kernel is not None
    job.kernel = normal_form(job.kernel)


def _cover(job: Job) -> None:
    """Chooses the instructions that carry out every statement; does the same for equivalent kernels offered beside."""
    from isam.compiler.emptied import emptied
    from isam.compiler.judged import covered, plainly
    from isam.compiler.offers import Subject, equivalents, further
    from isam.compiler.required import required
    from isam.mapper.barred import NOTHING
    from isam.mapper.cover import cover
    from isam.mapper.demand import Demand
    from isam.mapper.uncovered import told

    assert job.kernel is not None
    offered, demanded = job.system.compute, required(job.kernel, job.system, job.require)
    first = answer = covered(job, offered, demanded)
    while isinstance(answer, Cover) and (left := (_in_parts(answer) | _beyond(answer, job.system)) - set(demanded)):
        offered = offered.without(left)
        answer = covered(job, offered, demanded)
    answer = answer or first  # what cannot be scheduled says why
    if not isinstance(answer, Cover):
        raise Refused("uncovered", job.original, told(answer, offered), emptied(job.original, job.sizes))
    offered = offered.without(_absent(job.system) - set(demanded))  # nothing equivalent is looked for with those
    job.cover, job.offered = answer, offered
    job.plain = plainly(job, demanded)  # before the offers: it may find steps that are not to be taken
    demand = Demand(offered, demanded, barred=job.barred or NOTHING)
    subject = Subject(job.kernel, job.cover, job.system, offered)

    def covers(equivalent: Iterable[tuple[Step, ...]]) -> list[tuple[tuple[Step, ...], Any]]:
        return [(ahead, job.deciding(cover, job.kernel, demand, job.trace, ahead=ahead)) for ahead in equivalent]

    others = covers(equivalents(subject))
    others += covers(further(subject, [(steps, c) for steps, c in others if isinstance(c, Cover)]))
    job.others = tuple(o for _, o in others if isinstance(o, Cover))


def _in_parts(cover: Cover) -> set[str]:
    """The instructions of a cover that leave out points of their boxes: they are mapped, but not scheduled."""
    return {m.instruction.name for m in cover.mappings if not m.instruction.whole}


def _beyond(cover: Cover, system: System) -> set[str]:
    """The instructions of a cover that the CPU does not have, where code for one is made."""
    return {m.instruction.name for m in cover.mappings} & _absent(system)


def _absent(system: System) -> set[str]:
    """The instructions that the CPU does not have, where code for one is made."""
    from isam.system.features import lacking

    if system.backend != "llvm":
        return set()
    have = system.target.features if system.target else None
    return {n for n, needs in Table.of(system.instructions).needing.items() if lacking(needs, have)}


def _schedule(job: Job) -> None:
    """Schedules the kernel and what is offered beside it, and takes the quickest."""
    from isam.compiler.variants import select
    from isam.ir.sizes import unsized

    job.system.demand_backend()
    if left := unsized(job.original.with_sizes(job.sizes)):
        what = f"'{job.original.name}' has no schedule while the sizes {', '.join(left)} are open"
        raise fail("size-open", what, job.original.loc, f"give sizes: {', '.join(f'{n} = ...' for n in left)}")
    select(job)


def _prove(job: Job) -> None:
    """Proves the schedule taken; if it cannot be proved, though nothing shows it wrong, takes another."""
    from isam.compiler.variants import gave_way, give_way

    while gave_way(job) and give_way(job):
        pass
    job.trace.done()
    if not job.check:
        return
    from isam.proof import ProofError, prove

    while job.certificate is None:
        assert job.schedule is not None
        try:
            job.certificate = prove(job.schedule)
        except ProofError as e:
            if e.executed or job.trace.replays or not give_way(job):
                raise


def _emit(job: Job) -> None:
    """Writes the schedule as code, with the kernel, the decisions and the certificate in the artifact; where the code
    keeps vectors of an innermost loop on the stack, other tiles are taken."""
    from isam.compiler.crowded import written

    artifact = written(job)
    assert job.schedule is not None
    parts = {"kernel.isam": str(job.original).encode(), "trace.json": job.trace.to_json().encode()}
    if "schedule.json" not in artifact.parts:
        from isam.schedule.serial import to_json

        parts["schedule.json"] = to_json(job.schedule).encode()
    if job.certificate is not None:
        parts["certificate.json"] = job.certificate.to_json().encode()
    job.artifact = replace(artifact, given=tuple(job.sizes.items()), parts={**artifact.parts, **parts})


STAGES = (
    Stage("verify", _verify, "first: what follows may rely on a well-formed kernel and reports no faults of the text"),
    Stage("specialise", _specialise, "before the normal form, which simplifies more when sizes are numbers"),
    Stage("normal form", _normal, "before covering: the matcher must not depend on what was typed (IR-2)"),
    Stage("cover", _cover, "before scheduling: which instructions are called decides what has to move"),
    Stage("schedule", _schedule, "before all that checks and writes down; what gives way there is made again as here"),
    Stage("prove", _prove, "on the finished schedule, before any code exists: wrong schedules are never emitted"),
    Stage("emit", _emit, "last: from a proved schedule; only code tells what registers do not hold; then from another"),
)

NAMES = [stage.name for stage in STAGES]


@roomy
def run_stages(job: Job, until: str = "") -> Job:
    """Carries the job through every stage, or as far as the one named ``until``. Raises ``IsamError`` (the input),
    ``InternalError`` (us), which shows the smallest kernel found with which the same stage fails. Where schedules are
    to be run beside each other and were before, the decisions found then are made again, if they still fit."""
    from isam.compiler.measured import recalled, remember

    with seldom():
        if (found := recalled(job)) is not None:
            with suppress(IsamError, InternalError):  # they no longer fit; what is found now takes their place
                return _staged(found, until)
        done = _staged(job, until)
        if until in ("", "prove", "emit"):
            remember(done)
        return done


def _staged(job: Job, until: str) -> Job:
    for stage in STAGES:
        start = time.perf_counter()
        try:
            _run(stage, job)
        except Refused as no:
            from isam.compiler.own import led

            no.add(led(job, no))
            raise
        except InternalError as e:
            e.shown = _shown(job, stage, e) if stage.name != "emit" else _blamed(job, e)
            raise
        job.seconds[stage.name] = time.perf_counter() - start
        if stage.name == until:
            break
    return job


@roomy
def plain_stages(job: Job) -> None:
    """All stages, without looking for whose fault it is where one fails."""
    with seldom():
        for stage in STAGES:
            _run(stage, job)


@roomy
def scheduled(job: Job) -> None:
    """As far as the schedule, nothing proved; of a refusal nothing more is found out. Raises ``IsamError``."""
    for stage in STAGES[: NAMES.index("schedule") + 1]:
        _run(stage, job)


def _blamed(job: Job, fault: InternalError) -> str:
    """What a shipped description does wrong with the instructions that were called, as text. Raises ``IsamError`` when
    the description of somebody else does."""
    from isam.compiler.alone import culprits, theirs

    assert job.schedule is not None
    found = culprits(job.system, job.schedule, run=False)
    if theirs(found):
        raise IsamError(found) from fault
    return "\n".join(map(str, found))


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
    return Job(kernel, system, recorded(replay) if replay is not None else Trace(chosen), dict(sizes), **options)


def recorded(replay: Trace | str | Path) -> Trace:
    """A trace whose decisions are made again from the first: of a trace, its JSON text, or a file's path. Raises
    ``IsamError`` where there is none."""
    if isinstance(replay, Trace):
        return Trace.replaying(replay.to_json())
    if isinstance(replay, str) and replay.lstrip().startswith("{"):
        return Trace.reading(replay, "the trace given")
    return Trace.reading(as_path(replay, "a recorded trace"))
