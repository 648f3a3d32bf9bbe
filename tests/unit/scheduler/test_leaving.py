"""Results that leave registers together go home in one piece, where each move from a memory on the way costs a set-up
(SCH-9)."""

from __future__ import annotations

import pytest

from isam.ir.affine import Affine
from isam.ir.text import parse_kernel
from isam.schedule.tree import Tile
from isam.scheduler.begun_together import box_of_all
from isam.scheduler.edges import EdgeCost, worth_joining
from isam.scheduler.leaving import box_of
from tests.machines.small import PRODUCT, ZERO, instruction, small
from tests.pipeline import compiled, judge
from tests.unit.scheduler.test_access import scheduled, vectors
from tests.unit.scheduler.test_begins import carried, elements

SIZES = [dict(zip("MNK", n, strict=True)) for n in ((24, 32, 32), (13, 40, 21), (9, 7, 50), (64, 48, 16))]


@pytest.mark.parametrize("sizes", SIZES)
def test_a_block_is_one_move(sizes: dict[str, int]):
    schedule = scheduled(vectors(4, 64), sizes)
    moves, tiles = (sum(n for _, n in carried(schedule, *edge)) for edge in (("near", "dram"), ("vr", "near")))
    assert moves <= max(1, tiles / 4)
    assert elements(schedule, "near", "dram")["c"] == sizes["M"] * sizes["N"], "once, when its sums are complete"


@pytest.mark.parametrize("sizes", SIZES)
def test_without_a_setup_each_tile_passes_while_the_next_one_follows(sizes: dict[str, int]):
    schedule = scheduled(vectors(4, 64, setup=0), sizes)
    moves, tiles = (sum(n for _, n in carried(schedule, *edge)) for edge in (("near", "dram"), ("vr", "near")))
    assert moves == tiles


def test_it_is_worth_what_set_ups_take_longer_than_the_way_to_where_they_gather():
    quick, far = EdgeCost("lsu", 1.0, 0.0, 0.0), EdgeCost("dma", 40.0, 1 / 16, 0.0)
    assert worth_joining(quick, far, 24, 64)
    assert not worth_joining(quick, far, 24, 64, moves=24)
    assert not worth_joining(quick, EdgeCost("dma", 1.0, 1 / 16, 0.0), 24, 64), "home is as far as its bytes take"
    slow = EdgeCost("lsu", 50.0, 0.0, 0.0)
    assert not worth_joining(slow, far, 24, 64), "it passes while the next one follows"
    assert worth_joining(EdgeCost("dma", 50.0, 0.0, 0.0), far, 24, 64), "one unit does both"


def tile(i: int, j: int, rows: int = 1, columns: int = 16, var: str = "i0") -> Tile:
    return Tile("c", (Affine.of(var) + i, Affine((), j)), (rows, columns), (1, 1))


def test_tiles_fill_a_box_each_element_once():
    four = [tile(i, j) for i in (3, 2) for j in (16, 0)]
    assert box_of(four) == tile(2, 0, 2, 32)
    assert box_of(four[:3]) is None, "a corner is missing"
    assert box_of([*four, tile(4, 0)]) is None
    assert box_of([tile(0, 0), tile(2, 0)]) is None, "there is a row between"
    assert box_of([tile(0, 0), tile(1, 0, var="i1")]) is None, "nobody knows how far apart they are"
    assert box_of([tile(0, 0), tile(0, 8)]) is None, "they overlap"
    assert box_of_all([tile(0, 0), tile(0, 16, columns=3)]) == tile(0, 0, columns=19), "of any shapes"
    assert box_of_all([tile(0, 0), tile(0, 8)]) is None
    assert box_of_all(four[:3]) is None


MATRICES = """kernel mm(M, N, K)
  in A: f32[M, K]
  in B: f32[K, N]
  out C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""


def moves_home(sizes: tuple[int, int, int], accumulators: str, way: str = "acc -> dram") -> int:
    """How many moves bring the results of a product right home from where they are summed up."""
    mxu = instruction("mxu(M <= 4, N <= 4, K <= 4)", PRODUCT, "homes: {A: [near], B: [near], C: [acc]}",
                      "cost: {issue: 4 cycles, latency: 12 cycles}")  # fmt: skip
    zero = instruction("zero(M <= 4, N <= 4)", ZERO, "homes: [acc]", "cost: {issue: 4 cycles}")
    memories = {"near": "capacity: 16 KiB", "acc": accumulators}
    machine = small("direct", memories, ["dram <-> near", way], mxu, zero)
    kernel, numbers = parse_kernel(MATRICES), dict(zip("MNK", sizes, strict=True))
    done = compiled(kernel, numbers, machine, check=True)
    assert done.schedule is not None
    assert judge(kernel, numbers, done).moved["acc", "dram"] == sizes[0] * sizes[1] * 4
    return sum(n for _, n in carried(done.schedule, "acc", "dram"))


@pytest.mark.parametrize("way", ["acc -> dram", "acc <-> dram"])
@pytest.mark.parametrize("sizes", [(32, 32, 32), (13, 9, 17), (8, 40, 5)])
def test_a_block_goes_right_home_in_one_move(way: str, sizes: tuple[int, int, int]):
    assert moves_home(sizes, "capacity: 4 KiB", way) == 1
    assert moves_home(sizes, "cells: 64, cell: 64 B", way) == -(-sizes[0] // 4) * -(-sizes[1] // 4)


def test_where_not_all_fits_each_block_of_it_does():
    assert moves_home((32, 32, 32), "capacity: 1 KiB") == 4
    assert moves_home((13, 9, 17), "capacity: 256 B") <= 6
