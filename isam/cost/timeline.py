"""When a schedule's calls happen: streams, waits, issue intervals, latencies, bandwidth of edges and links (SCH-13).

Calls are taken in the tree's order: every stream starts its own in that order, so a call's time follows from what came
before it. Nothing is executed. A kept loop is followed until an iteration begins in the state in which the one before
began, up to a shift in time; the iterations left are added by multiplication. (Instances to which a mesh gives unequal
ways, and that never wait for each other, drift apart: such a loop around them is followed to its end.)

Instances of a replica run side by side, each with streams and edges of its own; of iterations dealt to instances that
are in the same state one is followed. A link that edges share gives each instance that is dealt to the same part of its
bandwidth; within an instance moves share that part in the order of time, each going on whenever those that stand before
it in the tree leave the link alone. So does every channel of a mesh with the instances whose routes it is on: each
moves as fast as its part of the busiest channel of its route lets it, and what it moves is as many hops later. A
cluster is one stream of steps: calls that are joined start together and the step ends with the last of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from isam.classes import dataclass
from isam.cost.clock import Clock
from isam.cost.stalls import Cause, Stalled
from isam.cost.steps import TICK, Edge, dealt_to
from isam.schedule.tree import Issue, Schedule
from isam.system.mesh import Channel, routes

__all__ = ["TICK", "Cause", "Edge", "Event", "Timeline", "Work", "timeline"]


@dataclass(frozen=True, slots=True)
class Event:
    """A call on a stream, in ticks: it occupies its unit from ``start`` to ``free``; its results are at ``finish``."""

    issue: Issue
    start: int
    free: int
    finish: int
    edge: Edge | None = None  # of a move, with its bytes
    bytes: int = 0
    instance: int = 0
    scope: Mapping[str, int] = field(default_factory=dict)  # the loop variables around the call


@dataclass(slots=True)
class Work:
    """What one unit, edge, link or cluster did: ``calls`` (steps of a cluster, commands of a unit), ticks ``busy``,
    ``bytes`` moved. ``copies``: of how many instances together."""

    calls: int = 0
    busy: int = 0
    bytes: int = 0
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Timeline:
    """``ticks`` from the first start to the last finish; what each unit, edge, link, cluster did, and each channel of a
    mesh that carried something. ``followed``: calls looked at one by one, the others were remembered from an iteration
    like theirs or added by multiplication. ``stalls``: where they were asked for, of each stream that has calls, a unit
    or a cluster, the ticks in which it did nothing, by cause: with those that it was busy, all there are."""

    ticks: int
    units: dict[str, Work]
    edges: dict[Edge, Work]
    calls: int
    followed: int
    links: dict[str, Work] = field(default_factory=dict)
    clusters: dict[str, Work] = field(default_factory=dict)
    meshes: dict[str, dict[Channel, Work]] = field(default_factory=dict)
    stalls: dict[str, dict[Cause, int]] = field(default_factory=dict)

    def utilisation(self, unit: str) -> float:
        """The share of the time in which the unit was occupied, over all its instances."""
        return self.share(self.units[unit])

    def share(self, work: Work) -> float:
        """The share of the time that something was busy."""
        return work.busy / (self.ticks * work.copies) if self.ticks else 0.0

    def idle(self, system: object, unit: str) -> float:
        """The share of its cluster's steps in which a unit had no call."""
        cluster = system.cluster_of(unit)  # pyright: ignore[reportAttributeAccessIssue]
        steps = self.clusters[cluster].calls if cluster in self.clusters else 0
        return 1 - self.units[unit].calls / steps if steps else 0.0

    def stalled(self, stream: str, work: Work) -> list[tuple[Cause, int, float]]:
        """What a stream waited for, the longest first: ticks, and the share of the time, over all its instances."""
        found = sorted(self.stalls.get(stream, {}).items(), key=lambda one: (-one[1], one[0]))
        return [(cause, ticks, ticks / (self.ticks * work.copies)) for cause, ticks in found]

    @property
    def seconds(self) -> float:
        return self.ticks * TICK


def timeline(
    schedule: Schedule,
    symbols: Mapping[str, int] | None = None,
    watch: Callable[[Event], None] | None = None,
    *,
    whole: bool = False,
    stalls: bool = False,
) -> Timeline:
    """The call part of a schedule in time. ``symbols``: run-time sizes. ``watch`` sees every call that is looked at one
    by one; ``whole``: that is every call. ``stalls``: also what streams wait for, which takes longer."""
    told = None if watch is None else lambda *e: watch(Event(*e))
    clock = (Stalled if stalls else Clock)(schedule, dealt_to(schedule), told, whole)
    clock.run(schedule.cover.kernel.sizes(symbols or {}))
    return _told(schedule, clock)


def _told(schedule: Schedule, clock: Clock) -> Timeline:
    system = schedule.system

    def copies(group: str | None) -> int:
        return system.replicas[group].count if group else 1

    units = {u: Work(copies=copies(system.replica_of(u))) for u in system.units}
    clusters = {c: Work(copies=copies(system.replica_of(k.units[0]))) for c, k in system.clusters.items()}
    links, edges = {k: Work() for k in system.links}, {}
    calls = 0
    for step, times in ((row[5], b.times) for b in clock.code.blocks for row in b.rows):
        for t in step.calls if times else ():
            calls += times
            if not step.burst:
                _add(units[t.issue.unit], times, t.interval)
            if t.edge is not None:
                group = system.replica_of(t.issue.unit)
                _add(edges.setdefault(t.edge, Work(copies=copies(group))), times, t.held, t.bytes)
                for name, _, full in t.links:
                    _add(links[name], times, full, t.bytes)
        cluster = system.stream_of(step.calls[0].issue.unit)
        if step.burst and times:
            _add(units[step.calls[0].issue.unit], times, step.interval)
        if cluster in clusters:
            _add(clusters[cluster], times, step.interval)
    stalls = clock.stalls() if isinstance(clock, Stalled) else {}
    return Timeline(clock.end, units, edges, calls, clock.followed, links, clusters, _channels(schedule, clock), stalls)


def _channels(schedule: Schedule, clock: Clock) -> dict[str, dict[Channel, Work]]:
    """What went through each channel of each mesh."""
    meshes = schedule.system.meshes
    out: dict[str, dict[Channel, Work]] = {name: {} for name in meshes}
    for (name, memory, inward), (_, carried) in clock.carried.items():
        ways = routes(meshes[name]).of(memory, inward)
        for channels, size in zip(ways, carried, strict=True):
            for c in channels if size else ():
                _add(out[name].setdefault(c, Work()), 1, round(size / meshes[name].bandwidth / TICK), size)
    return out


def _add(work: Work, times: int, busy: int, size: int = 0) -> None:
    work.calls += times
    work.busy += busy * times
    work.bytes += size * times
