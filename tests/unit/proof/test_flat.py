"""The flat checker accepts hand-made schedules and names what is wrong with broken ones."""

from __future__ import annotations

import time

import pytest

from isam.proof import check_flat
from tests.unit.proof.handmade import running_sum, tiny_matmul, vec_matmul
from tests.unit.proof.test_points import MADE


@pytest.mark.parametrize("name", [n for n in MADE if n != "recurrence"])
def test_accepts(name):
    assert check_flat(MADE[name]()) == []


@pytest.mark.parametrize("trip", [0, 1, 2, 3, 8])
def test_recurrences_of_every_trip(trip):
    assert check_flat(running_sum(), {"T": trip}) == []


def test_a_trip_is_needed():
    assert [v.kind for v in check_flat(running_sum())] == ["sizes"]


def test_an_exhausted_budget_is_no_acceptance():
    assert [v.kind for v in check_flat(tiny_matmul(), budget=10)] == ["budget"]


def test_speed():
    s = vec_matmul(13, 32, 60)
    start = time.process_time()
    assert check_flat(s) == []
    assert time.process_time() - start < 8
