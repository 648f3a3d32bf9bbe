"""Every array a caller passes is checked: accepted as it is, copied, or refused. Nothing is ever read out of bounds.

| given | for ``in``, ``const`` | for ``inout`` and ``C=out`` |
|---|---|---|
| C-contiguous, aligned, native byte order, right type and shape | used as it is | used as it is |
| other strides, unaligned | copied | computed in a copy, then copied back |
| other byte order | copied | refused |
| other element type, other shape | refused | refused |
| read-only | used | refused |
| elements that share memory (stride 0) | copied | refused |
| a Python or NumPy number, for rank 0 | converted where no value can be lost | refused |
| a masked array | refused | refused |
| a subclass of ndarray (memmap, matrix) | as the plain array it is | as the plain array it is |
| anything else (lists, ...) | refused | refused |

Inputs may overlap each other. An input that overlaps something written is copied first. Two written arguments that
overlap are refused.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from isam.classes import dataclass
from isam.diagnostics import Diagnostic, IsamError
from isam.ir.dtype import dtype_name
from isam.runtime.aligned import copied, result
from isam.runtime.layout import PLAIN
from isam.runtime.signature import Array, Parameter, Signature


@dataclass(slots=True)
class Prepared:
    """Arrays to compute with, by name; ``back``: (array of the caller, array computed) to be copied afterwards;
    ``results``: what the caller gets for each output."""

    arrays: dict[str, Array]
    back: list[tuple[Array, Array]]
    results: dict[str, Array]
    sizes: dict[str, int]


def prepare(signature: Signature, given: Mapping[str, Any], bound: Mapping[str, Array]) -> Prepared:
    """Checks everything given at once. Raises ``IsamError`` with every fault found."""
    faults: list[Diagnostic] = []
    plain: dict[str, Array] = {}
    for name, value in given.items():
        array = _array(signature.by_name[name], value, faults)
        if array is not None:
            _same_rank(signature, name, array, faults)
            plain[name] = array
    _stop(faults)
    sizes = {} if signature.static else signature.infer({n: a.shape for n, a in {**bound, **plain}.items()})
    for name, array in plain.items():
        _check(signature, signature.by_name[name], array, sizes, faults)
    for name, array in bound.items():
        shape = signature.shape(signature.by_name[name], sizes)
        if array.shape != shape:
            what = f"'{name}' was bound with shape {list(array.shape)}; this call needs {list(shape)}"
            faults.append(_fault("shape", what))
    _stop(faults)
    written = [n for n in plain if signature.by_name[n].written]
    for i, a in enumerate(written):
        for b in written[:i]:
            if np.may_share_memory(plain[a], plain[b]) and np.shares_memory(plain[a], plain[b]):
                faults.append(_fault("overlap", f"'{b}' and '{a}' are both written and overlap"))
    _stop(faults)
    return _arrange(signature, plain, written, bound, sizes)


def look_over(signature: Signature, given: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The shapes given, by name, where everything is an array of the declared rank. Raises ``IsamError``."""
    faults: list[Diagnostic] = []
    shapes: dict[str, tuple[int, ...]] = {}
    for name, value in given.items():
        array = _array(signature.by_name[name], value, faults)
        if array is None:
            continue
        _same_rank(signature, name, array, faults)
        shapes[name] = array.shape
    _stop(faults)
    return shapes


def _same_rank(signature: Signature, name: str, array: Array, faults: list[Diagnostic]) -> None:
    """Sizes follow from shapes only where there are as many dimensions as declared."""
    rank = len(signature.by_name[name].rows)
    if array.ndim != rank and not signature.static:
        faults.append(_fault("shape", f"'{name}' must have {rank} dimensions, not {array.ndim}"))


def _arrange(signature: Signature, plain: dict[str, Array], written: list[str], bound: Mapping[str, Array],
             sizes: dict[str, int]) -> Prepared:  # fmt: skip
    arrays: dict[str, Array] = dict(bound)
    back: list[tuple[Array, Array]] = []
    for name, a in plain.items():
        p = signature.by_name[name]
        if usable(a, p):
            clash = not p.written and any(np.may_share_memory(a, plain[w]) for w in written)
            arrays[name] = copied(a, p.dtype) if clash else a
        else:
            arrays[name] = copied(a, p.dtype)
            if p.written:
                back.append((a, arrays[name]))
    results: dict[str, Array] = {}
    for p in signature.outputs:
        if p.name not in arrays:
            arrays[p.name] = result(signature.shape(p, sizes), p.dtype)
        results[p.name] = plain.get(p.name, arrays[p.name])
    return Prepared(arrays, back, results, sizes)


def usable(a: Array, p: Parameter) -> bool:
    """Whether code may work on the array in place."""
    return a.flags.num & PLAIN == PLAIN and a.dtype == p.dtype and a.dtype.isnative


def _array(p: Parameter, value: Any, faults: list[Diagnostic]) -> Array | None:
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)  # imported by whoever has one, not by a call
    if masked is not None and isinstance(value, masked):
        faults.append(_fault("type", f"'{p.name}' is a masked array: its mask would be lost", "pass x.filled(...)"))
        return None
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray) if type(value) is not np.ndarray else value
    if not p.rows and not p.written and isinstance(value, bool | int | float | np.generic):
        return _number(p, value, faults)
    kind = "a number" if isinstance(value, int | float | np.generic) else type(value).__name__
    what = f"'{p.name}' must be a NumPy array of {p.dtype}, not {kind}"
    hint = _converted(p) if p.written else f"pass np.asarray(x, {_named(p)})" if value is not None else ""
    faults.append(_fault("type", what, hint))
    return None


def _number(p: Parameter, value: Any, faults: list[Diagnostic]) -> Array | None:
    try:
        with np.errstate(all="ignore"):  # what is lost is said below
            array = np.asarray(value)
            known = array.dtype.kind in "iubf" or dtype_name(array.dtype) is not None
            exact = array.ndim == 0 and known and array.astype(p.dtype) == array
            if type(value) is float and p.dtype.kind not in "iub":
                exact = True  # a Python float is a number in the text of the call: it takes the argument's type
            if exact:
                return array.astype(p.dtype)
    except (OverflowError, ValueError, TypeError):
        pass
    faults.append(_fault("dtype", f"'{p.name}' must be {p.dtype}; {_plain(value)!r} is not exact in it"))
    return None


def _check(signature: Signature, p: Parameter, a: Array, sizes: dict[str, int], faults: list[Diagnostic]) -> None:
    turned = a.dtype != p.dtype and a.dtype.kind == p.dtype.kind and a.dtype.newbyteorder("=") == p.dtype
    if a.dtype != p.dtype and (p.written or not turned):
        order = " in this machine's byte order" if turned else ""
        hint = "" if order else _cast(p, a)
        faults.append(_fault("dtype", f"'{p.name}' must be {p.dtype}{order}, not {a.dtype}", hint))
    shape = signature.shape(p, sizes)
    if a.shape != shape:
        faults.append(_fault("shape", f"'{p.name}' must have shape {list(shape)}, not {list(a.shape)}"))
    if p.written and not a.flags.writeable:
        faults.append(_fault("read-only", f"'{p.name}' is written, but the array is read-only"))
    elif p.written and not a.flags.c_contiguous and shares_itself(a):
        faults.append(_fault("overlap", f"'{p.name}' is written, but elements of the array share memory"))


def _cast(p: Parameter, a: Array) -> str:
    """How to come by an array of the element type from one of another. Of bytes without a type (``|V2``, as
    ``numpy.save`` leaves of bf16) nothing can be converted."""
    if a.dtype.kind != "V":
        return _converted(p)
    return f"take its bytes as they are: .view({_named(p)})" if a.dtype.itemsize == p.dtype.itemsize else ""


def _converted(p: Parameter) -> str:
    """How to come by an array of the element type; what is written into a converted copy would be lost."""
    name = _named(p)
    if p.role == "out":
        return f"results are written into the array itself: make it as {name}, or leave it out for a new one"
    if p.written:
        return f"results are written into the array itself, so that a converted copy would take them: keep it as {name}"
    return f"convert it with .astype({name})"


def _named(p: Parameter) -> str:
    """The element type as a program names it: what NumPy lacks is in ``ml_dtypes``."""
    return f"np.{p.dtype}" if p.dtype.isbuiltin == 1 else f"ml_dtypes.{p.dtype}"


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def shares_itself(a: Array) -> bool:
    """True unless strides show that no two elements lie on each other (conservative beyond nested strides)."""
    reach = a.itemsize
    for stride, n in sorted((abs(s), n) for s, n in zip(a.strides, a.shape, strict=True) if n > 1):
        if stride < reach:
            return True
        reach += stride * (n - 1)
    return False


def _fault(code: str, message: str, hint: str = "") -> Diagnostic:
    return Diagnostic(f"call-{code}", message, hint=hint)


def _stop(faults: list[Diagnostic]) -> None:
    if faults:
        raise IsamError(faults)
