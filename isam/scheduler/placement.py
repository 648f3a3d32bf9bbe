"""Which memories the operands of a call may be in together (SYS-3), and the other small things that are chosen."""

from __future__ import annotations

from functools import cached_property
from itertools import product

from isam.classes import dataclass
from isam.scheduler.nests import Nest
from isam.scheduler.state import Key
from isam.system.graph import System


@dataclass(frozen=True)
class Placement:
    """An option at ``place``: the memory that each operand of a call lies in."""

    operands: tuple[str, ...]
    memories: tuple[str, ...]

    @cached_property
    def label(self) -> str:
        return ", ".join(f"{o} in {m}" for o, m in zip(self.operands, self.memories, strict=True))


@dataclass(frozen=True)
class Victim:
    """An option at ``victim``: the copy of a tile that gives way. ``next_use``: where in the present block the tile is
    used again, later ones are higher; None: nowhere. ``dirty``: it would be written back."""

    key: Key
    next_use: int | None = None
    dirty: bool = False

    def label(self) -> str:
        return f"{self.key[1]} in {self.key[0]}"


def joint_placements(nest: Nest, system: System) -> list[Placement]:
    """Every placement that the homes, the groups apart and the memories' ports admit, best first."""
    names = tuple(u.name for u in nest.uses)
    out = []
    for option in product(*(u.homes for u in nest.uses)):
        at = dict(zip(names, option, strict=True))
        if all(
            len({at[o] for o in group if o in at}) == len([o for o in group if o in at])
            for group in nest.instruction.apart
        ) and _ported(nest, system, at):
            out.append(Placement(names, option))
    return out


def _ported(nest: Nest, system: System, at: dict[str, str]) -> bool:
    """Whether every memory has ports enough for the operands that lie in it."""
    role = {b.name: b.role for b in nest.instruction.body.arguments}
    return all(system.memories[m].ports.admit([role[o] for o in at if at[o] == m]) for m in set(at.values()))
