"""JAX on one thread: functions as XLA compiles them for these sizes, in the type of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from ..data import placed
from ..shapes import BYTES, Shape
from .layers import Layer, layers
from .library import Array, Form, Given, Library


@cache
def module() -> Any:
    """JAX, on CPUs, in the thread that calls it; ``isam.cli.fair`` gives its pool one thread."""
    import jax

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    return jax


def version() -> str:
    return f"{module().__version__}, 1 thread"


def of(shape: Shape, given: Given) -> dict[str, Form]:
    """Everything, in each type."""
    make = WORKS.get(shape.work)
    if make is None:
        return {}
    return {n: _form(*made) for n, made in make(module(), shape, given).items()}


def _form(function: Callable[..., Any], arguments: list[Array], read: Callable[[Array], Array]) -> Form:
    call, ready = module().jit(function), [module().numpy.asarray(x) for x in arguments]
    return Form(lambda: call(*ready).block_until_ready(), lambda y: read(np.asarray(y)))


Function = tuple[Callable[..., Any], list[Array], Callable[[Array], Array]]  # what it is given; how to read its result


def itself(y: Array) -> Array:
    return y


def product(jax: Any, shape: Shape, given: Given) -> dict[str, Function]:
    """Bytes both with a sign."""
    if shape.kind in BYTES:
        sums = {"preferred_element_type": np.int32}
        return {"": (lambda x, y: jax.numpy.matmul(x, y, **sums), [given["A"].view(np.int8), given["B"]], itself)}
    return {"": (jax.numpy.matmul, [given["A"], given["B"]], itself)}


def convolutions(jax: Any, shape: Shape, given: Given) -> dict[str, Function]:
    """Channels last. Depthwise ones as XLA has them, and as sums over what is shifted."""
    image, chain = layers(shape, given)
    arrays = [placed(image.transpose(0, 2, 3, 1))]
    for layer in chain:
        arrays.append(placed(layer.weight.transpose(2, 3, 1, 0)))
        arrays += [] if layer.bias is None else [layer.bias]
    ways = {"": _convolved, "shifted": _shifted} if chain[0].groups > 1 else {"": _convolved}
    return {n: (partial(_chain, jax, chain, way), arrays, lambda y: y[0] if len(y) == 1 else y)
            for n, way in ways.items()}  # fmt: skip


Way = Callable[[Any, Layer, Any, Any, Any], Any]


def _chain(jax: Any, chain: list[Layer], depthwise: Way, x: Any, *given: Any) -> Any:
    """What is added to a sum is added in f32, before that is rounded."""
    kind, rest = x.dtype, list(given)
    for layer in chain:
        sums = kind if layer.bias is None else np.float32
        way = depthwise if layer.groups > 1 else _convolved
        x = way(jax, layer, x, rest.pop(0), sums)
        x = x if layer.bias is None else x + rest.pop(0)
        x = (jax.numpy.clip(x, 0, 6) if layer.cut else x).astype(kind)
    return x


def _convolved(jax: Any, layer: Layer, x: Any, w: Any, sums: Any) -> Any:
    return jax.lax.conv_general_dilated(x, w, [layer.stride] * 2, [(layer.pad, layer.pad)] * 2,
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=layer.groups,
                                        preferred_element_type=sums)  # fmt: skip


def _shifted(jax: Any, layer: Layer, x: Any, w: Any, sums: Any) -> Any:
    """One weight per channel and tap; nothing is padded."""
    (_, height, width, _), (rows, columns, _, _), t = x.shape, w.shape, layer.stride
    high, wide = (height - rows) // t, (width - columns) // t
    return sum(x[:, r : r + t * high + 1 : t, s : s + t * wide + 1 : t].astype(sums) * w[r, s, 0].astype(sums)
               for r in range(rows) for s in range(columns))  # fmt: skip


def softmax(jax: Any, shape: Shape, given: Given) -> dict[str, Function]:
    return {"": (lambda x: jax.nn.softmax(x, -1), [given["X"]], itself)}


def layer_norm(jax: Any, shape: Shape, given: Given) -> dict[str, Function]:
    def function(x: Any, g: Any, b: Any) -> Any:
        d = x - x.mean(-1, keepdims=True)
        return d * jax.lax.rsqrt((d * d).mean(-1, keepdims=True) + 1e-5) * g + b

    return {"": (function, [given[n] for n in "Xgb"], itself)}


def bias_gelu(jax: Any, shape: Shape, given: Given) -> dict[str, Function]:
    return {"": (lambda x, b: jax.nn.gelu(x + b, approximate=False), [given["X"], given["b"]], itself)}


def transpose(jax: Any, shape: Shape, given: Given) -> dict[str, Function]:
    return {"": (lambda x: x.T.copy(), [given["X"]], itself)}


def running_sum(jax: Any, shape: Shape, given: Given) -> dict[str, Function]:
    return {"": (lambda x: jax.numpy.cumsum(x, 1), [given["X"]], itself)}


def recursive_filter(jax: Any, shape: Shape, given: Given) -> dict[str, Function]:
    """Column by column. (As a scan of pairs of a factor and a sum results are further off than each sum may be.)"""

    def columns(x: Any) -> Any:
        def step(last: Any, more: Any) -> Any:
            now = 0.75 * last + more
            return now, now

        return jax.lax.scan(step, jax.numpy.zeros_like(x[:, 0]), x.T)[1].T

    return {"columns": (columns, [given["X"]], itself)}


def viterbi(jax: Any, shape: Shape, given: Given) -> dict[str, Function]:
    """From states in rows, and in columns."""

    def ways(axis: int) -> Callable[..., Any]:
        def function(x: Any, first: Any, a: Any) -> Any:
            def step(best: Any, more: Any) -> Any:
                return (jax.numpy.expand_dims(best, 1 - axis) + a).max(axis) + more, None

            return jax.lax.scan(step, first, x)[0]

        return function

    x, first, a = given["X"], given["g"], given["A"]
    return {"rows": (ways(0), [x, first, a], itself), "columns": (ways(1), [x, first, placed(a.T)], itself)}


def turned_image(jax: Any, shape: Shape, given: Given) -> dict[str, Function]:
    return {"": (lambda x, b: jax.nn.relu(x.T + b), [given["X"], given["b"]], itself)}


def attention(jax: Any, shape: Shape, given: Given) -> dict[str, Function]:
    """Its own function, which has heads inside of rows, and the three steps."""
    inside = [placed(given[n].transpose(1, 0, 2))[None] for n in "QKX"]
    scale = given["Q"].shape[-1] ** -0.5

    def steps(q: Any, k: Any, x: Any) -> Any:
        return jax.nn.softmax((q @ k.swapaxes(1, 2)) * scale, -1) @ x

    return {"": (jax.nn.dot_product_attention, inside, lambda y: y[0].transpose(1, 0, 2)),
            "steps": (steps, [given[n] for n in "QKX"], itself)}  # fmt: skip


def gru(jax: Any, shape: Shape, given: Given) -> dict[str, Function]:
    """The input's product ahead, gates side by side."""
    units, sigmoid = given["g"].shape[1], jax.nn.sigmoid

    def function(x: Any, first: Any, w: Any, u: Any, b: Any, c: Any) -> Any:
        def step(h: Any, a: Any) -> Any:
            v = h @ u
            r, z = (sigmoid(a[:, n * units : (n + 1) * units] + v[:, n * units : (n + 1) * units]) for n in (0, 1))
            n = jax.numpy.tanh(a[:, 2 * units :] + r * (v[:, 2 * units :] + c))
            h = n + z * (h - n)
            return h, h

        return jax.lax.scan(step, first, x @ w + b)[1]

    w, u = (placed(given[n].transpose(1, 0, 2)).reshape(-1, 3 * units) for n in "wu")
    b, c = (given[n].ravel().astype(w.dtype) for n in "bc")
    return {"": (function, [given["x"], given["g"], w, u, b, c], itself)}


WORKS: dict[str, Callable[[Any, Shape, Given], dict[str, Function]]] = {
    "product": product, "convolution": convolutions, "depthwise": convolutions, "block": convolutions,
    "softmax": softmax, "layer_norm": layer_norm, "bias_gelu": bias_gelu, "transpose": transpose,
    "running_sum": running_sum, "recursive_filter": recursive_filter, "viterbi": viterbi,
    "channels_last": turned_image, "attention": attention, "gru": gru,
}  # fmt: skip
LIBRARY = Library("jax", "JAX", version, of)
