"""What a call through ``isam.best_of`` costs once it is decided, beside the call itself.

    python -m benchmarks.best_of

Nanoseconds of CPU time of a function that does nothing, of one, two and three arrays, the least of many turns.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import isam

CALLS, TURNS = 2000, 200


def nanoseconds(call: Callable[..., Any], *args: Any) -> float:
    """Of a call, where it is quickest."""
    took = []
    for _ in range(TURNS):
        begin = time.process_time_ns()
        for _ in range(CALLS):
            call(*args)
        took.append((time.process_time_ns() - begin) / CALLS)
    return min(took)


def main() -> int:
    """The command. Returns the exit code, 0."""
    print(f"{'arrays':>6} {'direct':>8} {'best_of':>8}  ns")
    for count in (1, 2, 3):
        arrays = [np.ones(16, np.float32)] * count
        best = isam.best_of({"nothing": lambda *given: None})
        best(*arrays)
        print(f"{count:6} {nanoseconds(lambda *given: None, *arrays):8.0f} {nanoseconds(best, *arrays):8.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
