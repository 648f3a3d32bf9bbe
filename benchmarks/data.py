"""Random operands and what the results must be: f64, with a bound per element."""

from __future__ import annotations

from typing import Any

import numpy as np

from isam.ir.bounds import products

from .shapes import Convolution, Gemm

Array = np.ndarray[Any, Any]


def operands(shape: Gemm | Convolution) -> tuple[Array, Array]:
    """Random f32: the two factors; or the image (height, width, channels) and the weights (rows, columns, channels,
    filters), scaled so that results are of the size of 1."""
    rng = np.random.default_rng(shape.flops % (1 << 32))
    if isinstance(shape, Gemm):
        return rng.standard_normal((shape.m, shape.k), np.float32), rng.standard_normal((shape.k, shape.n), np.float32)
    x = rng.standard_normal((shape.size, shape.size, shape.channels), np.float32)
    w = rng.standard_normal((shape.taps, shape.taps, shape.channels, shape.filters), np.float32)
    return x, w * np.float32(shape.terms**-0.5)


def windows(shape: Convolution, x: Array) -> Array:
    """The padded image seen as (height, width, rows, columns, channels): a view but for the padding."""
    p, t, s = shape.pad, shape.taps, shape.stride
    padded = np.pad(x, ((p, p), (p, p), (0, 0))) if p else x
    seen = np.lib.stride_tricks.sliding_window_view(padded, (t, t), (0, 1))[::s, ::s]
    return seen.transpose(0, 1, 3, 4, 2)


def exact(shape: Gemm | Convolution, a: Array, b: Array) -> Array:
    """The result in f64."""
    if isinstance(shape, Gemm):
        return a.astype(np.float64) @ b.astype(np.float64)
    seen = windows(shape, a)
    out = np.zeros((shape.out, shape.out, shape.filters))
    for r in range(shape.taps):
        for s in range(shape.taps):
            out += seen[:, :, r, s].astype(np.float64) @ b[r, s].astype(np.float64)
    return out


class Judge:
    """Knows what a shape's result must be; ``wrong(y)`` is None or says which element is how far off."""

    def __init__(self, shape: Gemm | Convolution, a: Array, b: Array):
        self.enclosed = products(exact(shape, a, b), exact(shape, abs(a), abs(b)), shape.terms)

    def wrong(self, y: Array) -> str | None:
        value, bound = self.enclosed
        if y.shape != value.shape or y.dtype != np.float32:
            return f"the result is {y.dtype}{y.shape}, expected float32{value.shape}"
        excess = abs(y - value) / bound
        at = np.unravel_index(int(np.argmax(np.nan_to_num(excess, nan=np.inf))), value.shape)
        if np.isfinite(y).all() and excess[at] <= 1:
            return None
        return f"element {tuple(map(int, at))} is {y[at]!r}, expected {value[at]!r} within {bound[at]:.3g}"

    def used(self, y: Array) -> float:
        """The largest part of its bound that an element uses."""
        value, bound = self.enclosed
        return float((abs(y - value) / bound).max())
