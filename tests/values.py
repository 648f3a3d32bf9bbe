"""Random and awkward numbers of every dtype, and distances in units in the last place."""

from __future__ import annotations

import numpy as np

from isam.ir.dtype import DTYPES, numpy_dtype

_FLOAT_BITS = {"f64": np.uint64, "f32": np.uint32, "f16": np.uint16, "bf16": np.uint16}


def special(dtype: str) -> np.ndarray:
    d, to = DTYPES[dtype], numpy_dtype(dtype)
    if d.kind == "f":
        big = {"f64": 1.7e308, "f32": 3.4e38, "f16": 65504.0, "bf16": 3.3e38}[dtype]
        tiny = {"f64": 5e-324, "f32": 1e-45, "f16": 6e-8, "bf16": 1e-40}[dtype]
        least = {"f64": 2.2250738585072014e-308, "f32": 1.1754944e-38, "f16": 6.104e-5, "bf16": 1.1754944e-38}[dtype]
        xs = [0.0, -0.0, 1, -1, 0.5, 2, 3, np.inf, -np.inf, np.nan, big, -big, tiny, -tiny, least, least / 2, 1e-3,
              127.5, -128.5, 2.5, 3.5, -2.5, 255.5, 32767.9, 65535, 65520, 2147483648.0, -2147483649.0, 9.3e18,
              -9.3e18]  # fmt: skip
        with np.errstate(all="ignore"):
            return np.array(xs, np.float64).astype(to)
    if d.kind == "b":
        return np.array([False, True])
    info = np.iinfo(to)
    xs = [0, 1, 2, 3, info.min, info.max, info.max - 1, info.min + 1, 7, 100]
    if d.kind == "i":
        xs += [-1, -2, -7]
    if d.bits == 64:
        xs += [2**53 + 1, 2**62 + 1, -(2**53) - 1, 2**60 + 2**51 + 1, 65504, 65519, 65520, 2**24 + 1]
    return np.array(xs, to)


def random(rng: np.random.Generator, dtype: str, n: int) -> np.ndarray:
    """Half plain numbers, a quarter any bit pattern, a quarter special ones."""
    d, to = DTYPES[dtype], numpy_dtype(dtype)
    if d.kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    if d.kind == "f":
        plain = (rng.standard_normal(n) * 4).astype(to)
        bits = rng.integers(0, 2**d.bits - 1, n, np.uint64, endpoint=True)
        any_ = bits.astype(_FLOAT_BITS[dtype]).view(to)
    else:
        info = np.iinfo(to)
        plain = rng.integers(-20 if d.kind == "i" else 0, 21, n).astype(to)
        any_ = rng.integers(info.min, info.max, n, to, endpoint=True)
    pick = rng.integers(0, 4, n)
    chosen = rng.choice(special(dtype), n)
    return np.where(pick < 2, plain, np.where(pick == 2, any_, chosen)).astype(to)


def ulps(got: np.ndarray, want: np.ndarray, dtype: str) -> np.ndarray:
    """Distance of ``got`` from the exact ``want`` (f64; of f64 results long double) in units in the last place of
    ``want`` in ``dtype``; 0 for equal specials, infinity where only one is special. An overflow counts from the largest
    number on."""
    bits, least = {"f64": (52, -1074), "f32": (23, -149), "f16": (10, -24), "bf16": (7, -133)}[dtype]
    top = {"f64": 1024, "f32": 128, "f16": 16, "bf16": 128}[dtype]
    with np.errstate(all="ignore"):
        wide = np.longdouble if dtype == "f64" else np.float64
        got, want, one = got.astype(wide), want.astype(wide), wide(1)
        _, e = np.frexp(np.abs(want))
        unit = np.ldexp(one, np.maximum(np.where(want == 0, -9999, e - 1 - bits), least))
        limit = np.ldexp(one, min(top, 1023)) * (2.0 if top == 1024 else 1.0)
        g = np.where(np.isinf(got), np.sign(got) * limit, got)
        w = np.clip(want, -limit, limit)
        unit = np.minimum(unit, np.ldexp(one, top - 1 - bits))
        distance = np.abs(g - w) / unit
    distance = np.where(np.isinf(want) & np.isinf(got) & (got == want), 0.0, distance)
    distance = np.where(np.isnan(want) & np.isnan(got), 0.0, distance)
    return np.where(np.isnan(want) ^ np.isnan(got), np.inf, np.where(got == want, 0.0, distance))
