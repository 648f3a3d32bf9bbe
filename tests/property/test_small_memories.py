"""Machines with little room: every kernel is scheduled, proved and right, or refused with what is lacking (SCH-6)."""

from __future__ import annotations

import random
from dataclasses import replace

from isam.compiler import Refused
from isam.system.graph import System
from isam.system.load import load_system
from tests.corpus import CASES
from tests.pipeline import compiled, judge

NAMES = ("matmul", "conv2d", "softmax", "sepconv", "rnn", "layer_norm", "matmul_i8", "transpose")
SEEDS = 24


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
