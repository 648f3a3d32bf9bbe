"""An instruction in which one name is two axes: each gets a name of its own, and everything behind the mapper works."""

from __future__ import annotations

import numpy as np

import isam
from isam.ir.apart import axes_apart
from isam.ir.text import parse_instruction, parse_kernel
from isam.proof.equivalence import equivalent

TWO = """instruction two(M <= 8, N <= 4)
  in    A: f32[M]
  in    B: f32[N, M]
  out   C: f32[M]
  out   D: f32[N]
  forall i < M
    C[i] = A[i] * 2
  forall i < N
    D[i] = 0
  forall i < N, k < M where k <= 2 * i
    D[i] += B[i, k]
"""
PLAIN = TWO.replace(" where k <= 2 * i", "")
MACHINE = """
isam: 1
system: pair
memories:
  dram: {kind: managed, capacity: 1 GiB, home: true}
  sp:   {kind: managed, capacity: 16 KiB, align: 4 B}
units:
  alu: {runs: [two], clock: 1 GHz}
  dma: {runs: [copy, rows], clock: 1 GHz}
moves:
  - {from: dram, to: sp, by: [copy, rows], issuer: dma, both_ways: true}
instructions:
  copy:
    body: |
      instruction copy(M)
        in  S: any[M]
        out D: any[M]
        forall i < M
          D[i] = S[i]
    cost: {setup: 10 cycles, bandwidth: 16 B/cycle}
  rows:
    body: |
      instruction rows(M, N)
        in  S: any[M, N]
        out D: any[M, N]
        forall i < M, j < N
          D[i, j] = S[i, j]
    cost: {setup: 10 cycles, bandwidth: 16 B/cycle}
  two:
    homes: {A: [sp], B: [sp], C: [sp], D: [sp]}
    cost: {issue: 4 cycles, latency: 12 cycles}
    body: |
""" + "".join(f"      {line}\n" for line in PLAIN.splitlines())
KERNEL = """kernel k()
  in  x: f32[8]
  in  y: f32[4, 8]
  out p: f32[8]
  out q: f32[4]
  forall a < 8
    p[a] = x[a] * 2
  forall b < 4
    q[b] = 0
  forall b < 4, c < 8
    q[b] += y[b, c]
"""


def test_a_name_with_two_extents_becomes_two():
    body = parse_instruction(TWO).body
    assert [s.domain.names for s in body.statements] == [("i",), ("i2",), ("i2", "k")]
    assert str(body.statements[2].domain.where[0]) == "2*i2 - k"
    written = parse_kernel(TWO.replace("instruction two(M <= 8, N <= 4)", "kernel two(M, N)"))
    assert equivalent(written, axes_apart(written))


def test_a_name_that_is_taken_is_not_used_again():
    body = parse_instruction(TWO.replace("k < M where k", "i2 < M where i2").replace("B[i, k]", "B[i, i2]")).body
    assert [s.domain.names for s in body.statements] == [("i",), ("i3",), ("i3", "i2")]


def test_where_no_name_is_two_axes_nothing_changes():
    body = parse_kernel(KERNEL)
    assert axes_apart(body) is body


def test_such_an_instruction_is_mapped_scheduled_proved_and_run(tmp_path):
    machine = tmp_path / "pair.yaml"
    machine.write_text(MACHINE)
    fn = isam.compile(isam.parse(KERNEL), on=str(machine))
    assert [dict(m.axes) for m in fn.mapping.mappings] == [{"i": "a", "i2": "b", "k": "c"}]
    assert fn.certificate
    x, y = np.arange(8, dtype="f4"), np.arange(32, dtype="f4").reshape(4, 8)
    p, q = fn(x, y)
    assert (p == 2 * x).all()
    assert q.tolist() == [sum(y[b, c] for c in range(8)) for b in range(4)]
