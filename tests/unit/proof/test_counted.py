"""Coverage by counting says what carrying out every point says, and isl agrees."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.proof import counted as module
from isam.proof.boxes import ONCE, TWICE, Box, Family, dim
from isam.proof.context import Context, Var
from isam.proof.counted import counted
from isam.proof.sets import Isl
from isam.schedule.tree import Bound

N = 6
DOMAIN: Box = ((Affine(), Affine((), N)), (Affine(), Affine((), N)))


def at(text: str, *, times: int = 1, plus: int = 0) -> Affine:
    return Affine.of(text, times, plus)


def var(name: str, lo: Affine, hi: Affine, step: int = 1) -> Var:
    """From ``lo`` to ``hi``, both included."""
    return Var(name, (Bound(lo),), (Bound(hi),), step, lo)


def number(n: int) -> Affine:
    return Affine((), n)


def triangle(size: int) -> list[Family]:
    """``j <= i`` in square blocks, and rows along the edge."""
    last = number(N - size)
    blocks = Family(((at("x"), at("x", plus=size)), (at("y"), at("y", plus=size))),
                    (var("x", number(0), last, size), var("y", number(0), at("x", plus=-size), size)))  # fmt: skip
    rows = [Family(((at("x", plus=r), at("x", plus=r + 1)), (at("x"), at("x", plus=r + 1))),
                   (var("x", number(0), last, size),)) for r in range(size)]  # fmt: skip
    return [blocks, *rows]


def points(f: Family) -> Counter[tuple[int, ...]]:
    """Every point as often as the family has it, one value after the other."""
    out: Counter[tuple[int, ...]] = Counter()

    def go(left: tuple[Var, ...], known: dict[str, int]) -> None:
        if not left:
            out.update(product(*(range(lo.evaluate(known), hi.evaluate(known)) for lo, hi in f.box)))
            return
        v = left[0]
        lo = max(-(-b.expr.evaluate(known) // b.div) for b in v.lo)
        hi = min(b.expr.evaluate(known) // b.div for b in v.hi)
        start = v.origin.evaluate(known) if v.origin is not None else lo
        for value in range(lo, hi + 1):
            if (value - start) % v.step == 0:
                go(left[1:], {**known, v.name: value})

    go(f.over, {})
    return out


def carried_out(families: list[Family], where: tuple[Affine, ...]) -> bool:
    have = sum((points(f) for f in families), Counter())
    want = Counter(p for p in product(range(N), range(N))
                   if all(w.evaluate({dim(0): p[0], dim(1): p[1]}) >= 0 for w in where))  # fmt: skip
    return have == want


BELOW = (at(dim(0)) - at(dim(1)),)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_a_triangle_in_blocks_is_covered(size: int) -> None:
    assert counted(triangle(size), DOMAIN, BELOW) == ""
    assert carried_out(triangle(size), BELOW)


@pytest.mark.parametrize("gone", range(4))
def test_what_is_missing_is_told(gone: int) -> None:
    families = [f for n, f in enumerate(triangle(3)) if n != gone]
    assert "is never executed" in (counted(families, DOMAIN, BELOW) or "")


def test_what_is_there_again_or_outside_is_told() -> None:
    again = Family(((number(4), number(5)), (number(1), number(2))))
    outside = Family(((number(1), number(2)), (number(3), number(4))))
    beyond = Family(((number(N), number(N + 1)), (number(0), number(1))))
    said = [counted([*triangle(2), f], DOMAIN, BELOW) for f in (again, outside, beyond)]
    assert said == ["points are executed 2 times: {'d0': 4, 'd1': 1}",
                    "a point outside the domain is executed: {'d0': 1, 'd1': 3}",
                    "a point outside the domain is executed: {'d0': 6, 'd1': 0}"]  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_random_families_are_judged_as_when_carried_out(seed: int) -> None:
    r = random.Random(seed)
    families = triangle(r.choice([1, 2, 3])) if r.random() < 0.5 else []
    for _ in range(r.randint(0, 3)):
        step = r.randint(1, 3)
        v = var("v", number(r.randint(0, 3)), number(r.randint(-1, 5)), step)
        w = Var("w", (Bound(at("v", times=r.choice([-1, 1, 2])), r.choice([1, 2])),),
                (Bound(number(4)), Bound(at("v", plus=2))), 1, None)  # fmt: skip
        row = at("w", times=r.choice([0, 1]), plus=r.randint(0, 2))
        column = at("v", times=r.choice([0, 1, -1]), plus=r.randint(0, 5))
        families.append(Family(((row, row + r.randint(0, 2)), (column, column + r.randint(1, 3))), (v, w)))
    where = BELOW if r.random() < 0.7 else ()
    said = counted(families, DOMAIN, where)
    assert said is not None
    assert (said == "") == carried_out(families, where)


def test_isl_says_the_same_where_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    where = (at("i") - at("j"),)
    ask = lambda families: Isl().exactly_once(  # noqa: E731
        families, [ONCE] * len(families), DOMAIN, where, ("i", "j"), Context())[0]  # fmt: skip
    cases = [triangle(3), triangle(3)[1:], [*triangle(2), triangle(2)[1]]]
    by_count = [ask(c) for c in cases]
    monkeypatch.setattr(module, "BOXES", -1)
    assert [ask(c) for c in cases] == by_count == [True, False, False]


def test_what_cannot_be_counted_is_left_to_isl() -> None:
    size = Family(((number(0), at("N")), (number(0), number(N))))
    vague = Family(((at("v"), at("v", plus=1)), (number(0), number(N))),
                   (Var("v", (Bound(number(0)),), (Bound(number(5)),), 2, None),))  # fmt: skip
    assert counted([size], DOMAIN, ()) is None
    assert counted([vague], DOMAIN, ()) is None
    assert counted([], ((number(0), at("N")),), ()) is None
    assert counted([], DOMAIN, (at("N"),)) is None
    assert counted([], (), ()) is None


def test_a_family_that_holds_points_twice_is_never_counted() -> None:
    """Its box is a union: it does not show how often."""
    below = (at("i") - at("j"),)
    rows = triangle(1)[1]
    assert Isl().exactly_once([*triangle(1)[:1], rows], [ONCE, ONCE], DOMAIN, below, ("i", "j"), Context())[0]
    assert not Isl().exactly_once([*triangle(1)[:1], rows], [ONCE, TWICE], DOMAIN, below, ("i", "j"), Context())[0]
