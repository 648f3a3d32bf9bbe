"""Which bytes calls touch in addressed memory, and how that goes on in the loops around them: one description, of which
those ask who look for what caches may be asked for (`isam.scheduler.prefetch`), for loops that may turn
(`isam.scheduler.serpentine`), and for how long loops wait for caches (`isam.cost.swept`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.byte_ranges import ByteRange, merged
from isam.schedule.fills import reach
from isam.schedule.literals import is_literal
from isam.schedule.liveness import Flow
from isam.schedule.tree import Issue, Loop, Node, Operand, Schedule, children

MOST, FEW = 2048, 64  # places in a base that are told apart, of a call that writes and of one that reads


class Base(NamedTuple):
    """What offsets count from: a name in a memory, a cell, or, with neither, its begin."""

    memory: str
    name: str
    cell: int


class Step(NamedTuple):
    """``size`` bytes from one to the next of ``times`` rows of a tile or iterations of the loop over ``var``."""

    size: int
    times: int
    var: str = ""


class Touch(NamedTuple):
    """A call in a node touches elements of ``size`` bytes, ``offset`` bytes from a base on, in terms of what is around
    that node; ``inside``: the loops of the node that the call stands in, outermost first."""

    issue: Issue
    operand: Operand
    offset: Affine
    inside: tuple[Step, ...]
    size: int
    writes: bool

    @property
    def steps(self) -> tuple[Step, ...]:
        """All that lead to other bytes, along the dimensions of the tile and inside."""
        tile, place = self.operand.tile, self.operand.place
        rows = [Step(s * k, n) for s, k, n in zip(place.strides, tile.steps, tile.shape, strict=True) if n > 1]
        return tuple([s for s in (*rows, *self.inside) if s.size])

    @property
    def hull(self) -> ByteRange:
        """From its first byte to its last one, beside what loops around add."""
        low = high = self.offset.const
        for size, times, _ in self.steps:
            far = size * (times - 1)
            low, high = low + min(far, 0), high + max(far, 0)
        return low, high + self.size

    @property
    def bytes(self) -> int:
        """How many, were no byte touched twice."""
        return self.size * prod([s.times for s in self.steps])

    def way(self, loop: Loop) -> tuple[int, Affine]:
        """In a loop around: bytes from one iteration to the next, and what else around it moves the touch."""
        terms = tuple([t for t in self.offset.terms if t[0] != loop.var])
        return self.offset.coefficient(loop.var) * loop.step, Affine(terms, 0)


def fresh(touches: Sequence[Touch], loop: Loop) -> tuple[int, int] | None:
    """Of calls in the body of a loop that touch nothing that the iteration before did: the bytes from the first to the
    last, and those from one iteration to the next."""
    way = touches[0].way(loop)
    if not way[0] or any(t.way(loop) != way for t in touches):
        return None
    lows, highs = zip(*(t.hull for t in touches), strict=True)
    size = max(highs) - min(lows)
    return (size, way[0]) if size <= abs(way[0]) else None


def taken(touches: Iterable[Touch]) -> int:
    """Bytes that touches take: from the first to the last of each stretch, or, where that has gaps, of each touch."""
    some = list(touches)
    stretches = sum(high - low for low, high in merged(t.hull for t in some))
    return min(stretches, sum({(t.offset, t.steps): t.bytes for t in some}.values()))


Found = dict[Base, list[Touch]]


class Touches:
    """Of a schedule; each distinct node is looked at once. A loop with several bounds, of which some are no numbers,
    begins where the first one says: who asks looks for such loops."""

    def __init__(self, schedule: Schedule):
        self.schedule, self.flow = schedule, Flow(schedule)
        self._found: dict[int, Found] = {}
        self._keep: list[Node] = []  # ids stay valid while their nodes live

    def of(self, node: Node) -> Found:
        """What the calls in a node touch, base by base, in order."""
        found = self._found.get(id(node))
        if found is None:
            found = self._found[id(node)] = dict[Base, list[Touch]]()
            self._keep.append(node)
            for part in (node,) if isinstance(node, Issue) else children(node):
                loop = node if isinstance(node, Loop) and part is not node.enter and part is not node.exit else None
                for base, touches in self._call(part) if isinstance(part, Issue) else self.of(part).items():
                    found.setdefault(base, []).extend(_along(touches, loop) if loop is not None else touches)
        return found

    def _call(self, issue: Issue) -> Iterator[tuple[Base, list[Touch]]]:
        for o in issue.operands:
            if self.flow.cell(o) is None and not is_literal(o.tile.buffer):
                size, writes = size_of(self.schedule.dtype(o.tile.buffer)), self.flow.formal(issue, o).role != "in"
                base = Base(o.place.memory, o.place.base, o.place.cell or 0)
                yield base, [Touch(issue, o, o.place.offset, (), size, writes)]

    def spans(self, t: Touch) -> list[ByteRange] | None:
        """Byte by byte, beside what loops around add, with all that an instruction fills; None where that are too many
        places, or not known ones. Of what is only read, with the gaps where there are many."""
        run, steps, begin = t.size, t.steps, t.offset.const
        instruction = self.schedule.system.instructions[t.issue.instruction]
        if t.writes and instruction.fill is not None and instruction.fill.operand == t.operand.name:
            box = reach(instruction, t.operand, dict(t.issue.sizes), run)
            if box is None:
                return None
            run, steps, begin = box[1] - box[0], tuple(s for s in t.inside if s.size), begin + box[0]
        apart: list[range] = []
        for size, times, _ in sorted(steps, key=lambda s: abs(s.size)):
            if size == run:
                run *= times
            else:
                apart.append(range(0, size * times, size))
        if prod(map(len, apart)) > (MOST if t.writes else FEW):
            return None if t.writes else [t.hull]
        starts = (begin + sum(at) for at in product(*apart))
        return merged((s, s + run) for s in starts)


def _along(touches: Iterable[Touch], loop: Loop) -> list[Touch]:
    """The same, in all iterations of a loop that they stand in."""
    static, var, trip = loop.static, loop.var, loop.trip or 1
    begin = {var: loop.lo[0].expr if static is None else static[0]}
    return [Touch(t.issue, t.operand, t.offset.substitute(begin),
                  (Step(t.offset.coefficient(var) * loop.step, trip, var), *t.inside), t.size, t.writes)
            for t in touches]  # fmt: skip
