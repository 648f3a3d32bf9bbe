"""Every body of the zoo laid beside itself, beside kernels that hide it, and counted by brute force (MAP-5, MAP-10)."""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

from isam.ir.instruction import Instruction
from isam.ir.text import parse
from isam.mapper import count, match
from tests.brute_force import brute_count
from tests.systems.test_brute_counts import KERNELS, distinct
from tests.systems.test_zoo import ZOO, typed

# How often a body maps onto itself, and how many of these its own symmetries do not explain; once and once unless said.
SELF: list[tuple[int, int, str, str]] = [
    (2, 1, "factors or terms of one type change places", "arm_neon: fmla_vv_* smlal_vv ?dot_vv bfdot_vv f???_f*"),
    (1, 1, "not where their types differ, or where the operation does not commute", "arm_neon: usdot_vv fsub_*"),
    (2, 1, "the same", "nvidia_mma: dp4a_s8s8 dp4a_u8u8 fma_*"),
    (2, 1, "the same", "riscv_v: vfmacc_vv_* vfwmacc_vv vwmacc_vv_* vmacc_vv_* vf???_vv"),
    (1, 1, "not where the operation does not commute", "riscv_v: vfsub_vv vfdiv_vv"),
    (2, 2, "the same, but only one of the two may be in memory",
     "x86_amx: vfmadd231_vv_* vadd_* vmul_* vpdpwssd_vv vdpbf16ps_vv"),
    (2, 2, "exchanged factors make the transposed product, which lies otherwise",
     "arm_neon: smmla ummla bfmmla; arm_sme: fmopa_* bfmopa_* smopa umopa smopa_i16_i64; arrays: mm32_*; "
     "gemmini: compute_*; nvidia_mma: mma_m8n8k4_f64 wgmma_m64k16_* wgmma_m64k32_s8s8 wgmma_m64k32_u8u8; "
     "tpu_like: matmul*; units: gemm_nn gemm_nt gemm_tn gemm_tt batched_gemm_*"),
    (2, 2, "rows and columns of what is done to each element",
     "arm_neon: ld2_* ld3_* ld4_* st?_*; arm_sme: zero_*; riscv_v: vlseg*; tpu_like: *_host *_weights activate_*; "
     "gemmini: mvin_i8 mvin_i32 mvin_zero mvout_* preload*; units: gelu swish; x86_amx: tilezero_* tileload_??? "
     "tileload_bf16 tileload_i8 tileload_u8 tilestore_*; arrays: v_exp v_log v_tanh v_sigmoid v_erf v_sqrt v_rsqrt "
     "v_abs v_relu v_copy_* v_fill v_zero c_* r_*_all t_* v_*_ms v_sub_mm v_div_mm"),
    (4, 2, "the same, and terms that commute", "arrays: v_add_mm v_mul_mm v_max_mm v_min_mm; units: residual"),
    (6, 6, "three dimensions of a copy in any order", "x86_amx: tileload_packed_*"),
    (2, 1, "height and width", "units: conv2d_* depthwise2d transposed_conv2d; tpu_like: pool_max"),
    (6, 1, "depth, height and width", "units: conv3d"),
    (4, 2, "height and width; images and channels, of which only channels are contiguous", "units: pool_*"),
]


def expected(system: str, i: Instruction) -> tuple[int, int]:
    """The last entry that names it."""
    found = (1, 1)
    for mappings, orbits, _, patterns in SELF:
        for part in patterns.split("; "):
            where, names = part.split(": ")
            if where == system and any(fnmatchcase(i.name, n) for n in names.split()):
                found = mappings, orbits
    return found


@pytest.mark.parametrize("system", ZOO)
def test_bodies_map_onto_themselves_as_often_as_their_symmetries_say(system: str) -> None:
    for i in typed(system):
        found = match(i.body, i)
        assert found, f"{i.name}: {found}"
        assert found.complete
        assert (len(found), len(list(found.orbits()))) == expected(system, i), i.name


@pytest.mark.parametrize("system", ZOO)
def test_counts_by_brute_force(system: str) -> None:
    """Kernels that hide products, convolutions, reductions; and each body small enough for trying everything."""
    kernels = [parse(text) for text in KERNELS]
    for i in distinct(system):
        for strided in (False, True):
            for k in kernels:
                got = count(k, i, strided=strided)
                assert got == brute_count(k, i, strided=strided), f"{i.name} on {k.name}, {strided}"
        axes = {n for s in i.body.statements for n in s.domain.names}
        if len(axes) <= 6 and len(i.body.statements) <= 5:
            assert count(i.body, i) == brute_count(i.body, i), f"{i.name} on itself"
