"""Pictures of results: ratios and roofline. Results are made up, so that nothing depends on this machine."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import measure, plots, ratios, roofline, run
from benchmarks.asked import TITLES, asked, rows, verdict
from benchmarks.plot import SHAPES, Log, mark
from benchmarks.shapes import GROUPS
from benchmarks.timing import Times

ROOT = Path(__file__).parents[3]
ROOFS = {"clock": 4e9, "rates": {"f32": 1e11, "bf16": 2e11}, "reads": {"l1": 2e11, "l2": 1e11, "ram": 2e10}}
DRAWN = "{http://www.w3.org/2000/svg}"


def row(name: str, ratio: float, library: str = "numpy", flops: float = 1e9, count: int = 1) -> dict:
    times = {"isam": Times([1.0], [1.0]), f"{library} slow": Times([ratio * 3], [ratio * 3]),
             f"{library} quick": Times([ratio], [ratio])}  # fmt: skip
    return {"name": name, "flops": flops, "count": count, "against": measure.against(times),
            "times": {n: {"best": t.least, "median": t.typical} for n, t in times.items()},
            "compile": {"total": 0.01}}  # fmt: skip


def of(group: str, ratio: float | None = None, library: str = "onednn") -> dict:
    """Results of all shapes of a group, each as fast as was asked unless told otherwise."""
    return {group: [row(s.name, ratio or asked(group, s.name), library, s.flops) for s in GROUPS[group]]}


def words(svg: str) -> list[str]:
    return [e.text or "" for e in ElementTree.fromstring(svg).iter(f"{DRAWN}text")]


def marks(svg: str) -> list[tuple[float, str]]:
    """Where along the axis the marks of shapes lie, and what fills them (those of the legend come first)."""
    found = ElementTree.fromstring(svg).iter(f"{DRAWN}circle")
    return [(float(e.attrib["cx"]), e.attrib["fill"]) for e in list(found)[2:]]


@pytest.mark.parametrize("group", [g for g in GROUPS if g not in ("square", "deepbench")])
def test_what_was_asked_for_is_what_the_verdicts_of_a_run_ask(group: str) -> None:
    library = "numpy" if group == "tiny" else "onednn"
    results = of(group, library=library)
    results["weighted"] = {f"{group} against {library}": measure.weighted(results[group], library)}
    targets = [t for t in run.targets(results) if "compilation" not in t["what"]]
    assert {float(t["want"].split()[-1]) for t in targets} == {asked(group, s.name) for s in GROUPS[group]}
    for _, some in ratios.panels(results):
        assert verdict(some).endswith("reached")


def test_the_least_of_all_products_is_asked_for() -> None:
    wanted = {t["what"]: t["want"] for t in run.targets(of("square", library="numpy") | {"weighted": {}})}
    assert wanted["slowest of all products against NumPy"] == f"at least {asked('square', '64x64x64'):g}"


def test_of_several_peers_the_fastest_counts() -> None:
    both = row("c", 2.0)
    both["against"]["onednn"] = {"form": "onednn plain", "best": 0.5, "median": 0.5}
    (found,) = rows({"resnet50": [both]}, GROUPS)
    assert (found.ratio, found.peer) == (0.5, "onednn")


def test_ahead_is_full_and_right_of_one_behind_is_hollow_and_left_of_it() -> None:
    names = ("64x64x64", "128x128x128", "256x256x256")
    results = {"square": [row(n, r) for n, r in zip(names, (4.0, 0.95, 1.0), strict=True)]}
    svg = ratios.picture(results)
    assert [fill for _, fill in marks(svg)] == [ratios.AHEAD, "white", ratios.AHEAD]
    ahead, behind, even = (x for x, _ in marks(svg))
    assert behind < even < ahead
    assert {"4.00", "0.95", "1.00", "NumPy", *names} <= set(words(svg))
    assert svg == ratios.picture(json.loads(json.dumps(results)))


@pytest.mark.parametrize("ratio", [1.0, 1e-7, 3e6])
def test_one_point_however_far_off(ratio: float) -> None:
    svg = ratios.picture({"gru": [row("gru 128x1x512x512", ratio, "torch")]})
    ((x, _),) = marks(svg)
    assert ratios.MARGIN + ratios.NAMES <= x <= ratios.MARGIN + ratios.COLUMN - ratios.VALUES
    assert "128x1x512x512" in words(svg)
    assert "nan" not in svg


def test_groups_without_a_peer_are_left_out() -> None:
    alone = row("256x256x256 bf16", 1.0) | {"against": {}}
    svg = ratios.picture({"bf16": [alone], "int8": [], **of("blocks")})
    assert TITLES["blocks"] in words(svg)
    assert not {TITLES["bf16"], TITLES["int8"]} & set(words(svg))
    for picture in plots.pictures({"bf16": [alone], "roofs": ROOFS}).values():
        assert "No shape was measured beside a peer." in words(picture)


def test_rows_of_a_picture_do_not_overlap() -> None:
    every = {g: of(g)[g] for g in GROUPS}
    places: dict[tuple[str, str], list[float]] = {}
    for e in ElementTree.fromstring(ratios.picture(every)).iter(f"{DRAWN}text"):
        if e.get("font-size") == "11":
            places.setdefault((e.attrib["x"], e.get("text-anchor", "")), []).append(float(e.attrib["y"]))
    for ys in places.values():
        assert all(b - a >= ratios.LINE for a, b in zip(sorted(ys), sorted(ys)[1:], strict=False))
    longest = max((r.short for r in rows(every, GROUPS)), key=len)
    assert 6.4 * len(longest) <= ratios.NAMES


def test_points_of_a_roofline_lie_where_they_must() -> None:
    results = {"square": [row("64x64x64", 4.0, flops=2.0 * 64**3)], "roofs": ROOFS}
    (p,) = roofline.points(results, ("square",))
    assert p.x == pytest.approx(64 / 6)
    assert (p.ours, p.theirs) == (2.0 * 64**3, pytest.approx(2.0 * 64**3 / 4))
    assert roofline.points({"square": [row("no longer one", 1.0)]}, ("square",)) == []


def test_the_roofline_tells_roofs_types_and_groups() -> None:
    results = {**of("bf16"), **of("int8"), **of("rows", library="torch"), "roofs": ROOFS, "machine": {"cpu": "A < B"}}
    svg = roofline.picture(results)
    said = words(svg)
    assert {"L1: 200 GB/s", "L2: 100 GB/s", "memory: 20 GB/s", "Products of bytes", "Rows"} <= set(said)
    assert "computes 200 Gop/s at most" in said
    assert "what it computes at most was not measured" in said, "of bytes there is no roof here"
    assert "A &lt; B" in svg
    assert svg == roofline.picture(json.loads(json.dumps(results)))


def test_roofs_stay_on_the_axes() -> None:
    for reads in ({"l1": 1e30, "ram": 1e3}, {"ram": 1e-3}, {}):
        roofs = {"clock": 1.0, "rates": {"f32": 5e9}, "reads": reads}
        svg = roofline.picture({**of("square"), "roofs": roofs})
        left, right = roofline.MARGIN + roofline.LEFT, roofline.MARGIN + roofline.LEFT + roofline.WIDE
        lines = [e for e in ElementTree.fromstring(svg).iter(f"{DRAWN}line") if e.attrib["stroke"] == roofline.ROOF]
        level = [e for e in lines if e.attrib["y1"] == e.attrib["y2"] and float(e.attrib["y1"]) > roofline.TOP]
        assert all(left - 0.1 <= float(e.attrib[k]) <= right + 0.1 for e in level for k in ("x1", "x2"))


def test_marks_and_axes() -> None:
    assert len({mark(s, 1, 2, "black", True) for s in SHAPES}) == len(SHAPES)
    assert "<title>a &amp; b</title>" in mark("circle", 1, 2, "black", False, "a & b")
    assert Log(1, 100, 0, 200).at(10) == 100
    assert Log(3, 3, 5, 200).at(3) == 5
    assert Log(0.001, 1000, 0, 600).decades() == [10.0**n for n in range(-3, 4)]
    ticks = Log(0.8, 9, 0, 250).ticks(19)
    assert {0.8, 1.0, 2.0, 5.0} <= set(ticks)
    assert Log(1, 1e9, 0, 100).ticks(20) == sorted(Log(1, 1e9, 0, 100).ticks(20))


def test_the_command_says_why_there_is_no_roofline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "mine.json"
    for roofs, drawn in ({}, ["mine-ratios.svg"]), (ROOFS, ["mine-ratios.svg", "mine-roofline.svg"]):
        kept.write_text(json.dumps(of("attention", library="torch") | {"roofs": roofs}), encoding="utf-8")
        assert plots.main([str(kept), str(tmp_path / "there")]) == 0
        assert sorted(p.name for p in (tmp_path / "there").iterdir()) == drawn
        assert ("No roofline" in capsys.readouterr().out) == (not roofs)


@pytest.mark.parametrize(("name", "page"), [("zen5", "performance.md"), ("zen4", "performance-zen4.md")])
def test_the_pictures_of_the_pages_are_current(name: str, page: str) -> None:
    results = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))
    drawings = ROOT / "docs" / "drawings"
    again = f"run: python -m benchmarks.plots benchmarks/results/{name}.json docs/drawings"
    for kind, picture in plots.pictures(results).items():
        assert (drawings / f"{name}-{kind}.svg").read_text(encoding="utf-8") == picture, again
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert plots.links(results, name) in text
    assert all((ROOT / "docs" / p).exists() for p in re.findall(r"\((drawings/[^)]*)\)", text))
