"""NumPy and its BLAS."""

from __future__ import annotations

import numpy as np

from ..data import room, windows
from ..shapes import Case, Convolution, Gemm, Shape
from ..timing import Call
from .layouts import lower
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
        factors, out = (given["A"], given["B"]), {"out": room((shape.m, shape.n), np.float32)}
        return {"matmul": Form(Call(np.matmul, factors, out)), "dot": Form(Call(np.dot, factors, out))}
    if isinstance(shape, Convolution) and shape.kind == "f32" and shape.batch == 1:
        return {"im2col": _convolution(shape, given)}
    if isinstance(shape, Case) and shape.kernel in ("transpose", "channels_last"):
        return {"": _turned(given)}
    if isinstance(shape, Case) and shape.kernel == "running_sum":
        sums = room(given["X"].shape)
        return {"": Form(Call(np.cumsum, (given["X"], 1), {"out": sums}), lambda _: sums)}
    make = WORKS.get(shape.work)
    return make(given) if make else {}


def _turned(given: Given) -> Form:
    """Rows as columns into an array that is there, and what is done to them there."""
    x, out = given["X"].T, room(given["X"].shape[::-1])
    if "b" not in given:
        return Form(Call(np.copyto, (out, x), {}), lambda _: out)

    def call() -> None:
        np.add(x, given["b"], out=out)
        np.maximum(out, 0, out=out)

    return Form(call, lambda _: out)


def _convolution(shape: Convolution, given: Given) -> Form:
    """Windows copied side by side, then one product; a 1x1 convolution at stride 1 copies nothing."""
    x, flat, rows = given["x"], given["w"].reshape(shape.terms, shape.filters), shape.batch * shape.out * shape.out
    out = room((*x.shape[:-3], shape.out, shape.out, shape.filters))
    into = {"out": out.reshape(rows, -1)}
    if shape.taps == shape.stride == 1:
        return Form(Call(np.matmul, (x.reshape(rows, -1), flat), into), lambda _: out)
    side_by_side = room(windows(shape, x).shape)

    def call() -> None:
        np.copyto(side_by_side, windows(shape, x))
        np.matmul(side_by_side.reshape(rows, -1), flat, **into)

    return Form(call, lambda _: out)


def _cholesky(given: Given) -> dict[str, Form]:
    below = np.tril(given["A"], -1)
    return {"": Form(Call(np.linalg.cholesky, (given["A"],), {}), lambda r: r.T + below)}


def _trmm(given: Given) -> dict[str, Form]:
    out = room(given["B"].shape)
    return {"": Form(Call(np.matmul, (np.tril(given["L"]), given["B"]), {"out": out}))}


def _syrk(given: Given) -> dict[str, Form]:
    """NumPy knows that it is symmetric."""
    a = given["A"]
    return {"": Form(Call(np.matmul, (a, a.T), {"out": room((len(a), len(a)))}), lower)}


def _band(given: Given) -> dict[str, Form]:
    """Windows that slide over the vector with zeros around it, which are there already."""
    d, x = given["D"], np.pad(given["x"], len(given["D"]) // 2)
    seen = np.lib.stride_tricks.sliding_window_view(x, d.shape[1])
    return {"": Form(Call(np.einsum, ("di,di->i", d, seen), {"out": room(d.shape[1])}))}


def _prefix_sum(given: Given) -> dict[str, Form]:
    return {"": Form(Call(np.cumsum, (given["X"],), {"out": room(given["X"].shape)}))}


def _viterbi(given: Given) -> dict[str, Form]:
    """From states in rows, and in columns."""
    x, g, a = given["X"], given["g"], given["A"]
    turned, sums, best = np.ascontiguousarray(a.T), room(a.shape), room(g.shape)

    def rows() -> None:
        np.copyto(best, g)
        for step in x:
            np.add(best[:, None], a, out=sums)
            np.add(sums.max(0, out=best), step, out=best)

    def columns() -> None:
        np.copyto(best, g)
        for step in x:
            np.add(best, turned, out=sums)
            np.add(sums.max(1, out=best), step, out=best)

    return {n: Form(call, lambda _: best) for n, call in (("rows", rows), ("columns", columns))}


def _complex_product(given: Given) -> dict[str, Form]:
    a, b = (given[n].view(np.complex64)[:, 0] for n in "AB")
    out = room(given["A"].shape)
    return {"": Form(Call(np.multiply, (a, b), {"out": out.view(np.complex64)[:, 0]}), lambda _: out)}


def _gates(given: Given) -> dict[str, Form]:
    x, h, w, u = (given[n] for n in "XHWU")
    out, more = room((len(x), w.shape[1])), room((len(x), w.shape[1]))

    def call() -> None:
        np.matmul(x, w, out=out)
        np.matmul(h, u, out=more)
        np.add(out, more, out=out)

    return {"": Form(call, lambda _: out)}


def _complex_matmul(given: Given) -> dict[str, Form]:
    a, b = (given[n][0] + 1j * given[n][1] for n in "AB")
    out = np.empty((len(a), b.shape[1]), a.dtype)
    return {"": Form(Call(np.matmul, (a, b), {"out": out}), lambda _: np.stack((out.real, out.imag)))}


def _scaled_product(given: Given) -> dict[str, Form]:
    a, b, c, (s, t) = (given[n] for n in "ABCs")
    out, more = room(c.shape), room(c.shape)

    def call() -> None:
        np.matmul(a, b, out=out)
        np.multiply(out, s, out=out)
        np.multiply(c, t, out=more)
        np.add(out, more, out=out)

    return {"": Form(call, lambda _: out)}


def _brightness(given: Given) -> dict[str, Form]:
    weights = np.array([0.299, 0.587, 0.114], np.float32)
    return {"": Form(Call(np.dot, (given["X"], weights), {"out": room(len(given["X"]))}))}


def _pooled(given: Given) -> dict[str, Form]:
    """Rows first, which lie side by side."""
    x = given["X"]
    rows, out = room((len(x), x.shape[1] // 2, x.shape[2])), room((len(x), x.shape[1] // 2, x.shape[2] // 2))

    def call() -> None:
        np.maximum(x[:, ::2], x[:, 1::2], out=rows)
        np.maximum(rows[..., ::2], rows[..., 1::2], out=out)

    return {"": Form(call, lambda _: out)}


def _every_other(given: Given) -> dict[str, Form]:
    x, out = given["X"][::2], room(len(given["X"]) // 2)
    return {"": Form(Call(np.copyto, (out, x), {}), lambda _: out)}


def _histogram(given: Given) -> dict[str, Form]:
    """Of integers, as it wants them."""
    count = Call(np.bincount, (given["X"].astype(np.intp), None, len(given["b"])), {})
    return {"": Form(count, lambda r: r.astype(np.float32))}


WORKS = {"cholesky": _cholesky, "trmm": _trmm, "syrk": _syrk, "band": _band, "prefix_sum": _prefix_sum,
         "viterbi": _viterbi, "histogram": _histogram, "complex_product": _complex_product, "gates": _gates,
         "complex_matmul": _complex_matmul, "scaled_product": _scaled_product, "brightness": _brightness,
         "pooled": _pooled, "every_other": _every_other}  # fmt: skip
LIBRARY = Library("numpy", "NumPy", version, of)
