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


CLOSE = 1e-9  # times that are equal but for rounding
TURNS = 6  # tiles of an operand that take a room in an iteration, at most

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
    for bound, size, spare in room.sets:
        stays = [found[n] for n in bound if n in found]
        if stays:
            held = sum([block[n] * room.sizes[n] for n in bound if n not in found])
            rooms = max(1, size - spare - held)
            least = max(least, _shared(stays, rooms, latency, step))
            if unrolled:
                least = max(least, _packed(stays, rooms, latency, unrolled))
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


def _shared(stays: list[Stay], rooms: int, latency: float, step: float) -> float:
    """Of operands for which there are so many rooms together. What others' tiles come between stays for a part of the
    ``step``, however long that takes."""
    taken = longer = 0.0
    for s in stays:
        cells, alone = s.tiles * s.cells, s.in_a_row or len(stays) == 1
        taken += cells * (s.arrival + latency + (s.between if alone else 0.0))
        longer += 0.0 if alone else cells * s.between / step
    return taken / max(1.0, rooms - longer)


def _packed(stays: list[Stay], rooms: int, latency: float, unrolled: int) -> float:
    """The same where the body of a loop says once and for all which room a tile takes: in an iteration each room has
    whole tiles, one after the other."""
    kinds = sorted([(s.arrival + latency + s.between, s.tiles * s.cells * unrolled) for s in stays], reverse=True)
    sums = {0.0}
    for long, _ in kinds:
        sums = {t + n * long for t in sums for n in range(TURNS)}
    for time in sorted(t for t in sums if t >= kinds[0][0]):
        if _fit(kinds, rooms, time):
            return time / unrolled
    return 0.0


def _fit(kinds: list[tuple[float, int]], rooms: int, time: float) -> bool:
    """Whether so many rooms hold what stays so long, so often, one after the other in some ``time``."""
    free = [(rooms, time * (1 + CLOSE))]
    for long, many in kinds:
        after: list[tuple[int, float]] = []
        for n, left in reversed(free):  # those that hold something already
            each = int(left // long)
            used = min(n, -(-many // each)) if each else 0
            many -= min(many, used * each)
            after += [(used, left - each * long), (n - used, left)]
        if many:
            return False
        free = [(n, left) for n, left in reversed(after) if n]
    return True


def _by_itself(of: Divided, tiles: dict[str, int], stays: list[Stay]) -> float:
    """Where a unit brings the operands of its own calls: one that it has brought for a call it waits for before it goes
    on."""
    if not stays:
        return 0.0
    moves, calls = sum(s.tiles for s in stays), prod(tiles.values()) / of.machine.members
    return min(1.0, calls / moves) * sum(s.tiles * (s.arrival + of.machine.call) for s in stays)
