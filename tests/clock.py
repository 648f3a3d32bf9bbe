"""Timing on a shared machine: the quickest of a few tries, in seconds of a quiet core.

Processor time leaves out what neighbours take of a core, but grows with what they do to its clock and caches; and cores
differ. So a fixed piece of work is timed before and after each try, and what it takes longer than on a quiet core is
taken off the try. A limit holds wherever tests run, and what has become slower itself is still found.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

QUIET = 0.013  # seconds of ``_work`` on a quiet core that limits are of (Zen 5)


def quickest(action: Callable[[], Any], limit: float, tries: int = 4) -> float:
    """Seconds of the quickest try; no further try once one is under ``limit``."""
    best = float("inf")
    for _ in range(tries):
        before, took = pace(), spent(action)
        best = min(best, took / max(before, pace()))
        if best < limit:
            break
    return best


def spent(action: Callable[[], Any]) -> float:
    """Seconds of processor time that ``action`` takes here and now."""
    start = time.process_time()
    action()
    return time.process_time() - start


def pace() -> float:
    """How many times as long as on a quiet core Python's work takes here and now; at least 1."""
    return max(1.0, min(spent(_work) for _ in range(2)) / QUIET)


def _work() -> None:
    """What a compiler written in Python does all day: tuples and sets hashed, looked up, put in order."""
    seen: dict[tuple[int, str, frozenset[int]], tuple[int, ...]] = {}
    for n in range(20_000):
        key = (n % 97, "axis", frozenset((n % 13, n % 7)))
        seen[key] = (*seen.get(key, ())[-3:], n)
    sorted(seen.items(), key=lambda item: (item[0][0], item[1]))
