"""Stalls: causes known by construction; with what a stream was busy they are the whole time, multiplied or followed."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from isam.compiler import Refused
from isam.cost.page import page
from isam.cost.report import report
from isam.cost.timeline import Cause, Timeline, timeline
from isam.ir.affine import Affine
from isam.ir.text import parse_kernel
from isam.schedule.tree import Bound, Issue, Loop, Operand, Place, Prefetch, Schedule, Seq, Tile
from isam.scheduler.waits import with_waits
from isam.system.graph import System
from isam.system.groups import Link
from tests.corpus import CASES
from tests.double_buffered import product
from tests.machines.small import PRODUCT, SAME, ZERO, instruction, small
from tests.pipeline import compiled, kept, of_corpus, simulated
from tests.random_kernels import random_kernel
from tests.random_machines import machine
from tests.random_streams import Dealt, Trees, many
from tests.unit.cost.test_dealt import VECTORS, dealt, mine, near
from tests.unit.cost.test_meshed import mesh
from tests.unit.cost.test_overlap import longer

CYCLE = 10**6  # ticks at 1 GHz
HALF = instruction("half(N <= 16)", """
  in  A: f32[N]
  out D: f32[N]
  forall j < N
    D[j] = A[j] * 0.5
""", "homes: [sp]", "cost: {issue: 1 cycle, latency: 5 cycles}")  # fmt: skip
HALVES = parse_kernel("""kernel halves(N)
  in  x: f32[N]
  out y: f32[N]
  forall j < N
    y[j] = x[j] * 0.5
""")
SUM = instruction("mac(M <= 4, N <= 4, K <= 4)", PRODUCT, "homes: [sp]", "cost: {issue: 1 cycle, latency: 40 cycles}")
CLEAR = instruction("clear(M <= 4, N <= 4)", ZERO, "homes: [sp]", "cost: {issue: 1 cycle}")


def copies(cost: str) -> str:
    return instruction("copy(M, N)", SAME, f"cost: {{{cost}}}")


def halving(room: str, cost: str, tiles: int) -> tuple[System, Schedule]:
    system = small("halving", {"sp": f"capacity: {room}"}, ["dram <-> sp"], HALF, copy=copies(cost))
    schedule = compiled(HALVES, {"N": 16 * tiles}, simulated(system)).schedule
    assert schedule is not None
    return system, schedule


def stalled(schedule: Schedule, late: dict[str, int] | None = None, most: int = 200_000) -> Timeline:
    """Stalls as they are; multiplied and followed are equal, and nothing else is changed."""
    plain, short = timeline(schedule, late), timeline(schedule, late, stalls=True)
    assert plain == replace(short, stalls={}, followed=plain.followed)
    for stream, causes in short.stalls.items():
        w = short.clusters.get(stream) or short.units[stream]
        assert w.busy + sum(causes.values()) == short.ticks * w.copies, (stream, causes)
        assert min(causes.values()) > 0
    if plain.calls <= most:
        whole = timeline(schedule, late, whole=True, stalls=True)
        assert whole == replace(short, followed=whole.followed)
    return short


def largest(t: Timeline, stream: str) -> Cause:
    return max(t.stalls[stream], key=t.stalls[stream].__getitem__)


def test_one_load_one_call_one_store():
    """A load of 50 cycles, a call of 5, a store of 50; each takes its unit for one."""
    _, schedule = halving("64 KiB", "issue: 1 cycle, latency: 50 cycles", 1)
    t = stalled(schedule)
    assert t.ticks == 105 * CYCLE
    assert t.stalls == {
        "pe": {Cause("result", "dma", "copy", first=True): 50 * CYCLE, Cause("end"): 54 * CYCLE},
        "dma": {Cause("result", "pe", "half"): 54 * CYCLE, Cause("end"): 49 * CYCLE},
    }


def test_the_latency_of_loads():
    _, schedule = halving("64 KiB", "issue: 1 cycle, latency: 50 cycles", 64)
    t = stalled(schedule)
    assert {c[:3] for c in t.stalls["pe"]} == {("result", "dma", "copy"), ("end", "", "")}


def test_a_slow_move():
    """64 bytes each way take the DMA all of the time; who computes waits for them."""
    system, schedule = halving("64 KiB", "setup: 10 cycles, bandwidth: 1 B/cycle", 64)
    t = stalled(schedule)
    assert largest(t, "pe")[:3] == ("result", "dma", "copy")
    assert t.share(t.units["dma"]) > 0.9
    told = str(report(schedule))
    row = next(line for line in told.splitlines() if line.startswith("  unit     pe"))
    assert "% for copy of dma" in row
    assert "waits" not in next(line for line in told.splitlines() if line.startswith("  unit     dma"))
    assert row.partition("; waits")[2] in page(schedule)
    assert set(report(schedule).data["units"]) == set(system.units)


@pytest.mark.parametrize(("room", "waits"), [("192 B", True), ("64 KiB", False)])
def test_room_for_few_tiles(room, waits):
    """Where no more than three tiles have room, one goes out before the next comes in."""
    _, schedule = halving(room, "issue: 1 cycle, latency: 50 cycles", 64)
    assert (Cause("room", "dma", "copy") in stalled(schedule).stalls["dma"]) is waits


def test_one_place_for_the_tiles_of_a_sum():
    """Each of 64 loads into the place that the last product, of 40 cycles, reads; two loads of a cycle each."""
    system = small("summing", {"sp": "capacity: 256 B"}, ["dram <-> sp"], SUM, CLEAR,
                   copy=copies("issue: 1 cycle, latency: 1 cycle"))  # fmt: skip
    schedule = compiled(VECTORS, {"M": 4, "N": 4, "K": 256}, simulated(system)).schedule
    assert schedule is not None
    t = stalled(schedule)
    assert t.stalls["dma"][Cause("room", "pe", "mac")] == 63 * 40 * CYCLE
    assert t.stalls["dma"][Cause("result", "pe", "mac")] == 40 * CYCLE
    assert largest(t, "pe") == Cause("result", "dma", "copy")
    assert "% for room in use by mac of pe" in str(report(schedule))


def test_a_link_that_is_slower_than_the_edge():
    """64 bytes over a link of one byte a cycle: what the link takes longer than the edge is waited for."""
    system = small("summing", {"sp": "capacity: 64 KiB"}, ["dram <-> sp"], SUM, CLEAR,
                   copy=copies("setup: 10 cycles, bandwidth: 64 B/cycle"))  # fmt: skip
    system = replace(system, links={"bus": Link("bus", 1e9, (("dram", "sp"), ("sp", "dram")))})
    schedule = compiled(VECTORS, {"M": 4, "N": 4, "K": 256}, simulated(system)).schedule
    assert schedule is not None
    t = stalled(schedule)
    assert largest(t, "dma") == Cause("link", "bus")
    assert largest(t, "pe") == Cause("result", "dma", "copy")
    moved = t.units["dma"]
    assert t.stalls["dma"][Cause("link", "bus")] == t.links["bus"].busy + 10 * CYCLE * moved.calls - moved.busy
    assert "% for link bus" in str(report(schedule))


def repeated(*calls: Issue | Loop, trip: int = 5) -> Loop:
    return Loop("t", (Bound(Affine()),), (Bound(Affine((), trip)),), 1, Seq(calls))


def test_first_calls_in_iterations_that_begin_alike():
    """Two loads and, beside the second one, a copy of what the first one has brought. All of them ask a cache for
    something, 5 cycles that no result waits for: when an iteration begins, all is over, as before the first one."""
    made = Trees(0).schedule()
    spots = [Place("n", "", Affine((), 256 * k), (1,)) for k in range(3)]
    calls = asking("u0", replace(spots[0], memory="m"), spots[0]), asking("u0", replace(spots[1], memory="m"), spots[1])
    made = replace(made, call=repeated(*calls, asking("u1", spots[0], spots[2], 88)), system=asked(made.system))
    check_first(with_waits(made), "u1", "u0", 1)


def test_first_calls_on_instances_in_iterations_that_begin_alike():
    """The same on each of four instances."""
    made = dealt([asking("dma", mine(), near(0)), asking("dma", mine(8), near(256)),
                  asking("left", near(0), near(512), 88)])  # fmt: skip
    made = replace(made, call=repeated(made.call), system=asked(replace(made.system, links={})))
    check_first(with_waits(made), "pair", "dma", 4)


def asking(unit: str, source: Place, target: Place, size: int = 8) -> Issue:
    tile = Tile("x", (Affine(),), (size,), (1,))
    operands = (Operand("S", tile, source, (0,)), Operand("D", tile, target, (0,)))
    return Issue(unit, "copy", (("M", 1), ("N", size)), operands, prefetch=Prefetch(Affine((), 64), "m"))


def asked(system: System) -> System:
    copy = system.instructions["copy"]
    return replace(system, instructions={"copy": replace(copy, cost=replace(copy.cost, prefetch=5))})


def check_first(schedule: Schedule, stream: str, of: str, instances: int) -> None:
    wait, cause = 21 * CYCLE // 2, Cause("result", of, "copy")
    for whole in (False, True):
        found = timeline(schedule, stalls=True, whole=whole).stalls[stream]
        assert found == {cause._replace(first=True): wait * instances, cause: 4 * wait * instances}


def test_a_step_waits_for_what_is_nearest():
    """One call of it reads what the last load but one has brought, the other writes what the last one reads."""
    move = Dealt(0).move
    pair = move("left", near(0), near(24)), replace(move("right", near(32), near(8)), joined=True)
    made = dealt([move("dma", mine(), near(0)), move("dma", near(8), mine(8)), *pair])
    t = stalled(with_waits(made))
    assert [c[:3] for c in t.stalls["pair"]] == [("room", "dma", "copy")]


def test_an_edge_that_two_units_share():
    """Found on random trees, where three units move along the same edges."""
    kinds = {c.kind for seed in range(10) for causes in stalled(with_waits(tree(seed))).stalls.values() for c in causes}
    assert kinds == {"result", "room", "edge", "end"}


def tree(seed: int) -> Schedule:
    made = Trees(seed, still=True).schedule()
    return replace(made, call=longer(made.call, random.Random(seed)))


@pytest.mark.parametrize("seed", range(40))
def test_stalls_of_multiplied_iterations_are_exact_on_random_trees(seed):
    stalled(with_waits(tree(seed)), most=100_000)


@pytest.mark.parametrize("seed", range(40))
def test_stalls_of_equal_instances_are_exact(seed):
    schedule = with_waits(Dealt(seed).schedule())
    stalled(schedule)
    stalled(replace(schedule, system=many(mesh(0, 2))))


@pytest.mark.parametrize(("deep", "places"), [(64, 2), (64, 1), (1024, 2)])
def test_stalls_are_exact_where_lags_are_long(deep, places):
    """With two places products wait for the sums that they add to, with one for the next box."""
    t = stalled(product(deep, 8, places, rows=3))
    assert largest(t, "mm") == (Cause("result", "mm", "mm4") if places == 2 else Cause("result", "dma", "copy"))


@pytest.mark.parametrize("name", ["matmul", "softmax", "conv2d", "layer_norm", "rnn", "lower_triangle"])
def test_stalls_on_toy(name):
    schedule = of_corpus(name).schedule
    assert schedule is not None
    stalled(schedule, {s.name: 5 for s in schedule.kernel.syms})


@pytest.mark.parametrize(("name", "kernel", "kind"), [
    ("casestudy", VECTORS, "link"), ("gemmini", CASES["matmul_i8"].load(), "result"), ("toy_grid", VECTORS, "mesh"),
    ("toy_pair", VECTORS, "result"),
])  # fmt: skip
def test_stalls_on_machines_with_instances_links_clusters_and_meshes(name, kernel, kind):
    schedule = compiled(kernel, dict.fromkeys("MNK", 64), simulated(name)).schedule
    assert schedule is not None
    t = stalled(schedule)
    assert kind in {c.kind for causes in t.stalls.values() for c in causes}
    told = report(schedule).data
    for stream, causes in t.stalls.items():
        row = told["clusters"].get(stream) or told["units"][stream]
        shares = [c["share"] for c in row["stalls"]]
        assert len(shares) == len(causes)
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) + row["share"] == pytest.approx(1)


def test_stalls_on_random_machines():
    done = 0
    for seed in range(12):
        kernel, sizes = random_kernel(seed)
        try:
            schedule = compiled(kernel, sizes, machine(seed)).schedule
        except Refused:
            continue
        assert schedule is not None
        stalled(schedule)
        done += 1
    assert done > 3


def test_iterations_repeat_as_soon_as_without_stalls():
    for name in ("toy", "casestudy"):
        schedule = kept(VECTORS, name, M=512, N=512, K=512).schedule
        assert schedule is not None
        t = timeline(schedule, stalls=True)
        assert t.followed <= 2 * timeline(schedule).followed < t.calls / 4
