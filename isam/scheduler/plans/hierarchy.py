"""Plans for machines with several memories of addresses between home and the units: outer blocks, whose boxes are
brought to the memory nearest home and whose results meet there, and inside of them a plan that the machine has as it is
seen from that memory, as if it were home. A hierarchy of any depth, one memory after the other.

Outer blocks are weighed by what they bring (each operand as far out in the loops as it does not change) against the
calls inside of them; those that look best are planned further in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise, permutations, product
from math import ceil, prod

from isam.caches import LINE
from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.once import once
from isam.schedule.literals import is_literal
from isam.scheduler.edges import Edge, quickest
from isam.scheduler.laid_out import box_room
from isam.scheduler.move import route
from isam.scheduler.nests import Nest, Use
from isam.scheduler.plan import USED, Gathered, Group, Plan
from isam.scheduler.plans.begins import readable
from isam.scheduler.plans.boxes import Box, Order, box_sides, stages, trip_counts
from isam.scheduler.plans.register import axes_of
from isam.scheduler.plans.staged import between, on_the_way
from isam.system.graph import Memory, System

Inside = Callable[[Group, System], list[tuple[Plan, float]]]  # plans of a group, with seconds

HALVINGS = 5  # lengths of an axis that are tried: all of it, halved again and again
TRIED = 6  # blocks that are planned further in
KEPT = 4  # plans of each of them
ALIKE = 1.05  # blocks that take so much longer than the best are as good: the larger ones come first
PART = 4  # of a memory, one is for results that meet there


@dataclass(frozen=True)
class Outer:
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
        for m in system.moves:
            if m.source == here and m.target != system.home and m.target not in there:
                there.add(m.target)
                todo.append(m.target)
    memories = {n: replace(m, home=n == memory) for n, m in system.memories.items() if n in there}
    moves = tuple(m for m in system.moves if {m.source, m.target} <= there)
    own = system.replica_of(memory)
    return replace(system, memories=memories, moves=moves,
                   replicas={n: r for n, r in system.replicas.items() if n != own})  # fmt: skip


def meeting(groups: Sequence[Group], system: System) -> dict[str, int]:
    """Per memory behind which others with addresses lie, on the way of something that groups read, the bytes that are
    kept for results that meet there."""
    out: dict[str, int] = {}
    for group in groups:
        here = system
        while found := [m for m in between(group.main, here) if deep(group, here, m)]:
            memory = system.memories[found[0].name]
            grain = max(1, memory.align)
            out[memory.name] = memory.capacity // PART // grain * grain
            here = seen_from(here, memory.name)
    return out


def deep(group: Group, system: System, memory: Memory) -> bool:
    """Whether calls do not take everything from a memory, or over registers from there: there is another one with
    addresses on the way, or each instance has its own; and nothing that they touch has to pass it by."""
    if group.domain is not None or any(
        not e.is_constant or e.const < 1 for n in group.nests for e in n.extents.values()
    ):
        return False
    if any(n.where for n in group.nests):
        return False
    view, own = seen_from(system, memory.name), system.replica_of(memory.name)
    homes = {h for n in group.nests for u in n.uses for h in u.homes}
    if not homes <= view.memories.keys():
        return False
    further = any(on_the_way(u, view) for u in group.main.uses)
    return further or (own is None and any(system.replica_of(h) for h in homes))


def part(group: Group, lengths: dict[str, int]) -> Group:
    """A group over one block of some axes."""

    def cut(n: Nest) -> Nest:
        extents = {a: Affine((), min(lengths[a], n.length(a))) if a in lengths else e for a, e in n.extents.items()}
        return replace(n, extents=extents)

    return replace(group, nests=tuple(cut(n) for n in group.nests))


def outer_blocks(group: Group, system: System, memory: Memory, room: int, near: Collection[str]) -> list[Outer]:
    """Outer loops whose boxes fit a memory, and their results the ``room`` for these, those for which least is
    predicted first, each for blocks of other sizes."""
    found: dict[object, tuple[float, Outer]] = {}
    main = group.main
    least, uses, results = _compute(main, system), _read(group, system, near), _results(group, system, near)
    for order in _orders(group, main):
        outer = _outer(group, main, system, memory, order, uses, results, room)
        if outer is None:
            continue
        seconds = max([least + outer.again, *outer.busy.values()]) + outer.waited
        key = tuple(sorted(outer.lengths.items()))
        if key not in found or seconds < found[key][0]:
            found[key] = seconds, outer
    best = min((s for s, _ in found.values()), default=0.0)
    return [o for _, o in sorted(found.values(), key=lambda f: (max(f[0], best * ALIKE), f[1].blocks, f[0]))]


def _compute(main: Nest, system: System) -> float:
    """Seconds of the calls of a nest, on all instances of all units."""
    units = system.units_of(main.instruction.name)
    copies = sum(system.replicas[r].count if (r := system.replica_of(u.name)) else 1 for u in units)
    return main.calls() * main.cycles / max(u.clock for u in units) / copies


def _orders(group: Group, main: Nest) -> Iterator[Order]:
    """Outer loops: blocks of the parallel axes in any order, and a part of a reduction in the innermost."""
    axes = sorted((a for a in main.axes if a not in main.reduced), key=lambda a: -main.length(a) / group.unit(a))[:3]
    sizes = [[(a, n) for n in _lengths(group, main, a)] for a in axes]
    sums = [a for a in main.reduced if main.length(a) > group.unit(a)]
    axis = (main.reduced[0] if group.exact else max(sums, key=main.length)) if sums else None
    chunks = [(axis, n) for n in _lengths(group, main, axis)] if axis is not None else [None]
    for some in product(*sizes):
        cut = [(a, n) for a, n in some if n < main.length(a)]
        for chunk in chunks:
            inner = () if chunk is None or chunk[1] >= main.length(chunk[0]) else (chunk,)
            for turn in permutations(cut):
                yield (*turn, *inner)


def _lengths(group: Group, main: Nest, axis: str) -> list[int]:
    unit, length = group.unit(axis), main.length(axis)
    return list(dict.fromkeys(min(length, ceil(ceil(length / unit) / 2**n) * unit) for n in range(HALVINGS + 1)))


def _read(group: Group, system: System, near: Collection[str]) -> dict[str, list[Use]]:
    """What a group only reads, and not where it is at home; what is at home ``near`` need not be brought."""
    written = {u.buffer for n in group.nests for u in n.uses if u.writes}
    out: dict[str, list[Use]] = {}
    for u in (u for n in group.nests for u in n.uses):
        if u.index and u.buffer not in {*written, *near} and not is_literal(u.buffer):
            out.setdefault(u.buffer, []).append(u)
    return {b: us for b, us in out.items() if all(system.home not in (u.homes or (system.home,)) for u in us)}


def _results(group: Group, system: System, near: Collection[str]) -> dict[str, list[Use]]:
    """What outlives a group of what it writes, and not where it is at home; what is at home ``near`` stays there."""
    written = {u.buffer for n in group.nests for u in n.uses if u.writes} - group.private.keys() - {*near}
    out: dict[str, list[Use]] = {}
    for u in (u for n in group.nests for u in n.uses if u.buffer in written):
        out.setdefault(u.buffer, []).append(u)
    return {b: us for b, us in out.items() if all(system.home not in (u.homes or (system.home,)) for u in us)}


def _gathers(group: Group, uses: list[Use]) -> bool:
    """Whether nests touch each element of a box of results, one axis along each of its dimensions."""
    whole = not any(n.where or n.origin for n in group.nests if any(u.buffer == uses[0].buffer for u in n.uses))
    axes = [[a for r in u.index for a in r.names] for u in uses]
    plain = all(len(r.terms) == 1 and r.terms[0][1] == 1 and not r.const for u in uses for r in u.index)
    return whole and plain and bool(uses[0].index) and all(len(set(a)) == len(a) for a in axes)


def _outer(group: Group, main: Nest, system: System, memory: Memory, order: Order, uses: dict[str, list[Use]],
           results: dict[str, list[Use]], room: int) -> Outer | None:  # fmt: skip
    """What loops bring; None where it does not fit. ``room``: for results."""
    trips, size = trip_counts(main, order), 0
    boxes: dict[str, Box] = {}
    busy: dict[str, float] = {}
    waited = 0.0
    for b, us in uses.items():
        edge = quickest(system, system.home, memory.name, us[0].dtype)
        mine = frozenset(a for u in us for a in axes_of(u))
        depth = max((d + 1 for d, (a, _) in enumerate(order) if a in mine), default=0)
        sides = _sides(group, us, order, depth)
        if edge is None or sides is None:
            continue
        twice = depth == len(order) and trips[-1:] != [1] and bool(order)
        times, taken = prod(trips[:depth]), box_room(sides, size_of(us[0].dtype), memory.align)
        boxes[b] = Box(depth, taken, times, times * taken, twice, sides)
        size += boxes[b].room
        once = edge.seconds(edge.commands(sides), taken, 1)
        busy[edge.issuer] = busy.get(edge.issuer, 0.0) + times * once
        waited += once if twice or depth == 0 else times * once
    if len(boxes) < len(uses) or size > memory.capacity * USED:
        return None
    depth = sum(a not in main.reduced for a, _ in order)
    gathered: dict[str, bool] = {}
    further = prod(trips) - prod(trips[:depth])  # blocks that go on with sums
    view, again = seen_from(system, memory.name), dict[str, float]()
    for b, us in results.items():
        edge, sides = quickest(system, memory.name, system.home, us[0].dtype), _sides(group, us, order, depth)
        if edge is None or sides is None or not (_gathers(group, us) and _between(us, system, memory)):
            continue
        if not _writable(us, group, order, depth, sides, memory):
            continue
        taken, times = box_room(sides, size_of(us[0].dtype), memory.align), prod(trips[:depth])
        if taken > room:
            continue
        room -= taken
        gathered[b] = us[0].reads
        once = (1 + gathered[b]) * edge.seconds(edge.commands(sides), taken, 1)
        busy[edge.issuer] = busy.get(edge.issuer, 0.0) + times * once
        waited += times * once
        for near in _way(view, memory.name, us[0]) if further else ():
            tiles = prod(-(-n // group.unit(a)) for n, r in zip(sides, us[0].index, strict=True) for a in r.names)
            again[near.issuer] = again.get(near.issuer, 0.0) + further * near.seconds(tiles, taken, 1)
    if depth < len(order) and len(gathered) < len(results):
        return None  # sums that are begun would go home and come back
    return Outer(order, boxes, gathered, depth, busy, waited, prod(trips), max(again.values(), default=0.0),
                 len(gathered) == len(results))  # fmt: skip


def _between(uses: list[Use], system: System, memory: Memory) -> bool:
    """Whether ways lead from wherever calls have an operand to a memory and back, not over home."""
    homes = {(h, u.dtype) for u in uses for h in u.homes}
    ways = [route(system, *w, dtype) for h, dtype in homes for w in ((h, memory.name), (memory.name, h))]
    return all(way is not None and system.home not in way for way in ways)


def _way(system: System, memory: str, use: Use) -> list[Edge]:
    """What an operand passes from a memory to where calls take it."""
    path = route(system, memory, use.homes[0], use.dtype) or ()
    return [e for a, b in pairwise(path) if (e := quickest(system, a, b, use.dtype)) is not None]


def _sides(group: Group, uses: list[Use], order: Order, depth: int) -> tuple[int, ...] | None:
    """Elements along each dimension of what all accesses to a buffer cover; None where they are not of one kind."""
    if len({tuple(r.terms for r in u.index) for u in uses}) > 1:
        return None
    consts = zip(*((r.const for r in u.index) for u in uses), strict=True)
    more = [max(c) - min(c) for c in consts]
    return tuple(n + k for n, k in zip(box_sides(group, uses[0], order, depth), more, strict=True))


def _writable(uses: list[Use], group: Group, order: Order, depth: int, sides: tuple[int, ...], memory: Memory) -> bool:
    """Whether whatever a call writes begins where an access to the memory may."""
    left = {a: group.length(a) for a in group.axes}
    for a, n in order:
        left[a] = min(n, left[a])
    return all(readable(group, u, order[depth:], left, sides, memory, memory.access) == 1 for u in uses)


def _readable(
    group: Group, outer: Outer, inner: Plan, near: Collection[str], system: System, memory: Memory
) -> bool:
    """Whether all that is brought on from the boxes of a memory, boxes of the next one or tiles, begins where an access
    may."""
    boxed, left = {s.buffer: s for s in inner.stages}, {a: group.length(a) for a in group.axes}
    for a, n in (*outer.order, *inner.order):
        left[a] = min(n, left[a])
    for b, us in _read(group, system, near).items():
        x = outer.boxes[b]
        depth = boxed[b].depth if b in boxed else len(inner.order)
        loops = (*outer.order[x.depth :], *inner.order[:depth])
        block = {} if b in boxed else left
        if any(readable(group, u, loops, block, x.sides, memory, memory.access) < 1 for u in us):
            return False
    return True


def composed(group: Group, outer: Outer, inner: Plan, memory: Memory) -> Plan:
    """A plan of a block inside outer loops."""
    first = len(outer.order)
    mine = stages(outer.boxes, group, memory)
    theirs = tuple(replace(s, depth=s.depth + first, by=None if s.by is None else s.by + first) for s in inner.stages)
    turns = frozenset(d + first for d in inner.double_buffered)
    if any(x.double_buffered for x in outer.boxes.values()):
        turns |= {first - 1}
    gathered = tuple(Gathered(b, outer.depth, memory.name, begun) for b, begun in outer.gathered.items())
    further = tuple(replace(g, depth=g.depth + first) for g in inner.gathered)
    return replace(inner, group=group, order=(*outer.order, *inner.order), stages=(*mine, *theirs),
                   double_buffered=turns, alone=tuple((d + first, m) for d, m in inner.alone),
                   outer=first + inner.outer, gathered=(*gathered, *further), even=True)  # fmt: skip


def hierarchical(
    group: Group, system: System, memory: Memory, room: int, near: Collection[str], inside: Inside
) -> list[tuple[Plan, float]]:
    """Plans with outer blocks whose boxes lie in a memory, with their predicted seconds. ``room``: of that memory, for
    results; ``inside``: the plans of a block on the machine as it is seen from there."""
    view, out = seen_from(system, memory.name), list[tuple[Plan, float]]()
    for outer in outer_blocks(group, system, memory, room, near)[:TRIED]:
        found = inside(part(group, outer.lengths), view)
        for plan, seconds in sorted(found, key=lambda f: f[1])[:KEPT]:
            anew = any(s.memory == memory.name for s in plan.stages)  # laid out in what is no home
            able = not plan.deals or (outer.whole and _passable(plan, system, memory))
            if able and not anew and _readable(group, outer, plan, near, system, memory):
                out.append((composed(group, outer, plan, memory), predicted(outer, seconds, system, memory)))
    return out


def _passable(plan: Plan, system: System, memory: Memory) -> bool:
    """Whether each of the instances that blocks are dealt to has room in a memory for what passes by (literals)."""
    count = max(system.replicas[d.group].count for d in plan.deals)
    return 2 * count * LINE <= (1 - USED) * memory.capacity


def predicted(outer: Outer, inside: float, system: System, memory: Memory) -> float:
    """Seconds of a plan whose inside takes so many, once."""
    issuers = {m.issuer for m in seen_from(system, memory.name).moves}
    both = sum(t for u, t in outer.busy.items() if u in issuers)
    apart = max((t for u, t in outer.busy.items() if u not in issuers), default=0.0)
    return max(outer.blocks * inside + outer.again + both, apart) + outer.waited
