"""x86 instructions of the zoo beside the processor: each executed once per trial by inline assembly, results compared
with the body under the interpreter. What this CPU lacks is skipped, with the feature named."""

from __future__ import annotations

import ctypes
import platform
from typing import Any

import numpy as np
import pytest

from isam.ir.dtype import numpy_dtype
from isam.ir.interp import run
from isam.system.features import lacking
from isam.system.load import load_system

HERE = (platform.machine(), platform.system())
pytestmark = pytest.mark.skipif(HERE != ("x86_64", "Linux"), reason="x86-64 Linux only")
LOAD = "vmovdqu64 ($0), %zmm0\\0Avmovdqu64 ($1), %zmm1\\0Avmovdqu64 ($2), %zmm2\\0A"
TILE_LOAD = "ldtilecfg ($0)\\0A" + "".join(f"tileloadd (${n + 1},$5,1), %tmm{n}\\0A" for n in range(3))

# per instruction: what it needs, and what it does to %zmm0 (the destination) with %zmm1 (A) and %zmm2 (B)
VECTORS = {
    "vpdpbusd_vv": (("avx512vnni",), "vpdpbusd %zmm2, %zmm1, %zmm0"),
    "vpdpbusds": (("avx512vnni",), "vpdpbusds %zmm2, %zmm1, %zmm0"),
    "vpdpwssd_vv": (("avx512vnni",), "vpdpwssd %zmm2, %zmm1, %zmm0"),
    "vdpbf16ps_vv": (("avx512bf16",), "vdpbf16ps %zmm2, %zmm1, %zmm0"),
    "vfmadd231_vv_f32": (("avx512f",), "vfmadd231ps %zmm2, %zmm1, %zmm0"),
    "vfmadd231_vv_f64": (("avx512f",), "vfmadd231pd %zmm2, %zmm1, %zmm0"),
    "vsub_f32": (("avx512f",), "vsubps %zmm2, %zmm1, %zmm0"),
    "vcvtneps2bf16": (("avx512bf16",), "vcvtneps2bf16 %zmm1, %ymm0"),
    "vpmovsdb": (("avx512f",), "vpmovsdb %zmm1, %xmm0"),
}
TILES = {
    "tdpbssd": ("amx-int8", "tdpbssd"), "tdpbsud": ("amx-int8", "tdpbsud"), "tdpbusd": ("amx-int8", "tdpbusd"),
    "tdpbuud": ("amx-int8", "tdpbuud"), "tdpbf16ps": ("amx-bf16", "tdpbf16ps"), "tdpfp16ps": ("amx-fp16", "tdpfp16ps"),
}  # fmt: skip


def function(body: str, pointers: int) -> Any:
    """A C function of so many pointers whose body is one piece of assembly; ``$0`` and so on are the pointers."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    formal = ", ".join(f"ptr %p{n}" for n in range(pointers))
    clobbers = "".join(f",~{{zmm{n}}}" for n in range(3)) + ",~{memory}"
    asm = f"call void asm sideeffect \"{body}\", \"{','.join('r' * pointers)}{clobbers}\"({formal})"
    text = f"define void @f({formal}) {{\n  {asm}\n  ret void\n}}\n"
    target = llvm.Target.from_default_triple()
    features = llvm.get_host_cpu_features().flatten()
    machine = target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    f = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * pointers)(engine.get_function_address("f"))
    f.engine = engine  # type: ignore[attr-defined]  # lives as long as the function
    return f


def numbers(dtype: str, shape: tuple[int, ...], r: np.random.Generator) -> np.ndarray:
    kind = numpy_dtype(dtype)
    if dtype.startswith(("f", "bf")):
        return r.integers(-8, 9, shape).astype(kind)
    limits = np.iinfo(kind)
    edge = r.choice([limits.min, limits.max, 0, 1], shape)
    return np.where(r.random(shape) < 0.3, edge, r.integers(limits.min, limits.max, shape, np.int64, True)).astype(kind)


def operands(name: str, sizes: dict[str, int], r: np.random.Generator) -> dict[str, np.ndarray]:
    body = load_system("x86_amx").instructions[name].body
    return {b.name: numbers(b.dtype, tuple(e.evaluate(sizes) for e in b.shape), r) for b in body.arguments}


@pytest.mark.parametrize("name", VECTORS)
def test_vectors(name: str) -> None:
    needs, code = VECTORS[name]
    if missing := lacking(needs):
        pytest.skip(f"this CPU lacks {', '.join(missing)}")
    instruction = load_system("x86_amx").instructions[name]
    f = function(f"{LOAD}{code}\\0Avmovdqu64 %zmm0, ($0)", 3)
    sizes = {"J": instruction.syms[0].hi or 16}
    r = np.random.default_rng(3)
    for _ in range(50):
        given = operands(name, sizes, r)
        out = "C" if "C" in given else "D"
        room = np.zeros(64, np.uint8)
        room[: given[out].nbytes] = given[out].view(np.uint8).reshape(-1)
        second = given.get("B", given["A"])
        f(room.ctypes.data, np.ascontiguousarray(given["A"]).ctypes.data, np.ascontiguousarray(second).ctypes.data)
        want = run(instruction.body, given, sizes)[out]
        assert room[: want.nbytes].tobytes() == want.tobytes()


@pytest.mark.parametrize("name", TILES)
@pytest.mark.parametrize("sizes", [(16, 16, 16), (3, 5, 7), (1, 1, 1)])
def test_tiles(name: str, sizes: tuple[int, int, int]) -> None:
    need, code = TILES[name]
    if missing := lacking(("amx-tile", need)):
        pytest.skip(f"this CPU lacks {', '.join(missing)}")
    if ctypes.CDLL(None).syscall(158, 0x1023, 18):  # arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA)
        pytest.skip("the kernel does not grant the tiles")
    instruction = load_system("x86_amx").instructions[name]
    m, n, k = sizes
    f = function(f"{TILE_LOAD}{code} %tmm2, %tmm1, %tmm0\\0Atilestored %tmm0, ($4,$5,1)\\0Atilerelease", 6)
    config = np.zeros(64, np.uint8)
    config[0] = 1
    for tile, (rows, columns) in enumerate([(m, 4 * n), (m, 4 * k), (k, 4 * n)]):
        config[16 + 2 * tile], config[48 + tile] = columns, rows
    r = np.random.default_rng(4)
    for _ in range(20):
        given = operands(name, dict(zip("MNK", sizes, strict=True)), r)
        rooms = [rows_of_64(given["C"]), rows_of_64(given["A"]), rows_of_64(given["B"].reshape(k, -1))]
        out = np.zeros((16, 64), np.uint8)
        f(config.ctypes.data, *[x.ctypes.data for x in rooms], out.ctypes.data, 64)
        want = run(instruction.body, given)["C"]
        got = np.ascontiguousarray(out[:m, : 4 * n]).view(want.dtype)
        assert got.tobytes() == want.tobytes()


def rows_of_64(x: np.ndarray) -> np.ndarray:
    """Sixteen rows of 64 bytes that begin with the rows of ``x``."""
    out = np.zeros((16, 64), np.uint8)
    bytes_ = np.ascontiguousarray(x).view(np.uint8)
    out[: x.shape[0], : bytes_.shape[1]] = bytes_
    return out
