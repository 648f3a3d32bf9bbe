"""torch: its own functions and modules, and MKL as it reaches it. What it does by oneDNN is in ``onednn``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from ..data import placed
from ..shapes import Gemm, Shape
from .layouts import lower
from .library import Array, Form, Given, Library


@cache
def module() -> Any:
    """torch, on one thread."""
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    return torch


def version() -> str:
    torch = module()
    return f"{torch.__version__}, {torch.get_num_threads()} thread"


def tensor(v: Array) -> Any:
    """The same memory as torch's."""
    torch = module()
    return torch.from_numpy(v.view(np.int16)).view(torch.bfloat16) if v.dtype == bfloat16 else torch.from_numpy(v)


def read(result: Any) -> Array:
    """A tensor as NumPy's."""
    torch = module()
    if result.dtype == torch.bfloat16:
        return result.contiguous().view(torch.int16).numpy().view(bfloat16)
    return result.numpy()


def of(shape: Shape, given: Given) -> dict[str, Form]:
    """Products of f32, functions of rows, attention, recurrent units."""
    make = WORKS.get(shape.work)
    if make is None or (isinstance(shape, Gemm) and shape.kind != "f32"):
        return {}
    torch = module()
    tensors = {n: tensor(v) for n, v in given.items()}
    if shape.kind == "bf16":
        tensors = {n: v.bfloat16() for n, v in tensors.items()}
    after = AFTER.get(shape.work)
    seen = (lambda r: after(read(r), given)) if after else read
    return {n: Form(call, seen) for n, call in make(torch, tensors).items()}


Call = Callable[[], Any]
Tensors = dict[str, Any]


def products(torch: Any, given: Tensors) -> dict[str, Call]:
    """MKL's, into a tensor that is there; and with a weight laid out beforehand."""
    x, y = given["A"], given["B"]
    out = x.new_empty(x.shape[0], y.shape[1])
    found: dict[str, Call] = {"mm": lambda: torch.mm(x, y, out=out)}
    return found | tried("packed mkl", lambda: packed(torch, "mkl", y.t().contiguous(), len(x), lambda: x))


def softmax(torch: Any, given: Tensors) -> dict[str, Call]:
    x = given["X"]
    out = torch.empty_like(x)
    return {"plain": lambda: torch.softmax(x, -1), "out": lambda: torch.softmax(x, -1, out=out)}


def layer_norm(torch: Any, given: Tensors) -> dict[str, Call]:
    x = given["X"]
    return {"plain": lambda: torch.nn.functional.layer_norm(x, x.shape[1:], given["g"], given["b"])}


def bias_gelu(torch: Any, given: Tensors) -> dict[str, Call]:
    x, b, gelu = given["X"], given["b"], torch.nn.functional.gelu
    out = torch.empty_like(x)
    return {"plain": lambda: gelu(x + b),
            "out": lambda: torch.ops.aten.gelu.out(torch.add(x, b, out=out), out=out)}  # fmt: skip


def transpose(torch: Any, given: Tensors) -> dict[str, Call]:
    x = given["X"]
    out = x.new_empty(x.shape[::-1])
    return {"contiguous": lambda: x.t().contiguous(), "copy": lambda: out.copy_(x.t())}


def running_sum(torch: Any, given: Tensors) -> dict[str, Call]:
    x = given["X"]
    out = x.new_empty(x.shape)
    return {"": lambda: torch.cumsum(x, 1), "out": lambda: torch.cumsum(x, 1, out=out)}


def complex_product(torch: Any, given: Tensors) -> dict[str, Call]:
    a, b = (torch.view_as_complex(given[n]) for n in "AB")
    out, parts = torch.empty_like(a), torch.view_as_real
    return {"": lambda: parts(a * b), "out": lambda: parts(torch.mul(a, b, out=out))}


def gates(torch: Any, given: Tensors) -> dict[str, Call]:
    """One after the other, and as one product of what is side by side."""
    x, h, w, u = (given[n] for n in "XHWU")
    both, out = torch.cat((w, u)), x.new_empty((len(x), w.shape[1]))

    def apart() -> Any:
        torch.mm(x, w, out=out)
        return out.addmm_(h, u)

    return {"apart": apart, "joined": lambda: torch.mm(torch.cat((x, h), 1), both, out=out)}


def complex_matmul(torch: Any, given: Tensors) -> dict[str, Call]:
    a, b = (torch.complex(*given[n]) for n in "AB")
    out = a.new_empty((len(a), b.shape[1]))
    return {"": lambda: torch.mm(a, b, out=out)}


def scaled_product(torch: Any, given: Tensors) -> dict[str, Call]:
    a, b, c = (given[n] for n in "ABC")
    alpha, beta = (float(x) for x in given["s"])
    out = torch.empty_like(c)
    return {"": lambda: torch.addmm(c, a, b, alpha=alpha, beta=beta, out=out)}


def brightness(torch: Any, given: Tensors) -> dict[str, Call]:
    x, weights = given["X"], torch.tensor([0.299, 0.587, 0.114])
    out = x.new_empty(len(x))
    return {"": lambda: torch.mv(x, weights), "out": lambda: torch.mv(x, weights, out=out)}


def pooled(torch: Any, given: Tensors) -> dict[str, Call]:
    """As it lies, with channels last, and as two maxima of neighbours, rows first."""
    x, f, best = given["X"][None], torch.nn.functional.max_pool2d, torch.maximum
    last = x.contiguous(memory_format=torch.channels_last)

    def rows() -> Any:
        both = best(x[0, :, ::2], x[0, :, 1::2])
        return best(both[..., ::2], both[..., 1::2])

    return {"": lambda: f(x, 2)[0], "channels last": lambda: f(last, 2)[0], "rows": rows}


def every_other(torch: Any, given: Tensors) -> dict[str, Call]:
    x = given["X"][::2]
    out = x.new_empty(x.shape)
    return {"contiguous": lambda: x.contiguous(), "copy": lambda: out.copy_(x)}


def lu(torch: Any, given: Tensors) -> dict[str, Call]:
    """By columns, as it calls LAPACK."""
    a = given["A"].t().contiguous().t()
    out = torch.linalg.lu_factor_ex(a)
    return {"": lambda: torch.linalg.lu_factor_ex(a)[0],
            "out": lambda: torch.linalg.lu_factor_ex(a, out=out)[0]}  # fmt: skip


def cholesky(torch: Any, given: Tensors) -> dict[str, Call]:
    """Below the diagonal of what it makes is nothing, above it of what is turned."""
    a, f, found = given["A"].t().contiguous().t(), torch.linalg.cholesky_ex, {}
    out = f(a)
    found[""] = lambda: f(a)[0]
    found["out"] = lambda: f(a, out=out)[0]
    return found


def substitution(torch: Any, given: Tensors) -> dict[str, Call]:
    """Everything by columns and by rows."""
    f, found = torch.linalg.solve_triangular, {}
    for name, turn in (("columns", lambda x: x.t().contiguous().t()), ("rows", lambda x: x)):
        factor, b = turn(given["L"]), turn(given["b"].reshape(len(given["b"]), -1))
        out = torch.empty_like(b)
        found[name] = lambda factor=factor, b=b: f(factor, b, upper=False)
        found[f"{name} out"] = lambda factor=factor, b=b, out=out: f(factor, b, upper=False, out=out)
    return found


def trmm(torch: Any, given: Tensors) -> dict[str, Call]:
    factor, b = given["L"].tril(), given["B"]
    out = torch.empty_like(b)
    return {"mm": lambda: torch.mm(factor, b, out=out)}


def syrk(torch: Any, given: Tensors) -> dict[str, Call]:
    a = given["A"]
    out = a.new_empty(len(a), len(a))
    return {"mm": lambda: torch.mm(a, a.t(), out=out)}


def prefix_sum(torch: Any, given: Tensors) -> dict[str, Call]:
    x = given["X"]
    out = torch.empty_like(x)
    return {"": lambda: torch.cumsum(x, 0), "out": lambda: torch.cumsum(x, 0, out=out)}


def viterbi(torch: Any, given: Tensors) -> dict[str, Call]:
    """From states in rows, and in columns."""
    x, g, found = given["X"], given["g"], {}
    for name, a, dim in (("rows", given["A"], 0), ("columns", given["A"].t().contiguous(), 1)):
        def call(a: Any = a, dim: int = dim) -> Any:
            best = g
            for step in x:
                best = torch.add(best.unsqueeze(1 - dim), a).amax(dim).add_(step)
            return best

        found[name] = call
    return found


def histogram(torch: Any, given: Tensors) -> dict[str, Call]:
    """Of integers, and of numbers between edges."""
    x, bins = given["X"], len(given["b"])
    whole = x.long()
    return {"bincount": lambda: torch.bincount(whole, minlength=bins), "histc": lambda: torch.histc(x, bins, 0, bins)}


def turned_image(torch: Any, given: Tensors) -> dict[str, Call]:
    """In the image's layout or in the result's, all at once or in a place that is there."""
    x, b = given["X"], given["b"]
    out, column, nothing = x.new_empty(x.shape[::-1]), b[:, None], x.new_zeros(())
    return {"first": lambda: torch.relu(x + column).t().contiguous(),
            "last": lambda: torch.relu((x.t().contiguous()).add_(b)),
            "out": lambda: torch.maximum(torch.add(x.t(), b, out=out), nothing, out=out)}  # fmt: skip


def attention(torch: Any, given: Tensors) -> dict[str, Call]:
    """torch's function in each way it has, and the three steps one after the other."""
    q, k, x = (given[n][None] for n in "QKX")
    f = torch.nn.functional.scaled_dot_product_attention
    turned, scale = given["K"].transpose(1, 2), q.shape[-1] ** -0.5
    scores, nothing = q.new_empty(len(turned), q.shape[2], k.shape[2]), q.new_zeros(())

    def steps() -> Any:
        torch.baddbmm(nothing, given["Q"], turned, beta=0, alpha=scale, out=scores)
        torch.softmax(scores, -1, out=scores)
        return scores @ given["X"]

    found: dict[str, Call] = {"fused": lambda: f(q, k, x)[0], "steps": steps}
    for name, backend in (("flash", "FLASH_ATTENTION"), ("math", "MATH")):
        found[name] = _with_backend(backend, lambda: f(q, k, x)[0])
    return found


def _with_backend(name: str, call: Call) -> Call:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    chosen = getattr(SDPBackend, name)

    def run() -> Any:
        with sdpa_kernel(chosen):
            return call()

    return run


def gru(torch: Any, given: Tensors) -> dict[str, Call]:
    """torch's module; and its steps with the input's product ahead and weights packed for MKL and for oneDNN."""
    x, g = given["x"], given["g"][None]
    units = g.shape[-1]
    layer = torch.nn.GRU(x.shape[-1], units).eval().to(x.dtype)
    w, u = (given[n].transpose(1, 2).reshape(3 * units, -1).contiguous() for n in "wu")
    b = given["b"].reshape(-1)
    c = torch.cat([b.new_zeros(2 * units), given["c"]])
    layer.weight_ih_l0.data, layer.weight_hh_l0.data, layer.bias_ih_l0.data, layer.bias_hh_l0.data = w, u, b, c
    found: dict[str, Call] = {"module": lambda: layer(x, g)[0]}
    for library in ("mkl", "mkldnn"):
        found |= tried(f"packed {library}", lambda library=library: _by_hand(torch, given, library, w, u, b))
    return found


def _by_hand(torch: Any, given: Tensors, library: str, w: Any, u: Any, b: Any) -> Call:
    x = given["x"]
    (steps, batch, _), units = x.shape, u.shape[1]
    ahead, out = x.new_empty(steps, batch, 3 * units), x.new_empty(steps, batch, units)
    flat, state = x.reshape(steps * batch, -1), [given["g"]]
    wide = packed(torch, library, w, steps * batch, lambda: flat)
    narrow = packed(torch, library, u, batch, lambda: state[0])

    def run() -> Any:
        torch.add(wide().view(ahead.shape), b, out=ahead)
        state[0] = given["g"]
        for t in range(steps):
            v, a, h = narrow(), ahead[t], state[0]
            gates = (a[:, : 2 * units] + v[:, : 2 * units]).sigmoid_()
            n = (v[:, 2 * units :] + given["c"]).mul_(gates[:, :units]).add_(a[:, 2 * units :]).tanh_()
            state[0] = torch.addcmul(n, gates[:, units:], h - n, out=out[t])
        return out.clone()

    return run


def packed(torch: Any, library: str, weight: Any, rows: int, x: Call) -> Call:
    """A product of ``x()`` with a weight (outputs, inputs) laid out beforehand, by MKL or by oneDNN."""
    if library == "mkl":
        ready = torch.ops.mkl._mkl_reorder_linear_weight(weight, rows)
        return lambda: torch.ops.mkl._mkl_linear(x(), ready, weight, None, rows)
    ready = torch.ops.mkldnn._reorder_linear_weight(weight, rows)
    return lambda: torch.ops.mkldnn._linear_pointwise(x(), ready, None, "none", [], "")


def tried(name: str, make: Callable[[], Call]) -> dict[str, Call]:
    """A form that this torch may not have for these data: none where it has not."""
    try:
        call = make()
        call()
    except (AttributeError, RuntimeError):
        return {}
    return {name: call}


WORKS: dict[str, Callable[[Any, Tensors], dict[str, Call]]] = {
    "product": products, "softmax": softmax, "layer_norm": layer_norm, "bias_gelu": bias_gelu, "transpose": transpose,
    "running_sum": running_sum, "channels_last": turned_image, "attention": attention, "gru": gru,
    "lu": lu, "cholesky": cholesky, "substitution": substitution, "substitutions": substitution, "trmm": trmm,
    "syrk": syrk, "prefix_sum": prefix_sum, "viterbi": viterbi, "histogram": histogram,
    "gates": gates, "complex_matmul": complex_matmul, "scaled_product": scaled_product,
    "complex_product": complex_product, "brightness": brightness, "pooled": pooled, "every_other": every_other,
}  # fmt: skip
AFTER: dict[str, Callable[[Array, Given], Array]] = {  # of what is made, what the kernel returns
    "complex_matmul": lambda r, given: placed(np.stack((r.real, r.imag))),
    "cholesky": lambda r, given: placed(r.T + np.tril(given["A"], -1)), "syrk": lambda r, given: lower(r),
    "substitution": lambda r, given: r[:, 0], "histogram": lambda r, given: placed(r.astype(np.float32)),
}  # fmt: skip
LIBRARY = Library("torch", "torch", version, of)
