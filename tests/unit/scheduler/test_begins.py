"""Boxes in a memory with an alignment: what cannot be read where it lies in one is not brought with it (SCH-7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import prod
from random import Random

import pytest

from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, Loop, Node, Operand, Schedule, children
from isam.scheduler.plans.begins import further
from isam.system.graph import System
from tests.machines.small import PRODUCT, ZERO, ZERO_ROW, instruction, small
from tests.pipeline import compiled, judge

REGISTERS = "homes: [ra, rb]"
TILE = 4 * 4  # elements that a call takes
KERNEL = parse_kernel("""kernel product(M, N, K)
  in  a: f32[M, K]
  in  b: f32[K, N]
  out c: f32[M, N]
  forall i < M, j < N
    c[i, j] = 0
  forall i < M, j < N, k < K
    c[i, j] += a[i, k] * b[k, j]
""")
TRANSPOSED = parse_kernel(str(KERNEL).replace("a: f32[M, K]", "a: f32[K, M]").replace("a[i, k]", "a[k, i]"))


def wide(access: str, *more: str) -> System:
    """A product of registers behind a scratchpad, which is read as ``access`` says."""
    cost = "cost: {issue: 4 cycles, latency: 12 cycles}"
    return small(
        "wide",
        {"sp": f"capacity: 64 KiB, {access}", "ra": "cells: 8, cell: 64 B", "rb": "cells: 8, cell: 64 B"},
        ["dram <-> sp", "sp <-> [ra, rb]"],
        instruction("mm4(M <= 4, N <= 4, K <= 4)", PRODUCT, REGISTERS, "apart: [[A, B]]", cost),
        instruction("zero(M <= 4, N <= 4)", ZERO, REGISTERS, "cost: {issue: 1 cycle, latency: 2 cycles}"),
        *more,
    )


def carried(schedule: Schedule, source: str, target: str) -> Iterator[tuple[Operand, int]]:
    """What is moved along an edge, each with how often."""

    def calls(node: Node, often: int) -> Iterator[tuple[Issue, int]]:
        if isinstance(node, Issue):
            yield node, often
        for c in children(node):
            yield from calls(c, often * ((node.trip or 1) if isinstance(node, Loop) and c is node.body else 1))

    for c, often in calls(schedule.call, 1):
        if c.is_move and (c.operands[0].place.memory, c.operands[1].place.memory) == (source, target):
            yield c.operands[0], often


def elements(schedule: Schedule, source: str, target: str, least: int = 0) -> Counter[str]:
    out: Counter[str] = Counter()
    for o, often in carried(schedule, source, target):
        if prod(o.tile.shape) >= least:
            out[o.tile.buffer] += often * prod(o.tile.shape)
    return out


@pytest.mark.parametrize("kernel", [KERNEL, TRANSPOSED], ids=["product", "transposed"])
@pytest.mark.parametrize("align", [64, 128])
@pytest.mark.parametrize("sizes", [{"M": 16, "N": 16, "K": 64}, {"M": 32, "N": 24, "K": 32}])
def test_nothing_is_brought_that_no_call_reads(kernel, align, sizes):
    """Tiles of four columns begin at multiples of 16 bytes: one in four, or eight, of a box could be read there."""
    job = compiled(kernel, sizes, wide(f"align: {align} B"), check=True)
    judge(kernel, sizes, job)
    near = elements(job.schedule, "dram", "sp")
    read = elements(job.schedule, "sp", "ra") + elements(job.schedule, "sp", "rb")
    boxes = elements(job.schedule, "dram", "sp", least=TILE + 1)
    for b in "ab":
        assert near[b] < boxes[b] + read[b] if boxes[b] else near[b] <= read[b]


POOL = parse_kernel("""kernel pool(T, K)
  in  w: f32[T]
  in  x: f32[T, K]
  out y: f32[K]
  forall k < K
    y[k] = 0
  forall k < K, t < T
    y[k] += w[t] * x[t, k]
""")
SOON = "cost: {issue: 1 cycle, latency: 4 cycles}"
AXPY = instruction("axpy(J <= 16)", """
  in    A: f32
  in    B: f32[J]
  inout D: f32[J]
  forall j < J
    D[j] += A[] * B[j]
""", REGISTERS, SOON)  # fmt: skip
CLEAR = instruction("clear(J <= 16)", ZERO_ROW, REGISTERS, SOON)


@pytest.mark.parametrize("length", [32, 64])
def test_in_rows_nothing_is_brought_that_no_call_reads(length: int):
    """Single elements begin with a row where they come one by one; in a box most lie within one."""
    sizes = {"T": length, "K": 16}
    job = compiled(POOL, sizes, wide("align: 64 B, row: 64 B", AXPY, CLEAR), check=True)
    judge(POOL, sizes, job)
    near = elements(job.schedule, "dram", "sp")
    read = elements(job.schedule, "sp", "ra") + elements(job.schedule, "sp", "rb")
    assert near["w"] == read["w"] == length
    assert near["x"] == length * 16
    assert elements(job.schedule, "dram", "sp", least=17)["x"], "whole rows can be read from boxes"


def test_boxes_of_which_all_can_be_read_are_brought_whole():
    sizes = {"M": 16, "N": 16, "K": 64}
    job = compiled(KERNEL, sizes, wide("align: 16 B"), check=True)
    judge(KERNEL, sizes, job)
    assert elements(job.schedule, "dram", "sp")["b"] == 16 * 64


def test_how_many_tiles_begin_at_a_multiple_is_counted():
    random = Random(7)
    for _ in range(200):
        align, steps = 2 ** random.randrange(1, 8), [(random.randrange(-40, 41), random.randrange(1, 20))]
        steps.append((random.randrange(-9, 10), random.randrange(1, 70)))
        at, begins = {0: 1}, [0]
        for step, count in steps:
            at = further(at, step, count, align)
            begins = [b + step * i for b in begins for i in range(count)]
        assert at == Counter(b % align for b in begins)
