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
from math import ceil, prod

from isam.caches import LINE
from isam.classes import dataclass
from isam.ir.dtype import size_of
from isam.once import once
from isam.schedule.literals import is_literal
from isam.scheduler.edges import EdgeCost, along, quickest
from isam.scheduler.laid_out import box_room
from isam.scheduler.nests import Use
from isam.scheduler.plan import USED, Gathered, Group, Plan
from isam.scheduler.plans.begins import readable
from isam.scheduler.plans.boxes import NOTHING, Box, Order, box_sides, stages, trip_counts
from isam.scheduler.plans.register import axes_of
from isam.scheduler.plans.request import Request
from isam.scheduler.plans.staged import between, on_the_way
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


@once
def _views(system: System) -> dict[str, System]:
    """Filled in as they are asked for."""
    return {}


def seen_from(system: System, memory: str) -> System:
    """The machine as it is for somebody to whom a memory is home: what lies before it is left out. Of the instances of
    a memory that is replicated there is one."""
    known = _views(system)
    if memory not in known:
        known[memory] = _seen_from(system, memory)
    return known[memory]


def _seen_from(system: System, memory: str) -> System:
    there, todo = {memory}, [memory]
    while todo:
        here = todo.pop()
        ahead = [m.target for m in system.moves if m.source == here and m.target != system.home]
        drained = [m.source for m in system.moves if m.target == here and m.source in system.closed]
        found = {*ahead, *drained} - there - {system.home}
        there |= found
        todo += found
    memories = {n: replace(m, home=n == memory) for n, m in system.memories.items() if n in there}
    moves = tuple(m for m in system.moves if {m.source, m.target} <= there)
    own = system.replica_of(memory)
    return replace(system, memories=memories, moves=moves,
                   replicas={n: r for n, r in system.replicas.items() if n != own})  # fmt: skip


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

    @property
    def room(self) -> int:
        """Bytes of the memory for results that meet there."""
        return self.request.gathering[self.memory.name]

    @cached_property
    def view(self) -> System:
        return seen_from(self.system, self.memory.name)

    @cached_property
    def read(self) -> dict[str, list[Use]]:
        """What the group only reads, and not where it is at home: all accesses to it."""
        written = {u.buffer for n in self.group.nests for u in n.uses if u.writes}
        out: dict[str, list[Use]] = {}
        for u in (u for n in self.group.nests for u in n.uses):
            if u.index and u.buffer not in {*written, *self.request.near} and not is_literal(u.buffer):
                out.setdefault(u.buffer, []).append(u)
        return {b: us for b, us in out.items() if self._away(us)}

    @cached_property
    def results(self) -> dict[str, list[Use]]:
        """What outlives the group of what it writes, and not where it is at home."""
        nests = self.group.nests
        written = {u.buffer for n in nests for u in n.uses if u.writes} - self.group.private.keys() - self.request.near
        out: dict[str, list[Use]] = {}
        for u in (u for n in nests for u in n.uses if u.buffer in written):
            out.setdefault(u.buffer, []).append(u)
        return {b: us for b, us in out.items() if self._away(us)}

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
            block = replace(self.request, group=self.group.part(outer.lengths), system=self.view,
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
        trips, busy, waited = trip_counts(self.group.main, order), dict[str, float](), 0.0
        blocks, times = prod(trips), prod(trips[:depth])
        for b, x in boxes.items():
            edge = self._edge(self.read[b][0], self.system.home, self.memory.name)
            once = edge.seconds(edge.commands(x.sides), x.size, 1)
            busy[edge.issuer] = busy.get(edge.issuer, 0.0) + x.times * once
            waited += once if x.double_buffered or x.depth == 0 else x.times * once
        for b, sides in gathered.items():
            edge, begun = self._edge(self.results[b][0], self.memory.name, self.system.home), self.results[b][0].reads
            once = (1 + begun) * edge.seconds(edge.commands(sides), self._size(sides, self.results[b]), 1)
            busy[edge.issuer] = busy.get(edge.issuer, 0.0) + times * once
            waited += times * once
        again = (blocks - times) * self._begun(gathered)
        found = {b: self.results[b][0].reads for b in gathered}
        return OuterLoops(order, boxes, found, depth, busy, waited, blocks, again, whole)

    def _boxes(self, order: Order) -> dict[str, Box] | None:
        """Boxes of what is read, each as far out as it does not change; None where they do not fit."""
        trips, out = trip_counts(self.group.main, order), dict[str, Box]()
        for b, us in self.read.items():
            mine = frozenset(a for u in us for a in axes_of(u))
            depth = max((d + 1 for d, (a, _) in enumerate(order) if a in mine), default=0)
            sides = self._sides(us, order, depth)
            if sides is None or quickest(self.system, self.system.home, self.memory.name, us[0].dtype) is None:
                return None
            twice = bool(order) and depth == len(order) and trips[-1] > 1
            times, size = prod(trips[:depth]), self._size(sides, us)
            out[b] = Box(depth, size, times, times * size, twice, sides)
        return out if sum(x.room for x in out.values()) <= self.memory.capacity * USED else None

    def _gathered(self, order: Order, depth: int) -> dict[str, tuple[int, ...]]:
        """The sides of results that meet in the memory below so many loops, as long as there is room."""
        room, out = self.room, dict[str, tuple[int, ...]]()
        for b, us in self.results.items():
            sides = self._sides(us, order, depth)
            if sides is not None and self._meets(us, order, depth, sides) and self._size(sides, us) <= room:
                out[b] = sides
                room -= self._size(sides, us)
        return out

    def _begun(self, gathered: dict[str, tuple[int, ...]]) -> float:
        """Seconds of bringing sums that are begun from the memory to where calls add to them."""
        busy: dict[str, float] = {}
        for b, sides in gathered.items():
            use, size = self.results[b][0], self._size(sides, self.results[b])
            tiles = prod(-(-n // self.group.unit(a)) for n, r in zip(sides, use.index, strict=True) for a in r.names)
            path = self.request.routes.of(self.memory.name, use.homes[0], use.dtype) or ()
            for edge in along(self.system, path, use.dtype):
                busy[edge.issuer] = busy.get(edge.issuer, 0.0) + edge.seconds(tiles, size, 1)
        return max(busy.values(), default=0.0)

    def _edge(self, use: Use, source: str, target: str) -> EdgeCost:
        found = quickest(self.system, source, target, use.dtype)
        assert found is not None, "asked before"
        return found

    def _size(self, sides: tuple[int, ...], uses: list[Use]) -> int:
        """Bytes that a box takes."""
        return box_room(sides, size_of(uses[0].dtype), self.memory.align)

    def _sides(self, uses: list[Use], order: Order, depth: int) -> tuple[int, ...] | None:
        """Elements along each dimension of what all accesses to a buffer cover; None where they are not of one kind."""
        if len({tuple(r.terms for r in u.index) for u in uses}) > 1:
            return None
        consts = zip(*((r.const for r in u.index) for u in uses), strict=True)
        more = [max(c) - min(c) for c in consts]
        return tuple(n + k for n, k in zip(box_sides(self.group, uses[0], order, depth), more, strict=True))

    def _meets(self, uses: list[Use], order: Order, depth: int, sides: tuple[int, ...]) -> bool:
        """Whether results may meet in the memory: nests touch each element of a box, one axis along each of its
        dimensions, each tile begins where an access may, and ways lead to the memory and back from wherever calls have
        one, not over home."""
        group, system, memory = self.group, self.system, self.memory
        whole = not any(n.where or n.origin for n in group.nests if any(u.buffer == uses[0].buffer for u in n.uses))
        axes = [[a for r in u.index for a in r.names] for u in uses]
        plain = all(len(r.terms) == 1 and r.terms[0][1] == 1 and not r.const for u in uses for r in u.index)
        if not (whole and plain and uses[0].index and all(len(set(a)) == len(a) for a in axes)):
            return False
        ends = ((h, u.dtype) for u in uses for h in u.homes)
        one_way = system.closed if depth == len(order) else ()  # else sums that are begun come back
        ways = [self.request.routes.of(*w, dtype) for h, dtype in ends
                for w in ((h, memory.name), (memory.name, h)) if w[1] not in one_way]  # fmt: skip
        if any(way is None or system.home in way for way in ways):
            return False
        left = self._left(order)
        there = all(readable(group, u, order[depth:], left, sides, memory, memory.access) == 1 for u in uses)
        return there and quickest(system, memory.name, system.home, uses[0].dtype) is not None

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
            shares = (readable(self.group, u, loops, block, x.sides, self.memory, self.memory.access) for u in us)
            if any(share < 1 for share in shares):
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
        issuers = {m.issuer for m in self.view.moves}
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
    unit, length = group.unit(axis), group.main.length(axis)
    return list(dict.fromkeys(min(length, ceil(ceil(length / unit) / 2**n) * unit) for n in range(HALVINGS + 1)))
