"""Instructions that leave out points of their boxes are mapped; where one is demanded, the scheduler says no."""

from __future__ import annotations

from pathlib import Path

import pytest

from isam.compiler.job import Refused
from isam.compiler.stages import new_job, run_stages
from isam.ir.text import parse_kernel
from isam.mapper import match
from isam.proof import prove
from isam.system.load import load_system

MACHINE = """isam: 1
system: partial
extends: toy
units:
  tr: {runs: [tri_exp], clock: 1 GHz}
instructions:
  tri_exp:
    body: |
      instruction tri_exp(N <= 4)
        in    A: f32[N, N]
        inout D: f32[N, N]
        forall i < N, j < N where j <= i
          D[i, j] = exp(A[i, j])
    homes: {A: [ra], D: [ra]}
    cost: {issue: 1 cycles}
"""
KERNEL = parse_kernel("""kernel k()
  in    A: f32[4, 4]
  inout D: f32[4, 4]
  forall i < 4, j < 4 where j <= i
    D[i, j] = exp(A[i, j])
""")


@pytest.fixture
def machine(tmp_path: Path):
    path = tmp_path / "partial.yaml"
    path.write_text(MACHINE, encoding="utf-8")
    return load_system(path)


def test_it_is_mapped_and_another_instruction_is_scheduled(machine) -> None:
    assert match(KERNEL, machine.instructions["tri_exp"])
    job = run_stages(new_job(KERNEL, machine, {}, None), "schedule")
    assert job.schedule is not None
    assert {m.instruction.name for m in job.schedule.cover.mappings} == {"v_exp_f32"}
    prove(job.schedule)


def test_where_it_is_demanded_the_reason_is_told(machine) -> None:
    with pytest.raises(Refused, match="'tri_exp' needs calls that leave out points of a box"):
        run_stages(new_job(KERNEL, machine, {}, None, require=("tri_exp",)), "schedule")
