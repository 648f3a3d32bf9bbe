"""How quickly tiles come where few rooms hold them: next to a unit each takes a room from the begin of its move until
the last call on it has ended, and the next one waits for that (Little's law: rooms are tiles times how long one stays).
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

from isam.scheduler.plans.register import together

if TYPE_CHECKING:
    from isam.scheduler.plans.divided import Divided

CLOSE = 1e-9  # times that are equal but for rounding
TURNS = 6  # tiles of an operand that take a room in an iteration, at most


class Brought(NamedTuple):
    """An operand, by its number, whose tiles are brought next to the unit step by step: the ``cells`` (or bytes) that
    one takes, seconds from the begin of a move until calls may read what it brings (``arrival``), and by whom."""

    number: int
    axes: frozenset[str]
    cells: int
    arrival: float
    issuer: str


class Stay(NamedTuple):
    """Its tiles in one step of a block: how many cells they take in all, for how long one stays ``around`` the calls on
    it, and from the first to the last of these (``between``); ``in_a_row``: they are on nothing else of the operand."""

    cells: int
    around: float
    between: float
    in_a_row: bool


def near(of: Divided) -> list[Brought]:
    """The operands of the main nest that wait for rooms."""
    out, machine = [], of.machine
    for n, u in enumerate(of.main.uses):
        edge = machine.edge(machine.memory.name, u.homes[0], u.dtype) if u in of.read and u.homes else None
        if edge is not None:
            arrival = edge.arrival(of.tile(u))
            out.append(Brought(n, of.axes(u), machine.room.sizes[n], arrival, edge.issuer))
    return out


def least_step(of: Divided, tiles: dict[str, int], unrolled: int | None) -> float:
    """Seconds below which no step of a block of so many tiles goes, whatever calls and moves take. ``unrolled``: steps
    in an iteration of the loop around them, of which each takes the rooms that the one before took; None: no loop."""
    if not of.near:
        return 0.0
    room, block, step = of.machine.room, together(of.main, tiles), of.step(tiles)
    stays = {b.number: _stay(of, b, tiles) for b in of.near}
    least = _by_itself(of, tiles)
    for bound, size, spare in room.sets:
        some = [stays[n] for n in bound if n in stays]
        if some:
            held = sum([block[n] * room.sizes[n] for n in bound if n not in stays])
            rooms = max(1, size - spare - held)
            least = max(least, _shared(some, rooms, step))
            if unrolled:
                least = max(least, _packed(some, rooms, unrolled))
    return least


def _stay(of: Divided, b: Brought, tiles: dict[str, int]) -> Stay:
    mine = calls = inside = 1
    behind = 0
    for a in reversed(of.unroll):  # the innermost first
        n = tiles.get(a, 1)
        if a in b.axes:
            mine *= n
        else:
            behind += (n - 1) * inside
            calls *= n
        inside *= n
    machine = of.machine
    between = behind * machine.call / machine.members
    return Stay(mine * b.cells, b.arrival + machine.latency, between, mine > 1 and behind < calls)


def _shared(stays: list[Stay], rooms: int, step: float) -> float:
    """Of operands for which there are so many rooms together. What others' tiles come between stays for a part of the
    ``step``, however long that takes."""
    taken = longer = 0.0
    for s in stays:
        alone = s.in_a_row or len(stays) == 1
        taken += s.cells * (s.around + (s.between if alone else 0.0))
        longer += 0.0 if alone else s.cells * s.between / step
    return taken / max(1.0, rooms - longer)


def _packed(stays: list[Stay], rooms: int, unrolled: int) -> float:
    """The same where the body of a loop says once and for all which room a tile takes: in an iteration each room has
    whole tiles, one after the other."""
    kinds = sorted([(s.around + s.between, s.cells * unrolled) for s in stays], reverse=True)
    longest = kinds[0][0]
    if sum([many for _, many in kinds]) <= rooms:
        return longest / unrolled
    sums = {0.0}
    for long, _ in kinds:
        sums = {t + n * long for t in sums for n in range(TURNS)}
    fitting = (t for t in sorted(sums) if t >= longest and _fit(kinds, rooms, t * (1 + CLOSE)))
    return next(fitting, 0.0) / unrolled


def _fit(kinds: list[tuple[float, int]], rooms: int, time: float) -> bool:
    """Whether so many rooms hold what stays so long, so often, one after the other in some ``time``."""
    free = [(rooms, time)]
    for long, many in kinds:
        after: list[tuple[int, float]] = []
        for n, left in free:  # what is shared with longer stays first
            each = int(left // long)
            used = min(n, -(-many // each)) if each else 0
            many -= min(many, used * each)
            after += [(used, left - each * long), (n - used, left)]
        if many:
            return False
        free = [(n, left) for n, left in after if n]
    return True


def _by_itself(of: Divided, tiles: dict[str, int]) -> float:
    """Where a unit brings the operands of its own calls: one that it has brought for a call it waits for before it goes
    on."""
    machine = of.machine
    own = [(prod([n for a, n in tiles.items() if a in b.axes]), b.arrival) for b in of.near
           if b.issuer in machine.units]  # fmt: skip
    if not own:
        return 0.0
    moves, calls = sum(n for n, _ in own), prod(tiles.values()) / machine.members
    return min(1.0, calls / moves) * sum(n * (arrival + machine.call) for n, arrival in own)
