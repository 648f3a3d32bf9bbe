"""Whether tiles that could move in one piece do, or each by itself: decided once for all that are alike (SCH-9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isam.approach.choice import Choice

if TYPE_CHECKING:
    from isam.scheduler.residency import Residency

APART, TOGETHER = "one by one", "together"


def wanted_together(data: Residency, buffer: str, way: tuple[str, ...], tiles: int, size: int,
                    seconds: tuple[float, float], worth: float) -> bool:  # fmt: skip
    """Whether the Approach wants so many tiles of a buffer, of so many bytes in all, to move along a ``way`` of
    memories in one piece; ``seconds``: one by one and together. First comes what would happen without an opinion:
    together where that takes less than the share ``worth`` of the other."""
    key = buffer, way, tiles, size, seconds
    if key not in data.joined:
        apart, together = seconds
        options, costs = (APART, TOGETHER), (apart, together)
        if together < worth * apart:
            options, costs = (TOGETHER, APART), (together, apart)
        context = {"buffer": buffer, "way": list(way), "count": tiles, "bytes": size}
        data.joined[key] = data.trace.choose(Choice("join", options, context, costs)) == TOGETHER
    return data.joined[key]
