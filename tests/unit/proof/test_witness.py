"""Examples of elements that share a byte: each found is one, isl agrees; where there is none, none is found."""

from __future__ import annotations

import random
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.proof.context import Context, Var
from isam.proof.digits import Layout
from isam.proof.sets import Isl
from isam.proof.witness import clash
from isam.schedule.tree import Bound

OUT, IN = "t", "w"  # a variable around both layouts, one inside each


def var(name: str, lo: Affine | int, hi: Affine | int, step: int = 1, origin: Affine | int | None = None) -> Var:
    at = None if origin is None else Affine.lift(origin)
    return Var(name, (Bound(Affine.lift(lo)),), (Bound(Affine.lift(hi)),), step, at)


def layout(rng: random.Random) -> Layout:
    """A small box of one or two dimensions that moves with its own variable or with the one around."""
    rank = rng.choice((1, 2))
    strides = tuple(sorted((rng.choice((1, 2, 4, 6, 8, 16)) for _ in range(rank)), reverse=True))
    by = rng.choice((None, IN, OUT))
    box = []
    for _ in range(rank):
        lo = Affine.lift(rng.randrange(4)) + (Affine.of(by, rng.choice((1, 2))) if by and rng.random() < 0.6 else 0)
        box.append((lo, lo + rng.randrange(1, 4)))
    start = rng.randrange(3) * 4
    over = (var(IN, start, start + rng.randrange(9), rng.choice((1, 4)), start),) if by == IN else ()
    offset = Affine.of(by, rng.choice((0, 4, 8)), rng.randrange(0, 40)) if by else Affine.lift(rng.randrange(0, 40))
    return tuple(box), offset, strides, over


def values(variables: tuple[Var, ...], env: dict[str, int]) -> list[dict[str, int]]:
    out = [env]
    for v in variables:
        out = [{**e, v.name: x} for e in out for x in range(v.lo[0].expr.evaluate(e), v.hi[0].expr.evaluate(e) + 1)
               if v.origin is None or (x - v.origin.evaluate(e)) % v.step == 0]  # fmt: skip
    return out


def elements(x: Layout, env: dict[str, int]) -> set[tuple[tuple[int, ...], int]]:
    """Every element with its first byte, at every value of the layout's own variables."""
    out = set()
    for e in values(x[3], env):
        box = [(lo.evaluate(e), hi.evaluate(e)) for lo, hi in x[0]]
        for point in product(*(range(lo, hi) for lo, hi in box)):
            steps = (k * (p - lo) for k, p, (lo, _) in zip(x[2], point, box, strict=True))
            out.add((point, x[1].evaluate(e) + sum(steps)))
    return out


def exactly(one: Layout, two: Layout, size: tuple[int, int], same: bool, around: tuple[Var, ...]) -> bool:
    """By enumeration: whether some byte belongs to an element of each."""
    for env in values(around, {}):
        theirs = elements(two, env)
        for x, p in elements(one, env):
            if any(-size[0] < p - q < size[1] and not (same and x == y) for y, q in theirs):
                return True
    return False


def test_what_is_found_is_an_example_and_isl_agrees() -> None:
    rng = random.Random(5)
    found = there = 0
    for _ in range(400):
        one, two = layout(rng), layout(rng)
        if len(one[0]) != len(two[0]):
            continue
        around = (var(OUT, 0, rng.randrange(6), rng.choice((1, 2)), 0),)
        size, same = (rng.choice((1, 2, 4)),) * 2, rng.random() < 0.5
        truth = exactly(one, two, size, same, around)
        got = clash(one, two, size, same, around)
        assert truth or not got
        assert Isl()._no_clash(one, two, size, same, Context(around)) is not truth
        found, there = found + got, there + truth
    assert there > 60
    assert found > there // 2


def panel(row: Affine | int, column: Affine | int, offset: Affine | int) -> Layout:
    lo, left = Affine.lift(row), Affine.lift(column)
    return ((lo, lo + 1), (left, left + 4)), Affine.lift(offset), (16, 4), ()


def test_a_panel_written_again_clashes_and_isl_is_not_asked() -> None:
    around = (var("j", 0, 60, 4, 0), var("^", 0, Affine.of("j") - 4, 4, 0))
    old, new = panel(3, Affine.of("^"), 48), panel(0, Affine.of("j"), 48)
    isl = Isl()
    assert not isl.no_clash(old, new, (4, 4), True, Context(around))
    assert isl.queries == 0


def test_rows_that_lie_apart_are_left_to_isl() -> None:
    around = (var("j", 0, 60, 4, 0), var("^", 0, Affine.of("j") - 4, 4, 0))
    one, two = panel(0, Affine.of("^"), Affine.of("^", 16)), panel(0, Affine.of("j"), Affine.of("j", 16))
    assert not clash(one, two, (4, 4), False, around)
    isl = Isl()
    assert isl.no_clash(one, two, (4, 4), False, Context(around))
    assert isl.queries == 1


@pytest.mark.parametrize("around", [
    (), (Var("j", (), (Bound(Affine.lift(3)),)),), (Var("j", (Bound(Affine.lift(3)),), ()),), (var("j", 5, 4),),
])  # fmt: skip
def test_without_limits_or_values_nothing_is_said(around: tuple[Var, ...]) -> None:
    one = panel(0, Affine.of("j"), 0)
    assert not clash(one, one, (4, 4), False, around)


def test_an_element_does_not_clash_with_itself_in_one_buffer() -> None:
    one = ((Affine.lift(2), Affine.lift(3)),), Affine.lift(8), (4,), ()
    assert not clash(one, one, (4, 4), True, ())
    assert clash(one, one, (4, 4), False, ())
