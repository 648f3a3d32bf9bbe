"""What an iteration of a loop reads in several sweeps, and how its calls ask for what the next iteration reads, evenly:
a sweep over what lies here asks for its share of what lies there, so that the first sweep over that finds it near.

Loops inside that do not move a call's address are the sweeps. An innermost loop goes through a *run* of so many bytes
in an iteration; each sweep asks for its part of the run at the same place of the next block. Where that is, is an
affine expression of the loops: as far on as the next block lies, by as much more as the sweeps before have asked for,
and by less for every iteration of the innermost loop, in which a call moves faster than what it asks for.

A call that brings several rows at a time, each of which goes through a run of its own, asks in each sweep for some of
the rows that lie there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import lcm, prod

from isam.caches import LINE
from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.schedule.touches import Step, Touch, fresh
from isam.schedule.tree import LINES, Issue, Loop, Node, Prefetch, Seq, mapped

TWICE = 2  # as much as is read is asked for, where parts are rounded up


@dataclass(frozen=True)
class SweptBlock:
    """What an iteration of a loop reads of ``base`` in ``sweeps``: ``size`` bytes, ``step`` bytes from those of the one
    before."""

    base: str
    size: int
    step: int
    sweeps: int
    touches: Sequence[Touch]


def swept_block(base: str, touches: Sequence[Touch], loop: Loop) -> SweptBlock | None:
    """The block of a base whose touches in the body of a loop are given; None where iterations share some of it, or go
    through it once."""
    new, again = fresh(touches, loop), max(map(sweeps, touches))
    return None if new is None or again < 2 else SweptBlock(base, *new, again, touches)


def sweeps(t: Touch) -> int:
    """How often a call goes through the same."""
    return prod(s.times for s in t.inside if not s.size)


class BlockRequests:
    """The calls in a loop that ask for the next of its ``blocks``, at most so many ``times`` as much as is read."""

    def __init__(self, loop: Loop, blocks: Iterable[SweptBlock], memory: str, times: int = TWICE):
        self.loop, self.memory, self.times = loop, memory, times
        self.wanted = {id(t.issue): (b, t) for b in blocks for t in b.touches if sweeps(t) == b.sweeps}
        self.done: dict[tuple[int, ...], Node] = {}
        self.asked = 0

    def made(self) -> Loop:
        return replace(self.loop, body=self._node(self.loop.body, ()))

    def _node(self, node: Node, around: tuple[Loop, ...]) -> Node:
        """``around``: the loops between the one that is made anew and the node."""
        if isinstance(node, Issue):
            return node
        key = (id(node), *map(id, around))
        if key not in self.done:
            self.done[key] = self._inside(node, around)
        return self.done[key]

    def _inside(self, node: Node, around: tuple[Loop, ...]) -> Node:
        if not isinstance(node, Loop):
            return mapped(node, lambda c: self._node(c, around))
        if holds_loops(node.body):
            inner = (*around, node)
            return mapped(node, lambda c: self._node(c, around if c is node.enter or c is node.exit else inner))
        asks = self._asks(node, around)
        return replace(node, body=with_(node.body, lambda n: asks.get(id(n)))) if asks else node

    def _asks(self, inner: Loop, around: tuple[Loop, ...]) -> dict[int, Prefetch]:
        """What calls of an innermost loop ask for."""
        found: dict[str, dict[int, Touch]] = {}
        for n in issues(inner.body):
            if id(n) in self.wanted:
                block, touch = self.wanted[id(n)]
                found.setdefault(block.base, {})[id(n)] = touch
        out: dict[int, Prefetch] = {}
        for calls in found.values():
            block, touch = self.wanted[next(iter(calls))]
            step = next((s.size for s in touch.inside if s.var == inner.var), 0)
            if step > 0 and all(t.inside == touch.inside for t in calls.values()):
                for run in runs(calls, step):
                    out |= self._run(inner, around, block, run)
        self.asked += len(out)
        return out

    def _run(self, inner: Loop, around: tuple[Loop, ...], block: SweptBlock,
             calls: dict[int, Touch]) -> dict[int, Prefetch]:  # fmt: skip
        """What calls of an iteration that go through one run ask for in a sweep."""
        first = next(iter(calls.values()))
        here = {s.var: s for s in first.inside}
        repeats = [n for n in around if n.var in here and not here[n.var].size]
        if prod(n.trip or 1 for n in repeats) != block.sweeps or not all(map(counted, [*repeats, inner])):
            return {}
        run = here[inner.var]
        rows = {i: r for i, t in calls.items() if (r := rows_apart(t, run)) is not None}
        return self._by_rows(repeats, block, rows) if rows else self._along(inner, repeats, block, run, calls)

    def _along(self, inner: Loop, repeats: Sequence[Loop], block: SweptBlock, run: Step,
               calls: dict[int, Touch]) -> dict[int, Prefetch]:  # fmt: skip
        """The first calls of an iteration ask for a sweep's part of what lies there for this one."""
        part = -(-run.size // block.sweeps)  # of an iteration's bytes, in a sweep
        part += -part % inner.step
        share = part * run.times  # of the run's
        share += -share % lcm(*(n.step for n in repeats))
        starts = {i: t.operand.place.offset for i, t in calls.items()}
        begin, asking = next(iter(starts.values())), list(calls)[: -(-part // LINE)]
        if share * block.sweeps > self.times * run.size * run.times or len(asking) * LINE < part:
            return {}
        ahead = _since(inner) * ((part - run.size) // inner.step) + block.step + _swept(repeats, share)
        between = -(-part // len(asking))
        return {i: Prefetch(ahead + k * between - (starts[i] - begin), self.memory) for k, i in enumerate(asking)}

    def _by_rows(self, repeats: Sequence[Loop], block: SweptBlock, rows: dict[int, Step]) -> dict[int, Prefetch]:
        """Calls ask for a sweep's part of their ``rows`` there; a sweep that no whole rows are left for asks for those
        that follow."""
        out = dict[int, Prefetch]()
        for i, row in rows.items():
            part = -(-row.times // block.sweeps)
            share = part * row.size
            few = part <= LINES and part * block.sweeps <= self.times * row.times
            if few and not share % lcm(*(n.step for n in repeats)):
                ahead = _swept(repeats, share) + block.step
                out[i] = Prefetch(ahead, self.memory, part, row.size if part > 1 else 0)
        return out


def runs(calls: dict[int, Touch], step: int) -> Iterable[dict[int, Touch]]:
    """Calls that go through one run, which an iteration of the innermost loop moves on by ``step`` bytes: nearest
    first."""
    left = sorted(calls.items(), key=lambda c: c[1].operand.place.offset.const)
    while left:
        begin = left[0][1].operand.place.offset
        apart = [c[1].operand.place.offset - begin for c in left]
        here = [a.is_constant and a.const < step for a in apart]
        yield dict(c for c, h in zip(left, here, strict=True) if h)
        left = [c for c, h in zip(left, here, strict=True) if not h]


def rows_apart(t: Touch, run: Step) -> Step | None:
    """The rows of a call that each go through a run of their own."""
    place, tile = t.operand.place, t.operand.tile
    rows = (Step(s * k, n) for s, k, n in zip(place.strides, tile.steps, tile.shape, strict=True) if n > 1)
    return max((r for r in rows if r.size >= run.size * run.times), default=None)


def _swept(repeats: Sequence[Loop], share: int) -> Affine:
    """How far the sweeps before have come, each by its share."""
    out = Affine((), 0)
    for n in reversed(repeats):
        out += _since(n) * (share // n.step)
        share *= n.trip or 1
    return out


def _since(loop: Loop) -> Affine:
    """How far the variable of a loop has gone."""
    return Affine.of(loop.var) - loop.lo[0].expr


def counted(loop: Loop) -> bool:
    """Whether a loop begins at one expression and has a known number of iterations."""
    return loop.trip is not None and loop.deal is None and len(loop.lo) == 1 and loop.lo[0].div == 1


def issues(node: Node) -> Iterable[Issue]:
    """Calls of a node without loops, in order, as often as they are carried out."""
    if isinstance(node, Issue):
        yield node
    elif isinstance(node, Seq):
        for c in node.children:
            yield from issues(c)


def holds_loops(node: Node) -> bool:
    return isinstance(node, Loop) or (isinstance(node, Seq) and any(map(holds_loops, node.children)))


def with_(node: Node, asked: Callable[[Issue], Prefetch | None]) -> Node:
    """A node whose calls ask for what they are to ask for."""
    done: dict[int, Node] = {}

    def made(n: Node) -> Node:
        if isinstance(n, Issue):
            ask = asked(n)
            return n if ask is None else replace(n, prefetch=ask)
        if id(n) not in done:
            done[id(n)] = mapped(n, made)
        return done[id(n)]

    return made(node)
