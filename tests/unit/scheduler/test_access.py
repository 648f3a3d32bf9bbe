"""One memory, operands that ask for alignments of their own: room suits the strictest, others may begin between."""

from __future__ import annotations

import pytest

from isam.cost.timeline import timeline
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.schedule.tree import Schedule
from isam.scheduler.aligned import aligned
from isam.system.graph import System
from isam.system.load import parse_system
from isam.system.remarks import remarks
from tests.machines.small import SAME, SAME_ROW, ZERO_ROW, instruction
from tests.pipeline import compiled, judge
from tests.unit.scheduler.test_begins import KERNEL, carried, elements

ONE = """
  in  S: any
  out D: any
  D[] = S[]
"""
FMA = """
  in    A: f32
  in    B: f32[J]
  inout D: f32[J]
  forall j < J
    D[j] += A[] * B[j]
"""
SOON, LATER = "cost: {issue: 1 cycle, latency: 4 cycles}", "cost: {issue: 1 cycle, latency: 3 cycles}"
MUL = """
  in  A: f32[J]
  in  B: f32[J]
  out D: f32[J]
  forall j < J
    D[j] = A[j] * B[j]
"""
NEXT = parse_kernel("""kernel next(M, N)
  in  x: f32[M, N + 1]
  out y: f32[M, N]
  forall i < M, j < N
    y[i, j] = x[i, j] * x[i, j + 1]
""")
WINDOW = parse_kernel("""kernel window(N, T)
  in  w: f32[T]
  in  x: f32[N + T]
  out y: f32[N]
  forall j < N
    y[j] = 0
  forall t < T, j < N
    y[j] += w[t] * x[j + t]
""")


def vectors(memory: int, row: int, setup: int = 40) -> System:
    """Registers of 16 lanes behind a memory that is read at multiples of ``memory`` bytes, by rows at such of ``row``;
    a move between it and home takes ``setup`` cycles and its bytes."""
    wide = f"align: {{S: {row} B}}"
    entries = (
        instruction("fma(J <= 16)", FMA, "homes: [vr]", SOON),
        instruction("clear(J <= 16)", ZERO_ROW, "homes: [vr]", SOON),
        instruction("mul(J <= 16)", MUL, "homes: [vr]", SOON),
        instruction("lds()", ONE, LATER),
        instruction("ldv(N <= 16)", SAME_ROW, wide, LATER),
        instruction("stv(N <= 16)", SAME_ROW, wide.replace("S", "D"), LATER),
        instruction("dma(M, N)", SAME, "strides: {S: [free, 1], D: [free, 1]}",
                    f"cost: {{setup: {setup} cycles, bandwidth: 16 B/cycle}}"),
    )  # fmt: skip
    return parse_system(f"""isam: 1
system: vectors
memories:
  dram: {{kind: managed, capacity: 1 GiB, home: true}}
  near: {{kind: managed, capacity: 64 KiB, align: {memory} B}}
  vr: {{kind: counted, cells: 32, cell: 64 B, lanes: 16}}
units:
  pe: {{runs: [fma, clear, mul], clock: 1 GHz}}
  lsu: {{runs: [lds, ldv, stv], clock: 1 GHz}}
  far: {{runs: [dma], clock: 1 GHz}}
moves:
  - {{from: dram, to: near, by: dma, issuer: far, both_ways: true}}
  - {{from: near, to: vr, by: [ldv, lds], issuer: lsu}}
  - {{from: vr, to: near, by: stv, issuer: lsu}}
instructions:
{"".join(entries)}""", "vectors.yaml")


def scheduled(system: System, sizes: dict[str, int], kernel: Kernel = KERNEL) -> Schedule:
    job = compiled(kernel, sizes, system, check=True)
    judge(kernel, sizes, job)
    return job.schedule


@pytest.mark.parametrize("sizes", [{"M": 24, "N": 32, "K": 32}, {"M": 13, "N": 40, "K": 21}, {"M": 9, "N": 7, "K": 50}])
def test_single_elements_are_read_between_the_rows(sizes: dict[str, int]):
    schedule = scheduled(vectors(4, 64), sizes)
    assert elements(schedule, "dram", "near")["a"] == sizes["M"] * sizes["K"], "once, in boxes"
    read = [(o, n) for o, n in carried(schedule, "near", "vr") if o.tile.buffer == "a"]
    assert any(o.place.offset.const % 64 for o, _ in read)


@pytest.mark.parametrize("row", [4, 8, 64])
def test_rows_that_begin_between_come_from_home(row: int):
    """A window slides by one element: of its rows one in so many may be read from a box, weights all."""
    schedule = scheduled(vectors(4, row), {"N": 64, "T": 12}, WINDOW)
    rows = [o for o, _ in carried(schedule, "near", "vr") if o.tile.buffer == "x"]
    assert rows
    assert all(o.place.offset.const % row == 0 for o in rows)
    assert elements(schedule, "dram", "near")["w"] == 12


@pytest.mark.parametrize("row", [4, 64])
def test_of_two_operands_in_a_box_each_begins_where_it_may(row: int):
    """Rows and their neighbours lie in one box; with rows at multiples the neighbours come from home."""
    schedule = scheduled(vectors(4, row), {"M": 8, "N": 32}, NEXT)
    rows = [o for o, _ in carried(schedule, "near", "vr")]
    assert all(o.place.offset.const % row == 0 for o in rows)
    assert elements(schedule, "dram", "near")["x"] == 8 * 33 + (8 * 32 if row == 64 else 0)


def test_what_no_operand_asks_for_costs_nothing():
    """An alignment of rows alone is as good as none where rows begin at multiples anyhow; one of the memory itself
    holds for single elements, too, which then come one by one."""
    sizes = {"M": 24, "N": 32, "K": 32}
    free, rows, all_alike = (timeline(scheduled(vectors(*v), sizes)).seconds for v in ((4, 4), (4, 64), (64, 4)))
    assert rows == pytest.approx(free, rel=0.02)
    assert all_alike > 1.5 * free


def test_a_memory_that_is_read_at_wide_multiples_is_remarked():
    found = [d for d in remarks(vectors(64, 4)) if d.code == "remark-align"]
    assert len(found) == 1
    assert "'lds' takes up to 4 B from 'near', which is read at multiples of 64 B" in found[0].message
    assert not remarks(vectors(4, 64))


def test_room_suits_the_strictest_and_an_access_the_others():
    near = aligned(vectors(4, 64), ["fma"]).memories["near"]
    assert (near.align, near.access) == (64, 4)
    same = aligned(vectors(64, 4), ["fma"]).memories["near"]
    assert (same.align, same.access) == (64, 64)
