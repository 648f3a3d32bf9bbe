"""Bytes that a call moves at least: the formula, written out here per kind of kernel."""

from __future__ import annotations

import pytest

from benchmarks.intensity import intensity, moved
from benchmarks.shapes import GROUPS, Convolution, Gemm


@pytest.mark.parametrize(("kind", "given", "made"), [("f32", 4, 4), ("bf16", 2, 2), ("int8", 1, 4)])
def test_of_products_factors_go_in_once_and_the_result_out(kind: str, given: int, made: int) -> None:
    assert moved(Gemm(5, 7, 3, kind)) == given * (5 * 3 + 3 * 7) + made * 5 * 7


def test_of_convolutions_the_image_is_as_it_is_given() -> None:
    assert moved(Convolution(3, 9, 5, 3, 1)) == 4 * (9 * 9 * 3 + 3 * 3 * 3 * 5 + 9 * 9 * 5)
    assert moved(Convolution(3, 8, 5, 1, 2, batch=2)) == 4 * (2 * 8 * 8 * 3 + 3 * 5 + 2 * 4 * 4 * 5)


def test_of_recurrent_units_weights_count_once() -> None:
    shape = next(s for s in GROUPS["gru"] if s.name == "gru 128x4x512x512")
    t, b, n = 128, 4, 512
    assert moved(shape) == 4 * (2 * t * b * n + b * n + 6 * n * n + 3 * n + n)


def test_every_measured_shape_has_an_intensity() -> None:
    for group, shapes in GROUPS.items():
        for s in shapes:
            assert 0 < (intensity(group, s.name) or 0) < 10_000, (group, s.name)
    assert intensity("square", "3x3x3") is None
    assert intensity("no group", "1x1x1") is None
