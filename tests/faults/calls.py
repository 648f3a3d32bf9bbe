"""Faults in one call: what it does, on which tiles, where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.instruction import Instruction
from isam.schedule.tree import Issue, Node, Operand, Place, Schedule, distinct
from isam.system.graph import System


def calls(n: Issue, s: Schedule) -> Iterator[tuple[str, Node]]:
    yield from instructions(n, s)
    for i, (a, p) in enumerate(n.point):
        for v in p.names:
            less = p - Affine.of(v, p.coefficient(v))
            yield "point without a variable", replace(n, point=(*n.point[:i], (a, less), *n.point[i + 1 :]))
    for i, o in enumerate(n.operands):

        def with_(new: Operand, i: int = i) -> Issue:
            return replace(n, operands=(*n.operands[:i], new, *n.operands[i + 1 :]))

        for what, new in operand(o, s):
            yield f"operand {what}", with_(new)
        for q in n.operands[:i]:
            if q.place != o.place and len(q.place.strides) == len(o.place.strides):
                yield "operand where another of the call lies", with_(replace(o, place=q.place))
    if n.is_move and len(n.operands) == 2:
        for d in range(len(n.operands[0].tile.start)):
            yield "another tile moved", replace(n, operands=tuple(further(o, d, at_home=True) for o in n.operands))


def instructions(n: Issue, s: Schedule) -> Iterator[tuple[str, Node]]:
    """Another instruction that takes these operands."""
    known = dict(n.sizes)
    for what, i in unlike(s.system.instructions[n.instruction], s.system):
        if all(y.name in known for y in i.syms):
            yield what, replace(n, instruction=i.name, sizes=tuple((y.name, known[y.name]) for y in i.syms))


_UNLIKE: dict[tuple[int, str], tuple[System, list[tuple[str, Instruction]]]] = {}


def unlike(mine: Instruction, system: System) -> list[tuple[str, Instruction]]:
    """In what instructions differ from one whose operands they take."""
    got = _UNLIKE.get((id(system), mine.name))
    if got is None or got[0] is not system:
        found = []
        for i in system.instructions.values():
            one, two = ([(x.name, x.role, x.dtype) for x in j.body.arguments] for j in (mine, i))
            if i is not mine and [x[0] for x in one] == [x[0] for x in two]:
                roles, dtypes = ([x[k] for x in one] != [x[k] for x in two] for k in (1, 2))
                what = "sums instead of overwriting, or the reverse" if roles else "another dtype"
                found.append((what if roles or dtypes else "another operation", i))
        got = _UNLIKE[id(system), mine.name] = system, found
    return got[1]


def further(o: Operand, d: int, at_home: bool = False) -> Operand:
    """The tile one element further, and its place too (``at_home``: only where it lies at home)."""
    start = (*o.tile.start[:d], o.tile.start[d] + 1, *o.tile.start[d + 1 :])
    tile, p = o.tile._replace(start=start), o.place
    if at_home and p.base != o.tile.buffer:
        return replace(o, tile=tile)
    return replace(o, tile=tile, place=replace(p, offset=p.offset + p.strides[d]))


def operand(o: Operand, s: Schedule) -> Iterator[tuple[str, Operand]]:
    t, p = o.tile, o.place
    for d in range(len(t.start)):
        yield "and place one further", further(o, d)
        for v in t.start[d].names:
            less = t.start[d] - Affine.of(v, t.start[d].coefficient(v))
            yield "tile without a variable", replace(o, tile=t._replace(start=(*t.start[:d], less, *t.start[d + 1 :])))
    for v in p.offset.names:
        c = p.offset.coefficient(v)
        for what, by in (("without a variable", -c), ("twice as far by a variable", c)):
            yield f"offset {what}", replace(o, place=replace(p, offset=p.offset + Affine.of(v, by)))
    for q in used(s).get(p.memory, ())[:6]:
        if (q.base, q.offset, q.cell) != (p.base, p.offset, p.cell):
            yield "in another place in use", replace(o, place=replace(q, strides=p.strides))


_USED: dict[int, tuple[Schedule, dict[str, tuple[Place, ...]]]] = {}


def used(s: Schedule) -> dict[str, tuple[Place, ...]]:
    """Places per memory."""
    got = _USED.get(id(s))
    if got is None or got[0] is not s:
        places: dict[str, dict[tuple, Place]] = {}
        for tree in (s.bind, s.call):
            for n in distinct(tree):
                for o in n.operands if isinstance(n, Issue) else ():
                    q = o.place
                    places.setdefault(q.memory, {}).setdefault((q.base, q.offset, q.cell), q)
        _USED.clear()
        got = _USED[id(s)] = (s, {m: tuple(d.values()) for m, d in places.items()})
    return got[1]
