"""The benchmark of several cores: what is kept reaches what was asked for, and the page is what it says."""

from __future__ import annotations

import json

import pytest

from benchmarks.shapes import Case, Gemm
from benchmarks.threads import COMPUTE, GROUPS, PAGE, RESULTS, calls_of, page


def test_kept_results_and_their_page():
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert {g: [r["name"] for r in rows] for g, rows in kept["groups"].items()} == {
        g: [s.name for s in shapes] for g, shapes in GROUPS.items()
    }
    assert all(kept["means"][g] >= asked for g, asked in COMPUTE.items())
    assert PAGE.read_text(encoding="utf-8") == page(kept)


@pytest.mark.parametrize("shape", [Gemm(64, 64, 64), Case("softmax", (("M", 64), ("N", 300)), 64 * 300)])
def test_calls_on_one_core_and_on_two_are_right(shape):
    calls, judge = calls_of(shape, (1, 2))
    assert [judge.wrong(call()) for call in calls.values()] == [None, None]
