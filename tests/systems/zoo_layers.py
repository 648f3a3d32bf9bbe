"""References of the zoo's larger units: layers, activations, requantisation (see ``zoo_references``)."""

from __future__ import annotations

import math

import numpy as np

from tests.systems.zoo_references import Array, Arrays, clip, f64, i64, rounded, says


def scaled(x: Array, s: Array) -> Array:
    """The accumulator as f32 times the scale, both rounded to f32, then to the even whole number."""
    return np.rint(x.astype(np.float32) * s.astype(np.float32))


@says("gemmini", "mvout")
def mvout(v: dict[str, str], a: Arrays) -> Arrays:
    y = scaled(a["S"], a["s"])
    return {"D": clip(np.maximum(y, 0) if v["f"] == "relu" else y, np.int8)}


@says("tpu_like", "activate")
def activate(v: dict[str, str], a: Arrays) -> Arrays:
    y = scaled(a["C"], a["s"])
    return {"D": clip(np.maximum(y, 0) if v["f"] == "relu" else y, np.int8)}


@says("tpu_like", "pool_max")
def pool_bytes(v: dict[str, str], a: Arrays) -> Arrays:
    x = a["A"]
    h, w, c = a["D"].shape
    return {"D": x.reshape(h, 2, w, 2, c).max(axis=(1, 3)) if a["D"].size else a["D"]}


@says("units", "gemm_bias_relu")
def gemm_bias_relu(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": rounded(np.maximum(f64(a["A"]) @ f64(a["B"]) + f64(a["b"]), 0), a["C"])}


def gelu64(x: Array) -> Array:
    erf = np.vectorize(math.erf, otypes=[float])
    return x * (1 + erf(x / math.sqrt(2))) / 2


@says("units", "gemm_bias_gelu")
def gemm_bias_gelu(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": gelu64(f64(a["A"]) @ f64(a["B"]) + f64(a["b"]))}


@says("units", "gemm_i8_requant")
def requantised(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": clip(scaled(i64(a["A"]) @ i64(a["B"]) + i64(a["b"]), a["s"]), np.int8)}


@says("units", "batched_gemm")
def batched(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": rounded(f64(a["C"]) + np.matmul(f64(a["A"]), f64(a["B"])), a["C"])}


def windows(x: Array, out: tuple[int, ...], size: tuple[int, ...], step: int) -> Array:
    """``[taps..., N, outputs..., C]``: what each tap of the window sees, channels innermost."""
    taps = []
    for tap in np.ndindex(*size):
        cut = tuple(slice(t, t + step * (n - 1) + 1 if n else t, step) for t, n in zip(tap, out, strict=True))
        taps.append(x[(slice(None), *cut)])
    return np.array(taps).reshape(*size, x.shape[0], *out, x.shape[-1])


def convolved(a: Arrays, step: int) -> Array:
    w = f64(a["w"])
    out, size = a["y"].shape[1:-1], w.shape[:-2]
    seen = windows(f64(a["x"]), out, size, step).reshape(math.prod(size), a["x"].shape[0], *out, w.shape[-2])
    return np.einsum("tn...c,tck->n...k", seen, w.reshape(math.prod(size), *w.shape[-2:]))


@says("units", "conv2d", "conv1d", "conv3d")
def convolution(v: dict[str, str], a: Arrays) -> Arrays:
    return {"y": rounded(f64(a["y"]) + convolved(a, int(v.get("Z", 1))), a["y"])}


@says("units", "conv2d_bias_relu")
def convolution_bias_relu(v: dict[str, str], a: Arrays) -> Arrays:
    return {"y": rounded(np.maximum(convolved(a, 1) + f64(a["b"]), 0), a["y"])}


@says("units", "depthwise2d")
def depthwise(v: dict[str, str], a: Arrays) -> Arrays:
    w = f64(a["w"])
    seen = windows(f64(a["x"]), a["y"].shape[1:-1], w.shape[:-1], 1)
    return {"y": rounded(f64(a["y"]) + np.einsum("rsnhvc,rsc->nhvc", seen, w), a["y"])}


@says("units", "transposed_conv2d")
def transposed_convolution(v: dict[str, str], a: Arrays) -> Arrays:
    """Every pixel adds its filter at twice its place."""
    x, w, y = f64(a["x"]), f64(a["w"]), f64(a["y"])
    r, s = w.shape[:2]
    for n, h, p in np.ndindex(*x.shape[:3]):
        y[n, 2 * h : 2 * h + r, 2 * p : 2 * p + s] += np.einsum("c,rsck->rsk", x[n, h, p], w)
    return {"y": rounded(y, a["y"])}


@says("units", "pool")
def pool(v: dict[str, str], a: Arrays) -> Arrays:
    size = (int(v["R"]), int(v["S"]))
    seen = windows(f64(a["x"]), a["y"].shape[1:-1], size, 2)
    return {"y": rounded(seen.max(axis=(0, 1)) if v["p"] == "max" else seen.sum(axis=(0, 1)), a["y"])}


@says("units", "softmax_row")
def softmax(v: dict[str, str], a: Arrays) -> Arrays:
    x = f64(a["x"])
    e = np.exp(x - x.max(axis=1, keepdims=True)) if x.shape[1] else x
    return {"y": e / e.sum(axis=1, keepdims=True)}


@says("units", "layernorm_row")
def layernorm(v: dict[str, str], a: Arrays) -> Arrays:
    """``n``: one divided by the row's length, which the caller knows."""
    x, n = f64(a["x"]), float(a["n"])
    d = x - x.sum(axis=1, keepdims=True) * n
    return {"y": d / np.sqrt((d * d).sum(axis=1, keepdims=True) * n + 1e-5) * f64(a["g"]) + f64(a["b"])}


@says("units", "rmsnorm_row")
def rmsnorm(v: dict[str, str], a: Arrays) -> Arrays:
    x = f64(a["x"])
    return {"y": x / np.sqrt((x * x).sum(axis=1, keepdims=True) * float(a["n"]) + 1e-5) * f64(a["g"])}


@says("units", "gelu")
def gelu(v: dict[str, str], a: Arrays) -> Arrays:
    return {"y": gelu64(f64(a["x"]))}


@says("units", "swish")
def swish(v: dict[str, str], a: Arrays) -> Arrays:
    return {"y": f64(a["x"]) / (1 + np.exp(-f64(a["x"])))}


@says("units", "bias_add")
def bias_add(v: dict[str, str], a: Arrays) -> Arrays:
    return {"y": a["y"] + a["b"]}


@says("units", "scale_shift")
def scale_shift(v: dict[str, str], a: Arrays) -> Arrays:
    return {"y": rounded(f64(a["x"]) * f64(a["g"]) + f64(a["b"]), a["y"])}


@says("units", "residual")
def residual(v: dict[str, str], a: Arrays) -> Arrays:
    return {"y": np.maximum(a["x"] + a["r"], 0)}
