"""Executes a schedule's streams apart, in an order drawn at random among those its waits allow (SCH-8).

The tree's own order is one of them. A call that does not wait for what it depends on is sooner or later executed before
it, and finds nothing there or the result is wrong. Instances of a replica have memories and streams of their
own, the members of a cluster one stream of steps.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from typing import Any

from isam.classes import dataclass
from isam.codegen.simulator.call import Scope
from isam.codegen.simulator.memory import Bank, Machine
from isam.codegen.simulator.run import Array, Runner, Simulation
from isam.codegen.simulator.values import Values
from isam.schedule.tree import Issue, Loop, Node, Schedule

Stream = tuple[str, int]  # of an instance


@dataclass(slots=True)
class Given:
    """A step that its stream has been given: what executes its calls, where, how many steps of others must be done."""

    run: list[tuple[Runner, Scope]]
    needs: list[tuple[Stream, int]]


class Instance:
    """A machine as one instance of its replicas sees it: their memories are this instance's."""

    def __init__(self, machine: Machine, at: Mapping[str, int]):
        self.machine = machine
        owner = machine.schedule.system.replica_of
        self.own = {m: n for m in machine.schedule.system.memories if (n := at.get(owner(m) or "", 0))}

    def bank(self, memory: str, base: str) -> Bank:
        if memory not in self.own:
            return self.machine.bank(memory, base)
        mark = (f"{memory}#{self.own[memory]}", base)
        if mark not in self.machine.banks:
            like = self.machine.bank(memory, base)
            bank = self.machine.banks[mark] = Bank(like.name, like.size, self.machine.values.scale, like.literal)
            if like.literal:
                bank.data[:], bank.stamps[:] = like.data, like.stamps
        return self.machine.banks[mark]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.machine, name)


class Streams(Simulation):
    """A simulation whose streams run apart. ``eager``: the stream that goes on whenever it can, else one at random."""

    def __init__(
        self,
        schedule: Schedule,
        values: Values | None = None,
        symbols: Mapping[str, int] | None = None,
        *,
        seed: int = 0,
        eager: str = "",
    ):
        super().__init__(schedule, values, symbols)
        self.machine.apart = True
        self.random, self.eager = random.Random(seed), eager
        self.given: dict[Stream, deque[Given]] = {}
        self.issued: dict[Stream, int] = {}
        self.begun: dict[str, list[dict[Stream, int]]] = {}  # what had been issued when each outermost dealt loop began
        self.seen: dict[tuple[tuple[str, int], ...], Any] = {(): self.machine}
        system = schedule.system
        self.group_of = {system.stream_of(u): system.replica_of(u) or "" for u in system.units}

    def _run(self, node: Node) -> None:
        self.given, self.issued, self.begun = {}, {}, {}
        super()._run(node)
        self._drain()

    def _loop(self, loop: Loop) -> Runner:
        if loop.deal is None:
            return super()._loop(loop)
        body, deal = self._runner(loop.body), loop.deal

        def run(scope: Scope) -> None:
            base, outermost = self.at.get(deal.group, 0), deal.group not in self.at
            if outermost:
                self.begun.setdefault(deal.group, []).append(dict(self.issued))
            for t, v in enumerate(loop.values(scope)):
                self.at[deal.group], scope[loop.var] = base + deal.first + deal.stride * t, v
                body(scope)
            scope.pop(loop.var, None)
            self.at[deal.group] = base
            if outermost:
                del self.at[deal.group]

        return run

    def _issue(self, issue: Issue) -> Runner:
        make, stream = super()._issue, self.schedule.system.stream_of(issue.unit)
        group, executes = self.group_of[stream], {}

        def run(scope: Scope) -> None:
            where = tuple(sorted(self.at.items()))
            if where not in executes:
                executes[where] = self._on(where, lambda: make(issue))
            mine = (stream, self.at.get(group, 0))
            calls = self.given.setdefault(mine, deque())
            if not issue.joined:
                calls.append(Given([], []))
                self.issued[mine] = self.issued.get(mine, 0) + 1
            calls[-1].run.append((executes[where], dict(scope)))
            calls[-1].needs += self._needs(issue, mine)

        return run

    def _on(self, where: tuple[tuple[str, int], ...], make: Any) -> Runner:
        """A runner whose operands are the instance's, whenever it is executed."""
        if where not in self.seen:
            self.seen[where] = Instance(self.machine, dict(where))
        machine, run, own = self.machine, make(), self.seen[where]

        def execute(scope: Scope) -> None:
            self.machine = own
            try:
                run(scope)
            finally:
                self.machine = machine

        return execute

    def _needs(self, issue: Issue, mine: Stream) -> list[tuple[Stream, int]]:
        """How many steps of each stream must be done: a step does not wait for itself."""
        out: list[tuple[Stream, int]] = []
        for w in issue.after:
            group = self.group_of[w.stream]
            if w.every:
                inside, loops = group in self.at, self.begun.get(group, [])
                before = self.issued if not inside else loops[~w.lag] if w.lag < len(loops) else {}
                out += [(s, n - (not inside and s == mine)) for s, n in before.items() if s[0] == w.stream]
            else:
                theirs = (w.stream, self.at.get(group, 0))
                out.append((theirs, self.issued.get(theirs, 0) - (theirs == mine) - w.lag))
        return out

    def _drain(self) -> None:
        """Executes what was given, as far as the waits allow at every point."""
        done = dict.fromkeys(self.given, 0)
        while any(self.given.values()):
            ready = [
                s
                for s, calls in self.given.items()
                if calls and all(done[w] >= n for w, n in calls[0].needs if w in done)
            ]
            assert ready, "waits are on calls that stand before: some stream can always go on"
            eager = [s for s in ready if s[0] == self.eager]
            stream = self.random.choice(eager or ready)
            for run, scope in self.given[stream].popleft().run:
                run(scope)
            done[stream] += 1


def simulate_apart(
    schedule: Schedule,
    arrays: Mapping[str, Array],
    values: Values | None = None,
    symbols: Mapping[str, int] | None = None,
    *,
    seed: int = 0,
    eager: str = "",
) -> dict[str, Array]:
    """As :func:`~isam.codegen.simulator.run.simulate`, streams apart."""
    simulation = Streams(schedule, values, symbols, seed=seed, eager=eager)
    return simulation.once(arrays)
