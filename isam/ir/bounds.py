"""How far a legal compilation may be from the exact result, element by element: no tolerance chosen by hand.

Running error analysis over the same walk as the interpreter: every number is a value in f64 and a bound on what
rounding may have done to it, so a float test needs no tuned tolerance::

    enclosed = enclose(kernel, arrays, sizes)
    fault = outside(compiled(**arrays), enclosed)      # None, or a sentence with the worst element

The bound covers every order of summation, fused multiply-adds, and functions good to ``ulp`` units in the last place.
It does not cover what only ``finite`` permits. Where a bound is infinite (a division by something that may be 0, an
overflow of the dtype, an integer that a rounding may have pushed over an edge) every result is accepted. Infinities and
NaN that the exact result has whatever the order are demanded.

Decided here: subnormal results may be flushed to zero, and operands where the kernel permits ``flush``; sums are
allowed twice their textbook bound, because a blocked sum adds its partial results once more.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from isam.ir.arithmetic import Numbers, convert
from isam.ir.dtype import DTYPES, numpy_dtype
from isam.ir.interp import checked, dtypes_of
from isam.ir.kernel import Kernel
from isam.ir.points import Array, Memory, execute, sizes_of

Enclosed = dict[str, tuple[Array, Array]]
_KEPT = 2.0**-53  # what keeping a value in f64 may do to it
_UNIT = {d: u + _KEPT for d, u in {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}.items()}
_FLUSH = {"f64": 2.0**-1021, "f32": 2.0**-125, "f16": 2.0**-13, "bf16": 2.0**-125}
_LARGEST = {"f64": 1.797e308, "f32": 3.4028e38, "f16": 65504.0, "bf16": 3.3895e38}


def enclose(
    kernel: Kernel, arrays: Mapping[str, Array], sizes: Mapping[str, int] | None = None, ulp: float = 4.0
) -> Enclosed:
    """For every ``out`` and ``inout``: values (f64) and bounds (f64, same shape). Raises as ``interp.run`` does.

    Cost: about five times the interpreter's. Limits: i64 values beyond 2^53 are not exact.
    """
    sizes = checked(kernel, arrays, sizes)
    memory = Memory({}, dtypes_of(kernel, arrays))
    for b in kernel.buffers:
        if b.name in arrays:
            memory.arrays[b.name] = _given(np.array(arrays[b.name]), memory.dtypes[b.name], "flush" in kernel.permits)
        else:
            memory.arrays[b.name] = np.full(sizes_of(b, sizes), np.nan + 0j)
    with np.errstate(all="ignore"):
        execute(kernel, memory, sizes, Rounding(ulp))
    return {b.name: (memory.arrays[b.name].real, memory.arrays[b.name].imag)
            for b in kernel.buffers if b.role in ("out", "inout")}  # fmt: skip


def products(value: Array, magnitude: Array, terms: int, dtype: str = "f32") -> tuple[Array, Array]:
    """``(value, bound)`` of a sum of at most ``terms`` products, summed in any order: for sizes at which the walk of
    :func:`enclose` takes too long. ``value``: the result in f64; ``magnitude``: the same of absolute operands.

    >>> value, bound = products(np.array([2.0]), np.array([6.0]), terms=2)
    >>> float(bound[0]) >= 2 * 2 * 2.0**-24 * 6
    True
    """
    return value, 2 * (terms + 2) * _UNIT[dtype] * magnitude + (terms + 1) * _FLUSH[dtype]


def outside(got: Mapping[str, Array], enclosed: Enclosed) -> str | None:
    """``None`` if every element lies within its bound, else a sentence on the worst one."""
    for name, (value, bound) in enclosed.items():
        a = np.asarray(got[name]).astype(np.float64)
        if a.shape != value.shape:
            return f"{name} has shape {a.shape}, expected {value.shape}"
        with np.errstate(all="ignore"):
            fine = (abs(a - value) <= bound) | (a == value) | ~np.isfinite(bound) | (np.isnan(a) & np.isnan(value))
            if not fine.all():
                excess = np.where(fine, -1, np.nan_to_num(abs(a - value) / np.maximum(bound, 5e-324), nan=np.inf))
                at = np.unravel_index(int(np.argmax(excess)), a.shape)
                where = ", ".join(map(str, at))
                return (f"{name}[{where}] is {float(a[at])!r}, expected {float(value[at])!r} within {bound[at]:.3g}; "
                        f"{int((~fine).sum())} of {a.size} elements are outside")  # fmt: skip
    return None


def _given(a: Array, dtype: str, flush: bool) -> Array:
    """An argument: exact, but for subnormal numbers that may count as zero."""
    with np.errstate(all="ignore"):
        value = a.astype(np.float64)
    small = abs(value) < _FLUSH.get(dtype, 0) if flush else np.zeros(a.shape, bool)
    return _pair(value, np.where(small, abs(value), 0.0))


def _pair(value: Array, bound: Array) -> Array:
    """Packed as a complex number; what is not a number is unbounded unless the value is exactly that."""
    out = np.empty(np.broadcast_shapes(np.shape(value), np.shape(bound)), np.complex128)
    out.real, out.imag = value, np.where(np.isnan(bound), np.inf, bound)
    return out


def _finish(value: Array, bound: Array, dtype: str, units: float = 1.0) -> Array:
    """Rounded to ``dtype``: ``units`` roundings on top of ``bound``."""
    if DTYPES[dtype].kind != "f":
        return _pair(value, bound)
    total = bound + units * _UNIT[dtype] * (abs(value) + bound) + _FLUSH[dtype]
    over = abs(value) + total > _LARGEST[dtype]
    return _pair(value, np.where(over & np.isfinite(value), np.inf, np.where(np.isfinite(value), total, bound)))


def _no_overflow(v: tuple[Array, ...], made: Array, bound: Array) -> tuple[Array, Array]:
    """Unbounded where f64 itself overflowed: contracted, the same may stay finite."""
    return made, np.where(np.isinf(made) & np.isfinite(v[0]) & np.isfinite(v[1]), np.inf, bound)


class Rounding:
    """Values with bounds, packed as complex numbers: real part the value, imaginary part the bound."""

    def __init__(self, ulp: float):
        self.ulp = ulp
        self.exact = Numbers()

    def literal(self, value: float | int | bool, dtype: str) -> Array:
        return _pair(self.exact.literal(value, dtype).astype(np.float64), np.zeros(()))

    def apply(self, op: str, args: tuple[Array, ...], source: str, target: str) -> Array:
        v, e = tuple(a.real for a in args), tuple(a.imag for a in args)
        if op == "copy" or (op in ("neg", "abs") and DTYPES[source].kind == "f"):
            return _pair({"copy": v[0], "neg": -v[0], "abs": abs(v[0])}[op], e[0])
        if op in ("lt", "le", "gt", "ge", "eq", "ne"):
            made = self.exact.apply(op, v, "f64", "bool").astype(np.float64)
            return _pair(made, np.where(abs(v[0] - v[1]) <= e[0] + e[1], (e[0] + e[1] > 0) * 1.0, 0.0))
        if op in ("and", "or", "not"):
            made = self.exact.apply(op, tuple(x != 0 for x in v), "bool", "bool").astype(np.float64)
            return _pair(made, np.maximum(e[0], e[-1]))
        if op == "select":
            return _select(args[0], args[1], args[2])
        if DTYPES[source].kind != "f" or op in ("cast", "cast_sat"):
            return self._by_corners(op, v, e, source, target)
        return self._float(op, v, e, target)

    def _float(self, op: str, v: tuple[Array, ...], e: tuple[Array, ...], dtype: str) -> Array:
        if op in ("add", "sub"):
            return _finish(*_no_overflow(v, v[0] + v[1] if op == "add" else v[0] - v[1], e[0] + e[1]), dtype)
        if op == "mul":
            return _finish(*_no_overflow(v, v[0] * v[1], _times(v[0], e[0], v[1], e[1])), dtype)
        if op in ("max", "min"):
            return _pair((np.maximum if op == "max" else np.minimum)(v[0], v[1]), np.maximum(e[0], e[1]))
        if op == "div":
            room = abs(v[1]) - e[1]
            bound = (e[0] + abs(v[0] / v[1]) * e[1]) / np.where(room > 0, room, 0)
            return _finish(v[0] / v[1], np.where(e[0] + e[1] == 0, 0, bound), dtype)
        made = self.exact.apply(op, v, "f64", "f64")
        if op in ("sin", "cos"):
            return _finish(made, e[0], dtype, 2 * self.ulp)
        units = 0.0 if op in ("floor", "ceil", "round") else 1.0 if op == "sqrt" else 2 * self.ulp
        return _finish(made, self._spread(op, v, e, "f64", "f64", made), dtype, units)

    def _by_corners(self, op: str, v: tuple[Array, ...], e: tuple[Array, ...], source: str, target: str) -> Array:
        """Integer operations and casts: on exact operands exact, else as far as the corners of the operands reach."""
        made = self._exactly(op, v, source, target)
        bound = self._spread(op, v, e, source, target, made)
        if DTYPES[target].kind == "f":
            return _finish(made, bound, target, 0.0 if op != "cast" or _UNIT[target] <= _UNIT.get(source, 0) else 1.0)
        return _pair(made, bound)

    def _exactly(self, op: str, v: tuple[Array, ...], source: str, target: str) -> Array:
        kept = numpy_dtype(source)
        args = tuple(x.astype(kept) if DTYPES[source].kind != "f" else x for x in v)
        if op in ("cast", "cast_sat") and DTYPES[target].kind == "f":
            return np.asarray(args[0]).astype(np.float64)
        return self.exact.apply(op, args, source, target).astype(np.float64)

    def _spread(
        self, op: str, v: tuple[Array, ...], e: tuple[Array, ...], source: str, target: str, made: Array
    ) -> Array:
        """The furthest that the result moves when the operands go to the corners of their bounds."""
        if not any(x.any() for x in e):
            return np.zeros(np.shape(made))
        if len(v) == 1:
            corners: list[tuple[Array, ...]] = [(v[0] - e[0],), (v[0] + e[0],)]
        else:
            corners = [(v[0] + s * e[0], v[1] + t * e[1]) for s in (-1, 1) for t in (-1, 1)]
        reach = [abs(self._exactly(op, c, source, target) - made) for c in corners]
        bound = np.maximum.reduce(np.broadcast_arrays(*reach))
        unknown = np.isnan(bound) | np.isinf(sum(e))  # what may be anything may be NaN
        return np.where(sum(e) == 0, 0, np.where(unknown, np.inf, bound))

    def accumulate(self, op: str, flat: Array, at: Array, values: Array, dtype: str) -> None:
        touched = np.zeros(flat.shape, np.float64)
        np.add.at(touched, at, 1.0)
        v, e = flat.real, flat.imag
        if op in ("max", "min"):
            (np.maximum if op == "max" else np.minimum).at(v, at, values.real)
            np.maximum.at(e, at, values.imag)
            return
        whole = None if DTYPES[dtype].kind == "f" else _whole(op, v, at, values.real)
        if whole is not None:
            e[...] = _added(e, at, values.imag) if op == "add" else _reach(v, e, at, values, touched)
            v[...] = np.where(touched > 0, convert(whole, dtype).astype(np.float64), v)
        elif op == "add":
            self._sum(v, e, at, values, touched, dtype)
        else:
            self._product(v, e, at, values, touched, dtype)
        e[np.isnan(e)] = np.inf

    def _sum(self, v: Array, e: Array, at: Array, values: Array, touched: Array, dtype: str) -> None:
        """Finite terms may meet in any order; what is infinite or NaN then is so in every order."""
        size = _added(_magnitude(v, 0.0), at, _magnitude(values.real, 0.0))
        np.add.at(v, at, values.real)
        np.add.at(e, at, values.imag)
        e += touched * (2 * _UNIT[dtype] * (size + e) + _FLUSH[dtype])
        e[(size + e > _LARGEST[dtype]) & (touched > 0)] = np.inf

    def _product(self, v: Array, e: Array, at: Array, values: Array, touched: Array, dtype: str) -> None:
        """As for sums. Where the large or the small factors, taken first, leave the dtype's range, nothing is said."""
        mine, size = _magnitude(v, 1.0), _magnitude(values.real, 1.0)
        top = _multiplied(np.maximum(mine + e, 1), at, np.maximum(size + values.imag, 1))
        low = _multiplied(_below_one(mine), at, _below_one(size))
        grown = _multiplied(mine + e, at, size + values.imag)
        e[...] = _reach(v, e, at, values, touched) + touched * (_UNIT[dtype] * grown + _FLUSH[dtype])
        np.multiply.at(v, at, values.real)
        e[(top > _LARGEST[dtype]) & (touched > 0) | (low < _FLUSH[dtype]) & (touched > 1)] = np.inf

    def replace(self, flat: Array, at: Array, condition: Array, values: Array) -> None:
        flat[at] = _select(condition, values, flat[at])


def _added(start: Array, at: Array, values: Array) -> Array:
    out = start.copy()
    np.add.at(out, at, values)
    return out


def _multiplied(start: Array, at: Array, values: Array) -> Array:
    out = start.copy()
    np.multiply.at(out, at, values)
    return out


def _magnitude(x: Array, otherwise: float) -> Array:
    return np.where(np.isfinite(x), abs(x), otherwise)


def _below_one(x: Array) -> Array:
    return np.where(x > 0, np.minimum(x, 1), 1)


def _reach(v: Array, e: Array, at: Array, values: Array, touched: Array) -> Array:
    """What the bounds of factors do to their product."""
    mine, size = _magnitude(v, 1.0), _magnitude(values.real, 1.0)
    return np.where(touched > 0, _multiplied(mine + e, at, size + values.imag) - _multiplied(mine, at, size), e)


def _whole(op: str, v: Array, at: Array, values: Array) -> Array:
    """Integers accumulated as integers: a product leaves what f64 can hold long before it wraps."""
    out = np.where(np.isfinite(v), v, 0).astype(np.int64)
    (np.add if op == "add" else np.multiply).at(out, at, np.where(np.isfinite(values), values, 0).astype(np.int64))
    return out


def _times(a: Array, da: Array, b: Array, db: Array) -> Array:
    """The error of a product of ``a`` within ``da`` and ``b`` within ``db``."""
    return np.where(db == 0, 0, abs(a) * db) + np.where(da == 0, 0, abs(b) * da) + np.where(da * db == 0, 0, da * db)


def _select(condition: Array, yes: Array, no: Array) -> Array:
    chosen: Array = np.where(condition.real != 0, yes, no)
    doubt = abs(yes.real - no.real) + yes.imag + no.imag
    return _pair(chosen.real, np.where(condition.imag > 0, np.where(yes == no, chosen.imag, doubt), chosen.imag))
