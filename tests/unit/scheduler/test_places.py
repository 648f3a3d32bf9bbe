"""How a tile lies alone in a memory: its elements apart from each other, all within what it is said to take."""

from __future__ import annotations

from itertools import pairwise, permutations, product
from random import Random

import pytest

from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.tree import Tile
from isam.scheduler.places import lying, units_needed
from isam.system.graph import MANAGED, Memory

BYTES = Memory("pad", MANAGED, 1 << 20)
ROWS = Memory("rows", MANAGED, 1 << 20, align=16, row=16)
CELLS = Memory("cells", MANAGED, 1 << 20, cells=1 << 14, cell=64)


def tiles(seed: int, steps: tuple[int, ...]):
    random = Random(seed)
    rank = random.randint(1, 3)
    shape = tuple(random.randint(1, 4) for _ in range(rank))
    apart = tuple(random.choice(steps) for _ in range(rank))
    form = random.choice([None, *permutations(range(rank))])
    return Tile("x", (Affine(),) * rank, shape, apart), form


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("dtype", ["i8", "bf16", "f32"])
@pytest.mark.parametrize("memory", [BYTES, ROWS, CELLS], ids=lambda m: m.name)
def test_elements_lie_apart_within_what_the_tile_takes(memory: Memory, dtype: str, seed: int) -> None:
    tile, form = tiles(seed, (1, 2, 3, 5))
    strides, n = lying(memory, tile, dtype, form)
    size = size_of(dtype)
    at = sorted(sum(i * s * k for i, s, k in zip(point, strides, tile.steps, strict=True))
                for point in product(*map(range, tile.shape)))  # fmt: skip
    assert all(b - a >= size for a, b in pairwise(at))
    assert at[-1] + size <= n
    assert n <= units_needed(memory, tile, dtype, form) * (memory.cell or 1)
    if memory.row:
        inner = (form or range(len(tile.shape)))[-1]
        outer = (d for d in range(len(tile.shape)) if d != inner and tile.shape[d] > 1)
        assert all(strides[d] * tile.steps[d] % memory.row == 0 for d in outer)


@pytest.mark.parametrize("seed", range(40))
def test_nothing_lies_between_where_no_elements_are_left_out(seed: int) -> None:
    tile, form = tiles(seed, (1,))
    n = size_of("i8")
    for extent in tile.shape:
        n *= extent
    assert lying(BYTES, tile, "i8", form)[1] == units_needed(BYTES, tile, "i8", form) == n
