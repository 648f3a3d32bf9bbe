"""One pass through the dry run: every group of a setting is planned and carried out, in order (SCH-1 to SCH-11)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import groupby

from isam.approach.choice import Choice
from isam.ir.affine import Affine
from isam.ir.kernel import recurrences
from isam.schedule.tree import Bound, Issue, Loop, Node, Schedule, Seq, children, distinct
from isam.schedule.tree import Nest as NestFact
from isam.scheduler.dry import DryRun
from isam.scheduler.handed_on import handed_on
from isam.scheduler.homes import check_room
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.scheduler.interchange import OutsideRows, rows_outside
from isam.scheduler.nests import Nest
from isam.scheduler.parts import RecurrentLoop
from isam.scheduler.plan import Group, Plan
from isam.scheduler.plans.boxes import NOTHING
from isam.scheduler.plans.dealing import undealt
from isam.scheduler.plans.known import plans_of
from isam.scheduler.plans.request import Request
from isam.scheduler.plans.resident import Resident
from isam.scheduler.setting import Parts, Setting
from isam.scheduler.state import Key
from isam.scheduler.stays import Stays
from isam.scheduler.walk import Walk

ROWS = "r"  # behind an axis: the variable of the loop over rows around a recurrent loop
Around = tuple[RecurrentLoop, ...]  # the recurrent loops around a group, from outer to inner
Begin = Mapping[str, Affine]  # of axes of which a part is scheduled, where it begins
WHOLE: Begin = {}


class Pass:
    """``bind``: what runs once, when constants are bound; ``planned``: plans, decided once, by group and by where the
    rows begin of which it is; ``by_rows``: groups, by number, of which some rows come after others."""

    def __init__(self, setting: Setting):
        self.setting, self.problem = setting, setting.problem
        self.run = DryRun(self.problem.kernel, setting.left, self.problem.trace, self.problem.routes)
        self.run.homes.near.update(setting.homes)
        self.run.homes.prepared = self.problem.prepared
        self.bind: list[Node] = []
        self.planned: dict[object, tuple[Plan, Stays | None]] = {}
        self.by_rows = set[int]()

    def made(self) -> Schedule:
        """The schedule. Raises :class:`NoSchedule` where there is no room."""
        problem, homes = self.problem, self.run.homes
        with self.run.scope.recording() as call:
            self._scheduled(self.setting.parts, ())
        touched = {o.place.base for n in distinct(Seq((*self.bind, *call))) if isinstance(n, Issue) for o in n.operands}
        slots = tuple(s for name, s in homes.slots.items() if name in touched)  # others were only tried
        check_room(problem.kernel, problem.system, slots)
        facts = tuple(NestFact(n.number, (*self._around(n), *n.extents.items())) for n in problem.nests)
        idle = homes.slots.keys() - touched
        places = {b: p for b, p in homes.places.items() if b not in homes.folded | idle}
        bind, body = Seq(tuple(self.bind)), Seq(tuple(call))
        return Schedule(problem.kernel, problem.system, problem.cover, facts, bind, body, slots, places,
                        trace=problem.trace)  # fmt: skip

    def _around(self, nest: Nest) -> tuple[tuple[str, Affine], ...]:
        """The recurrent loops around a nest."""
        every = recurrences(self.problem.kernel.body)
        return tuple((r.axis.name, r.axis.extent) for r in every if r.axis.name in nest.mapping.loops)

    def _scheduled(self, parts: Parts, around: Around) -> None:
        """Groups in a row hand on in near memory what they can; a loop, and what runs when constants are bound, begins
        with nothing there."""
        at_bind = self.problem.at_bind
        for in_row, found in groupby(parts, lambda p: isinstance(p, Group) and not at_bind(p.main)):
            for part in () if in_row else found:
                if isinstance(part, RecurrentLoop):
                    self._recurrence(part, around)
                else:
                    self._group(part, around)
            if in_row:
                self._row([p for p in found if isinstance(p, Group)], around)

    def _row(self, groups: list[Group], around: Around) -> None:
        if len(groups) == 1:
            self._group(groups[0], around)
            return

        def part(n: int, held: Collection[Key]) -> tuple[Key, ...]:
            return self._group(groups[n], around, held)

        self.run.scope.out.extend(children(handed_on(groups, self.run, part)))

    def _recurrence(self, it: RecurrentLoop, around: Around) -> None:
        """A time loop: what the body leaves at home, and what stays, is the carried state."""
        rows = rows_outside(it, self.problem.system, self.problem.trace)
        if rows is None:
            self._steps(it, around)
        else:
            self._by_rows(it, around, rows)

    def _by_rows(self, it: RecurrentLoop, around: Around, rows: OutsideRows) -> None:
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

    def _some(self, it: RecurrentLoop, around: Around, axis: str, begin: Affine, length: int) -> None:
        """The loop for ``length`` rows from ``begin`` on."""
        (group,) = it.parts
        assert isinstance(group, Group)
        nests = tuple(replace(n, extents={**n.extents, axis: Affine((), length)}) for n in group.nests)
        self._steps(replace(it, parts=(replace(group, nests=nests),)), around, {axis: begin})

    def _steps(self, it: RecurrentLoop, around: Around, begin: Begin = WHOLE) -> None:
        """A loop whose steps hand on in near memory what they can."""
        inner, groups = (*around, it), [p for p in it.parts if isinstance(p, Group)]
        if len(groups) < len(it.parts):
            groups = []

        def part(n: int, held: Collection[Key]) -> tuple[Key, ...]:
            if groups:
                return self._group(groups[n], inner, held, begin)
            self._scheduled(it.parts, inner)
            return ()

        self.run.scope.out.append(handed_on(groups, self.run, part, it))

    def _group(self, group: Group, around: Around, held: Collection[Key] = (), begin: Begin = WHOLE) -> tuple[Key, ...]:
        """Runs a group; what was near at its end, of which ``held`` stays there."""
        key = (group.number, *begin.items())
        if key not in self.planned:
            self.planned[key] = self._planned(group, around)
        plan, stays = self.planned[key]
        walk = Walk(self.run, plan, self.bind, stays)
        if not self.problem.at_bind(group.main):
            return walk.start(begin, held)
        with self.run.scope.recording() as nodes:
            walk.start(begin)
        self.bind.extend(nodes)
        return ()

    def _planned(self, group: Group, around: Around) -> tuple[Plan, Stays | None]:
        """The plan of a group, and what of it stays near over the loops around it."""
        problem, setting = self.problem, self.setting
        room = setting.staying.of(group.number)
        stays = Stays(around, room, setting.staying.memory) if room and group.domain is None else None
        lasting = stays.lasting(group) if stays is not None else NOTHING
        alike, at = setting.dealt.get(group.number, (None, 0))
        resident = self._resident(group)
        if resident:
            options, costs = [p for p, _ in resident], [c for _, c in resident]
        else:
            request = Request(group, self.run.system, problem.routes, problem.bindable, lasting,
                              alike and alike.dealings[at], frozenset(self.run.homes.near), setting.gathering,
                              frozenset(a.loop.axis.name for a in around), problem.lined)  # fmt: skip
            options, costs = plans_of(problem.cover, request)
        if alike is not None:
            options, costs = alike.plans(at, options, costs)
            if not options:
                raise NoSchedule(Infeasible("groups dealt alike", f"a plan that is {alike.label()}", "there is none"))
        context = {
            "nests": [n.number for n in group.nests],
            "group": [n.instruction.name for n in group.nests],
            "_group": group,
            "undealt": "" if any(p.deals for p in options) else undealt(group, group.main, problem.system),
            "_system": problem.system,
        }
        return problem.trace.choose(Choice("tile", options, context, costs)), stays

    def _resident(self, group: Group) -> list[tuple[Plan, float]]:
        """Plans of a group with blocks all of whose data lie in a memory."""
        blocked = self.setting.blocked
        if blocked is None or group.number not in blocked.numbers:
            return []
        memory, near = self.problem.system.memories[blocked.memory], frozenset(self.run.homes.near)
        return Resident(group, self.run.system, self.problem.routes, memory, near).plans(blocked.room)
