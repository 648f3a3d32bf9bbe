"""Registered functions do the work: chosen by the mapper, called by the simulator's semantics or by native code."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import isam
from isam.system.load import load_system

GEMV = """instruction dgemv(M, N)
  in  A: f64[M, N]
  in  x: f64[N]
  out y: f64[M]
  forall i < M
    y[i] = 0
  forall i < M, j < N
    y[i] += A[i, j] * x[j]
"""
KERNEL = GEMV.replace("instruction dgemv", "kernel mv")
BATCHED = """kernel batched(B, M, N)
  in  x: f64[B, N]
  in  A: f64[B, M, N]
  out y: f64[B, M]
  forall b < B, i < M
    y[b, i] = 0
  forall b < B, i < M, j < N
    y[b, i] += x[b, j] * A[b, i, j]
"""


def whole(r: np.random.Generator, *shape: int) -> np.ndarray:
    """Whole numbers: every order of a sum gives the same in f64."""
    return r.integers(-99, 100, shape).astype(np.float64)


@pytest.mark.parametrize("system", ["host", "toy"])
def test_a_python_function(system: str) -> None:
    seen: list[tuple[int, ...]] = []

    @isam.instruction(GEMV)
    def dgemv(A, x, y):
        seen.append(A.shape)
        y[...] = A @ x

    r = np.random.default_rng(1)
    A, x = whole(r, 37, 53), whole(r, 53)
    fn = isam.compile(isam.parse(KERNEL), on=load_system(system).extended(dgemv), require="dgemv", check=False)
    seen.clear()
    np.testing.assert_array_equal(fn(A, x), A @ x)
    assert seen == ([(37, 53)] if system == "host" else [])  # the simulator runs the declaration itself


def test_a_batch_calls_it_once_each_on_views_in_place() -> None:
    seen: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    @isam.instruction(GEMV)
    def dgemv(A, x, y):
        seen.append((A.shape, A.strides))
        y[...] = A @ x

    r = np.random.default_rng(2)
    A, x = whole(r, 3, 5, 7), whole(r, 3, 7)
    fn = isam.compile(isam.parse(BATCHED), on=load_system("host").extended(dgemv), require="dgemv", check=False)
    seen.clear()
    np.testing.assert_array_equal(fn(x, A), np.einsum("bij,bj->bi", A, x))
    assert seen == [((5, 7), (56, 8))] * 3


def test_a_c_function_is_called_directly() -> None:
    count = [0]

    @ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 9)
    def c_gemv(M, N, A, lda, ia, x, ix, y, iy):
        count[0] += 1
        at = ctypes.c_double.from_address
        for i in range(M):
            total = sum(at(A + 8 * (lda * i + ia * j)).value * at(x + 8 * ix * j).value for j in range(N))
            at(y + 8 * iy * i).value = total

    made = isam.instruction(GEMV)(c_gemv)
    assert made.address == ctypes.cast(c_gemv, ctypes.c_void_p).value
    fn = isam.compile(isam.parse(KERNEL), on=load_system("host").extended(made), require="dgemv", check=False)
    r = np.random.default_rng(3)
    A, x = whole(r, 4, 9), whole(r, 9)
    count[0] = 0
    np.testing.assert_array_equal(fn(A, x), A @ x)
    assert count == [1]


def test_what_it_raises_comes_back() -> None:
    class Stop(Exception):
        pass

    fail = False

    @isam.instruction(GEMV)
    def dgemv(A, x, y):
        if fail:
            raise Stop("enough")
        y[...] = A @ x

    fn = isam.compile(isam.parse(KERNEL), on=load_system("host").extended(dgemv), require="dgemv", check=False)
    fn(np.eye(3), np.ones(3))
    fail = True
    with pytest.raises(Stop, match="enough"):
        fn(np.eye(3), np.ones(3))
