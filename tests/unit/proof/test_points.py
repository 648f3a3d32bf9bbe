"""Obligations 1 to 7 on the tree: hand-made schedules are accepted for all trips."""

from __future__ import annotations

import time

import pytest

from isam.proof.points import check_points
from isam.proof.sets import Isl
from tests.schedules import matmul_on_tiny
from tests.unit.proof.handmade import running_sum, tiny_matmul, vec_matmul

MADE = {
    "tiny": tiny_matmul,
    "tiny peeled": lambda: tiny_matmul(peeled=True),
    "vec": vec_matmul,
    "vec bound": lambda: vec_matmul(bound=True),
    "vec exact": lambda: vec_matmul(permits=frozenset({"exact"})),
    "recurrence": running_sum,
    "ragged": lambda: matmul_on_tiny(9, 7, 5),
    "pipelined": lambda: matmul_on_tiny(8, 8, 12, True),
}


@pytest.mark.parametrize("name", MADE)
def test_accepts(name):
    assert check_points(MADE[name]()) == []


def test_work_does_not_depend_on_trips():
    isl, start = Isl(), time.perf_counter()
    assert check_points(vec_matmul(900, 800, 500), isl) == []
    assert time.perf_counter() - start < 1
    assert isl.queries < 10
