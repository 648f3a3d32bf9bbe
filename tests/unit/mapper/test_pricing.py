"""What a mapping costs decides which axes lie in lanes."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_kernel
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
