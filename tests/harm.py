"""Whether a schedule does harm, by carrying it out: no code is shared with the checkers.

A schedule does no harm if the simulator, which is strict about places, versions, registers and the end of outputs,
meets nothing wrong, its results equal the oracle's (in residues, exactly; on the machine's own numbers within bounds
derived per element), its inputs stay as they are, a second call on the same bound constants is as right as the first,
and no order that the waits allow changes a result: each stream as far ahead of the others as it may be, as far behind,
and at random.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from isam.codegen.simulator import residues
from isam.codegen.simulator.run import Simulation
from isam.codegen.simulator.streams import Streams
from isam.codegen.simulator.values import numbers
from isam.cost.timeline import timeline
from isam.ir import oracle
from isam.ir.bounds import enclose, outside
from isam.ir.dtype import numpy_dtype
from isam.ir.kernel import Kernel
from isam.schedule.tree import Schedule

Arrays = dict[str, np.ndarray]


class Last:
    """Chooses a stream other than one, while there is one."""

    def __init__(self, name: str):
        self.name = name

    def choice(self, streams: Sequence[tuple[str, int]]) -> tuple[str, int]:
        return next((s for s in streams if s[0] != self.name), streams[0])


@dataclass
class Case:
    """A schedule that is right: of ``kernel`` as it was written, at ``sizes``; ``open``: run-time sizes to try."""

    source: str
    kernel: Kernel
    sizes: Mapping[str, int]
    schedule: Schedule
    open: tuple[Mapping[str, int], ...] = ({},)
    wanted: dict[Any, tuple[Arrays, Arrays]] = field(default_factory=dict)

    def inputs(self, at: Mapping[str, int], seed: int, call: int) -> tuple[Arrays, Arrays]:
        """Inputs of a call, and what its outputs must be; constants are those of the first call."""
        key = (tuple(at.items()), seed, call)
        if key not in self.wanted:
            concrete = self.kernel.with_sizes({**self.sizes, **at})
            arrays = oracle.inputs(concrete, {}, 2 * seed + call)
            if call:
                first = self.inputs(at, seed, 0)[0]
                constants = {b.name for b in concrete.arguments if b.role == "const"}
                arrays = {n: first[n] if n in constants else a for n, a in arrays.items()}
            self.wanted[key] = arrays, oracle.run_modular(concrete, arrays, {}, seed)
        return self.wanted[key]

    def harm(self, s: Schedule, seeds: int = 1, streams: bool = True, thorough: bool = False) -> str:
        """What goes wrong with a schedule; '' where nothing does."""
        try:
            for at in self.open:
                for seed in range(seeds):
                    self._strictly(s, at, seed)
                if streams:
                    self._apart(s, at)
                if thorough:
                    self._in_numbers(s, {**self.sizes, **at}, at)
            if thorough:
                timeline(s, self.open[-1])
        except Exception as e:  # whatever it is, nobody can carry this schedule out as it is meant
            return f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}"
        return ""

    def _strictly(self, s: Schedule, at: Mapping[str, int], seed: int) -> None:
        sim = Simulation(s, residues(seed), at)
        constants = {b.name for b in s.kernel.arguments if b.role == "const"}
        try:
            for call in range(2):
                arrays, want = self.inputs(at, seed, call)
                if not call:
                    sim.bind({n: a for n, a in arrays.items() if n in constants})
                same(sim.call(arrays), want)
                for b in s.kernel.arguments:
                    if b.role in ("in", "const"):
                        same({b.name: sim.machine.read(b.name)}, {b.name: arrays[b.name]})
        finally:
            sim.let_go()

    def _apart(self, s: Schedule, at: Mapping[str, int]) -> None:
        names = sorted({s.system.cluster_of(u) or u for u in s.system.units})
        if len(names) < 2 and not s.system.replicas:
            return
        arrays, want = self.inputs(at, 0, 0)
        for name in (*names, *((n, "last") for n in names), 1, 2):
            sim = Streams(s, residues(0), at, seed=name if isinstance(name, int) else 0,
                          eager=name if isinstance(name, str) else "")  # fmt: skip
            if isinstance(name, tuple):
                sim.random = Last(name[0])  # type: ignore[assignment]
            same(sim.once(arrays), want)

    def _in_numbers(self, s: Schedule, sizes: Mapping[str, int], at: Mapping[str, int]) -> None:
        rng = np.random.default_rng(1)
        arrays: Arrays = {}
        for b in self.kernel.with_sizes(sizes).arguments:
            if b.role != "out":
                d, shape = numpy_dtype(b.dtype), [int(n) for n in b.shape]
                scale = 0.125 if d.kind not in "iub" else 1  # a recurrence must not be chaotic
                drawn = rng.integers(0, 2, shape) if b.dtype == "bool" else rng.integers(-3, 4, shape) * scale
                arrays[b.name] = np.asarray(drawn).astype(d)
        fault = outside(Simulation(s, numbers(), at).once(arrays), enclose(self.kernel, arrays, dict(sizes)))
        assert fault is None, fault


def same(got: Arrays, want: Arrays) -> None:
    assert got.keys() == want.keys(), "other results"
    for name, expected in want.items():
        assert np.array_equal(got[name], expected), f"{name} is wrong"
