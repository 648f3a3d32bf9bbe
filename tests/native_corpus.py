"""The whole corpus as native code, one command: ``python -m tests.native_corpus host blas``.

Every case at every size of fewer than 10,000 points goes through ``isam.compile`` with the proof on, is called on
random data, and must agree with the interpreter: floats within the bounds of ``isam.ir.bounds``, integers exactly, over
their whole range where the kernel has no floats.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

import isam
from isam.ir import interp
from isam.ir.bounds import enclose, outside
from isam.ir.dtype import DTYPES, numpy_dtype
from isam.ir.kernel import Kernel
from isam.system.graph import System
from tests.corpus import CASES, Case, random_arrays


def largest(case: Case) -> dict[str, int]:
    """The size with the most elements of those below 10,000 points."""
    return max(case.small, key=lambda s: np.prod([max(1, n) for n in s.values()]))


def fault(case: Case, sizes: dict[str, int], on: str | System, seed: int = 1) -> str | None:
    """What is wrong with the case as native code, or None."""
    kernel = case.load()
    fn = isam.compile(kernel, on=on, sizes=sizes)
    assert fn.certificate is not None
    arrays = data(kernel, sizes, seed)
    got = called(fn, kernel, arrays)
    if any(DTYPES[b.dtype].kind == "f" for b in kernel.buffers):
        return outside(got, enclose(kernel, arrays, sizes))
    want = interp.run(kernel, arrays, sizes)
    wrong = [n for n, w in want.items() if not np.array_equal(got[n], w)]
    return f"{', '.join(wrong)}: not equal" if wrong else None


def called(fn: Any, kernel: Kernel, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """What ``out`` and ``inout`` hold after one call; the inputs must come out of it as they went in."""
    given = {n: a.copy() for n, a in arrays.items()}
    got = fn(**given)
    outs = [b.name for b in kernel.arguments if b.role == "out"]
    result = dict(zip(outs, got if len(outs) > 1 else (got,), strict=True)) if outs else {}
    for b in kernel.arguments:
        if b.role == "inout":
            result[b.name] = given[b.name]
        elif b.role != "out":
            np.testing.assert_array_equal(given[b.name], arrays[b.name])
    return result


def data(kernel: Kernel, sizes: dict[str, int], seed: int) -> dict[str, Any]:
    """Random arguments; integers over their whole range where there are no floats."""
    arrays = random_arrays(kernel, sizes, seed)
    if any(DTYPES[b.dtype].kind == "f" for b in kernel.buffers):
        return arrays
    rng = np.random.default_rng(seed)
    for b in kernel.arguments:
        d = numpy_dtype(b.dtype)
        if b.name in arrays and d.kind in "iu" and d.itemsize < 8:
            info = np.iinfo(d)
            arrays[b.name] = rng.integers(info.min, info.max, arrays[b.name].shape, d, endpoint=True)
    return arrays


def main(systems: list[str]) -> int:
    """Everything; the exit code is 1 if anything was wrong."""
    wrong = 0
    for on in systems:
        start, count = time.perf_counter(), 0
        for case in CASES.values():
            for sizes in case.small:
                count += 1
                try:
                    found = fault(case, sizes, on)
                except Exception as e:
                    found = f"{type(e).__name__}: {e}"
                if found:
                    wrong += 1
                    print(f"{case.name} {sizes} on {on}: {found}", flush=True)
        print(f"{on}: {len(CASES)} kernels at {count} sizes, {wrong} wrong, {time.perf_counter() - start:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:] or ["host", "blas"]))
