"""Why nothing carries an operand: the hop that it fails at is told, and what moves into registers have to be of."""

from __future__ import annotations

from pathlib import Path

import pytest

import isam

MACHINE = """
isam: 1
system: vectors
memories:
  home: {kind: managed, capacity: 1 GiB, home: true}
  pad:  {kind: managed, capacity: 16 KiB}
  vr:   {kind: counted, cells: 8, cell: 64 B, lanes: 16}
units:
  vu: {runs: [over], clock: 1 GHz}
  ls: {runs: [dma, ld], clock: 1 GHz}
moves:
  - {from: home, to: pad, by: dma, issuer: ls, both_ways: true}
  - {from: pad, to: vr, by: ld, issuer: ls, both_ways: true}
instructions:
  over:
    body: |
      instruction over(J <= 16)
        in  A: f32[J]
        in  B: f32
        out D: f32[J]
        forall j < J
          D[j] = max(A[j], B)
    homes: [vr]
  dma:
    body: |
      instruction dma(M, N)
        in  S: any[M, N]
        out D: any[M, N]
        forall i < M, j < N
          D[i, j] = S[i, j]
    strides: {S: [free, 1], D: [free, 1]}
  ld:
    body: |
      instruction ld(LD)
        in  S: any[AT]
        out D: any[AT]
        forall LOOPS
          D[INDEX] = S[INDEX]
"""
KERNEL = "kernel relu(N)\n  in x: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = max(x[i], 0)\n"
ROWS = {"LD": "N <= 16", "AT": "N", "LOOPS": "i < N", "INDEX": "i"}
BLOCKS = {"LD": "M, N <= 16", "AT": "M, N", "LOOPS": "i < M, j < N", "INDEX": "i, j"}


@pytest.mark.parametrize(("load", "why"), [
    (ROWS, "a move home -> pad -> vr needs to carry #f32:0[], but in 'vr' it is a number, and no move pad -> vr is of "
           "such: ld takes at most 16 along i"),
    (BLOCKS, "in 'vr' it is a row, and no move pad -> vr is of such: ld takes any number along i, at most 16 along j"),
])  # fmt: skip
def test_what_is_not_carried_into_registers(tmp_path: Path, load: dict[str, str], why: str) -> None:
    text = MACHINE
    for name, value in load.items():
        text = text.replace(f"({name})" if name == "LD" else name, f"({value})" if name == "LD" else value)
    (tmp_path / "vectors.yaml").write_text(text)
    answer = isam.explain(KERNEL, on=tmp_path / "vectors.yaml", sizes={"N": 100})
    assert answer.fits
    assert not answer.scheduled
    assert why in str(answer.no)
