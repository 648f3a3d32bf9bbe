"""The benchmark of checkers: what is kept keeps its limits, figures belong to products that are accepted."""

from __future__ import annotations

import json

from benchmarks.checking import COLUMNS, LIMITS, PRODUCTS, RESULTS, TREES, line, passed, row


def test_kept_results():
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert kept["limits"] == LIMITS
    assert [(r["on"], r["extent"]) for r in kept["rows"]] == [(on, n) for on, (_, _, n) in PRODUCTS.items()]
    assert passed(kept) == []
    slow = [{**r, "flat": LIMITS["flat"] - 1} for r in kept["rows"]]
    assert len(passed({**kept, "rows": slow})) == len(PRODUCTS)


def test_a_row():
    r = row("toy", 32, 1)
    assert {*COLUMNS, *TREES} <= r.keys()
    assert r["alone"] == 0 < r["distinct"] < r["steps"]
    assert str(r["extent"]) in line(r)
