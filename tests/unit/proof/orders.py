"""Trees of steps for the judge of their order, and what it should say of them: every instance in turn.

Steps are said to be what their nests say, in tiles of a size of their own: no machine, no place is looked at.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from types import SimpleNamespace
from typing import Any

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Kernel, Recurrence
from isam.ir.mapping import Cover
from isam.ir.text import parse_kernel
from isam.proof.context import Context, Var
from isam.proof.geometry import recurrent_axes, recurrent_loops
from isam.proof.order import Order
from isam.proof.scope import everywhere
from isam.proof.sets import Isl
from isam.proof.violation import Findings
from isam.schedule.tree import Bound, Issue, Loop, Nest, Node, Schedule, Seq
from tests.unit.proof.handmade import tiny_matmul

V = Affine.of
Point = tuple[int, ...]
Instance = tuple[int, Point]  # statement, and where


@dataclass
class Tiles:
    """Says of a step that its tile has the sizes that it names, and nothing else against it."""

    schedule: Schedule
    hidden: frozenset[int] = frozenset()  # statements whose result stays in the unit
    contexts: dict[tuple[Var, ...], Context] = field(default_factory=dict)
    bounded: dict[Any, Any] = field(default_factory=dict)

    @property
    def everywhere(self) -> Context:
        return self.context(everywhere(self.schedule))

    @property
    def outer(self) -> list[tuple[Axis, ...]]:
        return recurrent_axes(self.schedule.cover.kernel)

    def signature(self, issue: Issue) -> Any:
        return SimpleNamespace(extents=dict(issue.sizes), instruction=None)

    def semantics(self, nest: int) -> Any:
        mine = self.schedule.cover.mappings[self.schedule.nests[nest].mapping].statements
        return SimpleNamespace(contracted=self.hidden & set(mine))

    def context(self, vars_: tuple[Var, ...]) -> Context:
        return self.contexts.setdefault(vars_, Context(vars_))


def kernel(text: str, permits: str = "reassociate", sizes: str = "") -> Kernel:
    return parse_kernel(f"kernel k({sizes})\n  permits {permits}\n" + "".join(f"  {x}\n" for x in text.splitlines()))


def schedule(k: Kernel, groups: list[tuple[int, ...]], bind: Node, call: Node, turned: bool = False) -> Schedule:
    """A nest for each group of statements; their axes are played by an instruction's of the same names, whose last
    statement has them in the kernel's order, or (``turned``) the other way round."""
    outer, mappings, nests = recurrent_axes(k), [], []
    for n, g in enumerate(groups):
        axes = k.statements[g[-1]].domain.names
        own = SimpleNamespace(domain=SimpleNamespace(names=axes[::-1] if turned else axes))
        products = SimpleNamespace(domain=SimpleNamespace(names=own.domain.names[::-1]))
        body = SimpleNamespace(statements=(products, own))
        mappings.append(SimpleNamespace(statements=g, axes=tuple((a, a) for a in axes),
                                        instruction=SimpleNamespace(body=body)))  # fmt: skip
        every = (*outer[g[-1]], *k.statements[g[-1]].domain.axes)
        nests.append(Nest(n, tuple((a.name, a.extent) for a in every)))
    made: Any = tuple(mappings)
    return Schedule(k, tiny_matmul().system, Cover(k, k, made), tuple(nests), bind, call, (), {})


def step(nest: int, point: dict[str, Affine | int], tile: dict[str, int]) -> Issue:
    return Issue("mm", "any", tuple(tile.items()), (), nest, tuple((n, Affine.lift(e)) for n, e in point.items()))


# what happens ---------------------------------------------------------------------------------------------------------
def carried_out(n: Node, env: dict[str, int]) -> Iterator[tuple[Issue, dict[str, int]]]:
    if isinstance(n, Issue):
        yield n, env
    elif isinstance(n, Seq):
        for c in n.children:
            yield from carried_out(c, env)
    else:
        values = n.values(env)
        if values:
            yield from carried_out(n.enter, env)
        for at, v in enumerate(values):
            part = n.first if at == 0 and n.first else n.last if v == values[-1] and n.last else n.body
            yield from carried_out(part, {**env, n.var: v})
        if values:
            yield from carried_out(n.exit, env)


def instances(s: Schedule, env: dict[str, int], turned: bool) -> list[list[Instance]]:
    """Per step, what it executes: statement by statement, each in the order of the instruction's axes."""
    k, outer, out = s.cover.kernel, recurrent_axes(s.cover.kernel), []
    for issue, scope in [x for t in (s.bind, s.call) for x in carried_out(t, env)]:
        assert issue.nest is not None
        tile, point, here = dict(issue.sizes), dict(issue.point), []
        for i in s.cover.mappings[s.nests[issue.nest].mapping].statements:
            names = (*(a.name for a in outer[i]), *k.statements[i].domain.names)
            order = names[::-1] if turned else names
            for at in product(*(range(tile.get(n, 1)) for n in order)):
                by = dict(zip(order, at, strict=True))
                here.append((i, tuple(point[n].evaluate(scope) + by[n] for n in names)))
        out.append(here)
    return out


def wrong(s: Schedule, hidden: frozenset[int], env: dict[str, int], turned: bool = False) -> set[int]:
    """The obligations that what happens does not meet: 1 once each, 3 sums in order, 5 (or 4) everything in order."""
    k, outer, loops = s.cover.kernel, recurrent_axes(s.cover.kernel), recurrent_loops(s.cover.kernel)
    steps = instances(s, env, turned)
    out: set[int] = set()
    when: dict[Instance, int] = {}
    turn: dict[Instance, int] = {}
    count = Counter(x for some in steps for x in some)
    for at, some in enumerate(steps):
        for x in some:
            turn[x] = len(turn)
            when[x] = at
    for i, st in enumerate(k.statements):
        names, want = (*(a.name for a in outer[i]), *st.domain.names), set[Instance]()
        sizes = [a.extent.evaluate(env) for a in (*outer[i], *st.domain.axes)]
        for p in product(*map(range, sizes)):
            if all(w.evaluate({**env, **dict(zip(names, p, strict=True))}) >= 0 for w in st.domain.where):
                want.add((i, p))
        got = Counter({x: n for x, n in count.items() if x[0] == i})
        if i not in hidden and got != Counter(want):
            out.add(1)
    if out:
        return out  # what is done twice or never has no place in an order
    secret = {k.statements[i].dest.buffer for i in hidden}
    touches: dict[tuple[str, Point], list[tuple[Instance, Access, bool]]] = {}
    for x in when:
        st = k.statements[x[0]]
        at = {**env, **dict(zip((*(a.name for a in outer[x[0]]), *st.domain.names), x[1], strict=True))}
        for a, writes in [(st.dest, True), *((a, False) for a in st.sources if isinstance(a, Access))]:
            if a.buffer not in secret:
                e = a.buffer, tuple(r.evaluate(at) for r in a.index)
                touches.setdefault(e, []).append((x, a, writes))
    for some in touches.values():
        for (x, a, w), (y, b, v) in product(some, repeat=2):
            if (w or v) and x != y and before(x, a, y, b, loops):
                same = when[x] == when[y] and (x[0] < y[0] or (x[0] == y[0] and a.index != b.index))
                if not (when[x] < when[y] or same):
                    out.add(5)
    for i, st in enumerate(k.statements):
        if "reassociate" not in k.permits and st.accumulate and k.buffer(st.dest.buffer).dtype[0] == "f" and st.reduces:
            mine = sorted((x for x in turn if x[0] == i), key=turn.__getitem__)
            summed = [n for n, a in enumerate(st.domain.axes) if a.name in st.reduces]
            deep = len(outer[i])
            terms: dict[Point, list[Point]] = {}
            for _, p in mine:
                rest = tuple(v for n, v in enumerate(p) if n - deep not in summed)
                terms.setdefault(rest, []).append(tuple(p[deep + n] for n in summed))
            if any(t != sorted(t) for t in terms.values()):
                out.add(3)
    return out


def before(x: Instance, a: Access, y: Instance, b: Access, loops: list[tuple[tuple[int, Axis], ...]]) -> bool:
    """Whether the kernel has the first before the second; of one statement's instances without a loop between, where
    one reads what another writes, each counts as before the other: they must be one step."""
    shared = 0
    for one, two in zip(loops[x[0]], loops[y[0]], strict=False):
        if one != two:
            break
        shared += 1
    p, q = x[1][:shared], y[1][:shared]
    if p != q:
        return p < q
    return x[0] < y[0] or (x[0] == y[0] and a.index != b.index)


def judged(s: Schedule, hidden: frozenset[int] = frozenset()) -> list[tuple[int, str, str]]:
    lg: Any = Tiles(s, hidden)
    out = Findings()
    Order(s, lg, Isl(), out).check()
    return [(v.obligation, v.kind, v.message) for v in out.found]


# trees ----------------------------------------------------------------------------------------------------------------
class Trees:
    """Random trees: each statement's loops, fused where two have the same, cut, peeled, exchanged; and spoilt."""

    def __init__(self, choose: random.Random, k: Kernel, groups: list[tuple[int, ...]], tiles: dict[str, int]):
        self.choose, self.k, self.groups = choose, k, groups
        self.outer = recurrent_axes(k)
        self.tiles = tiles  # per axis the size of a tile
        self.plain = choose.random() < 0.4  # loops that can be fused
        self.number = 0

    def fresh(self, axis: str) -> str:
        self.number += 1
        return f"{axis}{self.number}"

    def around(self, axes: list[tuple[str, Affine]], point: dict[str, Affine], leaf: Any) -> Node:
        """Loops over axes, outermost first, around what ``leaf`` makes of the point."""
        if not axes:
            return leaf(point)
        (name, extent), *rest = axes
        tile, choose = self.tiles.get(name, 1), self.choose
        var = self.fresh(name)
        if self.plain and choose.random() < 0.9:
            return Loop(var, (at(0),), (at(extent),), tile, self.around(rest, {**point, name: V(var)}, leaf))
        if extent.is_constant and choose.random() < 0.3 and extent.const > 2 * tile:
            cut = tile * choose.randint(1, extent.const // tile - 1)  # two loops, one after the other
            other = self.fresh(name)
            return Seq((
                Loop(var, (at(0),), (at(cut),), tile, self.around(rest, {**point, name: V(var)}, leaf)),
                Loop(other, (at(cut),), (at(extent),), tile, self.around(rest, {**point, name: V(other)}, leaf)),
            ))  # fmt: skip
        if extent.is_constant and choose.random() < 0.3:
            block, inner = tile * choose.randint(1, 3), self.fresh(name)  # blocks, and what is in each
            his = (at(V(var) + block), at(extent))
            made = Loop(inner, (at(V(var)),), his if extent.const % block else his[:1], tile,
                        self.around(rest, {**point, name: V(inner)}, leaf))  # fmt: skip
            return Loop(var, (at(0),), (at(extent),), block, made)
        if extent.is_constant and extent.const <= 4 * tile and choose.random() < 0.15:  # one after the other, no loop
            each = [self.around(rest, {**point, name: Affine((), v)}, leaf) for v in range(0, extent.const, tile)]
            if choose.random() < 0.3:
                choose.shuffle(each)
            return Seq(tuple(each))
        body = self.around(rest, {**point, name: V(var)}, leaf)
        made = Loop(var, (at(0),), (at(extent),), tile, body)
        return self.peeled(made, lambda: self.around(rest, {**point, name: V(var)}, leaf))

    def peeled(self, made: Loop, again: Any) -> Loop:
        for part in ("first", "last"):
            if made.trip is not None and self.choose.random() < 0.25:
                body = made.body if self.choose.random() < 0.3 else again()
                new = replace(made, **{part: body})
                if made.trip >= (new.first is not None) + (new.last is not None):
                    made = new
        return made

    def of(self, items: tuple[Any, ...], first: int, loops: dict[str, Affine]) -> Node:
        """The trees of a kernel's items, of which the first statement has that number."""
        out: list[Node] = []
        for it in items:
            if isinstance(it, Recurrence):
                var = self.fresh(it.axis.name)
                inside = {**loops, it.axis.name: V(var)}
                made = Loop(var, (at(0),), (at(it.axis.extent),), 1, self.of(it.body, first, inside))
                first_ = first
                out.append(self.peeled(made, lambda b=it.body, i=inside, n=first_: self.of(b, n, i)))
                first += count(it.body)
            else:
                out += self.nest(first, loops)
                first += 1
        return self.fused(out)

    def nest(self, i: int, loops: dict[str, Affine]) -> list[Node]:
        n = next(n for n, g in enumerate(self.groups) if i in g)
        if i != self.groups[n][-1]:
            return []
        s = self.k.statements[i]
        axes = [(a.name, a.extent) for a in s.domain.axes]
        if self.choose.random() < 0.4:
            self.choose.shuffle(axes)
        tile = {a: self.tiles.get(a, 1) for a in s.domain.names}
        return [self.around(axes, dict(loops), lambda point: step(n, point, tile))]

    def fused(self, parts: list[Node]) -> Node:
        """In one loop what neighbours do in loops that are alike."""
        out: list[Node] = []
        for p in parts:
            q = out[-1] if out else None
            if (isinstance(p, Loop) and isinstance(q, Loop) and self.choose.random() < (0.8 if self.plain else 0.5)
                    and (p.lo, p.hi, p.step) == (q.lo, q.hi, q.step)
                    and (p.first, p.last, q.first, q.last) == (None,) * 4):  # fmt: skip
                body = moved(p.body, {p.var: V(q.var)})
                out[-1] = replace(q, body=Seq((q.body, body)))
                if self.choose.random() < 0.4 and q.trip:
                    part = self.choose.choice(("first", "last"))
                    out[-1] = replace(q, body=Seq((q.body, body)), **{part: Seq((Seq((q.body,)), body))})
            else:
                out.append(p)
        return Seq(tuple(out)) if len(out) != 1 else out[0]

    def spoilt(self, n: Node) -> Node:
        """Something somewhere is otherwise."""
        choose = self.choose
        if isinstance(n, Issue):
            if not n.point:
                return n
            name, e = choose.choice(n.point)
            point = dict(n.point) | {name: e + choose.choice((-1, 1, 1))}
            return replace(n, point=tuple(point.items()))
        if isinstance(n, Seq):
            if not n.children:
                return n
            at_, kids = choose.randrange(len(n.children)), list(n.children)
            how = choose.random()
            if how < 0.25 and len(kids) > 1:
                kids[at_], kids[at_ - 1] = kids[at_ - 1], kids[at_]
            elif how < 0.3:
                del kids[at_]
            elif how < 0.35:
                kids.append(kids[at_])
            elif how < 0.4:
                kids.append(Loop(self.fresh("n"), (at(1),), (at(1),), 1, kids[at_], exit=kids[at_]))  # which never runs
            elif how < 0.5 and at_ and isinstance(other := kids[at_ - 1], Loop):  # if that runs at all
                kids[at_ - 1 : at_ + 1] = [replace(other, exit=Seq((other.exit, kids[at_])))]
            elif how < 0.6 and at_ and isinstance(other := kids[at_], Loop):
                kids[at_ - 1 : at_ + 1] = [replace(other, enter=Seq((kids[at_ - 1], other.enter)))]
            else:
                kids[at_] = self.spoilt(kids[at_])
            return Seq(tuple(kids))
        parts = [p for p in ("body", "body", "first", "last", "enter", "exit") if getattr(n, p) not in (None, Seq())]
        how, part = choose.random(), choose.choice(parts or ["body"])
        if how < 0.08:
            by = choose.choice((-1, 1)) * choose.choice((1, n.step))
            lo = replace(n, lo=tuple(Bound(b.expr + by, b.div) for b in n.lo))
            hi = replace(n, hi=tuple(Bound(b.expr + by, b.div) for b in n.hi))
            return fitting(choose.choice((lo, hi)), n)
        if how < 0.12:
            return fitting(replace(n, step=n.step + choose.choice((1, -1)) or 1), n)
        if how < 0.25 and isinstance(n.body, Seq) and len(n.body.children) > 1:  # done once
            one, rest = n.body.children[0], Seq(n.body.children[1:])
            if choose.random() < 0.5:
                return fitting(replace(n, enter=Seq((n.enter, moved(one, {n.var: n.lo[0].expr}))), body=rest), n)
            return fitting(replace(n, exit=Seq((n.exit, moved(n.body.children[-1], {n.var: n.lo[0].expr}))),
                                   body=Seq(n.body.children[:-1])), n)  # fmt: skip
        if how < 0.3 and n.trip is not None:  # backwards
            last = n.lo[0].expr * 2 + n.step * (n.trip - 1)
            return replace(n, body=moved(n.body, {n.var: last - n.var}, bounds=False))
        return fitting(replace(n, **{part: self.spoilt(getattr(n, part))}), n)


def at(e: Affine | int) -> Bound:
    return Bound(Affine.lift(e))


def count(items: tuple[Any, ...]) -> int:
    return sum(count(it.body) if isinstance(it, Recurrence) else 1 for it in items)


def fitting(n: Loop, old: Loop) -> Loop:
    """What has the form of a loop."""
    peeled = (n.first is not None) + (n.last is not None)
    return old if peeled and (n.trip is None or n.trip < peeled) else n


def moved(n: Node, by: dict[str, Affine], bounds: bool = True) -> Node:
    if isinstance(n, Issue):
        return replace(n, point=tuple((a, e.substitute(by)) for a, e in n.point))
    if isinstance(n, Seq):
        return Seq(tuple(moved(c, by, bounds) for c in n.children))
    lo, hi = (tuple(Bound(b.expr.substitute(by), b.div) for b in x) for x in (n.lo, n.hi))
    parts = {p: moved(getattr(n, p), by, bounds) for p in ("body", "enter", "exit", "first", "last") if getattr(n, p)}
    return replace(n, lo=lo, hi=hi, **parts)
