"""Small questions of the provers, by enumeration in both directions: what is so is said, and nothing else."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Sym
from isam.proof.context import Context, Var, of_sizes
from isam.proof.digits import Layout
from isam.proof.sets import Isl
from isam.proof.witness import _meet, _values
from isam.schedule.tree import Bound, Loop, Seq
from tests.unit.proof.test_layouts import facts
from tests.unit.proof.test_prover import bounds

V = Affine.of


# remainders -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(4))
def test_remainders_that_are_one_number(seed: int) -> None:
    """Of an expression in free numbers (how often each variable has gone on by its step) a remainder is one number
    where every factor is a multiple; names that stand for nothing are free numbers, too."""
    choose, said = random.Random(seed), Counter[bool]()
    for _ in range(150):
        made: list[Var] = []
        free: dict[str, Affine] = {}  # of every variable, in free numbers
        for i, name in enumerate("abc"[: choose.randint(0, 3)]):
            origin = Affine((), choose.randint(-3, 9)) + (
                V(choose.choice("abc"[:i]), choose.choice((1, 2, 3))) if i else 0
            )
            step = choose.choice((1, 2, 3, 4, 6))
            known = choose.random() < 0.85
            made.append(Var(name, bounds(0), bounds(9), step, origin if known else None))
            free[name] = origin.substitute(free) + V(f"{name} times", step) if known else V(f"any {name}")
        e = Affine((), choose.randint(-9, 9))
        for name in "abcz":
            e = e + V(name, choose.choice((0, 0, 1, 2, 3, 4, 6, 12)))
        for n in (1, 2, 3, 4, 6, 12):
            whole = e.substitute(free)
            want = whole.const % n if all(c % n == 0 for _, c in whole.terms) else None
            got = Context(tuple(made)).remainder(n, e)
            assert got == want, (e, n, made)
            assert Context(tuple(made)).divides(n, e) is (want == 0)
            said[want is None] += 1
    assert min(said.values()) > 100


def test_what_is_known_of_sizes() -> None:
    for lo, most, by in product((0, 1, 5), (None, 9, 16), (1, 2, 4)):
        ctx = of_sizes([Sym("N", lo, most, by), Sym("M", 3)])
        assert ctx.lower(V("N")) == lo
        assert ctx.lower(-V("N")) == (None if most is None else -(most // by * by)), "what is reached"
        assert (ctx.lower(V("M")), ctx.lower(-V("M"))) == (3, None)
        assert [ctx.divides(n, V("N")) for n in (1, 2, 4, 8)] == [by % n == 0 for n in (1, 2, 4, 8)]


def test_a_step_from_nowhere_is_no_step() -> None:
    """Where it is not known from where on, a variable has every value in its bounds."""
    for step, least in ((1, 1), (3, 1), (3, None)):
        origin = None if least == 1 else Affine()
        ctx = Context((Var("v", bounds(1), bounds(8), step, origin),))
        assert Isl().nonneg(V("v") - 1, ctx)
        assert Isl().nonneg(V("v") - 2, ctx) is (origin is not None)
        assert Isl().nonneg(V("v", -1) + 6, ctx) is (origin is not None)


# iterations -----------------------------------------------------------------------------------------------------------
def test_bounds_of_loops_step_by_step() -> None:
    for x, c, div in product(range(-9, 10), (1, 2, -3), (1, 2, 3, 5)):
        b, n = Bound(V("v", c, 1), div), c * x + 1
        least = next(k for k in range(-40, 40) if k * div >= n)
        most = next(k for k in range(40, -40, -1) if k * div <= n)
        wide = Bound(Affine((), -50)), Bound(Affine((), 50))
        assert Loop("k", (b, wide[0]), (wide[1],), 1, Seq()).values({"v": x})[0] == least
        assert Loop("k", (wide[0],), (b, wide[1]), 1, Seq()).values({"v": x})[-1] == most - 1


@pytest.mark.parametrize("seed", range(3))
def test_first_and_last_iterations(seed: int) -> None:
    """Of every loop, given those around it: with several bounds, divisors and steps."""
    choose, said = random.Random(seed), Counter[int]()
    for _ in range(150):
        made: list[Var] = []
        for i, name in enumerate("ab"[: choose.randint(1, 2)]):
            shift = V("a") if i and choose.random() < 0.7 else Affine()
            lo, hi = (tuple(Bound(shift * choose.choice((1, 2)) + choose.randint(*of), choose.choice((1, 1, 2, 3)))
                            for _ in range(choose.choice((1, 1, 2)))) for of in ((-4, 2), (1, 14)))  # fmt: skip
            step = choose.choice((1, 2, 2, 3))
            made.append(Var(name, lo, hi, step, choose.choice((None, shift + choose.randint(-3, 3)))))
        want: list[dict[str, int]] = [{}]
        for v in made:
            more = []
            for env in want:
                inside = [x for x in range(-40, 41) if all(b.div * x >= b.expr.evaluate(env) for b in v.lo)
                          and all(b.div * x <= b.expr.evaluate(env) for b in v.hi)]  # fmt: skip
                if v.origin is not None:
                    inside = [x for x in inside if (x - v.origin.evaluate(env)) % v.step == 0]
                more += [{**env, v.name: x} for x in ([*dict.fromkeys((inside[0], inside[-1]))] if inside else [])]
            want = more
        assert list(_values(made, {})) == want
        said[len(want)] += 1
    assert said.keys() >= {0, 1, 2, 4}


@pytest.mark.parametrize("seed", range(3))
def test_corners_that_meet(seed: int) -> None:
    """Where a row lies in one line, nearest is exact: the first or the last element of one shares a byte, or not."""
    choose, said = random.Random(seed), Counter[bool]()
    for _ in range(300):
        layouts: list[Layout] = []
        for _ in range(2):
            lo = choose.randint(0, 4)
            box = ((Affine.lift(lo), Affine.lift(lo + choose.randint(0 if choose.random() < 0.1 else 1, 4))),)
            layouts.append((box, Affine.lift(choose.randint(0, 30)), (choose.choice((4, 6, 8)),), ()))
        size, same = (choose.choice((1, 2, 4)), choose.choice((1, 2, 4))), choose.random() < 0.5
        mine, theirs = ({x: at.const + (x - box[0][0].const) * k for x in range(box[0][0].const, box[0][1].const)}
                        for box, at, (k,), _ in layouts)  # fmt: skip
        ends = (min(mine), max(mine)) if mine else ()
        meet = [(x, y) for x in ends for y in theirs if -size[0] < mine[x] - theirs[y] < size[1]]
        want = any(not same or x != y for x, y in meet)
        got = _meet(layouts[0], {}, layouts[1], {}, size, same)
        assert want or not got
        before = [(x, y) for x, y in meet if mine[x] >= theirs[y]]  # an element that begins after it is not looked for
        assert got or not any(not same or x != y for x, y in before)
        said[got] += 1
    assert min(said.values()) > 40


# places ---------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(3))
def test_facts_that_lie_outside(seed: int) -> None:
    """Of two rows that move with loops: said wherever differences are known, and true for all their values."""
    choose, said = random.Random(seed), Counter[bool]()
    ctx = Context((Var("v", bounds(0), bounds(3), 1, Affine()), Var("w", bounds(0), bounds(V("v")), 1, Affine())))
    values = [{"v": v, "w": w} for v in range(4) for w in range(v + 1)]
    for _ in range(300):
        fs, made = facts(), []
        for _ in range(2):
            wide = choose.choice((Affine(), Affine(), V("w"), V("v")))
            at = choose.choice((Affine(), V("v", 16), V("w", 16), V("u", 16))) + 4 * choose.randint(0, 20)
            over = (Var("u", bounds(0), bounds(V("v")), 1, Affine()),) if "u" in at.names else ()
            made.append(fs.make("a", ("m", ""), None, at, (4,), ((Affine(), wide + choose.randint(1, 4)),), over))
        f, other = made
        if other.over:
            continue
        got = fs.layout.apart(f, other.low, other.high, ctx)
        every = [{**e, "u": u} for e in values for u in range(e["v"] + 1)]
        ends = [[x.evaluate(e) for x in (f.low, f.high, other.low, other.high)] for e in every]
        before, behind = all(b <= c for _, b, c, _ in ends), all(d <= a for a, _, _, d in ends)
        assert got is (before or behind)  # bounds over such loops are exact
        said[got] += 1
    assert min(said.values()) > 40


@pytest.mark.parametrize("seed", range(2))
def test_rules_that_are_one_for_all_values(seed: int) -> None:
    """Of a row and a tile that repeats: every element of it where the row's rule puts it."""
    choose, said = random.Random(seed), Counter[bool]()
    for _ in range(150):
        fs, last, step, by = facts(), choose.choice((0, 0, 1, 2)), choose.choice((1, 2)), choose.choice((4, 8))
        f = fs.make("a", ("m", ""), None, Affine(), (by,), ((Affine(), Affine((), 8)),))
        v = Var("v", bounds(0), bounds(last * step), step, Affine())
        at = V("v", choose.choice((0, 1, by, by))) + choose.choice((0, 0, 0, 4))
        own = fs.make("a", ("m", ""), None, at, (by,), ((V("v"), V("v") + 1),), (v,))
        t = fs.sought(own)
        want = all(at.evaluate({"v": x}) == by * x for x in range(0, last * step + 1, step))
        assert fs.layout.same_layout(f, t, Context()) is want
        said[want] += 1
    assert min(said.values()) > 20
