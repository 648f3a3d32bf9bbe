"""Where things lie in NumPy's arrays and in its table of C functions, and whether they lie there in this process.

The layout of an array is that of NumPy since 1.7 on CPython; the table is of the C API, which only grows at its end
within one version of the binary interface. Where something is otherwise, what needs it does without.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
WORD = ctypes.sizeof(ctypes.c_void_p)
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
PLAIN = C_CONTIGUOUS | ALIGNED
DATA = 2 * WORD  # bytes from an array object to the pointer to its data
BINARY, FEATURES = 0, 211  # of the table: PyArray_GetNDArrayCVersion, PyArray_GetNDArrayCFeatureVersion
NEW_ARRAY = 94  # PyArray_NewFromDescr
SET_HANDLER, GET_HANDLER, OWN_HANDLER = 304, 305, 306  # PyDataMem_SetHandler, ..._GetHandler, ..._DefaultHandler
KNOWN = (0x01000009, 0x02000000)  # binary interfaces: NumPy 1 and 2
HANDLERS = 0xF  # the version of the C API since which memory handlers are in the table: NumPy 1.22
CAPSULE = b"mem_handler"
HANDLER_VERSION = 127  # bytes from a handler to its version


def in_table(place: int) -> int:
    """What NumPy's table of C functions holds there: an address."""
    core: Any = getattr(np, "_core", None) or np.core  # NumPy 1 has the second
    table = _of_capsule(core._multiarray_umath._ARRAY_API, None)
    return ctypes.c_void_p.from_address(table + place * WORD).value or 0


def own_handler() -> tuple[int, int]:
    """NumPy's own memory handler: addresses of its capsule and of what that holds. Zeros where this NumPy is none whose
    table and handlers are known."""
    if not QUICK or _version(BINARY) not in KNOWN or _version(FEATURES) < HANDLERS:
        return 0, 0
    capsule = ctypes.c_void_p.from_address(in_table(OWN_HANDLER)).value or 0
    try:
        handler = _of_capsule(ctypes.cast(capsule, ctypes.py_object).value, CAPSULE)
    except ValueError:
        return 0, 0
    return (capsule, handler) if ctypes.c_uint8.from_address(handler + HANDLER_VERSION).value == 1 else (0, 0)


def _version(place: int) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_uint)(in_table(place))()


def _of_capsule(capsule: Any, name: bytes | None) -> int:
    get: Callable[..., int] = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return get(capsule, name)


def slow_address(a: Array) -> int:
    return a.__array_interface__["data"][0]


def _quick_address(a: Array) -> int:
    return _pointer(id(a) + DATA).value or 0


_pointer = ctypes.c_void_p.from_address


def _probe() -> bool:
    """Whether an array object's third word is its data pointer (NumPy's ABI on CPython), tried on some arrays."""
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    tuples = tuple.__basicsize__ == 24  # references, type, length: then the items
    if sys.implementation.name != "cpython" or WORD != 8 or not gil or not tuples:
        return False
    tried = [np.zeros(3), np.zeros((2, 5), np.int8)[1:, 1:], np.frombuffer(b"abcdefgh", np.float32), np.zeros((0, 4))]
    return all(_quick_address(a) == slow_address(a) for a in tried)


QUICK = _probe()
address = _quick_address if QUICK else slow_address
