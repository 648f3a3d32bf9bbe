"""Temporaries that nobody said how they lie: a dimension that fills vectors comes last."""

from __future__ import annotations

from typing import Any

import pytest

from isam.compiler.offers.lying import alike_last, longest_last
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


MAX_PLUS = """kernel max_plus(M, K)
  in  v: f32[K]
  in  a: f32[K, M]
  out y: f32[M]
  forall j < M
    y[j] = -inf
  forall {order}
    y[j] max= v[i] + a[i, j]
"""


@pytest.mark.parametrize("order", ["i < K, j < M", "j < M, i < K"])
def test_sums_lie_as_the_table_does_however_the_block_was_written(order):
    kernel, sizes = parse_kernel(MAX_PLUS.format(order=order)), {"M": 48, "K": 33}
    job = compiled(kernel, sizes, simulated("host-avx512"))
    assert {m.instruction.name for m in job.cover.mappings} == {"copy_s_f32", "add_vs_f32", "acc_max_v_f32"}
    judge(kernel, sizes, job, 3)


def test_a_declared_temporary_lies_as_it_was_said():
    text = MAX_PLUS.format(order="j < M, i < K").replace("y[j] max= v[i] + a[i, j]", "t[j, i] = v[i] + a[i, j]")
    text += "  forall j < M, i < K\n    y[j] max= t[j, i]\n"
    text = text.replace("  forall j < M\n", "  temp t: f32[M, K]\n  forall j < M\n", 1)
    job = compiled(parse_kernel(text), {"M": 48, "K": 33}, simulated("host-avx512"))
    plain = next(c.cover for c in job.candidates if not c.ahead)
    assert not alike_last(plain.kernel, plain)
    judge(parse_kernel(text), {"M": 48, "K": 33}, job, 3)
