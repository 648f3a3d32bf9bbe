"""From a cover to a schedule: nests, groups, plans, dry run (SCH-1 to SCH-11)."""

from __future__ import annotations

from dataclasses import replace

from isam.approach.choice import Approach, Choice, Trace
from isam.ir.affine import Affine
from isam.ir.kernel import Item, Kernel, Recurrence, recurrences
from isam.ir.mapping import Cover
from isam.schedule.tree import Bound, Loop, Node, Schedule, Seq
from isam.schedule.tree import Nest as NestFact
from isam.scheduler.bursts import with_bursts
from isam.scheduler.call_size import fitting
from isam.scheduler.configure import with_registers
from isam.scheduler.dry import DryRun
from isam.scheduler.homes import check_room
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.scheduler.nests import Nest, nests_of
from isam.scheduler.pieces import pieces
from isam.scheduler.plan import Group, join, private_axes
from isam.scheduler.plans import plans
from isam.scheduler.state import FAR
from isam.scheduler.tokens import with_waits
from isam.scheduler.walk import Walk
from isam.system.graph import System


def schedule(cover: Cover, system: System, trace: Trace) -> Schedule | Infeasible:
    """Decides devices, placements, routes, evictions and loops for a cover, ahead of time.

    Returns an :class:`Infeasible` (falsy) when the machine cannot hold it.
    """
    try:
        return with_waits(with_registers(with_bursts(_Builder(cover, system, trace).build())))
    except NoSchedule as no:
        return replace(no.reason, levers=_levers(cover, system, trace.approach, no.reason))


def _levers(cover: Cover, system: System, approach: Approach, reason: Infeasible) -> tuple[str, ...]:
    """What would help, tried before it is said: the full memory two, four or more times as large."""
    m = system.memories.get(reason.memory)
    if m is None:
        return ()
    for factor in (2, 4, 8, 16, 64):
        more = None if m.cells is None else m.cells * factor
        larger = replace(m, cells=more, capacity=m.capacity * factor)
        machine = replace(system, memories={**system.memories, m.name: larger})
        try:
            _Builder(cover, machine, Trace(approach)).build()
        except NoSchedule:
            continue
        return (f"{more} cells in '{m.name}'" if more is not None else f"{larger.capacity} bytes of '{m.name}'",)
    return ()


class _Builder:
    def __init__(self, cover: Cover, system: System, trace: Trace):
        self.cover, self.system, self.trace = cover, system, trace
        self.kernel: Kernel = cover.kernel
        self.run = DryRun(self.kernel, system, trace)
        self.nests = tuple(fitting(n, self.run.data) for n in nests_of(cover, system))
        self.exact = "reassociate" not in self.kernel.permits
        self.bind: list[Node] = []
        self.bindable = frozenset(b.name for b in self.kernel.buffers if b.role == "const")

    def build(self) -> Schedule:
        check_room(self.kernel, self.system)
        with self.run.scope.recording() as call:
            self._items(self.kernel.body, [0])
        check_room(self.kernel, self.system, self.run.homes.slots.values())
        facts = tuple(NestFact(n.number, (*self._around(n), *n.extents.items())) for n in self.nests)
        homes = {b: p for b, p in self.run.homes.places.items() if b not in self.run.homes.folded}
        return Schedule(
            self.kernel,
            self.system,
            self.cover,
            facts,
            Seq(tuple(self.bind)),
            Seq(tuple(call)),
            tuple(self.run.homes.slots.values()),
            homes,
            trace=self.trace,
        )

    def _around(self, nest: Nest) -> tuple[tuple[str, Affine], ...]:
        """The recurrent loops around a nest."""
        return tuple(
            (r.axis.name, r.axis.extent) for r in recurrences(self.kernel.body) if r.axis.name in nest.mapping.loops
        )

    def _items(self, body: tuple[Item, ...], counter: list[int]) -> None:
        """Statements in order; runs of them between recurrent loops are scheduled together."""
        pending: list[Nest] = []
        for it in body:
            if isinstance(it, Recurrence):
                self._statements(pending)
                pending = []
                self._recurrence(it, counter)
                continue
            pending += [n for n in self.nests if n.mapping.statements[0] == counter[0]]
            counter[0] += 1
        self._statements(pending)

    def _recurrence(self, it: Recurrence, counter: list[int]) -> None:
        """A time loop: what the body leaves at home is the carried state."""
        scope = self.run.scope
        hi = it.axis.extent
        if hi.is_constant and hi.const <= 0:
            counter[0] += _count(it.body)
            return
        last = (hi.const if hi.is_constant else FAR) - 1
        with scope.recording() as body, scope.variable(it.axis.name, Affine(), 1, (0, last)):
            self._items(it.body, counter)
        scope.out.append(Loop(it.axis.name, (Bound(Affine()),), (Bound(hi),), 1, Seq(tuple(body)), axis=it.axis.name))

    def _statements(self, nests: list[Nest]) -> None:
        nests = [p for n in sorted(nests, key=lambda n: n.number) for p in ([n] if self.exact else pieces(n))]
        for group in self._groups(nests):
            options, costs = plans(group, self.system, self.bindable)
            context = {
                "nests": [n.number for n in group.nests],
                "group": [n.instruction.name for n in group.nests],
                "_group": group,
                "_system": self.system,
            }
            plan = self.trace.choose(Choice("tile", options, context, costs))
            Walk(self.run, plan, self.bind).start()

    def _groups(self, nests: list[Nest]) -> list[Group]:
        """Consecutive nests that may share loops, as far as the Approach wants them fused (SCH-11)."""
        groups: list[list[Nest]] = []
        for n in nests:
            joined = join(tuple(groups[-1]), n) if groups and _plain(groups[-1][-1]) and _plain(n) else None
            if joined is not None:
                context = {
                    "nests": [m.number for m in (*groups[-1], n)],
                    "nest": n.instruction.name,
                    "into": [m.instruction.name for m in groups[-1]],
                    "_group": groups[-1],
                    "_nest": joined,
                    "_kernel": self.kernel,
                    "_system": self.system,
                }
                if self.trace.choose(Choice("fuse", (False, True), context)):
                    groups[-1].append(joined)
                    continue
            groups.append([n])
        out = []
        for g in groups:
            mine = tuple(g)
            out.append(Group(mine, self.exact, private_axes(mine, self._temporaries(mine))))
        return out

    def _temporaries(self, group: tuple[Nest, ...]) -> frozenset[str]:
        """Temporaries that no nest outside the group touches and that are written before they are read."""
        names = {u.buffer for n in group for u in n.uses}
        inside = {n.number for n in group}
        out = set()
        for name in names:
            if name.startswith("#") or self.kernel.buffer(name).role != "temp":
                continue
            if all(n.number in inside for n in self.nests if any(u.buffer == name for u in n.uses)):
                first = next(n for n in group if any(u.buffer == name for u in n.uses))
                if not any(u.buffer == name and u.reads for u in first.uses):
                    out.add(name)
        return frozenset(out)


def _plain(nest: Nest) -> bool:
    """Whether the nest runs over a whole box in loops of bounded blocks (an instruction of unlimited size takes its
    operands whole; a piece of a domain is on its own)."""
    return all(m.limit is not None for m in nest.mapped.values()) and not nest.where and not nest.origin


def _count(body: tuple[Item, ...]) -> int:
    return sum(_count(i.body) if isinstance(i, Recurrence) else 1 for i in body)
