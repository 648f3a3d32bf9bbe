"""Codes of the reference's faults are explained, and chunks cover every box once in lexicographic order."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

import isam.ir.points as points
from isam.ir.codes import CODES


def test_every_code_raised_is_explained():
    for name in ("points", "interp", "oracle"):
        text = (Path(points.__file__).parent / f"{name}.py").read_text(encoding="utf-8")
        for code in re.findall(r'"(I\d+)"', text):
            assert code in CODES


@pytest.mark.parametrize("extents", [(), (1,), (5,), (3, 4), (2, 3, 5), (7, 1, 2), (1, 1, 9), (4, 4, 4)])
@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 16, 1000])
def test_chunks_are_the_box_in_order(monkeypatch, extents, chunk):
    monkeypatch.setattr(points, "CHUNK", chunk)
    seen = []
    for starts, shape in points._boxes(extents):
        assert len(starts) == len(shape) == len(extents)
        seen += list(itertools.product(*(range(s, s + n) for s, n in zip(starts, shape, strict=True))))
    assert seen == list(itertools.product(*(range(e) for e in extents)))
