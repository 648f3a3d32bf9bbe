"""Memories that no way leads home from: what is read there and wanted at home goes there from where it was made."""

from __future__ import annotations

from itertools import islice

import pytest

from isam.approach.choice import Approach
from isam.approach.shipped.greedy import Greedy, Locality
from isam.compiler.programs import Use, programs
from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, leaves
from isam.system.graph import System
from tests.machines.small import SAME_ROW, instruction, small
from tests.pipeline import compiled, judge

ADD = """
  in  A: f32[J]
  in  B: f32[J]
  out D: f32[J]
  forall j < J
    D[j] = A[j] + B[j]
"""
TWICE = """kernel twice(N)
  in  a: f32[N]
  in  b: f32[N]
  {role} x: f32[N]
  out y: f32[N]
  forall j < N
    x[j] = a[j] + b[j]
  forall j < N
    y[j] = b[j] + x[j]
"""


@pytest.fixture(scope="module")
def one_way() -> System:
    """Operands in one file of registers, results in another, and only from that a way home."""
    return small(
        "oneway",
        {"sp": "capacity: 32 KiB", "rf": "kind: managed, cells: 16, cell: 32 B",
         "acc": "kind: managed, cells: 8, cell: 32 B"},
        ["dram <-> sp", "sp -> rf", "acc -> sp"],
        instruction("add(J <= 8)", ADD, "homes: {A: [rf], B: [rf], D: [acc]}"),
        copy=instruction("copy(N)", SAME_ROW),
    )  # fmt: skip


@pytest.mark.parametrize("approach", [Approach, Greedy, Locality])
@pytest.mark.parametrize("role", ["out", "temp"])
@pytest.mark.parametrize("size", [4, 8, 21])
def test_a_result_that_is_read_again_goes_home(one_way: System, approach: type[Approach], role: str, size: int):
    kernel, sizes = parse_kernel(TWICE.format(role=role)), {"N": size}
    job = compiled(kernel, sizes, one_way, approach(), check=True)
    judge(kernel, sizes, job)


def test_what_nobody_wants_at_home_does_not_go_there(one_way: System):
    def sent(role: str) -> int:
        job = compiled(parse_kernel(TWICE.format(role=role)), {"N": 8}, one_way)
        assert job.schedule is not None
        issues = (n for n in leaves(job.schedule.call) if isinstance(n, Issue))
        return sum(n.is_move and n.operands[-1].place.memory == "dram" for n in issues)

    assert (sent("out"), sent("temp")) == (2, 1)


def test_no_random_program_is_refused(one_way: System):
    made = list(islice(programs(one_way, 0, Use()), 20))
    assert [o.verdict for o in made] == ["right"] * 20
