"""Memories that no move leads to: instructions begin data there, sums go on, results leave (SYS-6, SCH-4)."""

from __future__ import annotations

import pytest

from isam.approach.choice import Trace
from isam.approach.questions import TIMED
from isam.approach.shipped.greedy import Greedy
from isam.compiler import Refused
from isam.cost.compared import seconds
from isam.diagnostics import IsamError
from isam.ir.text import parse_kernel
from isam.scheduler.handed_on import wanted
from isam.scheduler.near_homes import wanted_near
from isam.system.check import check
from isam.system.graph import System
from tests.machines.small import CLIP, PRODUCT, ZERO, instruction, small
from tests.pipeline import compiled, judge

MXU = instruction("mxu(M <= 4, N <= 4, K <= 4)", PRODUCT, "homes: {A: [spad], B: [spad], C: [acc]}",
                  "cost: {issue: 4 cycles, latency: 12 cycles}")  # fmt: skip
MZERO = instruction("mzero(M <= 4, N <= 4)", ZERO, "homes: [acc]", "cost: {issue: 4 cycles, latency: 4 cycles}")
FILL = instruction("fill(M <= 4, N <= 32)", ZERO, "homes: [spad]", "cost: {issue: 1 cycle}")
ADD = instruction("add(M <= 4, N <= 32)", """
  in  A: f32[M, N]
  in  B: f32[M, N]
  out D: f32[M, N]
  forall i < M, j < N
    D[i, j] = A[i, j] + B[i, j]
""", "homes: [spad]", "cost: {issue: 4 cycles}")  # fmt: skip
SPREAD = instruction("spread(M <= 4, N <= 32)", """
  in  A: f32[N]
  out D: f32[M, N]
  forall i < M, j < N
    D[i, j] = A[j]
""", "homes: [spad]", "cost: {issue: 4 cycles}")  # fmt: skip
CLIPPED = instruction("clip(M <= 4, N <= 32)", CLIP, "homes: [spad]", "cost: {issue: 4 cycles}")
FED, DRAINED = "dram <-> spad", "acc -> spad"
BEGIN = "  forall i < M, j < N\n    C[i, j] = 0\n"
KERNEL = """kernel mm(M, N, K)
  in A: f32[M, K]
  in B: f32[K, N]
  {role} C: f32[M, N]
{begin}  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""


def machine(moves: list[str], *instructions: str) -> System:
    """No move leads to the accumulators."""
    return small("drained", {"spad": "capacity: 16 KiB", "acc": "cells: 6, cell: 64 B"}, moves, *instructions)


@pytest.fixture
def drained() -> System:
    return machine([FED, DRAINED], MXU, MZERO)


def test_accumulators_that_are_zeroed_and_drained_are_accepted(drained: System):
    assert check(drained) == []


@pytest.mark.parametrize("sizes", [(4, 4, 4), (13, 9, 17), (40, 24, 8), (1, 30, 3)])
def test_sums_that_begin_there_are_right(drained: System, sizes: tuple[int, ...]):
    kernel, numbers = parse_kernel(KERNEL.format(role="out", begin=BEGIN)), dict(zip("MNK", sizes, strict=True))
    judge(kernel, numbers, compiled(kernel, numbers, drained, check=True))


def test_what_begins_a_sum_writes_where_it_goes_on(drained: System):
    """Another instruction that writes zeros takes fewer calls, but what it leaves cannot be brought there."""
    system = machine([FED, DRAINED], FILL, MXU, MZERO)
    kernel, numbers = parse_kernel(KERNEL.format(role="out", begin=BEGIN)), {"M": 24, "N": 24, "K": 24}
    done = compiled(kernel, numbers, system, check=True)
    assert [m.instruction.name for m in done.cover.mappings] == ["mzero", "mxu"]
    judge(kernel, numbers, done)


def test_what_no_sum_goes_on_from_is_written_anywhere():
    system = machine([FED, DRAINED], FILL, MXU, MZERO)
    done = compiled(parse_kernel("kernel z(M, N)\n  out C: f32[M, N]\n" + BEGIN), {"M": 24, "N": 24}, system)
    assert [m.instruction.name for m in done.cover.mappings] == ["fill"]


@pytest.mark.parametrize(("role", "begin"), [
    ("inout", ""), ("out", "  forall i < M, j < N\n    C[i, j] = b[j]\n"),
], ids=["from home", "with a bias"])  # fmt: skip
def test_a_sum_that_goes_on_from_elsewhere_is_made_by_itself(role: str, begin: str):
    system = machine([FED, DRAINED], MXU, MZERO, ADD, SPREAD)
    text = KERNEL.format(role=role, begin=begin).replace("  in B", "  in b: f32[N]\n  in B")
    kernel, numbers = parse_kernel(text), {"M": 13, "N": 9, "K": 17}
    judge(kernel, numbers, compiled(kernel, numbers, system, check=True))


@pytest.mark.parametrize("outer", [False, True], ids=["one level", "two levels"])
def test_draining_takes_no_longer_than_both_ways(outer: bool):
    """Boxes are planned alike for accumulators that no move leads to and for those that could be filled."""
    def made(way: str) -> float:
        near = {"spad": "capacity: 16 KiB", "acc": "cells: 6, cell: 64 B"}
        memories = {"buf": "capacity: 64 KiB", **near} if outer else near
        ways = ["dram <-> buf", "buf <-> spad", way] if outer else [FED, way]
        system = small("drained", memories, ways, MXU, MZERO)
        done = compiled(parse_kernel(KERNEL.format(role="out", begin=BEGIN)), {"M": 64, "N": 64, "K": 64}, system)
        assert done.schedule is not None
        return seconds(done.schedule)

    assert made(DRAINED) <= made("acc <-> spad")


HANDED = parse_kernel(KERNEL.format(role="temp", begin=BEGIN).replace("K]\n", "K]\n  out y: f32[M, N]\n", 1)
                      + "  forall i < M, j < N\n    y[i, j] = max(C[i, j], 0)\n")  # fmt: skip


def test_drained_temporaries_are_at_home_near():
    numbers = {"M": 32, "N": 32, "K": 32}
    done = compiled(HANDED, numbers, machine([FED, DRAINED], MXU, MZERO, CLIPPED), check=True)
    assert done.schedule is not None
    assert done.schedule.homes["C"].memory == "spad"
    judge(HANDED, numbers, done)


@pytest.mark.parametrize(("calls", "timed"), [((10, 12), True), ((12, 10), False)], ids=["more calls", "fewer calls"])
def test_temporaries_at_home_near_are_timed_where_they_take_more_calls(calls: tuple[int, int], timed: bool):
    trace = Trace(Greedy())
    assert wanted_near(trace, [], ["C"], calls) is (calls[1] < calls[0])
    assert [q.point for q in TIMED for d in trace.decisions if q.left_to_time(d)] == ["promote"] * timed


@pytest.mark.parametrize(("calls", "asked"), [((10, 12), 0), ((1000, 991), 0), ((1000, 989), 1)])
def test_what_is_handed_on_in_registers_is_asked_where_it_saves_calls(calls: tuple[int, int], asked: int):
    trace = Trace(Greedy())
    assert wanted(trace, [], calls, "", []) is bool(asked)
    assert [d.point for d in trace.decisions] == ["carry"] * asked


def test_a_sum_that_goes_on_from_home_is_refused_with_the_reason(drained: System):
    kernel = parse_kernel(KERNEL.format(role="inout", begin=""))
    with pytest.raises(Refused, match=r"'acc' needs moves of f32 from 'dram' for C.*no way leads there") as no:
        compiled(kernel, {"M": 8, "N": 8, "K": 8}, drained)
    assert any((d.loc.file, d.loc.line) == ("drained.yaml", 6) for d in no.value.diagnostics)


def test_without_a_beginning_data_cannot_get_there():
    with pytest.raises(IsamError, match="'C' of 'mxu' is read in 'acc', but no moves lead from 'dram' to 'acc'"):
        machine([FED, DRAINED], MXU)


def test_results_have_to_leave():
    with pytest.raises(IsamError, match="is written in 'acc', but no moves lead from 'acc' to 'dram'"):
        machine([FED], MXU, MZERO)
