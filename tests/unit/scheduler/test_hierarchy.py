"""Several memories of addresses one behind the other: boxes in each of them, results that meet on their way home, and
instances behind a memory that they share (SCH-4, SCH-9, SCH-10)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from math import prod

import pytest

from isam.compiler.job import Job
from isam.cost.floor import floor
from isam.cost.timeline import timeline
from isam.ir.text import parse_kernel
from isam.proof import check_flat
from isam.proof.races import check_races
from isam.proof.tree import check_tree
from isam.schedule.steps import steps
from isam.schedule.tree import Affine, Issue, Loop, Node, Schedule, Seq, distinct
from isam.scheduler.plans.within import seen_from
from isam.system.graph import Memory, System
from isam.system.load import load_system
from tests.campaign_machines import one
from tests.pipeline import compiled, judge
from tests.random_machines import behind, deeper, toy
from tests.unit.scheduler.test_begins import KERNEL as PRODUCT

ADDED = parse_kernel("""kernel added(M, N, K)
  in    a: f32[M, K]
  in    b: f32[K, N]
  inout c: f32[M, N]
  forall i < M, j < N, k < K
    c[i, j] += a[i, k] * b[k, j]
""")
SCALED = parse_kernel("""kernel scaled(M, N)
  in  x: f32[M, N]
  in  z: f32[N]
  out y: f32[M, N]
  forall i < M, j < N
    y[i, j] = (x[i, j] + z[j]) * 0.5
""")
LAYERS = parse_kernel("""kernel layers(M, K, N, L)
  in  x: f32[M, K]
  in  w: f32[K, N]
  in  b: f32[N]
  in  v: f32[N, L]
  out y: f32[M, L]
  forall i < M, j < N
    h[i, j] = b[j]
  forall i < M, j < N, k < K
    h[i, j] += x[i, k] * w[k, j]
  forall i < M, j < N
    g[i, j] = max(h[i, j], 0)
  forall i < M, j < L
    y[i, j] = 0
  forall i < M, j < L, k < N
    y[i, j] += g[i, k] * v[k, j]
""")
WINDOWS = parse_kernel("""kernel windows(H, W, C, K)
  in  x: f32[H + 2, W + 2, C]
  in  w: f32[3, 3, C, K]
  out y: f32[H, W, K]
  forall h < H, v < W, k < K
    y[h, v, k] = 0
  forall h < H, v < W, k < K, r < 3, s < 3, c < C
    y[h, v, k] += x[h + r, v + s, c] * w[r, s, c, k]
""")
SIZES = {
    "product": (PRODUCT, {"M": 64, "N": 48, "K": 96}),
    "ragged": (PRODUCT, {"M": 37, "N": 50, "K": 41}),
    "little": (PRODUCT, {"M": 3, "N": 5, "K": 7}),
    "added": (ADDED, {"M": 64, "N": 48, "K": 96}),
    "scaled": (SCALED, {"M": 60, "N": 100}),
    "layers": (LAYERS, {"M": 24, "K": 40, "N": 48, "L": 20}),
    "windows": (WINDOWS, {"H": 9, "W": 11, "C": 12, "K": 20}),
}


@cache
def machine(count: int, room: int = 64 << 10) -> System:
    """`toy` behind one more memory, alone or so many times."""
    return replace(behind(toy(), Memory("far", "managed", room, align=16), count), name=f"behind{count}")


@cache
def made(which: str, count: int, room: int = 64 << 10) -> Job:
    kernel, sizes = SIZES[which]
    return compiled(kernel, sizes, machine(count, room), check=True)


def moves(schedule: Schedule, source: str, target: str) -> Counter[str]:
    """Elements of each buffer that go over an edge."""
    out: Counter[str] = Counter()
    for s in steps_of(schedule):
        ends = [o.place.memory for o in s.operands]
        if s.is_move and ends == [source, target]:
            out[s.operands[0].tile.buffer] += prod(s.operands[0].tile.shape)
    return out


def steps_of(schedule: Schedule) -> list[Issue]:
    """Every call, as often as it is made."""
    out: list[Issue] = []

    def walk(node: Node | None, times: int) -> None:
        if isinstance(node, Issue):
            out.extend([node] * times)
        elif isinstance(node, Seq):
            for c in node.children:
                walk(c, times)
        elif isinstance(node, Loop):
            walk(node.enter, times)
            trips = -(-(int(node.hi[0].expr - node.lo[0].expr)) // node.step)
            peeled = [p for p in (node.first, node.last) if p is not None]
            for p in peeled:
                walk(p, times)
            walk(node.body, times * (trips - len(peeled)))

    walk(schedule.call, 1)
    return out


@pytest.mark.parametrize("room", [2 << 10, 64 << 10])
@pytest.mark.parametrize("count", [0, 6])
@pytest.mark.parametrize("which", SIZES)
def test_schedules_are_proved_and_right(which: str, count: int, room: int) -> None:
    kernel, sizes = SIZES[which]
    job = made(which, count, room)
    assert job.schedule is not None
    judge(kernel, sizes, job)
    assert not check_flat(job.schedule)
    if steps(job.schedule.call, {}, 4000) <= 4000:
        assert not check_races(job.schedule, {}, 2)


@pytest.mark.parametrize("count", [0, 6])
def test_what_fits_the_shared_memory_is_brought_there_once(count: int) -> None:
    schedule = made("product", count).schedule
    assert schedule is not None
    sizes = SIZES["product"][1]
    assert moves(schedule, "dram", "far") == {"a": sizes["M"] * sizes["K"], "b": sizes["K"] * sizes["N"]} | {
        b: n for b, n in moves(schedule, "dram", "far").items() if b not in ("a", "b")
    }
    assert moves(schedule, "far", "dram") == {"c": sizes["M"] * sizes["N"]}
    home = [s for s in steps_of(schedule) if s.is_move and s.operands[1].place.memory == "dram"]
    assert len(home) <= 2  # in one piece, or two


def test_boxes_lie_in_both_memories() -> None:
    schedule = made("product", 0).schedule
    assert schedule is not None
    inner = [s for s in steps_of(schedule) if [o.place.memory for o in s.operands] == ["far", "sp"]]
    tiles = [s for s in steps_of(schedule) if s.operands[-1].place.memory in ("ra", "rb") and s.is_move]
    assert 4 * len(inner) < len(tiles)


def test_instances_share_the_work() -> None:
    """One of them did everything before, the others were idle."""
    alone, several = made("product", 0).schedule, made("product", 6).schedule
    assert alone is not None
    assert several is not None
    assert any(isinstance(n, Loop) and n.deal is not None for n in distinct(several.call))
    assert 3 * timeline(several).seconds < timeline(alone).seconds
    assert timeline(several).seconds < 6 * floor(several).seconds


def test_no_instance_writes_where_another_one_reads() -> None:
    """What passes by a shared memory while blocks are dealt out, here the number a half, takes room for each."""
    schedule = made("scaled", 6).schedule
    assert schedule is not None
    passing = {str(s.operands[1].place) for s in steps_of(schedule) if s.is_move
               and s.operands[1].place.memory == "far" and s.operands[0].tile.buffer.startswith("#")}  # fmt: skip
    assert passing
    assert not check_races(schedule, {}, 3)


def test_sums_go_on_where_they_were_gathered() -> None:
    """Of operands that do not fit whole, parts of the sum are brought one after the other: what is begun waits in the
    shared memory, not at home."""
    kernel, sizes = PRODUCT, {"M": 64, "N": 64, "K": 512}
    job = compiled(kernel, sizes, machine(0, 48 << 10), check=True)
    assert job.schedule is not None
    judge(kernel, sizes, job)
    assert moves(job.schedule, "far", "dram")["c"] == 64 * 64
    assert moves(job.schedule, "dram", "far")["c"] == 0


MEETING = [s for s in SIZES if s not in ("little", "layers")]


@pytest.mark.parametrize("which", MEETING)
def test_a_schedule_that_leaves_out_a_move_is_refused(which: str) -> None:
    """Of a box to the shared memory, of one from there, of the results home."""
    schedule = made(which, 6).schedule
    assert schedule is not None
    for source, target in (("dram", "far"), ("far", "sp"), ("sp", "far"), ("far", "dram")):
        found = [n for n in distinct(schedule.call) if isinstance(n, Issue)
                 and [o.place.memory for o in n.operands] == [source, target]]  # fmt: skip
        assert found
        assert check_tree(replace(schedule, call=without(schedule.call, found[-1])))


def without(node: Node, one: Issue) -> Node:
    """A tree without a call."""
    if isinstance(node, Seq):
        return Seq(tuple(without(c, one) for c in node.children if c is not one))
    if isinstance(node, Loop):
        def inside(part: Node | None) -> Node | None:
            return None if part is None else Seq(()) if part is one else without(part, one)

        body = inside(node.body)
        assert body is not None
        enter = inside(node.enter)
        assert isinstance(enter, Seq)
        return replace(node, body=body, enter=enter, first=inside(node.first), last=inside(node.last))
    return node


def test_results_that_meet_in_one_place_are_refused() -> None:
    """Every instance has its part of them: at the same address none would find its own."""
    schedule = made("product", 6).schedule
    assert schedule is not None

    def same(node: Node) -> Node:
        if isinstance(node, Seq):
            return Seq(tuple(map(same, node.children)))
        if isinstance(node, Loop):
            first, last = (None if p is None else same(p) for p in (node.first, node.last))
            enter = same(node.enter)
            assert isinstance(enter, Seq)
            return replace(node, body=same(node.body), enter=enter, first=first, last=last)
        assert isinstance(node, Issue)
        if [o.place.memory for o in node.operands] != ["sp", "far"]:
            return node
        one, two = node.operands
        return replace(node, operands=(one, replace(two, place=replace(two.place, offset=Affine()))))

    assert check_tree(replace(schedule, call=same(schedule.call)))


def test_a_machine_as_it_is_seen_from_a_memory() -> None:
    system = machine(6)
    view = seen_from(system, "far")
    assert view.home == "far"
    assert "dram" not in view.memories
    assert all("dram" not in (m.source, m.target) for m in view.moves)
    assert view.replicas == system.replicas
    inner = seen_from(view, "sp")
    assert inner.home == "sp"
    assert not inner.replicas


def test_the_shipped_array_of_elements_keeps_them_busy() -> None:
    system = load_system("pe_array")
    kernel = parse_kernel(str(PRODUCT).replace("f32", "bf16").replace("c: bf16", "c: f32")
                          .replace("a[i, k] * b[k, j]", "f32(a[i, k]) * f32(b[k, j])"))  # fmt: skip
    job = compiled(kernel, {"M": 128, "N": 128, "K": 128}, system, check=True)
    assert job.schedule is not None
    dealt = [n for n in distinct(job.schedule.call) if isinstance(n, Loop) and n.deal is not None]
    assert dealt
    assert timeline(job.schedule).seconds < 4 * floor(job.schedule).seconds


@pytest.mark.parametrize("seed", [0, 60, 76, 96, 135, 142, 170, 1516, 2353, 2429, 2802])
def test_what_was_wrong_once_is_right(seed: int) -> None:
    """Two results in one place; what one instance passed through the room of a box; results that nobody wanted home, or
    that lay beside those that meet; temporaries with room for an iteration; boxes that no wait kept until all instances
    had read them."""
    assert one(seed, on=deeper)[0] == "agree"
