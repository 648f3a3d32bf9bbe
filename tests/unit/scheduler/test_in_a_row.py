"""What groups of nests in a row hand on to each other in near memory outside of recurrent loops (SCH-10)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from isam.approach.choice import NOTHING, Choice
from isam.approach.shipped.greedy import Greedy
from isam.ir.text import parse_kernel
from isam.proof.tree import check_tree
from isam.schedule.tree import Issue, Loop, Seq, leaves
from isam.system.graph import System
from tests.pipeline import compiled, judge, simulated

SCALE = """kernel scale(N)
  in  x: f32[N]
  out y: f32[N]
  s = 0
  forall i < N
    s += x[i] * x[i]
  r = 1 / s
  forall i < N
    y[i] = x[i] * r
"""
# the sum is an output as well
TOTAL = """kernel total(N)
  in  x: f32[N]
  out s: f32
  out y: f32[N]
  s = 0
  forall i < N
    s += x[i]
  forall i < N
    y[i] = x[i] * s
"""
# what the first group leaves and the third one reads, the second one overwrites
OVER = """kernel over(N)
  in  x: f32[N]
  out y: f32[N]
  out z: f32
  s = 0
  forall i < N
    s += x[i]
  z = s * 3
  s = z * 2
  forall i < N
    y[i] = x[i] * s
"""
# read before, in and after a loop
AROUND = """kernel around(N, T)
  in    x: f32[T, N]
  inout a: f32
  out   y: f32[T]
  out   z: f32
  s = a * 2
  r = s + a
  loop t < T
    loop u < N
      a += x[t, u] * r
    b = a * s
    y[t] = b * a
  q = a * s
  z = q + r
"""
# of what a step leaves the next one reads what nothing between them brings home
ACROSS = """kernel across(T, N)
  in    x: f32[T, N]
  out   y: f32[T]
  p = 1
  loop t < T
    b = p * 2
    p = b + 3
    a = 0
    loop u < N
      a += x[t, u] * p
    y[t] = a
"""
# weights prepared when constants are bound
BOUND = """kernel bound(N)
  const w: f32[N]
  in    x: f32[N]
  out   y: f32[N]
  forall i < N
    v[i] = w[i] * w[i]
  s = 0
  forall i < N
    s += x[i] * v[i]
  r = 1 / s
  forall i < N
    y[i] = v[i] * r
"""
LAYERS = """kernel layers(M, K)
  in  a: bf16[M, K]
  in  b: bf16[K, K]
  in  c: bf16[K, K]
  out y: f32[M, K]
  permits reassociate, contract
  forall i < M, j < K
    t[i, j] = 0
  forall i < M, j < K, k < K
    t[i, j] += f32(a[i, k]) * f32(b[k, j])
  forall i < M, j < K
    h[i, j] = bf16(max(t[i, j], 0))
  forall i < M, j < K
    y[i, j] = 0
  forall i < M, j < K, k < K
    y[i, j] += f32(h[i, k]) * f32(c[k, j])
"""
ALL = {"scale": (SCALE, {"N": 48}), "total": (TOTAL, {"N": 40}), "over": (OVER, {"N": 48}),
       "around": (AROUND, {"N": 5, "T": 3}), "across": (ACROSS, {"N": 3, "T": 4}), "bound": (BOUND, {"N": 32}),
       "layers": (LAYERS, {"M": 32, "K": 32})}  # fmt: skip


class Nothing(Greedy):
    """Hands on nothing."""

    def carry(self, choice: Choice) -> object:
        return NOTHING

    promote = carry


class InARow(Greedy):
    """Hands on what a group leaves; nothing is at home near."""

    def promote(self, choice: Choice) -> object:
        return NOTHING


def made(name: str, on: str | System = "toy", approach: Greedy | None = None, check: bool = False) -> Any:
    text, sizes = ALL[name]
    return compiled(parse_kernel(text), sizes, simulated(on), approach or InARow(), check)


def at_home(schedule: Any, buffer: str) -> list[Issue]:
    """The moves of a buffer from home, or to it, as they stand in the tree."""
    calls = (n for n in leaves(schedule.call) if isinstance(n, Issue) and n.is_move)
    return [n for n in calls
            if any(o.tile.buffer == buffer and o.place.memory == schedule.system.home for o in n.operands)]  # fmt: skip


def crowded(cells: int) -> System:
    """The toy with so many registers on either side."""
    toy = simulated("toy")
    few = {m: replace(toy.memories[m], cells=cells, capacity=64 * cells) for m in ("ra", "rb")}
    return replace(toy, memories={**toy.memories, **few})


@pytest.mark.parametrize("on", ["toy", "casestudy", "host-avx512"])
@pytest.mark.parametrize("name", ALL)
def test_every_machine_computes_what_is_written(name: str, on: str) -> None:
    text, sizes = ALL[name]
    if on == "toy" and name == "layers":
        text = text.replace("bf16", "f32")
    job = compiled(parse_kernel(text), sizes, simulated(on), check=True)
    judge(parse_kernel(text), sizes, job, 1)


def test_what_the_next_group_reads_stays_and_does_not_go_home() -> None:
    schedule = made("scale", check=True).schedule
    assert not at_home(schedule, "s")
    assert not at_home(schedule, "r")
    assert not {"s", "r"} & {*schedule.homes, *(w.name for w in schedule.workspace)}


def test_a_product_and_its_activation() -> None:
    assert not at_home(made("layers", "casestudy", check=True).schedule, "t")


def test_an_output_goes_home_once_and_is_not_brought_back() -> None:
    (move,) = at_home(made("total").schedule, "s")
    assert next(o for o in move.operands if o.place.memory == "dram").name == "D"


def test_what_is_overwritten_between_is_not_what_is_read_afterwards() -> None:
    job = made("over", check=True)
    for seed in range(3):
        judge(parse_kernel(OVER), ALL["over"][1], job, seed)


@pytest.mark.parametrize("cells", [2, 3, 6])
def test_what_has_no_room_goes_home(cells: int) -> None:
    """What the last group reads stays as long as the calls need no room of it."""
    machine = crowded(cells)
    for name in ("scale", "total", "over", "around"):
        text, sizes = ALL[name]
        judge(parse_kernel(text), sizes, made(name, machine, check=True), 1)
    assert bool(at_home(made("scale", machine).schedule, "r")) is (cells == 2)


def test_a_loop_ends_the_row() -> None:
    """What is read in it and behind it lies at home; within the steps of a loop that has another one, too, groups in a
    row hand on."""
    schedule = made("around", check=True).schedule
    assert at_home(schedule, "s")
    assert at_home(schedule, "r")
    assert not at_home(schedule, "q")
    loop = next(n for n in leaves_and_loops(schedule.call) if n.axis == "t")
    assert not at_home(replace(schedule, call=loop.body), "b")


def leaves_and_loops(node: Any) -> list[Loop]:
    if isinstance(node, Seq):
        return [n for c in node.children for n in leaves_and_loops(c)]
    return [node] if isinstance(node, Loop) else []


def test_what_the_next_step_reads_goes_home() -> None:
    """Its groups stand in a row with another loop behind, so that it is the state of no loop."""
    job = made("across", check=True)
    assert at_home(job.schedule, "p")
    for seed in range(3):
        judge(parse_kernel(ACROSS), ALL["across"][1], job, seed)


def test_nothing_is_handed_from_bind_time_to_a_call() -> None:
    job = made("bound", check=True)
    assert not check_tree(job.schedule)
    assert at_home(job.schedule, "v")
    assert not at_home(job.schedule, "s")


def test_the_approach_may_want_otherwise() -> None:
    plain = made("scale", approach=Nothing(), check=True)
    assert at_home(plain.schedule, "s")
    asked = [d for d in plain.schedule.trace.decisions if d.point == "carry"]
    assert {d.context["loop"] for d in asked} == {""}
    judge(parse_kernel(SCALE), ALL["scale"][1], plain, 1)


def test_a_schedule_that_forgets_what_is_handed_on_is_refused() -> None:
    schedule = made("scale").schedule
    forgot = [n for n in leaves(schedule.call) if not (isinstance(n, Issue) and n.instruction == "s_div_f32")]
    assert not check_tree(schedule)
    assert check_tree(replace(schedule, call=Seq(tuple(forgot))))
