"""From a cover to a schedule: nests, groups, plans, dry run (SCH-1 to SCH-11)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import prod

from isam.approach.choice import Approach, Choice, Trace
from isam.ir.affine import Affine
from isam.ir.kernel import USUAL_TRIP, Kernel, recurrences
from isam.ir.mapping import Cover
from isam.schedule.tree import Bound, Issue, Loop, Node, Schedule, Seq, children, distinct
from isam.schedule.tree import Nest as NestFact
from isam.scheduler.agree import agreed
from isam.scheduler.aligned import aligned
from isam.scheduler.bursts import with_bursts
from isam.scheduler.call_size import fitting
from isam.scheduler.configure import with_registers
from isam.scheduler.dealt_alike import Alike, wanted_alike, ways_alike
from isam.scheduler.dry import DryRun
from isam.scheduler.handed_on import handed_on
from isam.scheduler.homes import check_room
from isam.scheduler.in_rows import Blocked, in_blocks
from isam.scheduler.in_rows import wanted as wanted_in_blocks
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.scheduler.interchange import OutsideRows, rows_outside
from isam.scheduler.levers import levers
from isam.scheduler.near_homes import NearHome, less_near, near_homes, wanted_near
from isam.scheduler.nests import Nest, nests_of
from isam.scheduler.parts import RecurrentLoop, groups_in, parts_of
from isam.scheduler.plan import Group, Plan
from isam.scheduler.plans.boxes import NOTHING
from isam.scheduler.plans.dealing import undealt
from isam.scheduler.plans.hierarchy import gathering_room
from isam.scheduler.plans.known import plans_of
from isam.scheduler.plans.resident import Resident
from isam.scheduler.plans.staged import between
from isam.scheduler.prefetch import with_prefetches
from isam.scheduler.prepared import made_whole, prepared
from isam.scheduler.recur import calls
from isam.scheduler.routes import Routes
from isam.scheduler.serpentine import with_serpentines
from isam.scheduler.state import Key
from isam.scheduler.stays import MOST, StayRooms, Stays, divisions, smaller, stay_bytes
from isam.scheduler.waits import with_waits
from isam.scheduler.walk import Walk
from isam.system.graph import System

ROWS = "r"  # behind an axis: the variable of the loop over rows around a recurrent loop
TRIED = 12  # schedules begun, until one fits
TooLarge = dict[int, tuple[dict[str, int], ...]]  # by nest, the sizes of calls for which there was no room


def schedule(cover: Cover, system: System, trace: Trace) -> Schedule | Infeasible:
    """Decides devices, placements, routes, evictions and loops for a cover, ahead of time.

    Returns an :class:`Infeasible` (falsy) when the machine cannot hold it.
    """
    try:
        builder, made = _built(cover, system, trace)
        made = with_prefetches(_handing_on(builder, made), trace)
        return with_serpentines(with_waits(with_registers(with_bursts(made))), trace)
    except NoSchedule as no:
        return replace(no.reason, levers=levers(system, no.reason, lambda s: _possible(cover, s, trace.approach)))


def _built(cover: Cover, system: System, trace: Trace) -> tuple[_Builder, Schedule]:
    """With what the Approach wants to stay in near memory, and what meets there, or without where the rest is too small
    to work in. What the dry run has no room for is tried again with smaller calls of that nest; when nothing helps, the
    first reason says what is lacking."""
    keep = True
    refused: TooLarge = {}
    first: NoSchedule | None = None
    for _ in range(TRIED):
        builder = _Builder(cover, system, trace, keep, refused)
        if not builder.smaller:
            break
        try:
            return builder, builder.build()
        except NoSchedule as no:
            first = first or no
            if builder.staying.rooms or builder.gathering or builder.blocked:
                keep = False
                continue
            full = next((n for n in builder.nests if n.number == no.nest and no.reason.smaller), None)
            if full is None or not full.mapped:
                break
            refused[full.number] = (*refused.get(full.number, ()), {a: full.unit(a) for a in full.mapped})
    raise first or AssertionError("the first schedule takes calls of any size")


def _handing_on(builder: _Builder, plain: Schedule) -> Schedule:
    """The schedule made, or one with temporaries at home near, where that takes fewer calls and the Approach wants it,
    or where it wants groups dealt alike for that."""
    kernel, groups, trace = builder.kernel, [g for g in builder.groups if not builder.at_bind(g.main)], builder.trace
    staying, usual = builder.staying, max(builder.kernel.usual(USUAL_TRIP).values(), default=1)
    machine = smaller(builder.machine, staying.memory, staying.total)
    made, near = plain, near_homes(kernel, groups, machine, builder.prepared)
    if near:
        try:
            with trace.comparing():
                made = builder.at_home_near(near)
        except NoSchedule:
            near = {}
        taken = calls(plain.call, usual), calls(made.call, usual)
        if not near or not wanted_near(trace, groups, near, taken):
            made, near = plain, {}
    ways = ways_alike(kernel, groups, less_near(machine, kernel, near), builder.routes, {*builder.prepared, *near})
    ways = [w for w in ways if not builder.by_rows & {groups[at].number for at in w.dealings}]
    alike = wanted_alike(trace, groups, ways)
    try:
        with trace.comparing():
            return builder.at_home_near(near, alike) if alike else made
    except NoSchedule:
        return made


def _possible(cover: Cover, system: System, approach: Approach) -> bool:
    try:
        _built(cover, system, Trace(approach))
    except NoSchedule:
        return False
    return True


class _Builder:
    def __init__(self, cover: Cover, system: System, trace: Trace, keep: bool, refused: TooLarge):
        self.staying, self.keep = StayRooms(), keep  # what may stay in near memory, or meet there
        self.gathering: dict[str, int] = {}  # bytes of memories for results that meet there
        self.blocked: Blocked | None = None  # groups in blocks all of whose data lie in a memory
        self.cover, self.system, self.trace = cover, system, trace
        all_nests = nests_of(cover, system)
        self.machine = aligned(system, (n.instruction.name for n in all_nests))
        self.kernel: Kernel = cover.kernel
        self.routes = Routes(self.machine, trace)
        self.run = self._begun(self.machine)
        found = (fitting(n, self.run.data, refused.get(n.number, ())) for n in all_nests)
        self.nests: tuple[Nest, ...] = agreed([n for n in found if n is not None], self.kernel, self.run.data)
        self.smaller = len(self.nests) == len(all_nests)  # than all calls that were refused
        self.bind: list[Node] = []
        self.prepared = prepared(self.kernel, self.nests, trace)
        constants = {b.name for b in self.kernel.buffers if b.role == "const"}
        self.bindable = made_whole(self.kernel, self.nests, self.prepared) | constants

    def build(self) -> Schedule:
        for m in self.cover.mappings:
            if not m.instruction.whole:
                who = f"the instruction '{m.instruction.name}'"
                raise NoSchedule(Infeasible(who, "calls that leave out points of a box, as its 'where' says",
                                            "schedules are made of whole boxes"))  # fmt: skip
        check_room(self.kernel, self.system)
        self.parts = parts_of(self.kernel, self.nests, self.system, self.trace, self.at_bind)
        groups = list(groups_in(self.parts))
        self.groups = [g for g, _ in groups]
        self.gathering = gathering_room(self.groups, self.machine, self.routes) if self.keep else {}
        for memory, room in self.gathering.items():
            self.machine = smaller(self.machine, memory, room)
        blocked = self._blocked()
        if blocked is not None:
            self.blocked, self.parts = blocked, list(blocked.parts)
            groups = list(groups_in(self.parts))
            self.groups = [g for g, _ in groups]
            self.machine = smaller(self.machine, blocked.memory, blocked.room)
        if self.gathering or blocked:
            self.run = DryRun(self.kernel, self.machine, self.trace, self.routes)
        self.staying = self._staying(groups) if self.keep else StayRooms()
        if self.staying.rooms:
            self.run = self._begun(smaller(self.machine, self.staying.memory, self.staying.total))
        self.planned: dict[object, tuple[Plan, Stays | None]] = {}  # by group, and where the rows begin of which it is
        self.dealt: dict[int, tuple[Alike, int]] = {}  # groups, by number, that are dealt as others are
        self.by_rows = set[int]()  # groups, by number, of which some rows come after others
        self.begin: dict[str, Affine] = {}  # of axes of which a part is scheduled, where it begins
        return self._made()

    def _blocked(self) -> Blocked | None:
        """Groups in blocks all of whose data lie in a memory, where the Approach wants that."""
        if self.gathering or not self.keep:
            return None
        found = in_blocks(self.parts, self.kernel, self.machine, self.routes, lambda g: self.at_bind(g.main))
        return found if wanted_in_blocks(self.trace, found) else None

    def _begun(self, machine: System) -> DryRun:
        return DryRun(self.kernel, machine, self.trace, self.routes)

    def at_home_near(self, near: Mapping[str, NearHome], alike: Sequence[Alike] = ()) -> Schedule:
        """The same groups once more, with temporaries at home near and plans for what room is left."""
        near = {**near, **{b: home for way in alike for b, home in way.homes.items()}}
        machine = less_near(smaller(self.machine, self.staying.memory, self.staying.total), self.kernel, near)
        self.run, self.bind, self.planned = self._begun(machine), [], {}
        self.run.homes.near.update(near)
        groups = [g for g in self.groups if not self.at_bind(g.main)]
        self.dealt = {groups[at].number: (way, at) for way in alike for at in way.dealings}
        return self._made()

    def _made(self) -> Schedule:
        self.run.homes.prepared = self.prepared
        with self.run.scope.recording() as call:
            self._scheduled(self.parts, ())
        touched = {o.place.base for n in distinct(Seq((*self.bind, *call))) if isinstance(n, Issue) for o in n.operands}
        slots = tuple(s for name, s in self.run.homes.slots.items() if name in touched)  # others were only tried
        check_room(self.kernel, self.system, slots)
        facts = tuple(NestFact(n.number, (*self._around(n), *n.extents.items())) for n in self.nests)
        idle = self.run.homes.slots.keys() - touched
        homes = {b: p for b, p in self.run.homes.places.items() if b not in self.run.homes.folded | idle}
        return Schedule(
            self.kernel,
            self.system,
            self.cover,
            facts,
            Seq(tuple(self.bind)),
            Seq(tuple(call)),
            slots,
            homes,
            trace=self.trace,
        )

    def _around(self, nest: Nest) -> tuple[tuple[str, Affine], ...]:
        """The recurrent loops around a nest."""
        return tuple(
            (r.axis.name, r.axis.extent) for r in recurrences(self.kernel.body) if r.axis.name in nest.mapping.loops
        )

    def at_bind(self, nest: Nest) -> bool:
        """Whether a nest runs when constants are bound."""
        return any(u.writes and u.buffer in self.prepared for u in nest.uses)

    def _scheduled(self, parts: Sequence[Group | RecurrentLoop], around: tuple[RecurrentLoop, ...]) -> None:
        """Groups in a row hand on in near memory what they can; a loop, and what runs when constants are bound, begins
        with nothing there."""
        for in_row, found in groupby(parts, lambda p: isinstance(p, Group) and not self.at_bind(p.main)):
            for part in () if in_row else found:
                if isinstance(part, RecurrentLoop):
                    self._recurrence(part, around)
                else:
                    self._group(part, around)
            if in_row:
                self._row([p for p in found if isinstance(p, Group)], around)

    def _row(self, groups: Sequence[Group], around: tuple[RecurrentLoop, ...]) -> None:
        if len(groups) == 1:
            self._group(groups[0], around)
            return

        def part(n: int, held: Collection[Key]) -> tuple[Key, ...]:
            return self._group(groups[n], around, held)

        self.run.scope.out.extend(children(handed_on(groups, self.run, part)))

    def _recurrence(self, it: RecurrentLoop, around: tuple[RecurrentLoop, ...]) -> None:
        """A time loop: what the body leaves at home, and what stays, is the carried state."""
        rows = rows_outside(it, self.system, self.trace)
        if rows is None:
            self._steps(it, around)
        else:
            self._by_rows(it, around, rows)

    def _by_rows(self, it: RecurrentLoop, around: tuple[RecurrentLoop, ...], rows: OutsideRows) -> None:
        """The loop for some rows after the other: blocks of them, and what is left."""
        (group,), (axis, block), scope = it.parts, rows, self.run.scope
        assert isinstance(group, Group)
        self.by_rows.add(group.number)
        length = group.length(axis)
        rest = length % block
        whole, var = length - rest, f"{axis}{ROWS}"
        if whole > block:
            begin, end = (Affine((), n) for n in (0, whole))
            with scope.recording() as body, scope.variable(var, begin, block, (0, whole - block)):
                self._some(it, around, axis, Affine.of(var), block)
            scope.out.append(Loop(var, (Bound(begin),), (Bound(end),), block, Seq(tuple(body)), axis=axis))
        elif whole:
            self._some(it, around, axis, Affine(), block)
        if rest:
            self._some(it, around, axis, Affine((), whole), rest)

    def _some(
        self, it: RecurrentLoop, around: tuple[RecurrentLoop, ...], axis: str, begin: Affine, length: int
    ) -> None:
        """The loop for ``length`` rows from ``begin`` on."""
        (group,) = it.parts
        assert isinstance(group, Group)
        nests = tuple(replace(n, extents={**n.extents, axis: Affine((), length)}) for n in group.nests)
        some = replace(group, nests=nests)
        self.begin = {axis: begin}
        try:
            self._steps(replace(it, parts=(some,)), around)
        finally:
            self.begin = {}

    def _steps(self, it: RecurrentLoop, around: tuple[RecurrentLoop, ...]) -> None:
        """A loop whose steps hand on in near memory what they can."""
        inner, groups = (*around, it), [p for p in it.parts if isinstance(p, Group)]
        if len(groups) < len(it.parts):
            groups = []

        def part(n: int, held: Collection[Key]) -> tuple[Key, ...]:
            if groups:
                return self._group(groups[n], inner, held)
            self._scheduled(it.parts, inner)
            return ()

        self.run.scope.out.append(handed_on(groups, self.run, part, it))

    def _group(self, group: Group, around: tuple[RecurrentLoop, ...], held: Collection[Key] = ()) -> tuple[Key, ...]:
        """Runs a group; what was near at its end, of which ``held`` stays there."""
        plan, stays = self._planned(group, around)
        walk = Walk(self.run, plan, self.bind, stays)
        if not self.at_bind(group.main):
            return walk.start(self.begin, held)
        with self.run.scope.recording() as nodes:
            walk.start(self.begin)
        self.bind.extend(nodes)
        return ()

    def _planned(self, group: Group, around: tuple[RecurrentLoop, ...]) -> tuple[Plan, Stays | None]:
        """The plan of a group, decided once, and what of it stays near over the loops around it."""
        key = (group.number, *self.begin.items())
        known = self.planned.get(key)
        if known is not None:
            return known
        room = self.staying.of(group.number)
        stays = Stays(around, room, self.staying.memory) if room and group.domain is None else None
        lasting = stays.lasting(group) if stays is not None else NOTHING
        alike, at = self.dealt.get(group.number, (None, 0))
        resident = self._resident(group)
        if resident:
            options, costs = [p for p, _ in resident], [c for _, c in resident]
        else:
            options, costs = plans_of(self.cover, group, self.run.system, self.routes, self.bindable, lasting,
                                      alike and alike.dealings[at], self.run.homes.near, self.gathering,
                                      [a.loop.axis.name for a in around])  # fmt: skip
        if alike is not None:
            options, costs = alike.plans(at, options, costs)
            if not options:
                raise NoSchedule(Infeasible("groups dealt alike", f"a plan that is {alike.label()}", "there is none"))
        context = {
            "nests": [n.number for n in group.nests],
            "group": [n.instruction.name for n in group.nests],
            "_group": group,
            "undealt": "" if any(p.deals for p in options) else undealt(group, group.main, self.system),
            "_system": self.system,
        }
        plan = self.trace.choose(Choice("tile", options, context, costs))
        self.planned[key] = plan, stays
        return plan, stays

    def _resident(self, group: Group) -> list[tuple[Plan, float]]:
        """Plans of a group with blocks all of whose data lie in a memory."""
        if self.blocked is None or group.number not in self.blocked.numbers:
            return []
        memory, near = self.system.memories[self.blocked.memory], frozenset(self.run.homes.near)
        return Resident(group, self.run.system, self.routes, memory, near).plans(self.blocked.room)

    def _staying(self, groups: list[tuple[Group, tuple[RecurrentLoop, ...]]]) -> StayRooms:
        """How much of a near memory is for what stays: asked where something can."""
        able: dict[str, list[int]] = {}
        for g, around in groups:
            for memory in between(g.main, self.system, self.routes) if around and g.domain is None else ():
                if not memory.row and Stays(around).lasting(g).buffers:
                    able.setdefault(memory.name, []).append(g.number)
        if not able:
            return StayRooms()
        memory = max(able, key=lambda m: len(able[m]))
        m = self.machine.memories[memory]
        room = int(MOST * m.capacity) // m.align * m.align if m.align else int(MOST * m.capacity)
        machine = smaller(self.machine, memory, room)
        found: list[list[tuple[int, float]]] = [[(0, 0.0)] for _ in groups]
        for n in able[memory]:
            g, around = groups[n]
            lasting = Stays(around, room, memory).lasting(g)
            ways = plans_of(self.cover, g, machine, self.routes, self.bindable, lasting, gathering=self.gathering)
            trips = prod(a.trip for a in around)
            found[n] = [(stay_bytes(p, machine), c * trips) for p, c in zip(*ways, strict=True)]
        options, costs = divisions(found, memory, room)
        if len(options) == 1:
            return options[0]
        loops = [a.loop.axis.name for a in groups[able[memory][0]][1]]
        return self.trace.choose(Choice("pack", options, {"memory": memory, "loops": loops}, costs))
