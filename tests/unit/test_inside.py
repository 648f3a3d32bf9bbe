"""Sums that leave out products with zeros around some data: when that is offered, taken, and right."""

from __future__ import annotations

from typing import Any

import pytest

from isam.approach.choice import Choice
from isam.approach.shipped.greedy import Greedy
from isam.compiler.offers.inside import inside
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from tests.pipeline import compiled, judge, simulated
from tests.subjects import uncovered

PADDED = """kernel padded(H, W, C, K)
  in    x: {T}[H, W, C]
  const w: {T}[3, 3, C, K]
  out   y: {T}[H, W, K]
  temp  z: {T}[H + 2, W + 2, C]
  {permits}
  forall h < H + 2, v < W + 2, c < C
    z[h, v, c] = {fill}
  forall h < H, v < W, c < C
    z[h + 1, v + 1, c] = x[h, v, c]
  forall h < H, v < W, k < K
    y[h, v, k] = 0
  forall h < H, v < W, k < K, r < 3, s < 3, c < C
    y[h, v, k] += z[h + r, v + s, c] * w[r, s, c, k]
"""
TWO = """kernel two()
  in    x: f32[6, 4]
  in    u: f32[5, 4]
  const w: f32[3, 4, 16]
  out   y: f32[6, 16]
  out   q: f32[5, 16]
  temp  z: f32[8, 4]
  temp  p: f32[7, 4]
  permits reassociate, contract, finite
  forall i < 8, c < 4
    z[i, c] = 0
  forall i < 6, c < 4
    z[i + 1, c] = x[i, c]
  forall i < 7, c < 4
    p[i, c] = 0
  forall i < 5, c < 4
    p[i + 1, c] = u[i, c]
  forall i < 6, k < 16
    y[i, k] = 0
  forall i < 6, k < 16, t < 3, c < 4
    y[i, k] += z[i + t, c] * w[t, c, k]
  forall i < 5, k < 16
    q[i, k] = 0
  forall i < 5, k < 16, t < 3, c < 4
    q[i, k] += p[i + t, c] * w[t, c, k]
"""
FINITE = "permits reassociate, contract, finite"
SMALL = {"H": 5, "W": 4, "C": 8, "K": 32}


def padded(permits: str = FINITE, T: str = "f32", fill: str = "0") -> Kernel:
    return parse_kernel(PADDED.format(permits=permits, T=T, fill=fill))


def laws(steps: Any) -> list[str]:
    return [s.transform.law for s in steps]


def offered(kernel: Kernel) -> Any:
    return inside(uncovered(kernel))[0]


def of_size(kernel: Kernel, **sizes: int) -> list[str]:
    return laws(offered(kernel.with_sizes({**SMALL, **sizes})))


def test_offered_where_zero_times_anything_is_zero():
    assert of_size(padded()) == ["unpad"]
    assert of_size(padded("permits nothing", "i32")) == ["unpad"]
    assert of_size(padded("permits reassociate, contract")) == []
    assert of_size(padded(fill="1")) == []
    assert offered(padded()) == ()  # of sizes that are not known


def test_offered_where_many_terms_are_left_out():
    """Of 3 taps each over n pixels two are left out, those at the ends: of 20 x 20 pixels more than a sixteenth."""
    assert (1 - 2 / 60) ** 2 < 1 - 1 / 16 < (1 - 2 / 63) ** 2
    assert of_size(padded(), H=20, W=20) == ["unpad"]
    assert of_size(padded(), H=21, W=21) == []
    assert of_size(padded(), H=31, W=31) == []


def test_every_border_is_left_out():
    assert laws(offered(parse_kernel(TWO))) == ["unpad", "unpad"]
    job = compiled(parse_kernel(TWO), {}, simulated("host-avx512"), check=True)
    judge(parse_kernel(TWO), {}, job, 1)


class Takes(Greedy):
    """Greedy, but of several kernels it takes the one that leaves most out."""

    def variant(self, choice: Choice) -> Any:
        return max(choice.options, key=lambda o: any(s.startswith("unpad") for s in o.ahead))


@pytest.mark.parametrize("on", ["host-avx512", "host-avx2", "host-generic"])
@pytest.mark.parametrize("T", ["f32", "i32"])
def test_what_is_left_is_right_and_proved(T, on):
    kernel, sizes = padded(FINITE if T == "f32" else "", T), {**SMALL, "W": 3}
    job = compiled(kernel, sizes, simulated(on), Takes(), check=True)
    assert job.cover is not None
    assert [str(s).split(" ")[0] for s in job.cover.steps] == ["unpad"]
    judge(kernel, sizes, job, 2)


def test_taken_where_it_takes_less_time():
    sizes = {"H": 7, "W": 7, "C": 128, "K": 128}
    job = compiled(padded(), sizes, simulated("host-avx512"))
    assert job.cover is not None
    assert [str(s).split(" ")[0] for s in job.cover.steps] == ["unpad"]
    asked = next(d for d in job.trace.decisions if d.point == "variant")
    assert asked.count == 2
