"""Blocks of a group all of whose data lie in a memory that calls work in: boxes of what any nest reads are brought
there for a block, results and what nests hand on are at home there meanwhile, and what leaves goes in one piece.

Where a move into such a memory costs a set-up, operands that come call by call pay one each. What is inside of a block
is planned run by run, on the machine as it is seen from the memory, as if it were home.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import permutations, product
from math import ceil, prod

from isam.classes import dataclass
from isam.ir.dtype import size_of
from isam.scheduler.edges import EdgeCost, along
from isam.scheduler.nests import Nest, Use
from isam.scheduler.plan import USED, Gathered, Group, Members, Plan, in_order
from isam.scheduler.plans.boxes import Box, Order, box_sides, stages
from isam.scheduler.plans.kept import whole_rows
from isam.scheduler.plans.register import axes_of, blocks, least, operand_memories
from isam.scheduler.plans.request import Request
from isam.scheduler.plans.single import blocked
from isam.scheduler.plans.within import Busy, Within, halved, known, moved
from isam.scheduler.routes import Routes
from isam.system.graph import Memory, System

TRIED = 2  # outer loops that are planned further in
ALIKE = 1.02  # of two that take as long the one with larger blocks comes first
MANY = 8  # blocks of a sum that are tried for what is inside


def worked_in(groups: Iterable[Group], system: System, routes: Routes) -> Iterator[Memory]:
    """The memories with addresses that calls of some groups work in, or that lie on the way to those that they do, to
    which moves lead from home, and back: those that there is one of."""
    uses = dict.fromkeys((h, u.dtype) for g in groups for n in g.nests for u in n.uses for h in u.homes)
    used = {m for h, dtype in uses for m in (h, *(routes.of(system.home, h, dtype) or ())[1:-1])}
    ways = {(m.source, m.target) for m in system.moves}
    for m in system.scratchpads.values():
        both = ways >= {(system.home, m.name), (m.name, system.home)}
        if m.name in used - {system.home} and both and system.replica_of(m.name) is None:
            yield m


@dataclass(frozen=True)
class Lying:
    """How results of a buffer, or what nests hand on, lie below ``depth`` loops: elements along each dimension,
    ``size`` in bytes; ``begun``: it is brought first, to be added to; ``goes``: somebody wants it at home."""

    depth: int
    sides: tuple[int, ...]
    size: int
    begun: bool
    goes: bool


@dataclass(frozen=True)
class Around:
    """Outer loops of a group, and what is in the memory below them: ``boxes`` of what is read, ``results`` and
    temporaries. ``room``: bytes of these, of which ``inmost`` are below all loops; ``seconds``: predicted, where blocks
    take turns with the places of results and where they do not."""

    order: Order
    boxes: dict[str, Box]
    results: dict[str, Lying]
    room: int
    inmost: int
    seconds: tuple[float, float]

    @property
    def brought(self) -> int:
        """Bytes of the boxes."""
        return sum(x.room for x in self.boxes.values())

    @property
    def lengths(self) -> dict[str, int]:
        return dict(self.order)

    def second(self, room: int) -> int:
        """Bytes from the place of results to that of the next block, where there is so much room for them."""
        return self.inmost if self.order and self.room + self.inmost <= room else 0

    def takes(self, room: int) -> float:
        return self.seconds[not self.second(room)]


@dataclass(frozen=True)
class Resident(Within):
    """Blocks of a group all of whose data lie in a memory."""

    @property
    def runs(self) -> tuple[Members, ...]:
        return self.group.runs or (tuple(range(len(self.group.nests))),)

    @cached_property
    def read(self) -> frozenset[str]:
        """What is brought in boxes: what no nest writes, and all of them can read there, or from there."""
        return frozenset(b for b, us in self.uses.items()
                         if b not in self.written and us[0].index and all(map(self._reads, us)))  # fmt: skip

    def _reads(self, use: Use) -> bool:
        ways = (self.routes.of(self.memory.name, h, use.dtype) for h in use.homes if h != self.memory.name)
        there = self.memory.name in use.homes or any(w is not None and self.system.home not in w for w in ways)
        there = there and self.inward([use]) is not None
        return there and self.system.home not in (use.homes or (self.system.home,))

    @cached_property
    def able(self) -> bool:
        """Whether all that is written may be at home in the memory."""
        extents = [e for n in self.group.nests for e in n.extents.values()]
        if self.group.domain is not None or any(not e.is_constant or e.const < 1 for e in extents):
            return False
        if any(n.where or n.origin for n in self.group.nests):
            return False
        places = {h for n in self.group.nests for u in n.uses for h in u.homes or (self.system.home,)}
        return places <= self.view.memories.keys() and all(map(self._meets, self.written)) and self._begun

    @property
    def _begun(self) -> bool:
        """Whether each run begins the sums that it adds to in memories that nothing is brought to."""
        for run in self.runs:
            uses = [u for i in run for u in self.group.nests[i].uses if self.system.closed.issuperset(u.homes or ("",))]
            first = {u.buffer: u for u in reversed(uses)}
            if any(u.reads for u in first.values()):
                return False
        return True

    def _meets(self, buffer: str) -> bool:
        """Whether nests touch each element, one axis along each dimension, each tile begins where an access may, and
        ways lead to the memory and back from wherever calls have one."""
        uses, here, begun = self.uses[buffer], self.memory.name, self.uses[buffer][0].reads
        if not self.plain(uses):
            return False
        for u in uses:
            for h in u.homes:
                comes = u.reads and not (h in self.system.closed and not begun)
                if (u.writes and not self.leads(h, here, u.dtype)) or (comes and not self.leads(here, h, u.dtype)):
                    return False
        return self.inward(uses) is not None and self.outward(uses) is not None

    # -- outer loops -------------------------------------------------------------------------------------------------
    @cached_property
    def every(self) -> list[Around]:
        """Outer loops below which results and boxes fit the memory in some way."""
        found = (self._around(o) for o in self._orders()) if self.able else ()
        return [a for a in found if a is not None and a.room + a.brought <= self.memory.capacity]

    def around(self, room: int) -> list[Around]:
        """Outer loops below which everything fits, where results have so much ``room``, the best predicted first; of
        equally good ones larger blocks."""
        left = (self.memory.capacity - room) * USED
        found = [a for a in self.every if a.room <= room and a.brought <= left]
        best = ALIKE * min((a.takes(room) for a in found), default=0.0)
        return sorted(found, key=lambda a: (max(a.takes(room), best), self._count(a.order), a.takes(room)))

    def _orders(self) -> Iterator[Order]:
        """Blocks of the axes along which nothing that is written lies in two blocks, and parts of a sum inside."""
        group = self.group
        axes = sorted(group.apart(), key=lambda a: (-group.length(a) / group.unit(a), group.axes.index(a)))[:2]
        sizes = [self._lengths(a) for a in axes]
        parts = [(a, n) for a in self._summed() for n in self._lengths(a) if n < group.length(a)]
        for some in product(*sizes):
            cut = [(a, n) for a, n in zip(axes, some, strict=True) if n < group.length(a)]
            for order in permutations(cut):
                yield order
                yield from ((*order, part) for part in dict.fromkeys(parts))

    def _summed(self) -> Iterator[str]:
        """Axes of a sum of which all nests that have them may do a part before the next: what others make or read of
        one part lies apart from the next one's, and who lacks the axis comes before all of them, or behind."""
        group, apart = self.group, self.group.apart()
        for a in () if group.runs else group.axes:
            have = [i for i, n in enumerate(group.nests) if a in n.extents]
            if a in apart or have != [*range(have[0], have[-1] + 1)] or not any(a in n.reduced for n in group.nests):
                continue
            several = (b for b in self.written if len(group.users(b) & {*have}) > 1)
            if all(group.users(b) <= {*have} and a in group.some(tuple(have)).apart_in(b) for b in several):
                yield a

    def _lengths(self, axis: str) -> list[int]:
        unit, length = self.group.unit(axis), self.group.length(axis)
        return halved(length, unit, ceil(length / unit).bit_length())

    def _trips(self, order: Order) -> list[int]:
        return [-(-self.group.length(a) // n) for a, n in order]

    def _count(self, order: Order) -> int:
        return prod(self._trips(order))

    def _around(self, order: Order) -> Around | None:
        trips, boxes, results = self._trips(order), dict[str, Box](), dict[str, Lying]()
        inner = [a for a, _ in order if a not in self.group.apart()]
        whole = {a: self.group.length(a) for a in self.group.axes}
        for b, us in self.uses.items():
            depth = self.depth(us, order)
            if b not in self.read:
                mine = frozenset(a for u in us for a in axes_of(u))
                depth = len(order) - sum(a not in mine for a in inner)
            sides = self.sides(us, order, depth) if b in self.read or b in self.written else ()
            if sides is None or (sides and not self.begins(us, order[depth:], whole, sides)):
                return None
            if b in self.read:
                boxes[b] = self.box(us, sides, depth, prod(trips[:depth]), bool(order) and depth == len(order))
            elif b in self.written:
                results[b] = Lying(depth, sides, self.size(us, sides), us[0].reads, b not in self.group.private)
        inmost = sum(r.size for r in results.values() if r.depth == len(order))
        both = self._seconds(order, boxes, results, True), self._seconds(order, boxes, results, False)
        return Around(order, boxes, results, sum(r.size for r in results.values()), inmost, both)

    # -- predictions -------------------------------------------------------------------------------------------------
    def _seconds(self, order: Order, boxes: Mapping[str, Box], results: Mapping[str, Lying], turns: bool) -> float:
        """What takes longest of moves and calls, and for one block all of it, one after the other; ``turns``: results
        of a block leave while the next one is worked on."""
        count, trips, busy, once = self._count(order), self._trips(order), Busy(), 0.0
        for b, x in boxes.items():
            edge = self._edge(b, 0)
            each = moved(edge, x.sides, x.size)
            busy.add(edge.issuer, x.times * each)
            once += each
        for b, r in results.items():
            for way in (*(0,) * r.begun, *(1,) * r.goes):
                edge = self._edge(b, way)
                each = moved(edge, r.sides, r.size)
                busy.add(edge.issuer, prod(trips[: r.depth]) * each)
                once += each
        for unit, seconds in self.inside.items():
            busy.add(unit, seconds)
        chain = sum(self.inside.values())
        longest = max(busy.values()) if turns or not order else max(*busy.values(), chain)
        return longest * (1 - 1 / count) + once + chain / count

    def _edge(self, buffer: str, way: int) -> EdgeCost:
        """What brings a buffer (0), or takes it home (1)."""
        return known((self.outward if way else self.inward)(self.uses[buffer]))

    @cached_property
    def inside(self) -> dict[str, float]:
        """Seconds of all calls, and of moves between the memory and those next to units, per unit."""
        busy = Busy()
        for n in self.group.nests:
            units = self.system.units_of(n.instruction.name)
            for unit in units:
                busy.add(unit.name, n.calls() * n.cycles / unit.clock / len(units))
            for u in n.uses:
                near = u.homes[0] if u.homes and self.memory.name not in u.homes else ""
                if near and u.writes and u.buffer in self.written:
                    path = self.routes.of(near, self.memory.name, u.dtype) or ()
                    for edge in along(self.system, path, u.dtype):
                        seconds = edge.seconds(self._tiles(n, u), self._bytes(n, u), 1) / 2  # first values do not leave
                        busy.add(edge.issuer, seconds)
        return busy

    def _tiles(self, nest: Nest, use: Use) -> int:
        return prod(-(-nest.length(a) // nest.unit(a)) for a in axes_of(use) if a in nest.extents)

    def _bytes(self, nest: Nest, use: Use) -> int:
        return size_of(use.dtype) * prod(nest.length(a) for a in axes_of(use) if a in nest.extents)

    @cached_property
    def apart(self) -> float:
        """Seconds without blocks: operands of the main nest come in boxes, those of others call by call, and all that
        is written leaves tile by tile."""
        busy, away = Busy(self.inside), (self.read | self.written) - self.group.private.keys()
        for n in self.group.nests:
            for u in (u for u in n.uses if u.buffer in away):
                begun = u.reads and not (u.writes and self.system.closed.issuperset(u.homes))
                each = self.memory.name in u.homes and (u.writes or n is not self.group.main)
                for way in (*(0,) * begun, *(1,) * u.writes):
                    edge = self._edge(u.buffer, way)
                    moves = self._tiles(n, u) if each else edge.commands(box_sides(n, u, (), 0))
                    busy.add(edge.issuer, edge.seconds(moves, self._bytes(n, u), 1))
        return max(busy.values(), default=0.0)

    # -- plans -------------------------------------------------------------------------------------------------------
    def plans(self, room: int) -> list[tuple[Plan, float]]:
        """Plans with everything in the memory, with predicted seconds; ``room``: for results."""
        out: list[tuple[Plan, float]] = []
        for around in self.around(room)[:TRIED]:
            part = self.group.part(around.lengths)
            inner = [self._inside(self._run(part, run)) for run in self.runs]
            if all(p is not None for p in inner):
                found = [p for p in inner if p is not None]
                out.append((self._composed(around, found, around.second(room)), around.takes(room)))
        return [w for w in out if not self.group.exact or in_order(w[0])]

    def _run(self, group: Group, run: Members) -> Group:
        """Some nests by themselves; private to them is what no others touch."""
        if not self.group.runs:
            return group
        private = {b: axes for b, axes in group.private.items() if group.users(b) <= {*run}}
        return Group(tuple(group.nests[i] for i in run), group.exact, private)

    def _inside(self, group: Group) -> Plan | None:
        """A plan of a run in a block, as if the memory were home."""
        main, system = group.main, self.view if operand_memories(group.main, self.view) else self.system
        request = Request(group, system, self.routes)
        found = blocks(main, system, least(group, main), (), request.passing)[:MANY]
        if not found:
            return None
        plan = blocked(request, found[0])
        plan = replace(plan, stages=())
        return (whole_rows(plan) or plan) if not main.reduced or system is self.system else plan

    def _composed(self, around: Around, inner: list[Plan], second: int) -> Plan:
        """Outer loops with the loops of each run inside, one run after the other."""
        order, alone = list(around.order), list[tuple[int, Members]]()
        unroll = dict.fromkeys(a for n in self.group.nests for a in n.reduced)  # calls in a row add to different sums
        for run, plan in zip(self.runs, inner, strict=True):
            only = dict(plan.alone)
            for d, loop in enumerate(plan.order):
                members = tuple(run[i] for i in only[d]) if d in only else run
                if d in only or self.group.runs:
                    alone.append((len(order), members))
                order.append(loop)
            unroll |= dict.fromkeys(plan.unroll)
        depth, name = len(around.order), self.memory.name
        ahead = frozenset({depth - 1} if any(x.double_buffered for x in around.boxes.values()) else ())
        gathered = tuple(Gathered(b, r.depth, name, r.begun, r.goes, second if r.depth == depth else 0)
                         for b, r in around.results.items())  # fmt: skip
        return Plan(self.group, tuple(order), tuple(unroll), stages(around.boxes, self.group, self.memory),
                    f"blocks in {name}", ahead, even=True, alone=tuple(alone), gathered=gathered)  # fmt: skip
