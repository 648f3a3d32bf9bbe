"""Permissions that a kernel does not give, and with which instructions of the machine would carry it out more quickly.

Nobody who does not know the instruction would ask for what it takes. So the kernel is covered once more as if it
permitted that, and what its calls take at least is compared with what those of the cover at hand do, line by line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from isam.classes import dataclass
from isam.compiler.job import Job
from isam.diagnostics import IsamError
from isam.ir.instruction import Instruction
from isam.ir.kernel import GRANTED, USUAL_TRIP, Kernel
from isam.ir.mapping import Cover, Mapping
from isam.mapper.filters import present
from isam.system.graph import System

TIMES = 2.0  # as quick, for a permission to be worth a remark
PART = 1 / 20  # of the seconds of all calls, that lines take which are worth one
SETS = 3  # of permissions that are tried, those of which least is missing first


@dataclass(frozen=True, slots=True)
class Grant:
    """``missing``: permissions that the kernel does not give; ``permits``: all that it would give with them.
    ``instructions``: which could then carry out the ``lines`` of its text, in ``times`` less time by prediction."""

    missing: tuple[str, ...]
    permits: tuple[str, ...]
    instructions: tuple[str, ...]
    lines: tuple[int, ...]
    times: float

    def __str__(self) -> str:
        allows = "; ".join(f"{p}: {GRANTED[p]}" for p in self.missing)
        lines = f"line{'s' if len(self.lines) > 1 else ''} {_and(self.lines)}" if self.lines else "it"
        return (f"with 'permits {', '.join(self.permits)}' ({allows}): {_and(self.instructions)} could carry out "
                f"{lines}, {self.times:.2g} times as quickly by prediction")  # fmt: skip


def _and(some: Sequence[object]) -> str:
    *first, last = map(str, some)
    return f"{', '.join(first)} and {last}" if first else last


def grants(job: Job) -> tuple[Grant, ...]:
    """What further permissions are worth to the kernel of a job that is covered. Where sizes are open, at the usual
    ones."""
    kernel = job.original.with_sizes(job.sizes)
    wanted = _wanted(kernel, job.offered)
    if not wanted:
        return ()
    sizes = kernel.usual(USUAL_TRIP)
    now = _quickest(job, job.system) if not kernel.syms else _covered(kernel, sizes, job)
    found: list[Grant] = []
    for missing in wanted if now is not None else ():
        if now is None or any(set(g.missing) <= missing for g in found):
            continue
        permits = (kernel.permits - {"exact"}) | missing
        then = _covered(replace(kernel, permits=permits), sizes, job)
        if then is not None:
            found += _grant(tuple(sorted(missing)), tuple(sorted(permits)), now, then)
    return tuple(found)


def _covered(kernel: Kernel, sizes: dict[str, int], like: Job) -> _Timed | None:
    """The quickest cover of a kernel; None where it has none, or not at these sizes."""
    from isam.compiler.feasible import as_far
    from isam.compiler.stages import new_job

    try:
        job, _ = as_far(new_job(kernel, like.system, sizes, None, require=like.require), "cover")
    except IsamError:
        return None
    return _quickest(job, like.system) if job.cover is not None else None


def _wanted(kernel: Kernel, offered: Sequence[Instruction]) -> list[frozenset[str]]:
    """Sets of permissions for want of which instructions do not fit that compute on what the kernel does."""
    everything = replace(kernel, permits=frozenset(GRANTED))
    sets = {missing for i in present(offered, everything) if (missing := i.takes - kernel.permits)}
    return sorted(sets, key=lambda s: (len(s), sorted(s)))[:SETS]


@dataclass(frozen=True, slots=True)
class _Timed:
    """Seconds of each mapping's calls, and the lines of the user's text that it carries out."""

    mappings: tuple[tuple[Mapping, frozenset[int], float], ...]

    @property
    def seconds(self) -> float:
        return sum(s for _, _, s in self.mappings)

    def on(self, lines: frozenset[int]) -> float:
        return sum(s for _, ls, s in self.mappings if ls & lines)


def _quickest(job: Job, system: System) -> _Timed:
    """Of the covers that schedules are compared of, and of the one taken, if one is."""
    covers = (job.cover,) if job.schedule is not None else (job.cover, job.plain, *job.others)
    return min((_Timed(tuple(_timed(c, system))) for c in covers if c is not None), key=lambda t: t.seconds)


def _timed(cover: Cover, system: System) -> Iterator[tuple[Mapping, frozenset[int], float]]:
    from isam.cost.floor import call_seconds

    for m, seconds in call_seconds(cover, system):
        mine = set(m.statements)
        for back in reversed(cover.back):
            mine = {old for i in mine for old in back.statements[i]}
        yield m, frozenset(cover.original.statements[i].loc.line for i in mine), seconds


def _grant(missing: tuple[str, ...], permits: tuple[str, ...], now: _Timed, then: _Timed) -> list[Grant]:
    """The instructions that a cover has and another lacks, on lines that take much less time with them."""
    have = {m.instruction.name for m, _, _ in now.mappings}
    names: dict[str, None] = {}
    lines: set[int] = set()
    for m, mine, _ in then.mappings:
        before = now.on(mine)
        if m.instruction.name not in have and before >= PART * now.seconds and before >= TIMES * then.on(mine) > 0:
            names[m.instruction.name] = None
            lines |= mine
    if not names:
        return []
    times = now.on(frozenset(lines)) / then.on(frozenset(lines))
    return [Grant(missing, permits, tuple(names), tuple(sorted(lines - {0})), times)]
