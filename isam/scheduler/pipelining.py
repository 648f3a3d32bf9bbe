"""What follows a sum is made while the next one goes on (software pipelining: Lam, "Software Pipelining", PLDI 1988).

A block whose sum is in cells with names (tiles) ends with what becomes of it: it is put down, and vectors take it up,
round it, clip it, bring it home. A core starts the sum's calls in order and sees only some hundred instructions ahead:
its tiles do nothing meanwhile. Done piece by piece between the steps of the next block's sum, that takes the vectors'
time beside the tiles'. The first block of a loop has none before it, the last one's follows the loop, or goes into the
first block of the next iteration around.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import NamedTuple

from isam.approach.choice import Choice, Trace
from isam.ir.affine import Affine
from isam.schedule.liveness import Flow
from isam.schedule.substituted import substituted
from isam.schedule.touches import Base, Touch, Touches
from isam.schedule.tree import Bound, Issue, Loop, Node, Schedule, Seq, distinct, leaves, mapped

APART, WOVEN = "one after the other", "woven"


def with_pipelining(schedule: Schedule, trace: Trace) -> Schedule:
    """The schedule with what becomes of a block's sum between the steps of the next one's, where a machine with caches
    names the cells of sums, one unit is given everything, and the Approach wants it."""
    if not schedule.named():
        return schedule
    call = _Pipelining(schedule, trace).node(schedule.call)
    return schedule if call is schedule.call else replace(schedule, call=call)


Pieces = tuple[Node, ...]  # the first is a loop


class Stages(NamedTuple):
    """A block in two: what makes a sum (``first``), what puts it down (``put``), and what takes it up: a loop over
    ``pieces``, and those that are left over."""

    first: tuple[Node, ...]
    put: Node
    pieces: Pieces

    @property
    def at(self) -> int:
        """Where in the first stage the steps of the sum are, but for those that are left over; -1: nowhere."""
        return max((n for n, part in enumerate(self.first) if isinstance(part, Loop)), default=-1)

    @property
    def steps(self) -> list[Loop]:
        """The loops over the steps of the sum, outermost first, each but the last with nothing but the next in it."""
        out: list[Loop] = []
        inside: Sequence[Node] = self.first[self.at : self.at + 1] if self.at >= 0 else ()
        while len(inside) == 1 and isinstance(node := inside[0], Loop):
            out.append(node)
            inside = leaves(node.body)
        return out


class Woven(NamedTuple):
    """A node, and the pieces that it has left to be made."""

    node: Node
    left: Pieces


class Count(NamedTuple):
    """Iterations of a loop counted from ``begin`` on by a variable, which may be the loop's own; their ``number``."""

    var: str
    begin: Affine
    number: Affine

    def loop(self, of: Loop, trip: int, body: Node) -> Loop:
        """A loop over the first so many iterations."""
        body = body if self.var == of.var else substituted(body, {of.var: of.lo[0].expr + self.number * of.step})
        return Loop(self.var, (Bound(self.begin),), (Bound(self.begin + trip),), 1, body)


class _Pipelining:
    def __init__(self, schedule: Schedule, trace: Trace):
        self.trace, self.named = trace, schedule.named()
        self.touches, self.flow = Touches(schedule), Flow(schedule)
        loops = [n for n in distinct(schedule.call) if isinstance(n, Loop)]
        self.names, self.dealt = {n.var for n in loops}, any(n.deal is not None for n in loops)
        self.done: dict[int, Node] = {}
        self.found: dict[int, Stages | None] = {}
        self.wanted: dict[int, int] = {}
        self.woven: dict[tuple[int, ...], Woven] = {}
        self.moved: dict[tuple[int, str, Affine], Node] = {}

    def node(self, node: Node) -> Node:
        """The node, pipelined; shared nodes stay shared."""
        if isinstance(node, Issue):
            return node
        if id(node) not in self.done:
            if isinstance(node, Loop) and self._blocks(node):
                made, left = self._weave(node, ())
                self.done[id(node)] = Seq((made, *left))
            else:
                self.done[id(node)] = mapped(node, self.node)
        return self.done[id(node)]

    def _blocks(self, node: Node) -> int:
        """How many blocks follow each other in a node without what is left of one being made before the next; 0: none,
        or not wanted so."""
        if isinstance(node, Issue):
            return 0
        if id(node) not in self.wanted:
            self.wanted[id(node)] = self._asked(node) if isinstance(node, Loop) else self._inside(node)
        return self.wanted[id(node)]

    def _inside(self, node: Node) -> int:
        return 1 if self._stages(node) else sum(map(self._blocks, leaves(node)))

    def _asked(self, loop: Loop) -> int:
        able = _plain(loop) and (loop.trip or 0) > 1 and not leaves(loop.exit)
        inside = self._inside(loop.body) if able else 0
        if not inside or (inside > 1 and self.dealt):  # what instances leave to each other takes long to be shown
            return 0
        stages = self._stages(loop.body)
        context = {
            "loop": loop.axis or loop.var,
            "iterations": loop.trip,
            "blocks": inside,
            "steps": prod(map(_trip, stages.steps)) if stages else 0,
            "pieces": _trip(_over(stages.pieces)) if stages else 0,
        }
        wanted = self.trace.choose(Choice("pipeline", (APART, WOVEN), context)) == WOVEN
        return inside * _trip(loop) if wanted else 0

    def _weave(self, node: Node, left: Pieces) -> Woven:
        """A node that has blocks, in the first of which the pieces are made that are ``left``."""
        key = tuple(map(id, (node, *left)))
        if key not in self.woven:
            if isinstance(node, Loop):
                self.woven[key] = self._loop(node, left)
            else:
                stages = self._stages(node)
                self.woven[key] = self._row(leaves(node), left) if stages is None else self._block(stages, left)
        return self.woven[key]

    def _loop(self, loop: Loop, left: Pieces) -> Woven:
        """The first iteration makes what is left before the loop, each other one what the one before has left. What the
        loop begins with is between: where that does not keep apart, what is left comes before."""
        if left and not self._apart(leaves(loop.enter), left):
            made, mine = self._weave(loop, ())
            return Woven(Seq((*left, made)), mine)
        first, mine = self._weave(loop.body, left)
        rest, _ = self._weave(loop.body, self._at(mine, loop.var, Affine.of(loop.var) - loop.step))
        end = loop.lo[0].expr + loop.step * (_trip(loop) - 1)
        return Woven(replace(loop, first=None if first is rest else first, body=rest), self._at(mine, loop.var, end))

    def _row(self, nodes: Sequence[Node], left: Pieces) -> Woven:
        """Pieces wait for the next block, but for what does not keep apart from them."""
        out: list[Node] = []
        for node in nodes:
            if self._blocks(node):
                made, left = self._weave(node, left)
                out.append(made)
                continue
            if left and not self._apart((node,), left):
                out.extend(left)
                left = ()
            out.append(self.node(node))
        return Woven(Seq(tuple(out)), left)

    def _block(self, stages: Stages, left: Pieces) -> Woven:
        """A block, with the pieces that are left between the steps of its sum, unless they do not keep apart."""
        if not left or not self._apart(stages.first, left):
            return Woven(Seq((*left, *stages.first, stages.put)), stages.pieces)
        at, between = stages.at, self._between(stages.steps, left)
        return Woven(Seq((*stages.first[:at], *between, *stages.first[at + 1 :], stages.put)), stages.pieces)

    def _stages(self, node: Node) -> Stages | None:
        """The stages of a block, where a node is one: they meet but in what the first one puts down."""
        if id(node) not in self.found:
            self.found[id(node)] = self._staged(leaves(node))
        return self.found[id(node)]

    def _staged(self, parts: Sequence[Node]) -> Stages | None:
        end = max((n + 1 for n, part in enumerate(parts) if self._by_name(part)), default=len(parts))
        if end == len(parts) or not isinstance(over := parts[end], Loop) or any(map(_leaves_off, parts[end:])):
            return None
        puts, pieces = zip(*map(self._put, parts[end:]), strict=True)
        if not all(self._beside(put, pieces[:n]) for n, put in enumerate(puts) if put):
            return None
        stages = Stages(tuple(parts[:end]), Seq(tuple(c for p in puts for c in p)), pieces)
        known = all(_plain(n) and (n.trip or 0) > 1 for n in (over, *stages.steps))
        known = known and all((n.trip or 0) > 0 for n in pieces if isinstance(n, Loop))
        bare = all(not leaves(n.enter) and not leaves(n.exit) for n in stages.steps)
        whole = known and bare and self._sums(stages) and self._lets_go(stages.pieces)
        return stages if whole and self._apart(stages.first, stages.pieces) else None

    def _put(self, part: Node) -> tuple[tuple[Node, ...], Node]:
        """What of a loop's beginning puts sums down, and the loop with the rest of it; what is none has nothing."""
        if not isinstance(part, Loop):
            return (), part
        begin = leaves(part.enter)
        put = tuple(n for n in begin if self._by_name(n))
        return put, replace(part, enter=Seq(tuple(n for n in begin if not self._by_name(n))))

    def _by_name(self, part: Node) -> bool:
        """Whether a part, a loop in its iterations, touches cells with names."""
        inside = part.body if isinstance(part, Loop) else part
        return any(base.memory in self.named for base in self._touched(inside))

    def _lets_go(self, pieces: Pieces) -> bool:
        """Whether pieces read nothing that they write, in memory or, from one to the next, in registers: sums that go
        on from block to block stay in their order, and what a loop over pieces begins with may be done again for each
        part of it."""
        found = self._touched(*pieces).values()
        whole = [self.flow.effect(n) for n in pieces]
        inside = [self.flow.effect(n.body) for n in pieces if isinstance(n, Loop)]
        written = {cell for e in whole for cell in e.writes}
        alone = not any(written & e.exposed for e in whole) and not any(e.exposed & e.writes for e in inside)
        return alone and all(len({t.writes for t in touches}) == 1 for touches in found)

    def _sums(self, stages: Stages) -> bool:
        """Whether the calls of the innermost loop over steps sum in cells with names, and nothing loops there."""
        row = leaves(stages.steps[-1].body) if stages.steps else ()
        calls = [n for n in row if isinstance(n, Issue)]
        sums = (o for c in calls if not c.is_move for o in c.operands if self.flow.formal(c, o).role != "in")
        return len(calls) == len(row) and any(o.place.memory in self.named for o in sums)

    def _apart(self, nodes: Sequence[Node], pieces: Pieces) -> bool:
        """Whether the pieces touch no cell and write no byte of what nodes touch, nor the other way round."""
        mine, theirs = self._touched(*nodes), self._touched(*pieces)
        meet = any(t.writes for base in mine.keys() & theirs.keys() for t in (*mine[base], *theirs[base]))
        return not meet and self._cells(nodes).isdisjoint(self._cells(pieces))

    def _beside(self, put: Sequence[Node], pieces: Pieces) -> bool:
        """Whether what puts a part of a sum down may come before pieces of other parts, which touch other bytes."""
        mine, theirs = self._touched(*put), self._touched(*pieces)
        loops = (n for part in pieces for n in distinct(part) if isinstance(n, Loop))
        pairs = ((t, u) for base in mine.keys() & theirs.keys() for t in mine[base] for u in theirs[base])
        return all(map(_plain, loops)) and not any(_meet(*pair) for pair in pairs)

    def _touched(self, *nodes: Node) -> dict[Base, list[Touch]]:
        """What the calls in nodes touch."""
        return self.touches.of(nodes[0] if len(nodes) == 1 else Seq(nodes))

    def _cells(self, nodes: Sequence[Node]) -> set[tuple[str, int]]:
        calls = (n for node in nodes for n in distinct(node) if isinstance(n, Issue))
        return {cell for c in calls for o in c.operands if (cell := self.flow.cell(o)) is not None}

    def _at(self, pieces: Pieces, var: str, value: Affine) -> Pieces:
        """The pieces where a variable has a value."""
        return tuple(self._moved(n, var, value) for n in pieces)

    def _moved(self, node: Node, var: str, value: Affine) -> Node:
        key = id(node), var, value
        if key not in self.moved:
            self.moved[key] = substituted(node, {var: value})
        return self.moved[key]

    def _between(self, steps: Sequence[Loop], left: Pieces) -> Iterator[Node]:
        """The steps of a sum with pieces between: behind each iteration of the first so many loops over steps, of the
        outermost of which some may be taken together. What does not come out even follows."""
        over, trips = _over(left), [_trip(n) for n in steps]
        depth, groups = _cut(trips, _trip(over))
        together = trips[0] // groups if depth == 1 else 1
        places = [groups, *trips[1:depth]]
        some, rest = divmod(_trip(over), prod(places))
        yield self._nest(steps[:depth], places, together, lambda number: _part(over, number * some, some))
        if rest:
            yield _part(over, Affine((), _trip(over) - rest), rest)
        yield from left[1:]
        if (done := groups * together) < trips[0]:
            yield _part(steps[0], Affine((), done), trips[0] - done)

    def _nest(
        self, steps: Sequence[Loop], trips: Sequence[int], together: int, behind: Callable[[Affine], Node]
    ) -> Node:
        """Loops over so many iterations of each of the loops over steps, or, of a single one, of so many together; and
        in the innermost, behind these, what is made of their number."""
        counts = [self._count(n, together) for n in steps]
        number = Affine((), 0)
        for count, trip in zip(counts, trips, strict=True):
            number = number * trip + count.number
        inner = steps[-1].body if together == 1 else _part(steps[0], number * together, together)
        made: Node = Seq((inner, behind(number)))
        for loop, count, trip in reversed([*zip(steps, counts, trips, strict=True)]):
            made = count.loop(loop, trip, made)
        return made

    def _count(self, loop: Loop, together: int) -> Count:
        """How iterations of a loop are counted, so many of which are together."""
        if loop.step == together == 1:
            return Count(loop.var, loop.lo[0].expr, Affine.of(loop.var) - loop.lo[0].expr)
        name = self._fresh(loop)
        return Count(name, Affine((), 0), Affine.of(name))

    def _fresh(self, loop: Loop) -> str:
        """A name that no variable has."""
        name = next(n for i in range(len(self.names) + 1) if (n := f"{loop.axis or loop.var}.{i}") not in self.names)
        self.names.add(name)
        return name


def _cut(trips: Sequence[int], pieces: int) -> tuple[int, int]:
    """Behind the iterations of how many loops over steps, and of how many groups of the outermost one's, pieces are
    made: so that the most in a row are as few as can be, and they are spread as far as can be."""
    ways = [(depth, groups) for depth in range(1, len(trips) + 1)
            for groups in range(1, min(trips[0], pieces // prod(trips[1:depth])) + 1)]  # fmt: skip

    def worth(way: tuple[int, int]) -> tuple[int, int, int]:
        depth, groups = way
        return sum(divmod(pieces, groups * prod(trips[1:depth]))), depth, -groups

    return min(ways, key=worth)


def _trip(loop: Loop) -> int:
    """Of a loop of which it is known."""
    assert loop.trip is not None
    return loop.trip


def _over(pieces: Pieces) -> Loop:
    """The loop over pieces."""
    loop = pieces[0]
    assert isinstance(loop, Loop)
    return loop


def _part(loop: Loop, begin: Affine, size: int) -> Node:
    """Of the iterations of a loop ``size`` from the one on that has the number ``begin``, with what it begins with."""
    start = loop.lo[0].expr + begin * loop.step
    if size == 1:
        return Seq((*leaves(loop.enter), substituted(loop.body, {loop.var: start})))
    return replace(loop, lo=(Bound(start),), hi=(Bound(start + loop.step * size),))


def _leaves_off(node: Node) -> bool:
    """Whether something follows the iterations of a loop."""
    return isinstance(node, Loop) and bool(leaves(node.exit))


def _meet(one: Touch, two: Touch) -> bool:
    """Whether two touches, one of which writes, may touch one byte."""
    (low, high), (begin, end) = one.hull, two.hull
    alike = one.offset.terms == two.offset.terms
    return (one.writes or two.writes) and not (alike and (high <= begin or end <= low))


def _plain(loop: Loop) -> bool:
    """Whether all iterations are alike, come one after the other, and begin and end at one place."""
    bounds = len(loop.lo) == len(loop.hi) == 1 and loop.lo[0].div == loop.hi[0].div == 1
    return bounds and loop.deal is None and loop.serpentine is None and loop.first is None and loop.last is None
