"""Operands that may be in several registers: in those to which moves bring what has as many dimensions."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, distinct
from isam.system.load import parse_system
from tests.pipeline import compiled, judge

MACHINE = """isam: 1
system: rows
memories:
  dram: {kind: managed, capacity: 1 GiB, home: true}
  v: {kind: counted, cells: 8, cell: 64 B, lanes: 16}
  s: {kind: counted, cells: 8, cell: 4 B, lanes: 1}
units:
  core: {runs: [scale, vld, vst, sld], clock: 1 GHz}
moves:
  - {from: dram, to: v, by: vld, issuer: core}
  - {from: v, to: dram, by: vst, issuer: core}
  - {from: dram, to: s, by: sld, issuer: core}
instructions:
  scale:
    body: |
      instruction scale(J <= 16)
        in  A: f32[J]
        in  B: f32[]
        out D: f32[J]
        forall j < J
          D[j] = A[j] * B[]
    homes: {A: [HOMES], B: [HOMES], D: [v]}
  vld:
    body: |
      instruction vld(J <= 16)
        in  S: any[J]
        out D: any[J]
        forall j < J
          D[j] = S[j]
  vst:
    body: |
      instruction vst(J <= 16)
        in  S: any[J]
        out D: any[J]
        forall j < J
          D[j] = S[j]
  sld:
    body: |
      instruction sld()
        in  S: any[]
        out D: any[]
        D[] = S[]
"""
KERNEL = parse_kernel("""kernel scaled(N)
  in  x: f32[N]
  in  c: f32
  out y: f32[N]
  forall i < N
    y[i] = x[i] * c
""")


@pytest.mark.parametrize("homes", ["v, s", "s, v"])
def test_a_number_and_a_row_are_where_moves_bring_them(homes: str) -> None:
    machine = parse_system(MACHINE.replace("HOMES", homes), "rows.yaml")
    job = compiled(KERNEL, {"N": 37}, machine, check=True)
    assert job.schedule is not None
    calls = [n for n in distinct(job.schedule.call) if isinstance(n, Issue) and n.instruction == "scale"]
    assert {tuple(o.place.memory for o in n.operands) for n in calls} == {("v", "s", "v")}
    judge(KERNEL, {"N": 37}, job)
