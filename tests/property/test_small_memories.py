"""Machines with little room: every kernel is scheduled, proved and right, or refused with what is lacking (SCH-6).

Where a memory is addressed by bytes, one place holds one tile after another: both judges accept what is right there,
and refuse the same planted faults.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from isam.compiler import Refused
from isam.compiler.stages import new_job, run_stages
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.proof import check_flat, check_points, check_tree
from isam.schedule.serial import used_system
from isam.schedule.tree import Schedule
from isam.system.graph import System
from isam.system.load import load_system
from tests.corpus import CASES
from tests.pipeline import compiled, judge
from tests.unit.proof.mutants import mutants

NAMES = ("matmul", "conv2d", "softmax", "sepconv", "rnn", "layer_norm", "matmul_i8", "transpose")
SEEDS = 16


def cramped(rng: random.Random) -> System:
    """`toy` with a scratchpad and register files of random size."""
    toy = load_system("toy")
    sp, cells, cell = rng.choice([4, 8, 16, 64, 80, 256]), rng.choice([1, 2, 3, 4, 16]), rng.choice([4, 8, 16, 32, 64])
    files = {n: replace(toy.memories[n], cells=cells, cell=cell, capacity=cells * cell) for n in ("ra", "rb")}
    near = replace(toy.memories["sp"], capacity=sp, align=rng.choice([4, min(16, sp)]))
    return replace(toy, memories={**toy.memories, **files, "sp": near}, backend="simulator")


def outcome(seed: int) -> bool:
    """Whether the kernel of this seed was scheduled; then it is right."""
    rng = random.Random(seed)
    machine, case = cramped(rng), CASES[rng.choice(NAMES)]
    try:
        job = compiled(case.load(), case.small[0], machine, check=True)
    except Refused:
        return False
    judge(case.load(), case.small[0], job, seed)
    return True


def test_right_or_refused():
    assert sum(map(outcome, range(SEEDS))) >= SEEDS // 2


# memories addressed by bytes ------------------------------------------------------------------------------------------
CENTER = """kernel center(M, N)
  in  x: f32[M, N]
  out y: f32[M, N]
  temp s: f32[M]
  forall i < M
    s[i] = 0
  forall i < M, j < N
    s[i] += x[i, j]
  forall i < M, j < N
    y[i, j] = x[i, j] - s[i]
"""
ROOMS = (64, 80, 96, 128, 256, 512, 1024)
# refused by the judge of trees when it forgot whole facts
AGAIN = (5, 6, 7, 14, 15, 92, 118, 141, 155, 157, 183, 219, 244)


def in_bytes(rng: random.Random) -> System:
    """`toy` with a scratchpad and operand memories of 64 B to 1 KiB, addressed by bytes."""
    toy = load_system("toy")
    small = {
        n: replace(toy.memories[n], cells=None, cell=None, capacity=rng.choice(ROOMS), align=rng.choice([4, 8, 16]))
        for n in ("ra", "rb", "sp")
    }
    return replace(toy, memories={**toy.memories, **small}, backend="simulator")


def scheduled(kernel: Kernel, sizes: dict[str, int], machine: System) -> Schedule:
    job = run_stages(new_job(kernel, machine, sizes, None, check=False), "schedule")
    assert job.schedule is not None
    return job.schedule


def judged(s: Schedule) -> tuple[list, list]:
    """What the judge of trees finds, and what the flat one does."""
    return check_points(s) or check_tree(s), check_flat(s, {y.name: 3 for y in s.cover.kernel.syms})


@pytest.mark.parametrize("seed", [*AGAIN, *range(1000, 1008)])
def test_both_judges_accept(seed):
    rng = random.Random(seed)
    machine = in_bytes(rng)
    case = CASES[rng.choice([n for n, c in CASES.items() if c.small])]
    try:
        s = scheduled(case.load(), rng.choice(case.small), machine)
    except Refused:
        return
    assert judged(s) == ([], [])


def test_neighbours_are_joined_and_one_of_them_overwritten():
    """A row's tiles touch in the scratchpad; the next row's take the place of some of them."""
    kernel = parse_kernel(CENTER)
    for room in (128, 192, 256, 320):
        toy = load_system("toy")
        small = {n: replace(toy.memories[n], cells=None, cell=None, capacity=room) for n in ("ra", "rb", "sp")}
        machine = replace(toy, memories={**toy.memories, **small})
        assert judged(scheduled(kernel, {"M": 3, "N": 40}, machine)) == ([], [])


@pytest.mark.parametrize("seed", [1, 2])
def test_both_judges_refuse(seed):
    rng = random.Random(seed)
    s = scheduled(parse_kernel(CENTER), {"M": 3, "N": 40}, in_bytes(rng))
    planted = list(mutants(replace(s, system=used_system(s))))
    verdicts = [tuple(map(bool, judged(m))) for _, m in rng.sample(planted, 60)]
    assert all(tree == flat for tree, flat in verdicts)
    assert sum(tree for tree, _ in verdicts) > 40


def test_what_makes_room_while_another_goes_home():
    """A copy that is sent home passes through a memory that another one, due next, lies in."""
    toy = load_system("toy")
    sizes = {"ra": (256, 16), "rb": (64, 8), "sp": (128, 8)}
    small = {n: replace(toy.memories[n], cells=None, cell=None, capacity=c, align=a) for n, (c, a) in sizes.items()}
    machine = replace(toy, memories={**toy.memories, **small}, backend="simulator")
    kernel, sizes_of_kernel = CASES["gru_step"].load(), {"B": 7, "X": 5, "H": 11}
    judge(kernel, sizes_of_kernel, compiled(kernel, sizes_of_kernel, machine, check=True))
