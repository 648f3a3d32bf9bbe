"""Objects that CPython calls straight into native code (PEP 590): no Python function runs when a kernel is called.

``callable_class`` derives from a Python class one whose instances have a vectorcall function and a record (`Record`) or
those of several shapes (`Shapes`); ``vectorcall.ll`` has these functions, for all kernels. What they do not take as it
is goes to the class's ``__call__``.
Where Python or NumPy are not laid out as it needs (another implementation, no global lock), the class stays as it is.
"""

from __future__ import annotations

import ctypes
import os
import sys
import weakref
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import count
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from isam.classes import dataclass
from isam.runtime.aligned import LEAST, maker
from isam.runtime.layout import NEW_ARRAY, PLAIN, QUICK, WORD, WRITEABLE, address, in_table
from isam.runtime.signature import Array, Parameter

C = TypeVar("C", bound=type)
WRITTEN = PLAIN | WRITEABLE
BASETYPE, VECTORCALL, DEFAULT = 1 << 10, 1 << 11, 1 << 18  # Py_TPFLAGS_...
TP_CALL, TP_MEMBERS = 50, 72  # Py_tp_..., from typeslots.h
SSIZE, READONLY = 19, 1  # T_PYSSIZET and READONLY of structmember.h
WAYS = ("quick", "several", "thorough")
SHAPES = 16  # so many are looked through at a call before Python looks for one


class Spec(ctypes.Structure):
    """What an argument has to be; ``maker``: of one that is written, who makes it where it is not given."""

    _fields_ = [("dtype", ctypes.c_void_p), ("rank", ctypes.c_int32), ("flags", ctypes.c_int32),
                ("shape", ctypes.c_void_p), ("bytes", ctypes.c_int64), ("order", ctypes.c_int64),
                ("name", ctypes.c_void_p), ("maker", ctypes.c_void_p)]  # fmt: skip


class Record(ctypes.Structure):
    """What a call checks and runs: how many ``positional`` arguments, how many with the outputs (``all``) and with
    what is bound (``pointers``, ``bound``)."""

    _fields_ = [("positional", ctypes.c_int64), ("all", ctypes.c_int64), ("pointers", ctypes.c_int64),
                ("bound", ctypes.c_void_p), ("specs", ctypes.c_void_p), ("call", ctypes.c_void_p),
                ("bind", ctypes.c_void_p), ("workspace", ctypes.c_void_p), ("sizes", ctypes.c_void_p),
                ("thorough", ctypes.py_object), ("releases", ctypes.c_int32), ("busy", ctypes.c_int32)]  # fmt: skip


class Shapes(ctypes.Structure):
    """The records of the shapes met last (null: none yet), and who is called where none of them fits."""

    _fields_ = [("thorough", ctypes.py_object), ("records", ctypes.c_void_p * SHAPES)]

    def __init__(self, thorough: Any):
        super().__init__(thorough=thorough)
        self.entries: list[Any] = [None] * SHAPES  # of each record
        self.turn = count()

    def know(self, entry: Any) -> None:
        """Calls look from now on whether their arguments fit the entry, if that has native code; the one that came
        before all others may be forgotten. Any number of threads may do so at once."""
        words = (ctypes.c_void_p * 2).from_address(id(entry) + HEADER)
        if words[0] == _functions()["quick"]:
            place = next(self.turn) % SHAPES
            self.records[place] = words[1]
            self.entries[place] = entry


@dataclass(frozen=True, slots=True)
class Launch:
    """Native code ready to be called: addresses of its two functions (``bind`` 0: nothing is bound per call) and of a
    workspace that nobody else uses. ``long``: the interpreter's lock is let go. ``alive``: what must not be freed."""

    call: int
    bind: int
    workspace: int
    long: bool
    alive: Any


class _TypeSpec(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("basicsize", ctypes.c_int), ("itemsize", ctypes.c_int),
                ("flags", ctypes.c_uint), ("slots", ctypes.c_void_p)]  # fmt: skip


class _Slot(ctypes.Structure):
    _fields_ = [("slot", ctypes.c_int), ("pointer", ctypes.c_void_p)]


class _Member(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("offset", ctypes.c_ssize_t),
                ("flags", ctypes.c_int), ("doc", ctypes.c_char_p)]  # fmt: skip



class _Plain:
    """Any Python class: its instances are as long as those of all that have no slots."""


HEADER = _Plain.__basicsize__
_alive: list[Any] = []  # the texts that types made here refer to
_records: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()  # by address


def _idle() -> None:
    """After a fork: the threads that were in long calls are not in the child."""
    for record in list(_records.values()):
        record.busy = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle)


def callable_class(cls: C) -> C:
    """The class with room for a vectorcall function and a record behind each instance; every instance has to be given
    one (``attach``) before it is called. The class itself where this interpreter does not allow it."""
    if not QUICK or cls.__basicsize__ != HEADER:
        return cls
    members = (_Member * 2)(_Member(b"__vectorcalloffset__", SSIZE, HEADER, READONLY, None))
    call = ctypes.cast(ctypes.pythonapi.PyVectorcall_Call, ctypes.c_void_p).value
    slots = (_Slot * 3)(_Slot(TP_CALL, call), _Slot(TP_MEMBERS, ctypes.addressof(members)))
    name = f"{cls.__module__}.{cls.__qualname__}".encode()
    spec = _TypeSpec(name, HEADER + 2 * WORD, 0, DEFAULT | BASETYPE | VECTORCALL, ctypes.addressof(slots))
    _alive.append((members, name))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object)(
        ("PyType_FromSpecWithBases", ctypes.pythonapi)
    )
    made = make(ctypes.addressof(spec), (cls,))
    made.__doc__, made.__wrapped__ = cls.__doc__, cls
    return made


def attach(entry: Any, parameters: Sequence[Parameter], bound: dict[str, Array], launch: Launch | None) -> Any:
    """Lets calls of ``entry``, an instance of a ``callable_class``, go to native code where the arguments allow it,
    else to the ``__call__`` of the Python class. Returns what has to live as long as ``entry``; None where calls are
    Python's anyway. ``launch`` None: every call takes the thorough way."""
    wrapped = getattr(type(entry), "__wrapped__", None)
    if wrapped is None:
        return None
    record = Record(thorough=wrapped.__call__.__get__(entry))
    alive = _fill(record, parameters, bound, launch) if launch is not None else None
    _records[ctypes.addressof(record)] = record
    _set(entry, "quick" if launch is not None else "thorough", record)
    return record, alive


def attach_shapes(function: Any) -> Shapes | None:
    """Lets calls of ``function``, an instance of a ``callable_class``, go to the native code of one of the entries that
    are known to what is returned, else to the ``__call__`` of the Python class. It has to live as long as
    ``function``. None where calls are Python's anyway."""
    wrapped = getattr(type(function), "__wrapped__", None)
    if wrapped is None:
        return None
    shapes = Shapes(thorough=wrapped.__call__.__get__(function))
    _set(function, "several", shapes)
    return shapes


def _set(instance: Any, function: str, record: ctypes.Structure) -> None:
    words = (ctypes.c_void_p * 2).from_address(id(instance) + HEADER)
    words[0], words[1] = _functions()[function], ctypes.addressof(record)


def lend(entry: Any, to: Any) -> None:
    """Calls of ``to`` go where calls of ``entry`` go; ``to`` keeps ``entry`` alive. Both of a ``callable_class``."""
    if hasattr(type(to), "__wrapped__"):
        ctypes.memmove(id(to) + HEADER, id(entry) + HEADER, 2 * WORD)


def _fill(record: Record, parameters: Sequence[Parameter], bound: dict[str, Array], launch: Launch) -> Any:
    order = {p.name: n for n, p in enumerate(parameters)}
    wanted = [p for p in parameters if p.role != "out" and p.name not in bound]
    taken = [*wanted, *(p for p in parameters if p.role == "out")]
    pointers = (ctypes.c_void_p * len(parameters))()
    for name, a in bound.items():
        pointers[order[name]] = address(a)
    shapes = [(ctypes.c_ssize_t * max(1, len(p.shape or ())))(*(p.shape or ())) for p in taken]
    names = [sys.intern(p.name) for p in taken]
    specs = (Spec * max(1, len(taken)))()
    for spec, p, shape, name in zip(specs, taken, shapes, names, strict=False):
        dims = p.shape or ()
        spec.dtype, spec.rank, spec.flags = id(p.dtype), len(dims), WRITTEN if p.written else PLAIN
        spec.shape, spec.bytes = ctypes.addressof(shape), prod(dims) * p.dtype.itemsize
        spec.order, spec.name = order[p.name], id(name)
        spec.maker = _maker(p, spec.bytes) if p.written else None
    record.positional, record.all, record.pointers = len(wanted), len(taken), len(parameters)
    record.bound, record.specs = ctypes.addressof(pointers), ctypes.addressof(specs)
    record.call, record.bind, record.workspace = launch.call, launch.bind, launch.workspace
    record.releases = launch.long
    return pointers, shapes, names, specs, bound, tuple(p.dtype for p in taken), launch.alive


def _maker(p: Parameter, size: int) -> int:
    """Address of the function that allocates an output: large outputs start on a cache line, others come from NumPy."""
    return maker() if p.role == "out" and size >= LEAST else in_table(NEW_ARRAY)


@lru_cache(maxsize=1)
def _functions() -> Mapping[str, int]:
    """Addresses of the vectorcall functions, compiled once in a process."""
    from isam.runtime.linking import link, to_object

    text = Path(__file__).with_suffix(".ll").read_text(encoding="utf-8")
    text = text.replace("@RECORD", str(HEADER + WORD)).replace("@SHAPES", str(SHAPES))
    api = ctypes.pythonapi
    called = ("PyObject_Vectorcall", "PyTuple_New", "PyUnicode_Compare", "Py_IncRef", "Py_DecRef", "PyEval_SaveThread",
              "PyEval_RestoreThread")  # fmt: skip
    symbols = {n: ctypes.cast(getattr(api, n), ctypes.c_void_p).value or 0 for n in called}
    symbols |= {"PyArray_Type": id(np.ndarray), "_Py_NoneStruct": id(None)}
    library = link("vectorcall", to_object(text), symbols, WAYS)
    _alive.append(library)
    return {way: library[way] for way in WAYS}
