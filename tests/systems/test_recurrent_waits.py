"""What waits for all instances says behind how many dealt loops it may be (SCH-8, SCH-12)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from isam.codegen.simulator import residues
from isam.codegen.simulator.streams import simulate_apart
from isam.cost.timeline import timeline
from isam.ir import oracle
from isam.proof.races import check_races
from isam.schedule.serial import from_json, to_json
from isam.schedule.tree import Issue, Node, Schedule, distinct
from isam.system.load import load_system
from tests.pipeline import compiled
from tests.systems.test_recurrent import GRU, AsWritten, edited

SIZES = {"B": 5, "X": 20, "H": 48}
THREE = {"T": 3}  # steps, which the schedule leaves open


@cache
def made() -> Schedule:
    """On three instances: rows are dealt as two and two and one, gates one each."""
    s = load_system("casestudy")
    few = replace(s, replicas={n: replace(r, count=3) for n, r in s.replicas.items()})
    job = compiled(GRU, SIZES, few, AsWritten(), check=True)
    assert job.schedule is not None
    return job.schedule


@cache
def waiting(by: int | None) -> Schedule:
    """With waits for all instances that many dealt loops further back; None: for all that stands before."""

    def edit(n: Node) -> Node:
        if not isinstance(n, Issue):
            return n
        return replace(n, after=tuple(replace(w, lag=0 if by is None else w.lag + by) if w.every else w
                                      for w in n.after))  # fmt: skip

    return edited(made(), edit)


def lags(schedule: Schedule) -> set[int]:
    calls = (n for n in distinct(schedule.call) if isinstance(n, Issue))
    return {w.lag for n in calls for w in n.after if w.every}


def test_no_call_waits_for_loops_that_do_not_concern_it() -> None:
    assert max(lags(made())) > 1
    assert not check_races(made(), THREE)
    assert not check_races(waiting(None), THREE)
    assert timeline(made(), THREE).ticks < timeline(waiting(None), THREE).ticks


def test_one_loop_further_back_is_a_race() -> None:
    assert check_races(waiting(1), THREE)


@pytest.mark.parametrize("order", [{"seed": 1}, {"seed": 2}, {"eager": "ld"}, {"eager": "st"}], ids=str)
def test_streams_apart_compute_the_same(order: dict[str, int | str]) -> None:
    kernel = GRU.with_sizes({**SIZES, **THREE})
    arrays = oracle.inputs(kernel, {}, 1)
    got = simulate_apart(made(), arrays, residues(1), THREE, **order)  # pyright: ignore[reportArgumentType]
    for name, want in oracle.run_modular(kernel, arrays, {}, 1).items():
        np.testing.assert_array_equal(got[name], want, err_msg=name)


@pytest.mark.parametrize("by", [0, None])
def test_repeated_steps_take_the_time_that_they_take_one_by_one(by: int | None) -> None:
    schedule = waiting(by)
    few, all_ = timeline(schedule, {"T": 20}), timeline(schedule, {"T": 20}, whole=True)
    assert (few.ticks, few.units, few.edges) == (all_.ticks, all_.units, all_.edges)
    assert few.followed < all_.followed
    assert timeline(schedule, {"T": 500}).followed == few.followed


def test_waits_are_written_and_read() -> None:
    assert lags(from_json(to_json(made()))) == lags(made())
