"""Values with bounds on their errors, whole arrays at a time: for kernels whose products ``isam.ir.bounds`` would take
too long for, because it looks at every term.

The same analysis: a value in f64 and what rounding to f32 may have done to it, sums in any order, functions good to
so many units in the last place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from isam.ir.bounds import products

Array = np.ndarray[Any, Any]
UNIT, FLUSH = 2.0**-24, 2.0**-125


@dataclass(frozen=True)
class Near:
    """``value``, and how far off it may be."""

    value: Array
    bound: Array

    @classmethod
    def exactly(cls, value: Array) -> Near:
        return cls(value.astype(np.float64), np.zeros(()))

    @property
    def reach(self) -> Array:
        return abs(self.value) + self.bound

    def __add__(self, o: Near) -> Near:
        return rounded(self.value + o.value, self.bound + o.bound)

    def __sub__(self, o: Near) -> Near:
        return rounded(self.value - o.value, self.bound + o.bound)

    def __mul__(self, o: Near) -> Near:
        return rounded(self.value * o.value, self.reach * o.reach - abs(self.value * o.value))

    def __truediv__(self, o: Near) -> Near:
        """By what is positive even at its least."""
        value = self.value / o.value
        return rounded(value, (self.bound + abs(value) * o.bound) / (o.value - o.bound))

    def __getitem__(self, at: Any) -> Near:
        return Near(self.value[at], np.broadcast_to(self.bound, self.value.shape)[at])

    def narrowed(self, kind: str = "bf16") -> Near:
        """Rounded to bf16, where the kernel is in bf16."""
        return Near(self.value, self.bound + 2.0**-8 * self.reach) if kind == "bf16" else self

    def clip(self, low: float, high: float) -> Near:
        return Near(self.value.clip(low, high), self.bound)

    def sum(self, axis: int) -> Near:
        """In any order."""
        terms = self.value.shape[axis]
        error = np.broadcast_to(self.bound, self.value.shape).sum(axis, keepdims=True)
        value, bound = products(self.value.sum(axis, keepdims=True), self.reach.sum(axis, keepdims=True), terms)
        return Near(value, bound + error)

    def through(self, f: Callable[[Array], Array], ulp: float) -> Near:
        """A function that only rises, good to ``ulp``."""
        made = f(self.value)
        spread = np.maximum(f(self.value + self.bound) - made, made - f(self.value - self.bound))
        return rounded(made, spread, 2 * ulp)

    def __matmul__(self, o: Near) -> Near:
        """Sums of products in any order. The sizes of terms are added up in f32, and taken a little larger for it."""
        value = self.value @ o.value
        size, other = abs(self.value), abs(o.value)
        error = np.zeros(())
        if self.bound.ndim:
            error = error + _about(self.bound, o.reach)
        if o.bound.ndim:
            error = error + _about(size, o.bound)
        value, bound = products(value, _about(size, other) + error, self.value.shape[-1])
        return Near(value, bound + error)


def rounded(value: Array, bound: Array, units: float = 1.0) -> Near:
    return Near(value, bound + units * UNIT * (abs(value) + bound) + FLUSH)


def _about(a: Array, b: Array) -> Array:
    """A product of what is not negative, at least."""
    scale = max(float(a.max()), 1e-30) * max(float(b.max()), 1e-30)  # nothing may underflow
    a, b = (a / max(float(a.max()), 1e-30)).astype(np.float32), (b / max(float(b.max()), 1e-30)).astype(np.float32)
    return (a @ b).astype(np.float64) * (scale * 1.01) + scale * 1e-30


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def attention(given: dict[str, Array], ulp: float, kind: str = "f32", often: bool = False) -> Near:
    """``often``: in bf16, products are rounded to it as well, and what becomes of them."""
    more = kind if often else ""
    q, k, x = (Near.exactly(given[n]) for n in ("Q", "K", "X"))
    turned = Near(k.value.transpose(0, 2, 1), k.bound)
    z = ((q @ turned) * Near.exactly(np.array(0.125))).narrowed(more)
    top = z.value.argmax(-1)[..., None]  # what is taken off all is one of them
    most = Near(np.take_along_axis(z.value, top, -1), z.bound.max(-1, keepdims=True))
    e = (z - most).through(np.exp, ulp).narrowed(more)
    made = (e.narrowed(kind) @ x) / e.sum(-1).narrowed(more)
    return made.narrowed(more).narrowed(kind)


def block(given: dict[str, Array], stride: int, out: int, kind: str = "f32") -> Near:
    image, weights = given["X"].astype(np.float64), given["w"].astype(np.float64)
    parts = [(image[r : r + stride * (out - 1) + 1 : stride, s : s + stride * (out - 1) + 1 : stride] * weights[r, s])
             for r in range(3) for s in range(3)]  # fmt: skip
    bias = given["b"].astype(np.float64)
    value, bound = products(sum(parts, bias), sum(map(abs, parts), abs(bias)), len(parts) + 1)
    z = Near(value, bound).clip(0, 6).narrowed(kind)
    made = _shifted(z @ Near.exactly(given["p"]), Near.exactly(given["q"]), len(given["p"]))
    return made.clip(0, 6).narrowed(kind)


class Gru:
    """What every step must be, from the state before it as it was computed: a bound on all steps together would be
    worth nothing after a few of them."""

    def __init__(self, given: dict[str, Array], ulp: float, kind: str = "f32", often: bool = False):
        """``often``: in bf16, whatever is computed is rounded to it, not the state alone."""
        self.given, self.ulp, self.kind, self.more = given, ulp, kind, kind if often else ""
        x = Near.exactly(given["x"])
        self.parts = [x @ Near.exactly(w) for w in given["w"]]
        self.bias = [Near.exactly(b) for b in given["b"]]

    def of(self, y: Array) -> Near:
        """Of all steps that led to ``y``, side by side."""
        h = Near.exactly(np.concatenate([self.given["g"][None], y[:-1]]))
        a = [_shifted(p.narrowed(self.more), b, len(self.given["w"][0])).narrowed(self.more)
             for p, b in zip(self.parts, self.bias, strict=True)]  # fmt: skip
        v = [(h @ Near.exactly(u)).narrowed(self.more) for u in self.given["u"]]
        r, z = ((a[n] + v[n]).narrowed(self.more).through(sigmoid, self.ulp).narrowed(self.more) for n in (0, 1))
        inner = (r * (v[2] + Near.exactly(self.given["c"])).narrowed(self.more)).narrowed(self.more)
        n = (a[2] + inner).narrowed(self.more).through(np.tanh, self.ulp).narrowed(self.more)
        step = (z * (h - n).narrowed(self.more)).narrowed(self.more)
        return (n + step).narrowed(self.more).narrowed(self.kind)


def _shifted(p: Near, bias: Near, terms: int) -> Near:
    """A sum of so many terms that began with a bias, whose size counts in every addition."""
    return Near(p.value + bias.value, p.bound + 2 * (terms + 3) * UNIT * abs(bias.value))
