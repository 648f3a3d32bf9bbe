"""The case study's experiment: bounds are bounds, classes and limits are what they say, the page is current."""

from __future__ import annotations

import json

import pytest

from benchmarks.casestudy.__main__ import DOCS, RESULTS, passed, run
from benchmarks.casestudy.experiment import CLASSES, figures, kind, measured, scheduled, summary, without_traffic
from benchmarks.casestudy.page import ACROSS, cells, page, picture, shown
from benchmarks.casestudy.sizes import AWKWARD, SETS
from benchmarks.casestudy.tilings import best
from benchmarks.shapes import DEEPBENCH
from isam.cost.timeline import timeline
from isam.system.load import load_system

MACHINE = load_system("casestudy")


@pytest.fixture(scope="module")
def rows():
    return [measured("thin", size, MACHINE) for size in ((1, 640, 512), (96, 100, 97), (257, 31, 130))]


def test_no_time_is_below_the_bound(rows):
    for r in rows:
        for who in ("isam", "library"):
            assert r[who]["seconds"] >= r["least"]
            assert r[who]["inside"] >= r["inside"]
            assert r[who]["seconds"] >= r[who]["inside"]
        assert r["ratio"] == r["library"]["seconds"] / r["isam"]["seconds"]


def test_the_bound_is_not_below_products_and_bytes(rows):
    for r in rows:
        m, n, k = r["size"]
        assert r["inside"] >= 2 * m * n * k / 108.1344e12
        assert r["least"] >= (2 * m * k + 2 * k * n + 4 * m * n) / 1228.8e9


def test_without_traffic_only_boxes_are_free():
    _, schedule, whole = best(64, 640, 2048, MACHINE)
    free = timeline(without_traffic(schedule))
    assert free.ticks < whole.ticks
    assert {u: w.calls for u, w in free.units.items()} == {u: w.calls for u, w in whole.units.items()}
    assert free.units["mx0"].busy == whole.units["mx0"].busy
    assert schedule.system.instructions["box"].cost == MACHINE.instructions["box"].cost


def test_a_schedule_without_boxes_does_not_care():
    _, schedule, whole = best(32, 64, 128, MACHINE)
    once = without_traffic(schedule)
    assert timeline(without_traffic(once)) == timeline(once)
    assert figures(schedule, whole)["seconds"] == whole.seconds


@pytest.mark.parametrize(("ratio", "name"), [(0.2, "library ahead"), (0.9, "about equal"), (0.979, "about equal"),
                                             (1.0, "equal"), (1.02, "ISAM ahead"), (7.0, "ISAM ahead")])  # fmt: skip
def test_classes(ratio, name):
    assert kind(ratio) == name
    assert name in [n for n, _ in CLASSES]


def test_all_of_deepbench_and_thirty_awkward_sizes():
    assert len(SETS["deepbench"]) == len(DEEPBENCH)
    awkward = [s for name in AWKWARD for s in SETS[name]]
    assert len(set(awkward)) == 30
    assert not set(awkward) & {*SETS["own"], *SETS["deepbench"]}


def test_a_refusal_is_a_row_and_counts(rows):
    why, cpu = scheduled((10**9, 10**9, 10**9), MACHINE)
    assert isinstance(why, str)
    assert cpu == {}
    refused = {k: rows[0][k] for k in ("set", "size", "tiling", "padded", "library")} | {"refused": why}
    s = summary([*rows, refused])
    assert s["refused"] == 1
    assert any("without" in line for line in passed(s))
    assert cells(refused)[-2] == why


def test_limits_that_are_passed_are_told(rows):
    s = summary(rows)
    assert s["refused"] == 0
    s["isam"] = {**s["isam"], "large, median": 1.0, "all, median": 1.0}
    s["own, least ratio"] = 0.95
    assert passed(s) == []
    s["isam"]["all, median"], s["own, least ratio"] = 1.6, 0.5
    assert [line.split(":")[0] for line in passed(s)] == ["all", "own"]


def test_everything_shows_every_row(rows, capsys):
    result = {"machine": {"cpu": "x"}, "rows": rows, "summary": summary(rows)}
    for text in (shown(result), page(result)):
        assert all(" x ".join(map(str, r["size"])) in text for r in rows)
    assert picture(result).count("<circle") == 2 * len(rows) + 2
    assert ACROSS in picture(result)
    assert run([])["rows"] == []
    assert capsys.readouterr().out == ""


def test_page_and_picture_are_current():
    result = json.loads(RESULTS.read_text(encoding="utf-8"))
    told = "run: python -m benchmarks.casestudy --page"
    assert (DOCS / "casestudy.md").read_text(encoding="utf-8") == page(result), told
    assert (DOCS / "drawings" / "casestudy.svg").read_text(encoding="utf-8") == picture(result)
    assert result["summary"] == summary(result["rows"])
