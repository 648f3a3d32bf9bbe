"""What must not matter, and what may only help: names of nodes, the unit of time, another unit, path or memory."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from isam.approach.choice import Choice
from isam.approach.shipped.strategies import Exhaustive
from isam.compiler.job import Job
from isam.compiler.stages import new_job, run_stages
from isam.cost.compared import seconds
from isam.cost.timeline import timeline
from isam.ir.instruction import Instruction
from isam.ir.kernel import Buffer
from isam.ir.table import Table
from isam.ir.text import parse_kernel
from isam.schedule.tree import Schedule
from isam.system.graph import Memory, Move, System
from isam.system.load import load_system
from tests.corpus import CASES
from tests.machines import CROWD, WEIGHTS
from tests.pipeline import compiled, of_corpus, simulated

TOY = simulated("toy")
PRODUCT = parse_kernel("""kernel product(M, N, K)
  in    x: i8[M, K]
  const w: i8[K, N]
  const b: i32[N]
  out   y: i32[M, N]
  forall i < M, j < N
    y[i, j] = b[j]
  forall i < M, j < N, k < K
    y[i, j] += i32(x[i, k]) * i32(w[k, j])
""")
SIZES = {"M": 3, "N": 4, "K": 4}


def scheduled(job: Job) -> Schedule:
    assert isinstance(job.schedule, Schedule)
    return job.schedule


def ticks(job: Job) -> int:
    return timeline(scheduled(job)).ticks


# the best of all ------------------------------------------------------------------------------------------------------
class All(Exhaustive):
    """Makes every schedule there is, or all until one takes no more seconds than are ``enough``, and remembers how many
    it made and whether that was one."""

    tries = 4000

    def __init__(self, tries: int = 4000, enough: float = 0.0) -> None:
        self.made, self.found, self.tries, self.enough = 0, False, tries, enough

    def schedule(self, choice: Choice) -> Any:
        self.made = choice.context["made"]
        self.found = choice.options[0].seconds <= self.enough  # the quickest so far
        return choice.options[0] if self.found else super().schedule(choice)


def best(system: System, budget: int | None = None, enough: Job | None = None) -> Job:
    """Of the whole space; with a ``budget`` of as many schedules, for spaces that have no end to speak of. One that is
    no slower than another that is ``enough`` need not be the best."""
    approach = All(budget or 4000, 0.0 if enough is None else seconds(scheduled(enough)))
    job = run_stages(new_job(CASES["matmul"].load(), system, SIZES, approach, check=False), "schedule")
    assert budget or approach.found or 20 < approach.made < approach.tries - 1, "not the whole space"
    return job


def another_unit() -> System:
    return replace(TOY, units={**TOY.units, "vec2": replace(TOY.units["vec"], name="vec2")})


def another_path() -> System:
    return replace(TOY, moves=(*TOY.moves, Move("dram", "ra", "copy", "dma")))


def another_slow_path() -> System:
    """Fewer hops, and slower by far: nobody has to take it."""
    copy = TOY.instructions["copy"]
    slow = replace(copy, name="slow", cost=replace(copy.cost, setup=5000.0))
    more = tuple(Move(a, b, "slow", "dma") for a, b in (("dram", "ra"), ("ra", "dram"), ("dram", "rb"), ("rb", "dram")))
    dma = replace(TOY.units["dma"], runs=(*TOY.units["dma"].runs, "slow"))
    grown = replace(TOY, instructions=Table.of(TOY.instructions).plus(slow), units={**TOY.units, "dma": dma})
    return replace(grown, moves=(*more, *TOY.moves))


def another_way_in() -> System:
    """A unit that moves, beside the first, along the same edges."""
    twin = replace(TOY.units["dma"], name="dma2")
    more = tuple(replace(m, issuer="dma2") for m in TOY.moves)
    return replace(TOY, units={**TOY.units, "dma2": twin}, moves=(*TOY.moves, *more))


def another_memory() -> System:
    near = Memory("near", "managed", 16384, align=16)
    edges = (("dram", "near"), ("near", "dram"), ("near", "ra"), ("ra", "near"))
    moves = tuple(Move(a, b, "copy", "dma") for a, b in edges)
    return replace(TOY, memories={**TOY.memories, "near": near}, moves=(*TOY.moves, *moves))


def more_room() -> System:
    files = {n: replace(TOY.memories[n], cells=32, capacity=2048) for n in ("ra", "rb")}
    return replace(TOY, memories={**TOY.memories, **files})


@pytest.mark.parametrize("grown", [another_unit, another_path, more_room])
def test_more_never_makes_the_best_schedule_slower(grown):
    assert ticks(best(grown(), enough=without())) <= ticks(without())


@pytest.mark.parametrize("grown", [another_memory, another_slow_path])
def test_another_way_makes_it_no_slower(grown):
    """Between every two memories there are several ways, so that not all schedules can be made."""
    assert ticks(best(grown(), 40)) <= ticks(without())


def test_a_second_unit_that_moves_makes_it_quicker():
    """Every move may be issued by either, so that not all schedules can be made."""
    assert ticks(best(another_way_in(), 40)) < ticks(without())


@cache
def without() -> Job:
    return best(TOY)


# the unit of time -----------------------------------------------------------------------------------------------------
def twice(system: System) -> System:
    """Every rate doubled: clocks, what links and channels carry; half a hop. Edges carry so many bytes per cycle."""
    meshes = {n: replace(m, bandwidth=2 * m.bandwidth, hop=m.hop / 2) for n, m in system.meshes.items()}
    return replace(system, units={n: replace(u, clock=2 * u.clock) for n, u in system.units.items()}, meshes=meshes,
                   links={n: replace(k, bandwidth=2 * k.bandwidth) for n, k in system.links.items()})  # fmt: skip


@pytest.mark.parametrize(
    ("on", "name"),
    [("toy", "matmul"), ("toy", "softmax"), ("dual", "matmul_i8"), ("gemmini", "matmul_i8"), (CROWD, "matmul"),
     (CROWD, "softmax"), ("toy_grid", "matmul")],
)  # fmt: skip
def test_twice_the_rates_half_the_time(on: str, name: str):
    case = CASES[name]
    one, two = of_corpus(name, on), compiled(case.load(), case.small[0], twice(simulated(on)))
    assert [d.label for d in one.trace.decisions] == [d.label for d in two.trace.decisions]
    assert ticks(one) == 2 * ticks(two)


# the order of operands ------------------------------------------------------------------------------------------------
def reordered(system: System, order: Callable[[list[Buffer]], list[Buffer]]) -> System:
    """Every instruction declares its operands in another order."""

    def other(i: Instruction) -> Instruction:
        return replace(i, body=replace(i.body, buffers=tuple(order(list(i.body.buffers)))))

    return replace(system, instructions=Table({n: other(i) for n, i in system.instructions.items()}))


@pytest.mark.parametrize(
    ("on", "name"), [("toy_grid", "rnn"), ("casestudy", "matmul_i8"), ("gemmini", "matmul_i8"), (WEIGHTS, "product")]
)
def test_in_which_order_operands_are_declared_does_not_matter(on: str, name: str):
    system = simulated(on)
    if name == "product":
        kernel, sizes = PRODUCT, {"M": 40, "N": 24, "K": 40}
    else:
        kernel, sizes = CASES[name].load(), CASES[name].small[0]
    orders = (lambda b: b, lambda b: b[::-1], lambda b: random.Random(1).sample(b, len(b)))
    assert len({ticks(compiled(kernel, sizes, reordered(system, o))) for o in orders}) == 1


def test_boxes_wait_where_any_operand_passes():
    """Weights pass the memory that activations are read from: there blocks of both are brought ahead."""
    job = compiled(PRODUCT, {"M": 40, "N": 24, "K": 40}, simulated(WEIGHTS))
    assert any(d.point == "tile" and "stage" in d.label for d in job.trace.decisions)


# names ----------------------------------------------------------------------------------------------------------------
NAMES = {"dram": "zulu", "sp": "alpha", "ra": "tango", "rb": "bravo", "dma": "yankee", "vec": "able", "toy": "game"}


def renamed(text: str) -> str:
    return re.sub(r"\b(" + "|".join(NAMES) + r")\b", lambda m: NAMES[m[0]], text)


@pytest.mark.parametrize("name", ["matmul", "softmax", "conv2d/stride=2", "rnn"])
def test_names_of_nodes_do_not_matter(tmp_path: Path, name: str):
    """Names that sort the other way round: the same schedule, node for node, in the same time."""
    source = Path(load_system("toy").source).read_text(encoding="utf-8")
    path = tmp_path / "game.yaml"
    path.write_text(renamed(source), encoding="utf-8")
    case = CASES[name]
    one, two = of_corpus(name), compiled(case.load(), case.small[0], simulated(str(path)))
    assert [renamed(d.label) for d in one.trace.decisions] == [d.label for d in two.trace.decisions]
    assert renamed(str(one.schedule)).split() == str(two.schedule).split()
    assert ticks(one) == ticks(two)
