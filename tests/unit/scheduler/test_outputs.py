"""An instruction with two outputs: each has a place of its own."""

from __future__ import annotations

from isam.ir.text import parse
from isam.schedule.tree import Issue, distinct
from tests.machines.small import SAME_ROW, instruction, small
from tests.pipeline import compiled, judge

MINMAX = """
  in  X: f32[J]
  in  Z: f32[J]
  out L: f32[J]
  out H: f32[J]
  forall j < J
    L[j] = min(X[j], Z[j])
  forall j < J
    H[j] = max(X[j], Z[j])
"""
KERNEL = """
kernel sorter(N)
  in  a: f32[N]
  in  b: f32[N]
  out lo: f32[N]
  out hi: f32[N]
  forall i < N
    lo[i] = min(a[i], b[i])
  forall i < N
    hi[i] = max(b[i], a[i])
"""


def test_two_outputs_of_one_call_do_not_share_room():
    minmax = instruction("minmax(J <= 16)", MINMAX, "homes: [sp]")
    machine = small("sorts", {"sp": "capacity: 1 KiB, align: 16 B"}, ["dram <-> sp"], minmax,
                    copy=instruction("copy(N)", SAME_ROW))  # fmt: skip
    job = compiled(parse(KERNEL), {"N": 100}, machine, check=True)
    judge(parse(KERNEL), {"N": 100}, job)
    for call in distinct(job.schedule.call):
        if isinstance(call, Issue) and call.instruction == "minmax":
            places = [o.place.offset for o in call.operands]
            assert len(set(places)) == 4
