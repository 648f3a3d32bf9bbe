"""The flat checker both ways: step by step on single elements, and by the compiled walk on groups that no step cuts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from isam.proof.flat import BUDGET, Exhausted, Replay
from isam.proof.violation import Findings, Violation
from isam.schedule.tree import Schedule

Judged = tuple[list[Violation], dict[str, int], int]  # what is found in this order, how many of a kind, steps left


def judged(schedule: Schedule, sizes: Mapping[str, int], budget: int = BUDGET, compiled: bool = False,
           fine: bool = False) -> tuple[Judged, dict[str, np.ndarray], int]:  # fmt: skip
    """What one way says, what it leaves in the memories, how many steps were judged one by one."""
    out = Findings()
    left, alone, after = budget, 0, dict[str, Any]()
    try:
        replay = Replay(schedule, dict(sizes), out, budget, compiled, fine)
        try:
            replay.run()
        except Exhausted:
            out.add(0, "budget", "")
        left, alone = replay.left, replay.alone
        if replay.ready:
            sp = replay.space
            counts = {f"points of {i}": a for i, a in replay.done.items()}
            after = {"tokens": sp.token, "versions": sp.version, "current": sp.current, **counts}
    except MemoryError as e:
        out.add(0, "budget", str(e))
    return (out.found, dict(out.per_kind), left), after, alone


def difference(schedule: Schedule, sizes: Mapping[str, int], budget: int = BUDGET) -> str:
    """'' where all ways say the same, and on the same groups leave the same in the memories."""
    (fast, memory, _), (slow, other, _) = (judged(schedule, sizes, budget, c) for c in (True, False))
    reference, _, _ = judged(schedule, sizes, budget, fine=True)
    if fast != reference or slow != reference:
        return f"{reference} element by element, {slow} step by step, {fast} by the compiled walk"
    return "".join(f"other {what}" for what, a in memory.items() if not np.array_equal(a, other[what]))
