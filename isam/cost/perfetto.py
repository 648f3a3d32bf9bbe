"""A timeline as a trace for Perfetto (ui.perfetto.dev): a track per unit, a counter of bytes moved per edge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from isam.cost.timeline import TICK, Event, timeline
from isam.schedule.tree import Schedule

MOST = 200_000  # events written
MICRO = 1e6 * TICK


def trace(schedule: Schedule, symbols: Mapping[str, int] | None = None) -> str:
    """JSON of the trace-event format. Past ``MOST`` calls, iterations that are like the last are left out."""
    events: list[Event] = []
    whole = timeline(schedule, symbols).calls <= MOST
    timeline(schedule, symbols, events.append, whole=whole)
    units = {u: n for n, u in enumerate(schedule.system.units)}
    rows: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "tid": n, "name": "thread_name", "args": {"name": u}} for u, n in units.items()
    ]
    rows.append({"ph": "M", "pid": 1, "name": "process_name", "args": {"name": schedule.system.name}})
    moved: dict[str, int] = {}
    for e in sorted(events, key=lambda e: e.start):
        operands = {o.name: str(o.tile) for o in e.issue.operands}
        rows.append({
            "ph": "X", "pid": 1, "tid": units[e.issue.unit], "name": e.issue.instruction, "ts": e.start * MICRO,
            "dur": (e.free - e.start) * MICRO, "args": {**operands, "results at (us)": e.finish * MICRO},
        })  # fmt: skip
        if e.edge is not None:
            name = " -> ".join(e.edge)
            moved[name] = moved.get(name, 0) + e.bytes
            count = {"ph": "C", "pid": 1, "name": f"bytes {name}", "ts": e.finish * MICRO}
            rows.append({**count, "args": {"bytes": moved[name]}})
    note = "every call" if whole else "iterations that are like the one before are left out"
    return json.dumps({"traceEvents": rows, "displayTimeUnit": "ns", "otherData": {"shown": note}})
