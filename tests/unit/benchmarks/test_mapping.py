"""The mapping benchmark: its programs are what it says, its page and picture are current, limits are limits."""

from __future__ import annotations

import json
import re
from itertools import pairwise

from benchmarks.mapping import DOCS, LIMITS, RESULTS, chain, independent, page, passed, picture, timed
from benchmarks.plot import APART, BELOW, HEIGHT, Line, chart
from isam.ir.dataflow import levels
from isam.ir.verify import verify
from tests.suite.columns import COLUMNS


def test_programs_have_the_statements_they_promise():
    for make in (independent, chain):
        kernel = make(40)
        assert len(kernel.statements) == 40
        assert not verify(kernel)
        assert len(levels(kernel)) == 1
    reads = [{a.buffer for a in s.reads} for s in chain(12).statements]
    writes = [s.dest.buffer for s in chain(12).statements]
    assert all(w in r for w, r in zip(writes, reads[1:], strict=False))


def test_large_programs_take_time_in_proportion():
    """Twice the statements, at most three times the CPU time, the least of three."""
    for key in ("product", "add.vv", "softmax"):
        instruction = COLUMNS[key].load()
        once, twice = (timed(chain(n), instruction)[0] for n in (100, 200))
        assert twice < 3 * once + 0.01, key


def test_page_and_picture_are_current():
    result = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert (DOCS / "mapping.md").read_text(encoding="utf-8") == page(result), "run: python -m benchmarks.mapping --page"
    assert (DOCS / "drawings" / "mapping.svg").read_text(encoding="utf-8") == picture(result)
    assert set(result["summary"]) == set(LIMITS)


def test_numbers_below_the_axis_keep_apart():
    """However many points lie side by side: of 100 and 125, 800 and 1000, one of each has a number."""
    points = [(float(x), 1.0) for x in (50, 100, 125, 200, 250, 400, 500, 800, 1000, 2000)]
    svg = chart("", "", "", [Line("", points)])
    at = sorted(float(x) for x in re.findall(rf'<text x="([0-9.]+)" y="{HEIGHT - BELOW + 18}"', svg))
    assert len(at) >= 4
    assert min(b - a for a, b in pairwise(at)) >= APART


def test_a_limit_that_is_passed_is_told():
    fine = dict.fromkeys(LIMITS, 0.0)
    assert passed(fine) == []
    assert passed({**fine, "worst cell": 0.3}) == ["worst cell: 300.0 ms, limit 250 ms"]


def test_charts_escape_and_scale():
    svg = chart("a < b", "x", "y", [Line("one & two", [(1, 10), (100, 1000)])])
    assert "a &lt; b" in svg
    assert "one &amp; two" in svg
    points = svg.split('points="')[1].split('"')[0].split()
    assert points[0].split(",")[0] == "70.0"
    assert len(points) == 2
