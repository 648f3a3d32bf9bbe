"""How many calls of each nest a block without a sum has: as many as hide what they wait for, the loop around aside."""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod

import pytest

from isam.codegen.llvm import generate
from isam.compiler.stages import new_job, run_stages
from isam.ir.text import parse_kernel
from isam.system.load import load_system
from tests.pipeline import compiled, simulated
from tests.unit.codegen.test_llvm_narrow import ZEN4

TEXT = """kernel elements(M, N)
  in  x: f32[M, N]
  out y: f32[M, N]
  forall i < M, j < N
    y[i, j] = {}
"""
GELU = "x[i, j] * (1 + erf(x[i, j] * 0.7))"


def block(value: str, on: str = "host-avx512") -> int:
    made = compiled(parse_kernel(TEXT.format(value)), {"M": 64, "N": 1024}, simulated(on))
    (plan,) = (d for d in made.trace.decisions if d.point == "tile")
    return prod(map(int, re.findall(r"(\d+) \w+", plan.label.partition("block of ")[2])))


@pytest.mark.parametrize(("value", "calls"), [
    ("x[i, j] + 1", 8),  # the loop around counts
    ("exp(x[i, j])", 8),  # 4 cycles, 40 until it is there
    ("sqrt(x[i, j])", 8),  # 6 cycles: short
    ("erf(x[i, j])", 4),  # 8 cycles, 40 until it is there: five would do, of which 64 vectors are no multiple
    (GELU, 6),  # and what comes before and behind
])  # fmt: skip
def test_blocks_have_as_many_calls_as_hide_their_latency(value: str, calls: int) -> None:
    assert block(value) == calls


@pytest.mark.parametrize("columns", [1024, 1000])
def test_a_function_and_what_is_around_it_spill_nothing(columns: int) -> None:
    """As eight calls of each do."""
    there = replace(load_system("host-zen4"), target=ZEN4)  # code for a CPU that need not be this one
    job = run_stages(new_job(parse_kernel(TEXT.format(GELU)), there, {"M": 64, "N": columns}, None), "schedule")
    assert job.schedule is not None
    code = generate(job.schedule, assembly=True).assembly
    assert re.search(r"zmm\d", code)
    assert not re.search(r"zmm\d+.*rsp|rsp.*zmm\d+", code)
