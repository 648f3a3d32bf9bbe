"""What the corpus computes, in plain NumPy and written independently of the language: one function per kernel.

Each takes the arrays by name (float64 or integers), the sizes and the compile-time constants, and returns the outputs.
"""

from __future__ import annotations

from math import erf

import numpy as np


def E(rule, *arrays):
    """einsum by matrix products where it is worth it: large layers take seconds, not minutes."""
    return np.einsum(rule, *arrays, optimize=max((a.size for a in arrays), default=0) > 10_000)


def windows(x, axes, counts, taps, stride, dilation):
    """Views of ``x`` shifted by every filter tap: shape ``taps + cut shape``."""
    out = np.empty((*taps, *(counts[axes.index(d)] if d in axes else n for d, n in enumerate(x.shape))), x.dtype)
    for tap in np.ndindex(*taps):
        cut = [slice(None)] * x.ndim
        for a, n, t in zip(axes, counts, tap, strict=True):
            start = t * dilation
            cut[a] = slice(start, start + stride * max(n - 1, 0) + 1, stride) if n else slice(0, 0)
        out[tap] = x[tuple(cut)]
    return out


def conv(x, w, axes, counts, taps, rule, p):
    return E(rule, windows(x, axes, counts, taps, p.get("stride", 1), p.get("dilation", 1)), w)


def conv2d(a, s, p):
    y = conv(a["x"], a["w"], (2, 3), (s["H"], s["W"]), (s["R"], s["S"]), "rsnchv,kcrs->nkhv", p)
    return {"y": np.maximum(y + a["b"][None, :, None, None], 0)}


def conv1d(a, s, p):
    return {"y": conv(a["x"], a["w"], (2,), (s["W"],), (s["S"],), "sncv,kcs->nkv", p)}


def conv2d_nhwc(a, s, p):
    return {"y": conv(a["x"], a["w"], (1, 2), (s["H"], s["W"]), (s["R"], s["S"]), "rsnhvc,rsck->nhvk", p)}


def conv3d(a, s, p):
    taps, counts = (s["Q"], s["R"], s["S"]), (s["D"], s["H"], s["W"])
    return {"y": conv(a["x"], a["w"], (2, 3, 4), counts, taps, "qrsncdhv,kcqrs->nkdhv", p)}


def grouped_conv2d(a, s, p):
    return {"y": conv(a["x"], a["w"], (3, 4), (s["H"], s["W"]), (s["R"], s["S"]), "rsngchv,gkcrs->ngkhv", p)}


def depthwise_conv2d(a, s, p):
    return {"y": conv(a["x"], a["w"], (2, 3), (s["H"], s["W"]), (s["R"], s["S"]), "rsnchv,crs->nchv", p)}


def sepconv(a, s, p):
    taps = windows(a["x"], (0, 1), (s["H"], s["W"]), (s["R"], s["S"]), 1, 1)
    return {"y": E("rshvc,rscq,cqk->hvk", taps, a["d"], a["p"])}


def pointwise_nhwc(a, s, p):
    return {"y": a["x"][:, :: p["stride"], :: p["stride"]] @ a["w"]}


def padded(a, s, p, where, rule):
    x = np.pad(a["x"], [(1, 1) if d in where else (0, 0) for d in range(4)])
    return {"y": conv(x, a["w"], where, (s["H"], s["W"]), (3, 3), rule, {})}


def padded_nchw(a, s, p):
    return padded(a, s, p, (2, 3), "rsnchv,kcrs->nkhv")


def padded_nhwc(a, s, p):
    return padded(a, s, p, (1, 2), "rsnhvc,rsck->nhvk")


def transposed_conv1d(a, s, p):
    y = np.zeros((s["N"], max(0, p["stride"] * (s["W"] - 1) + s["S"]), s["K"]))
    for v in range(s["W"]):
        for t in range(s["S"]):
            y[:, p["stride"] * v + t] += a["x"][:, v] @ a["w"][t]
    return {"y": y}


def max_pool(a, s, p):
    return {"y": windows(a["x"], (2, 3), (s["H"], s["W"]), (3, 3), 2, 1).max((0, 1))}


def average_pool(a, s, p):
    return {"y": a["x"][:, :7, :7].sum((1, 2)) / 16}


def softmax_rows(z):
    e = np.exp(z - z.max(-1, keepdims=True, initial=-np.inf))
    return e / e.sum(-1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rnn(a, s, p):
    h, ys = a["h"], []
    for t in range(s["T"]):
        h = np.tanh(a["x"][t] @ a["w"] + h @ a["u"])
        ys.append(h)
    return {"h": h, "ys": np.array(ys).reshape(s["T"], s["B"], s["H"])}


def gelu_erf(a, s, p):
    return {"y": a["x"] / 2 * (1 + np.vectorize(erf, otypes=[float])(a["x"] / np.sqrt(2)))}


def gelu_tanh(a, s, p):
    return {"y": a["x"] / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (a["x"] + 0.044715 * a["x"] ** 3)))}


def layer_norm(a, s, p):
    x, n = a["x"], a["count"]
    d = x - x.sum(1, keepdims=True) / n
    return {"y": d / np.sqrt((d * d).sum(1, keepdims=True) / n + 1e-5) * a["g"] + a["b"]}


def attention(a, s, p):
    z = a["Q"] @ a["K"].T / 8
    e = np.exp(z - z.max(-1, keepdims=True, initial=-np.inf))
    return {"O": e @ a["X"] / e.sum(-1, keepdims=True)}  # no keys at all: 0 / 0


def causal_attention(a, s, p):
    z = a["Q"] @ a["K"].T
    return {"O": softmax_rows(np.where(np.tri(len(z), dtype=bool), z, -np.inf)) @ a["X"]}


def gru_cell(x, h, w, u, c):
    z = sigmoid(x @ w[0] + h @ u[0] + c[0])
    r = sigmoid(x @ w[1] + h @ u[1] + c[1])
    n = np.tanh(x @ w[2] + c[2] + r * (h @ u[2]))
    return (1 - z) * n + z * h


def gru_step(a, s, p):
    return {"h": gru_cell(a["x"], a["h"], a["w"], a["u"], a["c"])}


def gru(a, s, p):
    h, ys = a["h"], np.zeros((s["T"], s["B"], s["H"]))
    for t in range(s["T"]):
        h = ys[t] = gru_cell(a["x"][t], h, a["w"], a["u"], np.zeros(3))
    return {"h": h, "ys": ys}


def lstm_cell(x, h, c, w, u):
    i, f, g, o = (x @ w[:, k] + h @ u[:, k] for k in range(4))
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def lstm_step(a, s, p):
    h, c = lstm_cell(a["x"], a["h"], a["c"], a["w"], a["u"])
    return {"h": h, "c": c}


def lstm(a, s, p):
    h, c = a["h"], a["c"]
    for t in range(s["T"]):
        h, c = lstm_cell(a["x"][t], h, c, a["w"], a["u"])
    return {"h": h, "c": c}


def batch_norm(a, s, p):
    m, v, g, b = (a[n][:, None, None] for n in ("mean", "var", "g", "b"))
    return {"y": (a["x"] - m) / np.sqrt(v + 0.001) * g + b}


def chain(a, s, p):
    x = abs(a["x"]) + 1
    return {"z": np.cos(np.log(x) - np.sqrt(x) * a["y"]) + np.sin(a["y"]) / x}


def reductions(a, s, p):
    x = a["x"]
    return {"s": x.sum(1), "p": x.prod(1), "hi": x.max(0, initial=-np.inf), "lo": x.min(initial=np.inf)}


def reductions_i32(a, s, p):
    x = a["x"]
    return {"s": x.sum(1), "p": x.prod(1), "hi": x.max(0, initial=-1000000)}


def diagonal(a, s, p):
    return {"d": np.diag(a["x"]), "t": np.trace(a["x"])}


def interleave(a, s, p):
    return {"z": np.stack([a["x"], a["y"]], 1).ravel()}


def clamp(a, s, p):
    x = a["x"]
    return {"y": np.clip(x, -128, 127), "z": (x + 128) % 256 - 128, "f": x / 2}


def masks(a, s, p):
    x, y = a["x"], a["y"]
    return {"z": ((x <= y) & (x != 0)) | (y > 2)}


def stencil(a, s, p):
    x = a["x"]
    y = x.copy()
    if min(x.shape, default=0) > 2:
        y[1:-1, 1:-1] = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) / 4
    return {"y": y}


def cumulative(a, s, p):
    h, y = a["s"], np.zeros((s["T"], s["N"]))
    for t in range(s["T"]):
        h = y[t] = h / 2 + a["x"][t]
    return {"s": h, "y": y}


def requantised(a, s, p):
    return {"C": np.clip(np.rint((a["A"].astype(int) @ a["B"].astype(int) + a["b"]) * 0.046875), -128, 127)}


def correlate(a, s, p):
    x, w = a["x"], a["w"][::-1]
    return {"y": np.array([sum(x[v + t] * w[t] for t in range(len(w))) for v in range(s["W"])])}


def distance(a, s, p):
    return {"z": np.sqrt(((a["x"][:, None] - a["y"][None]) ** 2).sum(-1)).reshape(s["M"], s["N"])}


def einsum(rule, *names, out="C"):
    return lambda a, s, p: {out: E(rule, *(a[n] for n in names))}


def triangular(a, s, p):
    return {"C": np.tril(a["A"]) @ a["B"]}


def widened(f):
    """The same function of int64 or float64 arrays."""

    def apply(a, s, p):
        return f({n: x.astype(np.int64 if x.dtype.kind in "iu" else np.float64) for n, x in a.items()}, s, p)

    return apply


MATMUL = einsum("mk,kn->mn", "A", "B")
REFERENCES = {
    "matmul": MATMUL, "matmul_f64": MATMUL, "matmul_exact": MATMUL, "matmul_i32": MATMUL, "matmul_i8": widened(MATMUL),
    "matmul_u8i8": widened(MATMUL), "matmul_bf16": widened(MATMUL),
    "matmul_at": einsum("km,kn->mn", "A", "B"), "matmul_bt": einsum("mk,nk->mn", "A", "B"),
    "matmul_atbt": einsum("km,nk->mn", "A", "B"), "batched_matmul": einsum("lmk,lkn->lmn", "A", "B"),
    "matmul_acc": lambda a, s, p: {"C": a["C"] + a["A"] @ a["B"]},
    "bias_relu_matmul": lambda a, s, p: {"C": np.maximum(a["A"] @ a["B"] + a["b"], 0)},
    "scaled_matmul": lambda a, s, p: {"C": a["A"] @ a["B"] / 2 - 2 * a["D"]},
    "requantised_matmul": requantised,
    "gemv": einsum("mk,k->m", "A", "x", out="y"), "gemv_t": einsum("km,k->m", "A", "x", out="y"),
    "dot": einsum("k,k->", "x", "y", out="z"), "ger": lambda a, s, p: {"A": a["A"] + np.outer(a["x"], a["y"])},
    "axpy": lambda a, s, p: {"y": a["y"] + a["a"] * a["x"]}, "triangular": triangular,
    "syrk": lambda a, s, p: {"C": np.tril(a["A"] @ a["A"].T)}, "chain3": einsum("mk,kl,ln->mn", "A", "B", "D"),
    "bilinear": einsum("k,klm,l->m", "x", "A", "y", out="z"),
    "conv2d": conv2d, "conv1d": conv1d, "conv2d_nhwc": conv2d_nhwc, "conv3d": conv3d, "grouped_conv2d": grouped_conv2d,
    "depthwise_conv2d": depthwise_conv2d, "pointwise_conv2d": einsum("nchv,kc->nkhv", "x", "w", out="y"),
    "pointwise_conv2d_nhwc": pointwise_nhwc, "padded_conv2d_temp": padded_nchw, "padded_conv2d_where": padded_nchw,
    "padded_conv2d_nhwc_temp": padded_nhwc, "conv_same": padded_nhwc, "conv2d_bf16": widened(conv2d_nhwc),
    "transposed_conv1d": transposed_conv1d, "max_pool": max_pool, "average_pool": average_pool,
    "correlate_reversed": correlate, "sepconv": sepconv,
    "softmax": lambda a, s, p: {"y": softmax_rows(a["x"])}, "rnn": rnn, "gelu_erf": gelu_erf, "gelu_tanh": gelu_tanh,
    "layer_norm": layer_norm, "attention": attention, "causal_attention": causal_attention, "gru_step": gru_step,
    "lstm_step": lstm_step, "gru": gru, "lstm": lstm, "batch_norm_inference": batch_norm,
    "residual_relu": lambda a, s, p: {"y": np.maximum(a["x"] + a["z"], 0)}, "chain": chain, "reductions": reductions,
    "reductions_i32": reductions_i32, "transpose": lambda a, s, p: {"y": a["x"].T},
    "reverse": lambda a, s, p: {"y": a["x"][::-1, ::-1]}, "diagonal": diagonal, "interleave": interleave,
    "leaky": lambda a, s, p: {"y": np.where(a["x"] < 0, a["x"] / 8, a["x"])}, "clamp_i8": clamp, "masks": masks,
    "lower_triangle": lambda a, s, p: {"y": np.tril(a["x"])}, "stencil": stencil, "cumulative": cumulative,
    "broadcast_add": lambda a, s, p: {"z": a["x"][:, None] + a["y"]}, "argument_distance": distance,
}  # fmt: skip


