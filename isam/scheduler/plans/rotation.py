"""How quickly tiles come where few rooms hold them: next to a unit each takes a room from when its move begins until the
last call on it has ended, and the next one waits for that (Little's law: rooms are tiles times how long one stays).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.scheduler.plans.register import together

if TYPE_CHECKING:
    from isam.scheduler.nests import Use
    from isam.scheduler.plans.divided import Divided


@dataclass(frozen=True)
class Stay:
    """Of an operand's tiles in one step of a block: the cells (or bytes) that all take, and the seconds for which one
    stays, those ``between`` the first call on it and the last and those ``around``; ``in_a_row``: these calls are on
    nothing else of it."""

    units: int
    around: float
    between: float
    in_a_row: bool


def pace(of: Divided, tiles: dict[str, int], unrolled: int | None) -> float:
    """Seconds below which no step of a block of so many tiles goes, whatever calls and moves take. ``unrolled``: steps
    in an iteration of the loop around them, of which each takes the rooms that the one before took; None: no loop."""
    room = of.machine.room
    found = {n: s for n, u in enumerate(of.main.uses) if (s := _stay(of, u, tiles, room.sizes[n])) is not None}
    if not found:
        return 0.0
    block, step = together(of.main, tiles), of.step(tiles)
    least = max(s.around + s.between for s in found.values()) / unrolled if unrolled else 0.0
    for bound, size, spare in room.sets:
        stays = [found[n] for n in bound if n in found]
        if stays:
            held = sum([block[n] * room.sizes[n] for n in bound if n not in found])
            least = max(least, _shared(stays, size - spare - held, step, unrolled))
    return least


def _stay(of: Divided, use: Use, tiles: dict[str, int], units: int) -> Stay | None:
    """None: it is not brought next to the unit step by step."""
    machine = of.machine
    edge = machine.edge(machine.memory.name, use.homes[0], use.dtype) if use in of.read and use.homes else None
    if edge is None:
        return None
    axes, order, each = of.axes(use), [a for a in of.unroll if a in tiles], machine.call / machine.members
    stride = {a: prod(tiles[b] for b in order[n + 1 :]) for n, a in enumerate(order)}
    behind = sum((tiles[a] - 1) * stride[a] for a in order if a not in axes)
    calls, own = prod(n for a, n in tiles.items() if a not in axes), prod(n for a, n in tiles.items() if a in axes)
    around = edge.arrival(of.tile(use)) + machine.latency
    return Stay(own * units, around, behind * each, own > 1 and behind < calls)


def _shared(stays: list[Stay], room: int, step: float, unrolled: int | None) -> float:
    """Of operands for which there is so much room together. What others' tiles come between stays for a part of the
    ``step``, however long that takes. In a loop each room is taken as often in every iteration."""
    wanted = sum([s.units for s in stays])
    if unrolled:
        room = wanted * unrolled / -(-wanted * unrolled // max(1, room))
    apart = [s for s in stays if s.in_a_row or len(stays) == 1]
    longer = sum([s.units * s.between / step for s in stays if s not in apart])
    return (sum([s.units * s.around for s in stays]) + sum([s.units * s.between for s in apart])) / max(1.0, room - longer)
