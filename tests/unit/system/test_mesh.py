"""Meshes: what a description may say of them, where instances stand, which channels moves take."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product

import pytest

from isam.diagnostics import IsamError
from isam.schedule.values import Reader, Writer
from isam.system.draw_svg import svg
from isam.system.groups import Mesh
from isam.system.load import load_system, parse_system
from isam.system.mesh import Place, distance, neighbours, routes
from isam.system.show import text as shown
from tests.unit.system.test_system_groups import MACHINE

GRID = "meshes:\n  noc: {replica: tile, shape: [2, 2], bandwidth: 8 B/cycle, clock: 1 GHz, hop: 3 cycles, " \
       "ports: {dram: [[0, 1]]}}\n"  # fmt: skip
SHAPES = [((1,), ((0,),)), ((5,), ((4,),)), ((3, 4), ((0, 0), (2, 3))), ((4, 4), ((1, 2),)), ((2, 3, 4), ((0, 0, 0),)),
          ((5, 3), ((0, 1), (4, 1), (2, 2)))]  # fmt: skip


def grid(shape, ports, wrap: bool = False) -> Mesh:
    return Mesh("noc", "core", shape, 1e9, (("dram", ports),), 1e-9, wrap)


def graph(mesh: Mesh) -> dict[Place, set[Place]]:
    """Which places are neighbours: one step along one dimension, or round its end."""

    def beside(a: Place, b: Place) -> bool:
        apart = [(x - y) % n if mesh.wrap else abs(x - y) for x, y, n in zip(a, b, mesh.shape, strict=True)]
        steps = [min(d, n - d) if mesh.wrap else d for d, n in zip(apart, mesh.shape, strict=True)]
        return sorted(steps)[-1] == 1 == sum(steps)

    places = list(product(*map(range, mesh.shape)))
    return {p: {q for q in places if beside(p, q)} for p in places}


def lengths(g: dict[Place, set[Place]], start: Place) -> dict[Place, int]:
    """How far every place is, ring by ring."""
    far, ring = {start: 0}, {start}
    while ring:
        ring = {q for p in ring for q in g[p] if q not in far}
        far.update(dict.fromkeys(ring, max(far.values()) + 1))
    return far


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize(("shape", "ports"), SHAPES)
def test_routes_are_shortest_ways_to_the_nearest_port_along_one_dimension_after_the_other(shape, ports, wrap):
    mesh = grid(shape, ports, wrap)
    told, g = routes(mesh), graph(mesh)
    assert sorted(told.places) == sorted(product(*map(range, shape)))
    users = Counter()
    for i, place in enumerate(told.places):
        every = lengths(g, place)
        far = {q: every[q] for q in ports}
        assert far == {q: distance(mesh, place, q) for q in ports}
        assert set(neighbours(mesh, place)) - {place} == g[place]
        for inward in (True, False):
            way = told.of("dram", inward)[i]
            (memory, port), ends = (way[0][0], (way[0][1], way[-1][1])) if inward else (
                way[-1][1], (way[-1][0], way[0][0]))  # fmt: skip
            assert memory == "dram"
            assert ends == (port, place)
            assert len(way) == 1 + min(far.values()) == 1 + far[port]
            assert all(a[1] == b[0] for a, b in pairwise(way))
            steps = [(a, b) for a, b in way if "dram" not in (a[0], b[0])]
            assert all(b in g[a] for a, b in steps)
            turned = [next(d for d in range(len(shape)) if a[d] != b[d]) for a, b in steps]
            assert turned == sorted(turned, reverse=True), "the last dimension first, none twice"
        users[told.inward["dram"][i][0][0][1]] += 1
    assert sum(users.values()) == len(told.places)


@pytest.mark.parametrize(("shape", "ports"), SHAPES)
def test_instances_are_numbered_from_the_ports_outwards(shape, ports):
    told = routes(grid(shape, ports))
    lengths = [len(w) for w in told.inward["dram"]]
    assert lengths == sorted(lengths)


def test_equally_near_ports_are_used_equally():
    told = routes(grid((2, 3), ((0, 0), (0, 2))))
    users = Counter(way[0] for way in told.inward["dram"])
    assert sorted(users.values()) == [3, 3]


def test_a_channel_is_shared_by_those_whose_routes_it_is_on():
    mesh = grid((4,), ((0,),))
    assert [p for (p,) in routes(mesh).places] == [0, 1, 2, 3]
    assert routes(mesh).sharing("dram", True, range(4)) == dict.fromkeys(range(4), 4), "all come through the port"
    assert routes(mesh).sharing("dram", True, [3]) == {3: 1}
    both = grid((4,), ((0,), (3,)))
    assert set(routes(both).sharing("dram", False, range(4)).values()) == {2}


def test_what_a_description_says_of_a_mesh():
    s = parse_system(MACHINE + GRID)
    (m,) = s.meshes.values()
    assert (m.name, m.replica, m.shape, m.bandwidth, m.wrap) == ("noc", "tile", (2, 2), 8e9, False)
    assert m.hop == pytest.approx(3e-9)
    assert m.ports == (("dram", ((0, 1),)),)
    assert s.crossings("dram", "sp") == ((m, "dram", True),)
    assert s.crossings("sp", "dram") == ((m, "dram", False),)
    assert s.crossings("sp", "ra") == ()
    assert "noc   2 x 2   tile  8 GB/s   3 ns  dram at 0,1" in shown(s)
    assert Reader(s.instructions).value(Writer(s.instructions).value(s)).meshes == s.meshes


@pytest.mark.parametrize(
    ("old", "new", "code", "what", "at"),
    [
        ("replica: tile", "replica: tyle", "system-unknown-replica", "no replica 'tyle'", "tyle"),
        ("[2, 2]", "[2, 3]", "system-mesh", "has 6 places, there are 4", "[2, 3]"),
        ("[2, 2]", "[2, 0]", "system-mesh", "there is no place on", "[2, 0]"),
        ("[2, 2]", "[]", "system-mesh", "there is no place on", "[]"),
        ("[[0, 1]]", "[0, 1]", "system-kind", "whole numbers in brackets", "0"),
        ("[2, 2]", "2", "system-kind", "whole numbers in brackets", "2"),
        ("[2, 2]", "[2, x]", "system-count", "x", "x"),
        ("8 B/cycle", "0 B/cycle", "system-mesh", "nothing passes", "0 B/cycle"),
        ("clock: 1 GHz, ", "", "system-mesh", "of no clock", "8 B/cycle"),
        ("8 B/cycle, clock: 1 GHz", "8 GB/s", "system-mesh", "cycles of no clock", "3 cycles"),
        ("[[0, 1]]", "[[0, 2]]", "system-mesh", "no place [0, 2] on a mesh of 2 by 2", "[0, 2]"),
        ("[[0, 1]]", "[[0]]", "system-mesh", "no place [0]", "[0]"),
        ("[[0, 1]]", "[]", "system-mesh", "attached nowhere", "dram"),
        ("[[0, 1]]", "near", "system-kind", "expected places", "near"),
        ("dram: [[0, 1]]", "", "system-mesh", "nothing is attached", "noc"),
        ("dram: [", "dran: [", "system-unknown-memory", "no memory 'dran'", "dran"),
        ("dram: [", "sp: [", "system-mesh", "there are several of 'sp'", "sp"),
        ("ports:", "port:", "system-unknown-key", "port", "port"),
        (", ports: {dram: [[0, 1]]}", "", "system-missing", "ports", "noc"),
    ],
)
def test_what_is_refused(old, new, code, what, at):
    text = MACHINE + GRID.replace(old, new, 1)
    with pytest.raises(IsamError) as e:
        parse_system(text)
    d = next(d for d in e.value.diagnostics if d.code == code)
    assert what in d.message
    line = text.splitlines()[d.loc.line - 1]
    assert line[d.loc.column - 1 :].startswith(at)


def test_a_memory_that_no_move_leads_to_and_two_meshes_for_one():
    lone = MACHINE.replace("units:\n", "  far: {kind: managed, capacity: 1 KiB}\nunits:\n", 1).replace(
        "replicas:", "  - {from: dram, to: far, by: far, issuer: dma, both_ways: true}\nreplicas:")  # fmt: skip
    with pytest.raises(IsamError, match="no move leads between 'far' and 'tile'"):
        parse_system(lone + GRID.replace("dram:", "far:"))
    with pytest.raises(IsamError, match="'dram' is attached to 'noc' already"):
        parse_system(MACHINE + GRID + GRID.splitlines()[1].replace("noc", "noc2") + "\n")


def test_the_drawing_has_every_place_port_and_channel():
    s = load_system("toy_grid")
    (m,) = s.meshes.values()
    drawn = svg(s)
    assert drawn.count('stroke="#bbb"') == sum(map(len, graph(m).values())) + 2 * len(m.ports[0][1])
    assert all(f">{i}</text>" in drawn for i in range(12))
    assert parse_system(MACHINE).meshes == {}
    assert 'stroke="#bbb"' not in svg(parse_system(MACHINE))
