"""Loops dealt to replicas: iterations that are independent, each on an instance of its own (obligations 8, 10 and 11).

That an instance holds nothing at the begin of an iteration is followed in :mod:`isam.proof.tree`; here is judged what
needs no state: the form, the range of instances, and that no iteration touches in a shared memory what another writes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.proof.boxes import Box, disjoint, replaced, span
from isam.proof.context import Context, Var, last_value, loop_var, of_sizes
from isam.proof.facts import Facts
from isam.proof.sets import Layout
from isam.proof.state import Target
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Deal, Issue, Loop, Node, Schedule, Seq


@dataclass(frozen=True, slots=True)
class Access:
    """A box of elements (or bytes) of a base in a shared memory, under ``over`` loops inside an iteration
    (outermost first). ``issue``: one of the steps that touch it, ``target``: what it touches exactly."""

    spot: tuple[str, str]
    box: Box
    over: tuple[Var, ...]
    writes: bool
    issue: Issue
    target: Target

    def layout(self, more: dict[str, Affine]) -> Layout:
        """The elements and where they lie, of all iterations inside; ``more``: what stands for a variable."""
        t, over = self.target, tuple(_named(v, "", (), more) for v in (*self.over, *self.target.over))
        box = tuple((lo.substitute(more), hi.substitute(more)) for lo, hi in t.box)
        return box, t.offset.substitute(more), t.strides, over


Apart = Callable[[Access, Access, str, Affine, Context], bool]  # the second in a later iteration


@dataclass(slots=True)
class Dealt:
    """Judges the dealt loops of a schedule. ``busy``: per group, what the dealt loops around add to the instance:
    (first, stride, trip), outermost first."""

    schedule: Schedule
    facts: Facts
    out: Findings
    seen: set[object] = field(default_factory=set)

    def check(self) -> None:
        ctx = of_sizes(self.schedule.cover.kernel.syms)
        for tree in (self.schedule.bind, self.schedule.call):
            self.node(tree, ctx, {})

    def node(self, node: Node, ctx: Context, busy: dict[str, tuple[tuple[int, int, int], ...]]) -> None:
        key = (id(node), ctx.vars, tuple(sorted(busy.items())))
        if isinstance(node, Issue) or key in self.seen:
            return
        self.seen.add(key)
        if isinstance(node, Seq):
            for c in node.children:
                self.node(c, ctx, busy)
            return
        if node.deal is not None and self.form(node):
            mine = (*busy.get(node.deal.group, ()), (node.deal.first, node.deal.stride, node.trip or 0))
            busy = {**busy, node.deal.group: mine}
            self.instances(node, mine)
            self.independent(node, ctx)
        for part in (node.enter, node.exit):
            self.node(part, ctx, busy)
        inner = ctx.with_var(loop_var(node))
        for part in (node.first, node.body, node.last):
            if part is not None:
                self.node(part, inner, busy)

    def form(self, n: Loop) -> bool:
        assert n.deal is not None
        group = self.schedule.system.replicas.get(n.deal.group)
        if group is None:
            self.out.add(10, "deal", f"loop '{n.var}' is dealt to '{n.deal.group}', which the machine does not have")
            return False
        if n.trip is None or n.first or n.last or n.enter != Seq() or n.exit != Seq():
            self.out.add(11, "deal", f"loop '{n.var}' is dealt out, but has a run-time trip or parts that run once")
            return False
        return True

    def instances(self, n: Loop, around: tuple[tuple[int, int, int], ...]) -> None:
        """Every iteration, with those of the dealt loops around, has an instance of its own that exists."""
        assert n.deal is not None
        count = self.schedule.system.replicas[n.deal.group].count
        least = sum(first for first, _, _ in around)
        most = least + sum(stride * (trip - 1) for _, stride, trip in around)
        reach, apart = 1, True
        for stride, trip in sorted((s, t) for _, s, t in around if t > 1):
            apart = apart and stride >= reach
            reach = stride * (trip - 1) + reach
        if least < 0 or most >= count:
            self.out.add(10, "deal", f"loop '{n.var}' is dealt to instances {least} to {most} of {count}")
        elif not apart:
            self.out.add(10, "deal", f"two iterations of loop '{n.var}' are dealt to one instance")

    # -- independence ------------------------------------------------------------------------------------------------
    def independent(self, n: Loop, ctx: Context) -> None:
        """No iteration touches what a later one writes, nor the other way round."""
        every = list(self.accesses(n.body, (), local(self.schedule, n.deal)))
        var = loop_var(n)
        later = Affine.of("^later")
        after = replace(var, name="^later", lo=(*var.lo, Bound(Affine.of(n.var) + n.step)))
        both = ctx.with_var(var).with_var(after)
        for spot in dict.fromkeys(w.spot for w in self.meeting(merged(every), n.var, later, both, self.apart)):
            here = [a for a in every if a.spot == spot]  # boxes around them may meet where they do not
            for w in itertools.islice(self.meeting(here, n.var, later, both, self.exactly_apart), 1):
                text = f"iterations of loop '{n.var}' run side by side, but may meet in {spot[0]}.{spot[1]}"
                self.out.add(8, "deal", text, w.issue)

    def meeting(self, found: list[Access], var: str, later: Affine, ctx: Context, apart: Apart) -> Iterator[Access]:
        """Writes that may meet what another iteration touches."""
        for w in found:
            for x in found if w.writes else ():
                if w.spot == x.spot and not (apart(w, x, var, later, ctx) and apart(x, w, var, later, ctx)):
                    yield w

    def accesses(self, node: Node, over: tuple[Var, ...], own: frozenset[str]) -> Iterator[Access]:
        """What a node touches, but in the memories that every instance has for its ``own``."""
        if isinstance(node, Issue):
            writes = self.facts.legality.written(node.instruction)
            for o in node.operands:
                t = self.facts.target(o)
                if t.spot[0] not in own:
                    box = t.hull if self.facts.legality.one_address(o.place.base) else ((t.low, t.high),)
                    box = box if t.cells is None else ()  # of cells, every iteration has the same, and whole
                    yield Access(t.spot, box, over, o.name in writes, node, t)
        elif isinstance(node, Seq):
            for c in node.children:
                yield from self.accesses(c, over, own)
        else:
            for part in (node.enter, node.exit):
                yield from self.accesses(part, over, own)
            for part, var in _bodies(node):
                yield from self.accesses(part, (*over, var), own)

    def apart(self, one: Access, two: Access, var: str, later: Affine, ctx: Context) -> bool:
        """Whether ``one`` in an iteration and ``two`` in a later one share no element."""
        for v in one.over:
            ctx = ctx.with_var(_named(v, "^a", one.over, {}))
        for v in two.over:
            ctx = ctx.with_var(_named(v, "^b", two.over, {var: later}))
        return disjoint(_moved(one.box, one.over, "^a", {}), _moved(two.box, two.over, "^b", {var: later}), ctx)

    def exactly_apart(self, one: Access, two: Access, var: str, later: Affine, ctx: Context) -> bool:
        """The same, byte by byte."""
        sizes = self.facts.legality.buffers
        size = sizes[one.target.buffer].bytes, sizes[two.target.buffer].bytes
        return self.apart(one, two, var, later, ctx) or (
            one.target.cells is None is two.target.cells
            and self.facts.isl.no_clash(one.layout({}), two.layout({var: later}), size, False, ctx)
        )


def _bodies(n: Loop) -> Iterator[tuple[Node, Var]]:
    """The bodies of a loop that run, each with the iterations that it runs in."""
    last = last_value(n)
    if n.first is not None:
        yield n.first, loop_var(n, "first")
    if n.trip is None or n.trip > (n.first is not None) + (n.last is not None):
        yield n.body, span(n, n.first is not None, n.last is not None).desc
    if n.last is not None:
        assert last is not None  # see ``check_loop``
        var = loop_var(n)
        yield n.last, replace(var, lo=(*var.lo, Bound(last)))


def merged(found: Iterable[Access]) -> list[Access]:
    """Fewer accesses that touch all that these do: boxes that lie side by side as one around them."""
    out: dict[object, Access] = {}
    for a in found:
        terms = tuple((lo.terms, hi.terms) for lo, hi in a.box)
        key = (a.spot, a.over, a.writes, terms)
        b = out.get(key)
        if b is not None:
            pairs = zip(a.box, b.box, strict=True)
            a = replace(b, box=tuple((min(p, r, key=_const), max(q, s, key=_const)) for (p, q), (r, s) in pairs))
        out[key] = a
    return list(out.values())


def _const(e: Affine) -> int:
    return e.const


def _named(v: Var, mark: str, over: tuple[Var, ...], more: dict[str, Affine]) -> Var:
    """The variable under another name, its bounds in terms of those around it under theirs."""
    sub = {w.name: Affine.of(w.name + mark) for w in over} | more
    lo, hi = (tuple(Bound(b.expr.substitute(sub), b.div) for b in bounds) for bounds in (v.lo, v.hi))
    return Var(v.name + mark, lo, hi, v.step, None if v.origin is None else v.origin.substitute(sub))


def _moved(box: Box, over: tuple[Var, ...], mark: str, more: dict[str, Affine]) -> Box:
    for v in over:
        box = replaced(box, v.name, Affine.of(v.name + mark))
    for name, value in more.items():
        box = replaced(box, name, value)
    return box


def local(schedule: Schedule, deal: Deal | None) -> frozenset[str]:
    """The memories that each instance has for itself to which a loop is dealt."""
    replica = schedule.system.replicas.get(deal.group) if deal is not None else None
    return frozenset(replica.memories) if replica is not None else frozenset()
