"""Where calls stand in a schedule's tree, and how many calls of a stream lie between two of them at the least.

A tree is seen as bodies: of each loop, at each place where it stands, every part that runs, its children in one row.
Numbers of calls are affine in the loop variables around, so that they can be compared with addresses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from itertools import accumulate
from math import lcm
from typing import NamedTuple

from isam.classes import dataclass
from isam.ir.affine import ZERO, Affine
from isam.proof.boxes import span
from isam.proof.context import Context, Var, last_value, loop_var
from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq, distinct

PARTS = ("enter", "first", "body", "last", "exit")  # of a loop, in their order
Step = tuple[Issue, ...]  # calls that start together
Mine = tuple[Loop, ...]  # the loops around a place that are dealt to one group, outermost first


class Event(NamedTuple):
    """What is counted: the calls of ``stream`` as one instance of ``group`` gets them, or without a stream the begins
    of the outermost loops that are dealt to the group."""

    group: str
    stream: str = ""


@dataclass(eq=False, slots=True)
class Body:
    """A part of a loop at one place of the tree, or the tree itself. ``at``: where the loop stands in the row of the
    body around it; ``around``: all bodies around it, outermost first."""

    parent: Body | None
    loop: Loop | None
    part: str
    at: int
    around: tuple[Body, ...] = ()
    row: list[Step | Loop] = field(default_factory=list)
    _dealt: dict[str, Mine] = field(default_factory=dict)

    @property
    def chain(self) -> tuple[Body, ...]:
        """The bodies around it and itself, outermost first."""
        return (*self.around, self)

    @property
    def repeats(self) -> bool:
        """Whether it may run several times while what is around it runs once."""
        n = self.loop
        return n is not None and self.part == "body" and (n.trip is None or n.trip - _peeled(n) > 1)

    def var(self) -> Var | None:
        """The variable of its loop with the values that it has here; None where it has none."""
        n = self.loop
        if n is None or self.part in ("enter", "exit"):
            return None
        if self.part == "first":
            return loop_var(n, "first")
        if self.part == "last":
            end = last_value(n)
            return loop_var(n) if end is None else Context().at(loop_var(n), end).vars[0]
        return span(n, n.first is not None, n.last is not None).desc

    def dealt(self, group: str) -> Mine:
        """The loops around it that are dealt to a group: one object for all bodies that have the same."""
        got = self._dealt.get(group)
        if got is None:
            got = () if self.parent is None else self.parent.dealt(group)
            if self.loop is not None and _dealt_to(self.loop, group):
                got = (*got, self.loop)
            self._dealt[group] = got
        return got

    def below(self, top: Body) -> tuple[Body, ...]:
        """The bodies from the one right inside ``top`` to itself."""
        return self.chain[len(top.chain) :]


def bodies(tree: Node) -> Iterator[Body]:
    """Every body of a tree at every place of it, those around it first."""
    top = Body(None, None, "body", 0)
    stack: list[tuple[Body, Node]] = [(top, tree)]
    while stack:
        body, node = stack.pop()
        body.row = list(_row(node))
        yield body
        for at, n in enumerate(body.row):
            if isinstance(n, Loop) and n.trip != 0:
                for part in PARTS:
                    inner = getattr(n, part)
                    if inner is not None and inner != Seq() and (part != "body" or n.trip != _peeled(n)):
                        stack.append((Body(body, n, part, at, body.chain), inner))


def _row(node: Node) -> Iterator[Step | Loop]:
    """The steps and loops of a node, one after the other. A call is joined to the one before it in its sequence."""
    if not isinstance(node, Seq):
        yield (node,) if isinstance(node, Issue) else node
        return
    step: Step = ()
    for c in node.children:
        if isinstance(c, Issue) and c.joined and step:
            step = (*step, c)
            continue
        if step:
            yield step
        step = ()
        if isinstance(c, Issue):
            step = (c,)
        else:
            yield from _row(c)
    if step:
        yield step


def _peeled(n: Loop) -> int:
    return (n.first is not None) + (n.last is not None)


def _dealt_to(n: Loop, group: str) -> bool:
    return n.deal is not None and n.deal.group == group


@dataclass(slots=True)
class Counts:
    """Least numbers of events, each times ``scale``: what all steps of loops divide."""

    schedule: Schedule
    scale: int = field(init=False)
    streams: dict[str, str] = field(init=False)  # of units
    _whole: dict[object, int] = field(default_factory=dict)
    _rows: dict[object, list[int]] = field(default_factory=dict)
    _parts: dict[object, int] = field(default_factory=dict)
    _sides: dict[object, Affine] = field(default_factory=dict)

    def __post_init__(self) -> None:
        s = self.schedule
        loops = (n for tree in (s.bind, s.call) for n in distinct(tree) if isinstance(n, Loop))
        self.scale = lcm(*(n.step for n in loops))
        self.streams = {u: s.system.stream_of(u) for u in s.system.units}

    def whole(self, node: Node, e: Event, mine: Mine, depth: int) -> int:
        """Events of one execution of a node, on the instance to which the loops ``mine`` deal (instance 0 where there
        are none): the first ``depth`` of them deal as those around the node do."""
        key = id(node), e, id(mine), depth
        got = self._whole.get(key)
        if got is None:
            got = self._whole[key] = self._count(node, e, mine, depth)
        return got

    def _count(self, node: Node, e: Event, mine: Mine, depth: int) -> int:
        if isinstance(node, Issue):
            mine_too = depth >= len(mine)  # else on the first of the instances that those inside deal to
            return self.scale if self.streams[node.unit] == e.stream and not node.joined and mine_too else 0
        if isinstance(node, Seq):
            return sum([self.whole(c, e, mine, depth) for c in node.children])
        if not node.trip:
            return 0
        if _dealt_to(node, e.group):
            if not e.stream:
                return self.scale if depth == 0 else 0
            return self.whole(node.body, e, mine, depth + 1) if _deals(node, mine, depth) else 0
        parts = [getattr(node, p) for p in PARTS if p != "body"]
        once = sum([self.whole(p, e, mine, depth) for p in parts if p is not None])
        return once + (node.trip - _peeled(node)) * self.whole(node.body, e, mine, depth)

    def row(self, body: Body, e: Event, mine: Mine) -> list[int]:
        """Events before each child of a body, and in all of it."""
        key = id(body), e, id(mine)
        got = self._rows.get(key)
        if got is None:
            depth = len(body.dealt(e.group))
            each = [self.whole(n[0] if isinstance(n, tuple) else n, e, mine, depth) for n in body.row]
            got = self._rows[key] = list(accumulate(each, initial=0))
        return got

    def part(self, body: Body, name: str, e: Event, mine: Mine) -> int:
        """Events of a part of the loop that a body belongs to; none of one that it lacks."""
        key = id(body), name, e, id(mine)
        got = self._parts.get(key)
        if got is None:
            node = getattr(body.loop, name)
            got = 0 if node is None else self.whole(node, e, mine, len(body.dealt(e.group)))
            self._parts[key] = got
        return got

    def head(self, body: Body, e: Event, mine: Mine) -> Affine:
        """Events of a body's loop before the body begins."""
        n = body.loop
        assert n is not None
        if _dealt_to(n, e.group):  # no other iteration is on this instance
            outermost = len(body.dealt(e.group)) == 1
            return Affine((), self.scale if outermost and not e.stream else 0)
        if body.part == "enter" or n.serpentine is not None:
            return ZERO
        enter, first, one, last = (self.part(body, p, e, mine) for p in ("enter", "first", "body", "last"))
        if body.part == "first":
            return Affine((), enter)
        around = enter + first
        if body.part == "body":
            if len(n.lo) != 1 or n.lo[0].div != 1:
                return Affine((), around)
            return (Affine.of(n.var) - n.lo[0].expr) * (one // n.step) + (around - one * (n.first is not None))
        middle = one * (n.trip - _peeled(n)) if n.trip else 0
        return Affine((), around + middle + (last if body.part == "exit" else 0))

    def tail(self, body: Body, e: Event, mine: Mine) -> Affine:
        """Events of a body's loop after the body has ended."""
        n = body.loop
        assert n is not None
        if body.part == "exit" or _dealt_to(n, e.group) or n.serpentine is not None:
            return ZERO
        first, one, last, leave = (self.part(body, p, e, mine) for p in ("first", "body", "last", "exit"))
        if body.part == "last":
            return Affine((), leave)
        if body.part == "body":
            end = last_value(n)
            if end is None:
                return Affine((), last + leave)
            left = end - Affine.of(n.var) - n.step * (n.last is not None)
            return left * (one // n.step) + (last + leave)
        middle = one * (n.trip - _peeled(n)) if n.trip else 0
        return Affine((), middle + last + leave + (first if body.part == "enter" else 0))

    def between(self, early: Body, late: Body, of: dict[str, Affine], e: Event, mine: Mine) -> Affine:
        """Events between the ends of two bodies of one loop, the first of which runs earlier. ``of``: what the
        variables of that are called."""
        n = late.loop
        assert n is not None
        if early.part == "enter":
            return self.head(late, e, mine) - self.part(late, "enter", e, mine)
        if late.part == "exit":
            return self.tail(early, e, mine).substitute(of) - self.part(late, "exit", e, mine)
        if n.serpentine is not None:
            return ZERO
        far = Affine.of(n.var) - Affine.of(n.var).substitute(of) - n.step
        return far * (self.part(late, "body", e, mine) // n.step)

    def after(self, body: Body, top: Body, e: Event, mine: Mine, own: Mine) -> Affine:
        """Events from the end of a body to that of the child of ``top`` that it is in. ``own``: as ``mine``, inside of
        loops there that are dealt."""
        key = "after", id(body), id(top), e, id(mine), id(own)
        if key in self._sides:
            return self._sides[key]
        out, depth = ZERO, len(top.dealt(e.group))
        for b in body.below(top):
            assert b.parent is not None
            known = own if len(b.parent.dealt(e.group)) > depth else mine
            out = out + self.tail(b, e, known)
            if b.parent is not top:
                row = self.row(b.parent, e, known)
                out = out + (row[-1] - row[b.at + 1])
        self._sides[key] = out
        return out

    def before(self, body: Body, top: Body, e: Event, mine: Mine) -> Affine:
        """Events from the begin of the child of ``top`` that a body is in to that of the body."""
        key = "before", id(body), id(top), e, id(mine)
        if key in self._sides:
            return self._sides[key]
        out = ZERO
        for b in body.below(top):
            out = out + self.head(b, e, mine)
            if b.parent is not top:
                assert b.parent is not None
                out = out + self.row(b.parent, e, mine)[b.at]
        self._sides[key] = out
        return out


def alike(one: Loop, two: Loop) -> bool:
    """Whether two dealt loops deal their iterations to the same instances in the same way."""
    return one.deal == two.deal and one.trip == two.trip and one.step == two.step and _plain(one) and _plain(two)


def _plain(n: Loop) -> bool:
    return len(n.lo) == 1 and n.lo[0].div == 1


def _deals(n: Loop, mine: Mine, depth: int) -> bool:
    """Whether a dealt loop surely has an iteration for the instance in question."""
    assert n.deal is not None
    if depth >= len(mine):
        return n.deal.first == 0
    return n.deal == mine[depth].deal and n.trip == mine[depth].trip
