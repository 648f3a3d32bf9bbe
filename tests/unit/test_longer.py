"""Axes of a sum put together where groups of an instruction would stay half empty."""

from __future__ import annotations

from typing import Any

import pytest

from isam.compiler.offers.longer import longer_rows
from isam.ir.text import parse_kernel
from tests.pipeline import compiled, judge, simulated
from tests.subjects import of_job

BYTES = """kernel bytes(H, W, C, K, S)
  in    x: u8[H, W + S - 1, C]
  const w: i8[S, C, K]
  out   y: i32[H, W, K]
  temp  z: u8[H, W + S - 1, C]
  forall h < H, v < W + S - 1, c < C
    z[h, v, c] = max(x[h, v, c], 3)
  forall h < H, v < W, k < K
    y[h, v, k] = 0
  forall h < H, v < W, k < K, s < S, c < C
    y[h, v, k] += i32(z[h, v + s, c]) * i32(w[s, c, k])
"""
APART = BYTES.replace("z[h, v + s, c]", "z[h, v + 2 * s, c]").replace("W + S - 1", "W + 2 * S - 2")
SIZES = {"H": 6, "W": 9, "S": 5}


def made(text: str, c: int, k: int = 32) -> Any:
    return compiled(parse_kernel(text), {**SIZES, "C": c, "K": k}, simulated("host-avx512"))


def test_taps_and_channels_become_one_row():
    """Three bytes would be a group of four each; fifteen are four groups."""
    job = made(BYTES, 3)
    judge(parse_kernel(BYTES), {**SIZES, "C": 3, "K": 32}, job, 7)
    taken = next(d.label for d in job.trace.decisions if d.point == "variant")
    assert taken.startswith("fuse-dimensions (buffer z, dim 1)")
    product = next(m for m in job.cover.mappings if m.instruction.name.startswith("dot4"))
    lengths = {a.name: a.extent.const for a in job.cover.kernel.statements[product.statements[-1]].domain.axes}
    assert lengths[dict(product.axes)["p"]] == 15


@pytest.mark.parametrize(("text", "c", "tried"), [(BYTES, 4, 0), (BYTES, 8, 0), (BYTES, 37, 0), (APART, 3, 1)])
def test_rows_that_are_full_or_do_not_lie_in_a_row_stay(text, c, tried):
    job = made(text, c)
    of = of_job(job)
    assert len(list(of.unfilled)) == tried
    assert not any(longer_rows(of))
