"""The benchmark of large products: what is kept is what it says, limits are limits."""

from __future__ import annotations

import json

import pytest

from benchmarks.large import (
    COLUMNS,
    LIMITS,
    PLANNED,
    RESULTS,
    UNROLLED,
    made,
    passed,
    row,
    row_planned,
    row_unrolled,
    table,
    unrolled,
)
from isam.schedule.tree import Loop, distinct

F32 = ("f32", "f32")


def test_kept_results():
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert kept["limits"] == LIMITS
    assert {"toy", "host", "casestudy", "gemmini"} <= {r["on"] for r in kept["rows"]}
    assert [r["on"] for r in kept["unrolled"]] == list(UNROLLED)
    assert [r["on"] for r in kept["planned"]] == list(PLANNED)
    assert all(r["distinct"] > 15_000 for r in kept["unrolled"])
    assert all(r["steps"] > 10_000 for r in kept["planned"])
    over = len(passed(kept))
    slow = [{**r, "total": LIMITS["large"] + 0.001} for r in kept["rows"]]
    assert len(passed({**kept, "rows": slow})) >= max(over, len(slow))
    assert table(kept).count("\n") == len(kept["rows"]) + len(kept["unrolled"]) + len(kept["planned"]) + 4


def test_a_row():
    r = row("toy", F32, 64, 1)
    assert {*COLUMNS} <= r.keys()
    assert 0 < r["schedule"] + r["prove"] < r["total"]
    assert r["steps"] > 0 < r["twice"]


def test_schedules_without_loops():
    r = row_unrolled("toy", (40, 40, 40), 1)
    assert r["distinct"] <= r["steps"]
    s = made("toy", ("i8", "i32"), dict.fromkeys("MNK", 40), "schedule")[0].schedule
    assert s is not None
    assert any(isinstance(n, Loop) for n in distinct(s.call))
    assert len(unrolled(s).call.children) + len(unrolled(s).bind.children) == r["steps"]


def test_plans_without_loops():
    r = row_planned("toy", (16, 16, 16), 1)
    assert r["steps"] > 2 * 4**3  # of 4 x 4 x 4 products, at most one of whose factors is there already
    assert r["20,000"] > r["seconds"] > 0


def test_dealt_loops_are_not_written_out():
    s = made("casestudy", ("bf16", "f32"), dict.fromkeys("MNK", 512), "schedule")[0].schedule
    assert s is not None
    with pytest.raises(ValueError, match="dealt"):
        unrolled(s)
