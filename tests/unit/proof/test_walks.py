"""Judges that walk a tree and need no state, against walking it another way: names, instances, races."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from operator import mul
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Sym
from isam.proof.dealt import Dealt
from isam.proof.facts import Facts
from isam.proof.legal import Legality
from isam.proof.races import check_races
from isam.proof.scope import check_scope
from isam.proof.sets import Isl
from isam.proof.violation import Findings, issue_text
from isam.schedule.tree import Bound, Deal, Issue, Loop, Node, Operand, Place, Schedule, Seq, Tile, Wait
from isam.system.graph import Unit
from isam.system.groups import Replica
from tests.unit.proof.handmade import loop, seq, tiny_matmul
from tests.unit.proof.handmade_machines import lit

V = Affine.of
NAMES = ("a", "b", "c", "N")


# names ----------------------------------------------------------------------------------------------------------------
def naming(choose: random.Random, deep: int, inside: tuple[str, ...]) -> Node:
    """Loops that mostly take new names, and steps that mostly name what has a value."""

    def named() -> Affine:
        return (
            V(choose.choice(inside if inside and choose.random() < 0.93 else NAMES))
            if choose.random() < 0.4
            else lit(0)
        )

    what = choose.random()
    if not deep or what < 0.2:
        p = Place("sp", "", named(), (4, 4))
        o = Operand("S", Tile("A", (named(), named()), (1, 1), (1, 1)), p, (0, 1))
        return Issue("dma", "copy", (), (o, o), None, (("i", named()),))
    if what < 0.5:
        return seq(*(naming(choose, deep - 1, inside) for _ in range(choose.choice((0, 2, 2)))))
    free = [n for n in NAMES[:3] if n not in inside]
    var = choose.choice(free if free and choose.random() < 0.9 else (*NAMES, "a b"))
    n = Loop(var, (Bound(named()),), (Bound(named()), Bound(lit(4))), 1, naming(choose, deep - 1, (*inside, var)))
    parts = {p: naming(choose, deep - 1, (*inside, var) if p in ("first", "last") else inside)
             for p in ("first", "last", "enter", "exit") if choose.random() < 0.2}  # fmt: skip
    return replace(n, **parts)


def misnamed(n: Node, values: frozenset[str]) -> Iterator[str]:
    """What is wrong with the names of a tree, from its root on."""
    if isinstance(n, Issue):
        exprs = [e for _, e in n.point] + [e for o in n.operands for e in (*o.tile.start, o.place.offset)]
        yield from (f"'{x}' has no value everywhere it is named" for e in exprs for x in e.names if x not in values)
    elif isinstance(n, Seq):
        for c in n.children:
            yield from misnamed(c, values)
    else:
        if n.var in values:
            yield f"loop variable '{n.var}' is already in use"
        if not n.var.isalpha():
            yield f"'{n.var}' is no name for a loop variable"
        for b in (*n.lo, *n.hi):
            yield from (f"'{x}' has no value everywhere it is named" for x in b.expr.names if x not in values)
        for part in (n.enter, n.exit):
            yield from misnamed(part, values)
        for part in (n.first, n.body, n.last):
            if part is not None:
                yield from misnamed(part, values | {n.var})


@pytest.mark.parametrize("seed", range(3))
def test_names_have_one_value_where_they_stand(seed: int) -> None:
    s, said = tiny_matmul(), Counter[bool]()
    kernel = replace(s.kernel, syms=(Sym("N"),))
    s = replace(s, cover=replace(s.cover, kernel=kernel))
    for part in range(150):
        choose, out = random.Random(f"{seed} {part}"), Findings()
        bind = naming(choose, 1, ("N",)) if choose.random() < 0.3 else Seq()
        made = replace(s, bind=bind, call=naming(choose, 4, ("N",)))
        check_scope(made, out)
        want = {x for t in (made.bind, made.call) for x in misnamed(t, frozenset("N"))}
        assert {v.message for v in out.found} == want
        assert {(v.obligation, v.kind) for v in out.found} <= {(11, "scope")}
        said[bool(want)] += 1
    assert min(said.values()) > 30


# instances ------------------------------------------------------------------------------------------------------------
def dealt(s: Schedule, call: Node) -> list[str]:
    out = Findings()
    made = replace(s, call=call)
    Dealt(made, Facts(Legality(made), Isl()), out).check()
    return [v.message for v in out.found if v.kind == "deal"]


def test_every_iteration_has_an_instance_of_its_own() -> None:
    """Of up to three dealt loops, one in the other: two with one, or one that does not exist, are found; where larger
    strides are beyond what smaller ones reach, nothing else is."""
    choose, told, count = random.Random(5), Counter[tuple[bool, bool]](), 8
    s = tiny_matmul()
    s = replace(s, system=replace(s.system, replicas={"core": Replica("core", count, ("sp",), ("mm",))}))
    for _ in range(600):
        deals = [(choose.choice((0, 0, 0, 1, -1)), choose.choice((1, 1, 2, 2, 3, 4)), choose.choice((1, 2, 2, 3)))
                 for _ in range(choose.randint(1, 3))]  # fmt: skip
        node: Node = Seq()
        for n, (first, stride, trip) in list(enumerate(deals))[::-1]:
            by = choose.choice((1, 4))
            node = replace(loop(f"v{n}", 0, trip * by, by, node), deal=Deal("core", first, stride))
            if choose.random() < 0.3:  # somewhere in a loop that is dealt to nobody
                node = loop(f"w{n}", 0, 2, 1, *((node,) if choose.random() < 0.5 else (Seq(),)),
                            **({"enter": node} if choose.random() < 0.5 else {"exit": node}))  # fmt: skip
        if choose.random() < 0.2:
            node = seq(Seq(), node)
        right = True
        for deep in range(1, len(deals) + 1):
            some = deals[:deep]
            runs = [range(t) for _, _, t in some]
            used = [sum(f + k * i for (f, k, _), i in zip(some, at, strict=True)) for at in product(*runs)]
            right = right and len(set(used)) == len(used) and min(used) >= 0 and max(used) < count
        found = dealt(s, node)
        assert right or found
        told[right, not found] += 1
        strides = sorted((k, t) for _, k, t in deals if t > 1)
        nested = all(k > sum(j * (t - 1) for j, t in strides[:n]) for n, (k, _) in enumerate(strides))
        assert not (right and nested and found)
    assert min(told[True, True], told[False, False]) > 100


# races ----------------------------------------------------------------------------------------------------------------
UNITS = ("dma", "more", "mm")


def touched(o: Operand, scope: dict[str, int]) -> set[tuple[str, int]]:
    at, p = o.place.offset.evaluate(scope), o.place
    firsts = [at + sum(map(mul, map(mul, e, o.tile.steps), p.strides)) for e in product(*map(range, o.tile.shape))]
    if p.cell is not None:
        return {(p.memory, p.cell + b // 64) for x in firsts for b in (x, x + 3)}
    return {(p.memory, x + b) for x in firsts for b in range(4)}


def in_turn(n: Node, scope: dict[str, int]) -> Iterator[tuple[Issue, dict[str, int]]]:
    if isinstance(n, Issue):
        yield n, scope
    elif isinstance(n, Seq):
        for c in n.children:
            yield from in_turn(c, scope)
    else:
        values = n.values(scope)
        for v in values:
            if v == values[0]:
                yield from in_turn(n.enter, scope)
            part = n.last if n.last and v == values[-1] else n.first if n.first and v == values[0] else n.body
            yield from in_turn(part, {**scope, n.var: v})
        if values:
            yield from in_turn(n.exit, scope)


def racing(s: Schedule) -> set[str]:
    """Calls that may start before another one that they meet has finished: of every call all that have."""
    streams: dict[str, list[int]] = {u: [] for u in UNITS}
    done: list[set[int]] = []
    out, every = set[str](), list(in_turn(s.call, {}))
    def of(issue: Issue, env: dict[str, int], names: str) -> list[set[tuple[str, int]]]:
        return [touched(o, env) for o in issue.operands if o.name in names]

    what = [(of(n, env, "SX"), of(n, env, "DY")) for n, env in every]
    for n, (issue, _) in enumerate(every):
        mine = streams[issue.unit]
        have = set(done[mine[-1]]) if mine else set()
        for w in issue.after:
            steps = streams[w.stream]
            for m in steps[: max(0, len(steps) - w.lag)]:
                have |= {m} | done[m]
        for m in set(range(n)) - have:
            (reads, writes), (read, wrote) = what[n], what[m]
            if any(a & b for a in writes for b in (*read, *wrote)) or any(a & b for a in reads for b in wrote):
                out.add(issue_text(issue))
        mine.append(n)
        done.append(have)
    return out


def racer(choose: random.Random, names: tuple[str, ...]) -> Issue:
    unit = choose.choice(UNITS)
    names_ = ("X", "Y") if unit == "mm" else ("S", "D")
    shape, operands = (choose.choice((1, 2)), choose.choice((1, 2, 3))), []
    for name in names_:
        strides = choose.choice(((8, 4), (16, 4), (16, 8), (-16, 4), (32, 12)))
        at = lit(choose.choice((16, 32, 40, 64))) + (
            V(choose.choice(names), choose.choice((4, 16, 64))) if names else 0
        )
        memory, cell = choose.choice((("sp", None), ("sp", None), ("ra", choose.randrange(3))))
        steps = choose.choice(((1, 1), (1, 1), (1, 2)))
        operands.append(
            Operand(name, Tile("A", (lit(0), lit(0)), shape, steps), Place(memory, "", at, strides, cell), (0, 1))
        )
    after = tuple(
        Wait(choose.choice(UNITS), choose.choice((0, 0, 0, 1, 2))) for _ in range(choose.choice((0, 1, 1, 2, 3)))
    )
    return Issue(unit, "relu4" if unit == "mm" else "copy", (), tuple(operands), None, (), after)


def racers(choose: random.Random) -> Node:
    def some(names: tuple[str, ...]) -> Seq:
        return seq(*(racer(choose, names) for _ in range(choose.randint(1, 3))))

    parts: list[Any] = [some(())]
    if choose.random() < 0.6:
        peeled = {p: some(("v",) if p in ("first", "last") else ())
                  for p in ("enter", "first", "last", "exit") if choose.random() < 0.3}  # fmt: skip
        parts.append(loop("v", 0, choose.randint(2, 3), 1, some(("v",)), **peeled))
    return seq(*parts)


@pytest.mark.parametrize("seed", range(3))
def test_who_may_start_too_early(seed: int) -> None:
    s, said = tiny_matmul(), Counter[bool]()
    units = {**s.system.units, "more": Unit("more", ("copy",), 1e9)}
    s = replace(s, system=replace(s.system, units=units))
    for part in range(200):
        made = replace(s, call=racers(random.Random(f"{seed} {part}")))
        want, found = racing(made), check_races(made, most=1000)
        assert {v.step for v in found} == want, part
        assert {(v.obligation, v.kind) for v in found} <= {(8, "race")}
        said[bool(want)] += 1
    assert min(said.values()) > 30


def test_what_a_write_leaves_between_its_rows_is_not_hidden() -> None:
    """An access there is met by a call that waits for nobody, though the write has waited for it."""
    s = tiny_matmul()
    s = replace(s, system=replace(s.system, units={**s.system.units, "more": Unit("more", ("copy",), 1e9)}))

    def call(unit: str, at: int, wide: int, after: tuple[Wait, ...] = ()) -> Issue:
        o = Operand("D", Tile("A", (lit(0), lit(0)), (1, wide), (1, 1)), Place("sp", "", lit(at), (64, 12)), (0, 1))
        return Issue(unit, "copy", (), (o,), None, (), after)

    for first, base in product((8, 12, 16, 20), (0, 4, 8)):
        late = call("more", first, 1)
        made = replace(s, call=seq(call("dma", first, 1), call("dma", base, 6, (Wait("dma", 0),)), late))
        want = racing(made)
        assert want == {issue_text(late)}
        assert {v.step for v in check_races(made)} == want
