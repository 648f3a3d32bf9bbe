"""Exact cover against brute force (SEL-1, SEL-2)."""

from __future__ import annotations

import itertools
import random

import pytest

from isam.ir.dataflow import Order, bits, mask_of, ordered
from isam.mapper.selection import KEEP, Region, select, total


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


def test_ordered_respects_dependences_and_breaks_ties_by_text():
    order = Order((0, 0, 0b011), (0b100, 0b100, 0))
    assert ordered([0b100, 0b010, 0b001], order) == (2, 1, 0)
