"""Runs artifacts of simulated machines: the schedule in the artifact, on the strict simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from isam.artifact import Artifact
from isam.codegen.simulator.run import Simulation
from isam.ir.signature import arguments_of, sizes_of
from isam.schedule.serial import from_json, to_json
from isam.schedule.tree import Schedule


class Runner:
    """Simulates calls; each has a machine of its own."""

    def __init__(self, artifact: Artifact, functions: Mapping[str, Callable[..., Any]] | None = None):
        self.schedule = from_json(artifact.parts["schedule.json"])

    def bind(self, constants: dict[str, np.ndarray], sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
        """Nothing to be done ahead of time: a simulation starts from an empty machine."""
        return {n: a.copy() for n, a in constants.items()}

    def call(self, arrays: Mapping[str, np.ndarray], sizes: Mapping[str, int], state: Any) -> None:
        """Binds and calls on a fresh machine; outputs are written into ``arrays``."""
        simulation = Simulation(self.schedule, symbols=sizes)
        kernel = self.schedule.kernel
        simulation.bind({b.name: arrays[b.name] for b in kernel.arguments if b.role == "const"})
        given = {b.name: arrays[b.name] for b in kernel.arguments if b.role in ("in", "inout")}
        for name, result in simulation.call(given).items():
            arrays[name][...] = result


def emit(schedule: Schedule) -> Artifact:
    """The artifact that the simulator runs: the schedule itself."""
    from isam import __version__

    kernel = schedule.kernel
    return Artifact(
        name=kernel.name,
        backend="simulator",
        arguments=arguments_of(schedule.cover.original),
        sizes=sizes_of(kernel),
        provenance={"isam": __version__, "system": schedule.system.name},
        parts={"schedule.json": to_json(schedule).encode(), "kernel.isam": str(schedule.cover.original).encode()},
    )
