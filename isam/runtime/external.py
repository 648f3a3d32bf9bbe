"""Functions that object code calls and others provide, by name.

``blas:sgemm`` is the routine behind SciPy's ``cython_blas`` (Fortran calling convention), ``libm:erf`` one of the C
library. ``c:NAME/N`` and ``python:NAME/N`` are functions handed over when the artifact is loaded
(:mod:`isam.runtime.handed`), called with N integers: one that has an address directly, any other through a callback,
and an exception that it raises is raised again after the call. ``isam:fork/N`` runs a function for N instances
(:mod:`isam.runtime.pool`); where such functions are called too, one after the other in the caller's thread, which hears
of their exceptions.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from isam.diagnostics import IsamError, fail
from isam.runtime.handed import called, callee
from isam.runtime.pool import fork_address


class Externals:
    """Addresses by name; keeps callbacks alive and remembers their exceptions."""

    def __init__(self, provided: Mapping[str, Any], guarded: bool = False, declared: Mapping[str, str] | None = None):
        self.provided, self.guarded, self.declared = dict(provided), guarded, declared or {}  # kept alive here
        self.alive: list[Any] = []
        self.raised = threading.local()

    def addresses(self, externals: Iterable[tuple[str, str]]) -> dict[str, int]:
        """The address of each symbol. Raises ``IsamError`` with all that nobody provides as it is called."""
        found, faults = dict[str, int](), []
        for symbol, name in externals:
            try:
                found[symbol] = self.address(name)
            except IsamError as e:
                faults += e.diagnostics
        if faults:
            raise IsamError(faults)
        return found

    def address(self, name: str) -> int:
        """Raises ``IsamError`` when nobody provides the function."""
        kind, _, rest = name.partition(":")
        if kind == "blas":
            return blas_address(rest)
        if kind == "libm":
            return libm_address(rest)
        if kind == "isam" and rest.startswith("fork/") and rest[5:].isdecimal():
            return fork_address(int(rest[5:]), self.guarded)
        wanted = called(name)
        if wanted is not None:
            function = callee(wanted, self.provided, self.declared)
            return function if isinstance(function, int) else self._callback(function, wanted.integers)
        raise fail("external-missing", f"this artifact calls '{name}', which nothing here provides")

    def _callback(self, function: Callable[..., Any], count: int) -> int:
        def guarded(*values: int) -> None:
            try:
                function(*values)
            except BaseException as e:  # a C frame lies between here and the caller
                if getattr(self.raised, "error", None) is None:
                    self.raised.error = e

        stub = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * count)(guarded)
        self.alive.append(stub)
        return ctypes.cast(stub, ctypes.c_void_p).value or 0

    def check(self) -> None:
        """Raises what a callback raised during the call that just ended in this thread."""
        error = getattr(self.raised, "error", None)
        if error is not None:
            self.raised.error = None
            raise error


def blas_address(routine: str) -> int:
    """The address of a BLAS routine (``sgemm``) that SciPy was built with."""
    from importlib import import_module

    capsule = import_module("scipy.linalg.cython_blas").__pyx_capi__.get(routine)
    if capsule is None:
        raise fail("external-missing", f"SciPy's BLAS has no routine '{routine}'")
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype, api.PyCapsule_GetName.argtypes = ctypes.c_char_p, [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


def libm_address(function: str) -> int:
    """The address of a mathematical function of the C library (``erf``)."""
    import ctypes.util

    for library in (None, ctypes.util.find_library("m") or "libm.so.6"):
        try:
            found = getattr(ctypes.CDLL(library), function)
        except (OSError, AttributeError):
            continue
        return ctypes.cast(found, ctypes.c_void_p).value or 0
    raise fail("external-missing", f"the C library has no function '{function}'")
