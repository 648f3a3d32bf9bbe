"""LIBXSMM, a reference: called from C. ``libxsmm.c`` is compiled on demand, where gcc and the library are there."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import weakref
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..data import placed, room
from ..shapes import Convolution, Gemm, Shape
from ..timing import Call
from .layers import channels_last, layers
from .library import Array, Form, Given, Library

SMALL, TIMES = 128, 1000  # sizes up to which a product is one kernel, and how often C calls it
SIDE, DEEP = 64, 128  # the most that a side of a block has, and what is summed up in it
SOURCE = Path(__file__).with_name("libxsmm.c")
LINKED = ("-lxsmm", "-lxsmmnoblas", "-ldl", "-lpthread", "-lm")


@cache
def _built() -> Any:
    """The compiled file, or the reason why there is none: compilers are asked once."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "libxs.so")
        command = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(out), str(SOURCE), *LINKED]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as e:
            return ImportError(f"LIBXSMM cannot be compiled: {e}")
        return ctypes.CDLL(str(out))  # stays when its file goes


def library() -> Any:
    lib = _built()
    if isinstance(lib, ImportError):
        raise lib
    for name in ("xs_small_new", "xs_gemm_new", "xs_convolution_new"):
        getattr(lib, name).restype = ctypes.c_void_p
    for name in ("xs_version", "xs_target"):
        getattr(lib, name).restype = ctypes.c_char_p
    return lib


def version() -> str:
    return f"{library().xs_version().decode()} ({library().xs_target().decode()}), 1 thread"


def of(shape: Shape, given: Given) -> dict[str, Form]:
    """Products and convolutions of f32."""
    if shape.kind != "f32" or shape.work not in ("product", "convolution"):
        return {}
    lib = library()
    if isinstance(shape, Convolution):
        return _convolutions(lib, shape, given)
    assert isinstance(shape, Gemm)
    small = max(shape.m, shape.n, shape.k) <= SMALL
    return (_small if small else _blocked)(lib, shape, given["A"], given["B"])


class Handle:
    """What C has made of data, and gives back when nobody needs it; nothing where it could not."""

    def __init__(self, lib: Any, name: str, *given: Any):
        made = getattr(lib, f"xs_{name}_new")(*given)
        self.at = ctypes.c_void_p(made) if made else None
        if made:
            weakref.finalize(self, getattr(lib, f"xs_{name}_end"), self.at)


def _small(lib: Any, shape: Gemm, a: Array, b: Array) -> dict[str, Form]:
    """A row-major product is a column-major one of the factors in the other order."""
    made, out = Handle(lib, "small", shape.n, shape.m, shape.k), room((shape.m, shape.n), np.float32)
    if made.at is None:
        return {}
    keep = (made, a, b, out)
    call = Call(lib.xs_small_run, (made.at, _at(b), _at(a), _at(out), ctypes.c_long(TIMES)), {})
    return {f"{TIMES} calls from C": Form(call, lambda _: keep[-1], TIMES)}


def _blocked(lib: Any, shape: Gemm, a: Array, b: Array) -> dict[str, Form]:
    """In blocks that divide the sizes: others it does not have."""
    blocks = (_block(shape.n, SIDE, 16), _block(shape.m, SIDE, 1), _block(shape.k, DEEP, 1))
    made = Handle(lib, "gemm", shape.n, shape.m, shape.k, *blocks, _at(b), _at(a))

    def read(_: Any) -> Array:
        out = room((shape.m, shape.n), np.float32)
        lib.xs_gemm_out(made.at, _at(out))
        return out

    return {"blocked": Form(Call(lib.xs_gemm_run, (made.at,), {}), read)} if made.at else {}


def _block(size: int, most: int, even: int) -> int:
    """The largest divisor up to ``most``: of those that ``even`` divides, if there is one."""
    found = [d for d in range(1, most + 1) if size % d == 0]
    return max([d for d in found if d % even == 0] or found)


def _convolutions(lib: Any, shape: Convolution, given: Given) -> dict[str, Form]:
    """Padded in every call, as ISAM and the others do; where it has not that, padded beforehand."""
    image, (layer,) = layers(shape, given)
    result = layer.out(image.shape)
    n, c, h, w = image.shape
    for padded in (0, 1):
        p = shape.pad * padded
        x = placed(np.pad(image, ((0, 0), (0, 0), (p, p), (p, p))))
        how = (n, c, h, w, shape.filters, shape.taps, shape.taps, shape.stride, shape.pad, padded)
        made = Handle(lib, "convolution", (ctypes.c_int * len(how))(*how), _at(x), _at(layer.weight))
        if made.at:
            break
    else:
        return {}

    def read(_: Any) -> Array:
        out = room(result, np.float32)
        lib.xs_convolution_out(made.at, _at(out))
        return channels_last(out)

    name = "padded beforehand" if padded else "blocked"
    return {name: Form(Call(lib.xs_convolution_run, (made.at,), {}), read)}


def _at(x: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(x.ctypes.data)


LIBRARY = Library("libxsmm", "LIBXSMM", version, of, reference=True)
