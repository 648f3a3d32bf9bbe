"""What random nodes write, against carrying them out: elements, bytes, layout rules, cells; wholly and no more."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.proof.boxes import Family, box_of
from isam.proof.context import Context
from isam.proof.facts import Facts
from isam.proof.legal import Legality
from isam.proof.sets import Isl
from isam.proof.state import Fact
from isam.proof.writes import Write, Writes, compact
from isam.schedule.tree import Bound, Deal, Issue, Loop, Node, Operand, Place, Schedule, Seq, Slot, Tile
from isam.system.groups import Replica
from tests.unit.proof.handmade import loop, seq, tiny_matmul
from tests.unit.proof.handmade_machines import lit
from tests.unit.proof.test_prover import values_of

Env = dict[str, int]
Element = tuple[int, ...]
Done = dict[tuple[str, Any, bool], set[tuple[Element, int]]]  # buffer, spot, with new values: elements and bytes
SIZE = 4


@dataclass
class Steps:
    """Says of every step that it writes ``D``, whatever its instruction."""

    real: Legality

    @property
    def schedule(self) -> Schedule:
        return self.real.schedule

    @property
    def buffers(self) -> Any:
        return self.real.buffers

    @property
    def everywhere(self) -> Context:
        return self.real.everywhere

    def signature(self, issue: Issue) -> Any:
        return SimpleNamespace(writes=frozenset("D"))


def writes_of(s: Schedule) -> Writes:
    steps: Any = Steps(Legality(s))
    return Writes(steps, Facts(steps, Isl()))


def step(choose: random.Random, names: tuple[str, ...]) -> Issue:
    """A move or a computation that writes a tile to the scratchpad, or to cells."""
    buffer, shape = choose.choice("AAC"), (choose.choice((1, 1, 2)), choose.choice((1, 2, 4)))
    steps = tuple(choose.choice((1, 1, 1, 2)) for _ in shape)
    start = tuple(sum((Affine.of(n, choose.choice((0, 0, 1, 2))) for n in names), lit(choose.choice((0, 0, 1, 2))))
                  for _ in shape)  # fmt: skip
    strides = choose.choice(((64, 4), (64, 4), (4, 64), (32, 8)))
    at = sum((x * k for x, k in zip(start, strides, strict=True)), lit(choose.choice((0, 0, 16))))
    if choose.random() < 0.3:
        at = sum((Affine.of(n, choose.choice((0, 16))) for n in names), lit(choose.choice((0, 8))))
    cell = choose.random() < 0.15
    place = Place("ra", "", lit(0), (16, 4), choose.randrange(2)) if cell else Place("sp", "", at, strides)
    other = Operand("S", Tile("B", (lit(0),) * 2, (1, 1), (1, 1)), Place("sp", "", lit(0), (16, 4)), (0, 1))
    target = Operand("D", Tile(buffer, start, shape, steps), place, (0, 1))
    return Issue("mm", "any", (), (target, other), choose.choice((None, 0)))


def node(choose: random.Random, names: tuple[str, ...], deep: int) -> Node:
    what = choose.random()
    if not deep or what < 0.25:
        return step(choose, names)
    if what < 0.5:
        return seq(*(node(choose, names, deep - 1) for _ in range(choose.choice((2, 3)))))
    var, trip, by = f"v{deep}", choose.randint(1, 3), choose.choice((1, 2, 4))
    lo = choose.choice([lit(0), lit(1), *(Affine.of(n) for n in names)])
    parts = {k: node(choose, (*names, var), deep - 1) for k in ("first", "last") if choose.random() < 0.2}
    parts = parts if trip >= len(parts) else {}
    parts |= {k: node(choose, names, deep - 1) for k in ("enter", "exit") if choose.random() < 0.2}
    made = loop(var, lo, lo + trip * by - choose.randrange(by), by, node(choose, (*names, var), deep - 1), **parts)
    if lo.terms and not {"first", "last"} & parts.keys() and choose.random() < 0.5:
        made = replace(made, hi=(*made.hi, Bound(lo * 2 + 5, 2)))  # its last value is no affine number
    return made


def carried_out(n: Node, env: Env, w: Writes, out: Done) -> None:
    if isinstance(n, Issue):
        o = next(o for o in n.operands if o.name == "D")
        start = [x.evaluate(env) for x in o.tile.start]
        for d in product(*map(range, o.tile.shape)):
            rel = [i * k for i, k in zip(d, o.tile.steps, strict=True)]
            byte = w.facts.instances.at(o.place).evaluate(env) + sum(map(int.__mul__, rel, o.place.strides))
            spot, computes = (o.place.memory, o.place.base), n.nest is not None
            if o.place.cell is not None:
                spot, byte = (o.place.memory, "cells"), 0
            if o.place.cell is None or computes:
                out.setdefault((o.tile.buffer, spot, computes), set()).add((tuple(map(int.__add__, start, rel)), byte))
    elif isinstance(n, Seq):
        for c in n.children:
            carried_out(c, env, w, out)
    else:
        values = n.values(env)
        for part in (n.enter, n.exit) if values else ():
            carried_out(part, env, w, out)
        for v, part in product(values, (n.first, n.body, n.last)):  # what is peeled may be any iteration
            inner = {**env, n.var: v}
            if n.deal is not None:
                turn = n.deal.first + n.deal.stride * values.index(v)
                inner[f"^{n.deal.group}"] = turn + env.get(f"^{n.deal.group}", 0)
            if part is not None:
                carried_out(part, inner, w, out)


def members(over: Any, env: Env) -> list[Env]:
    envs = [env]
    for v in over:
        envs = [{**e, v.name: x} for e in envs for x in values_of(v, e)]
    return envs


def inside(f: Family, env: Env) -> set[Element]:
    return {p for e in members(f.over, env)
            for p in product(*(range(lo.evaluate(e), hi.evaluate(e)) for lo, hi in f.box))}  # fmt: skip


def laid(f: Fact, env: Env) -> set[tuple[Element, int]]:
    """Elements with the bytes at which a fact says they lie."""
    out = set()
    for e in members(f.over, env):
        for p in product(*(range(lo.evaluate(e), hi.evaluate(e)) for lo, hi in f.box)):
            out.add((p, f.offset.evaluate(e) + sum(k * (x - lo.evaluate(e)) for k, x, (lo, _) in
                                                   zip(f.strides, p, f.box, strict=True))))  # fmt: skip
    return out


def check(log: list[Write], done: Done, env: Env) -> None:
    """Exactly what is written is told, by whole families and as facts, and every box and range of bytes holds it."""
    told: dict[Any, set[Element]] = {}
    placed: Done = {}
    for w in log:
        key = (w.buffer, w.spot, w.compute)
        here = inside(w.whole, env)
        told.setdefault(key, set()).update(here)
        around = None if w.box is None else inside(Family(w.box), env)
        assert around is None or here <= around
        assert around is None or w.whole.over or here == around
        if w.exact is None:
            assert w.spot[1] == "cells"
            assert (w.ends, w.target) == (None, None)
            continue
        pairs = laid(w.exact, env)
        placed.setdefault(key, set()).update(pairs)
        assert {p for p, _ in pairs} == here
        if w.ends is not None:
            low, high = (e.evaluate(env) for e in w.ends)
            assert all(low <= at and at + SIZE <= high for _, at in pairs)
            assert not pairs or w.target is None or (low == min(a for _, a in pairs) and
                                                     high == max(a for _, a in pairs) + SIZE)  # fmt: skip
        if w.target is not None:
            t = w.target
            assert (t.box, t.over) == (w.box, ())
            assert inside(Family(t.hull), env) == inside(Family(t.box), env)
            assert t.wide == tuple(hi - lo != Affine((), 1) for lo, hi in t.box)
            for p, at in pairs:
                assert t.rule.evaluate(env) + sum(k * x for k, x in zip(t.strides, p, strict=True)) == at
    assert told == {k: {p for p, _ in v} for k, v in done.items()}
    assert placed == {k: v for k, v in done.items() if k[1][1] != "cells"}


@pytest.mark.parametrize("seed", range(16))
def test_what_nodes_write(seed: int) -> None:
    s, targets = tiny_matmul(64, 8, 8), 0
    for part in range(12):
        choose, w = random.Random(f"{seed} {part}"), writes_of(s)
        n = node(choose, (), 3)
        log = w.of(n)
        done: Done = {}
        carried_out(n, {}, w, done)
        check(log, done, {})
        targets += sum(x.target is not None for x in log)
        assert w.of(n) is log
        while isinstance(n, Loop) and n.values({}):
            env = {n.var: n.values({})[-1]}
            inner: Done = {}
            carried_out(n.body, env, w, inner)
            check(w.of(n.body), inner, env)
            n = n.enter
    assert targets > 5


def test_parts_of_one_tile_are_one_write() -> None:
    """Rows that touch by one rule, in either order; not with a gap, by another rule, in another place or otherwise."""
    w, kept = writes_of(tiny_matmul(64, 8, 8)), []  # nodes are known by identity

    def row(i: int, buffer: str = "A", base: int = 0, pitch: int = 64, nest: int | None = None, by: int = 4) -> Write:
        place = Place("sp", "", lit(base + i * pitch), (pitch, by))
        o = Operand("D", Tile(buffer, (lit(i), lit(0)), (1, 4), (1, 1)), place, (0, 1))
        kept.append(Issue("mm", "any", (), (o,), nest))
        (made,) = w.of(kept[-1])
        return made

    def part(i: int, j: int) -> Write:
        place = Place("sp", "", lit(64 * i + 4 * j), (64, 4))
        o = Operand("D", Tile("A", (lit(i), lit(j)), (1, 4), (1, 1)), place, (0, 1))
        kept.append(Issue("mm", "any", (), (o,)))
        return w.of(kept[-1])[0]

    for parts in ([0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]):
        (one,) = compact([row(i) for i in parts], w.facts)
        assert one.box == box_of((lit(0), lit(0)), (3, 4))
        assert one.target is not None
        assert (one.ends, one.target.wide) == ((lit(0), lit(2 * 64 + 16)), (True, True))
        assert one.exact is w.facts.make("A", ("sp", ""), None, lit(0), (64, 4), one.box)
        assert (one.target.low, one.target.high) == one.ends
        assert (one.target.hull, one.whole) == (one.box, Family(one.box))
    corners = [part(i, j) for i, j in ((0, 0), (1, 0), (0, 4), (1, 4))]
    whole = compact(corners, w.facts)  # columns, which do not touch before both are whole
    assert [x.box for x in whole] == [box_of((lit(0), lit(4 * j)), (2, 4)) for j in range(2)]
    assert len(compact([*whole, *corners[:2], whole[0]], w.facts)) == 2
    (one,) = compact([part(0, 0), part(0, 4)], w.facts)
    assert one.target is not None
    assert (one.box, one.ends, one.target.wide) == (box_of((lit(0), lit(0)), (1, 8)), (lit(0), lit(32)), (False, True))
    (one,) = compact([part(3, 0), part(3, 4)], w.facts)
    assert one.target is not None
    assert (one.box, one.target.wide) == (box_of((lit(3), lit(0)), (1, 8)), (False, True))
    for a, b in ((row(0), row(2)), (row(0), row(1, base=4)), (row(0), row(1, "C")), (row(0), row(1, nest=0)),
                 (row(0), row(1, by=8)), (row(0, by=-4), row(1, by=-4))):  # fmt: skip
        assert compact([a, b], w.facts) == [a, b]
    assert compact([row(0), row(0)], w.facts) == [row(0)]
    assert len(compact([row(0, by=0), row(1, by=0)], w.facts)) == 1
    many = [row(2 * i, base=512 * i) for i in range(40)]
    assert compact([*many, row(79, base=512 * 39)], w.facts)[-1].box == box_of((lit(78), lit(0)), (2, 4))
    late = compact([*many, row(2 * 7 + 1, base=512 * 7)], w.facts)
    assert [len(late), len(compact([*many, row(2 * 8 + 1, base=512 * 8)], w.facts))] == [41, 40]


# cells ----------------------------------------------------------------------------------------------------------------
def in_cell(number: int, i: int = 0, nest: int | None = 0, cells: int = 1) -> Issue:
    o = Operand(
        "D", Tile("A", (lit(i), lit(0)), (4 * cells, 4), (1, 1)), Place("ra", "", lit(0), (16, 4), number), (0, 1)
    )
    return Issue("mm", "any", (), (o,), nest)


def test_which_tile_is_in_a_cell() -> None:
    w = writes_of(tiny_matmul(64, 8, 8))
    one, same, other, wide = in_cell(0), in_cell(0), in_cell(0, 4), in_cell(2, cells=2)
    t = w.facts.target(one.operands[0])
    assert w.facts.target(same.operands[0]) is t
    assert w.cells(one) == {("ra", 0): t}
    wider = w.facts.target(wide.operands[0])
    assert wider.cells == (2, 3)
    assert w.cells(wide) == {("ra", 2): wider, ("ra", 3): wider}
    nodes = [seq(one, wide, same), seq(one, other), seq(one, other, same), loop("v", 0, 2, 1, seq(one), exit=other)]
    assert w.cells(nodes[0]) == {("ra", 0): t, ("ra", 2): wider, ("ra", 3): wider}
    assert [w.cells(n) for n in nodes[1:]] == [{("ra", 0): None}] * 3
    apart = step(random.Random(3), ())
    assert apart.operands[0].place.cell is None
    assert w.cells(apart) == {}
    unnamed = replace(one, operands=(replace(one.operands[0], name="S"),))
    assert w.cells(unnamed) == {}
    assert w.of(unnamed) == []


def test_what_is_computed_in_cells_is_told_without_its_bytes() -> None:
    w = writes_of(tiny_matmul(64, 8, 8))
    moved, made = in_cell(0, 0, None), in_cell(1, 4)
    made = replace(made, operands=(*made.operands, replace(moved.operands[0], name="S")))
    u = w.facts.target(made.operands[0])
    assert w.of(moved) == []
    (log,) = w.of(made)
    assert (log.spot, log.compute, log.ends, log.exact, log.box) == (("ra", "cells"), True, None, None, u.hull)


def test_what_is_written_to_one_cell_and_touches_is_one_write() -> None:
    w = writes_of(tiny_matmul(64, 8, 8))
    a, b, c = in_cell(0), in_cell(0, 4), in_cell(0, 12)
    steps = [replace(n, operands=(replace(o, tile=o.tile._replace(shape=(2, 4), steps=(2, 1))),))
             for n in (a, b) for o in n.operands]  # fmt: skip
    one, two, three, four, five = (w.of(n)[0] for n in (a, b, c, *steps))
    (both,) = compact([one, two], w.facts)
    assert (both.box, both.whole, both.exact) == (box := box_of((lit(0), lit(0)), (8, 4)), Family(box), None)
    assert compact([one, three], w.facts) == [one, three]
    far = four._replace(box=one.box), five._replace(box=two.box)
    for parts in ([one, far[1]], [far[0], two], [one._replace(box=None), two], [one, two._replace(box=None)]):
        assert compact(parts, w.facts) == parts
    narrow = one._replace(spot=("rb", "cells"))
    assert compact([narrow, two], w.facts) == [narrow, two]


# slots of instances ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("stride", [1, 2])
def test_slots_of_instances_as_the_loops_around_see_them(first: int, stride: int) -> None:
    s = tiny_matmul(64, 8, 8)
    slot = Slot("own", "sp", 256)
    s = replace(s, system=replace(s.system, replicas={"core": Replica("core", 8, ("sp", "ra", "rb"), ("mm", "dma"))}),
                workspace=(slot,))  # fmt: skip
    d = Affine.of("d")
    places = Place("sp", "own", d * 2 + 16, (64, 4)), Place("sp", "", d * 2 + 16, (64, 4))
    steps = [
        Issue("dma", "any", (), (Operand("D", Tile("A", (d, lit(0)), (2, 2), (1, 1)), p, (0, 1)),)) for p in places
    ]
    n = replace(loop("d", 4, 12, 2, seq(*steps)), deal=Deal("core", first, stride))
    w = writes_of(replace(s, call=n))
    name, apart = "^core", w.facts.instances.apart
    steps_of = seq(*(replace(x, operands=(replace(o, tile=o.tile._replace(steps=(1, 2))),)) for x in steps
                     for o in x.operands))  # fmt: skip
    t = Affine.of("t")
    rows = replace(steps[0], operands=tuple(replace(o, tile=o.tile._replace(start=(t, lit(0))), place=replace(
        o.place, offset=t * 2)) for o in steps[0].operands))  # fmt: skip
    inner = loop("t", d, d + 3, 1, rows)
    ragged = replace(inner, hi=(*inner.hi, Bound(d * 2 + 5, 2)))  # ends at no affine byte
    for dealt in (n, replace(n, body=steps_of), loop("t", 0, 3, 1, n), replace(n, body=inner), replace(n, body=ragged)):
        for outer in (0, 3):
            done: Done = {}
            carried_out(dealt, {name: outer}, w, done)
            check(w.of(dealt), done, {name: outer})
    log = w.of(n.body)
    mine, shared = w.seen_around(n, log)
    assert shared is log[1]
    assert w.seen_around(replace(n, deal=None), log) == log
    assert mine.ends is not None

    def said(x: Write) -> list[Affine]:
        assert x.ends is not None
        assert x.target is not None
        assert x.exact is not None
        return [*x.ends, x.target.offset, x.target.low, x.target.high, x.exact.offset]

    for v, outer in product(n.values({}), (0, 3)):
        here = {"d": v, name: outer + (v - 4) // 2 * stride + first}
        for new, was in zip(said(mine), said(log[0]), strict=True):
            assert new.evaluate({"d": v, name: outer}) == was.evaluate(here)
        assert mine.ends[0].evaluate({"d": v, name: outer}) == 2 * v + 16 + apart * here[name]
