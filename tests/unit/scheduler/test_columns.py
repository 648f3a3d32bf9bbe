"""Columns for registers, which are filled whole: brought from where one move carries them, or by smaller calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from isam.compiler.job import Refused
from isam.ir.text import parse_kernel
from isam.proof import prove
from isam.schedule.tree import Issue, distinct
from isam.system.graph import System
from isam.system.load import load_system
from tests.pipeline import compiled, judge

MACHINE = """
isam: 1
system: small
memories:
  dram: {kind: managed, capacity: 1 MiB, home: true}
  sp:   {kind: managed, capacity: 16 KiB}
  vr:   {kind: counted, cells: 8, cell: 32 B, lanes: 8}
units:
  dma: {runs: [dcopy]}
  u:   {runs: [vld, vst, mov]}
moves:
  - {from: dram, to: sp, by: dcopy, issuer: dma, both_ways: true}
  - {from: sp, to: vr, by: vld, issuer: u}
  - {from: vr, to: sp, by: vst, issuer: u}
instructions:
  dcopy:
    body: |
      instruction dcopy(COPIED)
        in  S: any[BOX]
        out D: any[BOX]
        forall LOOPS
          D[AT] = S[AT]
    strides: {S: [STRIDES], D: [STRIDES]}
  vld:
    body: |
      instruction vld(J <= 8)
        in  S: any[J]
        out D: any[J]
        forall j < J
          D[j] = S[j]
  vst:
    body: |
      instruction vst(J <= 8)
        in  S: any[J]
        out D: any[J]
        forall j < J
          D[j] = S[j]
  mov:
    body: |
      instruction mov(J <= WIDE)
        in  A: f32[J]
        out D: f32[J]
        forall j < J
          D[j] = A[j]
    homes: [vr]
"""
BOXES = {"COPIED": "M, N", "BOX": "M, N", "LOOPS": "i < M, j < N", "AT": "i, j"}
ROWS = BOXES | {"STRIDES": "free, 1"}  # one of a box is dense in both memories
ANYHOW = BOXES | {"STRIDES": "free, free"}
LINES = {"COPIED": "N", "BOX": "N", "LOOPS": "j < N", "AT": "j", "STRIDES": "1"}
COLUMNS = parse_kernel("""kernel columns(M, N)
  in  a: f32[M, N]
  out y: f32[N, M]
  forall i < M, j < N
    y[j, i] = a[i, j]
""")
BOTH = parse_kernel("""kernel both(N)
  in  a: f32[N, N]
  out x: f32[N, N]
  out y: f32[N, N]
  forall i < N, j < N
    x[i, j] = a[i, j]
  forall i < N, j < N
    y[j, i] = a[i, j]
""")
ROW = parse_kernel("kernel row(N)\n  in a: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = a[i]\n")


def small(tmp_path: Path, copy: dict[str, str], wide: int = 8) -> System:
    """``copy``: what the DMA takes; ``wide``: the most elements of a call."""
    text = MACHINE.replace("WIDE", str(wide))
    for name, value in copy.items():
        text = text.replace(f"({name})", f"({value})").replace(f"[{name}]", f"[{value}]").replace(name, value)
    (tmp_path / "small.yaml").write_text(text)
    return load_system(tmp_path / "small.yaml")


def direct(tmp_path: Path, exact: bool = False) -> System:
    """Without a scratchpad; ``exact``: calls take just 8."""
    body = MACHINE[: MACHINE.index("  dcopy:\n")] + MACHINE[MACHINE.index("  vld:\n") :]
    lines = (n for n in body.replace("WIDE", "8").splitlines() if "dma" not in n and "  sp:" not in n)
    text = "\n".join(lines).replace("from: sp", "from: dram").replace("to: sp", "to: dram")
    if exact:
        begin = text.index("instruction mov")
        text = text[:begin] + text[begin:].replace("(J <= 8)", "()").replace("[J]", "[8]").replace("j < J", "j < 8")
    (tmp_path / "direct.yaml").write_text(text)
    return load_system(tmp_path / "direct.yaml")


def calls(job) -> list[Issue]:
    return [n for n in distinct(job.schedule.call) if isinstance(n, Issue)]


@pytest.mark.parametrize("copy", [ROWS, ANYHOW], ids=["rows", "anyhow"])
@pytest.mark.parametrize(("kernel", "sizes"), [
    (COLUMNS, {"M": 4, "N": 2}), (COLUMNS, {"M": 19, "N": 2}), (BOTH, {"N": 11}),
])  # fmt: skip
def test_a_column_fills_a_register_by_one_move(tmp_path: Path, copy, kernel, sizes) -> None:
    job = compiled(kernel, sizes, small(tmp_path, copy))
    prove(job.schedule)
    judge(kernel, sizes, job)
    most = min(8, sizes.get("M", 8))
    assert any(dict(c.sizes).get("J") == most for c in calls(job) if c.instruction == "vld")


def test_a_box_is_brought_column_by_column(tmp_path: Path) -> None:
    """So that moves of what is dense find columns in it."""
    job = compiled(COLUMNS, {"M": 8, "N": 4}, small(tmp_path, ANYHOW))
    loads = [c for c in calls(job) if c.instruction == "vld"]
    bring = [c for c in calls(job) if c.instruction == "dcopy" and c.operands[0].tile.buffer == "a"]
    assert [c.operands[0].tile.shape for c in bring] == [(8, 4)]
    assert {c.operands[0].place.strides for c in loads} == {(4, 32)}


def test_a_box_is_gathered_in_a_scratchpad(tmp_path: Path) -> None:
    """There parts come one by one."""
    sizes = {"M": 8, "N": 2}
    job = compiled(COLUMNS, sizes, small(tmp_path, LINES))
    prove(job.schedule)
    judge(COLUMNS, sizes, job)
    assert {dict(c.sizes)["J"] for c in calls(job) if c.instruction == "vld"} == {8}


def test_calls_are_smaller_where_nothing_gathers(tmp_path: Path) -> None:
    sizes = {"M": 8, "N": 2}
    job = compiled(COLUMNS, sizes, direct(tmp_path))
    prove(job.schedule)
    judge(COLUMNS, sizes, job)
    assert {dict(c.sizes)["J"] for c in calls(job) if c.instruction == "mov"} == {1}


def test_where_calls_cannot_be_smaller_the_reason_is_told(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="carries 1 x 1 elements of it from 'dram', and a register is filled whole"):
        compiled(COLUMNS, {"M": 8, "N": 2}, direct(tmp_path, exact=True))


@pytest.mark.parametrize("n", [12, 16, 40])
def test_several_registers_are_filled_one_by_one(tmp_path: Path, n: int) -> None:
    job = compiled(ROW, {"N": n}, small(tmp_path, ROWS, wide=16))
    prove(job.schedule)
    judge(ROW, {"N": n}, job)
    cells = {c.operands[1].place.cell for c in calls(job) if c.instruction == "vld"}
    assert {0, 1} <= cells
