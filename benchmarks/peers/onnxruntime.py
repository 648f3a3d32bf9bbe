"""ONNX Runtime on one thread: weights as initialisers, arguments and result bound beforehand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from ..data import RESULTS, placed, room
from ..shapes import BYTES, Gemm, Shape
from ..timing import Call
from .layers import channels_last, layers, shape_after
from .library import Array, Form, Given, Library

OPSET = 20  # of ONNX: the first that has Gelu
OWN = "com.microsoft"  # operators that ONNX has not


@cache
def module() -> Any:
    import onnx  # noqa: F401
    import onnxruntime

    return onnxruntime


def version() -> str:
    return f"{module().__version__}, 1 thread"


class Graph:
    """A model as it is written down: inputs with their data, constants, nodes."""

    def __init__(self) -> None:
        module()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs: dict[str, Array] = {}

    def input(self, x: Array) -> str:
        self.inputs[name := f"x{len(self.inputs)}"] = placed(x)
        return name

    def constant(self, x: Array) -> str:
        from onnx import numpy_helper

        name = f"w{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(x), name))
        return name

    def node(self, operator: str, *given: str, **attributes: Any) -> str:
        from onnx import helper

        name = f"y{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(given), [name], **attributes))
        return name

    def form(self, result: tuple[int, ...], dtype: Any = np.float32, read: Callable[[Array], Array] | None = None,
             ) -> Form:  # fmt: skip
        """The last node's result, of this shape, as a call."""
        from onnx import helper

        kinds = {n: helper.np_dtype_to_tensor_dtype(x.dtype) for n, x in self.inputs.items()}
        ins = [helper.make_tensor_value_info(n, kinds[n], x.shape) for n, x in self.inputs.items()]
        name, out = f"y{len(self.nodes) - 1}", room(result, dtype)
        outs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(out.dtype), result)]
        graph = helper.make_graph(self.nodes, "g", ins, outs, self.constants)
        known = [helper.make_opsetid("", OPSET), helper.make_opsetid(OWN, 1)]
        session = _session(helper.make_model(graph, opset_imports=known, ir_version=9).SerializeToString())
        binding = session.io_binding()
        for n, x in self.inputs.items():
            binding.bind_input(n, "cpu", 0, x.dtype.type, x.shape, x.ctypes.data)
        binding.bind_output(name, "cpu", 0, out.dtype.type, result, out.ctypes.data)
        keep = (self.inputs, out)
        return Form(Call(session.run_with_iobinding, (binding,), {}), lambda _: read(keep[1]) if read else keep[1])


def _session(model: bytes) -> Any:
    ort = module()
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def of(shape: Shape, given: Given) -> dict[str, Form]:
    """All but bf16, which it has not on CPUs."""
    make = WORKS.get(shape.work)
    return {} if make is None or shape.kind == "bf16" else make(shape, given)


def product(shape: Shape, given: Given) -> dict[str, Form]:
    g, b = Graph(), given["B"]
    g.node("MatMulInteger" if shape.kind in BYTES else "MatMul", g.input(given["A"]), g.constant(b))
    assert isinstance(shape, Gemm)
    return {"": g.form((shape.m, shape.n), RESULTS[shape.kind])}


def convolutions(shape: Shape, given: Given) -> dict[str, Form]:
    """Channels first, which it lays out in blocks by itself."""
    image, chain = layers(shape, given)
    g = Graph()
    x = g.input(image)
    for layer in chain:
        bias = () if layer.bias is None else (g.constant(layer.bias),)
        x = g.node("Conv", x, g.constant(layer.weight), *bias, strides=[layer.stride] * 2, pads=[layer.pad] * 4,
                   group=layer.groups)  # fmt: skip
        if layer.cut:
            x = g.node("Clip", x, *(g.constant(np.array(v, np.float32)) for v in (0, 6)))
    return {"": g.form(shape_after(image, chain), read=channels_last)}


def softmax(shape: Shape, given: Given) -> dict[str, Form]:
    g = Graph()
    g.node("Softmax", g.input(given["X"]), axis=-1)
    return {"": g.form(given["X"].shape)}


def layer_norm(shape: Shape, given: Given) -> dict[str, Form]:
    g = Graph()
    g.node("LayerNormalization", g.input(given["X"]), g.constant(given["g"]), g.constant(given["b"]), epsilon=1e-5)
    return {"": g.form(given["X"].shape)}


def bias_gelu(shape: Shape, given: Given) -> dict[str, Form]:
    """As two operators of ONNX, and as the one that the library has of its own."""
    two, one = Graph(), Graph()
    two.node("Gelu", two.node("Add", two.input(given["X"]), two.constant(given["b"])))
    one.node("BiasGelu", one.input(given["X"]), one.constant(given["b"]), domain=OWN)
    return {"Gelu": two.form(given["X"].shape), "BiasGelu": one.form(given["X"].shape)}


def transpose(shape: Shape, given: Given) -> dict[str, Form]:
    g = Graph()
    g.node("Transpose", g.input(given["X"]), perm=[1, 0])
    return {"": g.form(given["X"].shape[::-1])}


def running_sum(shape: Shape, given: Given) -> dict[str, Form]:
    g = Graph()
    g.node("CumSum", g.input(given["X"]), g.constant(np.array(1, np.int64)))
    return {"": g.form(given["X"].shape)}


def turned_image(shape: Shape, given: Given) -> dict[str, Form]:
    g = Graph()
    g.node("Relu", g.node("Add", g.node("Transpose", g.input(given["X"]), perm=[1, 0]), g.constant(given["b"])))
    return {"": g.form(given["X"].shape[::-1])}


def attention(shape: Shape, given: Given) -> dict[str, Form]:
    """In steps, and as the operator that the library has of its own: every head as a batch of one head."""
    q, k, x = (given[n] for n in "QKX")
    steps, one = Graph(), Graph()
    scores = steps.node("MatMul", steps.input(q), steps.node("Transpose", steps.input(k), perm=[0, 2, 1]))
    scale = np.array(q.shape[-1] ** -0.5, np.float32)
    rows = steps.node("Softmax", steps.node("Mul", scores, steps.constant(scale)), axis=-1)
    steps.node("MatMul", rows, steps.input(x))
    one.node("MultiHeadAttention", *(one.input(v) for v in (q, k, x)), num_heads=1, domain=OWN)
    result = (*q.shape[:2], x.shape[-1])
    return {"steps": steps.form(result), "MultiHeadAttention": one.form(result)}


def gru(shape: Shape, given: Given) -> dict[str, Form]:
    """ONNX has the gates in the order update, reset, new."""
    x, first = given["x"], given["g"]
    order, units = [1, 0, 2], first.shape[1]
    w, u = (given[n][order].transpose(0, 2, 1).reshape(1, 3 * units, -1) for n in "wu")
    bias = np.concatenate([given["b"][order].ravel(), np.zeros(2 * units, np.float32), given["c"]])[None]
    g = Graph()
    g.node("GRU", g.input(x), *map(g.constant, (w, u, bias)), "", g.input(first[None]), hidden_size=units,
           linear_before_reset=1)  # fmt: skip
    return {"": g.form((len(x), 1, *first.shape), read=lambda y: y[:, 0])}


WORKS: dict[str, Callable[[Shape, Given], dict[str, Form]]] = {
    "product": product, "convolution": convolutions, "depthwise": convolutions, "block": convolutions,
    "softmax": softmax, "layer_norm": layer_norm, "bias_gelu": bias_gelu, "transpose": transpose,
    "running_sum": running_sum, "channels_last": turned_image, "attention": attention, "gru": gru,
}  # fmt: skip
LIBRARY = Library("onnxruntime", "ONNX Runtime", version, of)
