"""What plans are asked for: a group of nests, the machine as it is for them then, and what stands already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.scheduler.plans.boxes import NOTHING, Lasting
from isam.scheduler.plans.fed import Fed, fed
from isam.scheduler.plans.register import Room, passing

if TYPE_CHECKING:
    from isam.scheduler.nests import Nest
    from isam.scheduler.plan import Group
    from isam.scheduler.plans.dealing import Dealing
    from isam.scheduler.routes import Routes
    from isam.system.graph import System


@dataclass(frozen=True)
class Request:
    """``bindable``: buffers that may be laid out once, when constants are bound; ``lasting``: what may stay near over
    the loops around the group; ``dealing``: the one that plans have where a memory lies on the way, if that is given;
    ``near``: what is at home near; ``lined``: buffers whose rows all
    begin with lines of the caches; ``gathering``: bytes of memories for results that meet there on their way home;
    ``steps``: the recurrent loops around the group."""

    group: Group
    system: System
    routes: Routes = field(compare=False)
    bindable: frozenset[str] = frozenset()
    lasting: Lasting = NOTHING
    dealing: Dealing | None = None
    near: frozenset[str] = frozenset()
    gathering: Mapping[str, int] = field(default_factory=dict)
    steps: frozenset[str] = frozenset()
    lined: frozenset[str] = frozenset()

    @property
    def main(self) -> Nest:
        """The nest that plans are made for; the others go along."""
        return self.group.main

    @cached_property
    def passing(self) -> Mapping[str, int]:
        """What calls of the other nests take next to the main one's, as :func:`passing` says."""
        return passing(self.group, self.main, self.system)

    @cached_property
    def room(self) -> Room:
        """Next to the unit of the main nest."""
        return Room(self.main, self.system, self.passing)

    @cached_property
    def fed(self) -> Fed | None:
        """What tiles cost beside calls where home feeds one instance right away."""
        return fed(self.main, self.system, self.routes, 1)

    def seconds(self, cycles: float) -> float:
        """Those of so many cycles of the main nest's unit."""
        return cycles / self.system.clock_of(self.main.instruction.name)
