"""A memory handler of NumPy's that counts, in force in place of NumPy's own or below ISAM's."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager

import numpy as np

from isam.runtime import layout
from isam.runtime.aligned import linked

handler_of = (getattr(np, "_core", None) or np.core).multiarray.get_handler_name


class Handler(ctypes.Structure):
    """A memory handler as NumPy has them, whose functions are Python's."""

    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", ctypes.c_void_p),
                *((n, ctypes.c_void_p) for n in ("malloc", "calloc", "realloc", "free"))]  # fmt: skip


class Counting:
    """Memory of the C library's, and what was got and given back: address and size."""

    def __init__(self):
        libc = ctypes.CDLL(None)
        libc.malloc.restype = libc.calloc.restype = libc.realloc.restype = ctypes.c_void_p
        word = ctypes.c_size_t
        self.live, self.faults = {}, []
        forms = [ctypes.CFUNCTYPE(r, ctypes.c_void_p, *a) for r, a in (
            (ctypes.c_void_p, [word]), (ctypes.c_void_p, [word, word]), (ctypes.c_void_p, [ctypes.c_void_p, word]),
            (None, [ctypes.c_void_p, word]))]  # fmt: skip

        def got(at, size):
            self.live[at] = size
            return at

        def again(context, at, size):
            self.live.pop(at)
            return got(libc.realloc(ctypes.c_void_p(at), word(size)), size)

        def free(context, at, size):
            if self.live.pop(at, None) != size:
                self.faults.append((at, size))
            libc.free(ctypes.c_void_p(at))

        functions = (lambda _, size: got(libc.malloc(word(size)), size),
                     lambda _, n, each: got(libc.calloc(word(n), word(each)), n * each), again, free)  # fmt: skip
        self.alive = [form(f) for form, f in zip(forms, functions, strict=True)]
        self.handler = Handler(b"counting", 1, None, *(ctypes.cast(f, ctypes.c_void_p).value for f in self.alive))
        new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        new = new(("PyCapsule_New", ctypes.pythonapi))
        self.capsule = new(ctypes.addressof(self.handler), layout.CAPSULE, None)

    @contextmanager
    def in_force(self):
        put = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(layout.in_table(layout.SET_HANDLER))
        before = put(self.capsule)
        try:
            yield
        finally:
            assert put(before) is self.capsule


@contextmanager
def below(counting):
    """Ours asks this handler, instead of NumPy's own, for memory."""
    ours = Handler.from_address(linked().code["handler"])
    theirs, ours.context = ours.context, ctypes.addressof(counting.handler)
    try:
        yield
    finally:
        ours.context = theirs
