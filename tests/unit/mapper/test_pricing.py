"""What a mapping costs decides which axes lie in lanes."""

from __future__ import annotations

import pytest

from isam.ir.spacing import Spacing
from isam.ir.text import parse_kernel
from isam.mapper.match import match
from isam.mapper.pricing import Pricing
from tests.pipeline import compiled, simulated


@pytest.mark.parametrize(("width", "lanes"), [(28, "k"), (14, "k"), (56, "k"), (64, "v")])
def test_the_result_of_a_sum_is_laid_out_once(width, lanes):
    """Channels first: where pixels of a row do not fill vectors, filters do, though their results lie rows apart."""
    kernel = parse_kernel("""
kernel channels_first(H, C, K)
  in    x: f32[C, H + 2, H + 2]
  const w: f32[K, C, 3, 3]
  out   y: f32[K, H, H]
  forall h < H, v < H, k < K
    y[k, h, v] = 0
  forall h < H, v < H, k < K, r < 3, s < 3, c < C
    y[k, h, v] += x[c, h + r, v + s] * w[k, c, r, s]
""")
    cover = compiled(kernel, {"H": width, "C": 32, "K": 32}, simulated("host-avx512")).cover
    assert [dict(m.axes)["j"] for m in cover.mappings if m.instruction.name == "fma_sv_f32"] == [lanes]


def test_elements_that_lie_alone_are_gathered_in_whatever_memory_they_are_wanted():
    """Pairs of bf16 lie side by side in the filters' rows or the image's; those of two rows and two pixels do not."""
    kernel = parse_kernel("""
kernel first_layer(H, K)
  permits reassociate, contract, flush
  in    x: bf16[2 * H + 5, 2 * H + 5, 3]
  const w: bf16[7, 7, 3, K]
  out   y: f32[H, H, K]
  forall h < H, v < H, k < K
    y[h, v, k] = 0
  forall h < H, v < H, k < K, r < 7, s < 7, c < 3
    y[h, v, k] += f32(x[2 * h + r, 2 * v + s, c]) * f32(w[r, s, c, k])
""")
    cover = compiled(kernel, {"H": 16, "K": 32}, simulated("host-avx512")).cover
    assert [dict(m.axes)["j"] for m in cover.mappings if m.instruction.name == "dot2_bf16"] == ["k"]


ROWS = """kernel rows(M, 1 <= N)
  in  x: f32[M, N]
  out y: f32[M, N]
  forall i < M
    y[i, 0] = x[i, 0]
  loop j < N - 1
    forall i < M
      y[i, j + 1] = {before} + x[i, j + 1]
"""


@pytest.mark.parametrize(("on", "lanes"), [("host-avx512", True), ("casestudy", False)])
def test_rows_that_steps_go_along_are_taken_some_at_a_time_where_a_line_stays_near(on, lanes):
    """Repacking them costs but a line's part for each of its elements, on machines with caches."""
    kernel, system = parse_kernel(ROWS.format(before="y[i, j]")).with_sizes({"M": 64, "N": 64}), simulated(on)
    spacing = system.compute.spacing
    prices = {}
    for cached in (True, False):
        pricing = Pricing(kernel, spacing=Spacing({}, cached=cached))
        found = [pricing.candidate(m) for i in ("add_vv_f32", "add_ss_f32") if i in system.instructions
                 for m in match(kernel, system.instructions[i], strided=True)]  # fmt: skip
        prices[cached] = {c.mapping.instruction.name: c.calls for c in found}
    assert spacing.cached == lanes
    if lanes:
        assert prices[True]["add_vv_f32"] < prices[True]["add_ss_f32"]
        assert prices[False]["add_vv_f32"] > prices[True]["add_vv_f32"]
        assert prices[False]["add_ss_f32"] == prices[True]["add_ss_f32"]
