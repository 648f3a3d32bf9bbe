"""Timing on a shared machine: processor time of the quickest of a few tries, because neighbours only make it longer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def quickest(action: Callable[[], Any], limit: float, tries: int = 4) -> float:
    """Seconds of processor time of the quickest try; no further try once one is under ``limit``."""
    best = float("inf")
    for _ in range(tries):
        start = time.process_time()
        action()
        best = min(best, time.process_time() - start)
        if best < limit:
            break
    return best
