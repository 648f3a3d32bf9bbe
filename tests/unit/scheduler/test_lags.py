"""Lags: never more than the nearest call in question is behind, whatever the tree; as many as that where it matters."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from isam.proof.races import calls, check_races
from isam.schedule.tree import Issue, Schedule, distinct
from isam.scheduler.tokens import with_waits
from tests.random_streams import Dealt, Trees, nearest
from tests.unit.scheduler.test_tokens import changed

SEEDS = 300


def marked(seed: int) -> Schedule:
    return with_waits(Trees(seed).schedule())


@pytest.mark.parametrize("block", range(6))
def test_no_lag_is_too_long_on_random_trees(block):
    """Judged by looking at all pairs of calls, and by the judge of races."""
    for seed in range(block * SEEDS // 6, (block + 1) * SEEDS // 6):
        schedule = marked(seed)
        exact = nearest(schedule, calls(schedule.call, {}))
        issues = {id(n): n for n in distinct(schedule.call) if isinstance(n, Issue)}
        for (call, stream), lag in exact.items():
            mine = {w.stream: w.lag for w in issues[call].after}
            if len({n.unit for n in issues.values()}) > 1:
                assert mine.get(stream, lag + 1) <= lag, (seed, issues[call])
        assert len({n.unit for n in issues.values()}) < 2 or not check_races(schedule, {}, 1), seed


@pytest.mark.parametrize("seed", range(100))
def test_lags_are_exact_where_addresses_stand_still(seed):
    schedule = with_waits(Trees(seed, still=True).schedule())
    exact = nearest(schedule, calls(schedule.call, {}))
    issues = [n for n in distinct(schedule.call) if isinstance(n, Issue)]
    if len({n.unit for n in issues}) > 1:
        assert {(id(n), w.stream): w.lag for n in issues for w in n.after} == exact


def test_a_longer_lag_is_found_by_the_judge_of_races():
    """Every wait that stands alone between two calls is needed: the judge finds its weakening."""
    found = weakened = 0
    for seed in range(0, SEEDS, 3):
        schedule, rng = marked(seed), random.Random(seed)
        exact = nearest(schedule, calls(schedule.call, {}))
        tight = [(n, w) for n in distinct(schedule.call) if isinstance(n, Issue) for w in n.after
                 if exact.get((id(n), w.stream)) == w.lag]  # fmt: skip
        if not tight:
            continue
        n, w = rng.choice(tight)
        weaker = tuple(replace(x, lag=x.lag + 1) if x is w else x for x in n.after)
        weakened += 1
        found += bool(check_races(replace(schedule, call=changed(schedule.call, n, weaker)), {}, 1))
    assert found > weakened / 3, (found, weakened)  # the others are implied by what else is waited for


@pytest.mark.parametrize("block", range(4))
def test_dealt_loops_do_not_race(block):
    """On random trees of dealt loops, kept loops and calls at home: every instance has its streams and its memory."""
    every = 0
    for seed in range(block * 100, block * 100 + 100):
        schedule = with_waits(Dealt(seed).schedule())
        assert not check_races(schedule, {}, 1), seed
        every += any(w.every for n in distinct(schedule.call) if isinstance(n, Issue) for w in n.after)
    assert every > 20
