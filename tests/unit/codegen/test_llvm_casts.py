"""Floats to integers at every power of two and around it, for every bit pattern that wraps, and where nothing fits."""

from __future__ import annotations

import numpy as np
import pytest

import isam
from isam.ir import interp
from isam.ir.dtype import numpy_dtype
from isam.system.features import lacking
from isam.system.load import load_system
from tests import values

INTEGERS = ("i64", "i32", "i16", "i8", "u8")


def awkward(dtype: str) -> np.ndarray:
    """Powers of two and their neighbours, odd multiples of them, halves, and random bits."""
    to, rng = numpy_dtype(dtype), np.random.default_rng(0)
    powers = 2.0 ** np.arange(-2, 72)
    wraps = np.concatenate([powers * k for k in (1, 3, 5, 7, 255, 257)])
    near = np.concatenate([wraps + d for d in (0, 0.25, 0.5, 1, 1.5, -0.25, -0.5, -1, -1.5)])
    with np.errstate(over="ignore"):
        some = np.concatenate([near, -near]).astype(to)
        ends = [np.nextafter(some, to.type(s)) for s in (np.inf, -np.inf)] if dtype in ("f32", "f64") else []
    return np.concatenate([some, *ends, values.special(dtype), values.random(rng, dtype, 4000)])


@pytest.mark.parametrize("on", ["host", "host-avx2", "host-generic"])
@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
def test_floats_to_integers(dtype, on):
    if lacking(load_system(on).needs, None):
        pytest.skip("not this CPU")
    forms = [f"{sat}{i}" for i in INTEGERS for sat in ("", "sat_")]
    outs = "".join(f"  out {f}: {f.removeprefix('sat_')}[N]\n" for f in forms)
    sums = "".join(f"    {f.replace('sat_', 's')}[i] = {f}(x[i])\n" for f in forms)
    text = f"kernel integers(N)\n  in x: {dtype}[N]\n{outs.replace('sat_', 's')}  forall i < N\n{sums}"
    x = awkward(dtype)
    kernel = isam.parse(text.replace(" out ", " out q").replace("\n    ", "\n    q"))
    got = isam.compile(kernel, on=on, sizes={"N": len(x)}, check=False, cache=False)(x)
    want = interp.run(kernel, {"x": x}, {"N": len(x)})
    for name, mine in zip((b.name for b in kernel.arguments if b.role == "out"), got, strict=True):
        wrong = np.flatnonzero(mine != want[name])
        assert not len(wrong), (name, x[wrong[:5]], mine[wrong[:5]], want[name][wrong[:5]])


def whole(rng: np.random.Generator, dtype: str) -> np.ndarray:
    info = np.iinfo(numpy_dtype(dtype))
    return rng.integers(info.min, info.max, 3000, numpy_dtype(dtype), endpoint=True)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_whole_numbers_round_once_to_sixteen_bits(dtype):
    outs = "".join(f"  in x{i}: {i}[N]\n  out y{i}: {dtype}[N]\n" for i in INTEGERS)
    sums = "".join(f"    y{i}[i] = {dtype}(x{i}[i])\n" for i in INTEGERS)
    kernel = isam.parse(f"kernel floats(N)\n{outs}  forall i < N\n{sums}")
    rng = np.random.default_rng(1)
    given = {f"x{i}": np.concatenate([whole(rng, i), values.special(i)]) for i in INTEGERS}
    n = min(map(len, given.values()))
    given = {k: v[-n:].copy() for k, v in given.items()}
    got = isam.compile(kernel, sizes={"N": n}, check=False, cache=False)(**given)
    want = interp.run(kernel, given, {"N": n})
    for name, mine in zip((b.name for b in kernel.arguments if b.role == "out"), got, strict=True):
        assert mine.tobytes() == want[name].tobytes(), name
