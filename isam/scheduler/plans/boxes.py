"""Boxes of operands in a memory between home and the registers: at which depth of the loops they are brought."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from math import prod
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.ir.dtype import size_of
from isam.schedule.literals import is_literal
from isam.scheduler.laid_out import box_room
from isam.scheduler.nests import Nest, Use
from isam.scheduler.plan import USED, Group, StagedBox
from isam.scheduler.plans.begins import readable, within_rows
from isam.scheduler.plans.register import axes_of
from isam.system.graph import Memory

if TYPE_CHECKING:
    from isam.scheduler.plans.estimate import Machine

Order = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Pieces:
    """How a box is brought in pieces: below ``depth`` loops, ``count`` of them with ``sides`` elements along each
    dimension, in the first of ``again`` rounds in which it is read."""

    depth: int
    count: int
    again: int
    sides: tuple[int, ...]


@dataclass(frozen=True)
class Box:
    """A box of an operand at a depth: its bytes, how often it is brought, the bytes of all of them together.
    ``double_buffered``: one is brought while another is worked on. ``sides``: elements along each dimension. ``stays``:
    it is brought once, before the loops around the group, and has its room elsewhere. ``pieces``: it is brought in
    pieces, while the loops that it does not depend on run first. ``readable``: the share of tiles that can be read
    there."""

    depth: int
    size: int
    times: int
    total: int
    double_buffered: bool
    sides: tuple[int, ...] = ()
    stays: bool = False
    pieces: Pieces | None = None
    readable: float = 1.0

    @property
    def room(self) -> int:
        return 0 if self.stays else 2 * self.size if self.double_buffered else self.size


@dataclass(frozen=True)
class Lasting:
    """What a group may keep in the memory in between over the loops around it: ``buffers`` that no step of them writes,
    in ``room`` bytes of the ``memory`` of every instance; such a loop runs ``trips`` times."""

    buffers: frozenset[str] = frozenset()
    room: int = 0
    trips: int = 1
    memory: str = ""


NOTHING = Lasting()


def trip_counts(main: Nest, order: Order) -> list[int]:
    """How often each loop of the order runs, at most."""
    left = {a: main.length(a) for a in main.axes}
    out = []
    for a, n in order:
        out.append(max(1, -(-left.get(a, 1) // n)))
        left[a] = min(n, left.get(a, 1))
    return out


def box_bytes(main: Nest | Group, use: Use, order: Order, depth: int) -> int:
    """Bytes of what the operand covers below so many loops."""
    return size_of(use.dtype) * prod(box_sides(main, use, order, depth))


def box_sides(nest: Nest | Group, use: Use, order: Order, depth: int) -> tuple[int, ...]:
    """Elements along each dimension of what the operand covers below so many loops."""
    left = _left(nest, order, depth)
    return tuple(1 + sum(abs(c) * (left[a] - 1) for a, c in r.terms if a in left) for r in use.index)


def _left(nest: Nest | Group, order: Order, depth: int) -> dict[str, int]:
    """Elements of each axis below so many loops."""
    left = {a: nest.length(a) for a in nest.axes}
    for a, n in order[:depth]:
        left[a] = min(n, left.get(a, 1))
    return left


def _readable(nest: Nest | Group, use: Use, order: Order, depth: int, machine: Machine) -> float:
    """The share of an operand's tiles that can be read from a box below so many loops."""
    left, loops = _left(nest, order, depth), []
    for a, n in order[depth:]:
        if n < left.get(a, 1):
            loops.append((a, n))
            left[a] = n
    sides = box_sides(nest, use, order, depth)
    return readable(nest, use, loops, left, sides, machine.memory, machine.asked(nest, use))


def staged_uses(group: Group, main: Nest) -> dict[str, Use]:
    """Operands of the main nest that are only read; of a buffer that is read in two places those at a fixed distance:
    one box holds both."""
    written = {v.buffer for n in group.nests for v in n.uses if v.writes}
    ways: dict[str, set[tuple[tuple[tuple[str, int], ...], ...]]] = {}
    for u in main.uses:
        ways.setdefault(u.buffer, set()).add(tuple(r.terms for r in u.index))
    return {u.buffer: u for u in main.uses
            if u.reads and u.index and u.buffer not in written and not is_literal(u.buffer)
            and len(ways[u.buffer]) == 1}  # fmt: skip


def placements(
    group: Group, machine: Machine, uses: dict[str, Use], order: Order, dealt: int, lasting: Lasting = NOTHING
) -> Iterator[dict[str, Box]]:
    """Ways to place the boxes of ``uses`` that fit: all of them inside the innermost loop that brings any; then each
    operand in turn as far out as it fits, where that saves traffic. The same without those in which some tiles cannot
    be read, and where boxes stay that may."""
    for boxes in _placements(uses, machine, order, dealt):
        yield boxes
        whole = {b: x for b, x in boxes.items() if x.readable == 1}
        if whole and len(whole) < len(boxes):
            yield whole
    may, others = [b for b in uses if b in lasting.buffers], staying_beside(group, machine.main, lasting)
    near = {b: x for b, u in others.items() if (x := _staying(group, u, order, dealt, machine)).readable == 1}
    for some in (c for n in range(0 if near else 1, len(may) + 1) for c in combinations(may, n)):
        far = near | {b: _staying(group, uses[b], order, dealt, machine) for b in some}
        if sum(x.size for x in far.values()) <= lasting.room:
            rest = {b: u for b, u in uses.items() if b not in far}
            for boxes in (*_placements(rest, machine, order, dealt), *(() if rest else ({},))):
                yield {**boxes, **far}


def in_pieces(
    boxes: dict[str, Box], group: Group, main: Nest, order: Order, dealt: int
) -> dict[str, Box] | None:
    """The boxes, those that are brought whole in pieces instead, as far in as any box is brought; None: there are none
    that could be."""
    uses, trips = staged_uses(group, main), trip_counts(main, order)
    inmost = max((x.depth for x in boxes.values() if x.double_buffered), default=_inmost(main, order))
    out = dict(boxes)
    for b, x in boxes.items():
        alone = b in uses and sum(u.buffer == b for n in group.nests for u in n.uses) == 1
        if x.stays or x.double_buffered or not alone:
            continue
        mine = axes_of(uses[b])
        loops = range(max(x.depth, dealt), inmost)
        count, again = (prod(trips[d] for d in loops if (order[d][0] in mine) == own) for own in (True, False))
        if count > 1:
            out[b] = replace(x, pieces=Pieces(inmost, count, again, box_sides(main, uses[b], order, inmost)))
    return out if out != boxes else None


def staying_beside(group: Group, main: Nest, lasting: Lasting) -> dict[str, Use]:
    """Operands of other nests than the main one that may stay."""
    mine = {u.buffer for u in main.uses}
    return {u.buffer: u for n in group.nests for u in n.uses
            if u.index and u.buffer in lasting.buffers and u.buffer not in mine}  # fmt: skip


def _staying(group: Group, use: Use, order: Order, dealt: int, machine: Machine) -> Box:
    """What one instance reads of an operand, brought once; rows begin at multiples of the memory's alignment."""
    sides = box_sides(group, use, order, dealt)
    size = box_room(sides, size_of(use.dtype), machine.memory.align)
    return Box(dealt, size, 1, size, False, sides, True, readable=_readable(group, use, order, dealt, machine))


def _placements(uses: dict[str, Use], machine: Machine, order: Order, dealt: int) -> Iterator[dict[str, Box]]:
    main, memory = machine.main, machine.memory
    room = memory.capacity * USED
    inmost = _inmost(main, order)
    trips = trip_counts(main, order)

    def box(use: Use, depth: int, double_buffered: bool) -> Box:
        times, size = prod(trips[dealt:depth]), box_bytes(main, use, order, depth)
        mine = axes_of(use)
        again = prod(t for t, (a, _) in zip(trips[dealt:depth], order[dealt:depth], strict=True) if a not in mine)
        total = min(times * size, again * box_bytes(main, use, order, dealt))  # edges are smaller than the rest
        sides, share = box_sides(main, use, order, depth), _readable(main, use, order, depth, machine)
        return Box(depth, size, times, total, double_buffered and times > 1, sides, readable=share)

    inner = {b: box(u, inmost, True) for b, u in uses.items()}
    if inner and sum(x.room for x in inner.values()) <= room:
        yield inner
    for b, u in uses.items():
        for depth in range(dealt, inmost):
            far = box(u, depth, False)
            rest = {c: x for c, x in inner.items() if c != b}
            if far.size * far.times >= inner[b].size * inner[b].times:
                continue
            if far.room + sum(x.room for x in rest.values()) <= room:
                yield {**rest, b: far}
                break
    once = {b: box(u, dealt, False) for b, u in uses.items()}
    if once and sum(x.room for x in once.values()) <= room:
        yield once
    if uses and direct(main, memory):
        yield from _levels(machine, order, uses, inmost)


def direct(main: Nest, memory: Memory) -> bool:
    """Whether calls read what is brought to the memory where it lies there."""
    return any(memory.name in u.homes for u in main.uses if u.reads and not u.writes)


def _levels(machine: Machine, order: Order, uses: dict[str, Use], inmost: int) -> Iterator[dict[str, Box]]:
    """Every operand at each depth where its box becomes smaller; of those at the innermost depth that any has, one is
    brought while the one before is worked on."""
    main, memory = machine.main, machine.memory
    trips = trip_counts(main, order)
    depths: list[list[int]] = []
    for u in uses.values():
        sizes = [box_bytes(main, u, order, d) for d in range(inmost + 1)]
        depths.append([d for d in range(inmost + 1) if d == 0 or sizes[d] < sizes[d - 1]])
    for chosen in product(*depths):
        deepest, out = max(chosen), {}
        for (b, u), d in zip(uses.items(), chosen, strict=True):
            times, size = prod(trips[:d]), box_bytes(main, u, order, d)
            again = prod(t for t, (a, _) in zip(trips[:d], order[:d], strict=True) if a not in axes_of(u))
            total = min(times * size, again * box_bytes(main, u, order, 0))
            sides, share = box_sides(main, u, order, d), _readable(main, u, order, d, machine)
            out[b] = Box(d, size, times, total, d == deepest and times > 1, sides, readable=share)
        if sum(x.room for x in out.values()) <= memory.capacity * USED:
            yield out


def stages(boxes: dict[str, Box], group: Group, memory: Memory) -> tuple[StagedBox, ...]:
    """Boxes lie as their buffers do; in a memory with rows, a column of rows after the other."""
    uses, out = {u.buffer: u for n in (*group.nests, group.main) for u in n.uses}, []
    for b, x in boxes.items():
        u = uses[b]
        order, cut = tuple(range(len(u.index))), ()
        if memory.row and order:
            inner = within_rows(u)
            order, cut = (inner, *(d for d in order if d != inner)), ((inner, memory.row // size_of(u.dtype)),)
        by = None if x.pieces is None else x.pieces.depth
        out.append(StagedBox(b, x.depth, memory.name, order, cut, stays=x.stays, by=by))
    return tuple(out)


def _inmost(main: Nest, order: Order) -> int:
    """The depth below which a box would be one step of the reduction: there nothing is staged."""
    reducing = [d for d, (a, _) in enumerate(order) if a in main.reduced]
    if not reducing:
        return len(order)
    axes = [a for a, _ in order]
    first = reducing[0]
    return first + 1 if axes.count(axes[first]) > 1 else first
