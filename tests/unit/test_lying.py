"""Temporaries that nobody said how they lie: a dimension that fills vectors comes last."""

from __future__ import annotations

from typing import Any

import pytest

from isam.compiler.offers.lying import longest_last
from isam.ir.text import parse_kernel
from tests.pipeline import compiled, judge, simulated

SUMS = """kernel sums(H, W, C)
  in  x: u8[H, W + C - 1]
  out y: i32[H, W]
  forall h < H, v < W
    y[h, v] = 0
  forall h < H, v < W, c < C
    y[h, v] += i32(x[h, v + c])
"""
DECLARED = """kernel sums(H, W, C)
  in   x: u8[H, W + C - 1]
  out  y: i32[H, W]
  temp t: i32[H, W, C]
  forall h < H, v < W, c < C
    t[h, v, c] = i32(x[h, v + c])
  forall h < H, v < W
    y[h, v] = 0
  forall h < H, v < W, c < C
    y[h, v] += t[h, v, c]
"""


def made(text: str, **sizes: int) -> Any:
    return compiled(parse_kernel(text), sizes, simulated("host-avx512"))


def lanes(job: Any) -> set[str]:
    return {k for m in job.cover.mappings if m.instruction.name.startswith("cast") for _, k in m.axes}


@pytest.mark.parametrize("taps", [3, 5])
def test_pixels_lie_in_lanes_where_taps_fill_none(taps):
    """Three apart, where moves take them so; five apart, where another dimension comes last."""
    sizes = {"H": 5, "W": 70, "C": taps}
    job = made(SUMS, **sizes)
    assert lanes(job) == {"v"}
    judge(parse_kernel(SUMS), sizes, job, 3)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (DECLARED, {"H": 5, "W": 70, "C": 3}),  # as it was said
        (SUMS, {"H": 5, "W": 70, "C": 9}),  # taps fill more than half
        (SUMS, {"H": 5, "W": 15, "C": 3}),  # nothing fills a vector
    ],
)
def test_what_was_said_or_is_full_stays(text, sizes):
    job = made(text, **sizes)
    assert not longest_last(job.kernel, job.cover)


def test_what_is_offered_was_half_empty():
    kernel = parse_kernel(SUMS).with_sizes({"H": 5, "W": 70, "C": 5})
    job = made(SUMS, H=5, W=70, C=5)
    plain = next(c.cover for c in job.candidates if not c.ahead)
    steps = longest_last(kernel, plain)
    assert [(s.transform.law, s.site["dim"]) for s in steps] == [("permute-dimensions", 1)]
