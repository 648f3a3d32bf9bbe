"""Arithmetic of values against polynomials per point, by enumeration: of small random relations, every operation."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import permutations, product

import pytest

from isam.ir.relation import Region, Rel, TooMuch
from isam.proof.fibres import LENGTHS, fibres
from isam.proof.value import ONE, PIECES, Ring, Value, number_of
from tests.unit.proof.pointwise import (
    LINE,
    LOGICAL,
    RANKS,
    Point,
    Poly,
    counted,
    given,
    normal,
    nothing,
    pairs,
    plus,
    points,
    polys,
    region,
    relation,
    ring,
    some_terms,
    some_value,
    times,
)

SEEDS = range(12)
SIZES = 4
RINGS = [(True, (), 0), (False, (), 0), (True, LOGICAL, 0), (True, (), 256), (False, LOGICAL, 0)]


def kinds(seed: int) -> tuple[random.Random, Ring, int]:
    support, logical, modulus = RINGS[seed % len(RINGS)]
    return random.Random(seed), ring(support, logical), modulus


@pytest.mark.parametrize("seed", SEEDS)
def test_terms_that_meet_are_added_up(seed: int) -> None:
    rng, r, _ = kinds(seed)
    for modulus in (0, 8):
        for _ in range(4):
            terms = some_terms(rng, r, LINE)
            if modulus:
                terms = {k: [(Fraction(int(w * 2)), s) for w, s in t] for k, t in terms.items()}
            made = r.value(region(LINE, 1), terms, modulus)
            expected = {p: normal(r, a, modulus) for p, a in given(r, LINE, terms, ordered=False).items()}
            assert polys(r, made, ordered=False) == expected
            assert all(len({w for w, _ in parts}) == len(parts) for parts in made.terms.values())
            assert made.modulus == modulus
            assert points(made.over) == LINE


@pytest.mark.parametrize("seed", SEEDS)
def test_sums_and_products(seed: int) -> None:
    rng, r, modulus = kinds(seed)
    for _ in range(3):
        a, b = (some_value(rng, r, LINE, modulus) for _ in range(2))
        x, y = polys(r, a), polys(r, b)
        c = Fraction(rng.choice([-1, 0, 2, 3]))
        assert polys(r, r.add(a, b)) == {p: normal(r, plus(x[p], y[p]), modulus) for p in x}
        assert polys(r, r.scale(a, c)) == {p: normal(r, {m: w * c for m, w in x[p].items()}, modulus) for p in x}
        made = r.mul(a, b)
        for p, got in polys(r, made).items():
            assert nothing(got) == nothing(normal(r, times(x[p], y[p]), modulus))
        assert {v.modulus for v in (r.add(a, b), r.scale(a, c), made)} == {modulus}


def some_path(rng: random.Random, to: list[Point], ins: list[Point]) -> Rel:
    return relation([(p, rng.choice(to)) for p in ins if rng.random() < 0.8], len(ins[0]), len(to[0]))


GRID = [(i, j) for i in range(2) for j in range(2)]


@pytest.mark.parametrize("seed", SEEDS)
def test_moving(seed: int) -> None:
    rng, r, modulus = kinds(seed)
    a = some_value(rng, r, LINE, modulus)
    x = polys(r, a)
    path = some_path(rng, LINE, GRID)
    moved = r.through(path, a)
    assert polys(r, moved) == {p: x[q] for p, q in pairs(path)}
    dest = relation(zip(LINE, rng.sample(GRID, 3), strict=True), 1, 2)
    assert polys(r, r.placed(dest, a)) == {q: x[p] for p, q in pairs(dest)}
    some = region([p for p in LINE if rng.random() < 0.5], 1)
    on, off = r.on(a, some), r.off(a, some)
    assert polys(r, on) == {p: x[p] for p in points(some)}
    assert polys(r, off) == {p: x[p] for p in LINE if p not in points(some)}
    again = r.joined(on, off)
    assert polys(r, again) == x
    assert all(len({w for w, _ in parts}) == len(parts) for parts in again.terms.values())
    assert {v.modulus for v in (moved, r.placed(dest, a), on, off, again)} == {modulus}


@pytest.mark.parametrize("seed", range(24))
def test_sums_over_what_leads_to_one_element(seed: int) -> None:
    rng, r, modulus = kinds(seed)
    over = [(i, j) for i in range(3) for j in range(rng.randint(1, 4))]
    a = some_value(rng, r, over, modulus, keys=2)
    x = polys(r, a)
    ends = [(0,), (2,), (5,)]
    dest = relation([(p, rng.choice(ends)) for p in over], 2, 1)
    made = r.summed(dest, a, SIZES)
    total: dict[Point, Poly] = {q: {} for _, q in pairs(dest)}
    for p, q in pairs(dest):
        total[q] = plus(total[q], x[p])
    got = polys(r, made)
    assert {q: nothing(normal(r, counted(v, SIZES), modulus)) for q, v in got.items()} == {
        q: nothing(normal(r, v, modulus)) for q, v in total.items()
    }
    assert not any(SIZES in key for key in made.terms)  # so few numbers are told apart
    assert made.modulus == modulus


@pytest.mark.parametrize("seed", SEEDS)
def test_other_values_for_arrays(seed: int) -> None:
    rng, r, modulus = kinds(seed)
    if r.logical:
        r.logical = {2}  # what stands for an element is any value
    a = some_value(rng, r, LINE, modulus, keys=2)
    by = {n: some_value(rng, r, [()] if not RANKS[n] else list(product(range(2), repeat=RANKS[n])), modulus, keys=2)
          for n in (0, 1, 3)}  # fmt: skip
    same = r.read(2, region([()], 0).identity(), modulus)
    asked: set[int] = set()

    def other(n: int, where: Region) -> Value:
        asked.add(n)
        return same if n == 2 else r.on(by[n], where)

    made = r.substituted(a, other, modulus, SIZES)
    inner = {n: polys(r, v) for n, v in {**by, 2: same}.items()}
    got = polys(r, made)
    for p, old in polys(r, a).items():
        new: Poly = {}
        for m, w in old.items():
            part: Poly = {(): w}
            for n, at in m:
                part = times(part, inner[n][at])
            new = plus(new, part)
        assert nothing(normal(r, counted(got[p], SIZES), modulus)) == nothing(normal(r, new, modulus))
    assert asked == {n for key in a.terms for n in key}
    assert made.modulus == modulus


def alike(r: Ring, one: Poly, two: Poly) -> bool:
    return nothing(one) == nothing(two)


def written_otherwise(rng: random.Random, r: Ring, a: Value) -> Value:
    """The same polynomials, factors of one array in another order, relations cut otherwise."""
    terms = {}
    for key, parts in a.terms.items():
        out = terms.setdefault(key, [])
        for w, s in parts:
            some = relation([x for x in pairs(s) if rng.random() < 0.5], s.ins, s.outs)
            order = rng.choice([o for o in permutations(range(len(key))) if tuple(key[i] for i in o) == key])
            starts = [sum(RANKS[n] for n in key[:i]) for i in range(len(key))]
            places = [starts[i] + d for i in order for d in range(RANKS[key[i]])]
            out += [(w, part) for part in (some.picked(places), s - some) if not part.is_empty()]
    return r.value(a.over, terms, a.modulus)


@pytest.mark.parametrize("seed", range(24))
def test_comparing(seed: int) -> None:
    rng, r, modulus = kinds(seed)
    a = some_value(rng, r, LINE, modulus)
    edits = [written_otherwise(rng, r, a), r.add(a, r.constant(ONE, region([(1,)], 1), modulus)),
             r.add(a, r.scale(some_value(rng, r, LINE, modulus, 1), Fraction())), some_value(rng, r, LINE, modulus),
             r.add(a, r.scale(some_value(rng, r, LINE, modulus, 1), Fraction(128)))]  # fmt: skip
    x = polys(r, a)
    for b in edits:
        y = polys(r, b)
        assert r.equal(a, b) == r.equal(b, a) == all(alike(r, x[p], y[p]) for p in LINE)
        assert pairs(r.agreement(a, b)) == [(p, q) for p in LINE for q in LINE if alike(r, x[p], y[q])]


def test_a_square_counts_once_where_numbers_wrap() -> None:
    """128 x x is not zero modulo 256, though twice as much is; 128 (x y + y x) is."""
    r = ring()
    over = region([()], 0)

    def value(weight: int, *factors: Point) -> Value:
        at = tuple(c for f in factors for c in f)
        return r.value(over, {(0,) * len(factors): [(Fraction(weight), relation([((), at)], 0, len(at)))]}, 256)

    zero = r.constant(Fraction(), over, 256)
    assert not r.equal(value(128, (1,), (1,)), zero)
    assert not r.equal(value(64, (1,), (1,), (1,), (1,)), zero)
    assert not r.equal(value(128, (1,), (1,), (2,)), zero)
    two = relation([((), (1, 1, 0, 1))], 0, 4)  # a square beside a product of two elements of another array
    assert not r.equal(r.value(over, {(0, 0, 1, 1): [(Fraction(128), two)]}, 256), zero)
    assert r.equal(r.add(value(128, (1,), (2,)), value(128, (2,), (1,))), zero)
    assert r.equal(r.add(value(128, (1,), (1,)), value(128, (1,), (1,))), zero)


def test_up_to_four_equal_factors_in_any_order() -> None:
    r = ring()
    over = region([()], 0)
    for count, told in ((2, True), (4, True), (5, False)):
        one, two = (r.read(0, relation([((), (0,))], 0, 1)) for _ in range(2))
        at = tuple(range(count))
        one, two = (Value(over, {(0,) * count: ((ONE, relation([((), x)], 0, count)),)}) for x in (at, at[::-1]))
        assert r.equal(one, two) is told


def product_of(factors: list[Point]) -> Rel:
    at = tuple(c for f in factors for c in f)
    return relation([((), at)], 0, len(at))


@pytest.mark.parametrize("support", [False, True])
def test_a_product_less_the_same_turned_is_nothing(support: bool) -> None:
    """Where nothing is infinite; else it is a zero of that product."""
    r, over = ring(support), region([()], 0)
    for n, factors in ((0, [(0,), (1,)]), (3, [(0, 1), (1, 1)]), (3, [(0, 1), (1, 0)])):
        terms = ((ONE, product_of(factors)), (-ONE, product_of(factors[::-1])))
        a, zero = Value(over, {(n, n): terms}), r.constant(Fraction(), over)
        for one, two in ((a, zero), (zero, a)):
            assert r.equal(one, two) is not support
            assert bool(pairs(r.agreement(one, two))) is not support
        assert r.equal(a, a)
        assert pairs(r.agreement(a, a)) == [((), ())]


@pytest.mark.parametrize("seed", range(4))
def test_equal_factors_of_two_coordinates_in_any_order(seed: int) -> None:
    """Products of elements of one table, as numbers are: in any order, but no coordinates exchanged."""
    choose, r, over, said = random.Random(seed), ring(), region([()], 0), set()
    for _ in range(60):
        count = choose.choice((2, 2, 3))
        some = [(choose.randint(0, 1), choose.randint(0, 1)) for _ in range(count)]
        others = choose.sample(some, count)
        if choose.random() < 0.5:
            k = choose.randrange(count)
            others[k] = choose.choice((others[k][::-1], (choose.randint(0, 1), choose.randint(0, 1))))
        one, two = (Value(over, {(3,) * count: ((ONE, product_of(x)),)}) for x in (some, others))
        same = sorted(some) == sorted(others)
        assert r.equal(one, two) is same
        assert bool(pairs(r.agreement(one, two))) is same
        said.add(same)
    assert said == {True, False}


def test_as_many_pieces_as_there_may_be() -> None:
    r, far = ring(), [(2 * k,) for k in range(PIECES + 1)]
    whole = region(far, 1)
    for count in (PIECES, PIECES + 1):
        terms = {(0,): [(Fraction(k + 1), relation([(p, p)], 1, 1)) for k, p in enumerate(far[:count])]}
        if count > PIECES:
            with pytest.raises(TooMuch, match="a value has too many pieces"):
                r.value(whole, terms)
        else:
            assert len(r.value(whole, terms).terms[0,]) == count


def lengths(numbers: list[int]) -> tuple[Rel, Value]:
    """One element, added to the k-th result as often as the k-th number says."""
    over = [(k, j) for k, n in enumerate(numbers) for j in range(n)]
    dest = relation([(p, p[:1]) for p in over], 2, 1)
    return dest, Value(region(over, 2), {(0,): ((ONE, relation([(p, (7,)) for p in over], 2, 1)),)})


def test_how_many_numbers_are_told_apart() -> None:
    r = ring()
    for count in (LENGTHS, LENGTHS + 1):
        numbers = list(range(1, count + 1))
        dest, a = lengths(numbers)
        made = r.summed(dest, a, SIZES)
        assert {p: counted(v, SIZES) for p, v in polys(r, made).items()} == {
            (k,): {((0, (7,)),): Fraction(n)} for k, n in enumerate(numbers)
        }
        assert any(SIZES in key for key in made.terms) == (count > LENGTHS)


def test_sums_with_gaps() -> None:
    """Of outputs with gaps those that come first are added, those that come second, and so on, up to a number."""
    r = ring()
    for count in (LENGTHS, LENGTHS + 1):
        over = [(2 * j,) for j in range(count)]
        dest = Rel(region(over, 1).to_nothing().raw)
        a = Value(region(over, 1), {(0,): ((ONE, relation([(p, (7,)) for p in over], 1, 1)),)})
        gaps = dest.raw.coalesce()
        if count > LENGTHS:
            with pytest.raises(TooMuch, match="equal terms are added an unknown number of times"):
                list(_by_ones(region(over, 1)))
        else:
            assert sum(1 for _ in _by_ones(region(over, 1))) == count
        assert polys(r, r.summed(Rel(gaps), a, SIZES)) == {(): {((0, (7,)),): Fraction(count)}}


def _by_ones(over: Region) -> list[tuple[int, list[Rel], Region]]:
    """Points two apart as one convex relation."""
    import islpy as isl

    last = max(points(over))[0]
    return fibres(Rel(isl.Map(f"{{ [] -> [o] : exists k : o = 2k and 0 <= o <= {last} }}")))


def test_sums_of_as_many_as_a_size_says() -> None:
    """``N`` times one element is that element times the N-th of the sizes; how often it is may not vary otherwise."""
    import islpy as isl

    r = ring()
    dest = Rel(isl.Map("[N] -> { [i, j] -> [i] : 0 <= i < 2 and 0 <= j < N }"))
    a = Value(dest.domain(), {(0,): ((Fraction(3), dest),)})
    made = r.summed(dest, a, SIZES)
    ((key, ((w, s),)),) = made.terms.items()
    assert (key, w) == ((0, SIZES), 3)
    assert s.same(Rel(isl.Map("[N] -> { [i] -> [i, N] : 0 <= i < 2 and N > 0 }")))
    slope = "[N] -> { [i, j] -> [%s] : 0 <= i < N and 0 <= j <= i }"
    b = Value(Rel(isl.Map(slope % "")).domain(), {(0,): ((ONE, Rel(isl.Map(slope % "7"))),)})
    with pytest.raises(TooMuch, match="equal terms are added a number of times that varies"):
        r.summed(Rel(isl.Map(slope % "")), b, SIZES)
    for path in (dest, Rel(isl.Map(slope % ""))):  # zero times something is that, however often
        none = Value(path.domain(), {(0,): ((Fraction(), path),)})
        ((key, ((w, s),)),) = Ring([path.outs]).summed(path, none, SIZES).terms.items()
        assert (key, w) == ((0,), 0)
        assert s.same(path.inverse().then(path))


def test_which_number_a_value_is() -> None:
    r, over = ring(), region(LINE, 1)
    part = region([(0,)], 1)
    five = r.constant(Fraction(5), over)
    assert number_of(five) == 5
    assert number_of(Value(over, {})) == 0
    assert number_of(Value(over, {(): ((ONE, part.to_nothing()),)})) is None
    assert number_of(r.add(five, r.constant(ONE, part))) is None
    assert number_of(r.read(0, over.identity())) is None
    assert number_of(r.add(five, r.read(0, over.identity()))) is None


def test_no_two_values_have_one_serial() -> None:
    r, over = ring(), region(LINE, 1)
    assert len({r.constant(ONE, over).serial for _ in range(5)}) == 5
