"""Recurrent loops (REC-1 to REC-3): run-time trips, and boxes that stay in near memory from one step to the next."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isam.approach.choice import Choice
from isam.approach.shipped.greedy import Greedy
from isam.codegen.simulator import residues, simulate
from isam.codegen.simulator.fault import SimulationFault
from isam.codegen.simulator.streams import simulate_apart
from isam.cost.timeline import timeline
from isam.diagnostics import InternalError
from isam.ir import oracle
from isam.ir.kernel import Statement
from isam.ir.text import parse
from isam.proof import prove
from isam.proof.flat import check_flat
from isam.proof.races import check_races
from isam.proof.tree import check_tree
from isam.schedule.serial import from_json, to_json
from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq, children
from isam.system.graph import System
from isam.system.load import load_system
from tests.corpus import CASES
from tests.machines import CROWD
from tests.pipeline import compiled, function, judge

SCAN = parse("""kernel scan(T, N)
  in    x: f32[T, N]
  in    a: f32[T, N]
  inout h: f32[N]
  out   ys: f32[T, N]
  loop t < T
    forall j < N
      h[j] = a[t, j] * h[j] + x[t, j]
      ys[t, j] = h[j]
""")
SMALL = parse("""kernel small(T, B, D, H)
  in    x: f32[T, B, D]
  const w: f32[D, H]
  inout h: f32[B, H]
  loop t < T
    forall b < B, j < H
      f[b, j] = 0
    forall b < B, j < H, k < D
      f[b, j] += x[t, b, k] * w[k, j]
    forall b < B, j < H
      h[b, j] = 0.5 * h[b, j] + f[b, j]
""")
GRU = parse((Path(__file__).parents[2] / "benchmarks" / "gru" / "gru.isam").read_text())
CELLS = {n: (CASES[n].load(), {"B": 3, "X": 20, "H": 20}) for n in ("rnn", "lstm", "gru")}
KERNELS = {"scan": (SCAN, {"N": 20}), **CELLS}


class AsWritten(Greedy):
    """Nothing leaves the loop."""

    def variant(self, choice: Choice) -> Any:
        return choice.options[0]


class Streaming(AsWritten):
    """Nor does anything stay."""

    def pack(self, choice: Choice) -> Any:
        return choice.options[0]


def single(capacity: int) -> System:
    """The case study's machine with one cluster, whose scratchpad is that large."""
    s = load_system("casestudy")
    return replace(s, replicas={n: replace(r, count=1) for n, r in s.replicas.items()},
                   memories={**s.memories, "sp": replace(s.memories["sp"], capacity=capacity)})  # fmt: skip


@cache
def gru(machine: str, *sizes: int, streaming: bool = False) -> Schedule:
    approach = Streaming() if streaming else AsWritten()
    job = compiled(GRU, dict(zip("TBXH", sizes, strict=True)), load_system(machine), approach)
    assert job.schedule is not None
    return job.schedule


@pytest.mark.parametrize(("name", "machine"), [
    *((name, machine) for name in KERNELS for machine in ("toy", "host")),
    *((name, machine) for name in KERNELS if name != "lstm" for machine in ("casestudy", CROWD)),
], ids=lambda x: x.split("/")[-1])  # fmt: skip
def test_one_schedule_for_every_number_of_steps(name: str, machine: str) -> None:
    kernel, sizes = KERNELS[name]
    if name in ("lstm", "gru") and machine in ("toy", CROWD):  # blocks of four by four: of five a side it takes thrice
        sizes = {"B": 3, "X": 12, "H": 12}
    job = function(kernel, machine, **sizes).job
    for steps in (0, 1, 2, 3):
        judge(kernel, sizes, job, seed=steps, run_time={"T": steps})


@pytest.mark.parametrize("machine", ["host", "host-avx512"])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 9, 1), (3, 2, 1), (2, 2, 2), (2, 3, 9)], ids=str)
def test_sums_for_a_part_of_the_steps_of_small_units(machine: str, sizes: tuple[int, ...]) -> None:
    """With one unit vectors go along the steps of a part, which the counter of parts moves."""
    known = dict(zip("BDH", sizes, strict=True))
    job = function(SMALL, machine, **known).job
    for steps in (0, 1, 3, 17, 40, 64, 65):
        judge(SMALL, known, job, seed=steps, run_time={"T": steps})


def test_streams_apart_compute_the_same_for_no_step_and_for_two() -> None:
    sizes = {"B": 5, "X": 20, "H": 36}
    job = compiled(GRU, sizes, load_system("casestudy"), AsWritten(), check=True)
    assert job.schedule is not None
    assert near(job.schedule).keys() == {"w.g2", "u.g4", "b.g1"}
    for steps in (0, 2):
        kernel = GRU.with_sizes({**sizes, "T": steps})
        arrays = oracle.inputs(kernel, {}, steps)
        want = oracle.run_modular(kernel, arrays, {}, steps)
        for order in ({"seed": 1}, {"seed": 2}, {"eager": "ld"}, {"eager": "xb"}):
            got = simulate_apart(job.schedule, arrays, residues(steps), {"T": steps}, **order)
            for name, expected in want.items():
                np.testing.assert_array_equal(got[name], expected, err_msg=f"{steps} steps, {order}: {name}")
        assert not check_races(job.schedule, {"T": steps})
        assert not check_flat(job.schedule, {"T": steps})


# -- bytes per step ----------------------------------------------------------------------------------------------------
def near(schedule: Schedule) -> dict[str, int]:
    """Slots of near memories and their bytes."""
    return {w.name: w.bytes for w in schedule.workspace if w.memory != schedule.system.home}


def moved(node: Node, schedule: Schedule, times: int = 1) -> Counter[tuple[str, str, str]]:
    """Bytes per buffer that moves carry from one memory to another."""
    out: Counter[tuple[str, str, str]] = Counter()
    if isinstance(node, Issue):
        if node.is_move:
            source, target = node.operands
            size = {"bf16": 2, "f32": 4}[schedule.dtype(source.tile.buffer)] * int(np.prod(source.tile.shape))
            out[source.place.memory, target.place.memory, source.tile.buffer] = size * times
        return out
    for part in children(node):
        inside = isinstance(node, Loop) and part is not node.enter and part is not node.exit
        peeled = isinstance(node, Loop) and (part is node.first or part is node.last)
        n = 1
        if inside and not peeled:
            assert isinstance(node, Loop)
            assert node.trip is not None
            n = node.trip - (node.first is not None) - (node.last is not None)
        out += moved(part, schedule, times * n)
    return out


@cache
def step(capacity: int = 2560 << 10, streaming: bool = False) -> dict[tuple[str, str], dict[str, int]]:
    """Bytes of one more step per edge and buffer; what the report says of an edge is their sum."""
    system, found, edges = single(capacity), [], []
    for steps in (4, 5):
        job = compiled(GRU, {**SIZES, "T": steps}, system, Streaming() if streaming else AsWritten(), check=True)
        assert job.schedule is not None
        found.append(moved(job.schedule.call, job.schedule))
        edges.append({e: w.bytes for e, w in timeline(job.schedule).edges.items()})
    more = found[1] - found[0]
    out: dict[tuple[str, str], dict[str, int]] = {}
    for (source, target, buffer), n in more.items():
        out.setdefault((source, target), {})[buffer] = n
    between = {e: n - edges[0].get(e, 0) for e, n in edges[1].items()}
    assert {e: sum(b.values()) for e, b in out.items()} == {e: n for e, n in between.items() if n}
    return out


SIZES = {"B": 32, "X": 96, "H": 64}
STATE, GATES, WEIGHTS = 32 * 64 * 4, 3 * 32 * 64 * 4, {"w": 3 * 96 * 64 * 2, "u": 3 * 64 * 64 * 2}


def test_a_step_moves_its_inputs_its_outputs_and_what_is_spilled() -> None:
    bytes_ = step()
    into, out = bytes_["hbm", "sp"], bytes_["sp", "hbm"]
    inputs, outputs = {"x": 32 * 96 * 2}, {"ys": STATE}  # the state itself stays
    spilled = {"g": STATE // 2, "a": GATES}  # what flows from one nest to the next stays in registers and scratchpad
    assert out == outputs | spilled
    assert into == inputs | spilled


def test_weights_that_do_not_stay_come_again_in_every_step() -> None:
    stay, stream = step(), step(streaming=True)
    assert not stay["hbm", "sp"].keys() & {"w", "u", "b"}
    assert {b: stream["hbm", "sp"].get(b) for b in WEIGHTS} == WEIGHTS
    assert stay["sp", "hbm"] | {"h": STATE} == stream["sp", "hbm"]  # nor does the state


def test_as_many_stay_as_fit_and_the_others_stream() -> None:
    for capacity, streaming in ((96, set()), (64, {"u"}), (32, {"w"})):  # KiB
        bytes_ = step(capacity << 10)["hbm", "sp"]
        assert {b: bytes_[b] for b in streaming} == {b: WEIGHTS[b] for b in streaming}, capacity
        assert bytes_.keys() & WEIGHTS.keys() == streaming


@pytest.mark.parametrize("name", ["rnn", "lstm"])
def test_of_one_sum_for_both_products_the_input_part_leaves_the_loop(name: str) -> None:
    """Terms are added to a sum that another statement began: outside the loop the one, inside the other."""
    kernel, sizes = CELLS[name]
    sizes = {**sizes, "T": 4}

    class Ahead(Greedy):
        def variant(self, choice: Choice) -> Any:
            return next(o for o in choice.options if any(step.startswith("hoist") for step in o.ahead))

    job = compiled(kernel, sizes, load_system("casestudy"), Ahead(), check=True)
    judge(kernel, sizes, job)
    assert job.schedule is not None
    items = job.schedule.kernel.body
    assert any(s.reduces for s in items if isinstance(s, Statement))
    assert not check_races(job.schedule)


def test_what_a_step_writes_does_not_stay() -> None:
    written = parse("""kernel drift(T, M, N)
  inout w: f32[M, N]
  out   ys: f32[T, M]
  loop t < T
    forall i < M
      ys[t, i] = 0
    forall i < M, j < N
      ys[t, i] += w[i, j] * w[i, j]
    forall i < M, j < N
      w[i, j] = w[i, j] + 1
""")
    sizes = {"T": 3, "M": 40, "N": 70}
    job = compiled(written, sizes, load_system("casestudy"), check=True)
    assert job.schedule is not None
    assert not near(job.schedule)
    judge(written, sizes, job)


# -- what is refused ---------------------------------------------------------------------------------------------------
def edited(schedule: Schedule, edit: Any) -> Schedule:
    """The schedule with every loop and call of its call part as ``edit`` returns it."""

    def visit(node: Node) -> Node:
        if isinstance(node, Seq):
            return Seq(tuple(map(visit, node.children)))
        if isinstance(node, Loop):
            parts = {n: p and visit(p) for n, p in (("enter", node.enter), ("body", node.body), ("first", node.first),
                                                    ("last", node.last), ("exit", node.exit))}  # fmt: skip
            node = replace(node, **parts)
        return edit(node)

    return replace(schedule, call=visit(schedule.call))


def without_enter(n: Node) -> Node:
    return replace(n, enter=Seq()) if isinstance(n, Loop) and n.var == "t" else n


def filled_elsewhere(n: Node) -> Node:
    """What stays is brought to other instances than those that look for it."""
    if not (isinstance(n, Loop) and n.var == "t"):
        return n

    def next_instance(m: Node) -> Node:
        if isinstance(m, Loop) and m.deal is not None:
            return replace(m, deal=replace(m.deal, first=m.deal.first + 1))
        return m

    return replace(n, enter=Seq(tuple(map(next_instance, n.enter.children)) if isinstance(n.enter, Seq) else ()))


def swapped(n: Node) -> Node:
    """The second row of gates is brought where the first one is looked for."""
    if isinstance(n, Issue) and n.is_move and n.operands[1].place.base.startswith("u."):
        s, d = n.operands
        return replace(n, operands=(s, replace(d, place=replace(d.place, offset=d.place.offset + 64))))
    return n


@pytest.mark.parametrize("edit", [without_enter, filled_elsewhere, swapped])
def test_forged_residents_are_refused(edit: Any) -> None:
    schedule = gru("casestudy", 3, 5, 40, 70)
    assert prove(schedule)
    forged = edited(schedule, edit)
    assert check_tree(forged)
    assert check_flat(forged)
    kernel = GRU.with_sizes(dict(zip("TBXH", (3, 5, 40, 70), strict=True)))
    with pytest.raises(SimulationFault):
        simulate(forged, oracle.inputs(kernel, {}, 0), residues(0))


def test_slots_take_room_from_the_end_of_their_memory() -> None:
    schedule = gru("casestudy", 3, 5, 40, 70)
    room = schedule.system.memories["sp"].capacity - sum(near(schedule).values())

    def larger(by: int) -> Schedule:
        slots = tuple(replace(w, bytes=w.bytes + by) if w.name == "u.g4" else w for w in schedule.workspace)
        return replace(schedule, workspace=slots)

    assert not check_tree(larger(64))
    for by in (room + 64, (room - 64) // 64 * 64):  # more than there is; so much that what has no slot would lie in one
        assert {v.obligation for v in check_tree(larger(by))} <= {7, 9}
        assert check_tree(larger(by))
    with pytest.raises(InternalError):
        prove(larger((room - 64) // 64 * 64))


def test_a_schedule_with_slots_is_written_and_read() -> None:
    schedule = gru("casestudy", 3, 5, 40, 70)
    assert to_json(from_json(to_json(schedule))) == to_json(schedule)
    assert prove(from_json(to_json(schedule)))


def test_nothing_stays_where_the_approach_wants_nothing_to() -> None:
    assert near(gru("casestudy", 3, 5, 40, 70))
    assert not near(gru("casestudy", 3, 5, 40, 70, streaming=True))


LATER = """kernel later(T)
  permits reassociate, contract
  in    x: f32[T, T]
  inout z: f32[T]
  temp  w: f32[T]
  loop t < 5
    forall i < T
      w[i] = 0
    forall i < T, j < T where {first}
      w[i] += x[i, j] * z[j]
    forall i < T where {then}
      z[i] = w[i]
"""


@pytest.mark.parametrize("on", ["toy", "host-generic"])
@pytest.mark.parametrize("size", [1, 5, 20])
@pytest.mark.parametrize(
    ("first", "then"),
    [("1 <= t", "i <= t"), ("j <= t", "2 <= t"), ("1 <= t, t <= 3", "3 <= t"), ("i <= j, j <= i + 2, 2 <= t", "t < 4")],
)
def test_conditions_on_what_iteration_it_is(first: str, then: str, size: int, on: str) -> None:
    """They name no axis of the statement."""
    kernel, machine = parse(LATER.format(first=first, then=then)), replace(load_system(on), backend="simulator")
    judge(kernel, {"T": size}, compiled(kernel, {"T": size}, machine, check=True))
