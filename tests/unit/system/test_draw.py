"""Drawings of machines: nothing lies over anything else, everything is joined to what it belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from xml.etree import ElementTree

import pytest

from isam.system.draw import edges, mermaid, shared, touched
from isam.system.draw_mesh import drawing
from isam.system.draw_svg import svg
from isam.system.find import list_systems
from isam.system.graph import System
from isam.system.groups import Mesh, Replica
from isam.system.load import load_system, parse_system
from tests.unit.system.test_system_groups import MACHINE

SVG = "{http://www.w3.org/2000/svg}"
SYSTEMS = sorted(list_systems())
Box = tuple[float, float, float, float]


@dataclass
class Drawn:
    """What a drawing has: boxes and frames, words and where they stand, straight pieces of lines, all by class."""

    width: float
    height: float
    boxes: list[tuple[str, Box]] = field(default_factory=list)
    words: list[tuple[str, Box]] = field(default_factory=list)
    pieces: list[tuple[str, Box]] = field(default_factory=list)
    paths: list[tuple[str, str]] = field(default_factory=list)

    def read(self, node: ElementTree.Element, dx: float = 0, dy: float = 0) -> None:
        for e in node:
            kind, at = e.get("class") or "", lambda n, e=e: float(e.get(n, "0"))
            if e.tag == f"{SVG}g":
                x, y = re.findall(r"-?[\d.]+", e.get("transform", ""))
                self.read(e, dx + float(x), dy + float(y))
            elif e.tag == f"{SVG}rect":
                x, y = at("x") + dx, at("y") + dy
                self.boxes.append((kind, (x, y, x + at("width"), y + at("height"))))
            elif e.tag == f"{SVG}text":
                size = float(e.get("font-size") or (10 if kind == "s" else 12))
                wide = 0.6 * size * len(e.text or "")
                x = at("x") + dx - {"end": wide, "middle": wide / 2}.get(e.get("text-anchor", ""), 0)
                self.words.append((e.text or "", (x, at("y") + dy - 0.8 * size, x + wide, at("y") + dy + 0.2 * size)))
            elif e.tag == f"{SVG}line":
                ends = at("x1") + dx, at("y1") + dy, at("x2") + dx, at("y2") + dy
                self.pieces.append((kind, ends))
            elif e.tag == f"{SVG}path":
                self.paths.append((kind, e.get("d", "")))
                self.pieces += [(kind, p) for p in _pieces(e.get("d", ""))]


def _pieces(d: str) -> Iterator[Box]:
    x = y = 0.0
    for step, numbers in re.findall(r"([MLhvV])([-\d. ]+)", d):
        n = [float(v) for v in numbers.split()]
        to = {"h": lambda n=n, x=x, y=y: (x + n[0], y), "v": lambda n=n, x=x, y=y: (x, y + n[0]),
              "V": lambda n=n, x=x: (x, n[0])}.get(step, lambda n=n: (n[0], n[1]))()  # fmt: skip
        if step != "M":
            yield (x, y, *to)
        x, y = to


def drawn(machine: System) -> Drawn:
    root = ElementTree.fromstring(svg(machine))
    out = Drawn(float(root.get("width", "")), float(root.get("height", "")))
    out.read(root)
    return out


def _over(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _inside(a: Box, b: Box) -> bool:
    return b[0] <= a[0] and a[2] <= b[2] and b[1] <= a[1] and a[3] <= b[3]


def _spanned(p: Box) -> Box:
    return min(p[0], p[2]), min(p[1], p[3]), max(p[0], p[2]), max(p[1], p[3])


def _judge(d: Drawn) -> None:
    solid = [b for kind, b in d.boxes if kind != "r"]
    frames = [b for kind, b in d.boxes if kind == "r"]
    page = (0.0, 0.0, d.width, d.height)
    assert all(_inside(b, page) for _, b in d.boxes + d.words)
    assert not [p for p in combinations(solid, 2) if _over(*p)]
    assert not [(a, b) for (a, p), (b, q) in combinations(d.words, 2) if _over(p, q)]
    assert not [w for w, p in d.words for b in solid if _over(p, b) and not _inside(p, b)]
    assert all(_inside(b, f) or not _over(b, f) for b in solid for f in frames)
    straight = [(kind, _spanned(p)) for kind, p in d.pieces if p[0] == p[2] or p[1] == p[3]]
    outside = [(w, p) for w, p in d.words if not any(_inside(p, b) for b in solid)]
    wires = [(kind, p) for kind, p in straight if kind]  # those of a mesh run between its places
    assert not [(kind, w) for kind, p in wires for w, q in outside if _over(p, q)]
    assert not [(kind, b) for kind, p in wires for b in solid if _over(p, b)]


@pytest.mark.parametrize("name", SYSTEMS)
def test_nothing_lies_over_anything_else(name: str) -> None:
    _judge(drawn(load_system(name)))


def test_several_replicas_stand_side_by_side_and_what_is_there_once_around_them() -> None:
    """Units of a replica, a memory of another one with a unit, and one unit that is shared."""
    m = parse_system(MACHINE)
    own, issuer = replace(m.memories["sp"], name="own"), replace(m.units["dma"], name="dma2")
    far = [x for x in m.moves if (x.target, x.by) == ("sp", "far")]
    moves = (*m.moves, *(replace(x, target="own", issuer="dma2") for x in far))
    replicas = (Replica("tile", 4, ("sp", "ra", "rb"), ("m0", "m1")), Replica("other", 3, ("own",), ("dma2",)))
    machine = replace(m, memories={**m.memories, "own": own}, units={**m.units, "dma2": issuer}, moves=moves,
                      replicas={r.name: r for r in replicas})  # fmt: skip
    assert machine.replica_of("dma") is None
    _judge(drawn(machine))
    assert sum(kind == "r" for kind, _ in drawn(machine).boxes) == 2


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_node_has_a_box_and_home_is_outside_of_frames(name: str) -> None:
    machine, d = load_system(name), drawn(load_system(name))
    named = {w: b for w, p in d.words for kind, b in d.boxes if kind in ("m", "u") and _inside(p, b)}
    assert {*machine.memories, *machine.units} <= named.keys()
    assert sum(kind in ("m", "u") for kind, _ in d.boxes) == len(machine.memories) + len(machine.units)
    frames = [b for kind, b in d.boxes if kind == "r"]
    assert len(frames) == len(machine.replicas)
    assert not [f for f in frames if _over(named[machine.home], f)]


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_unit_is_joined_to_what_it_works_on_and_to_the_edges_that_it_issues(name: str) -> None:
    machine, d = load_system(name), drawn(load_system(name))
    joined = {p[2:] for kind, p in d.pieces if kind == "w"}
    named = {w: b for w, p in d.words for kind, b in d.boxes if kind == "u" and _inside(p, b)}
    for u in machine.units:
        x, y, _, below = named[u]
        if touched(machine, machine.units[u].runs) or any(m.issuer == u for m in machine.moves):
            assert (x, (y + below) / 2) in joined
    arrows = [path for kind, path in d.paths if kind == "e"]
    assert len(arrows) == len(edges(machine))
    assert {(e.source, e.target, n, e.by) for e in edges(machine) for n in e.names} | {
        (e.target, e.source, n, e.by) for e in edges(machine) if e.both for n in e.names
    } == {(m.source, m.target, m.by, m.issuer) for m in machine.moves}


@pytest.mark.parametrize("name", [n for n in SYSTEMS if load_system(n).links])
def test_every_link_is_joined_to_the_edges_that_share_it(name: str) -> None:
    machine, d = load_system(name), drawn(load_system(name))
    joined = {p[2:] for kind, p in d.pieces if kind == "v"}
    boxes = [b for kind, b in d.boxes if kind == "n"]
    assert len(boxes) == len(machine.links)
    for k, (x, y, right, below) in zip(machine.links.values(), boxes, strict=True):
        assert (x, (y + below) / 2) in joined
        inside = [w for w, p in d.words if _inside(p, (x, y, right, below))]
        assert inside == [k.name, f"{k.bandwidth / 1e9:g} GB/s"]
    carried = [e for k in machine.links.values() for e in shared(machine, k)]
    assert len([path for kind, path in d.paths if kind == "k"]) == len(carried)
    ways = {(e.source, e.target, e.by) for e in carried} | {(e.target, e.source, e.by) for e in carried if e.both}
    assert ways == {(a, b, k.name) for k in machine.links.values() for a, b in k.edges}


def test_links_of_a_flowchart_lie_between_their_memories() -> None:
    lines = mermaid(load_system("tpu_v1_like")).splitlines()
    assert '  k_pcie{{"pcie<br/>15.0324 GB/s"}}' in lines, "a unit has the same name"
    assert [x for x in lines if "k_pcie" in x][1:] == [
        "  m_host <-.-> k_pcie", "  m_ub <-.-> k_pcie", "  k_pcie -.-> m_weights"]  # fmt: skip


def test_a_flowchart_says_who_issues_moves() -> None:
    assert '  m_hbm -->|"box (ld)"| m_sp\n' in mermaid(load_system("casestudy"))


def test_a_port_covers_no_caption_and_no_other_port() -> None:
    """Two memories beside one corner of a grid."""
    mesh = Mesh("noc", "core", (2, 3), 1e9, (("dram", ((0, 0),)), ("hbm", ((0, 0), (1, 2)))), 1e-9, False)
    width, height, inside = drawing(mesh)
    d = Drawn(width, height)
    d.read(ElementTree.fromstring(f'<svg xmlns="http://www.w3.org/2000/svg">{inside}</svg>'))
    assert sum(w in ("dram", "hbm") for w, _ in d.words) == 3
    _judge(d)
