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
    """Of an operand in one step of a block: how many ``tiles`` are brought, the ``cells`` (or bytes) that one takes,
    the seconds from the begin of its move until calls may read it (``arrival``), and from the first of these to the
    last (``between``); ``in_a_row``: they are on nothing else of the operand; ``own``: a unit that makes such calls
    brings it."""

    tiles: int
    cells: int
    arrival: float
    between: float
    in_a_row: bool
    own: bool


def pace(of: Divided, tiles: dict[str, int], unrolled: int | None) -> float:
    """Seconds below which no step of a block of so many tiles goes, whatever calls and moves take. ``unrolled``: steps
    in an iteration of the loop around them, of which each takes the rooms that the one before took; None: no loop."""
    room = of.machine.room
    found = {n: s for n, u in enumerate(of.main.uses) if (s := _stay(of, u, tiles, room.sizes[n])) is not None}
    if not found:
        return 0.0
    latency, block, step = of.machine.latency, together(of.main, tiles), of.step(tiles)
    least = _by_itself(of, tiles, [s for s in found.values() if s.own])
    if unrolled:
        least = max(least, max(s.arrival + s.between + latency for s in found.values()) / unrolled)
    for bound, size, spare in room.sets:
        stays = [found[n] for n in bound if n in found]
        if stays:
            held = sum([block[n] * room.sizes[n] for n in bound if n not in found])
            least = max(least, _shared(stays, size - spare - held, latency, step, unrolled))
    return least


def _stay(of: Divided, use: Use, tiles: dict[str, int], cells: int) -> Stay | None:
    """None: it is not brought next to the unit step by step."""
    machine = of.machine
    edge = machine.edge(machine.memory.name, use.homes[0], use.dtype) if use in of.read and use.homes else None
    if edge is None:
        return None
    axes, order = of.axes(use), [a for a in of.unroll if a in tiles]
    others = [n for n, a in enumerate(order) if a not in axes]
    behind = sum([(tiles[order[n]] - 1) * prod([tiles[b] for b in order[n + 1 :]]) for n in others])
    mine, calls = prod([n for a, n in tiles.items() if a in axes]), prod([tiles[order[n]] for n in others])
    arrival, own = edge.arrival(of.tile(use)), edge.issuer in machine.units
    return Stay(mine, cells, arrival, behind * machine.call / machine.members, mine > 1 and behind < calls, own)


def _shared(stays: list[Stay], room: int, latency: float, step: float, unrolled: int | None) -> float:
    """Of operands for which there is so much room together. What others' tiles come between stays for a part of the
    ``step``, however long that takes. In a loop each room is taken as often in every iteration."""
    if unrolled:
        wanted = sum([s.tiles * s.cells for s in stays]) * unrolled
        rooms = wanted / -(-wanted // max(1, room))
    else:
        rooms = room
    taken = longer = 0.0
    for s in stays:
        cells, alone = s.tiles * s.cells, s.in_a_row or len(stays) == 1
        taken += cells * (s.arrival + latency + (s.between if alone else 0.0))
        longer += 0.0 if alone else cells * s.between / step
    return taken / max(1.0, rooms - longer)


def _by_itself(of: Divided, tiles: dict[str, int], stays: list[Stay]) -> float:
    """Where a unit brings the operands of its own calls: one that it has brought for a call it waits for before it goes
    on."""
    if not stays:
        return 0.0
    moves, calls = sum(s.tiles for s in stays), prod(tiles.values()) / of.machine.members
    return min(1.0, calls / moves) * sum(s.tiles * (s.arrival + of.machine.call) for s in stays)
