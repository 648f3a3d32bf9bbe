"""Runs of numbers: what a worker does, and what it hands back for the log."""

from __future__ import annotations

import os
import time
import traceback
from collections import Counter

from tests.pairs.judge import judged, pair

BLOCK = 250


def block(first: int, last: int) -> dict[str, object]:
    """The findings of a run of numbers, ready for the log."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    start = time.process_time()
    for seed in range(first, last):
        try:
            found = judged(seed)
            counts.update(found.counts)
            wrong += [f"# pair {seed}\n{text}" for text in found.wrong]
        except Exception:  # whatever it is, it is a finding
            wrong.append(f"# pair {seed}: {traceback.format_exc().splitlines()[-1]}\n{_shown(seed)}")
    return {"first": first, "last": last, "counts": counts, "wrong": wrong, "seconds": time.process_time() - start}


def _shown(seed: int) -> str:
    try:
        return str(pair(seed))
    except Exception:
        return traceback.format_exc()


def job(numbers: tuple[int, int]) -> dict[str, object]:
    os.nice(max(0, 5 - os.nice(0)))
    return block(*numbers)
