"""What no schedule beats: never above the timeline; closed forms where there are some (SCH-13)."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from isam.cost.floor import floor
from isam.cost.perfetto import trace
from isam.cost.report import report
from isam.cost.timeline import timeline
from tests.corpus import CASES
from tests.pipeline import compiled, simulated

TOY = simulated("toy")
NAMES = sorted(CASES)[::6]


def schedule_of(name: str, **sizes: int):
    job = compiled(CASES[name].load(), sizes or CASES[name].small[0], TOY)
    assert job.schedule is not None
    return job.schedule, {s.name: 3 for s in job.schedule.kernel.syms}


@pytest.mark.parametrize("name", NAMES)
def test_no_schedule_is_faster_than_its_floor(name):
    schedule, late = schedule_of(name)
    least, t = floor(schedule), timeline(schedule, late)
    assert least.seconds <= t.seconds * (1 + 1e-12)


def test_a_product_counted_by_hand():
    schedule, _ = schedule_of("matmul", M=30, N=20, K=17)
    least = floor(schedule)
    cost, clock = TOY.instructions["mm4_f32"].cost, TOY.units["mm"].clock
    assert least.compute == pytest.approx(8 * 5 * 5 * cost.issue / clock, rel=1e-12)
    rate = TOY.instructions["copy"].cost.bandwidth * TOY.units["dma"].clock
    assert least.load == pytest.approx(4 * (30 * 17 + 17 * 20) / rate, rel=1e-12)
    assert least.store == pytest.approx(4 * 30 * 20 / rate, rel=1e-12)


def test_elements_that_a_convolution_skips_are_not_counted():
    dense, _ = schedule_of("conv1d")
    strided, _ = schedule_of("conv1d/stride=2")
    for schedule in (dense, strided):
        x = next(b for b in schedule.kernel.arguments if b.role == "in")
        whole = 4
        for d in x.shape:
            whole *= d.const
        w = next(b for b in schedule.kernel.arguments if b.role == "const")
        for_w = 4
        for d in w.shape:
            for_w *= d.const
        rate = TOY.instructions["copy"].cost.bandwidth * TOY.units["dma"].clock
        assert floor(schedule).load <= (whole + for_w) / rate + 1e-18


def test_the_report_tells_what_the_timeline_says():
    schedule, late = schedule_of("softmax")
    r = report(schedule, late)
    assert r.data["seconds"] == timeline(schedule, late).seconds
    assert all(0 <= u["share"] <= 1 for u in r.data["units"].values())
    assert "times the least" in str(r)


def test_a_trace_has_every_call_once_and_in_its_stream():
    schedule, late = schedule_of("softmax")
    rows = json.loads(trace(schedule, late))["traceEvents"]
    calls = [r for r in rows if r["ph"] == "X"]
    assert len(calls) == timeline(schedule, late).calls
    for n in {r["tid"] for r in calls}:
        mine = [r for r in calls if r["tid"] == n]
        assert all(a["ts"] + a["dur"] <= b["ts"] * (1 + 1e-9) + 1e-9 for a, b in pairwise(mine))
