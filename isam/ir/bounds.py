"""How far a legal compilation may be from the exact result, element by element: no tolerance chosen by hand.

Running error analysis over the same walk as the interpreter: every number is a value in f64 and a bound on what
rounding may have done to it, so a float test needs no tuned tolerance::

    enclosed = enclose(kernel, arrays, sizes)
    fault = outside(compiled(**arrays), enclosed)      # None, or a sentence with the worst element

The bound covers every order of summation, fused multiply-adds, and functions good to ``ulp`` units in the last place.
It does not cover what only ``finite`` permits. Where a bound is infinite (a division by something that may be 0, an
overflow of the dtype, an integer that a rounding may have pushed over an edge) every result is accepted. Infinities and
NaN that the exact result has whatever the order are demanded.

Integers are compared exactly: those of 64 bits are kept as such, f64 holds all others. Any of them wraps.

Decided here: subnormal results may be flushed to zero, and operands where the kernel permits ``flush``; sums are
allowed twice their textbook bound, because a blocked sum adds its partial results once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import numpy as np

from isam.ir.arithmetic import Numbers, convert
from isam.ir.dtype import DTYPES, numpy_dtype
from isam.ir.interp import checked, dtypes_of
from isam.ir.kernel import Kernel
from isam.ir.points import Array, Memory, execute, sizes_of

SPARSE = 4  # elements of an array per one touched, beyond which only those touched are looked at
Enclosed = dict[str, tuple[Array, Array]]
_KEPT = 2.0**-53  # what keeping a value in f64 may do to it
_UNIT = {d: u + _KEPT for d, u in {"f64": 2.0**-53, "f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}.items()}
_FLUSH = {"f64": 2.0**-1021, "f32": 2.0**-125, "f16": 2.0**-13, "bf16": 2.0**-125}
_LARGEST = {"f64": 1.797e308, "f32": 3.4028e38, "f16": 65504.0, "bf16": 3.3895e38}


def enclose(
    kernel: Kernel, arrays: Mapping[str, Array], sizes: Mapping[str, int] | None = None, ulp: float = 4.0
) -> Enclosed:
    """For every ``out`` and ``inout``: values (f64, of i64 themselves) and bounds (f64, same shape). Raises as
    ``interp.run`` does. Cost: about five times the interpreter's.
    """
    sizes = checked(kernel, arrays, sizes)
    memory = Memory({}, dtypes_of(kernel, arrays))
    for b in kernel.buffers:
        if b.name in arrays:
            memory.arrays[b.name] = _given(np.array(arrays[b.name]), memory.dtypes[b.name], "flush" in kernel.permits)
        else:
            memory.arrays[b.name] = _nothing(sizes_of(b, sizes), memory.dtypes[b.name])
    with np.errstate(all="ignore"):
        execute(kernel, memory, sizes, Rounding(ulp))
    return {b.name: _split(memory.arrays[b.name], memory.dtypes[b.name])
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
        made = np.asarray(got[name])
        a = made.astype(value.dtype)
        if a.shape != value.shape:
            return f"{name} has shape {a.shape}, expected {value.shape}"
        with np.errstate(all="ignore"):
            apart = _apart(a, value)
            fine = (apart <= bound) | (a == value) | ~np.isfinite(bound) | (np.isnan(a) & np.isnan(value))
            if not fine.all():
                excess = np.where(fine, -1, np.nan_to_num(apart / np.maximum(bound, 5e-324), nan=np.inf))
                at = np.unravel_index(int(np.argmax(excess)), a.shape)
                where = ", ".join(map(str, at))
                near = f" within {bound[at]:.3g}" if bound[at] or made.dtype.kind not in "iub" else ""
                return (f"{name}[{where}] is {_said(a[at], made)}, expected {_said(value[at], made)}{near}; "
                        f"{int((~fine).sum())} of {a.size} elements are outside")  # fmt: skip
    return None


def _said(x: Array, made: Array) -> str:
    """An element as one of ``made``: integers without a fraction."""
    return repr(int(x) if made.dtype.kind in "iub" and np.isfinite(x) else float(x))


def _given(a: Array, dtype: str, flush: bool) -> Array:
    """An argument: exact, but for subnormal numbers that may count as zero."""
    with np.errstate(all="ignore"):
        value = a.astype(_kept(dtype))
    small = abs(value) < _FLUSH[dtype] if flush and dtype in _FLUSH else np.zeros(a.shape, bool)
    return _pair(value, np.where(small, abs(value), 0.0))


def _nothing(shape: tuple[int, ...], dtype: str) -> Array:
    """What nobody has written: no number, or any where there is only such."""
    if _kept(dtype) == np.int64:
        return _pair(np.zeros(shape, np.int64), np.full(shape, np.inf))
    return np.full(shape, np.nan + 0j)


def _kept(dtype: str) -> np.dtype:
    """As what values of a dtype are kept: f64 does not hold every integer of 64 bits."""
    return np.dtype(np.int64 if dtype == "i64" else np.float64)


def _pair(value: Array, bound: Array) -> Array:
    """Packed as a complex number, whose real part holds a value of f64 or the bits of an i64; what is not a number is
    unbounded unless the value is exactly that."""
    out = np.empty(np.broadcast_shapes(np.shape(value), np.shape(bound)), np.complex128)
    out.real.view(_kept("i64" if value.dtype == np.int64 else "f64"))[...] = value
    out.imag = np.where(np.isnan(bound), np.inf, bound)
    return out


def _split(a: Array, dtype: str) -> tuple[Array, Array]:
    """Value and bound of what :func:`_pair` packed: views."""
    return a.real.view(_kept(dtype)), a.imag


def _apart(a: Array, b: Array) -> Array:
    """How far values are from each other, in f64."""
    if a.dtype != np.int64:
        return abs(a - b)
    return np.where(a > b, a - b, b - a).view(np.uint64).astype(np.float64)


def _edged(value: Array, bound: Array, dtype: str) -> Array:
    """An integer: where its bound reaches over an edge of the dtype it may have wrapped, to any value."""
    if not bound.any() or DTYPES[dtype].kind == "b":
        return _pair(value, bound)
    limits = np.iinfo(numpy_dtype(dtype))
    room = np.minimum(*(_apart(value, np.full_like(value, end)) for end in (limits.min, limits.max)))
    room = np.where(room < 2.0**53, room, room * (1 - 2 * _KEPT))
    return _pair(value, np.where((bound > 0) & ~(bound <= room), np.inf, bound))


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
        return _pair(self.exact.literal(value, dtype).astype(_kept(dtype)), np.zeros(()))

    def apply(self, op: str, args: tuple[Array, ...], source: str, target: str) -> Array:
        if op == "copy":
            return args[0]
        if op == "select":
            return _select(args[0], args[1], args[2], source)
        kind = DTYPES[source].kind
        v, e = tuple(zip(*(_split(a, source) for a in args), strict=True))
        if op in ("neg", "abs") and kind == "f":
            return _pair(-v[0] if op == "neg" else abs(v[0]), e[0])
        if op in ("lt", "le", "gt", "ge", "eq", "ne"):
            made = self.exact.apply(op, v, source, "bool").astype(np.float64)
            return _pair(made, np.where(_apart(v[0], v[1]) <= e[0] + e[1], (e[0] + e[1] > 0) * 1.0, 0.0))
        if op in ("and", "or", "not") and kind == "b":
            made = self.exact.apply(op, tuple(x != 0 for x in v), "bool", "bool").astype(np.float64)
            return _pair(made, np.maximum(e[0], e[-1]))
        if op in ("cast", "cast_sat") and target == "bool":
            return self.apply("ne", (args[0], self.literal(0, source)), source, "bool")
        if op in ("cast", "cast_sat"):
            return self._cast(op, v[0], e[0], source, target)
        return self._float(op, v, e, target) if kind == "f" else self._integer(op, v, e, target)

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

    def _integer(self, op: str, v: tuple[Array, ...], e: tuple[Array, ...], dtype: str) -> Array:
        """On exact operands exact; what wraps shifts as far as what does not."""
        made = self._exactly(op, v, dtype, dtype)
        if not any(x.any() for x in e):
            return _pair(made, np.zeros(np.shape(made)))
        if op in ("add", "sub"):
            bound = e[0] + e[1]
        elif op == "mul":
            bound = _times(v[0].astype(np.float64), e[0], v[1].astype(np.float64), e[1]) * (1 + 4 * _KEPT)
        elif op in ("pow", "and", "or", "not"):
            bound = np.where(sum(e) == 0, 0, np.inf)
        else:
            bound = self._spread(op, v, e, dtype, dtype, made)
        return _edged(made, bound, dtype)

    def _cast(self, op: str, v: Array, e: Array, source: str, target: str) -> Array:
        made = self._exactly(op, (v,), source, target)
        if DTYPES[target].kind == "f":
            return self._to_float(op, v, e, made, source, target)
        if source == "bool":
            return _pair(made, e)
        if op == "cast" and DTYPES[source].kind != "f":
            return _edged(made, e, target)
        bound = self._spread(op, (v,), (e,), source, target, made)
        if op == "cast" and bound.any():
            ends = [(v + s * e,) for s in (-1, 1)]
            held = [self._exactly("cast", x, source, target) == self._exactly("cast_sat", x, source, target)
                    for x in ends]  # fmt: skip
            bound = np.where((e > 0) & ~(held[0] & held[1]), np.inf, bound)
        return _pair(made, bound)

    def _to_float(self, op: str, v: Array, e: Array, made: Array, source: str, target: str) -> Array:
        """An exact integer that the target holds stays what it is."""
        if DTYPES[source].kind == "f":
            units = 0.0 if op != "cast" or _UNIT[target] <= _UNIT[source] else 1.0
            return _finish(made, self._spread(op, (v,), (e,), source, target, made), target, units)
        held = (e == 0) & (convert(v, target).astype(np.float64) == made)
        return np.where(held, _pair(made, e), _finish(made, e, target))

    def _exactly(self, op: str, v: tuple[Array, ...], source: str, target: str) -> Array:
        kept = numpy_dtype(source)
        args = tuple(x.astype(kept) if DTYPES[source].kind != "f" else x for x in v)
        if op in ("cast", "cast_sat") and DTYPES[target].kind == "f":
            return np.asarray(args[0]).astype(np.float64)
        return self.exact.apply(op, args, source, target).astype(_kept(target))

    def _spread(
        self, op: str, v: tuple[Array, ...], e: tuple[Array, ...], source: str, target: str, made: Array
    ) -> Array:
        """The furthest that the result moves when the operands go to the corners of their bounds."""
        if not any(x.any() for x in e):
            return np.zeros(np.shape(made))
        unbounded = np.isinf(sum(e))
        moves = tuple(np.where(np.isinf(d), 0, d).astype(x.dtype) if x.dtype == np.int64 else d
                      for x, d in zip(v, e, strict=True))  # fmt: skip
        corners = [tuple(x + s * d for x, s, d in zip(v, signs, moves, strict=True))
                   for signs in product((-1, 1), repeat=len(v))]  # fmt: skip
        reach = [_apart(self._exactly(op, c, source, target), made) for c in corners]
        bound = np.maximum.reduce(np.broadcast_arrays(*reach))
        unknown = np.isnan(bound) | unbounded  # what may be anything may be NaN
        return np.where(sum(e) == 0, 0, np.where(unknown, np.inf, bound))

    def accumulate(self, op: str, flat: Array, at: Array, values: Array, dtype: str) -> None:
        if flat.size <= SPARSE * at.size:
            self._accumulate(op, flat, at, values, dtype)
            return
        mine, at = np.unique(at, return_inverse=True)  # a step of a loop costs what it touches
        part = flat[mine]
        self._accumulate(op, part, at, values, dtype)
        flat[mine] = part

    def _accumulate(self, op: str, flat: Array, at: Array, values: Array, dtype: str) -> None:
        touched = np.zeros(flat.shape, np.float64)
        np.add.at(touched, at, 1.0)
        (v, e), (terms, doubt) = _split(flat, dtype), _split(values, dtype)
        if op in ("max", "min"):
            (np.maximum if op == "max" else np.minimum).at(v, at, terms)
            np.maximum.at(e, at, doubt)
            return
        if DTYPES[dtype].kind != "f":
            bound = _added(e, at, doubt) if op == "add" else _grown(v, e, at, terms, doubt, touched)
            flat[...] = np.where(touched > 0, _edged(_whole(op, v, at, terms, dtype), bound, dtype), flat)
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
        e[...] = _reach(v, e, at, values.real, values.imag, touched) + touched * (_UNIT[dtype] * grown + _FLUSH[dtype])
        np.multiply.at(v, at, values.real)
        e[(top > _LARGEST[dtype]) & (touched > 0) | (low < _FLUSH[dtype]) & (touched > 1)] = np.inf

    def replace(self, flat: Array, at: Array, condition: Array, values: Array, dtype: str) -> None:
        flat[at] = _select(condition, values, flat[at], dtype)


def _added(start: Array, at: Array, values: Array) -> Array:
    out = start.copy()
    np.add.at(out, at, values)
    return out


def _multiplied(start: Array, at: Array, values: Array) -> Array:
    out = start.copy()
    np.multiply.at(out, at, values)
    return out


def _magnitude(x: Array, otherwise: float) -> Array:
    return np.where(np.isfinite(x), abs(x.astype(np.float64)), otherwise)


def _below_one(x: Array) -> Array:
    return np.where(x > 0, np.minimum(x, 1), 1)


def _reach(v: Array, e: Array, at: Array, factors: Array, doubt: Array, touched: Array) -> Array:
    """What the bounds of factors do to their product."""
    mine, size = _magnitude(v, 1.0), _magnitude(factors, 1.0)
    return np.where(touched > 0, _multiplied(mine + e, at, size + doubt) - _multiplied(mine, at, size), e)


def _grown(v: Array, e: Array, at: Array, factors: Array, doubt: Array, touched: Array) -> Array:
    """As :func:`_reach`, of integers: of exact ones nothing, and of others also what f64 does to magnitudes."""
    kept = 2 * (touched + 1) * _KEPT * _multiplied(_magnitude(v, 1.0) + e, at, _magnitude(factors, 1.0) + doubt)
    reach = _reach(v, e, at, factors, doubt, touched) + kept
    return np.where(_added(e, at, doubt) > 0, np.where(np.isnan(reach), np.inf, reach), 0)


def _whole(op: str, v: Array, at: Array, values: Array, dtype: str) -> Array:
    """Integers accumulated as integers: a product leaves what f64 can hold long before it wraps."""
    out = np.where(np.isfinite(v), v, 0).astype(np.int64)
    (np.add if op == "add" else np.multiply).at(out, at, np.where(np.isfinite(values), values, 0).astype(np.int64))
    return convert(out, dtype).astype(_kept(dtype))


def _times(a: Array, da: Array, b: Array, db: Array) -> Array:
    """The error of a product of ``a`` within ``da`` and ``b`` within ``db``."""
    return np.where(db == 0, 0, abs(a) * db) + np.where(da == 0, 0, abs(b) * da) + np.where(da * db == 0, 0, da * db)


def _select(condition: Array, yes: Array, no: Array, dtype: str) -> Array:
    holds, unsure = _split(condition, "bool")
    (a, da), (b, db) = _split(yes, dtype), _split(no, dtype)
    chosen: Array = np.where(holds != 0, yes, no)
    doubt = np.where((a == b) & (da == db), chosen.imag, _apart(a, b) + da + db)
    chosen.imag = np.where(unsure > 0, np.where(np.isnan(doubt), np.inf, doubt), chosen.imag)
    return chosen
