"""Machines with little room: every kernel is scheduled, proved and right, or refused with what is lacking (SCH-6)."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

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


@pytest.mark.parametrize("seed", range(SEEDS))
def test_right_or_refused(seed):
    rng = random.Random(seed)
    machine = cramped(rng)
    case = CASES[rng.choice(NAMES)]
    kernel, sizes = case.load(), case.small[0]
    try:
        job = compiled(kernel, sizes, machine, check=True)
    except Refused as no:
        assert "no schedule" in str(no)
    else:
        judge(kernel, sizes, job, seed)


def test_most_of_them_are_scheduled():
    done = 0
    for seed in range(SEEDS):
        rng = random.Random(seed)
        machine = cramped(rng)
        case = CASES[rng.choice(NAMES)]
        try:
            compiled(case.load(), case.small[0], machine)
            done += 1
        except Refused:
            pass
    assert done >= SEEDS // 2
