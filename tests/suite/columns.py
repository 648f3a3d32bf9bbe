"""The instructions of the table: one of the zoo (or of a BLAS) for every structure, with the others that share it.

A kernel is judged in the element types of the instruction (:func:`typed`), so that a cell speaks of structure; types
have tests of their own. Every extent is 4 and every filter tap 2, so that what one call must take whole fits, and
groups of two do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from isam.diagnostics import IsamError
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.text import parse
from isam.ir.verify import verify
from isam.system.load import load_system
from tests.suite import FOLDER, SUITE

ZOO = Path(__file__).parents[2] / "hwdesc" / "zoo"
TAPS = ("R", "S", "Q")


@dataclass(frozen=True)
class Column:
    """``key``: its name in tables; ``system.name``: the instruction tried; ``like``: patterns of others of the zoo
    with the same structure up to transposition, element types and limits; ``says``: what it does."""

    key: str
    system: str
    name: str
    says: str
    like: tuple[str, ...] = ()

    def load(self) -> Instruction:
        return _system(self.system).instructions[self.name]


@cache
def _system(name: str):
    return load_system(str(ZOO / f"{name}.yaml") if (ZOO / f"{name}.yaml").exists() else name)


def _columns() -> tuple[Column, ...]:
    c = Column
    return (
        c("product", "units", "gemm_nn", "C[i,j] += A[i,k] * B[k,j]",
          ("units.gemm_n?", "units.gemm_t?", "*.mma_m16n8k16_f16_f16", "*.mma_m8n8k4_f64")),
        c("product.b", "arrays", "mm32_nn", "the same of bf16, sums in f32",
          ("*.mma_m16n8k*_f32", "*.wgmma_m64k16_*_[nt][nt]", "arrays.mm32_[nt][nt]", "*.bfmmla", "*.bfmopa*",
           "*.fmopa_f16_f32")),
        c("product.i8", "gemmini", "compute_n_acc", "the same of i8, sums in i32",
          ("*.?mmla", "*.usmmla", "*.mma_m16n8k??_[su]8[su]8", "*.wgmma_m64k32_*", "*.[su]mopa", "*.sumopa", "*.usmopa",
           "*.smopa_i16_i64", "gemmini.compute_?_acc", "tpu_like.matmul_acc")),
        c("product.new", "arrays", "mm32_new", "C = 0; C += A * B, of bf16",
          ("*.wgmma_*_new", "gemmini.compute_[nt]", "tpu_like.matmul")),
        c("product.sat", "nvidia_mma", "mma_m16n8k32_s8s8_satfinite", "C saturates after the product",
          ("*_satfinite", "*.vpdpbusds")),
        c("gemv", "blas-generic", "sgemv_n", "y[i] += A[i,k] * x[k]"),
        c("gemv.b", "arm_neon", "bfdot_vs", "the same of bf16: one group for all lanes",
          ("*.?dot_vs", "*.usdot_vs", "*.vpdpbusd_vs", "*.vpdpwssd_vs", "*.vdpbf16ps_vs")),
        c("rowdot.b", "arm_neon", "bfdot_vv", "C[j] += A[j,q] * B[j,q], of bf16",
          ("*.?dot_vv", "*.usdot_vv", "*.vpdpbusd_vv", "*.vpdpwssd_vv", "*.vdpbf16ps_vv", "*.dp4a_*", "*.dp2a_lo")),
        c("dot", "blas-generic", "sdot", "s += a[k] * b[k]"),
        c("dot.new", "blas-generic", "sdot_new", "s = 0; s += a[k] * b[k]"),
        c("outer", "arm_sme", "fmopa_f32", "C[i,j] += a[i] * b[j]", ("*.fmopa_f64",)),
        c("outer.minus", "arm_sme", "fmops_f32", "C[i,j] += -a[i] * b[j]", ("*.fmops_f64",)),
        c("fma", "arm_neon", "fmla_vv_f32", "C[j] += A[j] * B[j]",
          ("*.fmla_vv_*", "*.fma_*", "*.vfmacc_vv_*", "*.vmacc_vv_*", "*.vfmadd231_vv_*", "*.smlal_vv", "*.vfwmacc_vv",
           "*.vwmacc*_vv*")),
        c("axpy", "arm_neon", "fmla_vs_f32", "C[j] += a * B[j]",
          ("*.fmla_vs_*", "*.vfmacc_vf_*", "*.vmacc_vx_*", "*.vfmadd231_vs_*", "*.smlal_vs", "*.vfwmacc_vf",
           "*.vwmacc*_vx*")),
        c("tile.b", "x86_amx", "tdpbf16ps", "C[i,j] += A[i,2k+q] * B[k,j,q], of bf16", ("*.tdp*",)),
        c("batched", "units", "batched_gemm_f32", "C[b,i,j] += A[b,i,k] * B[b,k,j]", ("*.batched_gemm_*",)),
        c("gemm+bias+relu", "units", "gemm_bias_relu", "C = b; C += A * B; C = max(C, 0)", ("*.gemm_bias_gelu",)),
        c("gemm.requant", "units", "gemm_i8_requant", "bytes to bytes: bias, product, scale, saturate",
          ("gemmini.compute_?_bias",)),
        c("conv2d.s1", "units", "conv2d_s1", "y[n,h,v,k] += x[n,h+r,v+s,c] * w[r,s,c,k]"),
        c("conv2d.s2", "units", "conv2d_s2", "y[n,h,v,k] += x[n,2h+r,2v+s,c] * w[r,s,c,k]"),
        c("conv2d+bias+relu", "units", "conv2d_bias_relu", "bias, convolution, relu"),
        c("conv1d", "units", "conv1d", "y[n,v,k] += x[n,v+s,c] * w[s,c,k]"),
        c("conv3d", "units", "conv3d", "y[n,d,h,v,k] += x[n,d+q,h+r,v+s,c] * w[q,r,s,c,k]"),
        c("depthwise2d", "units", "depthwise2d", "y[n,h,v,c] += x[n,h+r,v+s,c] * w[r,s,c]"),
        c("transposed2d", "units", "transposed_conv2d", "y[n,2h+r,2v+s,k] += x[n,h,v,c] * w[r,s,c,k]"),
        c("pool.max", "units", "pool_max", "y = -inf; y max= x[n,2h+r,2v+s,c]", ("tpu_like.pool_max",)),
        c("pool.sum", "units", "pool_sum", "y = 0; y += x[n,2h+r,2v+s,c]"),
        c("softmax", "units", "softmax_row", "a row of softmax", ("units.layernorm_row", "units.rmsnorm_row")),
        c("gelu", "units", "gelu", "gelu with erf", ("units.swish",)),
        c("add.vv", "arm_neon", "fadd_f32", "D[j] = A[j] + B[j]",
          ("*.fadd_*", "*.vadd_*", "*.vfadd_vv", "arrays.v_add_mm")),
        c("add.vs", "riscv_v", "vfadd_vf", "D[j] = A[j] + b", ("arrays.v_add_ms",)),
        c("add.row", "arrays", "v_add_mr", "D[i,j] = A[i,j] + b[j]",
          ("arrays.v_*_m[rc]", "units.bias_add", "units.scale_shift")),
        c("sub.vv", "arm_neon", "fsub_f32", "D[j] = A[j] - B[j]", ("*.fsub_*", "*.vsub_*", "*.vfsub_vv", "*.v_sub_mm")),
        c("sub.vs", "riscv_v", "vfsub_vf", "D[j] = A[j] - b", ("*.v_sub_ms",)),
        c("mul.vv", "arm_neon", "fmul_f32", "D[j] = A[j] * B[j]", ("*.fmul_*", "*.vmul_*", "*.vfmul_vv", "*.v_mul_mm")),
        c("mul.vs", "riscv_v", "vfmul_vf", "D[j] = A[j] * b", ("*.v_mul_ms",)),
        c("div.vv", "x86_amx", "vdiv_f32", "D[j] = A[j] / B[j]", ("*.vdiv_*", "*.vfdiv_vv", "*.v_div_mm")),
        c("div.vs", "riscv_v", "vfdiv_vf", "D[j] = A[j] / b", ("*.v_div_ms",)),
        c("max.vv", "arm_neon", "fmax_f32", "D[j] = max(A[j], B[j])",
          ("*.fmax_*", "*.fmin_*", "*.vfmax_vv", "*.vfmin_vv", "*.v_max_mm", "*.v_min_mm")),
        c("max.vs", "riscv_v", "vfmax_vf", "D[j] = max(A[j], b)", ("*.vfmin_vf", "*.v_max_ms", "*.v_min_ms")),
        c("exp", "arrays", "v_exp", "D[i,j] = exp(A[i,j])"),
        c("log", "arrays", "v_log", "D[i,j] = log(A[i,j])", ("arrays.v_abs", "arrays.v_sqrt", "*.vfsqrt")),
        c("tanh", "arrays", "v_tanh", "D[i,j] = tanh(A[i,j])"),
        c("sigmoid", "arrays", "v_sigmoid", "D[i,j] = sigmoid(A[i,j])"),
        c("erf", "arrays", "v_erf", "D[i,j] = erf(A[i,j])"),
        c("rsqrt", "arrays", "v_rsqrt", "D[i,j] = 1 / sqrt(A[i,j])"),
        c("relu", "arrays", "v_relu", "D[i,j] = max(A[i,j], 0)", ("units.residual",)),
        c("sum.rows", "arrays", "r_sum", "D[i] += A[i,j]", ("arrays.r_prod", "arrays.r_sum_all", "*.add[hv]a_*")),
        c("max.rows", "arrays", "r_max", "D[i] max= A[i,j]", ("arrays.r_min", "arrays.r_max_all")),
        c("sum.new", "riscv_v", "vfredusum_f32", "d = a; d += B[j]",
          ("*.vred*", "*.vfred*", "*.addv_*", "*.redux_add")),
        c("max.new", "arm_neon", "fmaxv_f32", "d = -inf; d max= A[j]", ("*.redux_max", "*.redux_min")),
        c("copy1", "x86_amx", "vmovups", "D[j] = S[j]",
          ("*.ldr", "*.str", "*.ld1_*", "*.st1_*", "*.mova_*", "*.vl[es]_*", "*.vl[es]e_*", "*.vs[es]_*", "*.vsse_*",
           "riscv_v.load", "riscv_v.store")),
        c("copy2", "units", "copy2", "D[i,j] = S[i,j]",
          ("*.ld[234]_*", "*.st[234]_*", "*.vlseg*", "arrays.box*", "gemmini.mv*_i8", "gemmini.mv*_i32",
           "*.ldg", "*.stg",
           "*.lds", "*.sts", "*.ldmatrix*", "*_host", "*.tileload_*", "*.tilestore_*", "arrays.v_copy_*", "arrays.t_*",
           "*.preload*", "*_weights", "units.transpose", "units.copy?", "*.chw_to_hwc", "*.tma_*")),
        c("copy.all", "x86_amx", "vbroadcast", "D[j] = s", ("*.ld1r", "arrays.v_fill", "gemmini.mvin_acc_i32")),
        c("zero", "arrays", "v_zero", "D[i,j] = 0", ("*.zero_*", "*.tilezero_*", "gemmini.mvin_zero")),
        c("narrow", "x86_amx", "vcvtneps2bf16", "D[j] = bf16(A[j])",
          ("*.vsext*", "*.vzext*", "*.sqxtn*", "*.vpmovsdb", "arrays.c_*", "gemmini.mvout_*", "tpu_like.activate_*")),
        c("merge", "riscv_v", "vmerge_vv", "D[j] = select(M[j], A[j], B[j])", ("*.vmerge_vx",)),
    )  # fmt: skip


COLUMNS = {c.key: c for c in _columns()}


def home(qualified: str) -> str | None:
    """The column that an instruction of the zoo (``system.name``) belongs to: the first that names it."""
    exact = next((c.key for c in COLUMNS.values() if f"{c.system}.{c.name}" == qualified), None)
    return exact or next((c.key for c in COLUMNS.values() if any(fnmatchcase(qualified, p) for p in c.like)), None)


# kernels in the element types of an instruction -----------------------------------------------------------------------


def types_of(instruction: Instruction) -> tuple[str, str]:
    """The narrow type of the factors and the type of the result; the same where nothing is widened."""
    body = instruction.body
    wide = next(b.dtype for b in body.arguments if b.role in ("out", "inout"))
    made = {s.dest.buffer: s for s in body.statements}
    casts = [s for s in body.statements if s.op == "cast" and s.accumulate is False and made]
    product = any(s.op == "mul" for s in body.statements)
    read = [body.buffer(a.buffer) for s in casts for a in s.reads]
    narrow = next((b.dtype for b in read if b.role == "in"), wide)
    return (narrow, wide) if product and casts else ("f32", "f32")


@cache
def texts() -> dict[str, str]:
    """The text of every kernel of the suite by its name."""
    found: dict[str, str] = {}
    folder = FOLDER.parent
    own = [*sorted((folder / "corpus").glob("*.isam")), *sorted(FOLDER.glob("*.isam"))]
    for path in [folder / "text" / "surface.isam", *own]:
        for block in re.split(r"(?m)^(?=kernel )", path.read_text(encoding="utf-8")):
            if block.startswith("kernel "):
                found[block[7 : block.index("(")]] = block
    return found


def typed(name: str, narrow: str, wide: str) -> Kernel | None:
    """A member of the suite with inputs in ``narrow``, cast where they are read, and everything else in ``wide``; None
    when the kernel makes no sense in them (``exp`` of integers)."""
    member = SUITE[name]
    text = texts()[member.kernel]
    if (narrow, wide) != ("f32", "f32"):
        text = _retyped(text, narrow, wide)
    try:
        kernel = parse(text)
    except IsamError:
        return None
    assert isinstance(kernel, Kernel)
    sizes = {s.name: 2 if s.name in TAPS else 4 for s in kernel.syms}
    kernel = kernel.with_params(**dict(member.params)).with_sizes(sizes)
    return None if verify(kernel) else kernel


def _retyped(text: str, narrow: str, wide: str) -> str:
    inputs, temps, out = [], [], []
    for line in text.splitlines():
        declared = re.match(r"\s+(in|const|temp|out|inout)\s+(\w+): f32", line)
        if declared:
            given = declared[1] in ("in", "const", "temp")
            inputs += [declared[2]] * given
            temps += [declared[2]] * (declared[1] == "temp")
            line = line.replace(": f32", f": {narrow if given else wide}", 1)
        elif narrow != wide and "forall" not in line and "=" in line and not line.startswith("kernel"):
            left, right = line.split("=", 1)
            if left.split("[")[0].strip() not in temps:
                right = re.sub(rf"\b({'|'.join(inputs)})\[[^\]]*\]", lambda m: f"{wide}({m[0]})", right)
            line = f"{left}={right}"
        out.append(line)
    return "\n".join(out) + "\n"
