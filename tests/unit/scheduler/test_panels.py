"""What is laid out anew before it is read: dimensions that two axes count, panels read side by side."""

from __future__ import annotations

import pytest

from isam.compiler.stages import new_job, run_stages
from isam.ir.text import parse_kernel
from isam.schedule.tree import Schedule
from isam.scheduler.nests import Nest, nests_of
from isam.scheduler.plans.cache import beside, cache_blocks
from tests.pipeline import compiled, judge, simulated

SPLIT = """kernel split(M, L, D)
  in  Q: f32[M, D]
  in  K: f32[{step} * (L - 1) + 16, D]
  out Y: f32[M, L, 16]
  forall i < M, o < L, l < 16
    Y[i, o, l] = 0
  forall i < M, o < L, l < 16, d < D
    Y[i, o, l] += Q[i, d] * K[{step} * o + l, d]
"""


def scheduled(text: str, sizes: dict[str, int]) -> Schedule:
    job = compiled(parse_kernel(text), sizes, simulated("host-avx512"))
    assert job.schedule is not None
    judge(parse_kernel(text), sizes, job, 3)
    return job.schedule


@pytest.mark.parametrize("outer", [3, 4, 9])
def test_a_dimension_that_two_axes_count_is_packed_as_one(outer):
    made = scheduled(SPLIT.format(step=16), {"M": 24, "L": outer, "D": 12})
    assert [s.bytes for s in made.workspace if s.name.startswith("K.")] == [outer * 16 * 12 * 4]


def test_a_dimension_in_which_windows_overlap_is_not():
    made = scheduled(SPLIT.format(step=8), {"M": 24, "L": 4, "D": 12})
    assert not any(s.name.startswith("K.") for s in made.workspace)


GATES = """kernel gates(T, B, H)
  in    x: f32[T, B, H]
  const w: f32[3, H, H]
  out   Y: f32[T, 3, B, H]
  forall t < T, q < 3, i < B, j < H
    Y[t, q, i, j] = 0
  forall t < T, q < 3, i < B, j < H, k < H
    Y[t, q, i, j] += x[t, i, k] * w[q, k, j]
"""


def main_nest(sizes: dict[str, int], text: str = GATES) -> Nest:
    system = simulated("host-avx512")
    job = run_stages(new_job(parse_kernel(text), system, sizes, None, check=False), "cover")
    assert job.cover is not None
    return max(nests_of(job.cover, system), key=lambda n: n.calls())


WIDTHS = [({"q": 3, "i": 4, "t": 1}, 3), ({"q": 1, "i": 4, "t": 1}, 3), ({"q": 1, "i": 4, "t": 2}, 1),
          ({"q": 2, "i": 1, "t": 1}, 3)]  # fmt: skip


@pytest.mark.parametrize(("width", "want"), WIDTHS)
def test_panels_that_loops_inside_go_through_share_the_cache(width, want):
    """Loops of one row are outside those of blocks; ``t`` and ``i`` read the panels of every ``q`` again."""
    assert beside(main_nest({"T": 8, "B": 32, "H": 64}), "j", {**width, "j": 32}) == want


@pytest.mark.parametrize("cache", [1 << 19, 1 << 20, 1 << 21])
def test_blocks_of_columns_are_so_many_that_all_panels_stay(cache):
    nest = main_nest({"T": 8, "B": 32, "H": 1024})
    blocks = dict(cache_blocks(nest, {"t": 1, "q": 3, "i": 4, "j": 32}, cache))
    held = 3 * blocks.get("j", 1024) * blocks.get("k", 1024) * 4
    assert cache // 4 < held <= cache


BYTES = """kernel bytes(M, N, K)
  in    A: u8[M, K]
  const B: i8[K, N]
  out   C: i32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += i32(A[i, k]) * i32(B[k, j])
"""


def test_blocks_are_sized_by_the_bytes_of_what_they_hold():
    """Factors are bytes; results, four times as wide, are read and written once for every part of the sum."""
    nest = main_nest({"M": 1500, "N": 5124, "K": 2048}, BYTES)
    blocks = dict(cache_blocks(nest, {"i": 6, "j": 48}, 1 << 20))
    assert "k" not in blocks, "all of the sum at once"
    assert (1 << 20) // 4 < blocks["j"] * 2048 <= 1 << 20
