"""Pictures of results: ratios and roofline. Results are made up, so that nothing depends on this machine."""

from __future__ import annotations

import json
import random
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks import measure, plots, ratios, roofline
from benchmarks.asked import TITLES, rows
from benchmarks.peers import LIBRARIES
from benchmarks.plot import FAINT, SHAPES, Log, mark
from benchmarks.saved import SCHEMA
from benchmarks.shapes import GROUPS
from benchmarks.table import page as page_of
from benchmarks.targets import speeds, targets
from benchmarks.timing import Times

ROOT = Path(__file__).parents[3]
ROOFS = {"clock": 4e9, "rates": {"f32": 1e11, "bf16": 2e11}, "reads": {"l1": 2e11, "l2": 1e11, "ram": 2e10}}
DRAWN = "{http://www.w3.org/2000/svg}"


def row(name: str, ratio: float, library: str = "numpy", flops: float = 1e9, count: int = 1, **others: float) -> dict:
    """``ratio``: to the quick form of a library; ``others``: to one of each of these."""
    theirs = {f"{library} slow": ratio * 3, f"{library} quick": ratio} | {f"{n} plain": r for n, r in others.items()}
    times = {n: Times([t], [t]) for n, t in ({"isam": 1.0} | theirs).items()}
    return {"name": name, "flops": flops, "count": count, "compared": "isam", **measure.compare(times),
            "times": {n: {"best": t.least, "median": t.typical} for n, t in times.items()},
            "compile": {"total": 0.01}}  # fmt: skip


def of(group: str, ratio: float = 6.0, library: str = "onednn", **others: float) -> dict:
    """Results of all shapes of a group."""
    return {group: [row(s.name, ratio, library, s.flops, **others) for s in GROUPS[group]]}


def mixed() -> dict:
    """Results of everything, some shapes fast and some slow, by three libraries with a reference."""
    dice = random.Random(3)
    results: dict = {g: [row(s.name, dice.uniform(0.5, 6), "numpy", s.flops, onednn=dice.uniform(0.5, 2),
                             libxsmm=dice.uniform(0.5, 2)) for s in GROUPS[g]] for g in GROUPS}  # fmt: skip
    results["weighted"] = {f"{g} against {n}": measure.weighted(results[g], n)
                           for g in GROUPS for n in ("onednn", "libxsmm")}  # fmt: skip
    return results


def words(svg: str) -> list[str]:
    return [e.text or "" for e in ElementTree.fromstring(svg).iter(f"{DRAWN}text")]


def marks(svg: str) -> list[tuple[float, str]]:
    """Where along the axis the marks of shapes lie, and what fills them (those of the legend come first)."""
    found = ElementTree.fromstring(svg).iter(f"{DRAWN}circle")
    return [(float(e.attrib["cx"]), e.attrib["fill"]) for e in list(found)[2:]]


def test_verdicts_of_panels_are_those_of_the_targets_of_a_run() -> None:
    results = mixed()
    judged = {t["what"]: t["reached"] for t in targets(results) if "compilation" not in t["what"]}
    panels = ratios.panels(results)
    assert len(set(judged.values())) == 2
    for t in speeds(results):
        shown = [p.verdicts for p in panels if {(r.group, r.name) for r in p.rows} & set(t.rows)]
        assert shown, "a picture of the rows of every target"
        for lines in shown:
            (line,) = (x for x in lines if x.startswith((f"{t.short} ", f"{t.short},")))
            if not t.short.startswith("each"):
                assert line.endswith("reached" if judged[t.what] else "missed")
                assert f"asked for {t.want:g}:" in line
    for group in ("bf16", "int8"):
        (lines,) = (p.verdicts for p in panels if p.title == TITLES[group])
        mine = [judged[t.what] for t in speeds(results) if t.rows[0][0] == group]
        assert lines[0].endswith(f"{sum(mine)} of {len(mine)} reached")


def test_verdicts_name_the_library_that_targets_name() -> None:
    said = {p.title: " / ".join(p.verdicts) for p in ratios.panels(mixed())}
    assert "mean against oneDNN" in said[TITLES["resnet50"]]
    assert "mean against LIBXSMM" in said[TITLES["resnet50x28"]]
    assert "all work over all time against LIBXSMM" in said[TITLES["resnet50x28"]]
    assert said[TITLES["bf16"]].startswith("each against oneDNN, asked for 1.15 to 1.5:")
    assert all(f"mean of batch {n}" in said[TITLES["gru"]] for n in (1, 4, 32))


def test_what_was_asked_for_lies_where_a_shape_alone_reaches_it() -> None:
    """Also where it is against another library than the best peer."""
    results = mixed()
    for t in speeds(results):
        for r in rows(results, [g for g, _ in t.rows[:1]]):
            if t.short.startswith(("each", "mean against")) and (r.group, r.name) in t.rows:
                assert (r.ratio >= r.asked) == (measure.ratio_to(r.row, t.library)["best"] >= t.want)
    for some, want, why in ((results, 3.0, "with 16 cubed, of which more was asked with nothing bound"),
                            (of("resnet50x28"), 0.8, "no LIBXSMM: only the least of each")):  # fmt: skip
        for r in rows(some, [g for g in ("tiny", "resnet50x28") if g in some][:1]):
            assert r.asked == pytest.approx(want), why


def test_of_several_peers_the_fastest_counts() -> None:
    (found,) = rows({"resnet50": [row("c", 2.0, onednn=0.5, libxsmm=0.25)]}, GROUPS)
    assert (found.ratio, found.peer, found.beside) == (0.5, "oneDNN", (("LIBXSMM", 2.0),))
    (found,) = rows({"tiny": [row("c", 2.0, libxsmm=0.25)]}, GROUPS)
    assert found.beside == (), "references are shown beside convolutions"


def test_references_are_small_faint_diamonds() -> None:
    for results, many in ((of("resnet50x28", libxsmm=0.5), 23), (of("resnet50x28"), 0)):
        svg = ratios.picture(results)
        found = [e for e in ElementTree.fromstring(svg).iter(f"{DRAWN}polygon") if e.attrib["stroke"] == FAINT]
        assert len(found) == many + bool(many), "and one in the legend"
        assert ("LIBXSMM, called from C" in words(svg)) == bool(many)


def test_rows_of_older_runs_are_seen_against_the_best_of_their_peers() -> None:
    new = {"resnet50": [row("c", 2.0, onednn=0.5), row("d", 2.0, onednn=3.0)]}
    old = {"resnet50": [{k: v for k, v in r.items() if k not in ("peer", "references", "compared")}
                        for r in new["resnet50"]]}  # fmt: skip
    assert ratios.picture(old) == ratios.picture(new)
    assert [(r.ratio, r.peer) for r in rows(old, GROUPS)] == [(0.5, "oneDNN"), (2.0, "NumPy")]
    assert targets(old) == targets(new)


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
    alone = row("256x256x256 bf16", 1.0) | {"against": {}, "peer": None}
    svg = ratios.picture({"bf16": [alone], "int8": [], **of("blocks")})
    assert TITLES["blocks"] in words(svg)
    assert not {TITLES["bf16"], TITLES["int8"]} & set(words(svg))
    for picture in plots.pictures({"bf16": [alone], "roofs": ROOFS}).values():
        assert "No shape was measured beside a peer." in words(picture)


def test_rows_of_a_picture_do_not_overlap() -> None:
    every = mixed()
    places: dict[tuple[str, str], list[float]] = {}
    for e in ElementTree.fromstring(ratios.picture(every)).iter(f"{DRAWN}text"):
        if e.get("font-size") == "11":
            places.setdefault((e.attrib["x"], e.get("text-anchor", "")), []).append(float(e.attrib["y"]))
    for ys in places.values():
        assert all(b - a >= ratios.LINE for a, b in zip(sorted(ys), sorted(ys)[1:], strict=False))
    for p in ratios.panels(every):
        assert 7.2 * len(p.title) + 5.6 * len((*p.verdicts, "")[0]) <= ratios.COLUMN, p.title
        assert all(5.6 * len(line) <= ratios.COLUMN for line in p.verdicts)
    assert 46 + 6 * max(len(x.printed) for x in LIBRARIES) <= ratios.VALUES
    longest = max((r.short for r in rows(every, GROUPS)), key=len)
    assert 6.4 * len(longest) <= ratios.NAMES


def test_points_of_a_roofline_lie_where_they_must() -> None:
    results = {"square": [row("64x64x64", 4.0, flops=2.0 * 64**3)], "roofs": ROOFS}
    (p,) = roofline.points(results, ("square",))
    assert p.x == pytest.approx(64 / 6)
    assert (p.ours, p.theirs) == (2.0 * 64**3, pytest.approx(2.0 * 64**3 / 4))
    assert roofline.points({"square": [row("63x65x67", 1.0)]}, ("square",)) == [], "no longer one"


def test_the_roofline_tells_roofs_types_and_groups() -> None:
    results = {**of("bf16"), **of("int8"), **of("rows", library="torch"), "roofs": ROOFS, "machine": {"cpu": "A < B"}}
    svg = roofline.picture(results)
    said = words(svg)
    assert {"L1: 200 GB/s", "L2: 100 GB/s", "memory: 20 GB/s", "Products of bytes", "Rows"} <= set(said)
    assert "computes 200 Gop/s at most" in said
    assert "no level line was measured" in said, "of bytes there is no roof here"
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


def test_the_share_of_a_convolution_within_its_image_is_what_a_count_finds() -> None:
    for shape in (s for g in ("resnet50", "resnet50x28") for s in GROUPS[g]):
        image = np.pad(np.ones((shape.size, shape.size)), shape.pad)
        seen = np.lib.stride_tricks.sliding_window_view(image, (shape.taps, shape.taps))
        assert shape.within == pytest.approx(seen[:: shape.stride, :: shape.stride].mean())


def test_what_lies_above_the_line_is_said_and_why() -> None:
    """A convolution that leaves out the padding may be above; what is above by more than that is said to be odd."""
    (shape,) = (s for s in GROUPS["resnet50"] if (s.size, s.taps, s.stride) == (7, 3, 1))
    other = next(s for s in GROUPS["resnet50"] if s.taps == 1)
    for ratio, name, flops, said in (
        (0.95, shape.name, 1.1e11, "2 above the line: without products with padding at most 94.8% of it"),
        (1.1, shape.name, 0.9e11, ""),
        (0.5, other.name, 1.1e11, "2 above the measured peak: up to 220.0% of it"),
    ):
        results = {"resnet50": [row(name, ratio, flops=flops)], "roofs": ROOFS}
        some = roofline.points(results, ("resnet50",))
        assert roofline.above(some, None) == []
        assert roofline.above(some, 1e11) == [said] * bool(said)
        assert (said in words(roofline.picture(results))) == bool(said)


def test_no_convolution_of_the_pages_computes_more_within_its_image_than_the_roof() -> None:
    results = json.loads((ROOT / "benchmarks" / "results" / "zen4.json").read_text(encoding="utf-8"))
    over = 0
    for _, dtype, groups in roofline.PANELS:
        peak = results["roofs"]["rates"][dtype]
        some = roofline.points(results, groups)
        over += sum(max(p.ours, p.theirs) > peak for p in some)
        assert not any("measured peak" in said for said in roofline.above(some, peak))
    assert over > 5


def test_marks_and_axes() -> None:
    assert len({mark(s, 1, 2, "black", True) for s in SHAPES}) == len(SHAPES)
    assert "<title>a &amp; b</title>" in mark("circle", 1, 2, "black", False, "a & b")
    assert Log(1, 100, 0, 200).at(10) == 100
    assert Log(3, 3, 5, 200).at(3) == 5
    assert Log(0.001, 1000, 0, 600).decades() == [10.0**n for n in range(-3, 4)]
    ticks = Log(0.8, 9, 0, 250).ticks(19)
    assert {0.8, 1.0, 2.0, 5.0} <= set(ticks)
    few = Log(1, 1e9, 0, 100)
    apart = [few.at(b) - few.at(a) for a, b in pairwise(few.ticks(20))]
    assert len(apart) > 1
    assert min(apart) >= 20


def test_the_command_says_why_there_is_no_roofline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "mine.json"
    for roofs, drawn in ({}, ["mine-ratios.svg"]), (ROOFS, ["mine-ratios.svg", "mine-roofline.svg"]):
        results = {"schema": SCHEMA, **of("attention", library="torch"), "roofs": roofs}
        kept.write_text(json.dumps(results), encoding="utf-8")
        assert plots.main([str(kept), str(tmp_path / "there")]) == 0
        assert sorted(p.name for p in (tmp_path / "there").iterdir()) == drawn
        assert ("No roofline" in capsys.readouterr().out) == (not roofs)


@pytest.mark.parametrize(("name", "page"), [("zen5", "performance.md"), ("zen4", "performance-zen4.md"),
                                            ("avx2", "performance-avx2.md"),
                                            ("emerald-rapids", "performance-emerald-rapids.md"),
                                            ("granite-rapids", "performance-granite-rapids.md")])  # fmt: skip
def test_the_pictures_of_the_pages_are_current(name: str, page: str) -> None:
    results = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))
    drawings = ROOT / "docs" / "drawings"
    again = f"run: python -m benchmarks.plots benchmarks/results/{name}.json docs/drawings"
    for kind, picture in plots.pictures(results).items():
        assert (drawings / f"{name}-{kind}.svg").read_text(encoding="utf-8") == picture, again
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    again = f"run: python -m benchmarks.table benchmarks/results/{name}.json > docs/{page}"
    assert page_of(results, name) == text, again
    assert plots.links(results, name) in text
    assert all((ROOT / "docs" / p).exists() for p in re.findall(r"\((drawings/[^)]*)\)", text))
