"""Exact cover against brute force (SEL-1, SEL-2)."""

from __future__ import annotations

import itertools
import random

import pytest

from isam.ir.dataflow import Order, bits, mask_of, ordered
from isam.mapper.exact import divide
from isam.mapper.partition import Partition
from isam.mapper.selection import KEEP, Region, add, select, total


def random_order(rng: random.Random, n: int) -> Order:
    before, after = [0] * n, [0] * n
    for i in range(n):
        for j in range(i):
            if rng.random() < 0.25:
                before[i] |= before[j] | 1 << j
    for i in range(n):
        for j in bits(before[i]):
            after[j] |= 1 << i
    return Order(tuple(before), tuple(after))


def permitted(parts: tuple[int, ...], order: Order) -> bool:
    """By trying all orders: can the parts be executed one after the other?"""

    def fits(seq: tuple[int, ...]) -> bool:
        for k, later in enumerate(seq):
            if any(order.before[s] & later for earlier in seq[:k] for s in bits(earlier)):
                return False
        return True

    return any(fits(p) for p in itertools.permutations(parts))


def brute(regions: list[Region], goal: int, order: Order) -> list[tuple[float, float]]:
    prices = []
    for n in range(1, goal.bit_count() + 1):
        for combo in itertools.combinations(regions, n):
            mask = 0
            for r in combo:
                if mask & r.mask:
                    break
                mask |= r.mask
            else:
                if mask == goal and permitted(tuple(r.mask for r in combo), order):
                    prices.append(total(combo))
    return sorted(prices)


@pytest.mark.parametrize("seed", range(60))
def test_the_best_cover_is_the_brute_force_one(seed):
    rng = random.Random(seed)
    n = rng.randint(2, 5)
    order = random_order(rng, n)
    masks = {1 << i for i in range(n) if rng.random() < 0.9}
    masks |= {mask_of(rng.sample(range(n), rng.randint(2, min(3, n)))) for _ in range(4)}
    convex = [m for m in sorted(masks) if order.is_convex(m)]
    regions = [Region(m, (float(rng.randint(1, 9)), float(rng.randint(0, 9)))) for m in convex]
    goal = (1 << n) - 1
    found, want = select(regions, goal, order), brute(regions, goal, order)
    assert bool(found.covers) == bool(want)
    if want:
        assert total(found.covers[0]) == want[0]
        assert found.gap is None
        assert [total(c) for c in found.covers] == sorted(total(c) for c in found.covers)
        assert len(set(found.covers)) == len(found.covers)
    else:
        assert found.stuck


def test_a_circle_of_regions_is_given_up():
    # 0 -> 1, 2 -> 3: regions {0, 3} and {1, 2} depend on each other although each alone is convex
    order = Order((0, 1, 0, 4), (2, 0, 8, 0))
    cheap = [Region(0b1001, (1.0, 0.0)), Region(0b0110, (1.0, 0.0))]
    single = [Region(1 << i, (5.0, 0.0)) for i in range(4)]
    found = select([*cheap, *single], 0b1111, order)
    assert total(found.covers[0]) == (11.0, 0.0)
    assert not any(cheap[0] in c and cheap[1] in c for c in found.covers)
    assert not select(cheap, 0b1111, order).covers


def test_a_recurrent_loop_between_two_statements_keeps_them_apart():
    # 0 feeds the loop {1}, which feeds 2: {0, 2} cannot be one region
    order = Order((0, 1, 3), (6, 4, 0))
    found = select([Region(0b101, (1.0, 0.0)), Region(1, (3.0, 0.0)), Region(4, (3.0, 0.0))], 0b101, order, [0b010])
    assert total(found.covers[0]) == (6.0, 0.0)


def test_required_tags_are_met_or_refused():
    order = Order((0, 0), (0, 0))
    regions = [Region(1, (1.0, 0.0)), Region(2, (1.0, 0.0)), Region(2, (7.0, 0.0), "mm")]
    found = select(regions, 3, order, required=frozenset({"mm"}))
    assert total(found.covers[0]) == (8.0, 0.0)
    assert not select(regions, 3, order, required=frozenset({"other"})).covers


def test_a_large_instance_answers_with_a_gap_or_a_proof():
    rng = random.Random(5)
    n = 500
    order = Order((0,) * n, (0,) * n)
    regions = [Region(1 << i, (2.0, 0.0)) for i in range(n)]
    regions += [Region(0b11 << i, (float(rng.randint(2, 4)), 0.0)) for i in range(n - 1)]
    found = select(regions, (1 << n) - 1, order)
    assert found.covers
    assert len(found.covers) <= 4 * KEEP
    assert total(found.covers[0])[0] < 2.0 * n
    mask = 0
    for r in found.covers[0]:
        assert not mask & r.mask
        mask |= r.mask
    assert mask == (1 << n) - 1


def chain(n: int, seed: int, longest: int = 3) -> list[Region]:
    """Regions of up to ``longest`` neighbours, as fused instructions on a chain of statements have them."""
    rng = random.Random(seed)
    return [
        Region(((1 << size) - 1) << i, (round(100 * size**0.9 * rng.uniform(0.6, 1.1)), float(rng.randint(0, 9))))
        for i in range(n)
        for size in range(1, longest + 1)
        if i + size <= n and (size == 1 or rng.random() < 0.7)
    ]


def along(regions: list[Region], n: int) -> tuple[float, float]:
    """The cheapest division of a chain, statement by statement."""
    best: list[tuple[float, float]] = [(0.0, 0.0)]
    for end in range(1, n + 1):
        ending = [r for r in regions if r.mask.bit_length() == end]
        best.append(min(add(best[end - r.mask.bit_count()], r.price) for r in ending))
    return best[n]


@pytest.mark.parametrize("n", [10, 40, 41, 150, 201, 600])
def test_chains_of_any_length_are_divided_at_the_least_price(n):
    order = Order((0,) * n, (0,) * n)
    regions = chain(n, n)
    found = select(regions, (1 << n) - 1, order)
    assert found.gap is None
    assert total(found.covers[0]) == along(regions, n)
    assert len(found.covers) > 1


def dense(n: int, count: int, seed: int) -> list[Region]:
    """Regions of any statements: nothing like a kernel, and hard."""
    rng = random.Random(seed)
    masks = [mask_of(rng.sample(range(n), rng.randint(2, 4))) for _ in range(count)]
    some = [Region(m, (round(100 * m.bit_count() * rng.uniform(0.4, 0.9)), 1.0)) for m in masks]
    return [Region(1 << i, (100.0, 1.0)) for i in range(n)] + some


@pytest.mark.parametrize("seed", range(4))
def test_what_is_said_about_the_gap_is_true(seed):
    n, regions = 20, dense(20, 60, seed)
    goal = (1 << n) - 1
    proved = Partition(regions, goal).run()
    assert proved.proved
    hurried = Partition(regions, goal, nodes=30).run()
    assert not hurried.proved
    assert hurried.low <= proved.best[0][0][0] <= hurried.best[0][0][0]
    program = divide(regions, goal)
    assert program is not None
    assert total(program[0])[0] == proved.best[0][0][0]
    assert program[1] <= proved.best[0][0][0]


def test_above_the_budget_an_integer_program_helps_and_the_bound_holds():
    n, regions = 34, dense(34, 110, 7)
    found = select(regions, (1 << n) - 1, Order((0,) * n, (0,) * n))
    assert found.gap is not None
    assert 0.0 <= found.gap < 0.01
    large = select(dense(150, 500, 3), (1 << 150) - 1, Order((0,) * 150, (0,) * 150))
    assert large.gap is not None
    assert 0.0 < large.gap < 1.0
    mask = 0
    for r in large.covers[0]:
        assert not mask & r.mask
        mask |= r.mask
    assert mask == (1 << 150) - 1


@pytest.mark.parametrize("nodes", [0, 1])
def test_with_no_budget_there_is_still_a_division_and_a_bound(nodes):
    regions = chain(30, 1)
    p = Partition(regions, (1 << 30) - 1, nodes=nodes).run()
    assert p.best
    assert not p.proved
    assert 0 < p.low <= along(regions, 30)[0] <= p.best[0][0][0]


def test_where_singles_lack_and_the_budget_is_short_some_division_is_found():
    pairs = [Region(0b11 << i, (1.0, 0.0)) for i in range(59)]
    p = Partition(pairs, (1 << 60) - 1, nodes=5).run()
    assert total(p.best[0][1]) == (30.0, 0.0)
    odd = Partition([Region(0b11 << i, (1.0, 0.0)) for i in range(60)], (1 << 61) - 1).run()
    assert (odd.best, odd.proved) == ([], True)


def test_equal_prices_prefer_fewer_regions_and_then_the_order_of_statements():
    order = Order((0,) * 4, (0,) * 4)
    singles = [Region(1 << i, (1.0, 1.0)) for i in range(4)]
    fused = [Region(0b0011, (2.0, 2.0)), Region(0b1100, (2.0, 2.0)), Region(0b0110, (2.0, 2.0))]
    first = select([*singles, *fused], 0b1111, order)
    for shuffled in itertools.permutations([*fused, *singles][:5]):
        again = select([*shuffled, *singles[2:]], 0b1111, order)
        assert again.covers[0] == first.covers[0]
        assert len(again.covers[0]) == 2


def test_ordered_respects_dependences_and_breaks_ties_by_text():
    order = Order((0, 0, 0b011), (0b100, 0b100, 0))
    assert ordered([0b100, 0b010, 0b001], order) == (2, 1, 0)
