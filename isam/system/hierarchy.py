"""Caches in front of home memory: how much they hold, and how fast they give it."""

from __future__ import annotations

from collections.abc import Sequence

from isam.system.graph import Memory, System

SHARE = 3 / 4  # of a cache that a box may fill without what passes by driving it out (measured)
SLOW = 4  # times slower than the nearest one, from which on what the last cache gives comes too late (measured)
HIDDEN = 1 / 2  # of what a cache gives, up to which reading it is hidden behind calls (measured)


def levels(system: System) -> list[tuple[int, float]]:
    """Capacities in bytes and bytes per second (0: not known) of caches in front of home memory, smallest first."""
    return [(m.capacity, m.bandwidth or 0.0) for m in system.caches]


def capacities(system: System) -> list[int]:
    """Capacities of caches in front of home memory, smallest first, in bytes."""
    return [capacity for capacity, _ in levels(system)]


def near_cache(system: System) -> int:
    """Bytes of the second nearest cache, the one that blocks are for where nothing else is said; 0 without caches."""
    return (capacities(system) or [0])[:2][-1]


def beyond(size: int, speed: float, system: System) -> tuple[float, bool]:
    """Bytes per second from where so many bytes lie that the second nearest cache, which gives ``speed``, does not
    hold, and whether a cache gives them: of which it holds at least half. What is not known is half of what the one
    before gives."""
    for capacity, bandwidth in levels(system)[2:]:
        speed = bandwidth or speed / 2
        if size <= 2 * capacity:
            return speed, True
    return speed / 2, False


def given(size: int, system: System) -> float:
    """Bytes per second from the cache, of those behind the nearest, that holds so many bytes beside what passes by."""
    near, speed = levels(system)[1]
    return speed if size <= SHARE * near else beyond(size, speed, system)[0]


def slow(caches: Sequence[Memory]) -> bool:
    """Whether the last of several caches is known to be much slower than the nearest of which that is known."""
    known = [m.bandwidth for m in caches if m.bandwidth]
    return bool(known) and known[0] >= SLOW * (caches[-1].bandwidth or known[0])
