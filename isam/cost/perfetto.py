"""A timeline as a trace for Perfetto (ui.perfetto.dev): per instance a track for each unit and for each edge that it
moves along (the port of one memory to another, and whose it is), a counter of bytes moved per edge, one of bytes in use
per memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from isam.cost.occupancy import occupancy
from isam.cost.timeline import TICK, Event, timeline
from isam.schedule.tree import Schedule

MOST = 200_000  # events written
MICRO = 1e6 * TICK


def events_of(schedule: Schedule, symbols: Mapping[str, int] | None, most: int) -> tuple[list[Event], str]:
    """What is shown of a schedule, and a word on it. Past ``most`` calls, iterations that are like the last are left
    out, and of equal instances all but one."""
    events: list[Event] = []
    whole = timeline(schedule, symbols).calls <= most
    timeline(schedule, symbols, events.append, whole=whole)
    return events, "every call" if whole else "iterations and instances that are like those before are left out"


def trace(schedule: Schedule, symbols: Mapping[str, int] | None = None) -> str:
    """JSON of the trace-event format: a process per instance."""
    events, note = events_of(schedule, symbols, MOST)
    units = {u: n for n, u in enumerate(schedule.system.units)}
    ports = {(m.issuer, m.source, m.target): len(units) + n for n, m in enumerate(schedule.system.moves)}
    used = {(e.instance, (e.issue.unit, *e.edge)) for e in events if e.edge is not None}
    rows: list[dict[str, Any]] = []
    for instance in sorted({e.instance for e in events}):
        name = schedule.system.name + (f" {instance}" if schedule.system.replicas else "")
        rows.append({"ph": "M", "pid": instance + 1, "name": "process_name", "args": {"name": name}})
        rows += [{"ph": "M", "pid": instance + 1, "tid": n, "name": "thread_name", "args": {"name": u}}
                 for u, n in units.items()]  # fmt: skip
        rows += [{"ph": "M", "pid": instance + 1, "tid": n, "name": "thread_name",
                  "args": {"name": f"{p[1]} -> {p[2]} by {p[0]}"}}
                 for p, n in ports.items() if (instance, p) in used]  # fmt: skip
    moved: dict[str, int] = {}
    for e in sorted(events, key=lambda e: e.start):
        operands = {o.name: str(o.tile) for o in e.issue.operands}
        rows.append({
            "ph": "X", "cat": "unit", "pid": e.instance + 1, "tid": units[e.issue.unit], "name": e.issue.instruction,
            "ts": e.start * MICRO, "dur": (e.free - e.start) * MICRO,
            "args": {**operands, "results at (us)": e.finish * MICRO},
        })  # fmt: skip
        if e.edge is not None:
            name = " -> ".join(e.edge)
            moved[name] = moved.get(name, 0) + e.bytes
            port = ports[e.issue.unit, *e.edge]
            rows.append({**rows[-1], "cat": "port", "tid": port, "args": {**operands, "bytes": e.bytes}})
            rows.append(_counter(1, f"bytes {name}", e.finish, moved[name]))
    for (memory, instance), points in occupancy(schedule, events).items():
        rows += [_counter(instance + 1, f"in use {memory}", moment, size) for moment, size in points]
    return json.dumps({"traceEvents": rows, "displayTimeUnit": "ns", "otherData": {"shown": note}})


def _counter(pid: int, name: str, moment: int, size: int) -> dict[str, Any]:
    return {"ph": "C", "pid": pid, "name": name, "ts": moment * MICRO, "args": {"bytes": size}}
