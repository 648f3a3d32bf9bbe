"""What a block reads of a buffer that it overwrites is copied first, so that both may go through it together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import isam
from isam.compiler.offers.aside import set_aside
from isam.ir.text import parse_kernel
from tests.pipeline import compiled, judge, simulated
from tests.subjects import uncovered

PATHS = """kernel paths(N)
  inout d: f32[N, N]
  loop k < N
    forall i < N, j < N
      s[i, j] = d[i, k] + d[k, j]
      d[i, j] min= s[i, j]
"""
COPIED = """kernel copied(N)
  inout d: f32[N, N]
  loop k < N
    forall j < N
      r[j] = d[k, j]
    forall i < N
      c[i] = d[i, k]
    forall i < N, j < N
      d[i, j] min= c[i] + r[j]
"""
ELIMINATION = """kernel elimination(N)
  inout d: f32[N, N]
  loop k < N
    forall i < N, j < N where i > k, j > k
      d[i, j] += -(d[i, k] * d[k, j])
"""


def made(text: str, n: int, on: str = "host-avx512") -> tuple[Any, Any]:
    kernel = parse_kernel(text)
    return kernel, compiled(kernel, {"N": n}, simulated(on))


@pytest.mark.parametrize("text", [PATHS, COPIED], ids=["as read", "copied"])
def test_rows_and_columns_are_set_aside_however_it_was_written(text: str) -> None:
    kernel, job = made(text, 33)
    assert [s.split(" ")[0] for s in job.taken.cover.steps] == ["unfold", "unfold"]
    judge(kernel, {"N": 33}, job, 3)


@pytest.mark.parametrize("on", ["toy", "casestudy", "host-generic"])
def test_other_machines(on: str) -> None:
    kernel, job = made(PATHS, 6, on)
    judge(kernel, {"N": 6}, job, 3)


def test_what_is_not_overwritten_stays() -> None:
    """Elimination writes neither the row nor the column that it reads."""
    kernel = parse_kernel(ELIMINATION).with_sizes({"N": 9})
    assert set_aside(uncovered(kernel)) == ((),)
    assert set_aside(uncovered(parse_kernel(PATHS).with_sizes({"N": 9})))[0]


def test_native_shortest_paths() -> None:
    d = np.random.default_rng(0).random((40, 40), "f4")
    got, want = d.copy(), d.astype("f8")
    isam.compile(PATHS, sizes={"N": 40}, cache=False)(got)
    for k in range(40):
        want = np.minimum(want, want[:, k : k + 1] + want[k])
    np.testing.assert_allclose(got, want, rtol=1e-5)
