"""How long loops wait for caches: what they go through once, and what steps go through again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.cost.swept import waiting
from isam.ir.text import parse_kernel
from isam.system.hierarchy import given, levels
from tests.pipeline import compiled, simulated

HOST = simulated("host-avx512")
SUM = """kernel sums(N)
  in  x: f32[N]
  in  z: f32[N]
  out y: f32[N]
  forall i < N
    y[i] = x[i] + z[i]
"""
STEPS = """kernel steps(T, N)
  in    x: f32[N]
  inout h: f32[N]
  loop t < T
    forall i < N
      h[i] = h[i] + x[i]
"""
BLOCKS = """kernel blocks(C, S, N)
  in    x: f32[C, N]
  inout h: f32[N]
  loop c < C
    loop s < S
      forall i < N
        h[i] = h[i] + x[c, i]
"""


def waits(text: str, **sizes: int) -> float:
    schedule = compiled(parse_kernel(text), sizes, HOST).schedule
    assert schedule is not None
    return waiting(schedule)


@pytest.mark.parametrize("n", [1 << 14, 1 << 19, 1 << 23])
def test_what_is_written_comes_and_goes(n: int) -> None:
    assert waits(SUM, N=n) == pytest.approx((4 * n * (1 + 1 + 2)) / given(3 * 4 * n, HOST))


def test_what_the_nearest_cache_holds_is_not_waited_for() -> None:
    assert waits(SUM, N=1 << 10) == 0


def test_steps_go_through_all_again() -> None:
    n = 1 << 20
    rate = given(2 * 4 * n, HOST)
    assert [waits(STEPS, T=t, N=n) for t in (2, 5)] == pytest.approx([t * (4 * n * (1 + 2)) / rate for t in (2, 5)])


def test_what_a_step_works_on_comes_from_the_cache_that_holds_it() -> None:
    """All blocks of ``x`` lie in memory; of what the steps of one work on, a cache holds all."""
    n, blocks, steps = 1 << 18, 32, 4
    near, far = given(2 * 4 * n, HOST), given((blocks + 1) * 4 * n, HOST)
    assert near > far
    first, every = (blocks + 2) * 4 * n, blocks * steps * (1 + 2) * 4 * n
    assert waits(BLOCKS, C=blocks, S=steps, N=n) == pytest.approx(first / far + (every - first) / near)


def test_without_known_caches_nothing_waits() -> None:
    bare = replace(HOST, memories={n: replace(m, bandwidth=None) for n, m in HOST.memories.items()})
    assert levels(bare)
    schedule = compiled(parse_kernel(SUM), {"N": 1 << 19}, bare).schedule
    assert schedule is not None
    assert waiting(schedule) == 0
