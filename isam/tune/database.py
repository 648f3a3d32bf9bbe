"""What was found by running schedules beside each other, kept from one process to the next.

One entry per kernel, sizes, machine, CPU and Approach, written whole or not at all; a damaged one counts as absent. It
holds the decisions of the schedule that was taken, so that the compiler makes that one again, and what came of each
that was run. An entry that another version of ISAM cannot follow is no error: schedules are run anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from isam.artifact import Artifact
from isam.classes import dataclass
from isam.diagnostics import IsamError
from isam.runtime.cache import Cache

FOLDER, LIMIT = "measured", 64 << 20  # below the cache's folder; bytes
TRACE, RUNS = "trace.json", "runs.json"


@dataclass(frozen=True, slots=True)
class Found:
    """``trace``: the decisions, as JSON. ``runs``: a row per schedule, the one decided by prediction first. ``asked``:
    how many were to be run."""

    trace: str
    runs: tuple[Mapping[str, Any], ...]
    asked: int


def database(cache: Cache | None) -> Cache | None:
    """Where findings are kept beside code; None where nothing is kept."""
    return None if cache is None else Cache(cache.folder / FOLDER, LIMIT)


def recall(kept: Cache, key: str) -> Found | None:
    """What was found before."""
    entry = kept.get(key)
    if entry is None:
        return None
    try:
        found = json.loads(entry.text(RUNS))
        return Found(entry.text(TRACE), tuple(found["rows"]), int(found["asked"]))
    except (IsamError, ValueError, TypeError, KeyError):
        return None


def remember(kept: Cache, key: str, name: str, trace: str, runs: Sequence[Mapping[str, Any]], asked: int) -> bool:
    """Keeps it; False where that is not possible. ``name``: the kernel's."""
    said = json.dumps({"asked": asked, "rows": list(runs)})
    return kept.put(key, Artifact(name, FOLDER, (), parts={TRACE: trace.encode(), RUNS: said.encode()}))
