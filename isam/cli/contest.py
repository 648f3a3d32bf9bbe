"""The layer of ``isam demo`` against NumPy: ``python -m isam.cli.contest ARTIFACT SECONDS``, in a process of its own.

The clock is the CPU time of this process, as in ``isam bench``: on a machine that others use, time on the wall counts
their work too.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from isam.tune.timing import Times, alternate


def arrays(sizes: Mapping[str, int]) -> dict[str, Any]:
    """Random image, weights and bias; the same in every process."""
    import numpy as np

    rng = np.random.default_rng(0)
    h, w, c, k = (sizes[n] for n in "HWCK")
    weights = rng.standard_normal((3, 3, c, k), dtype=np.float32) * np.float32((9 * c) ** -0.5)
    return {"x": rng.standard_normal((h, w, c), dtype=np.float32), "w": weights,
            "b": rng.standard_normal(k, dtype=np.float32)}  # fmt: skip


def ways(arrays: Mapping[str, Any]) -> dict[str, Callable[[], Any]]:
    """Three good ways to compute the layer with NumPy, everything allocated beforehand."""
    import numpy as np

    x, w, b = arrays["x"], arrays["w"], arrays["b"]
    (h, v, c), k = x.shape, w.shape[-1]
    padded = np.zeros((h + 2, v + 2, c), np.float32)
    columns = np.empty((h, v, 3, 3, c), np.float32)
    flat, y, part = w.reshape(-1, k), np.empty((h * v, k), np.float32), np.empty((h, v, k), np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1)).transpose(0, 1, 3, 4, 2)

    def finish(out: Any) -> Any:
        np.add(out, b, out=out)
        return np.maximum(out, 0, out=out).reshape(h, v, k)

    def im2col() -> Any:
        padded[1:-1, 1:-1] = x
        np.copyto(columns, windows)
        return finish(np.matmul(columns.reshape(h * v, -1), flat, out=y))

    def rows() -> Any:
        padded[1:-1, 1:-1] = x
        for r in range(3):
            for s in range(3):
                columns[:, :, r, s] = padded[r : r + h, s : s + v]
        return finish(np.matmul(columns.reshape(h * v, -1), flat, out=y))

    def nine() -> Any:
        padded[1:-1, 1:-1] = x
        out = y.reshape(h, v, k)
        for r in range(3):
            for s in range(3):
                first = r == 0 and s == 0
                np.matmul(padded[r : r + h, s : s + v], w[r, s], out=out if first else part)
                if not first:
                    out += part
        return finish(out)

    return {"im2col and matmul": im2col, "im2col by slices and matmul": rows, "nine matmuls": nine}


def contest(entry: Callable[..., Any], data: Mapping[str, Any], seconds: float) -> dict[str, Times]:
    """Our times and those of NumPy's ways, by name; all on one thread, taking turns."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    x = data["x"]
    y = np.empty((*x.shape[:2], data["b"].size), np.float32)
    with threadpool_limits(1):
        calls = {"isam": lambda: entry(x, y=y), **ways(data)}
        return alternate(calls, seconds, clock=time.process_time)


def blas() -> str:
    """NumPy's library and the kernels it chose, as far as it says."""
    from threadpoolctl import threadpool_info

    found = [f"{p['internal_api']} {p['version']}, {p.get('architecture', 'its own kernels')}"
             for p in threadpool_info() if p["user_api"] == "blas" and "numpy" in p["filepath"]]  # fmt: skip
    return found[0] if found else ""


def main(arguments: Sequence[str]) -> None:
    """Prints the samples of everybody, and NumPy's library, as JSON."""
    from isam.runtime.entry import load

    path, seconds, *shape = arguments
    data = arrays(dict(zip("HWCK", map(int, shape), strict=True)))
    times = contest(load(path).bind(w=data["w"], b=data["b"]), data, float(seconds))
    print(json.dumps({"samples": {n: t.samples for n, t in times.items()}, "blas": blas()}))


if __name__ == "__main__":
    main(sys.argv[1:])
