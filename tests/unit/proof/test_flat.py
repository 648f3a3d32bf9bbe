"""The flat checker accepts hand-made schedules and names what is wrong with broken ones."""

from __future__ import annotations

import time

import pytest

from isam.ir.text import parse_kernel
from isam.proof import check_flat
from isam.proof.prescribed import told_apart, writes
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


@pytest.mark.parametrize("index", ["i", "0"])
def test_more_writes_of_an_element_than_are_counted_are_refused_by_the_budget(index: str):
    """Points along an axis that nothing names are not listed, so many of them are no matter of room."""
    head = "kernel k()\n  in x: f32[4]\n  inout y: f32[4]\n  forall i < 4, k < 3000000000\n"
    k = parse_kernel(f"{head}    y[{index}] += x[i]\n")
    (s,) = k.statements
    assert told_apart(s) <= 4
    with pytest.raises(MemoryError, match="points write"):
        writes(s, {}, (4,))
