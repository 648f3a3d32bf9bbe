"""Double buffering in time: the next box is brought while the present one is worked on, however long that takes."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from isam.codegen.simulator import residues
from isam.codegen.simulator.streams import simulate_apart
from isam.cost.timeline import Event, timeline
from isam.ir import oracle
from isam.proof.flat import check_flat
from isam.proof.races import check_races
from isam.proof.tree import check_tree
from isam.schedule.tree import Issue, Loop, distinct
from isam.scheduler.waits import with_waits
from tests.double_buffered import product
from tests.random_streams import Trees


def lags(schedule) -> set[int]:
    return {w.lag for n in distinct(schedule.call) if isinstance(n, Issue) for w in n.after}


def test_the_schedule_is_right():
    schedule = product(8, 4)
    assert not check_tree(schedule)
    assert not check_flat(schedule)
    assert not check_races(schedule)


@pytest.mark.parametrize("deep", [64, 4096])
def test_the_next_box_is_brought_while_the_present_one_is_worked_on(deep):
    """With two places the time is that of the busier unit and one box more; with one place it is nearly the sum."""
    two, one = (timeline(product(deep, 16, places, bandwidth=8)) for places in (2, 1))
    busy = {u: two.units[u].busy for u in ("mm", "dma")}
    assert busy == {u: one.units[u].busy for u in ("mm", "dma")}
    box = sum(busy.values()) / 32
    latency = 24 * 10**6  # of the last product of a row of blocks, before the result goes home
    assert max(busy.values()) <= two.ticks <= max(busy.values()) + 4 * box + 4 * latency
    assert one.ticks > 0.9 * sum(busy.values())


def test_a_lag_counts_through_a_kept_loop():
    deep = 4096
    assert deep // 4 in lags(product(deep, 16)), "a load waits for all products but those on the other box"


def test_loads_run_ahead_in_the_trace():
    """While a box is worked on, the next one arrives: seen call by call."""
    seen: list[Event] = []
    timeline(product(64, 8, rows=1, bandwidth=64), watch=seen.append, whole=True)
    products = [e for e in seen if e.issue.instruction == "mm4"]
    loads = [e for e in seen if e.issue.is_move and e.edge == ("dram", "sp")]
    for k in range(1, 8):
        last = products[16 * k - 1]  # of box k - 1
        assert all(e.finish <= last.start for e in loads[2 * k : 2 * k + 2]), k


@pytest.mark.parametrize("order", [{"seed": 1}, {"seed": 2}, {"eager": "dma"}, {"eager": "mm"}])
def test_streams_in_any_order_compute_the_product(order):
    schedule = product(16, 4)
    arrays = oracle.inputs(schedule.kernel, {}, 5)
    want = oracle.run_modular(schedule.kernel, arrays, {}, 5)
    got = simulate_apart(schedule, arrays, residues(5), {}, **order)
    np.testing.assert_array_equal(got["C"], want["C"])


def test_multiplied_iterations_are_exact_where_lags_are_long():
    for deep, places in ((64, 2), (64, 1), (256, 2), (1024, 2)):
        schedule = product(deep, 8, places, rows=3)
        short, whole = timeline(schedule), timeline(schedule, whole=True)
        assert (short.ticks, short.units, short.edges) == (whole.ticks, whole.units, whole.edges)


def longer(node, rng):
    """The tree with loops of more iterations."""
    if isinstance(node, Issue):
        return node
    if isinstance(node, Loop):
        given = {n: getattr(node, n) for n in ("enter", "first", "body", "last", "exit")}
        parts = {n: longer(p, rng) for n, p in given.items() if p is not None}
        more = node.step * rng.choice((0, 7, 40))
        plain = len(node.hi) == 1 and node.trip
        return replace(node, **parts, hi=(node.hi[0]._replace(expr=node.hi[0].expr + more),) if plain else node.hi)
    return replace(node, children=tuple(longer(c, rng) for c in node.children))


@pytest.mark.parametrize("seed", range(40))
def test_multiplied_iterations_are_exact_on_random_trees(seed):
    tree = Trees(seed, still=True).schedule()
    schedule = with_waits(replace(tree, call=longer(tree.call, random.Random(seed))))
    short = timeline(schedule)
    if short.calls > 300_000:
        return
    whole = timeline(schedule, whole=True)
    assert (short.ticks, short.units, short.edges) == (whole.ticks, whole.units, whole.edges)
    assert whole.followed == whole.calls >= short.followed
