"""Planted faults: every schedule that differs from a given one by one altered step, loop or slot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from isam.ir.affine import Affine
from isam.schedule.tree import Bound, Issue, Loop, Node, Operand, Schedule, Seq, children, distinct


def mutants(schedule: Schedule) -> Iterator[tuple[str, Schedule]]:
    """(what was done, the broken schedule); some are equivalent to the original."""
    for tree in ("bind", "call"):
        root = getattr(schedule, tree)
        seen: set[Node] = set()
        for node in distinct(root):
            if node in seen:
                continue
            seen.add(node)
            for what, new in altered(node, schedule):
                yield f"{tree}: {what}", replace(schedule, **{tree: put(root, node, new)})
    yield from around(schedule)


def put(root: Node, old: Node, new: Node) -> Node:
    """The tree with every occurrence of a node replaced."""
    if root is old or root == old:
        return new
    if isinstance(root, Seq):
        return Seq(tuple(put(c, old, new) for c in root.children))
    if isinstance(root, Loop):
        parts = {
            n: put(p, old, new)
            for n in ("enter", "first", "body", "last", "exit")
            if (p := getattr(root, n)) is not None
        }
        return replace(root, **parts)
    return root


def altered(node: Node, schedule: Schedule) -> Iterator[tuple[str, Node]]:
    if isinstance(node, Seq):
        yield from sequences(node)
    elif isinstance(node, Loop):
        yield from loops(node)
    else:
        yield from steps(node, schedule)


def sequences(node: Seq) -> Iterator[tuple[str, Node]]:
    c = node.children
    for i in range(len(c) - 1):
        yield "swap two neighbours", Seq((*c[:i], c[i + 1], c[i], *c[i + 2 :]))
    if len(c) > 2:
        yield "last first", Seq((c[-1], *c[:-1]))
        yield "first last", Seq((*c[1:], c[0]))


def loops(n: Loop) -> Iterator[tuple[str, Node]]:
    def moved(bounds: tuple[Bound, ...], by: int) -> tuple[Bound, ...]:
        return tuple(Bound(b.expr + by * b.div, b.div) for b in bounds)

    yield "one iteration fewer", replace(n, hi=moved(n.hi, -n.step))
    yield "one iteration more", replace(n, hi=moved(n.hi, n.step))
    yield "starts late", replace(n, lo=moved(n.lo, n.step))
    yield "starts one element late", replace(n, lo=moved(n.lo, 1), hi=moved(n.hi, 1))
    yield "steps twice as far", replace(n, step=2 * n.step)
    yield "no enter", replace(n, enter=Seq())
    yield "no exit", replace(n, exit=Seq())
    yield "enter is exit", replace(n, enter=n.exit, exit=n.enter)
    yield "exit in the body", replace(n, body=Seq((n.body, n.exit)), exit=Seq())
    yield "empty body", replace(n, body=Seq())
    yield "body twice", replace(n, body=Seq((n.body, n.body)))
    yield "other variable", replace(n, var=n.var + "x")
    if n.first is not None:
        yield "no first", replace(n, first=None)
        yield "first for all", replace(n, body=n.first)
        yield "first twice", replace(n, first=n.first, last=n.first)
    if n.last is not None:
        yield "no last", replace(n, last=None)
        yield "last for all", replace(n, body=n.last)


def steps(n: Issue, schedule: Schedule) -> Iterator[tuple[str, Node]]:
    yield "delete a step", Seq()
    yield "do a step twice", Seq((n, n))
    for u in schedule.system.units:
        if u != n.unit:
            yield "other unit", replace(n, unit=u)
    for i in schedule.system.instructions:
        if i != n.instruction:
            yield "other instruction", replace(n, instruction=i)
    for i, (s, v) in enumerate(n.sizes):
        yield "size less one", replace(n, sizes=(*n.sizes[:i], (s, v - 1), *n.sizes[i + 1 :]))
        yield "size times four", replace(n, sizes=(*n.sizes[:i], (s, 4 * v), *n.sizes[i + 1 :]))
    for i, (a, p) in enumerate(n.point):
        yield "point plus one", replace(n, point=(*n.point[:i], (a, p + 1), *n.point[i + 1 :]))
        yield "point to zero", replace(n, point=(*n.point[:i], (a, Affine()), *n.point[i + 1 :]))
    if n.nest is not None:
        yield "other nest", replace(n, nest=1 - n.nest)
        yield "no nest", replace(n, nest=None, point=())
    for i, o in enumerate(n.operands):
        for what, new in operands(o, n, schedule):
            yield f"operand {what}", replace(n, operands=(*n.operands[:i], new, *n.operands[i + 1 :]))
    if len(n.operands) > 1:
        a, b, *rest = n.operands
        swapped = (replace(a, name=b.name), replace(b, name=a.name), *rest)
        yield "operands exchanged", replace(n, operands=swapped)
        yield "operand missing", replace(n, operands=n.operands[1:])


def operands(o: Operand, n: Issue, schedule: Schedule) -> Iterator[tuple[str, Operand]]:
    t, p = o.tile, o.place
    if p.cell is not None:
        for c in (p.cell + 1, p.cell - 1, 0, 99):
            if c != p.cell:
                yield f"in cell {c - p.cell:+d}", replace(o, place=replace(p, cell=c))
    for by in (4, 16, -4, 2):
        yield f"offset {by:+d}", replace(o, place=replace(p, offset=p.offset + by))
    yield "offset zero", replace(o, place=replace(p, offset=Affine()))
    for d in range(len(t.start)):
        start = t.start[d]
        yield "tile one further", replace(o, tile=t._replace(start=(*t.start[:d], start + 1, *t.start[d + 1 :])))
        yield "tile at zero", replace(o, tile=t._replace(start=(*t.start[:d], Affine(), *t.start[d + 1 :])))
        yield "tile larger", replace(o, tile=t._replace(shape=(*t.shape[:d], t.shape[d] + 1, *t.shape[d + 1 :])))
        if t.shape[d] > 1:
            yield "tile steps", replace(o, tile=t._replace(steps=(*t.steps[:d], 2, *t.steps[d + 1 :])))
            k = p.strides[d]
            for new in (2 * k, 0, -k):
                yield "stride", replace(o, place=replace(p, strides=(*p.strides[:d], new, *p.strides[d + 1 :])))
    for m in schedule.system.memories:
        if m != p.memory:
            yield "other memory", replace(o, place=replace(p, memory=m))
    for b in schedule.cover.kernel.buffers:
        if b.name != t.buffer and len(b.shape) == len(t.start):
            yield "other buffer", replace(o, tile=t._replace(buffer=b.name))
            both = t._replace(buffer=b.name)
            others = tuple(replace(q, tile=both) if q.tile == t else q for q in n.operands)
            del others
        if p.base and b.name != p.base and b.role != "temp":
            yield "other base", replace(o, place=replace(p, base=b.name))
    if len(o.dims) > 1:
        yield "dimensions exchanged", replace(o, dims=(o.dims[1], o.dims[0], *o.dims[2:]))


def around(s: Schedule) -> Iterator[tuple[str, Schedule]]:
    """What stands around the trees: slots, homes, nests, the machine's limits."""
    for i, w in enumerate(s.workspace):

        def slot(new, i=i):
            return replace(s, workspace=(*s.workspace[:i], new, *s.workspace[i + 1 :]))

        yield "slot too small", slot(replace(w, bytes=w.bytes - 4))
        yield "slot elsewhere", slot(replace(w, memory=next(m for m in s.system.memories if m != w.memory)))
        yield "slot kept or not", slot(replace(w, bound=not w.bound))
        yield "slot gone", replace(s, workspace=(*s.workspace[:i], *s.workspace[i + 1 :]))
        yield "slot twice", replace(s, workspace=(*s.workspace, w))
        yield "slot named as an argument", slot(replace(w, name=s.kernel.arguments[0].name))
    for b, p in s.homes.items():
        yield "no home", replace(s, homes={k: v for k, v in s.homes.items() if k != b})
        yield "home moved", replace(s, homes={**s.homes, b: replace(p, offset=p.offset + 4)})
        if len(p.strides) > 1:
            yield "home transposed", replace(s, homes={**s.homes, b: replace(p, strides=p.strides[::-1])})
    for name, m in s.system.memories.items():
        small = replace(m, cells=m.cells // 4) if m.cells else replace(m, capacity=64)
        yield f"{name} nearly full", replace(s, system=replace(s.system, memories={**s.system.memories, name: small}))
    for i in range(len(s.system.moves)):
        moves = (*s.system.moves[:i], *s.system.moves[i + 1 :])
        yield "a missing edge", replace(s, system=replace(s.system, moves=moves))


def nodes(s: Schedule) -> int:
    return sum(1 for t in (s.bind, s.call) for _ in distinct(t))


_ = children
