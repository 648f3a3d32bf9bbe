"""oneDNN as torch reaches it: products, convolutions, depthwise ones, blocks.

Convolutions in every form we know of that could be its fastest: as torch runs them, frozen and optimised, with weights
laid out beforehand and what follows each done within it, with the image laid out beforehand too. Channels last.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

from ..shapes import BYTES, Gemm, Shape
from . import torch as by_torch
from .layers import WORKS, Layer, channels_last, layers
from .library import Array, Form, Given, Library
from .torch import Call, packed, tensor, tried


def version() -> str:
    torch = by_torch.module()
    found = re.search(r"oneDNN\) v([\d.]+)|MKL-DNN v([\d.]+)", torch.__config__.show())
    if found is None:
        raise ImportError("this torch has no oneDNN")
    return f"{found[1] or found[2]} in torch, {torch.get_num_threads()} thread"


def of(shape: Shape, given: Given) -> dict[str, Form]:
    """Products: f32, bf16 into bf16, bytes with a sign into i32. What has an image: f32 and bf16."""
    if isinstance(shape, Gemm):
        return {n: Form(call, by_torch.read) for n, call in _products(shape, given["A"], given["B"]).items()}
    if shape.work not in WORKS:
        return {}
    image, chain = layers(shape, given)
    return {n: Form(call, _read) for n, call in _convolutions(tensor(image), chain).items()}


def _products(shape: Gemm, a: Array, b: Array) -> dict[str, Call]:
    torch = by_torch.module()
    if shape.kind in BYTES:
        x, y = torch.from_numpy(a.view(np.int8)), torch.from_numpy(b)
        columns = y.t().contiguous().t()
        return {"int_mm": lambda: torch._int_mm(x, y), "int_mm, columns": lambda: torch._int_mm(x, columns)}
    x, y = tensor(a), tensor(b)
    weight = y.t().contiguous()
    found: dict[str, Call] = tried("prepacked", lambda: packed(torch, "mkldnn", weight, shape.m, lambda: x))
    if shape.kind == "f32":  # torch's own forms are MKL's
        return found
    layer = torch.nn.Linear(shape.k, shape.n, bias=False, dtype=x.dtype).eval()
    layer.weight.data = weight
    return {"mm": lambda: x @ y, "linear": lambda: layer(x), **found}


def _read(y: Any) -> Array:
    y = y if y.layout is by_torch.module().strided else y.to_dense()
    return channels_last(by_torch.read(y.contiguous()))


def _convolutions(image: Any, chain: list[Layer]) -> dict[str, Call]:
    torch = by_torch.module()
    image = image.contiguous(memory_format=torch.channels_last)
    module = torch.nn.Sequential(*(m for layer in chain for m in _modules(torch, layer))).eval()
    module = module.to(memory_format=torch.channels_last)
    found: dict[str, Call] = {"plain": lambda: module(image)}
    found |= tried("frozen", lambda: _frozen(torch, module, image))
    found |= tried("prepacked", lambda: _prepacked(torch, image, chain))
    if len(chain) == 1:
        found |= tried("blocked", lambda: _blocked(torch, image, chain[0]))
    return found


def _modules(torch: Any, layer: Layer) -> list[Any]:
    filters, per_group, *taps = layer.weight.shape
    made = torch.nn.Conv2d(per_group * layer.groups, filters, taps, layer.stride, layer.pad, groups=layer.groups,
                           bias=layer.bias is not None)  # fmt: skip
    made.weight.data = tensor(layer.weight).contiguous(memory_format=torch.channels_last)
    if layer.bias is not None:
        made.bias.data = tensor(layer.bias).to(made.weight.dtype)
    return [made, torch.nn.ReLU6(inplace=True)] if layer.cut else [made]


def _frozen(torch: Any, module: Any, image: Any) -> Call:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        frozen = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(module, image)))
    frozen(image)  # it is made quicker at the first calls
    return lambda: frozen(image)


def _reordered(torch: Any, layer: Layer, shape: tuple[int, ...]) -> tuple[Any, tuple[Any, ...]]:
    """A layer's weights as oneDNN wants them for images of this shape, and what is given after its bias."""
    how = ([layer.pad] * 2, [layer.stride] * 2, [1, 1], layer.groups)
    weight = tensor(layer.weight).contiguous(memory_format=torch.channels_last)
    return torch.ops.mkldnn._reorder_convolution_weight(weight, *how, list(shape)), how


def _prepacked(torch: Any, image: Any, chain: list[Layer]) -> Call:
    steps, shape, run = [], tuple(image.shape), torch.ops.mkldnn._convolution_pointwise
    for layer in chain:
        weight, how = _reordered(torch, layer, shape)
        bias = None if layer.bias is None else tensor(layer.bias).to(image.dtype)
        then = ("hardtanh", [0, 6], "") if layer.cut else ("none", [], "")
        steps.append((weight, bias, *how, *then))
        shape = layer.out(shape)

    def call() -> Any:
        x = image
        for step in steps:
            x = run(x, *step)
        return x

    return call


def _blocked(torch: Any, image: Any, layer: Layer) -> Call:
    weight, how = _reordered(torch, layer, tuple(image.shape))
    ready = image.contiguous().to_mkldnn()
    return lambda: torch.mkldnn_convolution(ready, weight, None, *how)


LIBRARY = Library("onednn", "oneDNN", version, of)
