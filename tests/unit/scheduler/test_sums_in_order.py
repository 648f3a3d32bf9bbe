"""Without leave to reassociate, sums take their terms in the order of the kernel's axes, however they are tiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from isam.approach.choice import Choice
from isam.approach.shipped.greedy import Greedy
from isam.compiler import Job
from isam.ir import interp
from isam.ir.text import parse_kernel
from isam.runtime.entry import Entry
from isam.system.load import load_system
from tests.pipeline import compiled

# the product is where most calls are: to it, i and j are axes like any other
PRODUCTS = """kernel products(M, N)
  permits nothing
  in  x: f64[M, 4]
  in  y: f64[M, N, N]
  out z: f64[M, 4]
  forall k < M, l < 4
    z[k, l] = 0
  forall i < N, j < N, k < M, l < 4
    z[k, l] += x[k, -l + 3] * y[k, j, N - i - 1]
"""
# what is summed over i and j is made over j and i
TURNED = """kernel turned(N)
  permits nothing
  in  x: f64[N, N]
  in  y: f64[N, N]
  out z: f64[1]
  z[0] = 0
  forall j < N, i < N
    t[j, i] = x[j, i] * y[i, j]
  forall i < N, j < N
    z[0] += t[j, i]
"""
# two sums of the same values in two orders
BOTH = """kernel both(N)
  permits nothing
  in  x: f64[N, N]
  out y: f64[1]
  out z: f64[1]
  y[0] = 0
  z[0] = 0
  forall i < N, j < N
    t[i, j] = x[i, j] * x[i, j]
    y[0] += t[i, j]
  forall j < N, i < N
    z[0] += t[i, j]
"""


@pytest.mark.parametrize("text", [PRODUCTS, TURNED, BOTH])
@pytest.mark.parametrize("n", [3, 5])
def test_the_result_is_the_interpreters_bit_for_bit(text: str, n: int) -> None:
    kernel = parse_kernel(text)
    sizes = {s.name: n if s.name == "N" else 2 for s in kernel.syms}
    job: Job = compiled(kernel, sizes, load_system("host-generic"), check=True)
    assert job.schedule is not None
    rng = np.random.default_rng(n)
    for _ in range(20):
        shapes = {b.name: [int(d) for d in b.shape] for b in kernel.with_sizes(sizes).arguments if b.role == "in"}
        given = {n: rng.standard_normal(shape) * 10.0 ** rng.integers(0, 12, shape) for n, shape in shapes.items()}
        got = Entry(job.artifact)(**given)
        for g, w in zip(got if isinstance(got, tuple) else (got,), interp.run(kernel, given).values(), strict=True):
            np.testing.assert_array_equal(g, w)


class Nth(Greedy):
    """One plan after the other."""

    name, why = "nth", "one after the other"

    def __init__(self, n: int):
        self.n, self.most = n, 0

    def tile(self, choice: Choice) -> Any:
        self.most = max(self.most, len(choice.options))
        return choice.options[self.n % len(choice.options)]


@pytest.mark.parametrize("text", [PRODUCTS, TURNED, BOTH])
def test_every_plan_that_is_offered_keeps_the_order(text: str) -> None:
    kernel, n, most = parse_kernel(text), 0, 1
    sizes = {s.name: 5 if s.name == "N" else 2 for s in kernel.syms}
    while n < most:
        approach = Nth(n)
        compiled(kernel, sizes, load_system("host-generic"), approach, check=True)
        n, most = n + 1, approach.most
    assert most > 1
