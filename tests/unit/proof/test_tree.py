"""Obligations 8 to 11 on the tree: hand-made schedules are accepted for all trips, by induction."""

from __future__ import annotations

import time

import pytest

from isam.proof.tree import check_tree
from tests.unit.proof.handmade import vec_matmul
from tests.unit.proof.test_points import MADE


@pytest.mark.parametrize("name", MADE)
def test_accepts(name):
    assert check_tree(MADE[name]()) == []


def test_work_does_not_depend_on_trips():
    start = time.process_time()
    assert check_tree(vec_matmul(901, 800, 500)) == []
    assert time.process_time() - start < 1
