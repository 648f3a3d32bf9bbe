"""Obligations 8 and 11 on the tree: each distinct body once per entry state, loops by induction.

The state at the begin of every iteration is guessed from the state before the loop, the body is followed from it, and
what does not hold at the end is dropped from the guess until nothing is: what is left is true of every iteration. What
an iteration leaves behind that mentions the loop variable is true of all earlier iterations too, unless a later one may
destroy it. What a loop leaves that may have no iteration is said for each of those that it has.
"""

from __future__ import annotations

from dataclasses import field, replace

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.proof.aliasing import pointwise
from isam.proof.bounds import check_bounds
from isam.proof.boxes import Span, disjoint, earlier, span
from isam.proof.context import Context, Var, last_value, loop_var, runs_once, runs_surely
from isam.proof.dealt import Dealt, local
from isam.proof.ended import join_ended
from isam.proof.facts import Facts
from isam.proof.filled import in_its_box, with_boxes
from isam.proof.induction import add, forget, implied, meet, survives
from isam.proof.instances import HERE, Instance, around
from isam.proof.joined import check_joined
from isam.proof.legal import Legality
from isam.proof.points import check_form
from isam.proof.quantified import generalised, substituted
from isam.proof.registers import check_registers
from isam.proof.sets import Isl
from isam.proof.state import Fact, State, Target
from isam.proof.violation import Findings, Violation
from isam.proof.writes import Writes
from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq, children

ROUNDS = 6  # guesses of what a loop begins with, each knowing less; then it is not shown


def check_tree(schedule: Schedule, isl: Isl | None = None, legality: Legality | None = None) -> list[Violation]:
    """Every violation of obligations 8 to 11 that the tree shows, for all trips of its loops.

    What is known is followed twice where need be: whole facts first, which close loops sooner, then parts of them: of
    the bytes that are not overwritten, in memories that are written piece by piece, and of the iterations that there
    are, after loops that may have none. Either is sound; a schedule that passes one is right.
    """
    lg, sets = legality or Legality(with_boxes(schedule)), isl or Isl()
    schedule = lg.schedule
    out = check_form(schedule, lg)
    if len(out):
        return out.found
    facts = Facts(lg, sets, False)
    check_joined(schedule, facts, out)
    check_registers(schedule, out)
    Dealt(schedule, facts, out).check()
    if len(out):
        return out.found
    Tree(schedule, lg, sets, out).check()
    if len(out) and not len(cut := _cut(schedule, lg, sets)):
        return cut.found
    return out.found


def _cut(schedule: Schedule, legality: Legality, isl: Isl) -> Findings:
    out = Findings()
    Tree(schedule, legality, isl, out, cuts=True).check()
    return out


@dataclass(slots=True)
class Tree:
    """One walk over a schedule's trees."""

    schedule: Schedule
    legality: Legality
    isl: Isl
    out: Findings
    cuts: bool = False  # a fact partly overwritten, or not so of every trip, is cut instead of dropped
    facts: Facts = field(init=False)
    writes: Writes = field(init=False)
    memo: dict[tuple, tuple[list[Fact], list[Violation]]] = field(default_factory=dict)
    visits: int = 0
    phase: str = "bind"
    _touch: dict[int, tuple[frozenset[str], frozenset[tuple[str, str]]]] = field(default_factory=dict)
    instance: dict[str, Instance] = field(default_factory=dict)  # per replica, which of its instances we are on
    lasting: dict[tuple[Fact, int, Context], bool] = field(default_factory=dict)  # what a loop leaves as it is
    ran: dict[tuple[int, Var], Var] = field(default_factory=dict)  # iterations by loop: see ``_where_some``
    _fresh: int = 0

    def __post_init__(self) -> None:
        self.facts = Facts(self.legality, self.isl, self.cuts)
        self.writes = Writes(self.legality, self.facts)

    def check(self) -> None:
        s = self.schedule
        ctx = self.legality.context(around(s))
        buffers = self.legality.buffers.values()
        state = State()
        for b in buffers:
            if b.role in ("const", "literal") and (f := self.facts.home(b.name)) is not None:
                state.put(f)
        self.run(s.bind, state, ctx, self.out)
        kept = {w.name for w in s.workspace if w.bound or w.literal is not None}
        kept |= {b.name for b in buffers if b.role == "const"}
        for f in list(state):
            if f.spot[1] not in kept:
                state.drop(f)
        self.phase = "call"
        for b in buffers:
            # an output is there too, at version 0: moving it about is idle but harmless, using it is out of order
            if b.role in ("in", "inout", "out") and (f := self.facts.home(b.name)) is not None:
                state.put(f)
        self.run(s.call, state, ctx, self.out)
        for b in buffers:
            if b.role in ("out", "inout") and not self._final(b.name, state, ctx):
                self.out.add(8, "final", f"'{b.name}' is not known to be whole and current at home after the call")

    def _final(self, buffer: str, state: State, ctx: Context) -> bool:
        from isam.proof.final import at_home

        home = self.facts.home(buffer)
        return home is not None and at_home(self.facts, home, state, ctx, self.schedule, self.isl)

    # nodes ----------------------------------------------------------------------------------------------------------
    def run(self, node: Node, state: State, ctx: Context, out: Findings) -> None:
        """Follows a node, changing ``state``."""
        if isinstance(node, Issue):
            self._issue(node, state, ctx, out)
        elif isinstance(node, Seq):
            for c in node.children:
                self.run(c, state, ctx, out)
        elif node.trip != 0:
            self._remembered(node, state, ctx, out)

    def _remembered(self, node: Loop, state: State, ctx: Context, out: Findings) -> None:
        """A loop from an entry state seen before changes nothing but what it touched then."""
        buffers, spots = self.touch(node)
        mine = [f for f in state if f.buffer in buffers or f.spot in spots]
        key = (id(node), frozenset(mine), ctx, self.phase)
        got = self.memo.get(key)
        if got is None:
            inner, found = State(), Findings()
            for f in mine:
                inner.put(f)
            after = self._loop(node, inner, ctx, found)
            got = self.memo[key] = (list(after), found.found)
        for f in mine:
            state.drop(f)
        for f in got[0]:
            state.put(f)
        for b in buffers:
            state.sole.pop(b, None)
        out.extend(got[1])

    def touch(self, node: Node) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
        """The buffers and places that the steps below a node name."""
        got = self._touch.get(id(node))
        if got is None:
            parts = [self.touch(c) for c in children(node)]
            if isinstance(node, Issue):
                parts = [(frozenset((o.tile.buffer,)), frozenset((self.facts.target(o).spot,))) for o in node.operands]
            got = self._touch[id(node)] = (
                frozenset().union(*(b for b, _ in parts)),
                frozenset().union(*(p for _, p in parts)),
            )
        return got

    def _issue(self, n: Issue, state: State, ctx: Context, out: Findings) -> None:
        self.visits += 1
        sig = self.legality.signature(n)
        check_bounds(n, self.legality, ctx, self.isl, self.phase, self.out)
        targets = [(o, self.facts.target(o)) for o in n.operands]
        for o, t in targets:
            if o.name in sig.reads and not self.facts.holds(state, t, ctx):
                out.add(8, "stale", f"operand {o.name}: {o.tile} is not known to lie there at its current version", n)
        self._alias(n, targets, sig, ctx, out)
        for o, t in targets:
            if o.name in sig.writes:
                self.facts.write(state, t, not n.is_move, ctx)

    def _alias(self, n: Issue, targets: list, sig, ctx: Context, out: Findings) -> None:
        """What a step writes may not overlap another operand, unless it is the same tile used element by element."""
        for o, t in targets:
            if o.name not in sig.writes:
                continue
            for p, u in targets:
                if p is not o and p.name in sig.writes and t.buffer == u.buffer and not self._parted(t, u, ctx):
                    out.add(9, "alias", f"operands {o.name} and {p.name} are written with the same elements", n)
                if p is o or t.spot != u.spot or in_its_box(o.name, p.name):
                    continue
                if t.cells is not None and u.cells is not None and (t.cells[1] < u.cells[0] or u.cells[1] < t.cells[0]):
                    continue
                if ctx.le(t.high, u.low) or ctx.le(u.high, t.low):
                    continue
                same = (t.offset, t.box, t.over, t.buffer) == (
                    u.offset,
                    u.box,
                    u.over,
                    u.buffer,
                ) and t.strides == u.strides
                if same and (o.name, p.name) in pointwise(sig):
                    continue
                if not self._one_place(t, u, ctx):
                    out.add(9, "alias", f"operands {o.name} and {p.name} overlap", n)

    def _parted(self, t: Target, u: Target, ctx: Context) -> bool:
        return self.facts.parted(t.hole, u.hole, ctx)

    def _one_place(self, t, u, ctx: Context) -> bool:
        """Two tiles of one buffer in its own layout overlap only where their elements do."""
        f = self.facts.make(u.buffer, u.spot, u.cells, u.offset, u.strides, u.box, u.over)
        return self.facts.layout.same_layout(f, t, ctx) and disjoint(t.hull, u.hull, ctx)

    # loops ----------------------------------------------------------------------------------------------------------
    def _loop(self, n: Loop, entry: State, ctx: Context, out: Findings) -> State:
        before = entry.copy()
        self.run(n.enter, entry, ctx, out)
        first, last = n.lo[0].expr, last_value(n)
        peeled = (n.first is not None) + (n.last is not None)
        base, left = entry, None
        if n.first is not None:
            left = entry.copy()
            self.run(n.first, left, ctx.at(loop_var(n), first), out)
            base = self._at_value(left, n.var, first)
        end = base
        made: list[Fact] = []
        if n.trip is None or n.trip > peeled:
            end, made = self._iterate(n, base, left, ctx, out)
        if n.last is not None:
            assert last is not None  # see ``check_loop``
            state = end.copy()
            for f in made:
                self._put(state, f, ctx)
            self.run(n.last, state, ctx.at(loop_var(n), last), out)
            end, made = self._at_value(state, n.var, last), []
        for f in made:
            self._put(end, f, ctx)
        self.run(n.exit, end, ctx, out)
        if not runs_surely(n, ctx):
            kept = [f for f in made if f in end.of.get(f.buffer, ())]
            ran, end = end, meet(before, end, self.facts, ctx)
            for f in kept:
                self._put(end, f, ctx)
            for f in ran if self.cuts else ():
                if f not in kept and f not in end.of.get(f.buffer, ()) and (g := self._where_some(n, f, loop_var(n))):
                    end.put(g)
        for f in made if n.trip is None and runs_once(n) else ():
            if f in end.of.get(f.buffer, ()):
                join_ended(end, f, self.facts, ctx)
        return end

    def _where_some(self, n: Loop, f: Fact, over: Var) -> Fact | None:
        """What holds where a loop has some of its iterations, said for each of these: nothing where it has none. What
        is under the same condition finds it there. The variable has one name for one loop, so that what a loop around
        leaves is what it left the last time."""
        v = self.ran.get((id(n), over))
        if v is None:
            v = self.ran[id(n), over] = replace(over, name=self.fresh())
        if f.cells is not None or f.holes or v.name in {w.name for w in f.over}:
            return None
        return self.facts.make(f.buffer, f.spot, None, f.offset, f.strides, f.box, (v, *f.over))

    def _body(self, n: Loop, state: State, ctx: Context, out: Findings) -> None:
        """One iteration. A dealt one finds nothing in the memories of its instance, and leaves nothing there, but in
        slots: those are told apart by instance."""
        if n.deal is None:
            self.run(n.body, state, ctx, out)
            return
        around = self.instance.get(n.deal.group, HERE)
        self._forget(n, state, around)
        self.instance[n.deal.group] = self.facts.instances.inside(n, around)
        self.run(n.body, state, ctx, out)
        self._forget(n, state, self.instance[n.deal.group])
        self.instance[n.deal.group] = around

    def _forget(self, n: Loop, state: State, instance: Instance) -> None:
        own, sorts = local(self.schedule, n.deal), self.facts.instances
        for f in list(state):
            if f.spot[0] not in own:
                continue
            if f.spot not in sorts.slots:
                state.drop(f)
            elif (name := sorts.name_of(f.spot[0])) in f.names:
                state.drop(f)
                state.put(self.facts.moved(f, sorts.said(f.offset, name, instance)))

    def _iterate(
        self, n: Loop, base: State, left: State | None, ctx: Context, out: Findings
    ) -> tuple[State, list[Fact]]:
        """The state after the middle iterations, without and with what mentions the variable."""
        middle = span(n, n.first is not None, n.last is not None)
        inner = ctx.entered(middle.desc)
        if n.deal is not None:
            here = self.instance.get(n.deal.group, HERE)
            self._forget(n, base, here)  # of an iteration the variable of the instance has another value
            given = self.facts.instances.inside(n, here)
            inner = inner.with_var(self.facts.instances.var(n.deal.group, given))
        if middle.once or (n.trip is None and runs_once(n)):
            guess, end, found = base, base.copy(), Findings()
            self._body(n, end, inner, found)
        else:
            guess, end, found = self._closed(n, base, inner, middle, ctx)
        made = self._made(n, end, left, middle, ctx)
        if len(found) and not n.serpentine and (extra := self._history(n, base, end, middle, ctx, made)):
            end, found = self._once_more(n, guess, extra, inner)
        out.extend(found.found)
        final = forget(end, n.var, middle, self.facts)
        last = middle.first if n.trip is None and runs_once(n) else middle.last
        if last is not None and not n.serpentine:
            # what the last iteration left, with its value of the variable
            for f in end:
                if f.mentions(n.var):
                    self._put(final, self._sub(f, n.var, last), ctx)
        return final, [generalised(f, over, self.facts, self.fresh) for f, over in made]

    def _closed(
        self, n: Loop, base: State, inner: Context, middle: Span, ctx: Context
    ) -> tuple[State, State, Findings]:
        """A state that holds at the begin of every middle iteration, that at the end of one, what was found in it."""
        gone = self._overwritten(n, base)
        start = base.copy()
        for f in gone:
            start.drop(f)
        guess, end, found = self._fixpoint(n, start, inner, middle)
        if gone:
            over = forget(end, n.var, middle, self.facts)
            if len(found) or any(implied(over, f, self.facts, ctx) for f in gone):
                guess, end, found = self._fixpoint(n, base, inner, middle)
        return guess, end, found

    def _overwritten(self, n: Loop, base: State) -> list[Fact]:
        """Facts about cells in which the body puts another tile. A first guess without them is more often right; any
        guess is sound: it is checked."""
        written: dict[object, Target | None] = {**self.writes.cells(n.body)}

        def other(f: Fact, t: Target | None) -> bool:
            return t is None or (f.buffer, f.box, f.offset) != (t.buffer, t.box, t.offset)

        return [f for f in base if any(k in written and other(f, written[k]) for k in f.keys)]

    def _fixpoint(self, n: Loop, guess: State, inner: Context, middle: Span) -> tuple[State, State, Findings]:
        """The same, from what is guessed of the begin."""
        found = Findings()
        for _ in range(ROUNDS):
            state, found = guess.copy(), Findings()
            self._body(n, state, inner, found)
            new = meet(guess, forget(state, n.var, middle, self.facts), self.facts, inner, both=False)
            if set(new) == set(guess):
                return guess, state, found
            guess = new
        found.add(11, "closed", f"the state of loop '{n.var}' does not close: its end never equals its begin")
        return State(), State(), found  # of which nothing is known

    def _once_more(self, n: Loop, guess: State, extra: list[Fact], inner: Context) -> tuple[State, Findings]:
        """The end of an iteration, and what is found in it, where more is known at its begin."""
        state, found = guess.copy(), Findings()
        for f in extra:
            state.put(f)
        self._body(n, state, inner, found)
        return state, found

    def _made(self, n: Loop, end: State, left: State | None, middle: Span, ctx: Context) -> list[tuple[Fact, Span]]:
        """Facts at the end of an iteration that are about it, and that no later iteration may destroy: of a serpentine
        loop, no other one."""
        out = []
        logs = self.writes.seen_around(n, [w for p in (n.body, n.last) if p is not None for w in self.writes.of(p)])
        whole, any_time = span(n), ctx.with_var(loop_var(n))
        for f in end:
            if not f.mentions(n.var) or f.cells is not None:
                continue
            key = (f, id(n), any_time)
            if key not in self.lasting:
                alone = n.trip is None and runs_once(n)
                orders = () if alone else (False, True) if n.serpentine else (False,)
                self.lasting[key] = not f.holes and all(
                    survives(f, n.var, whole, logs, self.facts, any_time, self.fresh(), back) for back in orders
                )
            if self.lasting[key]:
                first_too = left is not None and f in left.of.get(f.buffer, ())
                out.append((f, span(n, False, n.last is not None) if first_too else middle))
        return out

    def _history(self, n: Loop, base: State, end: State, middle: Span, ctx: Context, made: list) -> list[Fact]:
        """What is true at the begin of an iteration of what earlier ones left: what the one before has at its end, or
        the state before the loop in its place, and what none since has destroyed. What only an iteration has left is
        said of those that have one before them."""
        out = [generalised(f, earlier(n, over.first != n.lo[0].expr), self.facts, self.fresh) for f, over in made]
        before = earlier(n, n.first is not None).desc
        for f in end:
            moved = self._sub(f, n.var, Affine.of(n.var, 1, -n.step))
            begun = middle.first is not None and self._sub(moved, n.var, middle.first)
            known = moved if begun and implied(base, begun, self.facts, ctx) else self._where_some(n, moved, before)
            out += [] if known is None else [known]
        return out

    def _at_value(self, state: State, var: str, value: Affine) -> State:
        out = State()
        for f in state:
            out.put(self._sub(f, var, value) if f.mentions(var) or any(h.moves(var) for h in f.holes) else f)
        return out

    def _sub(self, f: Fact, var: str, value: Affine) -> Fact:
        return substituted(f, var, value, self.facts)

    def _put(self, state: State, f: Fact, ctx: Context) -> None:
        """Adds a fact, joined with those of its layout."""
        add(state, f, self.facts, ctx)

    def fresh(self) -> str:
        self._fresh += 1
        return f"^{self._fresh}"
