"""Random operands, where they lie, and what the results must be: f64, with a bound per element."""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import bfloat16

import isam
from isam.ir.bounds import enclose, products

from . import algebra, near
from .kernels import kernel_of
from .shapes import Case, Convolution, Gemm, Shape

Array = np.ndarray[Any, Any]
SCALED = {"block": ("p",), "gru": ("w", "u")}  # of a kernel, what is added up over the last axis but one
RESULTS: dict[str, Any] = {"f32": np.float32, "bf16": bfloat16, "int8": np.int32, "i8": np.int32, "i32": np.int32}
LINE = 64  # bytes: arrays of all contenders begin with a cache line


def room(shape: Any, dtype: Any = np.float32) -> Array:
    """Room for a result or an argument, of whoever it is: it begins with a line."""
    return isam.empty(shape, dtype)


def placed(a: Array) -> Array:
    """The same in order, where it begins with a line."""
    if a.flags.c_contiguous and a.ctypes.data % LINE == 0:
        return a
    made = room(a.shape, a.dtype)
    made[...] = a
    return made


def operands(shape: Gemm | Convolution) -> tuple[Array, Array]:
    """Random, f32 unless the shape says otherwise: the two factors; or the image (height, width, channels; several:
    after their number) and the weights (rows, columns, channels, filters), scaled so that results are of the size
    of 1."""
    rng = np.random.default_rng(shape.flops % (1 << 32))
    if isinstance(shape, Gemm):
        left, right = (shape.m, shape.k), (shape.k, shape.n)
        if shape.kind == "int8":  # 0 to 127, the bytes that are the same number with a sign, which peers want
            return placed(rng.integers(0, 128, left, np.uint8)), placed(rng.integers(-128, 128, right, np.int8))
        if shape.kind == "i8":
            return placed(rng.integers(-128, 128, left, np.int8)), placed(rng.integers(-128, 128, right, np.int8))
        return _of_kind(shape, rng.standard_normal(left, np.float32), rng.standard_normal(right, np.float32))
    images = (shape.batch,) if shape.batch > 1 else ()
    x = rng.standard_normal((*images, shape.size, shape.size, shape.channels), np.float32)
    w = rng.standard_normal((shape.taps, shape.taps, shape.channels, shape.filters), np.float32)
    w *= np.float32(shape.terms**-0.5)
    return _of_kind(shape, x, w)


def _of_kind(shape: Gemm | Convolution, a: Array, b: Array) -> tuple[Array, Array]:
    kind = bfloat16 if shape.kind == "bf16" else np.float32
    return placed(a.astype(kind, copy=False)), placed(b.astype(kind, copy=False))


def windows(shape: Convolution, x: Array) -> Array:
    """The padded images seen as (..., height, width, rows, columns, channels): a view but for the padding."""
    p, t, s = shape.pad, shape.taps, shape.stride
    padded = np.pad(x, ((0, 0),) * (x.ndim - 3) + ((p, p), (p, p), (0, 0))) if p else x
    seen = np.lib.stride_tricks.sliding_window_view(padded, (t, t), (-3, -2))[..., ::s, ::s, :, :, :]
    return np.moveaxis(seen, -3, -1)


def exact(shape: Gemm | Convolution, a: Array, b: Array) -> Array:
    """The result in f64."""
    if isinstance(shape, Gemm):
        return a.astype(np.float64) @ b.astype(np.float64)
    seen = windows(shape, a)
    out = np.zeros((*seen.shape[:-3], shape.filters))
    for r in range(shape.taps):
        for s in range(shape.taps):
            out += seen[..., r, s, :].astype(np.float64) @ b[r, s].astype(np.float64)
    return out


def arrays_of(shape: Shape) -> dict[str, Array]:
    """Random arguments of a shape's kernel, by name."""
    if isinstance(shape, Case):
        return _arguments(shape)
    return dict(zip("AB" if isinstance(shape, Gemm) else "xw", operands(shape), strict=True))


def _arguments(case: Case) -> dict[str, Array]:
    """Of one in bf16, those in f32 are numbers of bf16, too."""
    kernel, sizes = kernel_of(case)
    rng = np.random.default_rng(case.flops % (1 << 32))
    given = [b for b in kernel.with_sizes(sizes).arguments if b.role in ("in", "const")]
    shapes = {b.name: [int(n) for n in b.shape] for b in given}
    made = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    for name in SCALED.get(case.kernel, ()):  # so that sums are of the size of 1
        made[name] *= np.float32(shapes[name][-2] ** -0.5)
    made = algebra.fitting(case.kernel, made)
    if case.kind != "f32":
        made = {b.name: made[b.name].astype(bfloat16).astype(RESULTS[b.dtype]) for b in given}
    return {name: placed(a) for name, a in made.items()}


class Judge:
    """Knows what a shape's result must be; ``wrong(y)`` is None or says which element is how far off."""

    def __init__(self, enclosed: tuple[Array, Array], dtype: Any):
        self.enclosed, self.dtype = enclosed, np.dtype(dtype)

    @classmethod
    def both(cls, shape: Shape, arrays: dict[str, Array], ulp: float) -> tuple[Judge, Judge]:
        """Ours, and that of peers, whose functions may be off by ``ulp`` and round more often."""
        if isinstance(shape, Case):
            return cls.case(shape, arrays), cls.case(shape, arrays, ulp, often=True)
        made = cls.product(shape, *arrays.values())
        return made, made

    @classmethod
    def case(cls, case: Case, arrays: dict[str, Array], ulp: float = 4.0, often: bool = False) -> Judge:
        """Every element within the bound that the kernel's own operations give, functions off by at most ``ulp``.
        ``often``: in bf16, whatever is computed may be rounded to it, as libraries do."""
        result = RESULTS[case.kind]
        if case.kernel == "gru":
            return Steps(near.Gru(arrays, ulp, case.kind, often), result)
        if case.kernel in algebra.RIGHT:
            return Steps(algebra.Algebra(case.kernel, arrays, ulp), result)
        if case.kernel in ("attention", "block"):
            sizes = dict(case.sizes)
            made = (near.attention(arrays, ulp, case.kind, often) if case.kernel == "attention"
                    else near.block(arrays, sizes["stride"], sizes["H"], case.kind))  # fmt: skip
            return cls((made.value, made.bound), result)
        kernel, given = kernel_of(case)
        return cls(enclose(kernel, arrays, given, ulp)["Y"], np.float32)

    @classmethod
    def product(cls, shape: Gemm | Convolution, a: Array, b: Array) -> Judge:
        """Every element within the bound of a sum of so many products."""
        kind = shape.kind
        value = exact(shape, a, b)
        if RESULTS[kind] is np.int32:
            bound = np.full_like(value, 0.5)
        else:
            value, bound = products(value, exact(shape, *(np.abs(x.astype(np.float64)) for x in (a, b))), shape.terms)
        if kind == "bf16":  # the sum is rounded once more
            bound = bound + 2.0**-8 * (abs(value) + bound)
        return cls((value, bound), RESULTS[kind])

    def expected(self, y: Array) -> tuple[Array, Array]:
        """Values and bounds; of a recurrent kernel they follow from ``y``."""
        return self.enclosed

    def wrong(self, y: Array) -> str | None:
        value, bound = self.expected(y)
        if y.shape != value.shape or y.dtype != self.dtype:
            return f"the result is {y.dtype}{y.shape}, expected {self.dtype}{value.shape}"
        excess = self._excess(y, value, bound)
        at = np.unravel_index(int(np.argmax(np.nan_to_num(excess, nan=np.inf))), value.shape)
        if np.isfinite(y.astype(np.float64)).all() and excess[at] <= 1:
            return None
        return f"element {tuple(map(int, at))} is {y[at]!r}, expected {value[at]!r} within {bound[at]:.3g}"

    def used(self, y: Array) -> float:
        """The largest part of its bound that an element uses."""
        return float(self._excess(y, *self.expected(y)).max())

    @staticmethod
    def _excess(y: Array, value: Array, bound: Array) -> Array:
        """What part of its bound an element is off by; what is only moved has none, and is exact or infinitely off."""
        away, exactly = abs(y.astype(np.float64) - value), bound == 0
        return np.where(exactly, np.where(away > 0, np.inf, away), away / np.where(exactly, 1, bound))


class Steps(Judge):
    """Judges every step from the state that was computed before it, every element from those that it is made of."""

    def __init__(self, steps: near.Gru | algebra.Algebra, dtype: Any):
        self.steps, self.dtype = steps, np.dtype(dtype)
        self.known: tuple[Array, tuple[Array, Array]] | None = None

    def expected(self, y: Array) -> tuple[Array, Array]:
        if self.known is None or not np.array_equal(self.known[0], y):
            made = self.steps.of(y)
            self.known = y.copy(), (made.value, made.bound)
        return self.known[1]
