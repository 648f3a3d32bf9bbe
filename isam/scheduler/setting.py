"""What is settled before the dry run: nests whose calls fit, in groups, and what memories set aside for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from math import prod

from isam.approach.choice import Choice, Trace
from isam.caches import LINE
from isam.classes import dataclass
from isam.ir.dtype import size_of
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.scheduler.agree import agreed
from isam.scheduler.aligned import aligned
from isam.scheduler.call_size import fitting
from isam.scheduler.dealt_alike import Alike
from isam.scheduler.dry import DryRun
from isam.scheduler.homes import check_room
from isam.scheduler.in_rows import Blocked, in_blocks
from isam.scheduler.in_rows import wanted as wanted_in_blocks
from isam.scheduler.infeasible import Infeasible, NoSchedule
from isam.scheduler.near_homes import NearHome, less_near
from isam.scheduler.nests import Nest, nests_of
from isam.scheduler.parts import RecurrentLoop, groups_in, parts_of
from isam.scheduler.plan import Group
from isam.scheduler.plans.hierarchy import gathering_room
from isam.scheduler.plans.known import plans_of
from isam.scheduler.plans.request import Request
from isam.scheduler.plans.staged import between
from isam.scheduler.prepared import made_whole, prepared
from isam.scheduler.routes import Routes
from isam.scheduler.stays import MOST, StayRooms, Stays, divisions, smaller, stay_bytes
from isam.system.graph import System

Parts = Sequence[Group | RecurrentLoop]
TooLarge = dict[int, tuple[dict[str, int], ...]]  # by nest, the sizes of calls for which there was no room


@dataclass(frozen=True, eq=False)
class Problem:
    """A cover to be scheduled on a system. ``machine``: the system as its calls can address it; ``prepared``:
    temporaries that are made when constants are bound."""

    cover: Cover
    system: System
    trace: Trace
    machine: System
    routes: Routes
    nests: tuple[Nest, ...]
    prepared: frozenset[str]

    @property
    def kernel(self) -> Kernel:
        return self.cover.kernel

    @cached_property
    def bindable(self) -> frozenset[str]:
        """What may be laid out anew as a whole when constants are bound."""
        constants = {b.name for b in self.kernel.buffers if b.role == "const"}
        return made_whole(self.kernel, self.nests, self.prepared) | constants

    @cached_property
    def lined(self) -> frozenset[str]:
        """Temporaries whose rows, at home, all begin with lines: they do themselves, and take whole lines."""
        temporaries = (b for b in self.kernel.buffers if b.role == "temp" and b.shape and b.shape[-1].is_constant)
        return frozenset(b.name for b in temporaries if b.shape[-1].const * size_of(b.dtype) % LINE == 0)

    def at_bind(self, nest: Nest) -> bool:
        """Whether a nest runs when constants are bound."""
        return any(u.writes and u.buffer in self.prepared for u in nest.uses)


@dataclass(frozen=True, eq=False)
class Setting:
    """What a pass through the dry run is made in. ``machine``: all that groups work in and what stays; ``staying``:
    rooms for what stays in near memory over recurrent loops; ``gathering``: bytes of memories for results that meet
    there; ``blocked``: groups in blocks all of whose data lie in a memory; ``near``: temporaries at home near;
    ``alike``: ways in which groups are dealt alike."""

    problem: Problem
    parts: Parts
    machine: System
    staying: StayRooms = StayRooms()
    gathering: Mapping[str, int] = field(default_factory=dict)
    blocked: Blocked | None = None
    near: Mapping[str, NearHome] = field(default_factory=dict)
    alike: Sequence[Alike] = ()

    @property
    def keeps(self) -> bool:
        """Whether memories set aside room that could be left to the groups."""
        return bool(self.staying.rooms or self.gathering or self.blocked)

    @cached_property
    def groups(self) -> list[Group]:
        """Those that run in every call."""
        return [g for g, _ in groups_in(self.parts) if not self.problem.at_bind(g.main)]

    @cached_property
    def homes(self) -> dict[str, NearHome]:
        """Temporaries at home near, with that, those that groups hand on that are dealt alike among them."""
        return {**self.near, **{b: home for way in self.alike for b, home in way.homes.items()}}

    @cached_property
    def dealt(self) -> dict[int, tuple[Alike, int]]:
        """Of groups that are dealt as others are, by number, the way and which of its groups they are."""
        return {self.groups[at].number: (way, at) for way in self.alike for at in way.dealings}

    @cached_property
    def beside_stays(self) -> System:
        """The machine without what stays."""
        return smaller(self.machine, self.staying.memory, self.staying.total)

    @cached_property
    def left(self) -> System:
        """The machine that groups work in."""
        return less_near(self.beside_stays, self.problem.kernel, self.homes)


def problem_of(cover: Cover, system: System, trace: Trace, refused: TooLarge) -> Problem | None:
    """What is to be scheduled; of nests that were ``refused``, with smaller calls. None: nothing smaller is left."""
    every = nests_of(cover, system)
    machine = aligned(system, (n.instruction.name for n in every))
    routes = Routes(machine, trace)
    data = DryRun(cover.kernel, machine, trace, routes).data
    found = [n for n in (fitting(n, data, refused.get(n.number, ())) for n in every) if n is not None]
    nests = agreed(found, cover.kernel, data)
    made = prepared(cover.kernel, nests, trace)
    return Problem(cover, system, trace, machine, routes, nests, made) if len(nests) == len(every) else None


def setting_of(problem: Problem, keep: bool) -> Setting:
    """The groups, and what the Approach wants to stay in near memory, or to meet there, if anything is to be kept.
    Raises :class:`NoSchedule` where there is no room for the kernel itself."""
    _check_boxes(problem.cover)
    check_room(problem.kernel, problem.system)
    machine, routes, trace = problem.machine, problem.routes, problem.trace
    parts: Parts = parts_of(problem.kernel, problem.nests, problem.system, trace, problem.at_bind)
    if not keep:
        return Setting(problem, parts, machine)
    gathering = gathering_room([g for g, _ in groups_in(parts)], machine, routes)
    for memory, room in gathering.items():
        machine = smaller(machine, memory, room)
    blocked = None if gathering else _blocked(problem, parts)
    if blocked is not None:
        parts, machine = blocked.parts, smaller(machine, blocked.memory, blocked.room)
    staying = _staying(problem, parts, machine, gathering)
    return Setting(problem, parts, machine, staying, gathering, blocked)


def _check_boxes(cover: Cover) -> None:
    for m in cover.mappings:
        if not m.instruction.whole:
            who = f"the instruction '{m.instruction.name}'"
            raise NoSchedule(Infeasible(who, "calls that leave out points of a box, as its 'where' says",
                                        "schedules are made of whole boxes"))  # fmt: skip


def _blocked(problem: Problem, parts: Parts) -> Blocked | None:
    """Groups in blocks all of whose data lie in a memory, where the Approach wants that."""
    found = in_blocks(parts, problem.kernel, problem.machine, problem.routes, lambda g: problem.at_bind(g.main))
    return found if wanted_in_blocks(problem.trace, found) else None


def _staying(problem: Problem, parts: Parts, machine: System, gathering: Mapping[str, int]) -> StayRooms:
    """How much of a near memory is for what stays: asked where something can."""
    groups, routes = [*groups_in(parts)], problem.routes
    able: dict[str, list[int]] = {}
    for g, around in groups:
        for memory in between(g.main, problem.system, routes) if around and g.domain is None else ():
            if not memory.row and Stays(around).lasting(g).buffers:
                able.setdefault(memory.name, []).append(g.number)
    if not able:
        return StayRooms()
    memory = max(able, key=lambda m: len(able[m]))
    m = machine.memories[memory]
    room = int(MOST * m.capacity) // m.align * m.align if m.align else int(MOST * m.capacity)
    less = smaller(machine, memory, room)
    found: list[list[tuple[int, float]]] = [[(0, 0.0)] for _ in groups]
    for n in able[memory]:
        g, around = groups[n]
        lasting = Stays(around, room, memory).lasting(g)
        ways = plans_of(problem.cover, Request(g, less, routes, problem.bindable, lasting, gathering=gathering,
                                                lined=problem.lined))
        trips = prod(a.trip for a in around)
        found[n] = [(stay_bytes(p, less), c * trips) for p, c in zip(*ways, strict=True)]
    options, costs = divisions(found, memory, room)
    if len(options) == 1:
        return options[0]
    loops = [a.loop.axis.name for a in groups[able[memory][0]][1]]
    return problem.trace.choose(Choice("pack", options, {"memory": memory, "loops": loops}, costs))
