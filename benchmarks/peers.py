"""What ISAM is compared with: NumPy (its BLAS) and, where torch is installed, oneDNN as torch reaches it.

A peer offers callables without arguments that return its result; convolutions of oneDNN in every form we know of that
could be its fastest: as torch runs it, frozen and optimised, with weights laid out beforehand, with the image laid out
beforehand too. The best of them counts.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from ml_dtypes import bfloat16

from .data import windows
from .networks import NETWORKS
from .shapes import Case, Convolution, Gemm
from .timing import Call as Timed

Array = np.ndarray[Any, Any]
Call = Callable[[], Any]


def numpy_product(a: Array, b: Array) -> Call:
    """``np.matmul`` into an array that is there already."""
    out = np.empty((a.shape[0], b.shape[1]), np.float32)
    return Timed(np.matmul, (a, b), {"out": out})


def numpy_dot(a: Array, b: Array) -> Call:
    """``np.dot`` into an array that is there already: the same BLAS, a quicker call."""
    out = np.empty((a.shape[0], b.shape[1]), np.float32)
    return Timed(np.dot, (a, b), {"out": out})


def torch_products(shape: Gemm, a: Array, b: Array) -> dict[str, Call]:
    """oneDNN through torch, one thread: bf16 into bf16; bytes with a sign into i32. Nothing where torch is not
    installed."""
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    if shape.kind == "int8":
        x, y = torch.from_numpy(a.view(np.int8)), torch.from_numpy(b)
        return {"int_mm": lambda: torch._int_mm(x, y)}
    x, y = _tensor(torch, a), _tensor(torch, b)
    found: dict[str, Call] = {"mm": lambda: x @ y}
    layer = torch.nn.Linear(shape.k, shape.n, bias=False, dtype=torch.bfloat16).eval()
    layer.weight.data = y.t().contiguous()
    found["linear"] = lambda: layer(x)
    try:
        packed = torch.ops.mkldnn._reorder_linear_weight(layer.weight.to_mkldnn(), shape.m)
        found["prepacked"] = lambda: torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], "")
        found["prepacked"]()
    except (AttributeError, RuntimeError):
        found.pop("prepacked", None)
    return found


def _tensor(torch: Any, v: Array) -> Any:
    """The same memory as torch's."""
    return torch.from_numpy(v.view(np.int16)).view(torch.bfloat16) if v.dtype == bfloat16 else torch.from_numpy(v)


def numpy_convolution(shape: Convolution, x: Array, w: Array) -> Call:
    """Windows copied side by side (im2col), then one product; a 1x1 convolution at stride 1 copies nothing."""
    flat = w.reshape(shape.terms, shape.filters)
    rows, result = shape.batch * shape.out * shape.out, (*x.shape[:-3], shape.out, shape.out, shape.filters)
    return lambda: (windows(shape, x).reshape(rows, shape.terms) @ flat).reshape(result)


def torch_convolutions(shape: Convolution, x: Array, w: Array) -> dict[str, Call]:
    """oneDNN through torch, one thread; nothing where torch is not installed. Results are tensors: see ``plain``."""
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    last = torch.channels_last
    image = _tensor(torch, x.reshape(-1, *x.shape[-3:])).permute(0, 3, 1, 2).contiguous(memory_format=last)
    weight = _tensor(torch, w).permute(3, 2, 0, 1).contiguous(memory_format=last)
    layer = torch.nn.Conv2d(shape.channels, shape.filters, shape.taps, shape.stride, shape.pad, bias=False).eval()
    layer.weight.data = weight
    layer = layer.to(memory_format=last)
    found: dict[str, Call] = {"plain": lambda: layer(image)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            frozen = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(layer, image)))
        frozen(image)
        found["frozen"] = lambda: frozen(image)
    except RuntimeError:
        pass
    found.update(_prepared(torch, shape, image, weight))
    return found


def of_case(case: Case, arrays: dict[str, Array]) -> dict[str, Call]:
    """What torch has for a case, one thread, in each form that could be its fastest; nothing where it is not
    installed."""
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    given = {n: _tensor(torch, v) for n, v in arrays.items()}
    if case.kind == "bf16":
        given = {n: v.bfloat16() for n, v in given.items()}
    if case.kernel == "depthwise":
        return _torch_depthwise(torch, given, dict(case.sizes)["stride"])
    if case.kernel in NETWORKS:
        return NETWORKS[case.kernel](torch, given, dict(case.sizes))
    x, f = given["X"], torch.nn.functional
    out = torch.empty_like(x)
    calls: dict[str, dict[str, Call]] = {
        "softmax": {"plain": lambda: torch.softmax(x, -1), "out": lambda: torch.softmax(x, -1, out=out)},
        "layer_norm": {"plain": lambda: f.layer_norm(x, x.shape[1:], given["g"], given["b"])},
        "bias_gelu": {"plain": lambda: f.gelu(x + given["b"]),
                      "out": lambda: torch.ops.aten.gelu.out(torch.add(x, given["b"], out=out), out=out)},
    }  # fmt: skip
    return {f"torch {n}": call for n, call in calls[case.kernel].items()}


def _torch_depthwise(torch: Any, given: dict[str, Any], stride: int) -> dict[str, Call]:
    """A convolution with a group per channel, channels last."""
    last = torch.channels_last
    image = given["X"].permute(2, 0, 1)[None].contiguous(memory_format=last)
    channels = image.shape[1]
    layer = torch.nn.Conv2d(channels, channels, 3, stride, 0, groups=channels, bias=False).eval()
    layer.weight.data = given["w"].permute(2, 0, 1)[:, None].contiguous(memory_format=last)
    layer = layer.to(memory_format=last)
    found: dict[str, Call] = {"onednn plain": lambda: layer(image)}
    try:
        packed = torch.ops.mkldnn._reorder_convolution_weight(
            layer.weight.data, [0, 0], [stride] * 2, [1, 1], channels, list(image.shape))  # fmt: skip
        found["onednn prepacked"] = lambda: torch.ops.mkldnn._convolution_pointwise(
            image, packed, None, [0, 0], [stride] * 2, [1, 1], channels, "none", [], "")  # fmt: skip
        found["onednn prepacked"]()
    except (AttributeError, RuntimeError):
        found.pop("onednn prepacked", None)
    return found


def _prepared(torch: Any, shape: Convolution, image: Any, weight: Any) -> dict[str, Call]:
    """Weights, and weights and image, in the layouts that oneDNN asks for; empty where this torch has no such call."""
    pad, stride, one = [shape.pad] * 2, [shape.stride] * 2, [1, 1]
    try:
        packed = torch.ops.mkldnn._reorder_convolution_weight(weight, pad, stride, one, 1, list(image.shape))
        blocked = image.contiguous().to_mkldnn()
        calls: dict[str, Call] = {
            "prepacked": lambda: torch.ops.mkldnn._convolution_pointwise(
                image, packed, None, pad, stride, one, 1, "none", [], ""),
            "blocked": lambda: torch.mkldnn_convolution(blocked, packed, None, pad, stride, one, 1),
        }  # fmt: skip
        for call in calls.values():
            call()
    except (AttributeError, RuntimeError):
        return {}
    return calls


def plain(result: Any) -> Array:
    """A result as (height, width, filters), after the number of images if they are several, or as it is when it is an
    array."""
    if isinstance(result, np.ndarray):
        return result
    import torch

    if result.dim() not in (2, 3):
        result = result.to_dense() if result.layout != torch.strided else result
        result = result.permute(0, 2, 3, 1).contiguous()
        result = result[0] if result.shape[0] == 1 else result
    if result.dtype == torch.bfloat16:
        return result.contiguous().view(torch.int16).numpy().view(bfloat16)
    return result.numpy()


def versions() -> dict[str, str]:
    """Of everything that runs, and how many threads each may use."""
    import llvmlite.binding as llvm
    import scipy
    from threadpoolctl import threadpool_info

    import isam

    out = {"isam": isam.__version__, "numpy": np.__version__, "scipy": scipy.__version__,
           "llvm": ".".join(map(str, llvm.llvm_version_info))}  # fmt: skip
    for pool in threadpool_info():
        if pool["user_api"] == "blas" and "numpy" in pool["filepath"]:
            kind = pool.get("architecture", "")
            out["numpy's BLAS"] = f"{pool['internal_api']} {pool['version']} ({kind}), {pool['num_threads']} thread"
    try:
        import torch

        out["torch"] = f"{torch.__version__}, {torch.get_num_threads()} thread"
        found = re.search(r"oneDNN\) v([\d.]+)|MKL-DNN v([\d.]+)", torch.__config__.show())
        if found:
            out["oneDNN"] = found[1] or found[2]
    except ImportError:
        pass
    return out


def of(shape: Gemm | Convolution, a: Array, b: Array) -> dict[str, Call]:
    """Every peer of a shape by name."""
    if isinstance(shape, Gemm):
        if shape.kind != "f32":
            return {f"onednn {n}": f for n, f in torch_products(shape, a, b).items()}
        return {"numpy": numpy_product(a, b), "numpy dot": numpy_dot(a, b)}
    found = {f"onednn {n}": f for n, f in torch_convolutions(shape, a, b).items()}
    alone = shape.kind == "f32" and shape.batch == 1  # more images make matrices of gigabytes
    return {"numpy": numpy_convolution(shape, a, b), **found} if alone else found
