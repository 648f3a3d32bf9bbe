"""A schedule in time, told: how long, how far from what no schedule beats, who was busy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from isam.approach.choice import Trace
from isam.classes import dataclass
from isam.cost.floor import Floor, floor
from isam.cost.steps import TICK, dealt_to
from isam.cost.timeline import Timeline, Work, timeline
from isam.schedule.tree import Schedule
from isam.system.draw_mesh import channel_name
from isam.system.graph import System
from isam.system.show import frequency

TOLD = 4  # bounds in the table
IDLE = 0.1  # a stream that does nothing for more than this part of the time has its stalls told
CAUSES = 2  # of them the largest
LEAST = 0.01  # and none that takes a smaller part of the time


@dataclass(frozen=True)
class Report:
    """``str()`` is the table; ``data`` the same for programs."""

    time: Timeline
    floor: Floor
    system: System
    trips: Mapping[str, int] | None = None
    used: Mapping[str, int] = field(default_factory=dict)  # of each replica so many instances
    undealt: tuple[str, ...] = ()  # why nothing more is dealt to them, where that is known

    @property
    def distance(self) -> float | None:
        """How many times the least time the schedule takes; None where nothing is known."""
        return self.time.seconds / self.floor.seconds if self.floor.seconds and self.time.seconds else None

    @property
    def clocks(self) -> str:
        """At which clocks the seconds hold: those that the description states, whatever the machine here runs at, and
        of which units it states none."""
        hertz = sorted({self.system.units[u].clock for u in self.time.units})
        unstated = [u for u in self.time.units if self.system.clock_assumed(u)]
        parts = [f"at {' to '.join(map(frequency, dict.fromkeys((hertz[0], hertz[-1]))))}"] if hertz else []
        parts += ["as described"] if len(unstated) < len(self.time.units) or not hertz else []
        return " ".join(parts) + (f", assumed of {', '.join(unstated)}" if unstated else "")

    @property
    def data(self) -> dict[str, Any]:
        t = self.time
        units = {u: {"clock": self.system.units[u].clock, "calls": w.calls, "busy": w.busy * TICK, "share": t.share(w),
                     "instances": w.copies, "stalls": self._stalls(u, w)} for u, w in t.units.items()}  # fmt: skip
        replicas = {n: {"instances": r.count, "used": self.used[n], "undealt": list(self.undealt)}
                    for n, r in self.system.replicas.items()}  # fmt: skip
        edges = {" -> ".join(e): self._moved(w) for e, w in t.edges.items()}
        links = {n: self._moved(w) for n, w in t.links.items()}
        meshes = {n: {channel_name(c): self._moved(w) for c, w in some.items()} for n, some in t.meshes.items()}
        clusters = {c: {"steps": w.calls, "share": t.share(w), "idle": self._idle(c), "stalls": self._stalls(c, w)}
                    for c, w in t.clusters.items()}  # fmt: skip
        bounds = [{"kind": b.kind, "of": b.where, "seconds": b.seconds, "why": b.why} for b in self.floor.bounds]
        return {"seconds": t.seconds, "floor": self.floor.seconds, "bound by": self.floor.name,
                "distance": self.distance, "calls": t.calls, "units": units, "edges": edges, "links": links,
                "meshes": meshes, "clusters": clusters, "replicas": replicas, "bounds": bounds}  # fmt: skip

    def _moved(self, w: Work) -> dict[str, Any]:
        return {"calls": w.calls, "busy": w.busy * TICK, "bytes": w.bytes, "share": self.time.share(w)}

    def _idle(self, cluster: str) -> dict[str, float]:
        return {u: self.time.idle(self.system, u) for u in self.system.clusters[cluster].units}

    def _stalls(self, stream: str, w: Work) -> list[dict[str, Any]]:
        """What a stream waits for, the longest first. A member of a cluster waits with that."""
        return [{"kind": c.kind, "of": c.of, "call": c.call, "first": c.first, "seconds": ticks * TICK, "share": share}
                for c, ticks, share in self.time.stalled(stream, w)]  # fmt: skip

    def _waits(self, stream: str, w: Work) -> str:
        if 1 - self.time.share(w) <= IDLE:
            return ""
        largest = ((cause, share) for cause, _, share in self.time.stalled(stream, w)[:CAUSES])
        told = [f"{share:.0%} {cause}" for cause, share in largest if share >= LEAST]
        return f"; waits {', '.join(told)}" if told else ""

    def _on(self, w: Work, group: str | None) -> str:
        if w.copies == 1 or group is None:
            return ""
        used = self.used[group]
        return f" on {used} of {w.copies} instances" if used < w.copies else f" on {w.copies} instances"

    def rows(self) -> Iterator[tuple[str, str, float, str]]:
        """What is there, its name, the share of the time it was busy, what it did."""
        t = self.time
        for u, w in t.units.items():
            idle = f", idle in {t.idle(self.system, u):.1%} of the steps" if self.system.cluster_of(u) else ""
            did = f"{w.calls} calls{self._on(w, self.system.replica_of(u))}{idle}{self._waits(u, w)}"
            yield "unit", u, t.share(w), did
        for c, w in t.clusters.items():
            group = self.system.replica_of(self.system.clusters[c].units[0])
            yield "cluster", c, t.share(w), f"{w.calls} steps{self._on(w, group)}{self._waits(c, w)}"
        for e, w in t.edges.items():
            ends = [g for m in e if (g := self.system.replica_of(m))]
            yield "edge", " -> ".join(e), t.share(w), f"{w.bytes} bytes{self._on(w, next(iter(ends), None))}"
        for n, w in t.links.items():
            yield "link", n, t.share(w), f"{w.bytes} bytes"
        for n, some in t.meshes.items():
            for c, w in sorted(some.items(), key=lambda one: -one[1].bytes)[:1]:
                hops = sum(w.bytes for w in some.values())
                yield "mesh", n, t.share(w), f"{w.bytes} bytes {channel_name(c)}, {hops} on {len(some)} channels"

    def __str__(self) -> str:
        t, far = self.time, self.distance
        away = f", {far:.2f} times the least ({self.floor.name})" if far is not None else ""
        lines = [f"in time, {self.clocks}: {duration(t.seconds)} for {t.calls} calls{away}"]
        if self.trips:
            lines.append("  with " + ", ".join(f"{n} = {v}" for n, v in self.trips.items()))
        rows = list(self.rows())
        width = max((len(name) for _, name, _, _ in rows), default=0)
        lines += [f"  {kind:7}  {name.ljust(width)}  busy {share:6.1%}  {did}" for kind, name, share, did in rows]
        for n, r in self.system.replicas.items():
            if (used := self.used[n]) < r.count:
                why = f": {'; '.join(self.undealt)}" if self.undealt else ""
                idle = r.count - used
                lines.append(f"  {idle} of {r.count} instances of {n} {'is' if idle == 1 else 'are'} idle{why}")
        lines.append(f"  at least, {self.clocks}" + ("" if self.floor.bounds else ": nothing is known"))
        for b in self.floor.bounds[:TOLD]:
            lines.append(f"    {duration(b.seconds):>8}  {b}: {b.why}")
        if self.system.assumed:
            lines.append(f"  costs assumed, not stated: {len(self.system.assumed)}, as {self.system.assumed[0]}")
        return "\n".join(lines)


def report(schedule: Schedule, symbols: Mapping[str, int] | None = None) -> Report:
    """The call part in time. ``symbols``: run-time sizes."""
    used, system = dealt_to(schedule), schedule.system
    instances = {n: max(1, len(used.get(n, ()))) for n in system.replicas}
    time, least = timeline(schedule, symbols, stalls=True), floor(schedule, symbols)
    return Report(time, least, system, symbols, instances, _undealt(schedule))


def _undealt(schedule: Schedule) -> tuple[str, ...]:
    """Why groups of nests run on one instance, as far as the decisions on record say."""
    out: dict[str, None] = {}
    for d in schedule.trace.recorded if isinstance(schedule.trace, Trace) else ():
        if d.point == "tile" and "undealt" in d.context and "@" not in d.label.split("]")[0]:
            out[d.context["undealt"] or "to deal blocks out was predicted to take longer"] = None
    return tuple(out)


def duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
