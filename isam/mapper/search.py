"""The search's doors: kernels equivalent to the user's that instructions can carry out (TR-2).

:func:`find` asks for a kernel of which every statement is covered, :func:`reach` for one on which a single instruction
can be used. Both walk the same space (`space.py`) towards their goal (`goals.py`); both return a set of paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from isam.approach.choice import Approach, Trace
from isam.classes import dataclass
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mapping import Mapping as Mapped
from isam.ir.mismatch import Mismatch
from isam.mapper.as_it_stands import Selection
from isam.mapper.demand import Demand
from isam.mapper.goals import Covered, Used
from isam.mapper.laws import SHIPPED, Laws
from isam.mapper.match import BUDGET, normal
from isam.mapper.space import Budget, Outcome, Step, explore
from isam.mapper.steps import needed
from isam.mapper.uncovered import Uncovered, reports
from isam.transforms.law import Correspondence, Transform

__all__ = ["Budget", "Path", "Reached", "SearchResult", "Step", "find", "reach"]

F = TypeVar("F")

DEFAULT = SHIPPED.tried
REACH = Budget(states=48, work=800, blind=0, depth=4, pairs=3000)


@dataclass(frozen=True)
class Path(Generic[F]):
    """A kernel that does: ``steps`` lead to it from the user's, ``back`` to the user's names. ``found``: the covers on
    offer, or the mappings of the instruction."""

    kernel: Kernel
    steps: tuple[Step, ...]
    back: Correspondence
    found: F
    price: tuple[float, float]

    @property
    def needs(self) -> frozenset[str]:
        """The numerics that the steps used."""
        return needed(self.steps)

    def label(self) -> str:
        return " then ".join(map(str, self.steps)) or "as written"


@dataclass(frozen=True)
class SearchResult(Generic[F]):
    """``paths``: every kernel found, best first. ``blind_expansions``: blind steps taken. ``states``: kernels looked
    at. ``complete``: the search ended because nothing was left to try; else ``ended`` says what ended it.
    ``uncovered``: the report for the kernel as written, when nothing was found."""

    paths: tuple[Path[F], ...]
    blind_expansions: int
    states: int
    complete: bool
    uncovered: Uncovered | None
    ended: str = ""

    def __bool__(self) -> bool:
        return bool(self.paths)


@dataclass(frozen=True)
class Reached:
    """How an instruction can be used on a kernel. Truthy: it can.

    ``kernel``: the normal form that statement numbers, steps and sites speak of. ``paths``: the shortest chains of
    steps, each with the mappings after it, cheapest first; a chain of no steps means that it fits as it is. ``near``:
    the mismatches of the kernel as it is, deepest first (empty when it fits). ``complete``: no shorter chain, and none
    of the same length, was left out; with no paths, that no chain of directed steps leads there.
    """

    kernel: Kernel
    instruction: Instruction
    paths: tuple[Path[tuple[Mapped, ...]], ...]
    near: tuple[Mismatch, ...]
    blind_expansions: int
    states: int
    complete: bool
    ended: str = ""

    def __bool__(self) -> bool:
        return bool(self.paths)

    @property
    def direct(self) -> tuple[Mapped, ...]:
        """The mappings on the kernel as it is."""
        return self.paths[0].found if self.paths and not self.paths[0].steps else ()


def find(
    kernel: Kernel,
    demand: Demand,
    trace: Trace,
    budget: Budget | None = None,
) -> SearchResult[Selection]:
    """Searches for kernels equivalent to ``kernel`` that can be carried out as demanded. The result is a set of paths,
    cheapest first; every step taken is a decision on the trace, with the mismatch that asked for it or what it may
    save."""
    goal = Covered(kernel, demand, DEFAULT)
    done = explore(kernel, goal, trace, budget or Budget(), DEFAULT, DEFAULT.guessed, barred=demand.barred)
    paths = [Path(s.kernel, s.steps, s.back, s.look.found, s.look.price) for s in done.states
             if isinstance(s.look.found, Selection)]  # fmt: skip
    paths.sort(key=lambda p: (p.price, len(p.steps)))
    first = done.states[0].look.found
    report = _with_nearest(first, done, demand.instructions) if isinstance(first, Uncovered) and not paths else None
    return SearchResult(tuple(paths), done.blind_expansions, len(done.states), done.complete, report, done.ended)


def _with_nearest(
    report: Uncovered, done: Outcome[Selection | Uncovered], instructions: Sequence[Instruction]
) -> Uncovered:
    """The report, with the rewritten kernel that leaves least uncovered, if it leaves less than the user's own."""
    met = [(s, s.look.found) for s in done.states if isinstance(s.look.found, Uncovered) and not s.look.found.unmet]
    best, found = min(met, key=lambda m: (m[1].lacks, len(m[0].steps)), default=(None, report))
    if best is None or found.lacks >= report.lacks:
        return report
    left = reports(best.kernel, instructions, [g.statement for g in found.gaps])
    return replace(report, nearest=(tuple(map(str, best.steps)), left))


def reach(
    kernel: Kernel,
    instruction: Instruction,
    trace: Trace | None = None,
    budget: Budget | None = None,
    *,
    statement: int | None = None,
    buffer: str | None = None,
    strided: bool = False,
    pairs: int = BUDGET,
    transforms: Sequence[Transform] = DEFAULT,
) -> Reached:
    """Searches for the shortest chains of steps after which ``instruction`` carries out some statement of ``kernel``.

    ``statement`` (a number in the kernel's normal form) and ``buffer`` (written there) say which; ``strided`` and
    ``pairs`` (the matcher's budget per kernel) are the matcher's; ``trace``: first-fit when not given.
    """
    kernel = normal(kernel)
    laws = Laws.of(transforms)
    goal = Used(instruction, statement, buffer, strided, pairs, laws, kernel, (budget or REACH).pairs)
    trace = Trace(Approach()) if trace is None else trace
    done = explore(kernel, goal, trace, budget or REACH, laws, laws.guessed)
    first = done.states[0].look
    near = () if first.solved else first.asks
    return Reached(kernel, instruction, _shortest(done), near, done.blind_expansions, len(done.states), done.complete,
                   done.ended)  # fmt: skip


def _shortest(done: Outcome[tuple[Mapped, ...]]) -> tuple[Path[tuple[Mapped, ...]], ...]:
    solved = [s for s in done.states if s.solved]
    least = min((len(s.steps) for s in solved), default=0)
    paths = [Path(s.kernel, s.steps, s.back, s.look.found, s.look.price) for s in solved if len(s.steps) == least]
    return tuple(sorted(paths, key=lambda p: p.price))
