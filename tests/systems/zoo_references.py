"""What the instructions of the zoo compute, in NumPy, written from the manuals and not from the bodies.

``REFERENCES[system, family]`` takes the values of the family's parameters and the operands by name, and returns what
the operands written hold afterwards. Integers are computed in int64 and wrapped or clipped as the manual says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Arrays = dict[str, Array]
Reference = Callable[[dict[str, str], Arrays], Arrays]
REFERENCES: dict[tuple[str, str], Reference] = {}


def says(system: str, *families: str) -> Callable[[Reference], Reference]:
    """Registers the function below as the reference of these families."""

    def register(f: Reference) -> Reference:
        for family in families:
            assert (system, family) not in REFERENCES
            REFERENCES[system, family] = f
        return f

    return register


def i64(x: Array) -> Array:
    return x.astype(np.int64)


def f64(x: Array) -> Array:
    return x.astype(np.float64)


def wrap(x: Array, dtype: Any) -> Array:
    bits = np.dtype(dtype).itemsize * 8
    return ((x + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))).astype(dtype) if bits < 64 else x.astype(dtype)


def clip(x: Array, dtype: Any) -> Array:
    limits = np.iinfo(dtype)
    return np.clip(x, limits.min, limits.max).astype(dtype)


def rounded(x: Array, like: Array) -> Array:
    return x.astype(like.dtype)


# ---- moves: what arrives is what left
def same(v: dict[str, str], a: Arrays) -> Arrays:
    return {"D": a["S"].copy()}


for _system, _families in {
    "x86_amx": ("vmovups", "tileload", "tileload_packed", "tilestore"),
    "arm_sme": ("vector_move", "slice_h", "slice_v"),
    "arm_neon": ("ldr",),
    "riscv_v": ("scalar_move", "unit_stride", "strided"),
    "nvidia_mma": ("ld", "ldmatrix"),
    "gemmini": ("mvin_i8", "mvin_i32", "mvout_i8", "mvout_i32", "preload"),
    "arrays": ("box",),
    "tpu_like": ("read_host", "write_host", "weights"),
    "units": ("copy",),
}.items():
    says(_system, *_families)(same)


@says("nvidia_mma", "tma_load", "tma_store")
def box(v: dict[str, str], a: Arrays) -> Arrays:
    return {"R": a["S"].copy()}


@says("x86_amx", "vbroadcast")
@says("arm_neon", "ld1r")
def broadcast(v: dict[str, str], a: Arrays) -> Arrays:
    return {"D": np.full(a["D"].shape, a["S"][()], a["S"].dtype)}


@says("arm_neon", "ldn", "stn")
@says("riscv_v", "vlseg")
@says("nvidia_mma", "ldmatrix_trans")
@says("gemmini", "preload_t")
@says("arrays", "box_t")
@says("units", "transpose")
def transposed(v: dict[str, str], a: Arrays) -> Arrays:
    """Element r of structure j goes to lane j of register r, and back; rows become columns."""
    return {"D": np.swapaxes(a["S"], 0, 1).copy()}


@says("units", "chw_to_hwc")
def channels_last(v: dict[str, str], a: Arrays) -> Arrays:
    return {"D": np.moveaxis(a["S"], 0, -1).copy()}


@says("gemmini", "mvin_acc_i32")
def rows_alike(v: dict[str, str], a: Arrays) -> Arrays:
    return {"D": np.tile(a["S"], (a["D"].shape[0], 1))}


@says("x86_amx", "tilezero")
@says("arm_sme", "zero")
def zeros(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": np.zeros_like(a["C"])}


@says("gemmini", "mvin_zero")
@says("arrays", "v_zero")
def zeros_d(v: dict[str, str], a: Arrays) -> Arrays:
    return {"D": np.zeros_like(a["D"])}


# ---- multiply-add, lane by lane
@says("x86_amx", "vfmadd231")
@says("arm_neon", "fmla")
@says("riscv_v", "vfmacc", "vfwmacc")
@says("nvidia_mma", "fma")
def fused(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": rounded(f64(a["A"]) * f64(a["B"]) + f64(a["C"]), a["C"])}


@says("arm_neon", "smlal")
@says("riscv_v", "vwmacc", "vwmaccsu", "vmacc")
def integer_mac(v: dict[str, str], a: Arrays) -> Arrays:
    with np.errstate(over="ignore"):
        return {"C": wrap(i64(a["C"]) + i64(a["A"]) * i64(a["B"]), a["C"].dtype)}


# ---- dot products in each lane: A may be one group for all lanes
def groups(a: Arrays, of: Callable[[Array], Array]) -> Array:
    x, y = of(np.atleast_2d(a["A"])), of(a["B"])
    return (x[:, : y.shape[1]] * y[:, : x.shape[1]]).sum(axis=1)


@says("x86_amx", "vpdpbusd", "vpdpwssd")
@says("arm_neon", "dot")
@says("nvidia_mma", "dp4a", "dp2a_lo")
def dots(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": wrap(i64(a["C"]) + groups(a, i64), np.int32)}


@says("x86_amx", "vpdpbusds")
def dots_saturated(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": clip(i64(a["C"]) + groups(a, i64), np.int32)}


@says("x86_amx", "vdpbf16ps")
@says("arm_neon", "bfdot")
def dots_of_halves(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": rounded(f64(a["C"]) + groups(a, f64), a["C"])}


# ---- conversions
@says("x86_amx", "vcvtneps2bf16")
def to_bf16(v: dict[str, str], a: Arrays) -> Arrays:
    bits = a["A"].view(np.uint32).astype(np.uint64)
    kept = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return {"D": kept.astype(np.uint16).view(a["D"].dtype)}


@says("x86_amx", "vpmovsdb")
@says("arm_neon", "sqxtn_i32_i16")
def narrowed(v: dict[str, str], a: Arrays) -> Arrays:
    return {"D": clip(i64(a["A"]), a["D"].dtype)}


@says("riscv_v", "vext")
@says("arrays", "convert", "v_copy")
def widened(v: dict[str, str], a: Arrays) -> Arrays:
    return {"D": a["A"].astype(a["D"].dtype)}


# ---- products of tiles
@says("x86_amx", "tdpb")
def tile_bytes(v: dict[str, str], a: Arrays) -> Arrays:
    """For each row m of A and each doubleword k of it: its four bytes with those of doubleword n of row k of B."""
    x, y, c = i64(a["A"]), i64(a["B"].reshape(a["B"].shape[0], -1)), i64(a["C"])
    for m in range(c.shape[0]):
        for k in range(x.shape[1] // 4):
            for n in range(c.shape[1]):
                c[m, n] += sum(x[m, 4 * k + q] * y[k, 4 * n + q] for q in range(4))
    return {"C": wrap(c, np.int32)}


@says("x86_amx", "tdp")
def tile_halves(v: dict[str, str], a: Arrays) -> Arrays:
    x, y, c = f64(a["A"]), f64(a["B"].reshape(a["B"].shape[0], -1)), f64(a["C"])
    for k in range(x.shape[1] // 2):
        for q in range(2):
            c += np.outer(x[:, 2 * k + q], y[k, q::2])
    return {"C": rounded(c, a["C"])}


@says("arm_sme", "fmopa")
def outer(v: dict[str, str], a: Arrays) -> Arrays:
    sign = {"a": 1.0, "s": -1.0}[v["o"]]
    return {"C": rounded(f64(a["C"]) + sign * np.outer(f64(a["A"]), f64(a["B"])), a["C"])}


@says("arm_sme", "mopa_pairs")
@says("arm_neon", "bfmmla")
def times_transposed(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": rounded(f64(a["C"]) + f64(a["A"]) @ f64(a["B"]).T, a["C"])}


@says("arm_sme", "mopa_quads", "smopa_i16_i64")
@says("arm_neon", "mmla")
@says("nvidia_mma", "wgmma_m64k32")
def integers_times_transposed(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": wrap(i64(a["C"]) + i64(a["A"]) @ i64(a["B"]).T, a["C"].dtype)}


@says("arm_sme", "addha")
def slice_added(v: dict[str, str], a: Arrays) -> Arrays:
    x = i64(a["A"])[None, :] if v["o"] == "ha" else i64(a["A"])[:, None]
    return {"C": wrap(i64(a["C"]) + x, a["C"].dtype)}


def product(v: dict[str, str], a: Arrays, flags: str, of: Callable[[Array], Array], second: str = "B") -> Array:
    x, y = of(a["A"]), of(a[second])
    return (x.T if flags[0] == "t" else x) @ (y.T if flags[1] == "t" else y)


@says("nvidia_mma", "mma_halves", "mma_m16n8k16_f16_f16", "mma_m8n8k4_f64")
def mma(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": rounded(f64(a["C"]) + product(v, a, "nn", f64), a["C"])}


@says("nvidia_mma", "mma_bytes")
@says("tpu_like", "matmul_acc")
def mma_bytes(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": wrap(i64(a["C"]) + product(v, a, "nn", i64, "W" if "W" in a else "B"), np.int32)}


@says("nvidia_mma", "mma_bytes_satfinite")
def mma_saturated(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": clip(i64(a["C"]) + product(v, a, "nn", i64), np.int32)}


@says("nvidia_mma", "wgmma_m64k16")
def wgmma(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": rounded(f64(a["C"]) + product(v, a, v["ta"] + v["tb"], f64), a["C"])}


@says("nvidia_mma", "wgmma_m64k16_new")
def wgmma_new(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": rounded(product(v, a, "nt", f64), a["C"])}


@says("arrays", "mm32")
@says("units", "gemm")
def any_layout(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": rounded(f64(a["C"]) + product(v, a, v["L"], f64), a["C"])}


@says("arrays", "mm32_new")
def mm32_new(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": rounded(product(v, a, "nn", f64), a["C"])}


@says("gemmini", "compute", "compute_acc", "compute_bias")
def compute(v: dict[str, str], a: Arrays) -> Arrays:
    """C = A W + D; into a destination that is overwritten (D zero or a bias in bytes) or added to."""
    start = a["D"] if "D" in a else a["C"] if v["family"] == "compute_acc" else np.zeros_like(a["C"])
    return {"C": wrap(i64(start) + product(v, a, v["ta"] + "n", i64, "W"), np.int32)}


@says("tpu_like", "matmul")
def matmul(v: dict[str, str], a: Arrays) -> Arrays:
    return {"C": wrap(product(v, a, "nn", i64, "W"), np.int32)}


# ---- element by element
ARITHMETIC: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
}  # fmt: skip


@says("x86_amx", "arithmetic")
@says("arm_neon", "arithmetic")
def arithmetic(v: dict[str, str], a: Arrays) -> Arrays:
    return {"D": ARITHMETIC[v["op"]](a["A"], a["B"])}


@says("riscv_v", "arithmetic")
def vector_first(v: dict[str, str], a: Arrays) -> Arrays:
    """vf<op>.vf vd, vs2, rs1: the vector is the left operand."""
    return {"D": ARITHMETIC[v["op"]](a["B"], a["A"])}


@says("arrays", "arithmetic")
def on_squares(v: dict[str, str], a: Arrays) -> Arrays:
    other = a["B"][:, None] if v["row"] == "mc" else a["B"]
    return {"D": ARITHMETIC[v["op"]](a["A"], other)}


FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "log": np.log, "tanh": np.tanh, "sqrt": np.sqrt, "abs": np.abs,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "rsqrt": lambda x: 1 / np.sqrt(x), "erf": np.vectorize(math.erf),
}  # fmt: skip


@says("arrays", "function")
def function(v: dict[str, str], a: Arrays) -> Arrays:
    with np.errstate(all="ignore"):
        return {"D": rounded(FUNCTIONS[v["f"]](f64(a["A"])), a["D"])}


@says("arrays", "v_relu")
def relu(v: dict[str, str], a: Arrays) -> Arrays:
    return {"D": np.where(a["A"] > 0, a["A"], 0).astype(a["A"].dtype)}


@says("arrays", "v_fill")
def fill(v: dict[str, str], a: Arrays) -> Arrays:
    return {"D": np.full_like(a["D"], a["A"][()])}


@says("arrays", "transpose")
def square_transposed(v: dict[str, str], a: Arrays) -> Arrays:
    return {"D": a["A"].T.copy()}


@says("riscv_v", "vfsqrt")
def square_root(v: dict[str, str], a: Arrays) -> Arrays:
    with np.errstate(invalid="ignore"):
        return {"D": np.sqrt(a["A"])}


@says("riscv_v", "vmerge")
def merge(v: dict[str, str], a: Arrays) -> Arrays:
    return {"D": np.where(a["M"], a["A"], a["B"])}


# ---- along a vector
@says("arm_neon", "addv")
def addv(v: dict[str, str], a: Arrays) -> Arrays:
    return {"D": wrap(i64(a["A"]).sum(), a["D"].dtype)}


@says("arm_neon", "fmaxv_f32")
def fmaxv(v: dict[str, str], a: Arrays) -> Arrays:
    return {"D": a["A"].max()}


FOLD: dict[str, Callable[..., Array]] = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod, "add": np.sum}


@says("riscv_v", "vred")
def vred(v: dict[str, str], a: Arrays) -> Arrays:
    """Element 0 of vs1 and all active elements of vs2."""
    return {"D": wrap(FOLD[v["op"]](np.append(i64(a["B"]), i64(a["A"]))), a["D"].dtype)}


@says("riscv_v", "vfredosum", "vfredusum")
def vfredsum(v: dict[str, str], a: Arrays) -> Arrays:
    return {"D": rounded(f64(a["A"]) + f64(a["B"]).sum(), a["A"])}


@says("nvidia_mma", "redux")
def redux(v: dict[str, str], a: Arrays) -> Arrays:
    if not a["A"].size:  # no thread takes part: the identity
        return {"D": np.int32({"add": 0, "max": -(2**31), "min": 2**31 - 1}[v["op"]])}
    return {"D": wrap(FOLD[v["op"]](i64(a["A"])), np.int32)}


@says("arrays", "reduce", "reduce_all")
def reduce(v: dict[str, str], a: Arrays) -> Arrays:
    axis = 1 if a["D"].ndim else None
    join = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}[v["op"]]
    return {"D": rounded(join(f64(a["D"]), FOLD[v["op"]](f64(a["A"]), axis=axis)), a["D"])}
