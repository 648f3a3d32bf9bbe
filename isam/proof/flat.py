"""The slow judge: executes a whole schedule, step by step, on tokens instead of data (obligations 1, 4, 5, 7 to 11).

Every memory holds tokens (which element, which version). A step must find its tiles where it says, at their current
version, which must be the version that the language prescribes at that point (see ``prescribed``).
Cost: some 30 microseconds per step. Where there are many, a compiled walk takes those in which nothing is wrong, in a
microsecond or less (see ``flat_program``), and leaves the others to what is here.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from isam.classes import dataclass
from isam.ir.kernel import Kernel
from isam.proof.dealt import local
from isam.proof.filled import with_boxes
from isam.proof.flat_joined import Joined
from isam.proof.flat_layout import Space
from isam.proof.flat_program import Program, available
from isam.proof.flat_step import Shape, Step, compile_step, highest_addresses
from isam.proof.flat_units import Finder, coarse
from isam.proof.legal import Legality
from isam.proof.prescribed import Prescribed, mask, told_apart
from isam.proof.registers import Held, at_start, commands, judge
from isam.proof.violation import Findings, Violation
from isam.proof.workspace import check_workspace
from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq, distinct

BUDGET = 500_000  # steps
MANY = 20_000  # steps that take longer one by one than compiling the walk does
POINTS = 50_000_000  # statement instances that are told apart


class Exhausted(Exception):
    """The budget is spent."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """Violations, how many steps were executed, how many of them one by one (the others by the compiled walk)."""

    found: list[Violation]
    steps: int
    alone: int


def check_flat(schedule: Schedule, sizes: Mapping[str, int] | None = None, budget: int = BUDGET) -> list[Violation]:
    """Every violation met when the schedule is executed from an empty machine: ``bind`` once, then ``call``.

    ``sizes``: values of the sizes that are still symbols (trips of recurrent loops). An exhausted ``budget`` (steps) is
    itself a violation of kind ``budget``: what was not executed is not accepted.
    """
    return replayed(schedule, sizes, budget).found


def replayed(schedule: Schedule, sizes: Mapping[str, int] | None = None, budget: int = BUDGET,
             compiled: bool | None = None) -> Replayed:  # fmt: skip
    """As :func:`check_flat`. ``compiled``: whether to compile the walk, None: where there are enough steps for that.
    What is found is the same."""
    schedule = with_boxes(schedule)
    out, given = Findings(), schedule.cover.kernel.sizes(sizes or {})
    for n in (n for t in (schedule.bind, schedule.call) for n in distinct(t)):
        if isinstance(n, Loop) and not counted(n):
            out.add(11, "form", f"loop '{n.var}' does not say which iterations it has, and in which order")
    if len(out):
        return Replayed(out.found, 0, 0)
    if compiled is None:
        compiled = expected(schedule, given) >= MANY and available()
    alone, left = 0, budget
    try:
        replay = Replay(schedule, given, out, budget, compiled)
        try:
            replay.run()
        finally:
            left, alone = max(0, replay.left), replay.alone
    except Exhausted:
        out.add(0, "budget", f"more than {budget} steps: replay with smaller trips or a larger budget")
    except MemoryError as e:
        out.add(0, "budget", str(e))
    return Replayed(out.found, budget - left, alone)


def counted(n: Loop) -> bool:
    """Whether a loop says what can be counted: bounds, a step ahead, and when it turns."""
    bounds = n.lo and n.hi and all(b.div > 0 for b in n.lo + n.hi)
    return bool(bounds and n.step > 0 and (n.serpentine is None or n.serpentine.period > 0))


def expected(schedule: Schedule, sizes: Mapping[str, int]) -> int:
    """About how many steps there are: the bounds of some loops are known only when they run."""
    known: dict[int, int] = {}
    return _steps(schedule.bind, sizes, known) + _steps(schedule.call, sizes, known)


def _steps(n: Node, sizes: Mapping[str, int], known: dict[int, int]) -> int:
    """``known``: of nodes, by identity: they are shared."""
    if id(n) not in known:
        if isinstance(n, Loop):
            trip = n.trip if n.trip is not None else len(n.values(sizes)) if names(n) <= sizes.keys() else 1
            once = [p for p in (n.first, n.last) if p is not None]
            ends = sum([_steps(p, sizes, known) for p in (n.enter, *once, n.exit)])
            known[id(n)] = ends + max(0, trip - len(once)) * _steps(n.body, sizes, known)
        else:
            known[id(n)] = sum([_steps(c, sizes, known) for c in n.children]) if isinstance(n, Seq) else 1
    return known[id(n)]


def names(n: Loop) -> set[str]:
    """Those in a loop's bounds."""
    return {name for b in (*n.lo, *n.hi) for name in b.expr.names}


class Replay:
    """One execution of a schedule on tokens."""

    def __init__(self, schedule: Schedule, sizes: dict[str, int], out: Findings, budget: int = BUDGET,
                 compiled: bool = False, fine: bool = False):  # fmt: skip
        """``compiled``: see :class:`isam.proof.flat_program.Program`; ``fine``: every element by itself."""
        self.schedule, self.sizes, self.left, self.out = schedule, sizes, budget, out
        self.alone = 0  # steps that were judged one by one
        self.program: Program | None = None
        self.compiled = compiled
        self.legality = Legality(schedule)
        self.joined = Joined(self.legality)
        self.held: Held = {}
        kernel = schedule.cover.kernel.with_sizes(sizes)
        self.ready = self._sizes_given(kernel)
        if not self.ready:
            return
        skip = {i for n, _ in enumerate(schedule.nests) for i in self.legality.semantics(n).contracted}
        _limit(sum(told_apart(s) for i, s in enumerate(kernel.statements) if i not in skip))
        self.prescribed = Prescribed(kernel, frozenset(skip))
        self.kernel = kernel
        shapes = dict(self.prescribed.shapes)
        shapes.update({b.name: () for b in self.legality.buffers.values() if b.role == "literal"})
        units = Finder(self.legality, kernel, self.prescribed, sizes, fine).find()
        coarse(self.prescribed, kernel, units.wide)
        self.space = Space(self.legality, shapes, units)
        self.space.build(highest_addresses(schedule, sizes))
        self.steps: dict[int, Step | None] = {}
        self.shapes: dict[int, Shape] = {}  # by signature
        self.at: dict[str, int] = {}  # per replica, which of its instances we are on
        self.away: dict[tuple[str, str, int], list[np.ndarray]] = {}  # slots of the others: tokens and versions
        self.done: dict[int, np.ndarray] = {}  # how often boxes of points were executed
        self.ranks: dict[int, np.ndarray] = {}
        self.extents: dict[int, tuple[int, ...]] = {}
        for i, s in enumerate(kernel.statements):
            if i not in skip:
                outer = tuple(int(a.extent.substitute(sizes)) for a in self.legality.outer[i])
                self.extents[i] = (*outer, *(int(a.extent) for a in s.domain.axes))
        boxes = {i: [n // c for n, c in zip(e, units.cells[i], strict=True)] for i, e in self.extents.items()}
        _limit(sum(prod(b) for b in boxes.values()))
        self.done = {i: np.zeros(b, np.uint8) for i, b in boxes.items()}

    def _sizes_given(self, kernel: Kernel) -> bool:
        if kernel.syms:
            self.out.add(0, "sizes", f"no value for {', '.join(y.name for y in kernel.syms)}")
            return False
        return True

    def run(self) -> None:
        check_workspace(self.schedule, self.legality, self.out)
        if len(self.out):
            return
        sp, s = self.space, self.schedule
        roles = {b.name: b.role for b in self.legality.buffers.values()}
        for b, role in roles.items():
            if role in ("const", "literal"):
                sp.put_home(b, self.out)
        self._begin("bind", s.bind)
        self._forget()
        for b, role in roles.items():
            if role in ("in", "inout", "out"):  # an output is there too, at version 0: whatever the caller left
                sp.put_home(b, self.out)
        self._begin("call", s.call)
        self._end()

    def _begin(self, phase: str, tree: Node) -> None:
        self.phase, self.held = phase, at_start(self.schedule)
        self.steps.clear()  # what is legal in one is not in the other
        self.shapes.clear()
        self.program = Program(self) if self.compiled and tree != Seq() else None
        self.node(tree, dict(self.sizes))

    def _forget(self) -> None:
        """Between bind and call only constants, literals and bound workspace keep what they hold."""
        keep = {w.name for w in self.schedule.workspace if w.bound}
        keep |= {b.name for b in self.legality.buffers.values() if b.role in ("const", "literal")}
        for (_, base), r in self.space.regions.items():
            if base not in keep:
                self.space.token[r.tokens] = -1

    def _end(self) -> None:
        """Every point executed once; outputs at home and current."""
        for i, count in self.done.items():
            s = self.kernel.statements[i]
            want = self._masks(i) if s.domain.where else np.ones(count.shape, np.uint8)
            if (count != want).any():
                at, cells = tuple(int(x) for x in np.argwhere(count != want)[0]), self.space.units.cells[i]
                text = f"statement {i} at {tuple(x * c for x, c in zip(at, cells, strict=True))} is executed"
                text += f" {int(count[at])} times, not {int(want[at])}"
                self.out.add(1, "coverage", f"{text} ({int((count != want).sum()) * prod(cells)} such points)")
        for b in self.legality.buffers.values():
            if b.role in ("out", "inout") and (got := self.space.home_tokens(b.name)) is not None:
                a, t, e = got
                bad = (self.space.token[a] != t) | (self.space.version[a] != self.space.current[e])
                if b.role == "out":
                    bad &= self.space.current[e] > 0
                if bad.any():
                    el = int(e[bad][0]) - self.space.origin[b.name]
                    at = self.space.unflat(b.name, el)
                    text = f"element {at} of '{b.name}' is not current at home after the call"
                    many = np.unique(e[bad]).size * self.space.units.wide[b.name]
                    self.out.add(8, "final", f"{text} ({many} such)")

    def _masks(self, i: int) -> np.ndarray:
        outer = self.legality.outer[i]
        shape = self.extents[i][: len(outer)]
        want = np.zeros(self.done[i].shape, np.uint8)
        for t in np.ndindex(*shape):
            want[t] = mask(self.kernel.statements[i], {a.name: v for a, v in zip(outer, t, strict=True)})[0]
        return want

    # the tree -----------------------------------------------------------------------------------------------------
    def node(self, n: Node, env: dict[str, int]) -> None:
        if self.program is not None and self.program.takes(n, env):
            self.program.run(n, env)
        elif isinstance(n, Seq):
            for parts in commands(n):
                if isinstance(parts[0], Issue):
                    calls = [c for c in parts if isinstance(c, Issue)]
                    self.joined.judge(calls, env, self.out)
                    if self.schedule.system.state:
                        judge(calls, self.held, self.schedule.system, self.out)
                for c in parts:
                    self.issue(c, env) if isinstance(c, Issue) else self.node(c, env)
        elif isinstance(n, Loop):
            self.loop(n, env)
        else:
            self.joined.judge([n], env, self.out)
            if self.schedule.system.state:
                judge([n], self.held, self.schedule.system, self.out)
            self.issue(n, env)

    def loop(self, n: Loop, env: dict[str, int]) -> None:
        try:
            values = n.values(env)
        except KeyError as e:
            self.out.add(11, "scope", f"the bounds of loop '{n.var}' name {e}, which has no value there")
            return
        if not values:
            return
        if len(values) < (n.first is not None) + (n.last is not None):
            self.out.add(11, "trip", f"loop '{n.var}' runs {len(values)} time but has a first and a last body")
        if n.deal is not None and n.deal.group not in self.schedule.system.replicas:
            self.out.add(10, "deal", f"loop '{n.var}' is dealt to '{n.deal.group}', which the machine does not have")
            return
        if n.var in env:
            self.out.add(11, "scope", f"loop variable '{n.var}' is already in use")
        self.node(n.enter, env)
        group = "" if n.deal is None else n.deal.group
        around = self.at.get(group, 0)
        for i, v in enumerate(values):
            part = n.body
            if i == 0 and n.first is not None:
                part = n.first
            elif i == len(values) - 1 and n.last is not None:
                part = n.last
            self._empty(n)
            if n.deal is not None:
                self._turn(group, around + n.deal.first + n.deal.stride * i)
            self.node(part, {**env, n.var: v})
        self._empty(n)
        if n.deal is not None:
            self._turn(group, around)
        self.node(n.exit, env)

    def _empty(self, n: Loop) -> None:
        """An instance that is dealt an iteration holds nothing before it, and nothing of use after it, but in slots."""
        if n.deal is not None:
            units = self.schedule.system.replicas[n.deal.group].units
            streams = {self.schedule.system.stream_of(u) for u in units}
            self.held = {r: v for r, v in self.held.items() if v[1] not in streams}
        own = local(self.schedule, n.deal)
        for (memory, base), r in self.space.regions.items():
            if memory in own and not base:
                self.space.token[r.tokens] = -1

    def _turn(self, group: str, instance: int) -> None:
        """From here on the slots are those of another instance."""
        before, self.at[group] = self.at.get(group, 0), instance
        for (memory, base), r in self.space.regions.items():
            if base and before != instance and self.schedule.system.replica_of(memory) == group:
                both = (self.space.token, self.space.version)
                self.away[memory, base, before] = [a[r.tokens].copy() for a in both]
                for a, was in zip(both, self.away.pop((memory, base, instance), (-1, 0)), strict=True):
                    a[r.tokens] = was

    def issue(self, n: Issue, env: dict[str, int]) -> None:
        self.left -= 1
        if self.left < 0:
            raise Exhausted
        self.alone += 1
        if id(n) not in self.steps:
            self.steps[id(n)] = compile_step(n, self, self.out)
        step = self.steps[id(n)]
        if step is None:
            return
        try:
            step.run(self, env)
        except KeyError as e:
            self.out.add(11, "scope", f"the step names {e}, which has no value there", n)


def _limit(points: int) -> None:
    if points > POINTS:
        raise MemoryError(f"{points} statement instances to tell apart, more than {POINTS}")
