"""Moves over a mesh in time: closed forms, equal iterations followed once to the tick, floors that hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from isam.cost.floor import floor
from isam.cost.page import page
from isam.cost.report import report
from isam.cost.timeline import Event, timeline
from isam.ir.affine import Affine
from isam.schedule.tree import Bound, Deal, Loop, Place, Schedule, Seq
from isam.scheduler.waits import with_waits
from isam.system.groups import Mesh
from isam.system.mesh import routes
from tests.pipeline import compiled, simulated
from tests.random_streams import Dealt, many
from tests.unit.cost.test_dealt import NS, VECTORS, dealt, mine, near

HOP, WIDE = 5, 4  # nanoseconds of a hop, bytes a nanosecond through a channel


def mesh(*ports: int, shape=(4,), wrap: bool = False) -> dict[str, Mesh]:
    at = tuple((p,) if len(shape) == 1 else divmod(p, shape[-1]) for p in ports)
    return {"noc": Mesh("noc", "core", shape, WIDE * 1e9, (("m", at),), HOP * 1e-9, wrap)}


def on(schedule: Schedule, meshes: dict[str, Mesh], link: bool = True) -> Schedule:
    machine = many(meshes)
    return replace(schedule, system=machine if link else replace(machine, links={}))


@pytest.mark.parametrize("trip", [1, 2, 3, 4])
def test_a_move_to_each_instance_takes_its_part_of_the_busiest_channel_and_its_hops(trip):
    """8 bytes to each of the cores on a row of four, one port at its end: the port's channel is everybody's."""
    make = Dealt(0).move
    seen: list[Event] = []
    schedule = on(with_waits(dealt([make("dma", mine(), near(0))], trip)), mesh(0), link=False)
    t = timeline(schedule, watch=seen.append, whole=True)
    alone = 8 / WIDE * trip
    for e in seen:
        assert e.free == round((10 + alone) * NS), "set up, then its bytes through the channel"
        assert e.finish == round((10 + alone + HOP * (e.instance + 1)) * NS), "and each hop"
    carried = {c: w.bytes for c, w in t.meshes["noc"].items()}
    row = [("m", (0,)), (0,), (1,), (2,), (3,)]
    assert carried == {(row[i], row[i + 1]): 8 * (trip - i) for i in range(trip)}


def test_what_goes_out_uses_the_other_channels():
    make = Dealt(0).move
    schedule = on(with_waits(dealt([make("dma", near(0), mine())], 4)), mesh(0))
    channels = timeline(schedule).meshes["noc"]
    assert ((0,), ("m", (0,))) in channels
    assert (("m", (0,)), (0,)) not in channels


def test_moves_of_an_instance_share_its_part_in_the_order_of_time():
    """Two loads, one after the other on the same unit, are no faster than the channel lets them be."""
    make = Dealt(0).move
    one, two = (on(with_waits(dealt([make("dma", mine(8 * k), near(8 * k)) for k in range(n)], 4)), mesh(0), link=False)
                for n in (1, 2))  # fmt: skip
    assert timeline(two).ticks - timeline(one).ticks == (10 + 8 * 4 // WIDE) * NS


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("meshes", [mesh(0), mesh(0, 3), mesh(1, shape=(2, 2), wrap=True)])
def test_equal_instances_and_iterations_are_followed_once_exactly(seed, meshes):
    schedule = with_waits(on(Dealt(seed).schedule(), meshes))
    seen: list[Event] = []
    short, whole = timeline(schedule), timeline(schedule, watch=seen.append, whole=True)
    assert (short.ticks, short.units, short.edges) == (whole.ticks, whole.units, whole.edges)
    assert (short.links, short.clusters, short.calls) == (whole.links, whole.clusters, whole.calls)
    assert short.meshes == whole.meshes
    assert short.followed <= whole.followed == whole.calls
    (noc,) = meshes.values()
    carried = Counter()
    for e in seen:
        if e.edge in (("m", "l"), ("l", "m")):
            inward = e.edge[0] == "m"
            carried.update(dict.fromkeys(routes(noc).of("m", inward)[e.instance], e.bytes))
    assert {c: w.bytes for c, w in whole.meshes["noc"].items()} == carried


def test_a_repeated_loop_counts_what_its_iterations_carry():
    """Between iterations the host reads what the last instance wrote and writes what all of them read."""
    make = Dealt(0).move
    slot, every = Place("m", "", Affine((), 64 * 3), (1,)), Place("m", "", Affine((), 1024), (1,))
    inner = dealt([make("dma", every, near(0)), make("dma", near(0), mine())], 4).call
    kept = Loop("t", (Bound(Affine()),), (Bound(Affine((), 500)),), 1, Seq((inner, make("host", slot, every))))
    schedule = on(with_waits(replace(dealt([]), call=kept)), mesh(0))
    short = timeline(schedule)
    assert short.followed < short.calls / 10
    assert short.meshes["noc"][("m", (0,)), (0,)].bytes == 500 * 4 * 8
    assert short.meshes["noc"][(3,), (2,)].bytes == 500 * 8
    assert short == replace(timeline(schedule, whole=True), followed=short.followed)


def test_what_one_unit_issues_for_all_instances_goes_one_after_the_other_at_full_width():
    make = Dealt(0).move
    schedule = on(with_waits(dealt([make("host", mine(), near(0))], 4)), mesh(0), link=False)
    t = timeline(schedule, whole=True)
    assert t.units["host"].calls == 4
    assert t.ticks == round((4 * (10 + 8 / WIDE) + 4 * HOP) * NS), "four moves of one unit, the last goes four hops"


def test_without_hops_and_with_room_a_mesh_changes_nothing():
    for seed in range(20):
        schedule = with_waits(Dealt(seed).schedule())
        wide = {"noc": Mesh("noc", "core", (4,), 1e30, (("m", ((0,),)),))}
        assert timeline(on(schedule, wide)).ticks == timeline(schedule).ticks


def test_fewer_iterations_than_instances_use_the_nearest():
    make = Dealt(0).move
    body = [make("dma", mine(), near(0))]
    first = on(with_waits(dealt(body, 2)), mesh(3))
    last = replace(first, call=replace(first.call, deal=Deal("core", 2, 1)))
    assert timeline(first).ticks < timeline(last).ticks


@pytest.mark.parametrize("channel", [2e9, 32e9])
def test_a_product_on_a_grid_holds_its_floor_and_is_told(channel):
    machine = simulated("toy_grid")
    machine = replace(machine, meshes={n: replace(m, bandwidth=channel) for n, m in machine.meshes.items()})
    schedule = compiled(VECTORS, dict.fromkeys("MNK", 64), machine).schedule
    assert schedule is not None
    t, least = timeline(schedule), floor(schedule)
    assert t == replace(timeline(schedule, whole=True), followed=t.followed)
    assert t.seconds >= least.seconds
    out = next(b for b in least.bounds if b.where == "mesh noc out of dram")
    assert out.seconds >= 2 * 64 * 64 * 4 / (2 * channel), "both operands through two ports"
    if channel < 1e10:
        assert least.bounds[0].where.startswith(("mesh noc", "dma", "unit")), least.name
    told = report(schedule)
    assert "mesh     noc" in str(told)
    assert sum(w["bytes"] for w in told.data["meshes"]["noc"].values()) == sum(
        w.bytes for w in t.meshes["noc"].values())  # fmt: skip
    assert "<h2>Mesh noc</h2>" in page(schedule)
