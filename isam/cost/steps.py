"""What one step of a stream costs: how long it occupies its stream, its edges and links, when its results are there."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from isam.classes import dataclass
from isam.ir.dtype import size_of
from isam.schedule.tree import Issue, Loop, Node, Operand, Schedule, children, distinct
from isam.system.graph import System

TICK = 1e-15  # seconds; times are whole ticks, so that iterations that are alike are equal

Edge = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Timed:
    """A call in ticks: its unit is taken for ``interval``, its results are there after ``latency``; longer where a link
    is not free. Of a move: the edge, how long it ``held`` that, its bytes, the links it shares, each with the ticks for
    which the instance's part of the link is taken and the ticks that the whole link would need, and how long after its
    start they are taken (``lead``)."""

    issue: Issue
    interval: int
    latency: int
    edge: Edge | None = None
    held: int = 0
    bytes: int = 0
    links: tuple[tuple[str, int, int], ...] = ()
    lead: int = 0


@dataclass(eq=False)
class Costs:
    """Works out every call once. ``sharing``: per replica how many instances are dealt to: a link gives each of them
    the same part of its bandwidth, whether the others have something to move or not."""

    schedule: Schedule
    sharing: Mapping[str, int]

    def of(self, issue: Issue) -> Timed:
        """A compute call takes its issue interval; a move its set-up and its bytes over the edge's bandwidth."""
        system = self.schedule.system
        ins, cycle = system.instructions[issue.instruction], 1 / TICK / system.units[issue.unit].clock
        cost = ins.cost
        if not issue.is_move or not issue.operands:
            more = cost.further(dict(issue.sizes))
            interval = cost.interval + more
            return Timed(issue, round(interval * cycle), round(max(interval, (cost.latency or 0.0) + more) * cycle))
        source, target = _ends(self.schedule, issue)
        edge = source.place.memory, target.place.memory
        size = prod(source.tile.shape) * size_of(self.schedule.dtype(source.tile.buffer))
        others = self.sharing.get(system.replica_of(issue.unit) or "", 1)
        links = [(k.name, size / k.bandwidth / TICK) for k in system.links_of(*edge)]
        interval, latency = cost.move(size, links=bool(links), further=cost.further(dict(issue.sizes)))
        taken = tuple((k, round(n * others), round(n)) for k, n in links)
        held, lead = round(cost.over_edge(size) * cycle), round((cost.setup or 0.0) * cycle)
        return Timed(issue, round(interval * cycle), round(latency * cycle), edge, held, size, taken, lead)


def _ends(schedule: Schedule, issue: Issue) -> tuple[Operand, Operand]:
    """Source and target of a move."""
    ins = schedule.system.instructions[issue.instruction]
    ends = {ins.operand(o.name).role: o for o in issue.operands}
    return ends["in"], ends["out"]


def dealt_to(schedule: Schedule) -> dict[str, int]:
    """Per replica the number of instances that some loop of the call part deals iterations to."""
    used: dict[str, set[int]] = {}
    _instances(schedule.call, {}, used)
    return {group: len(instances) for group, instances in used.items()}


def _instances(node: Node, base: Mapping[str, int], used: dict[str, set[int]]) -> None:
    if isinstance(node, Loop) and node.deal is not None:
        d, at = node.deal, base.get(node.deal.group, 0)
        inside = any(isinstance(n, Loop) and n.deal is not None for n in distinct(node.body))
        for t in range(node.trip or 0):
            if inside:
                _instances(node.body, {**base, d.group: at + d.first + d.stride * t}, used)
            used.setdefault(d.group, set()).add(at + d.first + d.stride * t)
    elif not isinstance(node, Issue):
        for c in children(node):
            _instances(c, base, used)


def stream_of(system: System, unit: str) -> str:
    """The stream that a unit's calls belong to: its cluster's, or its own."""
    return system.cluster_of(unit) or unit
