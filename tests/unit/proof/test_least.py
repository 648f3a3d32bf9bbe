"""What is never below a number, by enumeration: bounds with divisors, sizes that are worked out from others."""

from __future__ import annotations

import random
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Sym
from isam.proof.context import Context, Var, of_sizes
from isam.schedule.tree import Bound

V = Affine.of


def admitted(v: Var, value: int, env: dict[str, int]) -> bool:
    return all(value * b.div >= b.expr.evaluate(env) for b in v.lo) and all(
        value * b.div <= b.expr.evaluate(env) for b in v.hi)  # fmt: skip


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_size_worked_out_from_another(n: int) -> None:
    t = Sym("T", 1, 20)
    of, whole = of_sizes([t, Sym.times("Q", t, n)]).vars
    for size in range(1, 21):
        assert admitted(of, size, {})
        assert [q for q in range(-5, 30) if admitted(whole, q, {"T": size})] == [size // n]
    assert not admitted(of, 0, {})
    assert not admitted(of, 21, {})


def test_no_number_is_above_the_least_value() -> None:
    rng, exact = random.Random(2), 0
    for _ in range(200):
        a, b = rng.randint(-9, 4), rng.randint(1, 3)
        one = Var("a", (Bound(Affine((), a), b),), (Bound(Affine((), a + rng.randint(b, 12)), b),))
        lows = [Bound(V("a", rng.choice((-1, 0, 1)), rng.randint(-9, 3)), rng.choice((1, 1, 2, 3))) for _ in range(2)]
        high = Bound(V("a", rng.choice((-1, 0, 1)), rng.randint(0, 9)), rng.choice((1, 1, 2, 3)))
        if rng.random() < 0.3:
            lows[rng.randrange(2)] = Bound(V("unknown", rng.choice((1, 2))), rng.choice((1, 2)))
        two = Var("b", tuple(lows), (high,))
        known = Var("b", tuple(x for x in lows if "unknown" not in x.expr.names), two.hi)
        e = V("a", rng.choice((-2, -1, 0, 1, 3))) + V("b", rng.choice((-3, -1, 1, 2, 3))) + rng.randint(-3, 3)
        values = [e.evaluate({"a": x, "b": y}) for x, y in product(range(-12, 13), range(-30, 31))
                  if admitted(one, x, {}) and admitted(known, y, {"a": x})]  # fmt: skip
        low = Context((one, two)).lower(e)
        if values and low is not None:
            assert low <= min(values)
            exact += low == min(values)
    assert exact > 50


def test_what_is_said_of_bounds_with_divisors() -> None:
    v = Var("v", (Bound(Affine((), -7), 2),), (Bound(Affine((), 7), 2),))
    ctx = Context((v,))
    assert [ctx.lower(V("v", c)) for c in (1, 2, 3, -1, -2, -3)] == [-3, -7, -10, -3, -7, -10]
    assert ctx.le(-3, V("v"))
    assert not ctx.le(-2, V("v"))
    assert ctx.le(V("v"), 3)
    assert ctx.le(2, 2)
    assert not ctx.le(3, 2)
    unknown = Var("w", (Bound(V("q"), 2), Bound(Affine((), 4), 3)), (Bound(V("q"), 2),))
    assert Context((unknown,)).lower(V("w")) == 2
    assert Context((Var("w", unknown.lo[::-1], unknown.hi),)).lower(V("w")) == 2
    assert Context((unknown,)).lower(V("w", -1)) is None
