"""Who stands where on a mesh, and which channels a move takes.

Instances are numbered from the ports outwards, so that what is dealt to fewer than all of them goes to the nearest (of
several memories: to those whose ways to all of them together are shortest).
Every instance uses the nearest port of a memory; of equally near ones the one that fewest others use so far. A route
goes along the last dimension first (dimension order: no two routes wait for each other in a circle), on a ring the
shorter way round.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise, product

from isam.classes import dataclass
from isam.system.groups import Mesh

Place = tuple[int, ...]
Stop = Place | tuple[str, Place]  # a place of the grid, or a memory beside one
Channel = tuple[Stop, Stop]


@dataclass(frozen=True)
class Routes:
    """``places``: where each instance stands. ``inward``, ``outward``: per memory and instance the channels from the
    memory to it and back, in their order."""

    mesh: Mesh
    places: tuple[Place, ...]
    inward: dict[str, tuple[tuple[Channel, ...], ...]]
    outward: dict[str, tuple[tuple[Channel, ...], ...]]

    def of(self, memory: str, inward: bool) -> tuple[tuple[Channel, ...], ...]:
        """Per instance the channels between it and a memory."""
        return (self.inward if inward else self.outward)[memory]

    def sharing(self, memory: str, inward: bool, instances: Iterable[int]) -> dict[int, int]:
        """How many of these instances, all of which move something to or from the memory, use the channel of each
        one's route that most of them use."""
        ways = self.of(memory, inward)
        instances = tuple(instances)
        users = Counter(c for i in instances for c in ways[i])
        return {i: max(users[c] for c in ways[i]) for i in instances}


@lru_cache(maxsize=64)
def routes(mesh: Mesh) -> Routes:
    """All routes of a mesh."""
    ports = dict(mesh.ports)
    grid = list(product(*map(range, mesh.shape)))
    far = {p: sum(min(distance(mesh, p, q) for q in some) for some in ports.values()) for p in grid}
    places = tuple(sorted(grid, key=lambda p: (far[p], p)))
    inward: dict[str, tuple[tuple[Channel, ...], ...]] = {}
    outward: dict[str, tuple[tuple[Channel, ...], ...]] = {}
    for memory, some in ports.items():
        chosen = _chosen(mesh, places, some)
        there = [[(memory, q), *_stops(mesh, q, p)] for p, q in zip(places, chosen, strict=True)]
        back = [[*_stops(mesh, p, q), (memory, q)] for p, q in zip(places, chosen, strict=True)]
        inward[memory] = tuple(tuple(pairwise(stops)) for stops in there)
        outward[memory] = tuple(tuple(pairwise(stops)) for stops in back)
    return Routes(mesh, places, inward, outward)


def _chosen(mesh: Mesh, places: tuple[Place, ...], ports: tuple[Place, ...]) -> list[Place]:
    """The port of each place."""
    users = Counter[Place]()
    out = []
    for p in places:
        port = min(ports, key=lambda q: (distance(mesh, p, q), users[q]))
        users[port] += 1
        out.append(port)
    return out


def neighbours(mesh: Mesh, a: Place) -> list[Place]:
    """Where a channel leads from a place."""
    out = dict[Place, None]()
    for d, n in enumerate(mesh.shape):
        for i in (a[d] - 1, a[d] + 1):
            if (mesh.wrap and n > 1) or 0 <= i < n:
                out[(*a[:d], i % n, *a[d + 1 :])] = None
    return list(out)


def distance(mesh: Mesh, a: Place, b: Place) -> int:
    """Channels between two places."""
    return sum(abs(_step(mesh, d, x, y)) for d, (x, y) in enumerate(zip(a, b, strict=True)))


def _step(mesh: Mesh, dimension: int, a: int, b: int) -> int:
    """How far, and which way, along one dimension."""
    straight, n = b - a, mesh.shape[dimension]
    round_ = straight - n if straight > 0 else straight + n
    return round_ if mesh.wrap and straight and abs(round_) < abs(straight) else straight


def _stops(mesh: Mesh, a: Place, b: Place) -> list[Place]:
    """The places on the way, both ends included."""
    out, at = [a], list(a)
    for d in reversed(range(len(a))):
        far = _step(mesh, d, at[d], b[d])
        for _ in range(abs(far)):
            at[d] = (at[d] + (1 if far > 0 else -1)) % mesh.shape[d]
            out.append(tuple(at))
    return out
