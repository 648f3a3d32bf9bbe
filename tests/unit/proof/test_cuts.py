"""What is left of a fact after a write over some of its bytes, against a count of every element."""

from __future__ import annotations

import random
from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.proof.boxes import Family
from isam.proof.context import Context, Var
from isam.proof.cuts import intersection, outside
from isam.proof.state import Fact
from tests.unit.proof.test_prover import affine, bounds, chain, inside, points


def fact(strides: tuple[int, ...], shape: tuple[int, ...], offset: int = 0, start: int = 0) -> Fact:
    box = tuple((Affine((), start), Affine((), start + n)) for n in shape)
    return Fact("x", ("m", ""), None, Affine((), offset), strides, 1, box)


def elements(box) -> set[tuple[int, ...]]:
    return set(product(*(range(lo.const, hi.const) for lo, hi in box)))


def kept(f: Fact, size: int, low: int, high: int) -> tuple[set, set]:
    """(elements in the parts, elements that the write does not touch); parts do not overlap."""
    parts = outside(f, size, Affine((), low), Affine((), high), Context(()))
    together = [e for b in parts for e in elements(b)]
    assert len(together) == len(set(together))
    first = {e: f.address(map(Affine.lift, e)).const for e in elements(f.box)}
    return set(together), {e for e, at in first.items() if at + size <= low or at >= high}


@pytest.mark.parametrize("seed", range(200))
def test_never_a_touched_element_and_all_others_of_packed_tiles(seed):
    rng = random.Random(seed)
    size = rng.choice([1, 2, 4, 8])
    shape = tuple(rng.randint(1, 5) for _ in range(rng.randint(1, 3)))
    strides, packed = [], size
    for n in reversed(shape):
        strides.insert(0, packed * rng.choice([1, -1]))
        packed *= n
    low = rng.randint(-packed, packed)
    inside, untouched = kept(fact(tuple(strides), shape, 8, seed % 3), size, low, low + rng.randint(1, packed))
    assert inside == untouched


@pytest.mark.parametrize("seed", range(200))
def test_never_a_touched_element_of_any_layout(seed):
    rng = random.Random(seed)
    shape = tuple(rng.randint(1, 5) for _ in range(rng.randint(0, 3)))
    strides = tuple(rng.randint(-20, 20) for _ in shape)
    inside, untouched = kept(fact(strides, shape), 4, low := rng.randint(-60, 60), low + rng.randint(1, 60))
    assert inside <= untouched


def test_what_is_not_known_is_not_kept():
    f = fact((4,), (8,))
    assert outside(f, 4, Affine.of("i"), Affine.of("i", 1, 4), Context(())) == []
    i = Var("i", bounds(0), bounds(Affine.of("T")), 1, Affine())
    for low in (Affine.of("i"), Affine.of("i", -1)):  # one end of it is known
        assert outside(f, 4, low, low + 4, Context((i,))) == []
    some, all_ = (Affine(), Affine.of("i")), (Affine(), Affine((), 8))
    for box in ((some, all_), (all_, some)):
        long = Fact("x", ("m", ""), None, Affine(), (32, 4), 1, box)
        assert outside(long, 4, Affine((), 900), Affine((), 904), Context(())) == []


@pytest.mark.parametrize("seed", range(60))
def test_what_no_iteration_of_a_write_touches_is_kept(seed):
    """Of packed tiles, everything before its first byte and behind its last one."""
    rng = random.Random(seed)
    ctx, low, long = chain(rng), affine(rng), rng.randint(1, 20)
    at = [low.evaluate(p) for p in points(ctx)]
    shape = (rng.randint(1, 5), rng.randint(1, 5))
    f = fact((4 * shape[1], 4), shape, rng.choice([-40, 0, 8]))
    stay = {e for b in outside(f, 4, low, low + long, ctx) for e in elements(b)}
    first = {e: f.address(map(Affine.lift, e)).const for e in elements(f.box)}
    never = {e for e, x in first.items() if all(x + 4 <= a or x >= a + long for a in at)}
    assert stay <= never
    tight = ctx.lower(low) == min(at) and ctx.lower(-low) == -max(at) if at else False
    beside = {e for e, x in first.items() if at and (x + 4 <= min(at) or x >= max(at) + long)}
    assert not tight or stay == beside


def test_intersections():
    def box(*sides):
        return tuple((Affine((), a), Affine((), b)) for a, b in sides)

    assert intersection(box((0, 8), (2, 4)), box((4, 12), (0, 9)), Context()) == box((4, 8), (2, 4))
    assert intersection(box((0, 4)), box((4, 8)), Context()) is None
    moving = ((Affine.of("i"), Affine.of("i", 1, 4)),)
    assert intersection(box((0, 4)), moving, Context()) is None
    assert intersection(moving, moving, Context()) is moving or intersection(moving, moving, Context()) == moving


@pytest.mark.parametrize("seed", range(4))
def test_intersections_of_boxes_that_move(seed: int) -> None:
    """What is given is the intersection, and never empty; nothing is given where ends cannot be compared."""
    rng, given = random.Random(seed), 0
    for _ in range(50):
        ctx = chain(rng)
        ends = [affine(rng, "a") for _ in range(2)]
        one, two = (tuple((lo := rng.choice(ends) + rng.randint(-1, 1), lo + rng.choice((1, 3, 6)) + rng.choice(
            (Affine(), Affine(), affine(rng, "b")))) for _ in range(2)) for _ in range(2))  # fmt: skip
        got, envs = intersection(one, two, ctx), points(ctx)
        sides = [(x, y) for a, b in zip(one, two, strict=True) for x, y in zip(a, b, strict=True)]
        if not all(ctx.le(x, y) or ctx.le(y, x) for x, y in sides):
            assert got is None
        for e in envs if got is not None else ():
            assert inside(Family(got), e) == inside(Family(one), e) & inside(Family(two), e) != set()
        given += got is not None
    assert given


def test_elements_at_one_address_stay_where_a_write_ends_before_or_begins_behind_them():
    for low, high, stay in ((0, 8, True), (12, 20, True), (0, 9, False), (11, 20, False)):
        inside, untouched = kept(fact((0,), (3,), 8), 4, low, high)
        assert inside == untouched
        assert bool(inside) == stay


@pytest.mark.parametrize("seed", range(40))
def test_the_first_and_the_last_byte_of_what_a_fact_speaks_of(seed: int) -> None:
    """Sides with names in them, strides of both signs: for every value, against every byte of every element."""
    r = random.Random(seed)
    open_ = Affine.of("T", r.choice((1, 2)), r.randint(0, 2))
    sides = [(Affine((), 0), open_), (Affine.of("i", 1, r.randint(0, 3)), Affine.of("i", 1, r.randint(4, 6)))]
    sides = [sides[n] for n in r.choices((0, 1), k=2)]
    strides, size = tuple(r.choice((-48, -4, 4, 48)) for _ in sides), r.choice((1, 4))
    fact = Fact("x", ("m", ""), None, Affine.of("i", 8, 100), strides, size, tuple(sides))
    for t, i in product(range(1, 4), range(3)):
        values = {"T": t, "i": i}
        spans = [[e.evaluate(values) for e in side] for side in sides]
        begin = fact.offset.evaluate(values)
        steps = [[k * n for n in range(high - low)] for k, (low, high) in zip(strides, spans, strict=True)]
        told = {begin + sum(at) + b for at in product(*steps) for b in range(size)}
        assert (fact.low.evaluate(values), fact.high.evaluate(values)) == (min(told), max(told) + 1)
        at = [n for n, _ in spans]
        assert fact.address(Affine((), n) for n in at).evaluate(values) == begin
