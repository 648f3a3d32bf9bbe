"""Schedules for many cores: no race, right in any order of streams and instances, the same time whether equal instances
are followed once or each (SCH-8, SCH-12, SCH-13)."""

from __future__ import annotations

import numpy as np
import pytest

from isam.codegen.simulator import residues
from isam.codegen.simulator.streams import simulate_apart
from isam.cost.timeline import timeline
from isam.ir import oracle
from isam.proof.races import check_races
from isam.schedule.tree import Loop, distinct
from tests.corpus import CASES
from tests.machines import CROWD
from tests.pipeline import of_corpus

NAMES = ("matmul", "conv2d", "softmax", "layer_norm", "attention", "gru", "sepconv", "lower_triangle")


@pytest.mark.parametrize("name", NAMES)
def test_streams_and_instances_in_any_order(name):
    case = CASES[name]
    schedule = of_corpus(name, CROWD).schedule
    assert schedule is not None
    late = {s.name: 3 for s in schedule.kernel.syms}
    assert any(isinstance(n, Loop) and n.deal for n in distinct(schedule.call))
    assert not check_races(schedule, late, 1)
    short, whole = timeline(schedule, late), timeline(schedule, late, whole=True)
    assert (short.ticks, short.units, short.edges, short.links) == (whole.ticks, whole.units, whole.edges, whole.links)
    concrete = case.load().with_sizes({**case.small[0], **late})
    arrays = oracle.inputs(concrete, {}, 3)
    want = oracle.run_modular(concrete, arrays, {}, 3)
    for order in ({"seed": 1}, {"seed": 2}, {"eager": "dma"}, {"eager": "pair"}):
        got = simulate_apart(schedule, arrays, residues(3), late, **order)
        for n, w in want.items():
            np.testing.assert_array_equal(got[n], w, err_msg=f"{name} {order} {n}")
