"""The search of the paper's Figure 1: program state, mapper, mismatches, the transforms that answer them, next states
(TR-2). Failure-directed: a transform fires because a mismatch asks for it; blind steps are a counted last resort.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from isam.approach.choice import Choice, Trace
from isam.ir.hashing import structural_hash
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.ir.mismatch import Mismatch
from isam.mapper.cover import Offer, offer, settle
from isam.mapper.pricing import limits
from isam.mapper.uncovered import Uncovered
from isam.mapper.waste import wasted
from isam.transforms import ALL
from isam.transforms.law import Correspondence, Site, Transform, dtypes_at, granted


@dataclass(frozen=True, slots=True)
class Budget:
    """``states``: kernels looked at; ``work``: statements of all of them together; ``blind``: kernels reached by blind
    steps; ``depth``: transforms on one path; ``further``: kernels still looked at after the first that can be carried
    out. Counts, not seconds, so that a search ends the same way everywhere."""

    states: int = 64
    work: int = 2000
    blind: int = 16
    depth: int = 8
    further: int = 6


@dataclass(frozen=True)
class Step:
    """A transform at a site, and the mismatch that asked for it (None: a blind step)."""

    transform: Transform
    site: Site
    because: Mismatch | None

    @property
    def reason(self) -> str:
        m = self.because
        if m is None:
            return "blind"
        return f"{m.instruction or 'no instruction'} [{m.kind}]: needs {m.need}; the kernel has {m.have}"

    def __str__(self) -> str:
        return f"{self.transform.law} ({self.site})"


@dataclass(frozen=True)
class Path:
    """A kernel that can be carried out: ``steps`` lead to it from the user's, ``back`` to the user's names."""

    kernel: Kernel
    steps: tuple[Step, ...]
    back: Correspondence
    found: Offer

    @property
    def needs(self) -> frozenset[str]:
        """The numerics that the steps used."""
        return frozenset().union(*(s.transform.needs for s in self.steps)) - {"exact"}

    def label(self) -> str:
        return " then ".join(map(str, self.steps)) or "as written"


@dataclass(frozen=True)
class SearchResult:
    """``paths``: every kernel found that can be carried out, cheapest first. ``blind_expansions``: blind steps taken.
    ``complete``: the search ended because nothing was left to try, not because a budget ran out. ``states``: kernels
    looked at. ``uncovered``: the report for the kernel as written, when nothing was found."""

    paths: tuple[Path, ...]
    blind_expansions: int
    states: int
    complete: bool
    uncovered: Uncovered | None
    trace: Trace = field(compare=False)

    def __bool__(self) -> bool:
        return bool(self.paths)


@dataclass(frozen=True)
class _State:
    kernel: Kernel
    steps: tuple[Step, ...]
    back: Correspondence
    found: Offer | Uncovered

    @property
    def open_statements(self) -> int:
        return len(self.found.gaps) + len(self.found.unmet) if isinstance(self.found, Uncovered) else 0


@dataclass
class _Search:
    instructions: Sequence[Instruction]
    trace: Trace
    budget: Budget
    require: Sequence[str]
    penalties: Mapping[str, float] | None
    transforms: Sequence[Transform]
    seen: set[str] = field(default_factory=set)
    states: list[_State] = field(default_factory=list)
    frontier: list[tuple[_State, Step]] = field(default_factory=list)
    blind: int = 0
    work: int = 0
    complete: bool = True

    def __post_init__(self) -> None:
        self.by_name = {i.name: i for i in self.instructions}

    def look(self, kernel: Kernel, steps: tuple[Step, ...], back: Correspondence) -> None:
        """Asks selection about a kernel not seen before and queues the steps that its mismatches ask for."""
        key = structural_hash(kernel)
        if key in self.seen:
            return
        self.seen.add(key)
        self.work += len(kernel.statements)
        found = offer(kernel, self.instructions, require=self.require, penalties=self.penalties)
        state = _State(kernel, steps, back, found)
        self.states.append(state)
        if self.hopeless(state):
            return
        if len(steps) < self.budget.depth:
            self.frontier.extend((state, s) for s in self.directed(state))
        elif isinstance(found, Uncovered):
            self.complete = False

    def hopeless(self, state: _State) -> bool:
        """Some statement's operation is in no instruction, and no law turns it into others."""
        if not isinstance(state.found, Uncovered):
            return False
        for gap in state.found.gaps:
            op = state.kernel.statements[gap.statement].op
            if gap.missing and not any(op == getattr(t, "op", None) for t in self.transforms):
                return True
        return False

    def directed(self, state: _State) -> Iterator[Step]:
        """What the mismatches of a state ask for, each step once."""
        if isinstance(state.found, Uncovered):
            mismatches, transforms = state.found.mismatches, self.transforms
        else:
            mismatches = wasted(state.found, self.instructions)
            transforms = [t for t in self.transforms if not t.grows]
        asked: set[tuple[str, Site]] = set()
        for m in map(self.with_limit, mismatches):
            for t in transforms:
                for site in t.sites_for(state.kernel, m):
                    if (t.law, site) not in asked and granted(state.kernel, t.needs, dtypes_at(state.kernel, site)):
                        asked.add((t.law, site))
                        yield Step(t, site, m)

    def with_limit(self, m: Mismatch) -> Mismatch:
        """Adds what one call takes along the instruction axis that a mismatch names (for splits)."""
        axis, instruction = m.about("instruction_axis"), self.by_name.get(m.instruction)
        limit = limits(instruction).get(axis) if instruction is not None and axis else None
        return m if limit is None else replace(m, subject=(*m.subject, ("limit", limit)))

    def take(self, state: _State, step: Step) -> None:
        done = step.transform.apply(state.kernel, step.site)
        self.look(done.kernel, (*state.steps, step), state.back.then(done.back))

    def run(self) -> None:
        """Directed steps while there are any; the Approach picks which one is next."""
        solved_at: int | None = None
        while self.frontier:
            if any(isinstance(s.found, Offer) for s in self.states):
                solved_at = len(self.states) if solved_at is None else solved_at
                if len(self.states) - solved_at >= self.budget.further:
                    self.complete = False
                    return
            if len(self.states) >= self.budget.states or self.work >= self.budget.work:
                self.complete = False
                return
            self.frontier.sort(key=lambda e: (e[0].open_statements, len(e[0].steps)))
            options = [_Option(s, step) for s, step in self.frontier]
            context = {"doing": "next step", "options": [str(o.step) for o in options]}
            picked = self.trace.choose(Choice("search", options, context))
            self.frontier = [e for e in self.frontier if e[1] is not picked.step or e[0] is not picked.state]
            self.take(picked.state, picked.step)

    def fallback(self) -> None:
        """Blind steps, breadth first, counted; transforms that only grow the kernel do not take part."""
        for state in self.states:  # grows while it is walked
            if self.hopeless(state):
                continue
            if any(isinstance(s.found, Offer) for s in self.states):
                return
            for t in self.transforms:
                if t.grows or t.law in SEEN or len(state.steps) >= self.budget.depth:
                    continue
                for site in t.sites(state.kernel):
                    if not granted(state.kernel, t.needs, dtypes_at(state.kernel, site)):
                        continue
                    if self.blind >= self.budget.blind or self.work >= self.budget.work:
                        self.complete = False
                        return
                    self.blind += 1
                    self.take(state, Step(t, site, None))
                    self.run()
                    if any(isinstance(s.found, Offer) for s in self.states):
                        return


@dataclass(frozen=True, eq=False)
class _Option:
    state: _State
    step: Step

    @property
    def label(self) -> str:
        after = f" after {' then '.join(map(str, self.state.steps))}" if self.state.steps else ""
        return f"{self.step}{after} because {self.step.reason}"


SEEN = frozenset({"permute-dimensions"})
"""Laws that only help where a mismatch says so: the matcher does not care about the order of dimensions."""

MATCHED = frozenset({"commute", "remove-unit-axis"})
"""Laws that the matcher already sees through: applying them never turns a "no" into a "yes"."""

DEFAULT = tuple(t for t in ALL if t.law not in MATCHED)


def find(
    kernel: Kernel,
    instructions: Sequence[Instruction],
    trace: Trace,
    budget: Budget | None = None,
    *,
    require: Sequence[str] = (),
    penalties: Mapping[str, float] | None = None,
    transforms: Sequence[Transform] = DEFAULT,
) -> SearchResult:
    """Searches for kernels equivalent to ``kernel`` that the instructions can carry out. The result is a set of paths,
    cheapest first; every step taken is a decision on the trace, with the mismatch that asked for it."""
    s = _Search(instructions, trace, budget or Budget(), require, penalties, transforms)
    s.look(kernel, (), Correspondence.identity(kernel))
    s.run()
    if s.complete and not any(isinstance(x.found, Offer) for x in s.states):
        s.fallback()
    paths = [Path(x.kernel, x.steps, x.back, x.found) for x in s.states if isinstance(x.found, Offer)]
    paths.sort(key=lambda p: (p.found.price, len(p.steps)))
    first = s.states[0].found
    report = first if isinstance(first, Uncovered) and not paths else None
    return SearchResult(tuple(paths), s.blind, len(s.states), s.complete, report, trace)


def cover_with_search(
    kernel: Kernel,
    instructions: Sequence[Instruction],
    trace: Trace,
    *,
    require: Sequence[str] = (),
    penalties: Mapping[str, float] | None = None,
    budget: Budget | None = None,
) -> Cover | Uncovered:
    """A cover of ``kernel`` or of an equivalent kernel that the search finds; ``steps`` and ``back`` of the cover tell.

    Where several kernels can be carried out, which one to take is a choice of the Approach, cheapest first.
    """
    result = find(kernel, instructions, trace, budget, require=require, penalties=penalties)
    if not result.paths:
        assert result.uncovered is not None
        notes = {"states": result.states, "blind expansions": result.blind_expansions, "complete": result.complete}
        return replace(result.uncovered, notes=notes)
    path = result.paths[0]
    if len(result.paths) > 1:
        context = {"doing": "which kernel", "options": [p.label() for p in result.paths]}
        costs = [p.found.price[0] for p in result.paths]
        path = trace.choose(Choice("search", result.paths, context, costs))
    made = settle(path.found, trace)
    back = (path.back,) if path.steps else ()
    notes = {
        **made.notes,
        "numerics": sorted(path.needs),
        "because": tuple(s.reason for s in path.steps),
        "blind expansions": result.blind_expansions,
    }
    return replace(made, original=kernel, steps=tuple(map(str, path.steps)), back=back, notes=notes)
