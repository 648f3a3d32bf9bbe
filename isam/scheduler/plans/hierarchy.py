"""Plans for machines with several memories of addresses between home and the units: outer blocks, whose boxes are
brought to the memory nearest home and whose results meet there, and inside of them a plan that the machine has as it is
seen from that memory, as if it were home. A hierarchy of any depth, one memory after the other.

Outer blocks are weighed by what they bring (each operand as far out in the loops as it does not change) against the
calls inside of them; those that look best are planned further in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import permutations, product
from math import prod

from isam.caches import LINE
from isam.classes import dataclass
from isam.scheduler.edges import along
from isam.scheduler.nests import Use
from isam.scheduler.plan import USED, Gathered, Group, Plan
from isam.scheduler.plans.boxes import NOTHING, Box, Order, stages, trip_counts
from isam.scheduler.plans.request import Request
from isam.scheduler.plans.staged import between, on_the_way
from isam.scheduler.plans.within import Busy, Within, halved, known, moved, seen_from
from isam.scheduler.routes import Routes
from isam.system.graph import Memory, System

Inside = Callable[[Request], list[tuple[Plan, float]]]  # plans, with seconds

HALVINGS = 5  # lengths of an axis that are tried: all of it, halved again and again
TRIED = 6  # blocks that are planned further in
KEPT = 4  # plans of each of them
ALIKE = 1.05  # blocks that take so much longer than the best are as good: the larger ones come first
PART = 4  # of a memory, one is for results that meet there


@dataclass(frozen=True)
class OuterLoops:
    """Outer loops and what they bring: ``boxes`` per buffer, ``gathered``: results that meet below ``depth``
    loops, and whether these are begun already; ``busy``: seconds of moves from home and back, per issuer; ``waited``:
    those that nothing hides; ``blocks``: how often what is inside is carried out; ``again``: seconds of bringing
    sums that are begun further in; ``whole``: all results are gathered."""

    order: Order
    boxes: dict[str, Box]
    gathered: dict[str, bool]
    depth: int
    busy: dict[str, float]
    waited: float
    blocks: int
    again: float
    whole: bool

    @property
    def lengths(self) -> dict[str, int]:
        out: dict[str, int] = {}
        for a, n in self.order:
            out[a] = min(n, out.get(a, n))
        return out


def gathering_room(groups: Sequence[Group], system: System, routes: Routes) -> dict[str, int]:
    """Per memory behind which others with addresses lie, on the way of something that groups read, the bytes that are
    kept for results that meet there."""
    out: dict[str, int] = {}
    for group in groups:
        here = system
        while found := [m for m in between(group.main, here, routes) if deep(group, here, routes, m)]:
            memory = system.memories[found[0].name]
            grain = max(1, memory.align)
            out[memory.name] = memory.capacity // PART // grain * grain
            here = seen_from(here, memory.name)
    return out


def deep(group: Group, system: System, routes: Routes, memory: Memory) -> bool:
    """Whether calls do not take everything from a memory, or over registers from there: there is another one with
    addresses on the way, or each instance has its own; and nothing that they touch has to pass it by."""
    extents = [e for n in group.nests for e in n.extents.values()]
    if group.domain is not None or any(not e.is_constant or e.const < 1 for e in extents):
        return False
    view, own = seen_from(system, memory.name), system.replica_of(memory.name)
    places = {(h, u.dtype) for n in group.nests for u in n.uses for h in u.homes}
    if any(n.where for n in group.nests) or not {h for h, _ in places} <= view.memories.keys():
        return False
    ends = [(h, memory.name) if h in system.closed else (memory.name, h) for h, _ in places]
    ways = [routes.of(*end, dtype) for end, (h, dtype) in zip(ends, places, strict=True) if h != memory.name]
    if any(way is None or not view.memories.keys() >= {*way} for way in ways):
        return False
    further = any(on_the_way(u, view, routes) for u in group.main.uses)
    return further or (own is None and any(system.replica_of(h) for h, _ in places))


@dataclass(frozen=True)
class Level:
    """A ``memory`` of a machine behind which others with addresses lie, for plans that are asked for."""

    request: Request
    memory: Memory

    @property
    def group(self) -> Group:
        return self.request.group

    @property
    def system(self) -> System:
        return self.request.system

    @cached_property
    def within(self) -> Within:
        return Within(self.group, self.system, self.request.routes, self.memory, self.request.near)

    @cached_property
    def read(self) -> dict[str, list[Use]]:
        """What the group only reads, and not where it is at home: all accesses to it."""
        return {b: us for b, us in self.within.uses.items()
                if us[0].index and b not in self.within.written and self._away(us)}  # fmt: skip

    @cached_property
    def results(self) -> dict[str, list[Use]]:
        """What outlives the group of what it writes, and not where it is at home."""
        lasting = self.within.written - self.group.private.keys()
        return {b: us for b, us in self.within.uses.items() if b in lasting and self._away(us)}

    def _away(self, uses: list[Use]) -> bool:
        return all(self.system.home not in (u.homes or (self.system.home,)) for u in uses)

    @cached_property
    def compute(self) -> float:
        """Seconds of the calls of the main nest, on all instances of all units."""
        main, name = self.group.main, self.group.main.instruction.name
        return main.calls() * main.cycles / self.system.clock_of(name) / self.system.spread(name)[1]

    def plans(self, inside: Inside) -> list[tuple[Plan, float]]:
        """Plans with outer blocks whose boxes lie in the memory, with their predicted seconds. ``inside``: the plans of
        a block on the machine as it is seen from there."""
        out: list[tuple[Plan, float]] = []
        for outer in self.outer_blocks()[:TRIED]:
            block = replace(self.request, group=self.group.part(outer.lengths), system=self.within.view,
                            bindable=frozenset(), lasting=NOTHING, dealing=None, steps=frozenset())  # fmt: skip
            found = inside(block)
            for plan, seconds in sorted(found, key=lambda f: f[1])[:KEPT]:
                anew = any(s.memory == self.memory.name for s in plan.stages)  # laid out in what is no home
                able = not plan.deals or (outer.whole and self._passable(plan))
                if able and not anew and self._readable(outer, plan):
                    out.append((self.composed(outer, plan), self.predicted(outer, seconds)))
        return out

    def outer_blocks(self) -> list[OuterLoops]:
        """Outer loops whose boxes fit the memory, and their results the room for these, those for which least is
        predicted first, each for blocks of other sizes. Of equally good ones the larger blocks come first."""
        found: dict[object, tuple[float, OuterLoops]] = {}
        for order in orders(self.group):
            outer = self._outer(order)
            if outer is None:
                continue
            seconds = max([self.compute + outer.again, *outer.busy.values()]) + outer.waited
            key = tuple(sorted(outer.lengths.items()))
            if key not in found or seconds < found[key][0]:
                found[key] = seconds, outer
        best = ALIKE * min((s for s, _ in found.values()), default=0.0)
        return [o for _, o in sorted(found.values(), key=lambda f: (max(f[0], best), f[1].blocks, f[0]))]

    def _outer(self, order: Order) -> OuterLoops | None:
        """What loops bring; None where it does not fit."""
        depth = sum(a not in self.group.main.reduced for a, _ in order)
        boxes, gathered = self._boxes(order), self._gathered(order, depth)
        whole = len(gathered) == len(self.results)
        if boxes is None or (depth < len(order) and not whole):  # sums that are begun would go home and come back
            return None
        trips, busy, waited = trip_counts(self.group.main, order), Busy(), 0.0
        blocks, times = prod(trips), prod(trips[:depth])
        for b, x in boxes.items():
            edge = known(self.within.inward(self.read[b]))
            each = moved(edge, x.sides, x.size)
            every = busy.add(edge.issuer, x.times * each)
            waited += each if x.double_buffered or x.depth == 0 else every
        for b, sides in gathered.items():
            us = self.results[b]
            edge = known(self.within.outward(us))
            each = (1 + us[0].reads) * moved(edge, sides, self.within.size(us, sides))
            waited += busy.add(edge.issuer, times * each)
        again = (blocks - times) * self._begun(gathered)
        found = {b: self.results[b][0].reads for b in gathered}
        return OuterLoops(order, boxes, found, depth, busy, waited, blocks, again, whole)

    def _boxes(self, order: Order) -> dict[str, Box] | None:
        """Boxes of what is read, each as far out as it does not change; None where they do not fit."""
        trips, out = trip_counts(self.group.main, order), dict[str, Box]()
        for b, us in self.read.items():
            depth = self.within.depth(us, order)
            sides = self._sides(us, order, depth)
            if sides is None or self.within.inward(us) is None:
                return None
            turns = bool(order) and depth == len(order) and trips[-1] > 1
            out[b] = self.within.box(us, sides, depth, prod(trips[:depth]), turns)
        return out if sum(x.room for x in out.values()) <= self.memory.capacity * USED else None

    def _gathered(self, order: Order, depth: int) -> dict[str, tuple[int, ...]]:
        """The sides of results that meet in the memory below so many loops, as long as there is room."""
        room, out = self.request.gathering[self.memory.name], dict[str, tuple[int, ...]]()
        for b, us in self.results.items():
            sides = self._sides(us, order, depth)
            if sides is None or not self._meets(us, order, depth, sides):
                continue
            size = self.within.size(us, sides)
            if size <= room:
                out[b] = sides
                room -= size
        return out

    def _begun(self, gathered: dict[str, tuple[int, ...]]) -> float:
        """Seconds of bringing sums that are begun from the memory to where calls add to them."""
        busy = Busy()
        for b, sides in gathered.items():
            us = self.results[b]
            use, size = us[0], self.within.size(us, sides)
            tiles = prod(-(-n // self.group.unit(a)) for n, r in zip(sides, use.index, strict=True) for a in r.names)
            path = self.request.routes.of(self.memory.name, use.homes[0], use.dtype) or ()
            for edge in along(self.system, path, use.dtype):
                busy.add(edge.issuer, edge.seconds(tiles, size, 1))
        return max(busy.values(), default=0.0)

    def _sides(self, uses: list[Use], order: Order, depth: int) -> tuple[int, ...] | None:
        """Elements along each dimension of what all accesses to a buffer cover; None where they are not of one kind."""
        alike = len({tuple(r.terms for r in u.index) for u in uses}) == 1
        return self.within.sides(uses, order, depth) if alike else None

    def _meets(self, uses: list[Use], order: Order, depth: int, sides: tuple[int, ...]) -> bool:
        """Whether results may meet in the memory: nests touch each element of a box, one axis along each of its
        dimensions, each tile begins where an access may, and ways lead to the memory and back from wherever calls have
        one, not over home."""
        if any(n.where or n.origin for n in self.group.nests if any(u.buffer == uses[0].buffer for u in n.uses)):
            return False
        here, one_way = self.memory.name, self.system.closed if depth == len(order) else ()  # else begun sums come back
        ends = [(h, u.dtype) for u in uses for h in u.homes]
        if any(h == here for h, _ in ends):
            return False
        there = all(self.within.leads(h, here, t) and (h in one_way or self.within.leads(here, h, t)) for h, t in ends)
        there = there and self.within.plain(uses) and self.within.outward(uses) is not None
        return there and self.within.begins(uses, order[depth:], self._left(order), sides)

    def _left(self, order: Order) -> dict[str, int]:
        """Elements of each axis in a block of the innermost loop."""
        left = {a: self.group.length(a) for a in self.group.axes}
        for a, n in order:
            left[a] = min(n, left[a])
        return left

    def _readable(self, outer: OuterLoops, inner: Plan) -> bool:
        """Whether all that is brought on from the boxes of the memory, boxes of the next one or tiles, begins where an
        access may."""
        boxed, left = {s.buffer: s for s in inner.stages}, self._left((*outer.order, *inner.order))
        for b, us in self.read.items():
            x, depth = outer.boxes[b], boxed[b].depth if b in boxed else len(inner.order)
            loops, block = (*outer.order[x.depth :], *inner.order[:depth]), {} if b in boxed else left
            if not self.within.begins(us, loops, block, x.sides):
                return False
        return True

    def _passable(self, plan: Plan) -> bool:
        """Whether the instances that blocks are dealt to each have room in the memory for what passes it: literals."""
        count = max(self.system.replicas[d.group].count for d in plan.deals)
        return 2 * count * LINE <= (1 - USED) * self.memory.capacity

    def composed(self, outer: OuterLoops, inner: Plan) -> Plan:
        """A plan of a block inside outer loops."""
        around = inner.inside(outer.order, self.group)
        ahead = frozenset({len(outer.order) - 1} if any(x.double_buffered for x in outer.boxes.values()) else ())
        gathered = (Gathered(b, outer.depth, self.memory.name, begun) for b, begun in outer.gathered.items())
        return replace(around, stages=(*stages(outer.boxes, self.group, self.memory), *around.stages),
                       double_buffered=around.double_buffered | ahead, gathered=(*gathered, *around.gathered),
                       even=True)  # fmt: skip

    def predicted(self, outer: OuterLoops, inside: float) -> float:
        """Seconds of a plan whose inside takes so many, once."""
        issuers = {m.issuer for m in self.within.view.moves}
        both = sum(t for u, t in outer.busy.items() if u in issuers)
        apart = max((t for u, t in outer.busy.items() if u not in issuers), default=0.0)
        return max(outer.blocks * inside + outer.again + both, apart) + outer.waited


def orders(group: Group) -> Iterator[Order]:
    """Outer loops: blocks of the parallel axes in any order, and a part of a reduction in the innermost."""
    main = group.main
    axes = sorted((a for a in main.axes if a not in main.reduced), key=lambda a: -main.length(a) / group.unit(a))[:3]
    sizes = [[(a, n) for n in _lengths(group, a)] for a in axes]
    sums = [a for a in main.reduced if main.length(a) > group.unit(a)]
    axis = (main.reduced[0] if group.exact else max(sums, key=main.length)) if sums else None
    chunks = [(axis, n) for n in _lengths(group, axis)] if axis is not None else [None]
    for some in product(*sizes):
        cut = [(a, n) for a, n in some if n < main.length(a)]
        for chunk in chunks:
            inner = () if chunk is None or chunk[1] >= main.length(chunk[0]) else (chunk,)
            for turn in permutations(cut):
                yield (*turn, *inner)


def _lengths(group: Group, axis: str) -> list[int]:
    """All of an axis, halved again and again."""
    return halved(group.main.length(axis), group.unit(axis), HALVINGS)
