"""Results that may lie in several memories next to a unit: they are spread so that what passes by has room in each."""

from __future__ import annotations

from math import prod

from isam.classes import dataclass
from isam.scheduler.placement import joint_placements
from isam.scheduler.plan import Plan
from isam.scheduler.plans.register import Room, live, together
from isam.system.graph import Memory, System

EVEN = 0.01  # of the price of a tile, for a memory that is full


@dataclass(frozen=True)
class Spread:
    """Results that stay near in several memories while others pass by. ``homes``: where all nests of a group may have
    such a buffer; ``reserved``: cells of each memory that are for what passes."""

    homes: dict[str, frozenset[str]]
    reserved: dict[str, int]

    def price(self, buffer: str, memory: Memory, taken: int) -> float:
        """What it costs to have a tile in a memory of which so many cells are taken: among equals the one with more
        room is taken."""
        if memory.name not in self.homes[buffer]:
            return 2 * EVEN
        return EVEN * (taken + self.reserved.get(memory.name, 0)) / memory.cells if memory.cells else 0.0


def spread(plan: Plan, system: System) -> Spread | None:
    """How results of the main nest that stay near while others pass by lie in several memories; None: in one."""
    main = plan.group.main
    written = frozenset(u.buffer for u in main.uses if u.writes and len(u.homes) > 1)
    per = {a: -(-plan.register_block(a) // main.unit(a)) for a in main.axes if a not in main.reduced}
    places = joint_placements(main, system) if written and main.reduced and prod(per.values()) > 1 else []
    if not places:
        return None
    room, out = Room(main, system), dict[str, int]()
    outer = next((a for a in plan.unroll if a in per), "")
    tiles = live(main, together(main, per), outer, per.get(outer, 1))
    for u, n, size, memory in zip(main.uses, tiles, room.sizes, places[0].memories, strict=True):
        out[memory] = out.get(memory, 0) + (0 if u.writes else n * size)
    homes = {b: frozenset.intersection(*(frozenset(u.homes) for n in plan.group.nests for u in n.uses if u.buffer == b))
             for b in written}  # fmt: skip
    return Spread(homes, out)
