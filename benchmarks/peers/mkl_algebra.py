"""What MKL has of elimination, triangles and bands; of elimination also without looking for pivots."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from ..data import room
from ..timing import Call
from .layouts import band_of, columns, copied, refilled
from .library import Array, Form, Given

ROW_MAJOR, COLUMN_MAJOR, AS_IT_IS, TURNED, UPPER, LOWER, ANY, LEFT = 101, 102, 111, 112, 121, 122, 131, 141
ONE, NONE = ctypes.c_float(1), ctypes.c_float(0)


def lu(lib: Any, given: Given) -> dict[str, Form]:
    a, n, said = columns(given["A"]), _to(len(given["A"])), _to(0)
    pivots, one, two = np.zeros(len(a), np.int32), copied(a), copied(a)
    return {"getrfnp": _form(lib.mkl_sgetrfnp, (n, n, _at(one), n, said), one, a),
            "getrf": _form(lib.sgetrf, (n, n, _at(two), n, _at(pivots), said), two, a, pivots)}  # fmt: skip


def cholesky(lib: Any, given: Given) -> dict[str, Form]:
    """The factor above the diagonal and, of a symmetric matrix the same, the one below it."""
    a, n, said = columns(given["A"]), _to(len(given["A"])), _to(0)
    upper, lower = copied(a), copied(a)
    under = Call(lib.spotrf, (b"L", n, _at(lower), n, said), {})
    return {"potrf upper": _form(lib.spotrf, (b"U", n, _at(upper), n, said), upper, a),
            "potrf lower": Form(refilled(lower, a, under), lambda _: lower.T)}  # fmt: skip


def substitution(lib: Any, given: Given) -> dict[str, Form]:
    b, n, found = given["b"], len(given["b"]), {}
    for name, order, a in (("trsv", COLUMN_MAJOR, columns(given["L"])), ("trsv rows", ROW_MAJOR, given["L"])):
        x = copied(b)
        found[name] = _form(lib.cblas_strsv, (order, LOWER, AS_IT_IS, ANY, n, _at(a), n, _at(x), 1), x, b, a)
    return found


def substitutions(lib: Any, given: Given) -> dict[str, Form]:
    return _sided(lib.cblas_strsm, "trsm", given["L"], given["b"])


def trmm(lib: Any, given: Given) -> dict[str, Form]:
    return _sided(lib.cblas_strmm, "trmm", given["L"], given["B"])


def _sided(routine: Any, name: str, factor: Array, b: Array) -> dict[str, Form]:
    """With the factor on the left, everything by columns or by rows."""
    n, m = b.shape
    found = {}
    for form, order, a, source, lead in ((name, COLUMN_MAJOR, columns(factor), columns(b), n),
                                         (f"{name} rows", ROW_MAJOR, factor, b, m)):  # fmt: skip
        x = copied(source)
        given = (order, LEFT, LOWER, AS_IT_IS, ANY, n, m, ONE, _at(a), n, _at(x), lead)
        found[form] = _form(routine, given, x, source, a)
    return found


def syrk(lib: Any, given: Given) -> dict[str, Form]:
    a, (n, k) = given["A"], given["A"].shape
    nothing, found = np.zeros((n, n), np.float32), {}
    for name, order, factor, out, lead in (("syrk", COLUMN_MAJOR, columns(a), columns(nothing), n),
                                      ("syrk rows", ROW_MAJOR, a, copied(nothing), k)):  # fmt: skip
        call = Call(lib.cblas_ssyrk, (order, LOWER, AS_IT_IS, n, k, ONE, _at(factor), lead, NONE, _at(out), n), {})
        found[name] = Form(call, _kept(out, factor))
    return found


def band(lib: Any, given: Given) -> dict[str, Form]:
    x, stored = given["x"], columns(band_of(given["D"]))
    wide, n = stored.shape
    y = room(x.shape)
    call = Call(lib.cblas_sgbmv, (COLUMN_MAJOR, AS_IT_IS, n, n, wide // 2, wide // 2, ONE, _at(stored), wide, _at(x), 1,
                                  NONE, _at(y), 1), {})  # fmt: skip
    return {"gbmv": Form(call, _kept(y, stored, x))}


def _form(function: Any, arguments: tuple[Any, ...], work: Array, source: Array, *keep: Array) -> Form:
    """What overwrites ``work``, a copy of ``source`` that is made in every call."""
    return Form(refilled(work, source, Call(function, arguments, {})), _kept(work, *keep))


def _kept(out: Array, *others: Array) -> Callable[[Any], Array]:
    """Reads the result, whatever the call returns; what MKL is given are addresses alone, so that the rest is kept."""
    return lambda _, kept=others: out


def _at(x: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def _to(n: int) -> Any:
    return ctypes.byref(ctypes.c_int(n))


WORKS: dict[str, Callable[[Any, Given], dict[str, Form]]] = {
    "lu": lu, "cholesky": cholesky, "substitution": substitution, "substitutions": substitutions, "trmm": trmm,
    "syrk": syrk, "band": band,
}  # fmt: skip
