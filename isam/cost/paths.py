"""Shortest paths between memories."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable


def least_path(
    steps: Iterable[tuple[str, str, float]], sources: Collection[str], targets: Collection[str]
) -> float | None:
    """The least length of a way from one of ``sources`` to one of ``targets`` (Dijkstra); None where there is none.

    ``steps``: from, to, length, which is not negative.

    >>> least_path([("a", "b", 2), ("b", "c", 2), ("a", "c", 5)], ["a"], ["c"])
    4
    """
    after: dict[str, list[tuple[str, float]]] = {}
    for a, b, length in steps:
        after.setdefault(a, []).append((b, length))
    best: dict[str, float] = dict.fromkeys(sources, 0)
    queue: list[tuple[float, str]] = [(0, m) for m in sorted(sources)]
    while queue:
        passed, m = heapq.heappop(queue)
        if m in targets:
            return passed
        for b, length in after.get(m, ()) if passed <= best[m] else ():
            if (far := passed + length) < best.get(b, far + 1):
                best[b] = far
                heapq.heappush(queue, (far, b))
    return None
