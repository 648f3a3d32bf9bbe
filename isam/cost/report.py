"""A schedule in time, told: how long, how far from what no schedule beats, who was busy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from isam.cost.floor import Floor, floor
from isam.cost.timeline import TICK, Timeline, timeline
from isam.schedule.tree import Schedule


@dataclass(frozen=True)
class Report:
    """``str()`` is the table; ``data`` the same for programs."""

    time: Timeline
    floor: Floor
    assumed: tuple[str, ...] = ()
    trips: Mapping[str, int] | None = None

    @property
    def data(self) -> dict[str, Any]:
        units = {u: {"calls": w.calls, "busy": w.busy * TICK, "share": self.time.utilisation(u)}
                 for u, w in self.time.units.items()}  # fmt: skip
        edges = {" -> ".join(e): {"calls": w.calls, "busy": w.busy * TICK, "bytes": w.bytes}
                 for e, w in self.time.edges.items()}  # fmt: skip
        return {"seconds": self.time.seconds, "floor": self.floor.seconds, "bound by": self.floor.name,
                "calls": self.time.calls, "units": units, "edges": edges}  # fmt: skip

    def __str__(self) -> str:
        t, least = self.time, self.floor.seconds
        far = f", {t.seconds / least:.2f} times the least ({self.floor.name})" if least and t.seconds else ""
        lines = [f"in time: {duration(t.seconds)} for {t.calls} calls{far}"]
        if self.trips:
            lines.append("  with " + ", ".join(f"{n} = {v}" for n, v in self.trips.items()))
        width = max(map(len, [*t.units, *(" -> ".join(e) for e in t.edges)]), default=0)
        for u, w in t.units.items():
            lines.append(f"  {u.ljust(width)}  busy {t.utilisation(u):6.1%}  {w.calls} calls")
        for e, w in t.edges.items():
            share = w.busy / t.ticks if t.ticks else 0.0
            lines.append(f"  {' -> '.join(e).ljust(width)}  busy {share:6.1%}  {w.bytes} bytes")
        parts = (f"{n} {duration(getattr(self.floor, n))}" for n in ("compute", "load", "store"))
        lines.append("  at least: " + ", ".join(parts))
        if self.assumed:
            lines.append(f"  costs assumed, not stated: {len(self.assumed)}, as {self.assumed[0]}")
        return "\n".join(lines)


def report(schedule: Schedule, symbols: Mapping[str, int] | None = None) -> Report:
    """The call part in time. ``symbols``: run-time sizes."""
    return Report(timeline(schedule, symbols), floor(schedule), schedule.system.assumed, symbols)


def duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
