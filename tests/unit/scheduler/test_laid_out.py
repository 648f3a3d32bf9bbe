"""Staged boxes: where their elements lie and what they take (SCH-7)."""

from __future__ import annotations

from itertools import product
from math import prod
from random import Random

import pytest

from isam.scheduler.laid_out import box_room, layout_of
from isam.scheduler.state import StageLayout


def address(layout: StageLayout, index: tuple[int, ...]) -> int:
    parts = zip(index, layout.coefficients, layout.blocks, layout.inner, strict=True)
    return sum(i // b * b * c + i % b * n for i, c, b, n in parts)


@pytest.mark.parametrize("seed", range(40))
def test_elements_lie_apart_within_what_a_box_takes(seed: int):
    r = Random(seed)
    shape = tuple(r.randint(1, 5) for _ in range(r.randint(1, 3)))
    size, align, pad = r.choice((1, 2, 4)), r.choice((1, 4, 16)), r.choice((0, 0, 8))
    order = r.sample(range(len(shape)), len(shape))
    cut = tuple((d, r.randint(1, 4)) for d in r.sample(order, r.randint(0, len(order))))
    layout, total = layout_of(shape, size, order, cut, pad, align)
    taken = [address(layout, i) + b for i in product(*map(range, shape)) for b in range(size)]
    assert len(set(taken)) == size * prod(shape)
    assert 0 == min(taken) <= max(taken) < total


@pytest.mark.parametrize("seed", range(40))
def test_rows_of_what_lies_as_its_buffer_begin_at_multiples(seed: int):
    r = Random(seed)
    shape = tuple(r.randint(1, 5) for _ in range(r.randint(1, 4)))
    size, align = r.choice((1, 2, 4)), r.choice((4, 16, 64))
    layout, total = layout_of(shape, size, range(len(shape)), align=align)
    row = next((d for d in reversed(range(len(shape))) if shape[d] > 1), 0)  # the dimension that rows run along
    begins = {address(layout, i) for i in product(*map(range, shape)) if not any(i[row:])}
    assert all(a % align == 0 for a in begins)
    room = box_room(shape, size, align)
    assert room % align == 0
    assert max(begins) + shape[row] * size <= total <= room < total + align
