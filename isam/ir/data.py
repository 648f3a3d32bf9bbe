"""Random arrays for a kernel's arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from isam.ir.dtype import DTYPES, numpy_dtype
from isam.ir.kernel import Buffer, Kernel


def random_arrays(kernel: Kernel, sizes: Mapping[str, int], seed: int, given: Iterable[str] = ()) -> dict[str, Any]:
    """Random data for ``in``, ``const`` and ``inout``: normal floats, small whole numbers, never constant. ``given``:
    arguments that somebody else brings."""
    rng = np.random.default_rng(seed)
    return {b.name: _random(rng, b, sizes) for b in kernel.arguments
            if b.role != "out" and b.name not in given}  # fmt: skip


def _random(rng: Any, b: Buffer, sizes: Mapping[str, int]) -> Any:
    shape = tuple(max(0, d.evaluate(sizes)) for d in b.shape)
    kind = DTYPES[b.dtype].kind
    if kind == "f":
        a = rng.standard_normal(shape, dtype=np.float64 if b.dtype == "f64" else np.float32)
    else:
        a = rng.integers(0, 2, shape) if kind == "b" else rng.integers(0 if kind == "u" else -4, 5, shape)
    return np.asarray(a).astype(numpy_dtype(b.dtype), copy=False)
