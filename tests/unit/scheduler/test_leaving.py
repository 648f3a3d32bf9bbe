"""Results that leave registers together go home in one piece, where each move from a memory on the way costs a set-up
(SCH-9)."""

from __future__ import annotations

import pytest

from isam.ir.affine import Affine
from isam.schedule.tree import Tile
from isam.scheduler.edges import EdgeCost, worth_joining
from isam.scheduler.leaving import box_of
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
