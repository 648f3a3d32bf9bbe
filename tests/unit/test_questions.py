"""What the compiler asks of an Approach is as the table of questions says: classes of options, keys of the context."""

from __future__ import annotations

import warnings
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from isam.approach.choice import IDLE, POINTS, Choice, label_of
from isam.approach.questions import QUESTIONS, TIMED
from isam.approach.shipped.greedy import Greedy
from isam.compiler import Refused
from isam.ir.text import parse_kernel
from isam.system.graph import Move
from isam.system.load import load_system
from tests.corpus import CASES
from tests.pipeline import compiled, simulated
from tests.systems.test_serpentine import CELL, NARROW
from tests.unit.scheduler import (
    test_agree,
    test_in_a_row,
    test_in_blocks,
    test_near_homes,
    test_pipelining,
    test_streaming,
)
from tests.unit.scheduler.test_boxes import USUAL
from tests.unit.scheduler.test_interchange import RUNNING

TABLE = {q.point: q for q in QUESTIONS}


def called(option: object) -> str:
    return f"{type(option).__module__}.{type(option).__qualname__}"


class Curious(Greedy):
    """Writes down what it is asked."""

    name = "curious"

    def __init__(self) -> None:
        self.asked: list[Choice] = []

    def decide(self, choice: Choice):
        self.asked.append(replace(choice, context=dict(choice.context)))
        return super().decide(choice)


class Trying(Curious):
    """Has three schedules made."""

    tries = 3

    def schedule(self, choice: Choice):
        return choice.options[-1]


class Running(Trying):
    """Has two of them run beside each other."""

    runs = 2


class First(Greedy):
    """Takes the first option of what is timed."""

    name = "first"

    def decide(self, choice: Choice):
        return choice.options[0] if any(q.left_to_time(choice) for q in TIMED) else super().decide(choice)


def cramped():
    """`toy` with two units for the vectors, another way into a register file, and little room."""
    toy = simulated("toy")
    files = {n: replace(toy.memories[n], cells=2, cell=32, capacity=64) for n in ("ra", "rb")}
    units = {**toy.units, "twin": replace(toy.units["vec"], name="twin")}
    moves = (*toy.moves, Move("dram", "ra", "copy", "dma"))
    sp = replace(toy.memories["sp"], capacity=96)
    return replace(toy, memories={**toy.memories, **files, "sp": sp}, units=units, moves=moves)


@pytest.fixture(scope="module")
def asked() -> list[Choice]:
    found: list[Choice] = []
    names = ("matmul", "softmax", "sepconv", "conv2d/stride=2", "leaky", "rnn", "gru")
    pairs = [(n, m) for n in names for m in MACHINES]
    for name, machine in pairs:
        curious = Curious()
        with suppress(Refused):
            compiled(CASES[name].load(), CASES[name].small[0], machine, curious)
        found += curious.asked
    curious = Curious()
    compiled(CASES["softmax"].load(), {"M": 64, "N": 128}, MACHINES[-1], curious)
    compiled(parse_kernel(SCALED), {"M": 4, "N": 8}, MACHINES[-1], curious)
    compiled(parse_kernel(CELL), {"T": 2, "B": 1, "H": 64}, load_system(NARROW), curious)
    compiled(parse_kernel(RUNNING.replace("{T}", "f32")), {"M": 16, "N": 4}, simulated("host-avx512"), curious)
    compiled(parse_kernel(USUAL), {"H": 3, "W": 4, "C": 2, "K": 16}, simulated("host-avx512"), curious)
    compiled(test_streaming.PRODUCT, test_streaming.STRIP, simulated("sapphire-rapids"), curious)
    compiled(test_pipelining.kernel(*test_pipelining.SMALL[0][:2]), test_pipelining.SMALL[0][2],
             simulated("sapphire-rapids"), curious)  # fmt: skip
    for kernel, sizes, machine in SECOND.values():
        compiled(kernel, sizes, machine, curious)
    trying = Trying()
    compiled(CASES["matmul"].load(), CASES["matmul"].small[0], MACHINES[0], trying)
    running = Running()
    compiled(CASES["matmul"].load(), CASES["matmul"].small[0], MACHINES[-1], running)
    return [*found, *curious.asked, *trying.asked, *running.asked]


SCALED = """kernel scaled(M, N)
  in    x: f32[M, N]
  const g: f32[N]
  out   y: f32[M, N]
  forall j < N
    s[j] = exp(g[j])
  forall i < M, j < N
    y[i, j] = x[i, j] * s[j]
"""
SECOND = {  # by point, what makes a second schedule worth making
    "copartition": (parse_kernel(test_near_homes.LAYERS), {"M": 8, "K": 16, "N": 16}, simulated("toy_pair")),
    "agree": (test_agree.LAYER, test_agree.SIZES, test_agree.machine()),
    "promote": (parse_kernel(test_in_a_row.SCALE), {"N": 48}, simulated("toy")),
    "cascade": (test_in_blocks.SOFTMAX, {"M": 64, "N": 64}, test_in_blocks.machine()),
}
MACHINES = [simulated("toy"), cramped(), load_system("host")]


def test_every_choice_is_as_the_table_says(asked):
    for choice in asked:
        q = TABLE[choice.point]
        assert {called(o) for o in choice.options} <= set(q.options), choice.point
        assert choice.context.keys() == q.context.keys(), choice.point
        assert (choice.costs is not None) == bool(q.costs), choice.point
        assert choice.costs is None or len(choice.costs) == len(choice.options)


def test_every_question_is_asked(asked):
    assert {c.point for c in asked} == TABLE.keys()


@pytest.mark.parametrize("q", TIMED, ids=lambda q: q.point)
def test_where_a_question_is_timed_both_schedules_are_made(q):
    kernel, sizes, machine = SECOND[q.point]
    job = compiled(kernel, sizes, machine, First())
    first, *others = job.candidates
    (second,) = (c for c in others if c.ahead == (*first.ahead, q.timed))
    for candidate, chosen in ((first, 0), (second, 1)):
        decisions = [d for d in candidate.decisions if q.left_to_time(d)]
        assert decisions
        assert {d.chosen for d in decisions} == {chosen}
        assert ({d.why for d in decisions} == {"to be timed beside the first"}) is bool(chosen)
    (asked,) = (d for d in job.trace.decisions if d.point == "variant")
    assert q.timed in asked.context["options"]


def test_options_print_themselves_for_people(asked):
    for choice in asked:
        for option in choice.options[:3]:
            assert "Affine(" not in label_of(option), choice.point
            assert "object at" not in label_of(option), choice.point


def test_points_are_those_of_the_table_or_idle():
    assert sorted([*TABLE, *IDLE]) == sorted(POINTS)
    assert len(TABLE) == len(QUESTIONS)


def test_who_overrides_what_is_never_asked_is_told():
    for point in IDLE:
        with pytest.warns(
            UserWarning, match=rf"^'{point}' of the Approach Mine is never asked: .*\[approach-idle\]$"
        ) as w:
            type("Mine", (Greedy,), {point: lambda self, choice: choice.options[-1]})
        assert [(x.filename, x.lineno) for x in w] == [(__file__, line_of("{point: lambda"))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        type("Mine", (Greedy,), {point: lambda self, choice: choice.options[0] for point in TABLE})


def line_of(text: str) -> int:
    lines = Path(__file__).read_text("utf-8").split("\n")
    return next(n for n, line in enumerate(lines, 1) if text in line)


def test_an_approach_that_overrides_tile_meets_plans_alone():
    class Staged(Greedy):
        name = "staged"

        def tile(self, choice: Choice):
            return max(choice.options, key=lambda p: len(p.stages))

    case = CASES["matmul"]
    assert compiled(case.load(), case.small[0], cramped(), Staged()).schedule
