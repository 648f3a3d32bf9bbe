"""Temporaries that groups hand on in a slot of a near memory (SCH-10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from isam.approach.choice import NOTHING, Choice
from isam.approach.shipped.greedy import Greedy
from isam.cost.timeline import timeline
from isam.ir.text import parse_kernel
from isam.proof.tree import check_tree
from isam.schedule.tree import Issue, Loop, Node, Seq, distinct
from isam.system.graph import System
from tests.machines.small import CLIP, PRODUCT, ZERO, instruction, small
from tests.pipeline import compiled, judge, simulated
from tests.unit.scheduler.test_in_blocks import Apart

LAYERS = """kernel layers(M, K, N)
  in  x: f32[M, K]
  in  w: f32[K, N]
  in  v: f32[N, K]
  out y: f32[M, K]
  forall i < M, j < N
    t[i, j] = 0
  forall i < M, j < N, k < K
    t[i, j] += x[i, k] * w[k, j]
  forall i < M, j < N
    h[i, j] = max(t[i, j], 0)
  forall i < M, p < K
    y[i, p] = 0
  forall i < M, p < K, j < N
    y[i, p] += h[i, j] * v[j, p]
"""
# one number per row, read by itself
ROWS = """kernel rows(M, N)
  in  x: f32[M, N]
  in  w: f32[N, N]
  in  r: f32
  out y: f32[M, N]
  forall i < M
    q[i] = 0
  forall i < M, j < N
    q[i] += x[i, j] * x[i, j]
  forall i < M
    z[i] = rsqrt(q[i] * r)
  forall i < M, j < N
    n[i, j] = x[i, j] * z[i]
  forall i < M, p < N
    y[i, p] = 0
  forall i < M, p < N, j < N
    y[i, p] += n[i, j] * w[j, p]
"""
# written before a loop, changed in it, read behind it
STATE = """kernel state(T, M, K)
  in  x: f32[T, M, K]
  in  w: f32[K, K]
  out y: f32[M, K]
  forall i < M, j < K
    h[i, j] = 1
  loop t < T
    forall i < M, j < K
      a[i, j] = x[t, i, j]
    forall i < M, j < K, k < K
      a[i, j] += h[i, k] * w[k, j]
    forall i < M, j < K
      h[i, j] = tanh(a[i, j])
  forall i < M, j < K
    y[i, j] = 0
  forall i < M, j < K, k < K
    y[i, j] += h[i, k] * w[k, j]
"""
# two lengths that no call divides
WINDOWS = """kernel windows(H, C, D)
  in  x: f32[H + 4, C]
  in  w: f32[3, C, D]
  in  v: f32[3, D, C]
  out y: f32[H, C]
  forall i < H + 2, d < D
    t[i, d] = 0
  forall i < H + 2, d < D, a < 3, c < C
    t[i, d] += x[i + a, c] * w[a, c, d]
  forall i < H, c < C
    y[i, c] = 0
  forall i < H, c < C, b < 3, d < D
    y[i, c] += t[i + b, d] * v[b, d, c]
"""
# what is made of a constant when it is bound, and an output that is read again
PREPARED = """kernel prepared(M, N)
  const w: f32[N, N]
  in    x: f32[M, N]
  out   y: f32[M, N]
  out   z: f32[M, N]
  forall j < N, k < N
    v[k, j] = w[j, k] * 2
  forall i < M, j < N
    y[i, j] = 0
  forall i < M, j < N, k < N
    y[i, j] += x[i, k] * v[k, j]
  forall i < M, j < N
    z[i, j] = 0
  forall i < M, j < N, k < N
    z[i, j] += y[i, k] * v[k, j]
"""
ALL = {"layers": (LAYERS, {"M": 8, "K": 16, "N": 16}), "rows": (ROWS, {"M": 8, "N": 16}),
       "state": (STATE, {"T": 3, "M": 4, "K": 8}), "windows": (WINDOWS, {"H": 5, "C": 4, "D": 6}),
       "prepared": (PREPARED, {"M": 8, "N": 8})}  # fmt: skip


class Nothing(Apart):
    """Hands on nothing."""

    def carry(self, choice: Choice) -> object:
        return NOTHING

    promote = carry


def toy(capacity: int = 1 << 14, align: int = 16, **more: Any) -> System:
    """The toy with a scratchpad of so many bytes, in which accesses begin at such multiples."""
    system = simulated("toy")
    sp = replace(system.memories["sp"], capacity=capacity, align=align, **more)
    return replace(system, memories={**system.memories, "sp": sp})


def direct() -> System:
    """The toy without registers: calls find their operands in the scratchpad."""
    system = toy()
    there = {m: system.memories[m] for m in ("dram", "sp")}
    called = {n: replace(i, operands={k: replace(c, homes=("sp",) if c.homes else ()) for k, c in i.operands.items()},
                         apart=()) for n, i in system.instructions.items()}  # fmt: skip
    moves = tuple(m for m in system.moves if {m.source, m.target} <= set(there))
    return replace(system, memories=there, instructions=called, moves=moves)


def made(name: str, on: System | str = "toy", approach: Greedy | None = None) -> Any:
    text, sizes = ALL[name]
    job = compiled(parse_kernel(text), sizes, simulated(on), approach, check=True)
    judge(parse_kernel(text), sizes, job, 1)
    return job.schedule


def near(schedule: Any) -> set[str]:
    """The buffers that are at home near."""
    return {b for b, place in schedule.homes.items() if place.memory != schedule.system.home}


def at_home(schedule: Any) -> set[str]:
    """What moves bring from home, or take there."""
    calls = (n for n in distinct(schedule.call) if isinstance(n, Issue) and n.is_move)
    return {o.tile.buffer for n in calls for o in n.operands if o.place.memory == schedule.system.home}


@pytest.mark.parametrize("align", [4, 16, 64])
@pytest.mark.parametrize("name", ALL)
def test_every_schedule_computes_what_is_written(name: str, align: int) -> None:
    made(name, toy(align=align))


@pytest.mark.parametrize("name", ALL)
def test_what_an_instance_has_is_no_home_of_all(name: str) -> None:
    """The others do not see it: see ``test_dealt_alike.py``."""
    schedule = made(name, "toy_pair")
    dealt = any(isinstance(n, Loop) and n.deal for n in distinct(schedule.call))
    assert not near(schedule) or not dealt


def test_what_the_next_group_reads_does_not_go_home() -> None:
    schedule = made("layers", approach=Apart())
    assert near(schedule) == {"h", "t"}
    assert at_home(schedule) == {"x", "w", "v", "y", "#f32:0"}
    plain = made("layers", approach=Nothing())
    assert near(plain) == set()
    assert timeline(schedule).seconds < 0.9 * timeline(plain).seconds


def test_calls_may_find_it_where_it_is_at_home() -> None:
    schedule = made("layers", direct(), Apart())
    assert near(schedule)
    assert at_home(schedule) == {"x", "w", "v", "y", "#f32:0"}
    calls = [n for n in distinct(schedule.call) if isinstance(n, Issue) and not n.is_move]
    assert any(o.place.base == "h" and o.place.memory == "sp" for n in calls for o in n.operands)


@pytest.mark.parametrize(("capacity", "there"), [(512, False), (3072, True), (1 << 14, True)])
def test_what_has_no_room_goes_home(capacity: int, there: bool) -> None:
    """The temporary takes 512 bytes, of which the groups would work in what is left."""
    assert bool(near(made("layers", toy(capacity)))) is there


def test_what_begins_where_no_access_may_goes_home() -> None:
    assert "z" not in near(made("rows"))
    assert "n" in near(made("rows"))
    assert "z" in near(made("rows", toy(align=4)))


def test_the_state_of_a_loop_stays_from_before_it_to_behind_it() -> None:
    schedule = made("state")
    assert "h" in near(schedule)
    assert not {"h", "a"} & at_home(schedule)


def test_what_is_bound_and_what_goes_out_are_at_home_as_ever() -> None:
    schedule = made("prepared")
    assert not {"v", "y"} & near(schedule)
    assert {"v", "y"} <= at_home(schedule)


def test_the_choice_says_what_is_at_home_near() -> None:
    (asked,) = (d for d in made("layers").trace.decisions if d.point == "promote")
    assert asked.context["buffers"] == ["h", "t"]
    assert asked.costs is not None
    assert asked.costs[1] < asked.costs[0]


def test_a_schedule_that_does_not_fill_the_slot_is_refused() -> None:
    schedule = made("layers")

    def without(node: Node) -> Node:
        if isinstance(node, Seq):
            return Seq(tuple(without(c) for c in node.children))
        if isinstance(node, Loop):
            return replace(node, body=without(node.body))
        fills = node.is_move and any(o.place.base == "h" and o.name == "D" for o in node.operands)
        return Seq() if fills else node

    assert not check_tree(schedule)
    assert check_tree(replace(schedule, call=without(schedule.call)))


def test_a_slot_that_reaches_into_what_groups_work_in_is_refused() -> None:
    schedule = made("layers")
    wide = tuple(replace(s, bytes=schedule.system.memories["sp"].capacity) if s.name == "h" else s
                 for s in schedule.workspace)  # fmt: skip
    assert check_tree(replace(schedule, workspace=wide))


@pytest.mark.parametrize("sizes", [(16, 8, 12), (13, 8, 9)])
@pytest.mark.parametrize("near", ["capacity: 16 KiB, row: 16 B, align: 16 B", "capacity: 16 KiB"],
                         ids=["rows", "bytes"])  # fmt: skip
def test_what_is_whole_rows_long_is_at_home_in_a_memory_with_rows(sizes: tuple[int, ...], near: str):
    done = layers(sizes, near)
    assert done.schedule.homes["h"].memory == "spad"


@pytest.mark.parametrize("sizes", [(13, 9, 17), (16, 6, 8)])
def test_it_is_at_home_outside_where_its_rows_would_leave_gaps(sizes: tuple[int, ...]):
    assert layers(sizes, "capacity: 16 KiB, row: 16 B, align: 16 B").schedule.homes["h"].memory == "dram"


def layers(sizes: tuple[int, ...], near: str) -> Any:
    """Two layers of M rows, N numbers of each between them."""
    mac = instruction("mac(M <= 4, N <= 4, K <= 4)", PRODUCT, "homes: {A: [spad], B: [spad], C: [acc]}")
    zero = instruction("zero(M <= 4, N <= 4)", ZERO, "homes: [acc]")
    clip = instruction("clip(M <= 4, N <= 4)", CLIP, "homes: [spad]")
    memories = {"spad": near, "acc": "cells: 6, cell: 64 B"}
    machine = small("rows", memories, ["dram <-> spad", "acc -> spad"], mac, zero, clip)
    kernel, numbers = parse_kernel(LAYERS), dict(zip("MNK", sizes, strict=True))
    done = compiled(kernel, numbers, machine, Apart(), check=True)
    judge(kernel, numbers, done)
    return done
