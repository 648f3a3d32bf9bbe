"""Ways between memories when moves are limited to some types of elements (SCH-4): plans and the dry run take those that
the operand's own type has, whatever the Approach answers."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from isam.approach.choice import Choice, Trace
from isam.approach.shipped.greedy import Greedy
from isam.compiler import Refused
from isam.compiler.job import Job
from isam.ir.dtype import ANY
from isam.ir.instruction import Instruction
from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, distinct
from isam.scheduler.move import moves_of, paths
from isam.scheduler.nests import nests_of
from isam.scheduler.plans.estimate import Machine
from isam.scheduler.routes import Routes
from isam.system.graph import Memory, Move, System
from isam.system.load import load_system
from tests.pipeline import compiled, judge
from tests.random_kernels import random_kernel
from tests.random_machines import machine

TOY = load_system("toy")
PRODUCT = parse_kernel("""kernel mm(M, N, K)
  in A: f32[M, K]
  in B: f32[K, N]
  out C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
""")


def limited(copy: Instruction, dtype: str, name: str) -> Instruction:
    """A move that carries elements of one type alone."""
    buffers = tuple(replace(b, dtype=dtype) if b.dtype == ANY else b for b in copy.body.buffers)
    return replace(copy, name=name, body=replace(copy.body, name=name, buffers=buffers))


def with_moves(system: System, moves: list[Move], *more: Instruction, **memories: Memory) -> System:
    """The machine with further moves, instructions of the unit ``dma`` and memories."""
    runs = (*system.units["dma"].runs, *(i.name for i in more))
    return replace(system, moves=(*system.moves, *moves), memories={**system.memories, **memories},
                   instructions={**system.instructions, **{i.name: i for i in more}},
                   units={**system.units, "dma": replace(system.units["dma"], runs=runs)})  # fmt: skip


def beside(dtype: str) -> System:
    """`toy` with a fast memory beside the scratchpad, which elements of one type reach."""
    copy = TOY.instructions["copy"]
    quick = limited(replace(copy, cost=replace(copy.cost, setup=1.0, bandwidth=256.0)), dtype, "quick")
    edges = [("dram", "fast"), ("fast", "ra"), ("fast", "rb")]
    moves = [Move(*e, "quick", "dma") for a, b in edges for e in ((a, b), (b, a))]
    return with_moves(TOY, moves, quick, fast=replace(TOY.memories["sp"], name="fast"))


def product(system: System, sizes: tuple[int, ...] = (64, 48, 96)) -> Job:
    return compiled(PRODUCT, dict(zip("MNK", sizes, strict=True)), replace(system, backend="simulator"))


def test_a_way_is_one_that_moves_of_the_type_lead_along():
    system = beside("i8")
    routes = Routes(system, Trace(Greedy()))
    assert routes.of("dram", "ra", "i8") == ("dram", "fast", "ra")
    assert routes.of("dram", "ra", "f32") == ("dram", "sp", "ra")
    assert routes.of("dram", "fast", "f32") is None
    assert [p.memories for p in paths(system, "dram", "ra", "f32")] == [("dram", "sp", "ra")]
    assert [m.by for m in moves_of(system, "dram", "fast", "i8")] == ["quick"]
    assert moves_of(system, "dram", "fast", "f32") == []


def test_what_a_move_takes_of_one_type_says_nothing_of_another():
    """On one edge a slow move of anything and a quick one of bytes."""
    copy = TOY.instructions["copy"]
    quick = limited(replace(copy, cost=replace(copy.cost, setup=1.0, bandwidth=256.0)), "i8", "quick")
    system = with_moves(TOY, [Move("dram", "sp", "quick", "dma"), Move("sp", "dram", "quick", "dma")], quick)
    job = product(system)
    assert job.cover is not None
    routes = Routes(system, Trace(Greedy()))
    model = Machine(nests_of(job.cover, system)[0], system, routes, system.memories["sp"])
    (slow,), (fast,) = (model.way_home("sp", t) for t in ("f32", "i8"))
    assert slow.seconds(1, 1024, 1) > 10 * fast.seconds(1, 1024, 1)
    assert str(product(system).schedule) == str(product(TOY).schedule)


@pytest.mark.parametrize("sizes", [(64, 48, 96), (5, 7, 9)])
def test_nothing_is_staged_where_its_type_does_not_get(sizes: tuple[int, ...]):
    assert str(product(beside("i8"), sizes).schedule) == str(product(TOY, sizes).schedule)
    assert "fast" in str(product(beside("f32"), sizes).schedule)


class Past(Greedy):
    """Takes no way over one of the memories."""

    def __init__(self, memory: str):
        self.memory = memory

    def route(self, choice: Choice) -> Any:
        return next((p for p in choice.options if self.memory not in p.memories), choice.options[0])


@pytest.mark.parametrize(("past", "over"), [("fast", "sp"), ("sp", "fast")])
def test_plans_bring_boxes_along_the_way_that_the_approach_takes(past: str, over: str) -> None:
    system = replace(beside("f32"), backend="simulator")
    sizes = dict(zip("MNK", (64, 48, 96), strict=True))
    job = compiled(PRODUCT, sizes, system, Past(past), check=True)
    assert job.schedule is not None
    touched = {o.place.memory for n in distinct(job.schedule.call) if isinstance(n, Issue) for o in n.operands}
    assert over in touched
    assert past not in touched
    asked = [(d.context["from"], d.context["to"], d.context["dtype"]) for d in job.trace.decisions
             if d.point == "route"]  # fmt: skip
    assert len(asked) == len(set(asked))
    judge(PRODUCT, sizes, job)


class Wayward(Greedy):
    """Takes ways by the throw of a die."""

    def __init__(self, seed: int):
        self.random = random.Random(f"ways {seed}")

    def route(self, choice: Choice) -> Any:
        return self.random.choice(choice.options)


TYPES = ("f32", "f32", "i32", "i8", ANY, ANY, ANY, ANY)


def drawn(seed: int) -> System:
    """A random machine with a second memory beside the ones it has, moves limited to some types, several on some
    edges, at costs of their own."""
    r, base = random.Random(f"limited {seed}"), machine(seed)
    copy, fast = base.instructions["copy"], replace(TOY.memories["sp"], name="fast")
    costs = [replace(copy.cost, setup=s, bandwidth=b) for s, b in ((1.0, 256.0), (10.0, 16.0), (100.0, 1.0))]
    kinds = {t: limited(replace(copy, cost=r.choice(costs)), t, f"copy_{t}") for t in TYPES}
    edges = list(dict.fromkeys((m.source, m.target) for m in base.moves))
    edges += [e for f in ("ra", "rb") for a, b in (("dram", "fast"), ("fast", f)) for e in ((a, b), (b, a))]
    dma = next(u for u in base.units if u.startswith("dma"))
    several = (e for e in dict.fromkeys(edges) for _ in range(r.randint(1, 3)))
    moves = [Move(*e, f"copy_{r.choice(TYPES)}", dma) for e in several]
    runs = (*base.units[dma].runs, *(k.name for k in kinds.values()))
    replicas = {n: replace(g, memories=(*g.memories, "fast")) for n, g in base.replicas.items()}
    return replace(base, moves=tuple(dict.fromkeys(moves)), memories={**base.memories, "fast": fast}, links={},
                   instructions={**base.instructions, **{k.name: k for k in kinds.values()}}, replicas=replicas,
                   units={**base.units, dma: replace(base.units[dma], runs=runs)})  # fmt: skip


@cache
def outcome(seed: int) -> str:
    kernel, sizes = random_kernel(seed)
    try:
        job = compiled(kernel, sizes, drawn(seed), Wayward(seed), check=True)
    except Refused as no:
        return no.diagnostics[0].code if no.diagnostics[0].message else "refused without a word"
    judge(kernel, sizes, job, seed)
    return "agree"


STRANGE = {
    0: "a copy that gave way to a tile on its way to where a loop wants it",
    7: "a copy of a tile in a memory through which the same tile passes",
    55: "a copy from which the way leads over home",
    72: "a value that gave way while what lies in the registers at the end of a block went home",
    146: "room that was promised to a tile on its way, given to what made room for it",
}


@pytest.mark.parametrize("seed", STRANGE)
def test_strange_ways_are_right(seed: int):
    assert outcome(seed) == "agree"


@pytest.mark.parametrize("ways", [0, 30, 118])
def test_what_is_written_over_is_not_lost_where_no_room_is_found(ways: int):
    """The only fresh copy of a result, given up for the next one, for which there was no room at first: what is tried
    again then reads it."""
    kernel, sizes = random_kernel(7)
    judge(kernel, sizes, compiled(kernel, sizes, drawn(7), Wayward(ways), check=True), 7)


@pytest.mark.parametrize("block", range(4))
def test_with_moves_of_some_types_schedules_are_right_or_explained(block: int):
    found = Counter(outcome(seed) for seed in range(block, 32, 4))
    assert found.keys() <= {"agree", "infeasible", "uncovered"}
    assert found["agree"] > 2
