"""What one step of a stream costs: how long it occupies its stream, its edges and links, when its results are there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from math import prod

from isam.classes import dataclass
from isam.ir.dtype import size_of
from isam.schedule.tree import Issue, Loop, Node, Operand, Schedule, children, distinct
from isam.system.groups import Mesh
from isam.system.mesh import routes

TICK = 1e-15  # seconds; times are whole ticks, so that iterations that are alike are equal

Edge = tuple[str, str]
Crossing = tuple[str, str, bool]  # a mesh, what is attached to it, whether something goes to an instance
Stand = Mapping[str, int]  # per replica on a mesh an instance


@dataclass(frozen=True, slots=True)
class Timed:
    """A call in ticks: its unit is taken for ``interval``, its results are there after ``latency``; longer where a link
    is not free. Of a move: the edge, how long it ``held`` that, its bytes, the links it shares, each with the ticks for
    which the instance's part of the link is taken and the ticks that the whole link would need, and how long after its
    start they are taken (``lead``); what it ``crosses`` of meshes, each with the ticks for which the instance's part of
    its route is taken, and the ticks of ``hops`` on the way."""

    issue: Issue
    interval: int
    latency: int
    edge: Edge | None = None
    held: int = 0
    bytes: int = 0
    links: tuple[tuple[str, int, int], ...] = ()
    lead: int = 0
    crosses: tuple[tuple[Crossing, int], ...] = ()
    hops: int = 0


@dataclass(eq=False)
class StepCosts:
    """Works out calls. ``dealt``: per replica the instances that are dealt to: a link gives each of them the same part
    of its bandwidth, a channel of a mesh each that uses it, whether the others have something to move or not."""

    schedule: Schedule
    dealt: Mapping[str, frozenset[int]]
    shared: dict[Crossing, dict[int, int]] = field(default_factory=dict)  # how many use an instance's busiest channel

    def of(self, issue: Issue, stand: Stand) -> Timed:
        """A compute call takes its issue interval; a move its set-up and its bytes over the edge's bandwidth, and over
        a mesh the way to the instance that it is made on."""
        system = self.schedule.system
        ins, cycle = system.instructions[issue.instruction], 1 / TICK / system.units[issue.unit].clock
        cost = ins.cost
        if not issue.is_move or not issue.operands:
            sizes = dict(issue.sizes)
            interval, latency = cost.cycles(sizes), (cost.latency or 0.0) + cost.further(sizes)
            return Timed(issue, round(interval * cycle), round(max(interval, latency) * cycle))
        source, target = _ends(self.schedule, issue)
        edge = source.place.memory, target.place.memory
        size = prod(source.tile.shape) * size_of(self.schedule.dtype(source.tile.buffer))
        group = system.replica_of(issue.unit)
        others = len(self.dealt.get(group or "", (0,)))
        links = [(k.name, size / k.bandwidth / TICK) for k in system.links_of(*edge)]
        crossed = [((m.name, at, inward), self.way(m, at, inward, stand, group == m.replica))
                   for m, at, inward in system.crossings(*edge)]  # fmt: skip
        interval, latency = cost.move(size, links=bool(links or crossed), further=cost.further(dict(issue.sizes)))
        interval += (cost.prefetch or 0.0) * issue.prefetch.lines if issue.prefetch else 0.0
        taken = tuple((k, round(n * others), round(n)) for k, n in links)
        held, lead = round(cost.over_edge(size) * cycle), round((cost.setup or 0.0) * cycle)
        hops = round(sum(delay for _, (_, delay) in crossed) / TICK)
        crosses = tuple((which, round(size / rate / TICK)) for which, (rate, _) in crossed)
        late = round(latency * cycle) + hops
        return Timed(issue, round(interval * cycle), late, edge, held, size, taken, lead, crosses, hops)

    def way(self, mesh: Mesh, memory: str, inward: bool, stand: Stand, own: bool = True) -> tuple[float, float]:
        """The bytes per second of an instance's part of its route, and how long something is on its way. ``own``: its
        own units issue moves, and others' at the same time; one that all share issues one after the other."""
        key, i = (mesh.name, memory, inward), stand[mesh.replica]
        if key not in self.shared:
            self.shared[key] = routes(mesh).sharing(memory, inward, self.dealt.get(mesh.replica, (0,)))
        users = self.shared[key].get(i, 1) if own else 1
        return mesh.bandwidth / users, mesh.hop * len(routes(mesh).of(memory, inward)[i])

    def models(self, replica: str) -> list[int]:
        """Of every instance the first one to which everything takes the same way, as far as time is concerned."""
        system, first = self.schedule.system, dict[object, int]()
        ends = [c for e in system.moves_by_edge for c in system.crossings(*e) if c[0].replica == replica]
        return [first.setdefault(tuple(self.way(*e, {replica: i}) for e in ends), i)
                for i in range(system.replicas[replica].count)]  # fmt: skip


def _ends(schedule: Schedule, issue: Issue) -> tuple[Operand, Operand]:
    """Source and target of a move."""
    ins = schedule.system.instructions[issue.instruction]
    ends = {ins.operand(o.name).role: o for o in issue.operands}
    return ends["in"], ends["out"]


def dealt_to(schedule: Schedule) -> dict[str, frozenset[int]]:
    """Per replica the instances that some loop of the call part deals iterations to."""
    used: dict[str, set[int]] = {}
    _instances(schedule.call, {}, used)
    return {group: frozenset(instances) for group, instances in used.items()}


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
