"""OpenVINO on one thread and one stream: weights as constants, arguments and result set beforehand.

What is in bf16 comes in and goes out in bf16 and is computed as the hint bf16 has it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from ..data import placed, room
from ..shapes import Shape
from ..timing import Call
from .layers import channels_last, layers, shape_after
from .library import Array, Form, Given, Library


@cache
def operators() -> Any:
    import openvino.opset13

    return openvino.opset13


@cache
def core() -> Any:
    import openvino

    return openvino.Core()


def version() -> str:
    import openvino

    return f"{openvino.__version__}, 1 thread"


class Graph:
    """A model as it is written down: inputs with their data. Everything in it is f32."""

    def __init__(self, kind: str):
        self.kind = kind
        self.inputs: list[tuple[Any, Array]] = []

    def input(self, x: Array) -> Any:
        made = operators().parameter(list(x.shape), getattr(_types(), self.kind))
        self.inputs.append((made, placed(x)))
        return made if self.kind == "f32" else operators().convert(made, "f32")

    def constant(self, x: Array) -> Any:
        return operators().constant(np.ascontiguousarray(x, dtype=np.float32))

    def form(self, y: Any, result: tuple[int, ...], read: Callable[[Array], Array] | None = None) -> dict[str, Form]:
        """``y``, of this shape, as a call."""
        import openvino

        y = y if self.kind == "f32" else operators().convert(y, self.kind)
        model = openvino.Model([y], [parameter for parameter, _ in self.inputs])
        request = core().compile_model(model, "CPU", {
            "INFERENCE_PRECISION_HINT": self.kind, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": 1,
            "NUM_STREAMS": 1, "ENABLE_CPU_PINNING": False}).create_infer_request()  # fmt: skip
        out = room(result, np.float32 if self.kind == "f32" else bfloat16)
        for at, (_, x) in enumerate(self.inputs):
            request.set_input_tensor(at, _tensor(x))
        request.set_output_tensor(0, _tensor(out))
        keep = (self.inputs, out)
        return {"": Form(Call(request.infer, (), {}), lambda _: read(keep[1]) if read else keep[1])}


def _types() -> Any:
    import openvino

    return openvino.Type


def _tensor(x: Array) -> Any:
    """The same memory as OpenVINO's."""
    import openvino

    if x.dtype == bfloat16:
        return openvino.Tensor(x.view(np.uint16), openvino.Shape(x.shape), _types().bf16)
    return openvino.Tensor(x, shared_memory=True)


def of(shape: Shape, given: Given) -> dict[str, Form]:
    """All but bytes, whose products it returns in f32."""
    make = WORKS.get(shape.work)
    if make is None or shape.kind not in ("f32", "bf16"):
        return {}
    core()
    return make(Graph(shape.kind), shape, given)


def product(g: Graph, shape: Shape, given: Given) -> dict[str, Form]:
    a, b = given["A"], given["B"]
    y = operators().matmul(g.input(a), g.constant(b), False, False)
    return g.form(y, (len(a), b.shape[1]))


def convolutions(g: Graph, shape: Shape, given: Given) -> dict[str, Form]:
    """Channels first, which it lays out otherwise by itself."""
    o = operators()
    image, chain = layers(shape, given)
    y = g.input(image)
    for layer in chain:
        how = ([layer.stride] * 2, [layer.pad] * 2, [layer.pad] * 2, [1, 1])
        if layer.groups == 1:
            y = o.convolution(y, g.constant(layer.weight), *how)
        else:
            filters, *rest = layer.weight.shape
            grouped = layer.weight.reshape(layer.groups, filters // layer.groups, *rest)
            y = o.group_convolution(y, g.constant(grouped), *how)
        if layer.bias is not None:
            y = o.add(y, g.constant(layer.bias[:, None, None]))
        y = o.clamp(y, 0.0, 6.0) if layer.cut else y
    return g.form(y, shape_after(image, chain), channels_last)


def softmax(g: Graph, shape: Shape, given: Given) -> dict[str, Form]:
    return g.form(operators().softmax(g.input(given["X"]), -1), given["X"].shape)


def layer_norm(g: Graph, shape: Shape, given: Given) -> dict[str, Form]:
    o = operators()
    normal = o.mvn(g.input(given["X"]), o.constant(np.array([-1], np.int64)), True, 1e-5, "inside_sqrt")
    return g.form(o.add(o.multiply(normal, g.constant(given["g"])), g.constant(given["b"])), given["X"].shape)


def bias_gelu(g: Graph, shape: Shape, given: Given) -> dict[str, Form]:
    o = operators()
    return g.form(o.gelu(o.add(g.input(given["X"]), g.constant(given["b"])), "erf"), given["X"].shape)


def transpose(g: Graph, shape: Shape, given: Given) -> dict[str, Form]:
    o = operators()
    return g.form(o.transpose(g.input(given["X"]), o.constant(np.array([1, 0], np.int64))), given["X"].shape[::-1])


def running_sum(g: Graph, shape: Shape, given: Given) -> dict[str, Form]:
    o = operators()
    return g.form(o.cum_sum(g.input(given["X"]), o.constant(np.array(1, np.int64))), given["X"].shape)


def turned_image(g: Graph, shape: Shape, given: Given) -> dict[str, Form]:
    o = operators()
    turned = o.transpose(g.input(given["X"]), o.constant(np.array([1, 0], np.int64)))
    return g.form(o.relu(o.add(turned, g.constant(given["b"]))), given["X"].shape[::-1])


def attention(g: Graph, shape: Shape, given: Given) -> dict[str, Form]:
    q, k, x = (given[n][None] for n in "QKX")
    y = operators().scaled_dot_product_attention(*map(g.input, (q, k, x)))
    return g.form(y, (*q.shape[:3], x.shape[-1]), lambda y: y[0])


def gru(g: Graph, shape: Shape, given: Given) -> dict[str, Form]:
    """Its gates are in the order update, reset, new; the batch is outside of the steps."""
    o, first = operators(), given["g"]
    x = given["x"].transpose(1, 0, 2)
    order, (batch, units) = [1, 0, 2], first.shape
    w, u = (given[n][order].transpose(0, 2, 1).reshape(1, 3 * units, -1) for n in "wu")
    bias = np.concatenate([given["b"][order].ravel(), given["c"]])[None]
    steps = o.constant(np.full(batch, x.shape[1], np.int32))
    y = o.gru_sequence(g.input(x), g.input(first[:, None]), steps, *map(g.constant, (w, u, bias)), units, "forward",
                       linear_before_reset=True)  # fmt: skip
    return g.form(y.output(0), (batch, 1, x.shape[1], units), lambda y: y[:, 0].transpose(1, 0, 2))


WORKS: dict[str, Callable[[Graph, Shape, Given], dict[str, Form]]] = {
    "product": product, "convolution": convolutions, "depthwise": convolutions, "block": convolutions,
    "softmax": softmax, "layer_norm": layer_norm, "bias_gelu": bias_gelu, "transpose": transpose,
    "running_sum": running_sum, "channels_last": turned_image, "attention": attention, "gru": gru,
}  # fmt: skip
LIBRARY = Library("openvino", "OpenVINO", version, of)
