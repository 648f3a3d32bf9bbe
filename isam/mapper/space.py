"""The space of the paper's Figure 1 (TR-2): states are kernels, steps are transforms that a mismatch asks for.

One walk serves every goal. A :class:`Goal` looks at a kernel and says whether it is solved, how far it is from that and
which mismatches stand in the way; the walk offers the steps that answer them; the Approach picks the next one and, once
something is solved, when to stop. A kernel is looked at once, known by its dataflow (`seen.py`). Blind steps are
offered only when no directed one is left and nothing is solved, and they are counted.
"""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import cached_property
from math import prod
from typing import Any, Generic, Protocol, TypeVar

from isam.approach.choice import Choice, Trace
from isam.classes import dataclass
from isam.ir.kernel import Kernel
from isam.ir.mismatch import Mismatch
from isam.mapper.barred import NOTHING, Barred
from isam.mapper.laws import Laws
from isam.mapper.seen import Histories, Key
from isam.transforms.law import Correspondence, Site, Transform, dtypes_at, granted
from isam.transforms.saving import Saving

F = TypeVar("F")
INEXACT = ("reassociates", "rounding", "finite")  # what every algorithm with fewer multiplications uses
LARGE = 1 << 20  # multiplications of a sum: with fewer no other algorithm is looked for
Rank = tuple[float, ...]
Asked = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Budget:
    """``states``: kernels looked at; ``work``: statements of all of them together; ``blind``: blind steps taken;
    ``depth``: transforms on one path; ``further``: kernels looked at after the last improvement until stopping is the
    first option; ``pairs``: pairs tried by the matcher in the rewritten kernels together. Counts, so that a search ends
    the same way everywhere; ``seconds`` (None: any) ends it by the clock too, which a recording repeats."""

    states: int = 64
    work: int = 2000
    blind: int = 16
    depth: int = 8
    further: int = 6
    pairs: int = 1_000_000
    seconds: float | None = None


@dataclass(frozen=True)
class Step:
    """A transform at a site, and why: the mismatch that asked for it, or what it may save (None: a blind step)."""

    transform: Transform
    site: Site
    because: Mismatch | Saving | None

    @property
    def reason(self) -> str:
        m = self.because
        if m is None:
            return "blind"
        if isinstance(m, Saving):
            return str(m)
        return f"{m.instruction or 'no instruction'} [{m.kind}]: needs {m.need}; the kernel has {m.have}"

    def __str__(self) -> str:
        return f"{self.transform.law} ({self.site})"


@dataclass(frozen=True, eq=False)
class Look(Generic[F]):
    """What a goal says about a kernel. ``found``: what it will hand out; ``price``: of that, when ``solved``;
    ``distance``: how far from solved, 0 when it is; ``asks``: the mismatches that steps may answer, most telling first;
    ``grows``: laws that grow the kernel may answer them; ``hopeless``: no step can help; ``whole``: nothing was cut
    short while looking; ``pairs``: how many the matcher tried."""

    found: F
    solved: bool
    price: tuple[float, float] = (0.0, 0.0)
    distance: float = 0.0
    asks: tuple[Mismatch, ...] = ()
    grows: bool = True
    hopeless: bool = False
    whole: bool = True
    pairs: int = 0


class Goal(Protocol[F]):
    """What a search is for. ``shortest``: only the shortest paths count, so deeper steps end with the first solved.
    ``saves``: steps are taken too because they may make cheaper what is solved."""

    shortest: bool

    @property
    def saves(self) -> bool: ...

    def look(self, kernel: Kernel, back: Correspondence) -> Look[F]:
        """How near the kernel is. ``back`` leads to the names in which the goal was set."""
        ...

    def rank(self, state: State[F], step: Step) -> Rank:
        """Steps of lower rank are offered first."""
        ...


@dataclass(frozen=True, eq=False)
class State(Generic[F]):
    """A kernel looked at. ``parent``: the number of the state it was made from; ``steps`` lead to it from the user's
    kernel, ``back`` leads to the user's names. ``asked``: what laws that grow were asked for on the way."""

    number: int
    parent: int | None
    kernel: Kernel
    steps: tuple[Step, ...]
    back: Correspondence
    look: Look[F]
    asked: frozenset[Asked] = frozenset()

    @property
    def solved(self) -> bool:
        return self.look.solved


@dataclass(frozen=True, eq=False)
class Expansion:
    """An option at the choice point "search": one step out of a state looked at."""

    state: State[Any]
    step: Step

    @cached_property
    def label(self) -> str:
        after = f" after {' then '.join(map(str, self.state.steps))}" if self.state.steps else ""
        return f"{self.step}{after} because {self.step.reason}"


@dataclass(frozen=True)
class Stop:
    """The option to be content with what is solved. Offered once something is; first when nothing better is likely."""

    label: str = "stop"


@dataclass(frozen=True)
class Outcome(Generic[F]):
    """``states``: all that were looked at, in order. ``complete``: nothing that could matter was left out; else
    ``ended`` says what ended the search."""

    states: tuple[State[F], ...]
    blind_expansions: int
    complete: bool
    ended: str


def asked_by(step: Step, back: Correspondence) -> Asked | None:
    """What a law that grows is asked for, in terms that survive its answer: on one path it answers a demand once, or
    it would answer its own result for ever (an axis of one element beside another)."""
    m = step.because
    if not isinstance(m, Mismatch) or not step.transform.grows or not m.instruction:
        return None
    facts = (m.about(k) for k in ("operand", "instruction_axis", "instruction_statement"))
    at = m.about("statement")
    where = back.statements[at] if at is not None else ()
    return (step.transform.law, m.instruction, m.kind, *facts, where, *step.transform.demand(step.site))


def answers(kernel: Kernel, mismatches: Sequence[Mismatch], laws: Laws, *, grows: bool = True) -> Iterator[Step]:
    """The steps that the kernel's user grants and that answer some mismatch, each once."""
    asked: set[tuple[str, Site]] = set()
    for m in mismatches:
        for t in laws.answering(m.kind):
            if t.grows and not grows:
                continue
            for site in t.sites_for(kernel, m):
                if (t.law, site) not in asked and granted(kernel, t.needs, dtypes_at(kernel, site)):
                    asked.add((t.law, site))
                    yield Step(t, site, m)


def paying(kernel: Kernel, laws: Laws) -> Iterator[Step]:
    """Steps that may make a kernel cheaper which can be carried out as it stands, where its user grants them in so many
    words: integers need no permission for these, but nobody should wait for a search that he did not ask for."""
    products = (s for s in kernel.statements if s.op == "mul" and all(a.extent.is_constant for a in s.domain.axes))
    if max((prod(a.extent.const for a in s.domain.axes) for s in products), default=0) < LARGE:
        return
    for t in laws.paying if granted(kernel, INEXACT, ["f32"]) else ():
        for site in t.sites(kernel):
            saving = t.saves(kernel, site)
            if saving is not None and saving.pays and granted(kernel, t.needs, dtypes_at(kernel, site)):
                yield Step(t, site, saving)


def unasked(kernel: Kernel, transforms: Sequence[Transform]) -> Iterator[Step]:
    """Every step that nothing asks for. Laws that only grow the kernel take no part (TR-2)."""
    for t in transforms:
        if not t.grows:
            for site in t.sites(kernel):
                if granted(kernel, t.needs, dtypes_at(kernel, site)):
                    yield Step(t, site, None)


@dataclass
class _Walk(Generic[F]):
    goal: Goal[F]
    trace: Trace
    budget: Budget
    laws: Laws
    guesses: Sequence[Transform]
    clock: Callable[[], float]
    barred: Barred = NOTHING
    histories: Histories = field(default_factory=Histories)
    known: dict[Key, State[F]] = field(default_factory=dict)
    states: list[State[F]] = field(default_factory=list)
    frontier: list[tuple[Rank, int, Expansion]] = field(default_factory=list)
    solved: list[State[F]] = field(default_factory=list)
    queued: int = 0
    looks: int = 0
    blind: int = 0
    work: int = 0
    pairs: int = 0
    improved: int = 0  # kernels looked at when the best was found
    guessed: int = 0  # states whose blind steps were queued
    cut: str = ""

    def reach(self, kernel: Kernel, parent: State[F] | None, steps: tuple[Step, ...], back: Correspondence) -> None:
        """Takes a kernel in, unless a path as short led to it before, and queues the steps its mismatches ask for."""
        key = self.histories.key(kernel)
        known = self.known.get(key)
        if known is not None and len(known.steps) <= len(steps):
            return
        look = self.look(kernel, back, first=parent is None) if known is None else known.look
        number, before = (None, frozenset[Asked]()) if parent is None else (parent.number, parent.asked)
        asked = asked_by(steps[-1], parent.back) if parent is not None else None
        before = before if asked is None else before | {asked}
        state = self.known[key] = State(len(self.states), number, kernel, steps, back, look, before)
        self.states.append(state)
        if known is not None:  # by a shorter path: the old one is of no use any more
            self.frontier = [e for e in self.frontier if e[2].state is not known]
            self.solved = [s for s in self.solved if s is not known]
        if state.solved:
            if not self.solved or look.price < min(s.look.price for s in self.solved):
                self.improved = self.looks
            self.solved.append(state)
        if not state.look.hopeless:
            self.queue(state, answers(kernel, state.look.asks, self.laws, grows=state.look.grows))
        if state.solved and self.goal.saves:
            self.queue(state, paying(kernel, self.laws))

    def look(self, kernel: Kernel, back: Correspondence, *, first: bool) -> Look[F]:
        look = self.goal.look(kernel, back)
        self.looks += 1
        self.work += len(kernel.statements)
        self.pairs += 0 if first else look.pairs
        if not look.whole:
            self.cut = self.cut or "matching"
        return look

    def queue(self, state: State[F], steps: Iterator[Step]) -> None:
        if len(state.steps) >= self.budget.depth:
            if not state.solved and any(asked_by(s, state.back) not in state.asked for s in steps):
                self.cut = self.cut or "depth"
            return
        for step in steps:
            if asked_by(step, state.back) in state.asked:
                continue
            if self.barred and self.barred.stops(state.kernel, step.transform.law, str(step.site)):
                continue
            rank = (*_urgency(step), *self.goal.rank(state, step))
            insort(self.frontier, (rank, self.queued, Expansion(state, step)))
            self.queued += 1

    def options(self) -> list[Expansion]:
        """The steps that may still matter; blind ones where no directed one is left and nothing is solved."""
        if self.solved:
            least = min(len(s.steps) for s in self.solved) if self.goal.shortest else self.budget.depth
            self.frontier = [
                e for e in self.frontier if len(e[2].state.steps) < least and e[2].step.because is not None
            ]
        while not self.frontier and not self.solved and self.budget.blind and self.guessed < len(self.states):
            state = self.states[self.guessed]
            self.guessed += 1
            if not state.look.hopeless:
                self.queue(state, unasked(state.kernel, self.guesses))
        return [e for _, _, e in self.frontier]

    def spent(self, options: Sequence[Expansion]) -> str:
        """Which budget ends the search here."""
        if self.looks >= self.budget.states:
            return "states"
        if self.work >= self.budget.work:
            return "work"
        if self.pairs >= self.budget.pairs:
            return "pairs"
        if self.blind >= self.budget.blind and options[0].step.because is None:
            return "blind"
        return ""

    def run(self) -> str:
        """Steps while there are any; the Approach picks which one is next. Returns what ended it."""
        start = self.clock()
        while options := self.options():
            over = self.spent(options)
            if over:
                return over
            late = self.budget.seconds is not None and self.clock() - start > self.budget.seconds
            picked = self.choose(options, late)
            if isinstance(picked, Stop):
                return "time" if picked == OUT_OF_TIME else "approach"
            self.frontier = [e for e in self.frontier if e[2] is not picked]
            self.blind += picked.step.because is None
            done = picked.step.transform.apply(picked.state.kernel, picked.step.site)
            steps = (*picked.state.steps, picked.step)
            self.reach(done.kernel, picked.state, steps, picked.state.back.then(done.back))
        if self.cut == "depth" and self.solved and self.goal.shortest:
            return ""  # what lies deeper is longer than what was found
        return self.cut

    def choose(self, options: list[Expansion], late: bool) -> Expansion | Stop:
        """Asks the Approach. A search that the clock ended is a decision too, so that a recording ends there again."""
        ahead = self.trace.ahead
        if ahead.label == OUT_OF_TIME.label if ahead is not None else late:
            return self.trace.choose(Choice("search", [OUT_OF_TIME], self._context()))
        offered: list[Expansion | Stop] = [*options]
        if self.solved:
            content = self.looks - self.improved >= self.budget.further and not self.goal.shortest
            offered.insert(0 if content else len(offered), Stop())
        return self.trace.choose(Choice("search", offered, self._context()))

    def _context(self) -> dict[str, Any]:
        return {"looked at": self.looks, "solved": len(self.solved), "_states": tuple(self.states)}


def _urgency(step: Step) -> Rank:
    """What a mismatch asks for comes first, then what saves most, then what nothing asks for."""
    if isinstance(step.because, Saving):
        return 1.0, step.because.ratio
    return (0.0 if step.because is not None else 2.0, 0.0)


OUT_OF_TIME = Stop("stop: out of time")


def explore(
    kernel: Kernel,
    goal: Goal[F],
    trace: Trace,
    budget: Budget,
    transforms: Sequence[Transform],
    guesses: Sequence[Transform] = (),
    clock: Callable[[], float] = time.perf_counter,
    barred: Barred = NOTHING,
) -> Outcome[F]:
    """Walks the space from ``kernel``. ``guesses``: the laws that blind steps may use; ``barred``: not taken."""
    walk = _Walk(goal, trace, budget, Laws.of(transforms), guesses, clock, barred)
    walk.reach(kernel, None, (), Correspondence.identity(kernel))
    ended = walk.run()
    states = tuple(sorted(walk.known.values(), key=lambda s: s.number))
    return Outcome(states, walk.blind, not ended, ended)
