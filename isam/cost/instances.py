"""The instances of a replica in time: of all but one the state is put aside, and equal ones share it."""

from __future__ import annotations

from dataclasses import field

from isam.classes import dataclass
from isam.cost.compiled import Gate, Opened
from isam.cost.lanes import Lane, Saved
from isam.cost.steps import Crossing


@dataclass(frozen=True, slots=True)
class Local:
    """What one instance of a replica is in the middle of: its streams, and when its gates open."""

    lanes: tuple[Saved, ...]
    gates: tuple[Opened, ...]


@dataclass(eq=False, slots=True)
class Replicated:
    """A replica: ``states`` of all its instances, but for the one (``at``) whose state is in the lanes and gates.
    ``followed``: what dealt iterations made of states in the present outermost dealt loop, and what they moved. On a
    mesh, ``model``: per instance the first one like it; ``carried``: per crossing the bytes of each instance."""

    states: list[Local]
    lanes: list[Lane]
    gates: list[Gate]
    model: list[int]
    carried: dict[Crossing, list[int]]
    at: int = 0
    dealing: bool = False
    followed: dict[object, tuple[Local, list[int], dict[Crossing, int], Local]] = field(default_factory=dict)

    def store(self) -> None:
        now = Local(tuple(n.saved() for n in self.lanes), tuple(g.saved() for g in self.gates))
        if now != self.states[self.at]:  # else the same object stays: equal states are followed once
            self.states[self.at] = now

    def kinds(self) -> list[Local]:
        """The states that some instance is in, each object once: what it remembers may be long, so none is hashed."""
        return list({id(s): s for s in self.states}.values())

    def switch(self, instance: int) -> None:
        self.at, state = instance, self.states[instance]
        for lane, saved in zip(self.lanes, state.lanes, strict=True):
            lane.load(saved)
        for gate, saved in zip(self.gates, state.gates, strict=True):
            gate.load(saved)


def later(gate: Opened, ticks: int) -> Opened:
    return gate[0] + ticks, tuple((a + ticks, b + ticks) for a, b in gate[1])


def _loaded(like: Lane, saved: Saved) -> Lane:
    lane = Lane(like.name, like.keep)
    lane.load(saved)
    return lane


def repeated(g: Replicated, was: Local, now: Local, shift: int, times: int) -> Local:
    lanes = []
    for like, w, n in zip(g.lanes, was.lanes, now.lanes, strict=True):
        lane = _loaded(like, n)
        lane.repeat(lane.total - w.total, shift, times)
        lanes.append(lane.saved())
    gates = (b if a == b else later(b, shift * times) for a, b in zip(was.gates, now.gates, strict=True))
    return Local(tuple(lanes), tuple(gates))
