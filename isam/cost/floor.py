"""The time that no schedule of a cover can beat on a machine, and which resource says so (SCH-13).

Sound, not tight: every call is as large as its instruction takes, units that can run an instruction share its calls
without loss, on all instances; every element that must travel takes, for every resource, the path that spares it. No
resource begins before something can have reached it, nor is all over when it ends (:mod:`isam.cost.latency`).
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingABC
from math import prod

from isam.classes import dataclass
from isam.cost.capacity import capacity_traffic
from isam.cost.latency import Latency
from isam.cost.traffic import Flow, Way, crossing, everything, flows, ways
from isam.ir.counting import admitted
from isam.ir.dataflow import determined
from isam.ir.kernel import Kernel, recurrences
from isam.ir.mapping import Cover, Mapping
from isam.schedule.tree import Issue, Schedule, distinct
from isam.system.graph import System


@dataclass(frozen=True, slots=True)
class LowerBound:
    """``seconds`` that ``kind`` (compute, traffic, capacity, latency) of ``where`` takes at least, ``around`` of them
    before it begins and after it ends; ``why``: what was counted."""

    kind: str
    where: str
    seconds: float
    why: str
    around: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind} of {self.where}"


@dataclass(frozen=True, slots=True)
class Floor:
    """All bounds found, the longest first."""

    bounds: tuple[LowerBound, ...]

    @property
    def seconds(self) -> float:
        return self.bounds[0].seconds if self.bounds else 0.0

    @property
    def name(self) -> str:
        """Which of them binds."""
        return str(self.bounds[0]) if self.bounds else "nothing"

    def of(self, kind: str) -> float:
        """The longest of one kind."""
        return max((b.seconds for b in self.bounds if b.kind == kind), default=0.0)


def floor(schedule: Schedule, symbols: MappingABC[str, int] | None = None) -> Floor:
    """The lower bounds of a schedule's call part. ``symbols``: run-time sizes; a trip without a number counts as none.
    """
    open_ = {s.name: 0 for s in schedule.cover.kernel.given}
    sizes = schedule.cover.kernel.sizes({**open_, **(symbols or {})})
    kernel = schedule.cover.kernel.with_sizes(sizes) if open_ else schedule.cover.kernel
    ahead = frozenset(schedule.nests[n.nest].mapping for n in distinct(schedule.bind)
                      if isinstance(n, Issue) and n.nest is not None)  # fmt: skip
    ahead = frozenset(i for m in ahead for i in schedule.cover.mappings[m].statements)
    travelling, latency = flows(schedule, kernel, ahead), Latency(schedule, kernel)
    found = [*_compute(schedule, kernel, ahead, latency), *_traffic(schedule, travelling, latency)]
    found += _capacity(schedule, kernel)
    longest: dict[tuple[str, str, str], LowerBound] = {}  # of those told in the same words
    for b in sorted((b for b in found if b.seconds > 0), key=lambda b: -b.seconds):
        longest.setdefault((b.kind, b.where, b.why), b)
    return Floor(tuple(longest.values()))


def _compute(schedule: Schedule, kernel: Kernel, ahead: frozenset[int], latency: Latency) -> list[LowerBound]:
    """Per set of units, what only they can run, shared among them and their instances; and one call of each mapping,
    from home to home."""
    busy: dict[frozenset[str], float] = {}
    begin, end = dict[frozenset[str], float](), dict[frozenset[str], float]()
    out = []
    cover, system = schedule.cover, schedule.system
    for m, who, calls, seconds in (*_full(cover, kernel, system, ahead), *_cut(cover, kernel, system, ahead)):
        busy[who] = busy.get(who, 0.0) + seconds
        (done, free), before, after = latency.call(m), latency.before(m), latency.after(m)
        begin[who] = min(before, begin.get(who, before))
        end[who] = min(done - free + after, end.get(who, done - free + after))
        if calls and (before or after):
            why = f"one call of {m.instruction.name}, its operands on their way from home and back"
            out.append(LowerBound("latency", ", ".join(sorted(who)), before + done + after, why, before + after))
    for who in busy:
        copies, parts = sum(_copies(schedule.system, u) for u in who), [w for w in busy if w <= who]
        around = min(begin[w] for w in parts) + min(end[w] for w in parts)
        seconds = sum(busy[w] for w in parts) / copies
        if seconds:
            many = "1 unit" if copies == 1 else f"{copies} units"
            why = f"full calls on {many}" + (", operands before and results after" if around else "")
            out.append(LowerBound("compute", ", ".join(sorted(who)), seconds + around, why, around))
    return out


def _full(cover: Cover, kernel: Kernel, system: System,
          ahead: frozenset[int]) -> Iterator[tuple[Mapping, frozenset[str], int, float]]:  # fmt: skip
    """Of each mapping, but for those of the statements ``ahead``: the units that can run it, how many calls there are
    at least, and the seconds that those take one of them. Parts of a box: :func:`_cut`."""
    trips = {r.axis.name: r.axis.extent for r in recurrences(kernel.body)}
    for m in cover.mappings:
        mine = [kernel.statements[i] for i in m.statements]
        if _is_cut(m, kernel) or ahead.issuperset(m.statements):
            continue
        axes = {t: trips[t].const for t in m.loops} | {a.name: a.extent.const for s in mine for a in s.domain.axes}
        name, (calls, cycles) = m.instruction.name, _calls(axes, m)
        yield m, _users(system, name), calls, calls * cycles / system.clock_of(name)


def _is_cut(m: Mapping, kernel: Kernel) -> bool:
    return bool(m.guards) or any(kernel.statements[i].domain.where for i in m.statements)


def _cut(cover: Cover, kernel: Kernel, system: System,
         ahead: frozenset[int]) -> Iterator[tuple[Mapping, frozenset[str], int, float]]:  # fmt: skip
    """As :func:`_full`, of mappings whose statements have conditions: each call does as many of the points that those
    admit as an instruction takes. Of instructions that take less time for less, and of what is not counted, nothing."""
    trips = {r.axis.name: r.axis.extent for r in recurrences(kernel.body)}
    for m in cover.mappings:
        cost, calls = m.instruction.cost, 0
        if not _is_cut(m, kernel) or ahead.issuperset(m.statements) or cost.per or cost.narrow:
            continue
        for i in {*m.statements} - {k for k, _ in m.renames}:
            domain = kernel.statements[i].domain
            box = {t: trips[t].const for t in m.loops} | {a.name: a.extent.const for a in domain.axes}
            points = admitted({n: max(0, e) for n, e in box.items()}, domain.where) or 0
            calls = max(calls, -(-points // max(1, _of_a_call(box, m))))
        name = m.instruction.name
        if calls:
            yield m, _users(system, name), calls, calls * cost.interval / system.clock_of(name)


def _users(system: System, instruction: str) -> frozenset[str]:
    return frozenset(u.name for u in system.units_of(instruction))


def _of_a_call(box: dict[str, int], mapping: Mapping) -> int:
    """The points of a statement that one call takes at most."""
    most = ((box[k], mapping.instruction.span(a).most) for a, k in mapping.axes if k in box)
    return prod(min(n, m) if m else n for n, m in most)


def _calls(axes: dict[str, int], mapping: Mapping) -> tuple[int, float]:
    """How many calls there are at least, and the cycles of one on average."""
    played, calls = {k: i for i, k in mapping.axes}, 1
    mean: dict[str, float] = {}  # extent of an instruction's axis in a call
    for axis, n in axes.items():
        most = mapping.instruction.span(played[axis]).most if axis in played else 1
        cuts = -(-n // most) if most else min(1, n)
        calls *= cuts
        if axis in played:
            mean[played[axis]] = n / max(1, cuts)
    i = mapping.instruction
    return calls, i.average(i.sizes_of(mean)) if i.cost.per or i.cost.narrow else i.cost.interval


def _copies(system: System, node: str) -> int:
    group = system.replica_of(node)
    return system.replicas[group].count if group else 1


def least_seconds(cover: Cover, system: System) -> float:
    """Seconds that no schedule of a cover beats on a machine: its calls on the units that run them, as in
    :func:`floor`; 0 where sizes are known at run time only."""
    kernel, busy = cover.kernel, dict[frozenset[str], float]()
    if kernel.syms:
        return 0.0
    names = determined(kernel)
    ahead = frozenset(i for i, s in enumerate(kernel.statements) if s.dest.buffer in names)
    for _, who, _, seconds in _full(cover, kernel, system, ahead):
        busy[who] = busy.get(who, 0.0) + seconds
    return max((sum(t for w, t in busy.items() if w <= who) / sum(_copies(system, u) for u in who) for who in busy),
               default=0.0)  # fmt: skip


def call_seconds(cover: Cover, system: System) -> Iterator[tuple[Mapping, float]]:
    """Each mapping with the seconds that its calls take at least, shared among the units that can run them. Sizes are
    given."""
    for m, who, _, seconds in (*_full(cover, cover.kernel, system, frozenset()),
                               *_cut(cover, cover.kernel, system, frozenset())):  # fmt: skip
        yield m, seconds / sum(_copies(system, u) for u in who)


def _traffic(schedule: Schedule, travelling: list[Flow], latency: Latency) -> list[LowerBound]:
    """For every unit that moves, every edge, every link, and for all ways out of home and back together: the bytes that
    cannot but go through it. What is read last is used and its result goes home after that; before what is written
    first there is the call that writes it."""
    out = []
    for way in ways(schedule.system):
        sizes = [(f, f.bytes * way.least(f.source, f.targets)) for f in travelling]
        for some in ([True, False], [True], [False]):
            mine = [(f, n) for f, n in sizes if n and f.load in some]
            around = _around(schedule, latency, way, mine) if len(some) == 1 else 0.0
            size = sum(n for _, n in mine)
            why = f"{size} bytes at {way.rate / 1e9:.6g} GB/s"
            found = LowerBound("traffic", way.name, size / way.rate + around, why, around)
            if mine and (len(some) == 2 or around):
                out.append(found)
    best: dict[str, LowerBound] = {}
    for b in out:
        if b.where not in best or best[b.where].seconds < b.seconds:
            best[b.where] = b
    return list(best.values())


def _around(schedule: Schedule, latency: Latency, way: Way, mine: list[tuple[Flow, int]]) -> float:
    """Of what is all brought from home: a move is set up, and the last of it is used by a call. Of what goes there: a
    call comes first."""
    found, leaving = [], all(a == schedule.system.home for a, _ in way.edges)
    for f, _ in mine:
        users = [m for m in schedule.cover.mappings if any(o.buffer == f.buffer for o in m.operands)]
        lead = latency.lead if leaving else 0.0
        found += [lead + latency.use(m) if f.load else latency.making(m) for m in users]
    return min(found, default=0.0)


def _capacity(schedule: Schedule, kernel: Kernel) -> list[LowerBound]:
    """What comes and goes because near memory does not hold everything: everything that does so goes this way."""
    out = []
    for near, least, why in capacity_traffic(schedule, kernel):
        around = crossing(schedule.system, near)
        for way in (*ways(schedule.system), *everything(schedule.system, around, f"in and out of {_names(near)}")):
            if around <= way.edges:
                out.append(LowerBound("capacity", way.name, least / way.rate, why))
    return out


def _names(memories: frozenset[str]) -> str:
    return ", ".join(sorted(memories))
