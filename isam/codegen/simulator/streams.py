"""Executes a schedule's streams apart, in an order drawn at random among those its waits allow (SCH-8).

The tree's own order is one of them. A call that does not wait for what it depends on is sooner or later executed before
it, and the strict machine refuses it or the result is wrong.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from isam.codegen.simulator.call import Scope
from isam.codegen.simulator.run import Array, Runner, Simulation
from isam.codegen.simulator.values import Values
from isam.schedule.tree import Issue, Node, Schedule


@dataclass(slots=True)
class Given:
    """A call that its stream has been given: what executes it, where, and how many calls of others must be done."""

    run: Runner
    scope: Scope
    needs: tuple[tuple[str, int], ...]


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
        self.random, self.eager = random.Random(seed), eager
        self.given: dict[str, deque[Given]] = {}
        self.issued: dict[str, int] = {}

    def _run(self, node: Node) -> None:
        self.given, self.issued = {}, {}
        super()._run(node)
        self._drain()

    def _issue(self, issue: Issue) -> Runner:
        execute = super()._issue(issue)

        def run(scope: Scope) -> None:
            given, issued = self.given, self.issued
            needs = tuple((w.stream, issued.get(w.stream, 0) - w.lag) for w in issue.after)
            given.setdefault(issue.unit, deque()).append(Given(execute, dict(scope), needs))
            issued[issue.unit] = issued.get(issue.unit, 0) + 1

        return run

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
            stream = self.eager if self.eager in ready else self.random.choice(ready)
            call = self.given[stream].popleft()
            call.run(call.scope)
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
    constants = {b.name for b in schedule.kernel.arguments if b.role == "const"}
    simulation.bind({n: a for n, a in arrays.items() if n in constants})
    return simulation.call(arrays)
