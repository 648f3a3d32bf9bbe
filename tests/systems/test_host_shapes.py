"""The 23 convolutions of ResNet-50 and DeepBench's products on `host`: proved, right within a bound per element.

Here with channels, filters and images cut down, so that every kind of shape (stride, taps, ragged edges, the padding)
comes up in seconds; ``python -m tests.systems.test_host_shapes`` takes them as they are.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.data import Judge, operands
from benchmarks.kernels import kernel_of
from benchmarks.shapes import DEEPBENCH, RESNET50, Convolution, Gemm
from tests.pipeline import function


def wrong(shape: Gemm | Convolution) -> str | None:
    """What is wrong with the shape on `host`, called directly and with its constants bound."""
    kernel, sizes = kernel_of(shape, bound=True)
    fn = function(kernel, "host", **sizes)
    assert fn.certificate is not None
    a, b = operands(shape)
    judge = Judge.product(shape, a, b)
    constant = "B" if isinstance(shape, Gemm) else "w"
    return judge.wrong(fn(a, b)) or judge.wrong(fn.bind(**{constant: b})(a))


def smaller(shape: Gemm | Convolution) -> Gemm | Convolution:
    """The same kind of shape with at most a few million operations; remainders by 16 stay what they are."""
    if isinstance(shape, Gemm):
        return Gemm(cut(shape.m, 64), cut(shape.n, 256), cut(shape.k, 320))
    size = shape.size if shape.size <= 14 else 14 + shape.size % 14
    return replace(shape, channels=cut(shape.channels, 48), filters=cut(shape.filters, 80), size=size)


def cut(n: int, most: int) -> int:
    return n if n <= most else most + n % 16


@pytest.mark.parametrize("shape", RESNET50, ids=lambda s: s.name)
def test_convolutions(shape):
    assert wrong(smaller(shape)) is None


@pytest.mark.parametrize("shape", DEEPBENCH, ids=lambda s: s.name)
def test_products(shape):
    assert wrong(smaller(shape)) is None


def test_one_of_each_kind_as_it_is():
    for shape in (DEEPBENCH[10], DEEPBENCH[9], RESNET50[20], RESNET50[22]):
        assert wrong(shape) is None, shape.name


def test_the_judge_refuses_a_single_wrong_element():
    shape = smaller(RESNET50[2])
    a, b = operands(shape)
    judge = Judge.product(shape, a, b)
    y = judge.enclosed[0].astype(np.float32)
    assert judge.wrong(y) is None
    y[1, 2, 3] += 2e-3
    assert "(1, 2, 3)" in str(judge.wrong(y))
    y[1, 2, 3] = np.nan
    assert "(1, 2, 3)" in str(judge.wrong(y))
    assert "expected float32" in str(judge.wrong(y[1:]))


def main() -> int:
    """All of them in full size; the exit code is 1 if anything was wrong."""
    start, count = time.perf_counter(), 0
    for shape in (*RESNET50, *DEEPBENCH):
        found = wrong(shape)
        count += found is not None
        print(f"{shape.name}: {found or 'right'}", flush=True)
    spent = time.perf_counter() - start
    print(f"{len(RESNET50)} convolutions, {len(DEEPBENCH)} products, {count} wrong, {spent:.0f} s")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
