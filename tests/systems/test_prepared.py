"""What constants alone determine is made once, when they are bound, and kept (ADR 20)."""

from __future__ import annotations

import numpy as np
import pytest

import isam
from isam.approach.choice import Choice
from isam.approach.shipped.greedy import Greedy
from isam.ir import interp
from isam.ir.dataflow import determined
from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, distinct
from tests.pipeline import compiled, judge, simulated

FOLDED = """kernel folded(M, N)
  in    x: f32[M, N]
  const g: f32[N]
  const v: f32[N]
  out   y: f32[M, N]
  forall j < N
    s[j] = g[j] * rsqrt(v[j] + 0.001)
    u[j] = s[j] * s[j]
  forall i < M, j < N
    y[i, j] = x[i, j] * s[j] + u[j]
"""


class Unbound(Greedy):
    """Makes everything in every call."""

    def bind(self, choice: Choice) -> bool:
        return False


def arrays(m: int = 7, n: int = 37) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {"x": rng.random((m, n), np.float32), "g": rng.random(n, np.float32), "v": rng.random(n, np.float32)}


def in_call(f) -> set[str]:
    return {n.instruction for n in distinct(f.schedule.call) if isinstance(n, Issue)}


def test_it_is_made_before_the_calls_and_right_with_every_binding() -> None:
    given = arrays()
    f = isam.compile(parse_kernel(FOLDED), sizes={"M": 7, "N": 37}, check=True, cache=False)
    assert not any(name.startswith("rsqrt") for name in in_call(f))
    assert {w.name for w in f.schedule.workspace if w.bound} >= {"s", "u"}
    want = interp.run(f.job.kernel, given)["y"]
    one, other = f.bind(g=given["g"], v=given["v"]), f.bind(g=2 * given["g"], v=given["v"])
    for _ in range(2):  # each keeps what it was bound to
        np.testing.assert_allclose(one(given["x"]), want, rtol=1e-5)
        np.testing.assert_allclose(other(given["x"]), interp.run(f.job.kernel, given | {"g": 2 * given["g"]})["y"],
                                   rtol=1e-5)  # fmt: skip
    np.testing.assert_allclose(f(**given), want, rtol=1e-5)


def test_an_approach_may_not_want_it() -> None:
    f = isam.compile(parse_kernel(FOLDED), sizes={"M": 7, "N": 37}, approach=Unbound(), check=True, cache=False)
    assert any(name.startswith("rsqrt") for name in in_call(f))
    given = arrays()
    np.testing.assert_allclose(f(**given), interp.run(f.job.kernel, given)["y"], rtol=1e-5)


LOOP = """  forall j < N
    s[j] = g[j]
  loop t < 2
    forall j < N
      s[j] = s[j] + v[j]
  forall j < N
"""


@pytest.mark.parametrize(("old", "new", "left"), [
    ("", "", {"s", "u"}),
    ("v[j] + 0.001", "x[0, j]", set()),  # what a call is given
    ("  forall i < M, j < N\n", "  forall i < M, j < N\n    s[j] = 1\n", set()),  # written again where it is read
    ("* s[j] + u[j]\n", "* s[j] + u[j]\n  forall j < N\n    s[j] = g[j]\n", set()),  # or after that
    ("s[j] * s[j]", "0.5", {"s"}),  # numbers alone
    ("  forall j < N\n    s[j] = g[j] * rsqrt(v[j] + 0.001)\n", LOOP, set()),
])
def test_only_what_nothing_else_determines(old: str, new: str, left: set[str]) -> None:
    kernel = parse_kernel(FOLDED.replace(old, new, 1) if old else FOLDED).with_sizes({"M": 3, "N": 5})
    assert determined(kernel) & {"s", "u"} == left


def test_what_swells_is_made_in_the_call() -> None:
    """A number for each element of a large array is read more slowly than it is made."""
    text = """kernel outer(M, N)
  in    x: f32[M, N]
  const g: f32[M]
  const v: f32[N]
  out   y: f32[M, N]
  forall i < M, j < N
    s[i, j] = g[i] * v[j]
    y[i, j] = x[i, j] + s[i, j]
"""
    for n, kept in ((64, False), (2, True)):
        f = isam.compile(parse_kernel(text), sizes={"M": n, "N": 37}, check=True, cache=False)
        assert ("s" in {w.name for w in f.schedule.workspace if w.bound}) is kept


def test_what_is_not_defined_is_not_laid_out_anew() -> None:
    """Of a triangle of products of constants what is packed for a sum along another axis is what was made, no more."""
    text = """kernel triangle(M)
  in    x: f32[3, M]
  const f: f32[M + 1, 3, M]
  const g: f32[M + 1, 3, M]
  out   y: f32[3, M]
  forall j < M, k < 3
    y[k, j] = x[k, j]
  forall i < M + 1, j < M, k < 3 where j <= i
    t[i, j, k] = f[i, k, j] * g[i, k, j]
    y[k, j] += t[i, j, k]
"""
    for on in ("host", "host-generic"):
        kernel = parse_kernel(text)
        judge(kernel, {"M": 4}, compiled(kernel, {"M": 4}, simulated(on), check=True))


PRODUCTS = """kernel products(M, N, K, L)
  in    A: f32[M, K]
  const P: f32[K, L]
  const Q: f32[L, N]
  out   C: f32[M, N]
  temp  T: f32[K, N]
  forall k < K, n < N
    T[k, n] = 0
  forall k < K, n < N, l < L
    T[k, n] += P[k, l] * Q[l, n]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * T[k, j]
"""


def test_a_product_of_two_constants() -> None:
    """What is begun before that which goes into it is known."""
    sizes = {"M": 4, "N": 32, "K": 32, "L": 32}
    kernel = parse_kernel(PRODUCTS)
    assert determined(compiled(kernel, sizes, simulated("toy")).kernel) >= {"T"}
    for on in ("toy", "host-avx2"):
        job = compiled(kernel, sizes, simulated(on), check=True)
        judge(kernel, sizes, job)
        nests = {n.nest for n in distinct(job.schedule.call) if isinstance(n, Issue) and n.nest is not None}
        done = {i for n in nests for i in job.cover.mappings[job.schedule.nests[n].mapping].statements}
        made = {i for i, s in enumerate(job.cover.kernel.statements) if s.dest.buffer == "T"}
        assert made
        assert not made & done
