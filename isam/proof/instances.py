"""Which instance of a replica a slot belongs to, as part of its address (obligation 8).

Every instance has a slot of its own. The slots of all instances are followed as one: that of instance ``i`` begins at
``i`` times a distance that no slot exceeds and that every step of a dealt loop divides, so that addresses stay affine
in the variables of dealt loops. Inside a dealt loop the instance is a variable of its own, whose value is known.
"""

from __future__ import annotations

from dataclasses import field
from math import lcm
from typing import NamedTuple

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.proof.context import Var, of_sizes
from isam.proof.geometry import resolve
from isam.proof.state import Spot
from isam.schedule.tree import Bound, Loop, Place, Schedule, distinct


class Instance(NamedTuple):
    """The number ``times / by`` of an instance, in variables of dealt loops."""

    times: Affine
    by: int


HERE = Instance(Affine(), 1)  # of what is dealt to nobody


def around(schedule: Schedule) -> tuple[Var, ...]:
    """What is known around all loops: of the sizes, and on which instances what is dealt to nobody runs."""
    here = [Instances.var(g, HERE) for g in schedule.system.replicas]
    return (*of_sizes(schedule.cover.kernel.syms).vars, *here)


@dataclass(slots=True)
class Instances:
    """``slots``: those that every instance has for itself; ``apart``: the distance between those of two instances."""

    schedule: Schedule
    slots: frozenset[Spot] = field(init=False)
    apart: int = field(init=False)

    def __post_init__(self) -> None:
        s = self.schedule
        own = [w for w in s.workspace if s.system.replica_of(w.memory) is not None]
        self.slots = frozenset((resolve(s.system, w.memory), w.name) for w in own)
        dealt = [n for n in (*distinct(s.bind), *distinct(s.call)) if isinstance(n, Loop) and n.deal is not None]
        steps = lcm(*(n.step for n in dealt))
        self.apart = steps * max((1 << w.bytes.bit_length() for w in own), default=1)

    def name_of(self, memory: str) -> str:
        """The variable that stands for the instance that a memory belongs to."""
        return f"^{self.schedule.system.replica_of(memory)}"

    def at(self, p: Place) -> Affine:
        """The offset of a place behind its base, slots of all instances in a row."""
        spot = (resolve(self.schedule.system, p.memory), p.base)
        return p.offset + Affine.of(self.name_of(spot[0]), self.apart) if spot in self.slots else p.offset

    @staticmethod
    def inside(n: Loop, around: Instance) -> Instance:
        """The instance that an iteration of a dealt loop runs on."""
        assert n.deal is not None
        by = lcm(around.by, n.step)
        mine = (Affine.of(n.var) - n.lo[0].expr) * n.deal.stride + n.deal.first * n.step
        return Instance(around.times * (by // around.by) + mine * (by // n.step), by)

    @staticmethod
    def var(group: str, at: Instance) -> Var:
        """The variable that stands for the instance, with its value."""
        value = Bound(at.times, at.by)
        return Var(f"^{group}", (value,), (value,))

    @staticmethod
    def said(e: Affine, name: str, at: Instance) -> Affine:
        """An address without the instance's variable."""
        c = e.coefficient(name)
        return e - Affine.of(name, c) + at.times * (c // at.by)

    @staticmethod
    def within(e: Affine, name: str, n: Loop) -> Affine:
        """An address in an iteration of a dealt loop, by the instance that the loops around it are on."""
        c = e.coefficient(name)
        return Instances.said(e, name, Instances.inside(n, HERE)) + Affine.of(name, c)
