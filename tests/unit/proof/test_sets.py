"""What isl is asked, against enumeration: families with variables of their own, conditions, statements that write."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.ir.text import parse_kernel
from isam.proof.boxes import ONCE, TWICE, UNKNOWN, Box, Family
from isam.proof.context import Context, Var
from isam.proof.digits import Layout
from isam.proof.sets import Isl, _nameless, _shifted
from tests.unit.proof.test_prover import V, bounds, box, points, values_of
from tests.unit.proof.test_witness import exactly, var

NAMES = ("x", "y")


def around(rng: random.Random) -> Context:
    """One or two variables, the second from the first on, one with a step."""
    a = Var("a", bounds(rng.randint(-1, 1)), bounds(rng.randint(1, 3)), rng.choice([1, 2]), Affine.lift(0))
    b = Var("b", bounds(V("a")), bounds(V("a") + rng.randint(0, 3)), rng.choice([1, 3]), V("a"))
    return Context((a, b) if rng.random() < 0.6 else (a,))


def family(rng: random.Random, ctx: Context) -> Family:
    """A box that moves with the variables around, with one or two of its own, or stays."""
    names = [v.name for v in ctx.vars]
    over: tuple[Var, ...] = ()
    if rng.random() < 0.6:
        low = rng.choice([0, 1])
        over = (Var("v", bounds(low), bounds(low + rng.randint(0, 3)), rng.choice([1, 1, 2]), Affine.lift(low)),)
        if rng.random() < 0.4:
            over = (*over, Var("w", bounds(V("v")), bounds(V("v") + rng.randint(0, 2)), rng.choice([1, 2]), V("v")))
    sides = []
    for _ in NAMES:
        some = [*names, *(v.name for v in over)]
        lo = Affine.of(rng.choice(some), rng.choice([0, 0, 1, 1, 2, -1]), rng.randint(-1, 2))
        sides.append((lo, lo + rng.choice([0, 1, 1, 2, 3])))
    return Family(tuple(sides), over)


def times(f: Family, env: dict[str, int]) -> Counter[tuple[int, ...]]:
    """How often each point is in a family."""
    envs = [env]
    for v in f.over:
        envs = [{**e, v.name: x} for e in envs for x in values_of(v, e)]
    boxes = ([range(lo.evaluate(e), hi.evaluate(e)) for lo, hi in f.box] for e in envs)
    return Counter(p for b in boxes for p in product(*b))


@pytest.mark.parametrize("seed", range(20))
def test_what_families_hold_together(seed: int) -> None:
    rng, isl = random.Random(seed), Isl()
    for _ in range(12):
        ctx = around(rng)
        some = [family(rng, ctx) for _ in range(rng.choice([1, 2, 3]))]
        lo, high = V("a", rng.choice([0, 1])), rng.randint(1, 2)
        target: Box = ((lo, lo + high), (Affine.lift(0), Affine.lift(rng.randint(1, 2))))
        where = tuple(
            Affine.of("x", rng.choice([1, -1]), rng.randint(-1, 2)) + V("y") for _ in range(rng.choice([0, 1]))
        )
        want, asked = True, isl.queries
        for env in points(ctx):
            have = set().union(*(times(f, env) for f in some))
            for p in times(Family(target), env):
                at = {**env, **dict(zip(NAMES, p, strict=True))}
                want = want and (p in have or any(w.evaluate(at) < 0 for w in where))
        assert isl.covers(target, some, ctx, where, NAMES) is want
        assert isl.queries == asked + 1
        if len(some) > 1:
            apart = all(not (times(some[0], e).keys() & times(some[1], e).keys()) for e in points(ctx))
            assert isl.parted(some[0], some[1], ctx) is apart
            assert isl.queries == asked + 2


@pytest.mark.parametrize("seed", range(20))
def test_every_point_once(seed: int) -> None:
    """Cut into parts, a domain is covered once; with a part left out, doubled, moved or made larger it is not."""
    rng, isl, yes = random.Random(seed), Isl(), 0
    for _ in range(12):
        ctx = around(rng)
        width, height = rng.choice([2, 4, 6]), rng.randint(1, 3)
        domain = box((0, width), (0, height))
        step = rng.choice([1, 2])
        v = Var("v", bounds(0), bounds(width - step), step, Affine())
        rows = rng.choice([height, rng.randint(0, height)])
        side = (V("v"), V("v") + rng.choice([step, step, step, 1, 2]))
        some = [Family((side, *box((0, rows))), (v,)), Family(box((0, width), (rows, height)))]
        if rng.random() < 0.4:
            some = [some[0], *(Family(box((i, i + 1), (rows, height))) for i in range(width))]
        change = rng.choice(["", "", "less", "more", "beyond"])
        if change == "less":
            del some[rng.randrange(len(some))]
        elif change == "more":
            some.append(family(rng, ctx))
        elif change == "beyond":
            some.append(Family(((V("a") + width, V("a") + width + 1), *box((0, 1)))))
        where = (Affine.of("x", -1, 3) - "y",) if rng.random() < 0.3 else ()
        want = True
        for env in points(ctx):
            seen = sum((times(f, env) for f in some), Counter())
            whole = times(Family(domain), env)
            inside = {p for p in whole if all(w.evaluate(dict(zip(NAMES, p, strict=True))) >= 0 for w in where)}
            want = want and seen.keys() == inside and all(n == 1 for n in seen.values())
        asked = isl.queries
        said, why = isl.exactly_once(some, [UNKNOWN] * len(some), domain, where, NAMES, ctx)
        assert said is want
        assert (why == "") is want
        assert isl.queries == asked + 2 * len(some) + 2
        yes += want
    assert 0 < yes < 12


def called(f: Family, name: str) -> Family:
    return Family(tuple((lo.substitute({"a": V(name)}), hi.substitute({"a": V(name)})) for lo, hi in f.box))


@pytest.mark.parametrize("name", ["a", "d0", "d1", "0", "x", "p", "x0"])
def test_variables_around_may_have_any_name(name: str) -> None:
    """Those of dimensions among them: nothing is the same because it is called the same."""
    here = Context((Var(name, bounds(0), bounds(3)),))
    for d, lo, n, where in product((0, 1), (0, 1), (1, 4), ((), (Affine.of("x", 1, 1) - "y",))):
        own = ((V("a") + lo, V("a") + lo + 1), box((0, 8))[0])
        one, two = (called(Family(x if d == 0 else x[::-1]), name) for x in (own, (*box((1, 1 + n)), *box((0, 8)))))
        every = range(4)
        inside = all(1 <= v + lo < 1 + n for v in every)
        assert Isl().covers(one.box, [two], here, where, NAMES) is inside
        assert Isl().covers(two.box, [one], here, where, NAMES) is (n == 1 and {v + lo for v in every} == {1})
        assert Isl().parted(one, two, here) is not any(1 <= v + lo < 1 + n for v in every)
        assert not Isl().exactly_once([one], [ONCE], two.box, where, NAMES, here)[0]


def test_what_is_known_of_a_family_is_not_asked() -> None:
    """That it holds points twice, or once, is believed; nobody runs a family that is empty."""
    isl, ctx, whole = Isl(), Context(), box((0, 4))
    v = Var("v", bounds(0), bounds(3), 1, Affine())
    twice = Family(((V("v"), V("v") + 2),), (v,))
    assert not isl.exactly_once([twice], [UNKNOWN], box((0, 5)), (), ("x",), ctx)[0]
    assert isl.exactly_once([twice], [ONCE], box((0, 5)), (), ("x",), ctx) == (True, "")
    assert not isl.exactly_once([Family(whole)], [TWICE], whole, (), ("x",), ctx)[0]
    nothing = Family(box((2, 2)))
    assert isl.exactly_once([nothing, Family(whole)], [TWICE, ONCE], whole, (), ("x",), ctx)[0]
    for some, sure, why in (
        ([Family(whole)], [TWICE], "points are executed more than once: {'d0': 0}"),
        ([Family(whole), Family(box((3, 4)))], [ONCE] * 2, "points are executed twice: {'d0': 3}"),
        ([Family(box((0, 3)))], [ONCE], "a point is never executed: {'d0': 3}"),
        ([Family(box((0, 5)))], [ONCE], "a point outside the domain is executed: {'d0': 4}"),
    ):
        assert isl.exactly_once(some, sure, whole, (), ("x",), ctx) == (False, why)


KERNEL = """
kernel k()
  in x: f32[6]
  out y: f32[8, 3]
  forall i < 8, j < 3
    y[i, j] = 0
  loop t < 3
    forall i < 6 where i <= 4
      y[i + 2, t] = x[i]
"""


def test_what_statements_write_lies_in_families() -> None:
    k = parse_kernel(KERNEL.lstrip())
    first, second = k.statements
    loop = next(r.axis for r in k.body if hasattr(r, "axis"))
    whole, few = [(first, ())], [(second, (loop,))]
    for families, all_, some in (
        ([box((0, 8), (0, 3))], True, True), ([box((2, 7), (0, 3))], False, True),
        ([box((2, 7), (0, 2))], False, False),
        ([box((3, 7), (0, 3))], False, False), ([box((2, 6), (0, 3))], False, False), ([], False, False),
        ([box((0, 4), (0, 3)), box((4, 8), (0, 3))], True, True), ([box((2, 7), (1, 3))], False, False),
    ):  # fmt: skip
        isl, made = Isl(), [Family(b) for b in families]
        assert isl.holds_written(whole, made, Context()) is all_
        assert isl.holds_written(few, made, Context()) is some
        assert isl.holds_written([*few, *whole], made, Context()) is all_
        assert isl.holds_written([*whole, *few], made, Context()) is all_
        assert isl.queries == 1 + 1 + (2 if some else 1) + (2 if all_ else 1)
    a = Context((Var("a", bounds(2), bounds(3), 1, Affine()),))
    assert Isl().holds_written(few, [Family(((Affine(), V("a") + 5), *box((0, 3))))], a)
    assert not Isl().holds_written(few, [Family(((V("a"), V("a") + 5), *box((0, 3))))], a)


# layouts --------------------------------------------------------------------------------------------------------------
def layout(rng: random.Random) -> Layout:
    by = rng.choice([None, "t", "w"])
    strides = rng.choice([(8, 2), (4, 4), (2, 8), (16, -2), (4, 0)])
    sides = []
    for _ in strides:
        lo = Affine.lift(rng.randrange(3)) + (Affine.of(by, rng.choice((1, 2))) if by and rng.random() < 0.6 else 0)
        sides.append((lo, lo + rng.randrange(1, 4)))
    step = rng.choice((1, 2))
    over = (var("w", 0, rng.randrange(5), step, rng.choice((None, 0)) if step == 1 else 0),) if by == "w" else ()
    offset = Affine.of(by, rng.choice((0, 4, 8)), rng.randrange(0, 24)) if by else Affine.lift(rng.randrange(0, 24))
    return tuple(sides), offset, strides, over


def laid_by(x: Layout, name: str) -> Layout:
    by = {"t": Affine.of(name)}
    return tuple((lo.substitute(by), hi.substitute(by)) for lo, hi in x[0]), x[1].substitute(by), *x[2:]


@pytest.mark.parametrize("seed", range(20))
def test_elements_that_share_bytes(seed: int) -> None:
    """What is said to lie apart does, whoever says it; isl says it wherever it is so."""
    rng, apart = random.Random(seed), 0
    for _ in range(12):
        t = ("t", "p", "q", "x0", "y1")[seed % 5]
        one, two = laid_by(layout(rng), t), laid_by(layout(rng), t)
        if rng.random() < 0.3:
            two = (two[0], one[1], one[2], one[3] or two[3])
        outer = (var(t, 0, rng.randrange(4), rng.choice((1, 2)), 0),)
        size, same = (rng.choice((1, 2, 4)), rng.choice((1, 2, 4))), rng.random() < 0.5
        meet = exactly(one, two, size, same, outer)
        isl = Isl()
        assert isl._no_clash(one, two, size, same, Context(outer)) is not meet
        assert isl.queries == 1
        assert not (isl.no_clash(one, two, size, same, Context(outer)) and meet)
        if not _shifted(one, two):
            assert isl.no_clash(one, two, size, same, Context(outer)) is not meet
        apart += not meet
    assert apart


def test_a_question_is_put_once_whatever_its_names() -> None:
    def pair(name: str, own: str) -> tuple[Layout, Layout, Context]:
        at = Affine.of(name, 40)
        inner = var(own, 0, 30, 3, 0)
        one = ((Affine.of(own), Affine.of(own, 1, 2)),), Affine.of(own, 4) + at, (4,), (inner,)
        two = ((Affine.lift(2), Affine.lift(3)),), at + 21, (4,), ()
        return one, two, Context((var(name, 0, 8, 2, 0),))

    isl, plain = Isl(), Isl()
    one, two, ctx = pair("t", "w")
    said = isl.no_clash(one, two, (4, 4), False, ctx)
    asked = isl.queries
    for names in (("t", "w"), ("r", "s"), ("i", "j")):
        assert isl.no_clash(*pair(*names)[:2], (4, 4), False, pair(*names)[2]) is said
    assert (isl.queries, len(isl.clashes)) == (asked, 1)
    others = [
        (one, two, (4, 8), False, ctx), (one, two, (4, 4), True, ctx),
        ((one[0], one[1] + 1, *one[2:]), two, (4, 4), False, ctx),
        (one, (two[0], two[1] - 1, *two[2:]), (4, 4), False, ctx),
        ((*one[:2], (5,), one[3]), two, (4, 4), False, ctx),
        (((one[0][0][0], one[0][0][1] + 1),), *one[1:]),
        (one, two, (4, 4), False, Context((var("t", 0, 8, 1, 0),))),
        ((*one[:3], (var("w", 0, 31, 3, 0),)), two, (4, 4), False, ctx),
        ((*one[:3], (var("w", 0, 30, 3, 3),)), two, (4, 4), False, ctx),
        ((*one[:3], (var("w", 0, 30, 3),)), two, (4, 4), False, ctx),
        ((one[0], Affine.of("t", 4) + Affine.of("w", 40), *one[2:]), two, (4, 4), False, ctx),
        ((((Affine.of("t"), Affine.of("t", 1, 2)),), *one[1:]), two, (4, 4), False, ctx),
        (one, two, (4, 4), False, Context((var("t", 0, 8, 2),))),
    ]  # fmt: skip
    keys = {(_nameless(one, two, ctx.vars), (4, 4), False)}
    for q in others:
        a, b, size, same, c = q if len(q) == 5 else (q, two, (4, 4), False, ctx)
        keys.add((_nameless(a, b, c.vars), size, same))
    assert len(keys) == len(others) + 1
    assert plain.no_clash(one, two, (4, 4), False, ctx) is said


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, True), ({"box": ((2, 5), (1, 2))}, True), ({"box": ((2, 6), (1, 2))}, False),
        ({"box": ((0, 3), (0, 1))}, False), ({"offset": 4}, False), ({"strides": (8, 2)}, False),
        ({"over": True}, False),
        ({"box": ((2, 5),)}, False),
    ],
)  # fmt: skip
def test_boxes_of_one_form_at_one_address(change: dict, told: bool) -> None:
    own = (var("w", 0, 3),)
    one: Layout = box((0, 3), (0, 1)), Affine(), (8, 4), own if "over" in change else ()
    sides = change.get("box", ((1, 4), (3, 4)))
    two: Layout = box(*sides), Affine((), change.get("offset", 0)), change.get("strides", (8, 4)), one[3]
    assert _shifted(one, two) is told
    line: Layout = one[0][:1], one[1], one[2][:1], one[3]
    assert _shifted(line, (box((1, 4)), *line[1:])) is ("over" not in change)
    assert not (told and Isl().no_clash(one, two, (4, 4), True, Context()))


def test_a_question_that_takes_too_long_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """And leaves less time for the next, down to a least that suffices for what is asked day by day."""
    box = ((Affine(), Affine((), 8)), (Affine(), Affine((), 8)))
    halves = [Family(((Affine(), Affine((), 8)), (Affine((), n), Affine((), n + 4)))) for n in (0, 4)]
    isl = Isl()
    assert isl.covers(box, halves, Context(()), (), ("i", "j"))
    assert isl.unanswered == 0
    monkeypatch.setattr("isam.proof.sets.LEAST", 1)
    monkeypatch.setattr("isam.ir.relation.WORK", 4)
    for n in range(1, 4):
        assert not isl.covers(box, halves, Context(()), (), ("i", "j"))
        assert isl.unanswered == n
    monkeypatch.setattr("isam.proof.sets.LEAST", 20_000)
    assert isl.covers(box, halves, Context(()), (), ("i", "j"))
