"""What tiles cost that home sends right next to the units of a nest, beside its calls."""

from __future__ import annotations

from collections.abc import Sequence

from isam.classes import dataclass
from isam.scheduler.edges import quickest
from isam.scheduler.nests import Nest
from isam.scheduler.plans.register import tile_bytes
from isam.scheduler.routes import Routes
from isam.system.graph import MANAGED, System


@dataclass(frozen=True)
class Fed:
    """Per operand who brings a tile of it, and in how many times as long as a call takes; ``left``: the same of what
    takes a result home."""

    brought: tuple[tuple[str, float] | None, ...]
    left: tuple[tuple[str, float] | None, ...]

    def per_call(self, tiles: Sequence[int], calls: float, rounds: int) -> float:
        """How many times as long as its calls a step of a block takes, with so many ``tiles`` of each operand; results
        leave after so many ``rounds``. Calls and those who move work side by side."""
        busy: dict[str, float] = {}
        for moves, every in ((self.brought, 1), (self.left, rounds)):
            for n, move in zip(tiles, moves, strict=True):
                if move is not None:
                    busy[move[0]] = busy.get(move[0], 0.0) + n * move[1] / every
        return max(1.0, max(busy.values(), default=0.0) / calls)


def fed(nest: Nest, system: System, routes: Routes, instances: int) -> Fed | None:
    """Of a nest with operands in memories that home feeds right away, on each of so many instances; None where another
    memory, or a cache, lies between, and where calls take no time to compare with."""
    if system.caches or not nest.cycles:
        return None
    call = nest.cycles / system.clock_of(nest.instruction.name)
    brought, left = list[tuple[str, float] | None](), list[tuple[str, float] | None]()
    for u in nest.uses:
        brought.append(None)
        left.append(None)
        home = u.homes[0] if u.homes else system.home
        if home == system.home:
            continue
        ways = (system.home, home) if u.reads and not u.writes else (home, system.home)
        if system.memories[home].kind != MANAGED or routes.of(*ways, u.dtype) != ways:
            return None
        edge = quickest(system, *ways, u.dtype)
        if edge is None:
            return None
        moved = edge.issuer, edge.seconds(1, tile_bytes(nest, u, system), instances) / call
        if u.writes:
            left[-1] = moved
        else:
            brought[-1] = moved
    return Fed(tuple(brought), tuple(left))
