"""What stays in near memory over the recurrent loops around a group (SCH-10): boxes of what no step writes.

Such a box has a slot at the end of its memory, in every instance that reads it, and is brought there by the ``enter``
of the outermost loop that leaves it alone. How much of a memory is given to slots is one choice for all groups: the
rest is what the groups work in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from isam.classes import dataclass
from isam.ir.dtype import size_of
from isam.schedule.tree import Tile
from isam.scheduler.laid_out import box_room
from isam.scheduler.parts import RecurrentLoop
from isam.scheduler.plan import Group, Plan
from isam.scheduler.plans.boxes import Lasting, box_sides
from isam.scheduler.tiles import mentions
from isam.system.graph import System

MOST = 0.85  # of a memory, for slots
WAYS = 64  # divisions of the room among groups that are followed


class Stays:
    """The recurrent loops ``around`` a group, outermost first; ``room``: bytes of the ``memory`` that its boxes may
    take."""

    def __init__(self, around: Sequence[RecurrentLoop], room: int = 0, memory: str = ""):
        self.around, self.room, self.memory = tuple(around), room, memory
        self.sizes: dict[str, int] = {}  # of slots

    def slot(self, name: str, size: int) -> int:
        """Bytes of a slot that holds ``size``, in all places where it is filled; 0: there is no room for it."""
        size = max(size, self.sizes.get(name, 0))
        if sum(n for other, n in self.sizes.items() if other != name) + size > self.room:
            return 0
        self.sizes[name] = size
        return size

    def before(self, buffer: str, box: Tile) -> RecurrentLoop:
        """The outermost loop that leaves a box alone: it is brought before its first step."""
        out = self.around[-1]
        for a in reversed(self.around):
            if buffer in a.written or mentions(box, a.loop.axis.name):
                break
            out = a
        return out

    def lasting(self, group: Group) -> Lasting:
        """What of a group's operands may stay."""
        inner = self.around[-1]
        still: dict[str, bool] = {}
        rows: dict[str, object] = {}
        for n in group.nests:
            for u in n.uses:
                moves = any(inner.loop.axis.name in row.names for row in u.index)
                alike = rows.setdefault(u.buffer, u.index) == u.index and bool(u.index)
                alone = u.buffer not in inner.written
                still[u.buffer] = still.get(u.buffer, True) and not moves and alike and alone
        if any(n.where or n.origin for n in group.nests):
            return Lasting()
        kept = frozenset(b for b, s in still.items() if s)
        return Lasting(kept, self.room, prod(a.trip for a in self.around), self.memory)


@dataclass(frozen=True)
class StayRooms:
    """An option at ``pack``: bytes of ``memory`` for what stays, of each instance, by group (its number)."""

    memory: str = ""
    rooms: tuple[tuple[int, int], ...] = ()

    @property
    def total(self) -> int:
        return sum(n for _, n in self.rooms)

    def of(self, group: int) -> int:
        return dict(self.rooms).get(group, 0)

    def label(self) -> str:
        return f"{self.total} bytes of {self.memory}" if self.rooms else "nothing stays"


def stay_bytes(plan: Plan, system: System) -> int:
    """Bytes that stay in every instance, of a plan."""
    group, out = plan.group, 0
    for s in plan.stages:
        if s.stays:
            use = next(u for n in (group.main, *group.nests) for u in n.uses if u.buffer == s.buffer)
            align = system.memories[s.memory].align
            out += box_room(box_sides(group, use, plan.order, plan.inner), size_of(use.dtype), align)
    return out


def smaller(system: System, memory: str, taken: int) -> System:
    """The machine with part of a memory taken."""
    if not taken:
        return system
    m = system.memories[memory]
    return replace(system, memories={**system.memories, memory: replace(m, capacity=m.capacity - taken)})


def divisions(options: Sequence[Sequence[tuple[int, float]]], memory: str,
              room: int) -> tuple[list[StayRooms], list[float]]:  # fmt: skip
    """Nothing, and the division of the room that saves most: of each group's plans, the bytes that stay and seconds."""
    ways: dict[tuple[tuple[int, int], ...], tuple[float, int]] = {(): (0.0, 0)}
    nothing = 0.0
    for g, plans in enumerate(options):
        best: dict[int, float] = {}
        for size, seconds in plans:
            best[size] = min(seconds, best.get(size, seconds))
        nothing += best.get(0, 0.0)
        more: dict[tuple[tuple[int, int], ...], tuple[float, int]] = {}
        for rooms, (seconds, used) in ways.items():
            for size, mine in best.items():
                if used + size <= room:
                    more[(*rooms, (g, size)) if size else rooms] = (seconds + mine, used + size)
        ways = dict(sorted(more.items(), key=lambda w: (w[1], w[0]))[:WAYS])
    rooms, (seconds, used) = min(ways.items(), key=lambda w: (w[1], w[0]))
    if not used:
        return [StayRooms()], [nothing]
    return [StayRooms(), StayRooms(memory, rooms)], [nothing, seconds]
