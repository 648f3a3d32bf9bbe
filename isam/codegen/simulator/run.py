"""Executes a schedule strictly, call by call, exactly as :mod:`isam.schedule.tree` defines it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from isam.classes import dataclass
from isam.codegen.simulator.call import Bodies, Call, Scope
from isam.codegen.simulator.fault import SimulationFault
from isam.codegen.simulator.memory import Machine
from isam.codegen.simulator.registers import Registers
from isam.codegen.simulator.together import Together
from isam.codegen.simulator.values import Values, numbers
from isam.schedule.text import print_issue
from isam.schedule.tree import Bound, Issue, Loop, Node, Schedule, Seq, distinct

Array = np.ndarray[Any, Any]
Runner = Callable[[Scope], None]


@dataclass(slots=True)
class Figures:
    """What was executed: ``steps`` calls, per instruction ``calls``, bytes ``moved`` per edge (source, target)."""

    steps: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    moved: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __str__(self) -> str:
        lines = [f"{self.steps} steps"]
        lines += [f"  {n:>10}  {name}" for name, n in sorted(self.calls.items())]
        lines += [f"  {n:>10}  bytes {s} -> {t}" for (s, t), n in sorted(self.moved.items())]
        return "\n".join(lines)


class Simulation:
    """A schedule on its machine. ``bind`` once, then ``call`` as often as wanted; not for several threads at once.

    ``values``: the numbers it computes in (default: the machine's own; :mod:`isam.codegen.simulator.values`).
    ``symbols``: run-time sizes (trips of recurrent loops). Raises ``SimulationFault`` at the first wrong step.
    """

    def __init__(self, schedule: Schedule, values: Values | None = None, symbols: Mapping[str, int] | None = None):
        self.schedule = schedule
        self.symbols = schedule.kernel.sizes(symbols or {})
        self.figures, self.registers = Figures(), Registers(schedule.system)
        several = schedule.system.clusters or any(i.joined for i in _issues(schedule))
        self.together = Together(schedule.system) if several else None
        self.machine = Machine(sized(schedule, self.symbols), values or numbers())
        self._bodies: Bodies = {}
        self._runners: dict[int, Runner] = {}
        self._kept: set[str] = set()
        self.at: dict[str, int] = {}  # the present instance of each replica
        self._away: dict[tuple[str, str, int], tuple[Array, Array]] = {}  # slots of the other instances

    def bind(self, constants: Mapping[str, Array]) -> None:
        """Loads the constants given and runs the schedule's bind part."""
        self.machine.forget(())
        self._away.clear()
        for name, array in constants.items():
            self.machine.load(name, array)
        self._run(self.schedule.bind)
        bound = {s.name for s in self.schedule.workspace if s.bound}
        self._kept = set(constants) | bound

    def call(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Runs the call part. ``arrays``: every argument but outputs and what was bound. Returns outputs and inouts."""
        self.machine.forget(self._kept)
        self._away = {k: v for k, v in self._away.items() if k[1] in self._kept}
        kernel = self.schedule.kernel
        for b in kernel.arguments:
            if b.role != "out" and b.name not in self._kept:
                if b.name not in arrays:
                    raise SimulationFault("name", f"no array for the argument '{b.name}'")
                self.machine.load(b.name, arrays[b.name])
        self._run(self.schedule.call)
        results = [b.name for b in kernel.arguments if b.role in ("out", "inout")]
        for name in results:
            self.machine.check_home(name)
        return {name: self.machine.read(name) for name in results}

    def once(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Binds the constants among ``arrays``, calls, and lets go of the memories."""
        constants = {b.name for b in self.schedule.kernel.arguments if b.role == "const"}
        try:
            self.bind({n: a for n, a in arrays.items() if n in constants})
            return self.call(arrays)
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Of the memories, after the last call: they are large, and what runs a node holds the simulation, which holds
        it, so that only a search for garbage would find them."""
        self._runners.clear()
        self._bodies.clear()

    def _run(self, node: Node) -> None:
        with np.errstate(all="ignore"):
            self._runner(node)(dict(self.symbols))

    def _runner(self, node: Node) -> Runner:
        known = self._runners.get(id(node))
        if known is None:
            make = self._seq if isinstance(node, Seq) else self._loop if isinstance(node, Loop) else self._issue
            known = self._runners[id(node)] = make(node)  # type: ignore[arg-type]
        return known

    def _seq(self, seq: Seq) -> Runner:
        parts = [self._runner(c) for c in seq.children]

        def run(scope: Scope) -> None:
            for p in parts:
                p(scope)

        return run

    def _loop(self, loop: Loop) -> Runner:
        enter, body, leave = self._runner(loop.enter), self._runner(loop.body), self._runner(loop.exit)
        first = body if loop.first is None else self._runner(loop.first)
        last = body if loop.last is None else self._runner(loop.last)
        peeled = (loop.first is not None) + (loop.last is not None)

        def run(scope: Scope) -> None:
            lo, hi = max(_bound(b, scope, True) for b in loop.lo), min(_bound(b, scope, False) for b in loop.hi)
            if loop.step < 1 or loop.var in scope:
                raise SimulationFault("loop", f"loop over {loop.var}: step {loop.step}, scope {sorted(scope)}")
            values = range(lo, hi, loop.step)
            if loop.serpentine is not None and loop.serpentine.back(scope):
                values = values[::-1]
            if not values:
                return
            if len(values) < peeled:
                what = f"loop over {loop.var} runs {len(values)} times, but has {peeled} peeled bodies"
                raise SimulationFault("loop", what)
            enter(scope)
            end = len(values) - 1
            deal = loop.deal
            around = self.at.get(deal.group, 0) if deal is not None else 0
            for t, v in enumerate(values):
                scope[loop.var] = v
                self._empty(loop)
                if deal is not None:
                    self._turn(deal.group, around + deal.first + deal.stride * t)
                (last if t == end and loop.last is not None else first if t == 0 else body)(scope)
            del scope[loop.var]
            self._empty(loop)
            if deal is not None:
                self._turn(deal.group, around)
            leave(scope)

        return run

    def _empty(self, loop: Loop) -> None:
        """An instance that is dealt an iteration holds nothing before it, and nothing of use after it, but in slots."""
        if loop.deal is not None:
            own = self.schedule.system.replicas[loop.deal.group].memories
            for (memory, base), bank in self.machine.banks.items():
                if memory in own and not base:
                    bank.forget()

    def _turn(self, group: str, instance: int) -> None:
        """From here on the slots are those of another instance."""
        before, self.at[group] = self.at.get(group, 0), instance
        for (memory, base), bank in self.machine.banks.items() if before != instance else ():
            if base and not bank.literal and self.schedule.system.replica_of(memory) == group:
                self._away[memory, base, before] = (bank.data.copy(), bank.stamps.copy())
                bank.data[:], bank.stamps[:] = self._away.pop((memory, base, instance), (0, 0))

    def _issue(self, issue: Issue) -> Runner:
        call: Call | None = None
        figures, registers = self.figures, self.registers if self.schedule.system.state else None
        together = self.together

        def run(scope: Scope) -> None:
            nonlocal call
            try:
                if call is None:
                    call = Call(self.machine, issue, self._bodies)
                if together is not None:
                    together.take(issue, scope)
                if registers is not None:
                    registers.take(issue, scope)
                call(scope)
            except SimulationFault as fault:
                message = str(fault).partition("]: ")[2].partition("\n")[0]
                raise SimulationFault(fault.kind, message, figures.steps + 1, print_issue(issue), scope) from None
            figures.steps += 1
            figures.calls[issue.instruction] += 1
            if call.edge is not None:
                figures.moved[call.edge] += call.moved

        return run


def simulate(
    schedule: Schedule,
    arrays: Mapping[str, Array],
    values: Values | None = None,
    symbols: Mapping[str, int] | None = None,
    figures: Figures | None = None,
) -> dict[str, Array]:
    """Binds the constants among ``arrays``, calls once, returns outputs and inouts; fills ``figures`` when given."""
    simulation = Simulation(schedule, values, symbols)
    if figures is not None:
        simulation.figures = figures
    return simulation.once(arrays)


def _issues(schedule: Schedule) -> Iterator[Issue]:
    return (n for t in (schedule.bind, schedule.call) for n in distinct(t) if isinstance(n, Issue))


def sized(schedule: Schedule, symbols: Mapping[str, int]) -> Schedule:
    """The schedule with shapes in numbers, those a caller gives (ADR 22) too. Loops keep their symbols: those have
    values at run time."""
    missing = [s.name for s in schedule.kernel.given if s.name not in symbols]
    if missing:
        raise SimulationFault("name", f"the schedule needs values for {', '.join(missing)}")
    if not symbols:
        return schedule
    cover = replace(schedule.cover, original=schedule.cover.original.with_sizes(symbols))
    return replace(schedule, kernel=schedule.kernel.with_sizes(symbols), cover=cover)


def _bound(b: Bound, scope: Scope, up: bool) -> int:
    try:
        value = b.expr.evaluate(scope)
    except KeyError as missing:
        raise SimulationFault("name", f"'{missing.args[0]}' has no value here (in a loop bound)") from None
    return -(-value // b.div) if up else value // b.div
