"""SciPy: routines of its BLAS and LAPACK called directly, into arrays that are there; diagonals as a sparse matrix."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from ..data import room
from ..shapes import Shape
from ..timing import Call
from .layouts import band_of, columns, refilled
from .library import Array, Form, Given, Library


@cache
def module() -> Any:
    """``scipy.linalg``, its BLAS on one thread."""
    import scipy.linalg
    from threadpoolctl import threadpool_limits

    threadpool_limits(1, "blas")
    return scipy.linalg


def version() -> str:
    from threadpoolctl import threadpool_info

    module()
    import scipy

    for pool in threadpool_info():
        if pool["user_api"] == "blas" and "scipy" in pool["filepath"] and "numpy" not in pool["filepath"]:
            kind = pool.get("architecture", "")
            return f"{scipy.__version__} with {pool['internal_api']} {pool['version']} ({kind}), 1 thread"
    return scipy.__version__


def of(shape: Shape, given: Given) -> dict[str, Form]:
    make = WORKS.get(shape.work)
    return make(module(), given) if make else {}


def _lu(linalg: Any, given: Given) -> dict[str, Form]:
    """It looks for pivots, and finds them on the diagonal."""
    a = columns(given["A"])
    work = columns(a)
    return {"getrf": Form(refilled(work, a, Call(linalg.lapack.sgetrf, (work,), {"overwrite_a": 1})), _first)}


def _cholesky(linalg: Any, given: Given) -> dict[str, Form]:
    """The factor above the diagonal and, of a symmetric matrix the same, the one below it."""
    a = columns(given["A"])
    found = {}
    for name, lower in (("upper", 0), ("lower", 1)):
        work = columns(a)
        call = Call(linalg.lapack.spotrf, (work,), {"lower": lower, "clean": 0, "overwrite_a": 1})
        found[f"potrf {name}"] = Form(refilled(work, a, call), _turned if lower else _first)
    return found


def _substitution(linalg: Any, given: Given) -> dict[str, Form]:
    factor, x = columns(given["L"]), room(given["b"].shape)
    found = {"trsv": Call(linalg.blas.strsv, (factor, x), {"lower": 1, "overwrite_x": 1}),
             "trsv rows": Call(linalg.blas.strsv, (given["L"].T, x), {"trans": 1, "overwrite_x": 1})}  # fmt: skip
    return {name: Form(refilled(x, given["b"], call)) for name, call in found.items()}


def _substitutions(linalg: Any, given: Given) -> dict[str, Form]:
    return _sided(linalg.blas.strsm, "trsm", given["L"], given["b"])


def _trmm(linalg: Any, given: Given) -> dict[str, Form]:
    return _sided(linalg.blas.strmm, "trmm", given["L"], given["B"])


def _sided(routine: Any, name: str, factor: Array, b: Array) -> dict[str, Form]:
    """Everything by columns; and by rows, as what is turned with the factor on its other side."""
    source = columns(b)
    work, rows = columns(b), room(b.shape)
    left = Call(routine, (1.0, columns(factor), work), {"lower": 1, "overwrite_b": 1})
    right = Call(routine, (1.0, factor.T, rows.T), {"side": 1, "overwrite_b": 1})
    return {name: Form(refilled(work, source, left)), f"{name} rows": Form(refilled(rows, b, right), lambda r: r.T)}


def _syrk(linalg: Any, given: Given) -> dict[str, Form]:
    a, n = given["A"], len(given["A"])
    one, two = columns(np.zeros((n, n), np.float32)), columns(np.zeros((n, n), np.float32))
    same = {"beta": 0.0, "lower": 1, "overwrite_c": 1}
    return {"syrk": Form(Call(linalg.blas.ssyrk, (1.0, columns(a)), {"c": one, **same})),
            "syrk rows": Form(Call(linalg.blas.ssyrk, (1.0, a.T), {"c": two, "trans": 1, **same}))}  # fmt: skip


def _band(linalg: Any, given: Given) -> dict[str, Form]:
    from scipy.sparse import dia_array

    x, stored = given["x"], band_of(given["D"])
    n, side = len(x), len(stored) // 2
    y = room(x.shape)
    by = Call(linalg.blas.sgbmv, (n, n, side, side, 1.0, columns(stored), x),
              {"beta": 0.0, "y": y, "overwrite_y": 1})  # fmt: skip
    sparse = dia_array((np.ascontiguousarray(stored), np.arange(side, -side - 1, -1)), shape=(n, n))
    rows = sparse.tocsr()
    return {"gbmv": Form(by), "diagonals": Form(lambda: sparse @ x), "sparse rows": Form(lambda: rows @ x)}


def _recursive_filter(_: Any, given: Given) -> dict[str, Form]:
    from scipy.signal import lfilter

    taken, left = np.float32([1.0]), np.float32([1.0, -0.75])
    return {"lfilter": Form(Call(lfilter, (taken, left, given["X"], 1), {}))}


def _first(result: Any) -> Array:
    return result[0]


def _turned(result: Any) -> Array:
    return result[0].T


WORKS: dict[str, Any] = {
    "lu": _lu, "cholesky": _cholesky, "substitution": _substitution, "substitutions": _substitutions, "trmm": _trmm,
    "syrk": _syrk, "band": _band, "recursive_filter": _recursive_filter,
}  # fmt: skip
LIBRARY = Library("scipy", "SciPy", version, of)
