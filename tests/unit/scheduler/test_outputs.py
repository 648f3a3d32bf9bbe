"""An instruction with two outputs: each has a place of its own."""

from __future__ import annotations

from isam.ir.text import parse
from isam.schedule.tree import Issue, distinct
from isam.system.load import load_system
from tests.pipeline import compiled, judge

MACHINE = """
isam: 1
system: sorts
memories:
  dram: {kind: managed, capacity: 1 MiB, home: true}
  sp:   {kind: managed, capacity: 1 KiB, align: 16 B}
units:
  pe:  {runs: [minmax], clock: 1 GHz}
  dma: {runs: [copy], clock: 1 GHz}
moves:
  - {from: dram, to: sp, by: copy, issuer: dma, both_ways: true}
instructions:
  minmax:
    body: |
      instruction minmax(J <= 16)
        in  X: f32[J]
        in  Z: f32[J]
        out L: f32[J]
        out H: f32[J]
        forall j < J
          L[j] = min(X[j], Z[j])
        forall j < J
          H[j] = max(X[j], Z[j])
    homes: [sp]
  copy:
    body: |
      instruction copy(N)
        in  S: any[N]
        out D: any[N]
        forall i < N
          D[i] = S[i]
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


def test_two_outputs_of_one_call_do_not_share_room(tmp_path):
    path = tmp_path / "sorts.yaml"
    path.write_text(MACHINE)
    job = compiled(parse(KERNEL), {"N": 100}, load_system(str(path)), check=True)
    judge(parse(KERNEL), {"N": 100}, job)
    for call in distinct(job.schedule.call):
        if isinstance(call, Issue) and call.instruction == "minmax":
            places = [o.place.offset for o in call.operands]
            assert len(set(places)) == 4
