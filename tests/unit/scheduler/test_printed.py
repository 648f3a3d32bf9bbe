"""What the scheduler works on can be printed wherever one stops."""

from __future__ import annotations

from isam.compiler.stages import new_job, run_stages
from isam.ir.text import parse_kernel
from isam.scheduler.nests import nests_of
from isam.scheduler.plan import Group, Plan
from tests.pipeline import simulated

STEPS = """kernel steps(T, N, K)
  const w: f32[K, N]
  inout h: f32[T, N]
  forall t < T, j < N
    h[t, j] = 0
  forall t < T, j < N, k < K
    h[t, j] += w[k, j] * 2
"""


def test_nests_groups_plans_and_decisions_in_a_line_each() -> None:
    job = run_stages(
        new_job(parse_kernel(STEPS), simulated("toy"), {"T": 3, "N": 40, "K": 5}, None, check=False), "cover"
    )
    assert job.cover is not None
    nests = nests_of(job.cover, job.system)
    lines = str(Group(nests)).splitlines()
    assert lines == [str(n) for n in nests]
    assert lines[0] == "0 v_copy_s_f32 A=#f32:0 D=h[t, j]; t < 3, j < 40/16"
    assert "w[k, j]" in lines[1]
    assert "sum k < 5" in lines[-1]
    plan = Plan(Group(nests), (("t", 1), ("j", 16)), ())
    assert str(plan) == plan.label()
    assert str(job.trace).splitlines()[0].endswith(str(job.trace.decisions[0]))
