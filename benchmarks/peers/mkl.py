"""MKL through ctypes: ``cblas_sgemm``, the same with its second factor packed, code made for one size; bytes; what
``mkl_algebra`` has."""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache
from importlib import metadata
from typing import Any

import numpy as np

from ..data import room
from ..shapes import Gemm, Shape
from ..timing import Call
from . import mkl_algebra as algebra
from .library import Array, Form, Given, Library

ROW_MAJOR, AS_IT_IS, PACKED, SECOND, FIXED = 101, 111, 151, 162, 173  # what mkl_cblas.h calls them
SEQUENTIAL = 1  # as a threading layer
SMALL = 64  # sizes up to which code is made for one of them


@cache
def library() -> Any:
    """``libmkl_rt`` on one thread, without a pool of threads."""
    try:
        paths = [str(f.locate()) for f in metadata.files("mkl") or () if f.name.startswith("libmkl_rt.so")]
    except metadata.PackageNotFoundError:
        paths = [p] if (p := ctypes.util.find_library("mkl_rt")) else []
    if not paths:
        raise ImportError("libmkl_rt is not there")
    lib = ctypes.CDLL(paths[0], ctypes.RTLD_GLOBAL)
    lib.MKL_Set_Threading_Layer(SEQUENTIAL)
    lib.mkl_jit_get_sgemm_ptr.restype = ctypes.c_void_p
    for name in ("cblas_sgemm_pack_get_size", "cblas_gemm_s8u8s32_pack_get_size"):
        getattr(lib, name).restype = ctypes.c_size_t
    return lib


def version() -> str:
    text = ctypes.create_string_buffer(200)
    library().MKL_Get_Version_String(text, len(text))
    return text.value.decode().strip().removesuffix(" for Intel(R) 64 architecture applications") + ", 1 thread"


def of(shape: Shape, given: Given) -> dict[str, Form]:
    """Products of f32 and of bytes; those of bf16 return f32. Elimination, triangles and bands."""
    if shape.work in algebra.WORKS:
        return algebra.WORKS[shape.work](library(), given)
    if not isinstance(shape, Gemm) or shape.kind not in ("f32", "int8"):
        return {}
    return (_floats if shape.kind == "f32" else _bytes)(library(), shape, given["A"], given["B"])


def _floats(lib: Any, shape: Gemm, a: Array, b: Array) -> dict[str, Form]:
    m, n, k = map(ctypes.c_int, (shape.m, shape.n, shape.k))
    out, one, zero = room((shape.m, shape.n), np.float32), ctypes.c_float(1), ctypes.c_float(0)
    packed = _room(lib.cblas_sgemm_pack_get_size(SECOND, m, n, k))
    lib.cblas_sgemm_pack(ROW_MAJOR, SECOND, AS_IT_IS, m, n, k, one, _at(b), n, _at(packed))
    plain = (ROW_MAJOR, AS_IT_IS, AS_IT_IS, m, n, k, one, _at(a), k, _at(b), n, zero, _at(out), n)
    bound = (ROW_MAJOR, AS_IT_IS, PACKED, m, n, k, _at(a), k, _at(packed), n, zero, _at(out), n)
    keep = (a, b, packed, out)
    found = {"plain": _form(lib.cblas_sgemm, plain, keep), "packed": _form(lib.cblas_sgemm_compute, bound, keep)}
    if max(shape.m, shape.n, shape.k) <= SMALL:
        code = ctypes.c_void_p()
        lib.mkl_cblas_jit_create_sgemm(ctypes.byref(code), ROW_MAJOR, AS_IT_IS, AS_IT_IS, m, n, k, one, k, n, zero, n)
        made = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(lib.mkl_jit_get_sgemm_ptr(code))
        found["jit"] = _form(made, (code, _at(a), _at(b), _at(out)), keep)
    return found


def _bytes(lib: Any, shape: Gemm, a: Array, b: Array) -> dict[str, Form]:
    """Row major, it is the first factor that has no sign."""
    m, n, k = map(ctypes.c_int, (shape.m, shape.n, shape.k))
    out, one, zero = room((shape.m, shape.n), np.int32), ctypes.c_float(1), ctypes.c_float(0)
    offset, none = np.zeros(1, np.int32), ctypes.c_int8(0)
    packed = _room(lib.cblas_gemm_s8u8s32_pack_get_size(SECOND, m, n, k))
    lib.cblas_gemm_s8u8s32_pack(ROW_MAJOR, SECOND, AS_IT_IS, m, n, k, _at(b), n, _at(packed))
    keep = (a, b, packed, out, offset)
    found = {}
    for name, call, form, second in (("plain", lib.cblas_gemm_s8u8s32, AS_IT_IS, b),
                                     ("packed", lib.cblas_gemm_s8u8s32_compute, PACKED, packed)):  # fmt: skip
        given = (ROW_MAJOR, AS_IT_IS, form, FIXED, m, n, k, one, _at(a), k, none, _at(second), n, none, zero, _at(out),
                 n, _at(offset))  # fmt: skip
        found[name] = _form(call, given, keep)
    return found


def _form(function: Any, given: tuple[Any, ...], keep: tuple[Array, ...]) -> Form:
    """Its result is the last but for an offset of what is kept: what MKL is given are addresses alone."""
    return Form(Call(function, given, {}), lambda _: keep[3])


def _at(x: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


def _room(size: int) -> Array:
    """So many bytes and some more."""
    return room(size + 128, np.uint8)


LIBRARY = Library("mkl", "MKL", version, of)
