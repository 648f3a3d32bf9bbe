"""The strict simulator: runs any schedule on any description, byte by byte, and refuses what the machine cannot do."""

from __future__ import annotations

from isam.codegen.simulator.execute import emit
from isam.codegen.simulator.fault import KINDS, SimulationFault
from isam.codegen.simulator.run import Figures, Simulation, simulate
from isam.codegen.simulator.values import Values, numbers, residues

__all__ = ["KINDS", "Figures", "Simulation", "SimulationFault", "Values", "emit", "numbers", "residues", "simulate"]
