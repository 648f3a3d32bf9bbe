"""What every operation does to numbers (IR-2, IR-10): the semantics a code generator has to meet.

* Floats: add, sub, mul, div, sqrt are rounded once to the destination's dtype. Other functions are evaluated in f64 and
  rounded once (for f64 itself: as NumPy does). max and min pass NaN on. ``round`` goes to the even neighbour.
* Integers wrap modulo 2^bits (add, sub, mul, neg, abs, pow); ``div`` truncates towards zero; ``x / 0`` is 0.
* ``cast`` to an integer: a float is truncated to i64 (NaN and what does not fit give the least i64, as the hardware
  does), then wrapped. ``cast_sat``: truncated, clamped to the range, NaN gives 0. To bool: ``x != 0``.
  To a float: rounded once, to the even neighbour; both casts give infinity beyond the range.
* ``and``, ``or``, ``not`` act bitwise (on bool: logically). ``inf`` in an integer kernel is the largest value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from isam.ir.dtype import DTYPES, numpy_dtype
from isam.ir.points import Array

_SAME: dict[str, np.ufunc] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum, "neg": np.negative,
    "abs": np.absolute, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
    "ne": np.not_equal, "and": np.bitwise_and, "or": np.bitwise_or, "not": np.bitwise_not,
}  # fmt: skip


def _sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, e) / (1 + e)


def _erf(x: Array) -> Array:
    from scipy.special import erf

    return erf(x)


_WIDE: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "log": np.log, "tanh": np.tanh, "sigmoid": _sigmoid, "erf": _erf, "sin": np.sin, "cos": np.cos,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "floor": np.floor, "ceil": np.ceil, "round": np.rint,
    "pow": np.power,
}  # fmt: skip


class Numbers:
    """The arithmetic of the interpreter."""

    def literal(self, value: float | int | bool, dtype: str) -> Array:
        d = DTYPES[dtype]
        if d.kind in "iu":
            if isinstance(value, float) and not math.isfinite(value):
                limits = np.iinfo(numpy_dtype(dtype))
                return np.asarray(limits.max if value > 0 else limits.min, numpy_dtype(dtype))
            return np.asarray(int(value) % (1 << d.bits), np.uint64).astype(numpy_dtype(dtype))
        return convert(np.asarray(value, np.float64 if d.kind == "f" else bool), dtype)

    def apply(self, op: str, args: tuple[Array, ...], source: str, target: str) -> Array:
        if op == "copy":
            return args[0]
        if op in ("cast", "cast_sat"):
            return convert(args[0], target, saturate=op == "cast_sat")
        if op == "select":
            return np.where(args[0], args[1], args[2])
        if op in _SAME:
            return np.asarray(_SAME[op](*args))
        if DTYPES[source].kind == "f":
            return _divide(*args) if op == "div" else convert(_WIDE[op](*(a.astype(np.float64) for a in args)), target)
        return _integer(op, args, source)

    def accumulate(self, op: str, flat: Array, at: Array, values: Array, dtype: str) -> None:
        _SAME[op].at(flat, at, values)  # unbuffered: duplicates are taken one by one, in order

    def replace(self, flat: Array, at: Array, condition: Array, values: Array, dtype: str) -> None:
        chosen = condition.astype(bool)
        flat[at[chosen]] = values[chosen]


def _divide(a: Array, b: Array) -> Array:
    return np.asarray(np.divide(a, b))


def _integer(op: str, args: tuple[Array, ...], dtype: str) -> Array:
    if op in ("floor", "ceil", "round"):
        return args[0]
    if op == "div":
        return _truncating(*args)
    if op == "pow":
        return _integer_power(*args)
    return convert(_WIDE[op](*(a.astype(np.float64) for a in args)), dtype)


def _truncating(a: Array, b: Array) -> Array:
    one = np.ones((), a.dtype)
    safe = np.where((b == 0) | (b == -one), one, b) if np.issubdtype(a.dtype, np.signedinteger) else np.where(b, b, one)
    q = a // safe
    q = q + ((q * safe != a) & ((a < 0) != (safe < 0))).astype(a.dtype)
    if np.issubdtype(a.dtype, np.signedinteger):
        q = np.where(b == -one, np.negative(a), q)
    return np.where(b == 0, np.zeros((), a.dtype), q).astype(a.dtype)


def _integer_power(a: Array, b: Array) -> Array:
    """Wrapping powers by squaring; a negative exponent truncates 1 / a^|b|, so only 1 and -1 are not 0."""
    a, b = np.broadcast_arrays(a, b)
    n = np.abs(b.astype(np.int64))
    out, base = np.ones_like(a), a.copy()
    for bit in range(int(n.max(initial=0)).bit_length()):
        out = np.where((n >> bit) & 1, out * base, out)
        base = base * base
    unit = (a == 1) | (a.astype(np.int64) == -1)
    return np.where((b < 0) & ~unit, np.zeros((), a.dtype), out).astype(a.dtype)


def convert(x: Array, dtype: str, *, saturate: bool = False) -> Array:
    """``x`` as ``dtype`` (see above): one rounding, wrapping or saturating."""
    d, to = DTYPES[dtype], numpy_dtype(dtype)
    if x.dtype == to:
        return x
    if d.kind == "b":
        return x != np.zeros((), x.dtype)
    if d.kind == "f":
        return _to_float(x, dtype)
    if x.dtype.kind in "iub":
        wide = x.astype(np.int64)
        if saturate:
            wide = np.clip(wide, np.iinfo(to).min, np.iinfo(to).max)
        return wide.astype(to)
    return _float_to_integer(x.astype(np.float64), to, saturate)


def _float_to_integer(x: Array, to: np.dtype, saturate: bool) -> Array:
    fits = (x >= -(2.0**63)) & (x < 2.0**63)
    whole = np.where(fits, np.trunc(x), 0).astype(np.int64)
    if not saturate:
        return np.where(fits, whole, np.iinfo(np.int64).min).astype(to)
    limits = np.iinfo(to)
    out = np.clip(whole, limits.min, limits.max)
    out = np.where(x >= 2.0**63, limits.max, np.where(x < -(2.0**63), limits.min, out))
    return out.astype(to)


def _to_float(x: Array, dtype: str) -> Array:
    to = numpy_dtype(dtype)
    if x.dtype.kind in "iub" and dtype in ("bf16", "f16"):
        x = _odd(x.astype(np.float64), x) if x.dtype.itemsize == 8 else x.astype(np.float64)
    if dtype == "bf16" and x.dtype == np.float64:
        x = _narrow_odd(x)
    return x.astype(to)


def _odd(y: Array, x: Array) -> Array:
    """f64 values of i64 numbers rounded to odd, so that rounding again is rounding once."""
    inexact = y.astype(object) != x.astype(object) if y.size else np.zeros(y.shape, bool)
    return _toward_odd(y, np.asarray(inexact, bool), np.asarray(y.astype(object) > x.astype(object), bool), np.uint64)


def _narrow_odd(x: Array) -> Array:
    """f64 to f32, rounded to odd."""
    y = x.astype(np.float32)
    wide = y.astype(np.float64)
    return _toward_odd(y, (wide != x) & np.isfinite(x), wide > x, np.uint32)


def _toward_odd(y: Array, inexact: Array, above: Array, bits: type) -> Array:
    raw = np.ascontiguousarray(y).reshape(-1).view(bits)
    back = (inexact & (above == (y > 0)) & (y != 0)).reshape(-1)  # rounded away from zero: one step back, then odd
    raw = raw - back.astype(bits)
    raw = np.where(inexact.reshape(-1), raw | bits(1), raw)
    return raw.view(y.dtype).reshape(y.shape)
