"""Tiles of a block that lie side by side move together, where the block waits for its moves (SCH-4, SCH-9)."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.schedule.tree import Schedule, Tile
from isam.scheduler.beside import box_of_strip, strip
from isam.system.graph import System
from tests.machines.small import FREE, SAME, instruction, small
from tests.pipeline import compiled, judge
from tests.unit.scheduler.test_begins import carried
from tests.unit.scheduler.test_in_blocks import Apart

ADD = """
  in  A: f32[J]
  in  B: f32[J]
  out D: f32[J]
  forall j < J
    D[j] = A[j] + B[j]
"""
COPY_ROW = """
  in  A: f32[J]
  out D: f32[J]
  forall j < J
    D[j] = A[j]
"""
SUM = parse_kernel("""kernel sum(M, N)
  in  x: f32[M, N]
  in  w: f32[M, N]
  out y: f32[M, N]
  forall i < M, j < N
    y[i, j] = x[i, j] + w[i, j]
""")
IN_PLACE = parse_kernel("""kernel in_place(M, N)
  in    x: f32[M, N]
  inout y: f32[M, N]
  forall i < M, j < N
    y[i, j] = y[i, j] + x[i, j]
""")
SHIFTED = parse_kernel("""kernel shifted(M, N)
  inout x: f32[M, N + 16]
  in    w: f32[M, N]
  out   y: f32[M, N]
  forall i < M, j < N
    x[i, j + 16] = w[i, j] + w[i, j]
  forall i < M, j < N
    y[i, j] = x[i, j] + x[i, j + 16]
""")
STATE = parse_kernel("""kernel state(M, N)
  in    x: f32[M, N]
  in    g: f32[N]
  out   h: f32[M + 1, N]
  forall j < N
    h[0, j] = g[j]
  loop i < M
    forall j < N
      h[i + 1, j] = h[i, j] + x[i, j]
""")


@cache
def machine(setup: int, capacity: str = "64 KiB", issue: int = 1, align: str = "") -> System:
    """Calls work where a move from home brings their operands, with so many cycles of set-up. ``align``: where operands
    of sums begin."""
    cost = f"cost: {{issue: {issue} cycles}}"
    entries = (instruction("add(J <= 16)", ADD, "homes: [pad]", cost, f"align: {{{align}}}"),
               instruction("keep(J <= 16)", COPY_ROW, "homes: [pad]", cost))  # fmt: skip
    copy = instruction("copy(M, N)", SAME, FREE, f"cost: {{setup: {setup} cycles, bandwidth: 16 B/cycle}}")
    return small("beside", {"pad": f"capacity: {capacity}, align: 16 B"}, ["dram <-> pad"], *entries, copy=copy)


def scheduled(kernel: Kernel, system: System, m: int, n: int) -> Schedule:
    sizes = {"M": m, "N": n}
    job = compiled(kernel, sizes, system, Apart(), check=True)
    judge(kernel, sizes, job)
    assert job.schedule is not None
    return job.schedule


def moves(schedule: Schedule, source: str, target: str) -> Counter[str]:
    out: Counter[str] = Counter()
    for operand, often in carried(schedule, source, target):
        out[operand.tile.buffer] += often
    return out


@pytest.mark.parametrize("kernel", [SUM, IN_PLACE])
def test_a_run_of_tiles_is_one_move_each_way(kernel: Kernel):
    joined = scheduled(kernel, machine(100), 8, 128)
    for edge in (("dram", "pad"), ("pad", "dram")):
        counts = moves(joined, *edge)
        assert counts
        assert all(n <= 8 * 128 // 16 // 4 for n in counts.values()), counts


@pytest.mark.parametrize("kernel", [SUM, IN_PLACE, SHIFTED, STATE])
@pytest.mark.parametrize("size", [(8, 128), (5, 100), (3, 16), (1, 7)])
@pytest.mark.parametrize("capacity", ["64 KiB", "1 KiB", "256 B"])
def test_it_computes_the_same_whatever_room_there_is(kernel: Kernel, size: tuple[int, int], capacity: str):
    scheduled(kernel, machine(100, capacity), *size)


def test_calls_that_hide_their_moves_are_left_alone():
    schedule = scheduled(SUM, machine(100, issue=1000), 8, 128)
    assert set(moves(schedule, "dram", "pad").values()) == {8 * 128 // 16}


def test_tiles_that_begin_where_no_access_may_are_not_beside_each_other():
    """Of 28 bytes each, the second would begin within 16."""
    schedule = scheduled(SUM, machine(100), 16, 7)
    assert set(moves(schedule, "dram", "pad").values()) == {16}


@pytest.mark.parametrize("kernel", [SUM, IN_PLACE, SHIFTED, STATE])
@pytest.mark.parametrize("operand", ["A", "D"])
def test_an_operand_that_asks_for_more_than_its_memory_is_not_beside_another(kernel: Kernel, operand: str):
    """Of 64 bytes each, the second would begin within 128."""
    scheduled(kernel, machine(100, align=f"{operand}: 128 B"), 3, 48)
    assert set(moves(scheduled(SUM, machine(100, align=f"{operand}: 64 B"), 8, 128), "dram", "pad").values()) == {8}


def test_a_state_is_brought_once_per_step_at_most():
    schedule = scheduled(STATE, machine(100), 8, 64)
    assert moves(schedule, "dram", "pad")["x"] <= 8
    assert moves(schedule, "pad", "dram")["h"] <= 9


def tile(i: int, j: int, rows: int = 1, columns: int = 16, var: str = "i0") -> Tile:
    return Tile("c", (Affine.of(var) + i, Affine((), j)), (rows, columns), (1, 1))


def test_a_run_goes_along_one_dimension_outside_of_which_tiles_have_one_element():
    row = [tile(0, j) for j in (0, 16, 32)]
    assert strip(row[1], [*reversed(row), tile(0, 64), tile(1, 16)]) == row
    assert box_of_strip(row) == tile(0, 0, 1, 48)
    column = [tile(i, 0) for i in range(4)]
    assert strip(column[2], [*column, tile(2, 16)]) == column
    assert box_of_strip(column) == tile(0, 0, 4, 16)
    assert strip(tile(0, 0, 2), [tile(0, 16, 2), tile(0, 32, 2)]) == [tile(0, 0, 2)], "rows of each lie apart"
    assert strip(tile(0, 0, 2), [tile(2, 0, 2)]) == [tile(0, 0, 2), tile(2, 0, 2)]
    assert strip(tile(0, 0), [tile(0, 8), tile(0, 32), tile(0, 16, 1, 8)]) == [tile(0, 0)]
    assert strip(tile(0, 0), [tile(0, 16, var="i1")]) == [tile(0, 0)], "nobody knows how far apart they are"
