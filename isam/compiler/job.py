"""What is known of one kernel on its way through the stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from isam.approach.choice import Trace
from isam.artifact import Artifact
from isam.classes import dataclass
from isam.diagnostics import NOWHERE, Diagnostic, IsamError, Loc
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.runtime.cache import Cache
from isam.schedule.tree import Schedule
from isam.system.graph import System

if TYPE_CHECKING:
    from isam.compiler.candidate import Candidate
    from isam.compiler.measured import Ran
    from isam.mapper.barred import Barred


class Refused(IsamError):
    """A legitimate no: ``answer`` is the ``Uncovered`` or ``Infeasible`` that says why and what would help."""

    def __init__(self, code: str, kernel: Kernel, answer: Any, more: Sequence[Diagnostic] = ()):
        self.answer = answer
        found = [Diagnostic(code, str(answer), kernel.loc), *more]
        short: Loc = getattr(answer, "loc", NOWHERE)
        if short != NOWHERE:
            full = getattr(answer, "memory", "")
            what = f"this is what {answer.resource} has" if full else f"here is the description of {answer.resource}"
            found.append(Diagnostic(code, what, short))
        super().__init__(found)

    def add(self, more: Sequence[Diagnostic]) -> None:
        """Says more, which was found out afterwards."""
        self.diagnostics += tuple(more)
        self.args = ("\n".join(map(str, self.diagnostics)),)


@dataclass(slots=True)
class Job:
    """Every stage reads and fills fields. ``kernel`` has the sizes given."""

    original: Kernel
    system: System
    trace: Trace
    sizes: dict[str, int]
    require: tuple[str, ...] = ()
    check: bool = True
    sure: bool = False  # prove the cover's rewritings at once, not later
    threads: int = 1
    findings: Cache | None = None  # where what was found by running schedules is kept
    anew: bool = False  # schedules are run again, whatever was found before
    kernel: Kernel | None = None
    offered: Sequence[Instruction] = ()  # what the cover was chosen from
    cover: Cover | None = None
    barred: Barred | None = None  # steps that were not shown to keep the meaning, and are not taken
    plain: Cover | None = None  # without steps that only save calls, where the cover has some
    others: tuple[Cover, ...] = ()  # of equivalent kernels that may take less time
    candidates: list[Candidate] = field(default_factory=list)  # that may be taken, in the order offered
    taken: Candidate | None = None
    unproved: list[str] = field(default_factory=list)  # what was taken before, and gave way to what can be proved
    schedule: Schedule | None = None  # that of the one taken, with the decisions on it and its cover as its trace
    certificate: Any = None
    artifact: Artifact | None = None
    ran: tuple[Ran, ...] = ()  # schedules that were run beside each other, the first by prediction
    remembered: bool = False  # what came of that is kept for later
    seconds: dict[str, float] = field(default_factory=dict)
    decided: list[tuple[object, range]] = field(default_factory=list)  # covers and candidates: by which decisions

    def deciding(self, make: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """What ``make`` makes, a cover, of which the trace tells the decisions."""
        begin = len(self.trace.decisions)
        made = make(*given, **named)
        self._decided(made, begin)
        return made

    def scheduled(self, candidate: Candidate) -> Candidate:
        """The candidate, once it is made."""
        if self.trace.replays:
            begin = len(self.trace.decisions)
            candidate.make(self.system, self.trace)
            self._decided(candidate, begin)
        else:
            candidate.make(self.system)
            self.record(candidate)
        return candidate

    def record(self, candidate: Candidate) -> None:
        """Adds a candidate's decisions to the trace."""
        begin = len(self.trace.decisions)
        self.trace.decisions += candidate.decisions
        self._decided(candidate, begin)

    def take(self, candidate: Candidate, of: Candidate) -> None:
        """Takes a candidate, which was made from ``of``, or is that, and stands in its place from then on."""
        self.candidates[self.candidates.index(of)] = candidate
        self.taken, self.cover = candidate, candidate.cover
        self.schedule = replace(candidate.schedule, trace=self._behind(self.cover, candidate))

    def _decided(self, made: object, begin: int) -> None:
        self.decided.append((made, range(begin, len(self.trace.decisions))))

    def _behind(self, *parts: object) -> Trace:
        """The trace without the decisions on covers and candidates other than ``parts``."""
        others = {n for made, some in self.decided if not any(made is p for p in parts) for n in some}
        out = Trace(self.trace.approach)
        out.subject = self.trace.subject
        out.decisions = [d for n, d in enumerate(self.trace.decisions) if n not in others]
        return out
