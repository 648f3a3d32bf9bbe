"""Traces and pages: every call once, on its instance's track; memories as full as they are; nothing is fetched."""

from __future__ import annotations

import json
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import combinations, pairwise
from math import dist
from xml.etree import ElementTree

from isam.cost.occupancy import occupancy
from isam.cost.page import LEFT, WIDE, colours, page, ticks
from isam.cost.perfetto import trace
from isam.cost.timeline import TICK, Event, timeline
from isam.ir.affine import Affine
from isam.schedule.tree import Place
from isam.system.show import bytes_text
from tests.double_buffered import product
from tests.machines import CROWD
from tests.pipeline import of_corpus
from tests.random_streams import Dealt


def crowd():
    schedule = of_corpus("matmul", CROWD, {"M": 30, "N": 20, "K": 17}).schedule
    assert schedule is not None
    return schedule


def test_a_track_per_unit_and_instance():
    rows = json.loads(trace(crowd()))["traceEvents"]
    calls = [r for r in rows if r["ph"] == "X" and r["cat"] == "unit"]
    assert len(calls) == timeline(crowd()).calls
    assert {r["pid"] for r in calls} == {1, 2, 3}
    assert {r["name"] for r in rows if r["ph"] == "C"} >= {"in use sp", "in use ra", "bytes dram -> sp"}


def test_a_track_per_port_says_what_passes_it_and_when():
    schedule, events = crowd(), list[Event]()
    rows = json.loads(trace(schedule))["traceEvents"]
    named = {(r["pid"], r["tid"]): r["args"]["name"] for r in rows if r["name"] == "thread_name"}
    ports = [r for r in rows if r["ph"] == "X" and r["cat"] == "port"]
    timeline(schedule, watch=events.append, whole=True)
    moves = Counter((e.instance + 1, f"{' -> '.join(e.edge)} by {e.issue.unit}") for e in events if e.edge)
    assert Counter((r["pid"], named[r["pid"], r["tid"]]) for r in ports) == moves
    spans: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for r in ports:
        spans.setdefault((r["pid"], r["tid"]), []).append((r["ts"], r["ts"] + r["dur"]))
    assert all(a[1] <= b[0] + 1e-6 for found in spans.values() for a, b in pairwise(sorted(found)))


def test_the_scratchpad_holds_two_boxes_and_the_result():
    """Boxes of 16 x (4 + 4) elements at two places, 64 bytes of result; never more, and no less at the height."""
    schedule, events = product(16, 6, rows=1), list[Event]()
    timeline(schedule, watch=events.append, whole=True)
    points = occupancy(schedule, events)["sp", 0]
    assert max(size for _, size in points) == 2 * 16 * 8 * 4 + 64
    assert points[-1][1] == 0
    assert all(size >= 0 for _, size in points)


def test_no_memory_holds_more_than_there_is():
    schedule, events = crowd(), list[Event]()
    timeline(schedule, watch=events.append, whole=True)
    for (memory, _), points in occupancy(schedule, events).items():
        assert max(size for _, size in points) <= schedule.system.memories[memory].capacity


def test_the_page_stands_alone_and_is_well_formed():
    text = page(crowd())
    named = text.replace('xmlns="http://www.w3.org/2000/svg"', "")  # a name, which nothing fetches
    assert not re.search(r"""(src|href)\s*=|url\(|@import|<script|https?://""", named)
    assert "times the least" in text
    open_: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            if tag in ("svg", "table", "tr", "pre", "h1", "h2", "p", "span", "text", "td", "th"):
                open_.append(tag)

        def handle_endtag(self, tag):
            if tag in ("svg", "table", "tr", "pre", "h1", "h2", "p", "span", "text", "td", "th"):
                assert open_.pop() == tag

    Reader().feed(text)
    assert not open_


def test_pictures_of_the_page_are_xml_and_their_words_stay_beside_the_plots():
    pictures = re.findall(r"<svg.*?</svg>", page(crowd()), re.DOTALL)
    assert len(pictures) > 3
    for text in pictures:
        root = ElementTree.fromstring(text)
        width, height = float(root.get("width", "")), float(root.get("height", ""))
        plots = [float(e.get("x", "0")) for e in root.iter() if e.tag.endswith("rect")]
        for e in root:
            if e.tag.endswith("text"):
                x, y = float(e.get("x", "")), float(e.get("y", ""))
                assert y <= height
                assert x + 0.6 * 12 * len(e.text or "") <= (min(plots) if x == 0 else width)


def lightness_and_hue(colour: str) -> tuple[float, float, float]:
    """CIELAB: where colours lie as far apart as they look."""
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    x, y, z = (0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, 0.2126 * r + 0.7152 * g + 0.0722 * b, (
        0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089  # fmt: skip
    fx, fy, fz = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def test_no_two_instructions_of_a_picture_look_alike():
    assert len({colours(k) for k in range(40)}) == 40
    assert {len(colours(k)) for k in range(12)} == {1}
    shown = [lightness_and_hue(c) for k in range(12) for c in colours(k)]
    assert min(dist(a, b) for a, b in combinations([*shown, lightness_and_hue("#ffffff")], 2)) > 20


def test_a_picture_names_its_bars_and_has_round_times_between_its_ends():
    schedule = crowd()
    text = page(schedule)
    (chart,) = re.findall(r"<h2>Streams</h2><p>[^<]*</p>\s*(<svg.*?</svg>)<p>", text, re.DOTALL)
    named = {e.text for e in ElementTree.fromstring(chart).iter() if e.tag.endswith("title")}
    events = list[Event]()
    timeline(schedule, watch=events.append, whole=True)
    assert named == {e.issue.instruction for e in events}
    for end in (1, 7, 2880, 10**6, 123456789):
        marks = ticks(end)
        assert 2 <= len(marks) <= 10
        assert all(LEFT < x < LEFT + WIDE for x, _ in marks)
        for x, told in marks:
            number, unit = told.split()
            seconds = float(number) * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[unit]
            assert abs((x - LEFT) / WIDE - seconds / (end * TICK)) < 1e-2
    for _, told in ticks(max(e.finish for e in events)):
        assert f">{told}</text>" in chart


def test_a_memory_of_which_little_is_used_is_drawn_to_what_is_used():
    schedule, events = product(16, 6, rows=1), list[Event]()
    timeline(schedule, watch=events.append, whole=True)
    used = {m: max(size for _, size in points) for (m, _), points in occupancy(schedule, events).items()}
    rooms = {m: schedule.system.memories[m].capacity for m in used}
    assert any(used[m] * 8 < rooms[m] for m in used)
    (chart,) = re.findall(r"<h2>Memories</h2>\s*(<svg.*?</svg>)", page(schedule), re.DOTALL)
    root = ElementTree.fromstring(chart)
    heights = [float(e.get("height", "")) for e in root if e.tag.endswith("rect")]
    tops = [[float(y) for y in re.findall(r",([\d.]+)", e.get("d", ""))] for e in root if e.tag.endswith("path")]
    assert all((max(ys) - min(ys)) * 4 >= high for ys, high in zip(tops, heights, strict=True))
    for m in used:
        assert f">peak {bytes_text(used[m])} of {bytes_text(rooms[m])}<" in chart


def test_what_is_overwritten_in_part_stays_in_the_rest():
    def near(at: int) -> Place:
        return Place("l", "", Affine((), at), (1,))

    made, far = Dealt(0), Place("m", "", Affine(), (1,))
    calls = (made.move("dma", far, near(0)), made.move("dma", far, near(4)), made.move("left", near(0), near(32)))
    events = [Event(c, 10 * n, 10 * n + 10, 10 * n + 10) for n, c in enumerate(calls)]
    assert occupancy(made.schedule(), events) == {("l", 0): [(0, 8), (10, 12), (20, 20), (30, 0)]}
