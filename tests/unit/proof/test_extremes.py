"""Greatest values of elements, judged by value: what is accepted gives the same, by the interpreter."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from isam.ir.interp import run
from isam.ir.text import parse_kernel
from isam.proof.equivalence import Equivalence

HEAD = """kernel k()
  permits reassociate{finite}
  in x: {dtype}[2]
  in v: {dtype}[2, 2]
  in u: {dtype}[2, 2]
  out y: {dtype}[2]
  temp b: bool[2]
  temp f: {dtype}[2]
  temp t: {dtype}[2, 2]
  temp s: {dtype}[2]
  forall i < 2
    b[i] = x[i] > 0
  forall i < 2
    f[i] = {dtype}(b[i])
  forall i < 2, k < 2
    t[i, k] = v[i, k]
  forall i < 2
    s[i] = 0
  forall i < 2
    y[i] = {least}
"""
GREATEST = "  forall i < 2, k < 2\n    y[i] max= {}[i, k]\n"
LOWER = "  forall i < 2, k < 2 where i >= k\n    y[i] max= t[i, k]\n"
BODIES = [
    # a zero that nothing is left of, greater than what comes later or not
    "  t[0, 0] = f[0] - f[0]\n" + LOWER + GREATEST.format("u"),
    "  t[0, 0] = 0\n" + LOWER + GREATEST.format("u"),
    LOWER + "  y[0] = {least}\n" + GREATEST.format("u"),
    LOWER + "  y[0] = 0\n" + GREATEST.format("u"),
    # a sum of elements, and the elements
    "  forall i < 2, k < 2\n    s[i] += v[i, k]\n  forall i < 2\n    y[i] = max(y[i], s[i])\n",
    "  forall i < 2, k < 2\n    s[i] += v[i, k]\n  s[0] = x[0]\n  forall i < 2\n    y[i] = max(y[i], s[i])\n",
    GREATEST.format("v"),
    GREATEST.format("v") + "  y[0] = x[0]\n",
    # a product of elements, twice another
    "  s[0] = x[0] * v[0, 0]\n  s[1] = 2 * x[1] * v[1, 1]\n  forall i < 2\n    y[i] = max(y[i], s[i])\n",
    "  forall i < 2\n    y[i] = max(y[i], x[i])\n",
    # nothing but the least
    "  t[0, 0] = {least}\n  t[0, 1] = {least}\n" + GREATEST.format("t"),
    GREATEST.format("v") + "  y[0] = {least}\n",
    GREATEST.format("v") + "  y[0] = 0\n",
    "  forall i < 2, k < 2 where i >= 1\n    y[i] max= v[i, k]\n",
]  # fmt: skip
LEAST = [(10, 11), (10, 13), (11, 13)]  # of floats it is known that nothing is less
CASES = [
    ("f32", "", np.float32, "-inf", [(1, 3), *LEAST]),
    ("f32", ", finite", np.float32, "-inf", [(0, 1), (0, 3), (1, 3), *LEAST]),
    ("i32", "", np.int32, "-2147483648", [(0, 1)]),
]


@pytest.mark.parametrize(("dtype", "finite", "held", "least", "same"), CASES)
def test_greatest_values(dtype: str, finite: str, held: Any, least: str, same: list[tuple[int, int]]) -> None:
    text = [(HEAD + b).format(dtype=dtype, finite=finite, least=least) for b in BODIES]
    kernels, judge, rng = [parse_kernel(t) for t in text], Equivalence(), np.random.default_rng(3)
    inputs = [{n: rng.integers(-9, most, shape).astype(held) for n, shape in (("x", 2), ("v", (2, 2)), ("u", (2, 2)))}
              for most in (9, 9, -1, 9)]  # fmt: skip
    with np.errstate(all="ignore"):
        results = [[run(k, i)["y"].tolist() for i in inputs] for k in kernels]
    for a, b in product(range(len(kernels)), repeat=2):
        if judge.judge(kernels[a], kernels[b]):
            assert results[a] == results[b], (a, b)
        else:
            assert a != b
            assert (min(a, b), max(a, b)) not in same
