"""Obligations 8 to 11 on the tree: hand-made schedules are accepted for all trips, by induction."""

from __future__ import annotations

import pytest

from isam.proof.facts import Facts
from isam.proof.legal import Legality
from isam.proof.sets import Isl
from isam.proof.tree import check_tree
from isam.proof.writes import Writes
from isam.schedule.tree import Loop, distinct
from tests.clock import quickest
from tests.unit.proof.handmade import vec_matmul
from tests.unit.proof.test_points import MADE


@pytest.mark.parametrize("name", MADE)
def test_accepts(name):
    assert check_tree(MADE[name]()) == []


@pytest.mark.parametrize("name", MADE)
def test_what_a_loop_writes_is_told_without_its_variable(name):
    s = MADE[name]()
    lg = Legality(s)
    writes = Writes(lg, Facts(lg, Isl()))
    loops = [n for n in distinct(s.call) if isinstance(n, Loop)]
    assert loops
    for n in loops:
        for w in writes.of(n):
            told = [w.box, *(f.box for f in (w.target, w.exact, w.whole) if f is not None)]
            said = [e for box in told for side in box or () for e in side]
            said += w.ends or ()
            said += [f.offset for f in (w.target, w.exact) if f is not None]
            assert not any(e.coefficient(n.var) for e in said), (n.var, w)


def test_work_does_not_depend_on_trips():
    assert check_tree(vec_matmul(901, 800, 500)) == []
    assert quickest(lambda: check_tree(vec_matmul(901, 800, 500)), 1.0) < 1.0
