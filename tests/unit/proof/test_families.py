"""Members of families, and what is left of boxes, by enumeration."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from isam.ir.affine import Affine
from isam.proof.boxes import Family, chosen, contains, hull, minus, span
from isam.proof.context import Context, Var
from isam.schedule.tree import Bound, Loop, Seq
from tests.unit.proof.test_prover import V, bounds, box, inside, points, values_of

CTX = Context((Var("a", bounds(0), bounds(5), 1, Affine()), Var("b", bounds(0), bounds(6), 2, Affine())))
ENVS = points(CTX)


def variable(choose: random.Random, name: str, outer: list[str]) -> Var:
    """With one bound or two on either side, from a number on or from where another variable is."""
    origin = Affine((), choose.choice((0, 0, 1))) + (V(choose.choice(outer)) if outer and choose.random() < 0.3 else 0)
    his = choose.sample((origin + 6, origin + 3, Affine((), 7), V("a") + 4), choose.choice((1, 1, 2)))
    lows = [origin, *choose.sample((origin - 1, V("a") - 4, Affine((), 1)), choose.choice((0, 0, 1)))]
    div = choose.choice((1, 1, 1, 2))
    hi = tuple(Bound(e * div + (div - 1), div) for e in his)
    return Var(name, bounds(*lows), hi, choose.choice((1, 1, 2)), choose.choice((origin, origin, origin, None)))


@pytest.mark.parametrize("seed", range(6))
def test_members_that_begin_with_a_target(seed: int) -> None:
    """Its variables have values that they may have, and it begins where the target does, or less than a step before:
    whatever is asked to be equal besides is."""
    choose, said = random.Random(seed), Counter[bool]()
    for _ in range(250):
        names = list("vwx"[: choose.choice((1, 2, 2, 3))])
        over = tuple(variable(choose, n, names[:i]) for i, n in enumerate(names))
        rows = [sum((V(n, choose.choice((0, 1, 1, -1, 2))) for n in names), Affine((), choose.randint(-1, 1)))
                for _ in range(choose.choice((len(names), len(names) + 1)))]  # fmt: skip
        at = {
            n: choose.choice((V("a"), V("a") + 1, V("b"), Affine((), choose.randint(0, 5)), V("a", 2))) for n in names
        }
        goals = [r.substitute(at) + choose.choice((0, 0, 0, 0, 1)) for r in rows]
        also = ((rows[0] + 1, goals[0] + 1),) if choose.random() < 0.3 else ()
        made, target = (tuple((lo, lo + 2) for lo in some) for some in (rows, goals))
        got = chosen(over, made, target, CTX, also)
        said[got is None] += 1
        for env in ENVS if got is not None else ():
            here = {**env, **{n: e.evaluate(env) for n, e in got.items()}}
            assert here.keys() == {"a", "b", *names}
            assert all(here[v.name] in values_of(v, here) for v in over)
            if all(v.step == 1 for v in over):
                first = [r.evaluate(here) for r in rows]
                assert sum(x == g.evaluate(env) for x, g in zip(first, goals, strict=True)) >= len(names)
    assert min(said.values()) > 10


def test_one_value_after_the_other() -> None:
    """Whichever variable an equation says something of alone; where none does, nothing is found."""
    over = tuple(Var(n, bounds(0), bounds(9), 1, Affine()) for n in "vwx")
    v, w, x = map(V, "vwx")

    def found(rows: list[Affine], goals: list[Affine | int], some: tuple[Var, ...] = over) -> object:
        made, target = (tuple((Affine.lift(e), Affine.lift(e) + 1) for e in side) for side in (rows, goals))
        return chosen(some, made, target, CTX)

    want = {"v": V("a"), "w": Affine((), 3), "x": Affine((), 2)}
    ways = [([v, w, x], [V("a"), 3, 2]), ([v + w + x, w + x, x], [V("a") + 5, 5, 2]),
            ([x, w + x, v + w], [2, 5, V("a") + 3]), ([v * 2, w * -3 + 1, x], [V("a", 2), -8, 2])]  # fmt: skip
    for rows, goals in ways:
        assert found(rows, goals) == want
    assert found([v + w, w + x, v + x], [2, 3, 4]) is None
    assert found([v * 2, w, x], [V("a", 2) + 1, 3, 2]) is None
    assert found([v * 2, w, x], [V("a") * 3, 3, 2]) is None
    assert found([v, w, x], [V("a"), 3, 10]) is None
    assert found([v, w, x], [V("a") - 1, 3, 2]) is None
    assert found([v * 2 + 1], [V("a", 4) + 5], over[:1]) is None  # at most 12
    assert found([v * 2 + 1], [V("a", 2) + 5], over[:1]) == {"v": V("a") + 2}


def test_what_is_left_of_a_box() -> None:
    """Of three dimensions: parts that hold what is outside the hole, and nothing else."""
    choose = random.Random(1)
    for _ in range(300):
        one, two = (box(*((lo := choose.randint(0, 3), lo + choose.randint(1, 4)) for _ in range(3))) for _ in range(2))
        parts = minus(one, two, Context())
        apart = any(a.const > d.const or c.const > b.const for (a, b), (c, d) in zip(one, two, strict=True))
        assert (parts is None) is apart
        have = [q for p in parts or () for q in inside(Family(p), {})]
        if parts is not None:
            assert Counter(have) == Counter(inside(Family(one), {}) - inside(Family(two), {}))
        assert contains(one, two, Context()) is (inside(Family(two), {}) <= inside(Family(one), {}))


def test_nothing_goes_where_ends_cannot_be_compared() -> None:
    """A hole that may begin before the box, or end behind it."""
    whole, b = box((0, 4), (0, 4)), V("b")
    for side in ((Affine(), b), (b, Affine((), 4)), (b, b + 1), (b - 3, b)):
        for hole in ((side, box((1, 2))[0]), (box((1, 2))[0], side)):
            assert minus(whole, hole, CTX) is None
    assert minus(whole, ((Affine(), V("c")), whole[1]), CTX) is None


def test_ends_that_are_not_known() -> None:
    """Of a loop whose last iteration is not known (or the first) what it moves that way has no end; nothing else."""
    still, up, down = (Affine((), 3), Affine((), 5)), (V("v"), V("v") + 2), (V("v", -1), V("v", -1) + 2)
    known = Loop("v", bounds(0), bounds(6), 2, Seq())
    endless = Loop("v", bounds(0), bounds(V("n"), V("m")), 2, Seq())
    late = Loop("v", bounds(0, 1), bounds(6), 1, Seq())
    assert span(endless).last is None
    assert span(late).first is None
    assert hull((still, up, down), span(known)) == (still, (Affine(), Affine((), 6)), (Affine((), -4), Affine((), 2)))
    for n in (endless, late):
        assert hull((still, still), span(n)) == (still, still)
        assert hull((still, up), span(n)) is hull((down, still), span(n)) is None
    one_way = (Affine(), V("v") + 2)
    assert hull((one_way,), span(endless)) is None
    assert hull((one_way,), span(late)) == ((Affine(), Affine((), 7)),)
