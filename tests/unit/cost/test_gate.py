"""A link's time: moves take it in the order of time, whatever the order in which they are asked about."""

from __future__ import annotations

import random

from isam.cost.compiled import HOLES, Gate


def test_one_after_the_other():
    g = Gate(None)
    assert [g.take(0, 10), g.take(5, 10), g.take(40, 5)] == [10, 20, 45]


def test_a_later_call_that_is_ready_earlier_fills_what_is_idle():
    g = Gate(None)
    assert g.take(0, 10) == 10
    assert g.take(30, 10) == 40  # idle from 10 to 30
    assert g.take(12, 8) == 20  # 10 to 12 and 20 to 30 are left
    assert g.take(5, 4) == 22  # 10 to 12, then 20 to 22
    assert g.take(22, 20) == 52  # 22 to 30, then behind what is there
    assert g.take(0, 1) == 53  # nothing is idle any more


def test_through_many_short_gaps():
    g = Gate(None)
    assert g.take(0, 1) == 1
    ends = [g.take(100 + 3 * k, 2) for k in range(HOLES - 1)]  # idle from 1 to 100, then one in three
    assert ends == [102 + 3 * k for k in range(HOLES - 1)]
    assert g.take(50, 40) == 90
    assert g.take(90, 12) == 106  # ten until 100, then 102 and 105


def test_against_a_count_of_every_tick():
    for seed in range(300):
        rng, g = random.Random(seed), Gate(None)
        taken: set[int] = set()
        for _ in range(12):
            at, ticks = rng.randrange(60), rng.randint(1, 9)
            free = (t for t in range(at, 1000) if t not in taken)
            mine = [next(free) for _ in range(ticks)]
            assert g.take(at, ticks) == mine[-1] + 1, seed
            taken.update(mine)
