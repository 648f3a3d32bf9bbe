"""Who says whether a law kept the meaning: the judge that the law names."""

from __future__ import annotations

import numpy as np

from isam.ir import oracle
from isam.ir.bounds import enclose
from isam.ir.dtype import DTYPES, numpy_dtype
from isam.ir.interp import run
from isam.ir.kernel import Kernel
from isam.ir.points import sizes_of
from isam.transforms import Transform


def same(law: Transform, before: Kernel, after: Kernel, seed: int = 5) -> bool:
    """Do the kernels (all sizes given) agree, by the judge of the law?"""
    if law.judge == "residues":
        return oracle.equal(before, after, {}, seed, law.model)
    arrays = random_numbers(before, seed)
    if law.judge == "interpreter":
        one, two = run(before, arrays), run(after, arrays)
        return all(np.array_equal(one[n], two[n], equal_nan=DTYPES[before.buffer(n).dtype].kind == "f") for n in one)
    assert law.judge == "float bound"
    first, second = enclose(before, arrays), enclose(after, arrays)
    return all(_meet(first[n], second[n]) for n in first)


def _meet(one: tuple[np.ndarray, np.ndarray], two: tuple[np.ndarray, np.ndarray]) -> bool:
    """Does each lie within what rounding may have done to both?"""
    (a, da), (b, db) = one, two
    with np.errstate(all="ignore"):
        fine = (np.abs(a - b) <= da + db) | (a == b) | (np.isnan(a) & np.isnan(b)) | ~np.isfinite(da + db)
    return bool(fine.all())


def random_numbers(kernel: Kernel, seed: int) -> dict[str, np.ndarray]:
    """Numbers of the machine for every input: all of a small integer type, floats of many sizes."""
    rng = np.random.default_rng(seed)
    out: dict[str, np.ndarray] = {}
    for b in kernel.arguments:
        if b.role == "out":
            continue
        shape, dtype = sizes_of(b, {}), DTYPES[b.dtype]
        if dtype.kind == "f":
            a = rng.standard_normal(shape) * np.exp2(rng.integers(-3, 4, shape))
            a = abs(a) + 0.5 if b.name in ("var", "count") else a
        elif dtype.kind == "b":
            a = rng.integers(0, 2, shape)
        else:
            limits = np.iinfo(numpy_dtype(b.dtype))
            a = rng.integers(limits.min, limits.max, shape, dtype=np.int64, endpoint=True)
        out[b.name] = np.asarray(a).astype(numpy_dtype(b.dtype))
    return out
