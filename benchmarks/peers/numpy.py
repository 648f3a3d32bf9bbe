"""NumPy and its BLAS."""

from __future__ import annotations

import numpy as np

from ..data import windows
from ..shapes import Convolution, Gemm, Shape
from ..timing import Call
from .library import Form, Given, Library


def version() -> str:
    from threadpoolctl import threadpool_info

    for pool in threadpool_info():
        if pool["user_api"] == "blas" and "numpy" in pool["filepath"]:
            kind = pool.get("architecture", "")
            blas = f"{pool['internal_api']} {pool['version']} ({kind}), {pool['num_threads']} thread"
            return f"{np.__version__} with {blas}"
    return np.__version__


def of(shape: Shape, given: Given) -> dict[str, Form]:
    """Products into an array that is there, by ``matmul`` and by ``dot``, whose call is quicker. Convolutions of one
    image (more of them make matrices of gigabytes) as one product."""
    if isinstance(shape, Gemm) and shape.kind == "f32":
        factors, out = (given["A"], given["B"]), {"out": np.empty((shape.m, shape.n), np.float32)}
        return {"matmul": Form(Call(np.matmul, factors, out)), "dot": Form(Call(np.dot, factors, out))}
    if isinstance(shape, Convolution) and shape.kind == "f32" and shape.batch == 1:
        return {"im2col": _convolution(shape, given)}
    return {}


def _convolution(shape: Convolution, given: Given) -> Form:
    """Windows copied side by side, then one product; a 1x1 convolution at stride 1 copies nothing."""
    x, flat = given["x"], given["w"].reshape(shape.terms, shape.filters)
    rows, result = shape.batch * shape.out * shape.out, (*x.shape[:-3], shape.out, shape.out, shape.filters)
    return Form(lambda: (windows(shape, x).reshape(rows, shape.terms) @ flat).reshape(result))


LIBRARY = Library("numpy", "NumPy", version, of)
