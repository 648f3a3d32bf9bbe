"""Domains with conditions in boxes, and ranges in blocks: against counting."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from isam.ir.affine import Affine
from isam.scheduler.pieces import boxes
from isam.scheduler.trim import segments


def points(found):
    out = []
    for b in found:
        names = sorted(b)
        out += list(product(*(range(b[n][0], b[n][0] + b[n][1]) for n in names)))
    return out


def test_boxes_are_the_points_once_each():
    rng = np.random.default_rng(3)
    cut = 0
    for _ in range(400):
        whole = {a: (0, int(rng.integers(0, 6))) for a in "hrv"}
        where = tuple(
            Affine.of("h", int(rng.integers(-2, 3)))
            + Affine.of("r", int(rng.integers(-1, 2)))
            + int(rng.integers(-3, 4))
            for _ in range(int(rng.integers(1, 4)))
        )  # fmt: skip
        found = boxes(whole, where, ("h", "v", "r"))
        if found is None:
            continue
        cut += len(found) > 1
        want = [
            p for p in product(*(range(whole[a][1]) for a in "hrv"))
            if all(w.evaluate(dict(zip("hrv", p, strict=True))) >= 0 for w in where)
        ]  # fmt: skip
        assert sorted(points(found)) == want, (whole, where)
    assert cut > 20


def test_an_oblique_domain_is_left_alone():
    assert boxes({"i": (0, 100), "j": (0, 100)}, (Affine.of("i") - "j",), ("i", "j")) is None


@pytest.mark.parametrize("keep", [False, True])
def test_segments_cover_a_range_once(keep):
    for length, block, unit in product(range(40), (1, 3, 4, 14, 32), (1, 4, 16)):
        at = 0
        for s in segments(length, block, unit, keep):
            assert s.start == at
            assert s.count >= 1
            assert 1 <= s.size <= max(block, unit)
            at += s.count * s.size
        assert at == length
        sizes = [s.size for s in segments(length, block, unit, keep)]
        assert all(n % unit == 0 for n in sizes[:-1])
        assert len(sizes) <= 3


@pytest.mark.parametrize("n", [4095, 4096, 10**9])
def test_padding_of_any_length(n):
    """The edges are few however long the axis is."""
    h, r = Affine.of("h"), Affine.of("r")
    found = boxes({"h": (0, n), "r": (0, 3)}, (h + r - 1, n - h - r), ("h", "r"))
    assert found == [{"h": (0, 1), "r": (1, 2)}, {"h": (1, n - 2), "r": (0, 3)}, {"h": (n - 1, 1), "r": (0, 2)}]
