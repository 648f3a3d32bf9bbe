"""Obligations 1, 4 and 5 on the tree: every point once, and nothing before what it depends on.

``Done(node)`` is the set of statement instances a node executes, as families of boxes; it does not depend on any state.
Walking the tree with what has been done so far, every step must find all earlier instances that conflict with it in
the done set: written before read, read before overwritten, initialised before accumulated (positive form: no negative
facts are needed, and what is done stays done, so loops need no induction beyond "the earlier iterations").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import NamedTuple

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Statement
from isam.proof.behind import Steps
from isam.proof.bounds import check_bounds
from isam.proof.boxes import (
    ONCE,
    TWICE,
    UNKNOWN,
    Box,
    Family,
    Span,
    at_value,
    box_of,
    covered,
    earlier,
    lifted,
    merge,
    span,
)
from isam.proof.context import Context, Var, last_value, loop_var, of_sizes
from isam.proof.geometry import is_float, recurrent_loops
from isam.proof.inside import same_digits
from isam.proof.instances import around
from isam.proof.legal import Legality
from isam.proof.preimage import before_boxes, never_meet, preimage, touched, within
from isam.proof.sets import OUT, Isl
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Issue, Loop, Node, Schedule, Seq

Item = tuple[Family, int]  # and ONCE, UNKNOWN or TWICE
Items = dict[int, list[Item]]
Done = dict[int, list[Family]]


class Conflict(NamedTuple):
    """Instances of ``before`` that touch what ``after`` touches must precede it. ``kind``: flow, anti, output."""

    before: int
    first: Access
    after: int
    second: Access
    kind: str
    textual: bool  # also within one step of the recurrent loops around both


@dataclass(slots=True)
class Order:
    """Judges the order of one schedule. Its steps must be legal (see ``Legality``)."""

    schedule: Schedule
    legality: Legality
    isl: Isl
    out: Findings
    names: dict[int, tuple[str, ...]] = field(default_factory=dict)
    domains: dict[int, Box] = field(default_factory=dict)
    loops: list[tuple[tuple[int, Axis], ...]] = field(default_factory=list)  # around each statement
    contracted: frozenset[int] = frozenset()
    conflicts: dict[int, list[Conflict]] = field(default_factory=dict)
    ordered: frozenset[int] = frozenset()
    single: set[int] = field(default_factory=set)  # nests whose steps must be judged one by one
    phase: str = "call"
    _done: dict[int, Items] = field(default_factory=dict)
    _common: dict[tuple[int, ...], dict[int, Counter[Item]]] = field(default_factory=dict)  # see ``_shared``
    _digits: dict[Conflict, dict[str, str]] = field(default_factory=dict)
    _bases: dict[object, Box] = field(default_factory=dict)  # instances of a statement that touch some elements
    _steps: Steps = field(init=False)
    _fresh: int = 0

    def __post_init__(self) -> None:
        k = self.schedule.cover.kernel
        self.loops = recurrent_loops(k)
        for i, s in enumerate(k.statements):
            outer = self.legality.outer[i]
            self.names[i] = (*(a.name for a in outer), *s.domain.names)
            self.domains[i] = tuple((Affine(), a.extent) for a in (*outer, *s.domain.axes))
        self.contracted = frozenset(
            i for n in range(len(self.schedule.nests)) for i in self.legality.semantics(n).contracted
        )
        cut = frozenset(i for i, s in enumerate(k.statements) if s.domain.where and self._counted(i))
        self._steps = Steps(self.schedule, cut, len(around(self.schedule)))
        self._find_conflicts()

    def _find_conflicts(self) -> None:
        k = self.schedule.cover.kernel
        hidden = {k.statements[i].dest.buffer for i in self.contracted}
        exact = "reassociate" not in k.permits
        self.ordered = frozenset(
            i
            for i, s in enumerate(k.statements)
            if exact and s.accumulate and s.reduces and is_float(k.buffer(s.dest.buffer).dtype)
        )
        touches = [(i, a, w) for i, s in enumerate(k.statements) for a, w in _accesses(s) if a.buffer not in hidden]
        for j, b, writes in touches:
            for i, a, wrote in touches:
                apart = a.buffer != b.buffer or not (writes or wrote) or never_meet(a, b)
                if not apart and self._ordered_pair(i, a, j, b) and not self._beside(i, a, j, b):
                    kind = "output" if writes and wrote else "flow" if wrote else "anti"
                    self.conflicts.setdefault(j, []).append(Conflict(i, a, j, b, kind, i < j))
        for n, nest in enumerate(self.schedule.nests):
            mine = set(self.schedule.cover.mappings[nest.mapping].statements)
            if mine & self.ordered or any(c.before in mine for j in mine for c in self.conflicts.get(j, ())):
                self.single.add(n)

    def _beside(self, i: int, a: Access, j: int, b: Access) -> bool:
        """Whether conditions keep what ``i`` touches apart from what ``j`` touches, in whatever steps of loops."""
        one, two = (self.schedule.cover.kernel.statements[n].domain for n in (i, j))
        if not (one.where and two.where) or (a.index == b.index and one == two):
            return False
        outer = self.legality.outer
        return self.isl.apart((one, outer[i], a), (two, outer[j], b))

    def _ordered_pair(self, i: int, a: Access, j: int, b: Access) -> bool:
        """Whether conflicting instances of ``i`` come before those of ``j`` at all."""
        if i < j:
            return True
        if self._around_both(i, j):
            return True
        return i == j and a.index != b.index

    def _around_both(self, i: int, j: int) -> list[str]:
        """The axes of the recurrent loops that are around two statements."""
        pairs = zip(self.loops[i], self.loops[j], strict=False)
        return [axis.name for (one, axis), (two, _) in pairs if one == two]

    def _counted(self, i: int) -> bool:
        """Whether obligation 1 is shown of a statement, or of one that the same steps execute at the same points."""
        if i not in self.contracted:
            return True
        cover = self.schedule.cover
        mine = next(m.statements for m in cover.mappings if i in m.statements)
        form = self.names[i], self.domains[i], cover.kernel.statements[i].domain.where
        return any(
            (self.names[j], self.domains[j], cover.kernel.statements[j].domain.where) == form
            for j in mine
            if j not in self.contracted
        )

    # what a node executes -------------------------------------------------------------------------------------------
    def done(self, node: Node) -> Items:
        got = self._done.get(id(node))
        if got is None:
            if isinstance(node, Issue):
                got = self._issue_items(node)
            elif isinstance(node, Seq):
                got = self._merged([self.done(c) for c in node.children])
            else:
                got = self._loop_items(node)
            self._done[id(node)] = got
        return got

    def _issue_items(self, issue: Issue) -> Items:
        if issue.nest is None:
            return {}
        m = self.schedule.cover.mappings[self.schedule.nests[issue.nest].mapping]
        extents = self.legality.signature(issue).extents
        played = {k: extents[i] for i, k in m.axes}
        point = dict(issue.point)
        out: Items = {}
        for i in m.statements:
            names = self.names[i]
            box = box_of((point[n] for n in names), (played.get(n, 1) for n in names))
            out[i] = [(Family(box), ONCE)]
        return out

    def fresh(self) -> str:
        self._fresh += 1
        return f"~{self._fresh}"

    def _lift(self, items: Iterable[Item], over: Span) -> list[Item]:
        out = []
        for f, sure in items:
            g, again = lifted(f, over, self.fresh())
            out.append((g, max(sure, again)))
        return out

    def _loop_items(self, n: Loop) -> Items:
        if n.trip == 0:
            return {}
        parts = [
            self._guarded(n, self.done(n.enter)),
            self._guarded(n, self.done(n.exit)),
            self._all(n, span(n), span(n, n.first is not None, n.last is not None)),
        ]
        first, last = n.lo[0].expr, last_value(n)
        for node, value in ((n.first, first), (n.last, last)):
            if node is not None:
                parts.append(self._extra(n, node, value))
        return self._merged(parts)

    def _guarded(self, n: Loop, items: Items) -> Items:
        """What runs once if the loop runs at all."""
        if n.trip is not None:
            return items
        lo, first = loop_var(n), span(n).first
        hi = lo.hi if first is None else (Bound(first), *lo.hi)
        once = Var(self.fresh(), lo.lo, hi, lo.step, lo.origin)
        return {i: [(Family(f.box, (once, *f.over)), max(sure, UNKNOWN)) for f, sure in xs] for i, xs in items.items()}

    def _shared(self, n: Loop) -> dict[int, Counter[Item]]:
        """What every body of a loop has, as often as all of them have it."""
        bodies = [p for p in (n.body, n.first, n.last) if p is not None]
        key = tuple(map(id, bodies))
        if key not in self._common:
            body, *peeled = map(self.done, bodies)
            out = {i: Counter(items) for i, items in body.items()}
            for other in peeled:
                out = {i: c & Counter(other.get(i, ())) for i, c in out.items()}
            self._common[key] = out
        return self._common[key]

    def _all(self, n: Loop, whole: Span, middle: Span) -> Items:
        """Items of the iterations: what every body has over the ``whole`` span, the body's own over ``middle``."""
        out: Items = {}
        for i, both in self._shared(n).items():
            own = Counter(self.done(n.body)[i]) - both
            out[i] = [*self._lift(both.elements(), whole), *self._lift(own.elements(), middle)]
        return out

    def _extra(self, n: Loop, node: Node, value: Affine | None) -> Items:
        """Items of a peeled body that are not in every body."""
        assert value is not None  # see ``check_loop``
        shared = self._shared(n)
        out: Items = {}
        for i, items in self.done(node).items():
            mine = Counter(items) - shared.get(i, Counter())
            out[i] = [(at_value(f, n.var, value), sure) for f, sure in mine.elements()]
        return out

    def _merged(self, parts: list[Items]) -> Items:
        out: Items = {}
        for p in parts:
            for i, items in p.items():
                out.setdefault(i, []).extend(items)
        every = self.legality.everywhere
        return {
            i: [
                (f, sure)
                for sure in (ONCE, UNKNOWN, TWICE)
                for f in merge((g for g, known in items if known == sure), ctx=every)
            ]
            for i, items in out.items()
        }

    # obligation 1 ---------------------------------------------------------------------------------------------------
    def check_points(self, trees: list[Node], ctx: Context) -> None:
        """Every point of every statement that reaches memory is executed exactly once."""
        total = self._merged([self.done(t) for t in trees])
        for i, s in enumerate(self.schedule.cover.kernel.statements):
            if i in self.contracted:
                continue
            items = total.get(i, [])
            families = [f for f, _ in items]
            if not s.domain.where and len(items) == 1 and items[0] == (Family(self.domains[i]), ONCE):
                continue
            ok, why = self.isl.exactly_once(
                families, [sure for _, sure in items], self.domains[i], s.domain.where, self.names[i], ctx
            )
            if not ok:
                self.out.add(1, "coverage", f"statement {i} ({s.dest} {s.op}): {why}")

    # obligations 4, 5, 7 --------------------------------------------------------------------------------------------
    def check(self) -> None:
        s = self.schedule
        self.check_points([s.bind, s.call], self.legality.context(of_sizes(s.cover.kernel.syms).vars))
        ctx = self.legality.context(around(s))
        before: Done = {}
        for phase, tree in (("bind", s.bind), ("call", s.call)):
            self.phase = phase
            self.walk(tree, ctx, before)
            before = _after(before, self.done(tree))

    def walk(self, node: Node, ctx: Context, before: Done) -> Done:
        """Checks a node given what is done before it; returns what is done after it."""
        if isinstance(node, Seq):
            return self._walk_seq(node, ctx, before)
        if isinstance(node, Loop):
            self._walk_loop(node, ctx, before)
        else:
            self._visit(node, ctx)
            self._judge(node, self.done(node), ctx, before)
        return _after(before, self.done(node))

    def _walk_seq(self, node: Seq, ctx: Context, before: Done) -> Done:
        run: list[Issue] = []
        judged = 0
        for k, c in enumerate((*node.children, None)):
            if isinstance(c, Issue):
                self._visit(c, ctx)
                if c.nest is None or not run or (c.nest == run[0].nest and c.nest not in self.single):
                    run += (c,) if c.nest is not None else ()
                    continue
            before = self._behind(node, judged, k, ctx, self._flush(run, ctx, before))
            judged = k
            if isinstance(c, Issue):
                run.append(c)
            elif c is not None:
                before = self._behind(node, k, k + 1, ctx, self.walk(c, ctx, before))
                judged = k + 1
        return before

    def _behind(self, node: Seq, judged: int, parts: int, ctx: Context, before: Done) -> Done:
        """What is done behind some parts of a sequence, in one box of each statement whose last step is in them, behind
        those ``judged`` before."""
        last = self._steps.last(node)
        for i, whole in self._whole(node, (i for i in last if judged < last[i] <= parts), ctx):
            mine = [f for f, _ in self.done(node)[i]]
            before = {**before, i: [whole, *(f for f in before[i] if f not in mine)]}
        return before

    def _whole(self, node: Node, statements: Iterable[int], ctx: Context) -> Iterator[tuple[int, Family]]:
        """All that a node does of statements of which it has all steps, in one box each."""
        for i in statements:
            mine = [f for f, _ in self.done(node).get(i, ())]
            whole = self._steps.whole(mine, self.domains[i], ctx) if len(mine) > 1 else None
            if whole is not None:
                yield i, whole

    def _flush(self, run: list[Issue], ctx: Context, before: Done) -> Done:
        """A run of steps of one nest: judged together."""
        if not run:
            return before
        items = self._merged([self.done(c) for c in run])
        self._judge(run[0], items, ctx, before)
        run.clear()
        return _after(before, items)

    def _walk_loop(self, n: Loop, ctx: Context, before: Done) -> None:
        if n.trip == 0:
            return
        before = self.walk(n.enter, ctx, before)
        first, last = n.lo[0].expr, last_value(n)
        extra = self._extra(n, n.first, first) if n.first is not None else {}
        if n.first is not None:
            self.walk(n.first, ctx.at(loop_var(n), first), before)
        peeled = (n.first is not None) + (n.last is not None)
        if n.trip is None or n.trip > peeled:
            inner = ctx.with_var(span(n, n.first is not None, n.last is not None).desc)
            history = {} if n.serpentine else self._all(n, earlier(n), earlier(n, n.first is not None))
            for i, whole in self._whole(n.body, self._steps.last(n.body), inner) if history else ():
                history[i] = self._lift([(whole, ONCE)], earlier(n, n.first is not None))
            self.walk(n.body, inner, _after(_after(before, history), extra))
        if n.last is not None:
            assert last is not None  # see ``check_loop``
            history = self._all(n, span(n, False, True), span(n, n.first is not None, True))
            self.walk(n.last, ctx.at(loop_var(n), last), _after(_after(before, history), extra))
        if n.exit != Seq():
            own = Loop(n.var, n.lo, n.hi, n.step, n.body, Seq(), n.first, n.last)
            self.walk(n.exit, ctx, _after(before, self._loop_items(own)))

    def _visit(self, issue: Issue, ctx: Context) -> None:
        check_bounds(issue, self.legality, ctx, self.isl, self.phase, self.out)

    def _judge(self, issue: Issue, items: Items, ctx: Context, before: Done) -> None:
        """Everything that must precede these instances is done."""
        mine = (
            self.schedule.cover.mappings[self.schedule.nests[issue.nest].mapping].statements
            if issue.nest is not None
            else ()
        )
        inside: Done = {}
        for j in mine:
            for f, _ in items.get(j, ()):
                known: dict[object, bool] = {}
                for c in self.conflicts.get(j, ()):
                    key = c.before, c.first.index, c.second.index  # of which alone the question is made
                    if key not in known:
                        known[key] = self._precedes(c, f.box, ctx, before, inside)
                    if not known[key]:
                        self._late(c, issue)
                if j in self.ordered:
                    self._lexicographic(j, f.box, ctx, before, issue)
            inside[j] = [f for f, _ in items.get(j, ())]

    def _precedes(self, c: Conflict, box: Box, ctx: Context, before: Done, inside: Done) -> bool:
        """Whether everything is done that must be, of the first statement, before the second one's ``box``."""
        elements = touched(c.second, box, self.names[c.after])
        asked = c.before, c.first.index, elements, ctx
        base = self._bases.get(asked)
        if base is None:
            base = preimage(c.first, elements, self.names[c.before], self.domains[c.before], ctx)
            self._bases[asked] = base
        if alike := self._alike(c):
            base = within(base, self.names[c.before], alike, dict(zip(self.names[c.after], box, strict=True)), ctx)
        have = [*before.get(c.before, []), *inside.get(c.before, [])]
        shared = self._around_both(c.before, c.after)
        own = dict(zip(self.names[c.after], box, strict=True))
        self_conflict = c.before == c.after and c.first.index != c.second.index
        if self_conflict:
            have.append(Family(box))
        targets = before_boxes(base, self.names[c.before], shared, own, c.textual or self_conflict, ctx)
        return all(self._holds(c.before, target, have, ctx) for target in targets)

    def _late(self, c: Conflict, issue: Issue) -> None:
        s = self.schedule.cover.kernel.statements
        obligation = 4 if s[c.before].accumulate or s[c.after].accumulate else 5
        text = {
            "flow": "reads what it has not yet written",
            "anti": "overwrites what it has yet to read",
            "output": "writes what it has yet to write",
        }[c.kind]
        what = f"statement {c.after} on '{c.first.buffer}'"
        if self.isl.left < 0:
            why = f"to judge whether {what} runs before statement {c.before} is done there takes {OUT}"
            self.out.add(obligation, "budget", why, issue)
            return
        why = f"{what} runs before statement {c.before} is done there ({c.kind}: {text})"
        self.out.add(obligation, "order", why, issue)

    def _alike(self, c: Conflict) -> dict[str, str]:
        """Axes of the first statement that have the value of one of the second wherever both touch one element, and
        that no interval of elements tells: digits of one number in both."""
        got = self._digits.get(c)
        if got is None:
            one, two = (self.schedule.cover.kernel.statements[i].domain for i in (c.before, c.after))
            got = self._digits[c] = {}
            for r, s in zip(c.first.index, c.second.index, strict=True):
                if len(r.terms) > 1 and r.const == s.const:
                    got |= same_digits(r, one, s, two)
        return got

    def _holds(self, statement: int, target: Box, have: list[Family], ctx: Context) -> bool:
        where = self.schedule.cover.kernel.statements[statement].domain.where
        if not self.isl.spend(1 + len(have)):
            return False
        if covered(target, have, ctx):
            return True
        return self.isl.covers(target, have, ctx, where, self.names[statement])

    def _lexicographic(self, j: int, box: Box, ctx: Context, before: Done, issue: Issue) -> None:
        """Without leave to reassociate: all terms before this one, in order of the axes, have been added."""
        s = self.schedule.cover.kernel.statements[j]
        names = self.names[j]
        own = dict(zip(names, box, strict=True))
        wide = [a for a in s.reduces if (own[a][1] - own[a][0]) != Affine((), 1)]
        assert issue.nest is not None  # else nothing is added
        m = self.schedule.cover.mappings[self.schedule.nests[issue.nest].mapping]
        played = {k: i for i, k in m.axes}
        order = [a for st in m.instruction.body.statements[-1:] for a in st.domain.names]
        full = (
            all(own[a] == (Affine(), s.domain.extent(a)) for a in s.reduces[s.reduces.index(wide[0]) + 1 :])
            if wide
            else True
        )
        turns = [order.index(played[a]) for a in wide]  # only what an instruction plays is wide
        if not full or turns != sorted(turns):
            self.out.add(3, "reassociate", f"statement {j} adds terms out of order within a step", issue)
            return
        base = tuple(own[n] if n not in s.reduces else (Affine(), s.domain.extent(n)) for n in names)
        for target in before_boxes(base, names, list(s.reduces), own, False, ctx):
            if not self._holds(j, target, before.get(j, []), ctx):
                if self.isl.left < 0:
                    self.out.add(3, "budget", f"to judge whether statement {j} adds terms in order takes {OUT}", issue)
                else:
                    self.out.add(3, "reassociate", f"statement {j} adds terms out of order", issue)
                return


def _accesses(s: Statement) -> list[tuple[Access, bool]]:
    return [(s.dest, True), *((a, False) for a in s.sources if isinstance(a, Access))]


def _after(before: Done, items: Items) -> Done:
    if not items:
        return before
    out = dict(before)
    for i, more in items.items():
        out[i] = merge((f for f, _ in more), out.get(i, ()))
    return out
