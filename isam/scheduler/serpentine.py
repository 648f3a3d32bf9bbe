"""Loops that go back and forth, so that a sweep begins with what the one before it has left in a cache.

A recurrent loop goes through the same weights in every step, and blocks of rows go through the same columns. Where
they are more than a cache holds, each line of them is gone before its turn comes again, and all of them come from the
next cache. If every other sweep goes backwards, as much as the cache holds is still there (serpentine order,
boustrophedon).

A loop may go backwards where no iteration finds anything that another one has left: neither in registers, nor in
memory, where what is read has been written in the same iteration or in none. Nothing in it waits, and it is the only
stream that runs: waits of another one count its calls in the tree's order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import NamedTuple

from isam.approach.choice import Choice, Trace
from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.fills import reach
from isam.schedule.literals import is_literal
from isam.schedule.liveness import Flow
from isam.schedule.tree import Issue, Loop, Node, Operand, Schedule, Serpentine, children, distinct, mapped
from isam.scheduler.prefetch import AHEAD, seconds_of
from isam.scheduler.spans import Span, merged, within

FORTH, BACK = "forth", "back and forth"
PARTS = 8  # of a cache: what goes through less than that may as well go on as it does
FAR = 1 << 62
MOST, FEW = 2048, 64  # places in a base that are told apart, of a call that writes and of one that reads
Base = tuple[str, str, int]  # memory, name, first cell


@dataclass(frozen=True, slots=True)
class Inside:
    """Loops inside the one that is looked at. ``at``: their variables in terms of those around it and of how far each
    loop has gone, a number in ``gone``."""

    at: Mapping[str, Affine]
    gone: Mapping[str, range]

    def into(self, loop: Loop) -> Inside:
        begin = loop.lo[0].expr.substitute(self.at)
        gone = range(0, (loop.trip or 1) * loop.step, loop.step)
        return Inside({**self.at, loop.var: begin + Affine.of(f"{loop.var}'")}, {**self.gone, f"{loop.var}'": gone})


NOWHERE = Inside({}, {})


class Stretch(NamedTuple):
    """What calls of a loop touch of a base: ``size`` bytes within ``extent``, at a constant plus ``terms`` of what is
    around, and again for each iteration of the loops inside: ``gone``, their variables, the bytes from one to the next,
    and how many there are."""

    base: Base
    terms: tuple[tuple[str, int], ...]
    gone: tuple[tuple[str, int, int], ...]
    size: int
    extent: int
    writes: bool


@dataclass(frozen=True, slots=True)
class Touch:
    """A call touches ``spans`` of a base in the first iteration of a loop, each ``step`` bytes further on in the next
    one; ``beside``: the part of their addresses that loops around it and sizes say; ``inside``: bytes per step of each
    loop inside that the call stands in."""

    spans: tuple[Span, ...]
    step: int
    beside: Affine
    inside: tuple[tuple[str, int], ...]
    writes: bool


def with_serpentines(schedule: Schedule, trace: Trace) -> Schedule:
    """The schedule, its waits in it, with loops that go back and forth, where there are caches and the Approach wants
    it."""
    system = schedule.system
    units = {n.unit for n in distinct(schedule.call) if isinstance(n, Issue)}
    if len(system.caches) < 2 or len({system.cluster_of(u) or u for u in units}) > 1:
        return schedule
    call = _Serpentines(schedule, trace).node(schedule.call, None)
    return schedule if call is schedule.call else replace(schedule, call=call)


class _Serpentines:
    def __init__(self, schedule: Schedule, trace: Trace):
        self.schedule, self.trace, self.flow = schedule, trace, Flow(schedule)
        self.done: dict[tuple[int, Serpentine | None], Node] = {}
        self.stretches: dict[int, dict[Stretch, set[int]]] = {}
        self.kept: list[Node] = []  # made here, so that no other node has their identity

    def node(self, node: Node, around: Serpentine | None) -> Node:
        """A node with its loops; ``around``: how those directly in it would tell that they go backwards."""
        if isinstance(node, Issue):
            return node
        key = (id(node), around)
        if key not in self.done:
            inside = isinstance(node, Loop)
            self.done[key] = self._loop(node, around) if inside else mapped(node, lambda c: self.node(c, around))
        return self.done[key]

    def _loop(self, loop: Loop, around: Serpentine | None) -> Node:
        back = around if around is not None and self._sweeps(loop, around) else None
        if back is not None:
            return self._turned(loop, back)
        inner = None if loop.deal is not None else Serpentine(loop.var, loop.step)
        return mapped(loop, lambda p: self.node(p, None if p is loop.enter or p is loop.exit else inner))

    def _turned(self, loop: Loop, back: Serpentine) -> Loop:
        """The loop going back and forth, and in it those that go through much of the same."""
        much = self.schedule.system.caches[1].capacity // PARTS

        def inside(node: Node) -> Node:
            if not isinstance(node, Loop):
                return mapped(node, inside)
            return self._turned(node, back) if self._swept(node, back.var) > much and self._may(node) else node

        made = replace(loop, body=inside(loop.body), serpentine=back)
        self.kept.append(made)
        return made

    # -- what is gone through ------------------------------------------------------------------------------------------
    def _sweeps(self, loop: Loop, around: Serpentine) -> bool:
        """Whether each iteration around goes through the same bytes, more than the near cache holds, the loop may go
        backwards, and the Approach wants it to."""
        caches = self.schedule.system.caches
        size = self._swept(loop, around.var)
        if size <= caches[1].capacity or not self._may(loop):
            return False
        seconds = seconds_of(loop, self.schedule.system)
        context = {"loop": loop.axis or loop.var, "around": around.var, "bytes": size,
                   "rate": size / seconds if seconds else 0.0, "_system": self.schedule.system}  # fmt: skip
        return self.trace.choose(Choice("order", (FORTH, BACK), context)) == BACK

    def _swept(self, loop: Loop, around: str) -> int:
        """Bytes that a loop goes through and only reads, the same ones in every iteration around."""
        lows, highs, read = dict[Base, int](), dict[Base, int](), dict[Base, int]()
        moving, other = set[Base](), set[Base]()
        for (base, terms, gone, size, extent, writes), at in self._stretches(loop).items():
            if writes or any(name == around for name, _ in terms):
                other.add(base)
            if any(name == loop.var for name, _, _ in gone):
                moving.add(base)
            reach = [c * (n - 1) for _, c, n in gone]
            lows[base] = min(lows.get(base, FAR), min(at) + sum(r for r in reach if r < 0))
            highs[base] = max(highs.get(base, -FAR), max(at) + sum(r for r in reach if r > 0) + extent)
            read[base] = read.get(base, 0) + len(at) * size * prod(n for _, _, n in gone)
        return sum(min(highs[b] - lows[b], read[b]) for b in moving - other)  # with gaps, or with what is read twice

    def _stretches(self, node: Node) -> dict[Stretch, set[int]]:
        """Where the calls in a node touch addressed memory: the constant parts of the addresses of those alike."""
        found = self.stretches.get(id(node))
        if found is None:
            found = dict[Stretch, set[int]]()
            if isinstance(node, Issue):
                for o in node.operands:
                    if self.flow.cell(o) is None and not is_literal(o.tile.buffer):
                        one, at = self._stretch(node, o)
                        found.setdefault(one, set()).add(at)
            for c in children(node):
                once = isinstance(node, Loop) and (c is node.enter or c is node.exit)
                for one, at in self._stretches(c).items():
                    further = _along(one, at, node) if isinstance(node, Loop) and not once else (one, at)
                    found.setdefault(further[0], set()).update(further[1])
            self.stretches[id(node)] = found
        return found

    def _stretch(self, issue: Issue, o: Operand) -> tuple[Stretch, int]:
        size = size_of(self.schedule.dtype(o.tile.buffer))
        extent = size + sum(abs(s * k) * (n - 1) for s, n, k in _rows(o))
        base, offset = _base(o), o.place.offset
        return Stretch(base, offset.terms, (), size * prod(o.tile.shape), extent, self._written(issue, o)), offset.const

    def _operands(self, node: Node, inside: Inside) -> Iterator[tuple[Issue, Operand, Inside]]:
        """Operands in addressed memory of the calls in a node, in order, with the loops inside that they stand in."""
        if isinstance(node, Issue):
            yield from ((node, o, inside) for o in node.operands
                        if self.flow.cell(o) is None and not is_literal(o.tile.buffer))  # fmt: skip
            return
        inner = inside.into(node) if isinstance(node, Loop) else inside
        for c in children(node):
            once = isinstance(node, Loop) and (c is node.enter or c is node.exit)
            yield from self._operands(c, inside if once else inner)

    def _written(self, issue: Issue, o: Operand) -> bool:
        return self.flow.formal(issue, o).role != "in"

    # -- whether it may ------------------------------------------------------------------------------------------------
    def _may(self, loop: Loop) -> bool:
        """Whether its iterations may come in any order."""
        if loop.deal is not None or (loop.trip or 0) < 2 or loop.first is not None or loop.last is not None:
            return False
        calls = [n for n in distinct(loop) if isinstance(n, Issue)]
        loops = [n for n in distinct(loop.body) if isinstance(n, Loop)]
        if any(n.after or (n.prefetch and n.prefetch.ahead != AHEAD) for n in calls):  # asks for rows of the next one
            return False
        plain = all(len(n.lo) == 1 and n.lo[0].div == 1 and n.deal is None and n.serpentine is None for n in loops)
        if not plain or not all(n.trip for n in loops):
            return False
        effect = self.flow.effect(loop.body)
        return not effect.exposed & effect.writes and self._apart(loop)

    def _apart(self, loop: Loop) -> bool:
        """Whether in memory, too, no iteration finds what another one has left."""
        written = {_base(o) for n, o, _ in self._operands(loop.body, NOWHERE) if self._written(n, o)}
        found: dict[Base, list[Touch]] = {}
        for issue, o, inside in self._operands(loop.body, NOWHERE):
            base = _base(o)
            if base in written:
                touch = self._touch(issue, o, loop, inside)
                if touch is None:
                    return False
                found.setdefault(base, []).append(touch)
        return all(_independent(touches, loop.trip or 1) or _private(touches) for touches in found.values())

    def _touch(self, issue: Issue, o: Operand, loop: Loop, inside: Inside) -> Touch | None:
        """Where a call touches memory, byte by byte; None where that are too many places, or not known ones."""
        offset = o.place.offset.substitute(inside.at)
        moving = tuple((name, offset.coefficient(name)) for name in inside.gone)
        beside = Affine.from_terms([(n, c) for n, c in offset.terms if n not in inside.gone and n != loop.var], 0)
        run, apart, writes = size_of(self.schedule.dtype(o.tile.buffer)), [], self._written(issue, o)
        dims, begin = [(s * k, n) for s, n, k in _rows(o)], offset.const
        instruction = self.schedule.system.instructions[issue.instruction]
        if writes and instruction.fill is not None and instruction.fill.operand == o.name:
            box = reach(instruction, o, dict(issue.sizes), run)
            if box is None:
                return None
            run, dims, begin = box[1] - box[0], [], begin + box[0]
        dims += [(c * gone.step, len(gone)) for name, c in moving if c and (gone := inside.gone[name])]
        for stride, n in sorted(dims, key=lambda d: abs(d[0])):
            if stride == run:
                run *= n
            elif n > 1:
                apart.append([stride * i for i in range(n)])
        if prod(len(a) for a in apart) > (MOST if writes else FEW):
            if writes:
                return None
            ends = [a[-1] for a in apart]  # the gaps as well
            run, apart = run + sum(map(abs, ends)), [[sum(e for e in ends if e < 0)]]
        starts = sorted({begin + sum(at) for at in product(*apart)})
        step = offset.coefficient(loop.var) * loop.step
        return Touch(tuple(merged((s, s + run) for s in starts)), step, beside, moving, writes)


def _along(one: Stretch, at: set[int], loop: Loop) -> tuple[Stretch, set[int]]:
    """The same, of all iterations of a loop."""
    c = next((c for name, c in one.terms if name == loop.var), 0)
    if not c:
        return one, at
    begin = loop.lo[0].expr
    terms = Affine.from_terms([(n, k) for n, k in one.terms if n != loop.var], 0) + (begin - begin.const) * c
    gone = (*one.gone, (loop.var, c * loop.step, loop.trip or 1))
    return one._replace(terms=terms.terms, gone=gone), {a + begin.const * c for a in at}


def _base(o: Operand) -> Base:
    return o.place.memory, o.place.base, o.place.cell or 0


def _rows(o: Operand) -> list[tuple[int, int, int]]:
    """Bytes from one index to the next, elements and steps between them, of each dimension of a tile."""
    return list(zip(o.place.strides, o.tile.shape, o.tile.steps, strict=True))


def _independent(touches: list[Touch], trip: int) -> bool:
    """Whether no iteration touches what another one writes."""
    step, beside = touches[0].step, touches[0].beside
    if not step or any((t.step, t.beside) != (step, beside) for t in touches):
        return False
    every = merged(s for t in touches for s in t.spans)
    wrote = merged(s for t in touches if t.writes for s in t.spans)
    if len(every) * len(wrote) > MOST * MOST // 4:
        return False
    return not any(_meet(a, b, abs(step), trip) for a in wrote for b in every)


def _meet(a: Span, b: Span, step: int, trip: int) -> bool:
    """Whether ``a`` of an iteration overlaps ``b`` of another one."""
    least, most = (a[0] - b[1]) // step + 1, -((b[0] - a[1]) // step) - 1  # iterations from that of a to that of b
    return max(least, 1 - trip) <= min(most, -1) or max(least, 1) <= min(most, trip - 1)


def _private(touches: list[Touch]) -> bool:
    """Whether what an iteration reads of a base has all been written in the same one."""
    wrote: list[Touch] = []
    for t in touches:
        if t.writes:
            wrote.append(t)
            continue
        before = merged(s for w in wrote if _alike(t, w) for s in w.spans)
        if not all(within(s, before) for s in t.spans):
            return False
    return True


def _alike(one: Touch, two: Touch) -> bool:
    """Whether two touches move on alike, in all loops that both may stand in."""
    other = dict(two.inside)
    return (one.step, one.beside) == (two.step, two.beside) and all(other.get(n, c) == c for n, c in one.inside)
