"""Arrays that begin with a cache line (``aligned.ll``): code stores vectors of a line and rows of tiles, each of which
touches two lines in an array that begins elsewhere, as NumPy's do, 16 bytes after a line.

They own their memory as any array of NumPy does. Where NumPy is not laid out as it has to be known for that, or where
somebody has set a memory handler of his own, results are made as NumPy makes them.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import lru_cache
from math import prod
from operator import index
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from isam.caches import LINE
from isam.runtime.forks import gate
from isam.runtime.layout import CAPSULE, GET_HANDLER, NEW_ARRAY, SET_HANDLER, Array, address, in_table, own_handler
from isam.runtime.linking import link, to_object

LEAST = 1 << 16  # bytes of the smallest result that begins with a line: 160 ns more would be felt in a call with less
NAME = "isam"  # of the handler


class Functions(NamedTuple):
    """``make``: the address of what does what ``PyArray_NewFromDescr`` does, and begins with a line; ``array`` makes an
    array of a dtype, a rank and a shape that way; ``code``: where both lie."""

    make: int
    array: Callable[[np.dtype[Any], int, Any], Array]
    code: Any


def empty(shape: int | tuple[int, ...] | list[int], dtype: Any = np.float64) -> Array:
    """A new array whose content is undefined, C-contiguous, that begins with a cache line: its address is a multiple
    of 64 bytes. For arguments of kernels, and for results that are given as ``C=out``.

    ``shape``: a tuple or list of elements along each dimension, or a number for one; ``dtype``: what NumPy takes for
    one. The array owns its memory, unless a memory handler other than NumPy's own is set, or this NumPy's are not
    known: then it is a view of a longer one (of Python objects, an array that begins anywhere). Raises what
    ``numpy.empty`` raises: ``ValueError`` for a size below zero or too large, ``TypeError`` for what is no shape or no
    dtype, ``MemoryError``.
    """
    wanted = np.dtype(dtype)
    dims = tuple(map(index, shape)) if isinstance(shape, tuple | list) else (index(shape),)
    if any(abs(n) > sys.maxsize for n in dims):
        raise ValueError("a dimension is below zero or too large")
    made = _new(dims, wanted)
    there = address(made) % LINE == 0 or not made.nbytes or wanted.hasobject
    return made if there else _within(made.shape, made.dtype)


def result(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Room for a result of a call: of ``LEAST`` bytes or more, it begins with a line where that can be."""
    return _new(shape, dtype) if prod(shape) * dtype.itemsize >= LEAST else np.empty(shape, dtype)


def copied(a: Array, dtype: np.dtype[Any]) -> Array:
    """A C-contiguous copy that begins as a result does."""
    made = result(a.shape, dtype)
    made[...] = a
    return made


def _within(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A view of a longer array."""
    size = prod(shape) * dtype.itemsize
    longer = np.empty(size + LINE, np.uint8)
    start = -address(longer) % LINE
    return longer[start : start + size].view(dtype).reshape(shape)


def _new(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    functions = linked()
    if functions is None:
        return np.empty(shape, dtype)
    return functions.array(dtype, len(shape), (ctypes.c_ssize_t * max(1, len(shape)))(*shape))


def maker() -> int:
    """The address of a function that does what ``PyArray_NewFromDescr`` does, with memory that begins with a line; of
    the latter where that cannot be."""
    functions = linked()
    return functions.make if functions is not None else in_table(NEW_ARRAY)


@lru_cache(maxsize=1)
def linked() -> Functions | None:
    """Compiled once in a process; None where NumPy's handlers are not known."""
    capsule, theirs = own_handler()
    if not theirs:
        return None
    text = Path(__file__).with_suffix(".ll").read_text(encoding="utf-8")
    text = text.replace("@LINE", str(LINE)).replace("@NAME", NAME + "\\00" * (127 - len(NAME)))
    api = ctypes.pythonapi
    called = ("Py_IncRef", "Py_DecRef", "PyErr_Clear", "PyErr_Fetch", "PyErr_Restore")
    symbols = {n: ctypes.cast(getattr(api, n), ctypes.c_void_p).value or 0 for n in called}
    symbols |= {"theirs": theirs, "theirs.capsule": capsule, "PyArray_Type": id(np.ndarray),
                "PyArray_NewFromDescr": in_table(NEW_ARRAY), "PyDataMem_GetHandler": in_table(GET_HANDLER),
                "PyDataMem_SetHandler": in_table(SET_HANDLER)}  # fmt: skip
    with gate.inside():
        code = link("aligned", to_object(text, 0), symbols, ("make", "array", "handler", "capsule"))
    _forever(code)
    form = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object, ctypes.c_int, ctypes.c_void_p)
    return Functions(code["make"], form(code["array"]), code)


def _forever(code: Any) -> None:
    """Arrays live to the very end of a process, when nothing else does: so do their capsule, its name and the code."""
    form = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    capsule = form(("PyCapsule_New", ctypes.pythonapi))(code["handler"], CAPSULE, None)
    ctypes.c_void_p.from_address(code["capsule"]).value = id(capsule)
    for kept in (capsule, CAPSULE, code):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
