"""The exact oracle for equivalence: kernels evaluated modulo the prime 2^31 - 1 on random data, no tolerance.

If two kernels agree for a random seed, they compute the same polynomial in their inputs and in the values of the
functions applied, but for a chance below (degree / 2^31) per output element (Schwartz and Zippel). Any order of
summation gives the same answer.

Laws the model has, hence cannot tell apart:

* ``add sub mul neg`` and the literals form a commutative ring: associative, distributive, ``x - y = x + (-y)``. A float
  literal is its exact value, a fraction with a power of two below it: ``0.5 + 0.5 = 1``.
* ``max min`` and comparisons follow one total order of the residues, drawn from the seed: associative, commutative,
  idempotent, ``select(a < b, b, a) = max(a, b)``, ``abs(x) = max(x, -x)``, ``-inf`` least, ``inf`` greatest,
  ``-(-inf) = inf``. 0 and 1 lie anywhere in that order: ``max(x, 0)`` is no identity.
* Comparisons give 0 or 1; ``and or not`` are logical. ``copy`` is the identity.

Laws the model has not, on purpose: a kernel that needs one is told apart from the one it equals over the reals.

* Functions (exp, tanh, div, sqrt, pow, floor, ...) are seeded random maps of their arguments: ``exp(a + b)`` is not
  ``exp(a) * exp(b)``, ``a / b`` is not ``a * (1 / b)``, sigmoid knows nothing of tanh.
* The order knows nothing of the ring: ``max(a + c, b + c) != max(a, b) + c``.
* Casts are seeded random maps per pair of dtypes; what loses nothing (i8 to i32, bf16 to f32) keeps 0, 1 and -1.
  So a cast may not be moved over an operation. Equal casts of equal values are equal.
* Unlike things are never equal: ``x == 0`` is false for random ``x``, so what follows its truth is not judged.
* Machine numbers: no rounding, no overflow, no NaN; ``inf`` in a sum is a number like any other.

``laws`` adds some: ``"casts"`` (a cast that loses nothing is the identity), ``"division"`` (``a / b`` is ``a`` times
the inverse of ``b``).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from functools import lru_cache
from math import prod

import numpy as np

from isam.diagnostics import Diagnostic, IsamError
from isam.ir.kernel import Kernel
from isam.ir.points import Array, Memory, check_sizes, execute, sizes_of
from isam.ir.residues import PRIME, Residues, scramble

LAWS = frozenset({"casts", "division"})
KEPT = 1 << 12  # elements of arguments that are kept


def inputs(kernel: Kernel, sizes: Mapping[str, int], seed: int = 0) -> dict[str, Array]:
    """Random residues for every ``in``, ``const`` and ``inout``, depending on its name, its shape and the seed only."""
    out: dict[str, Array] = {}
    for b in kernel.arguments:
        if b.role != "out":
            a = _random(f"in {b.name}", seed, sizes_of(b, sizes))
            out[b.name] = np.asarray(a % 2) if b.dtype == "bool" else a
    return out


def run_modular(kernel: Kernel, inputs: Mapping[str, Array], sizes: Mapping[str, int], seed: int = 0,
                laws: frozenset[str] = frozenset()) -> dict[str, Array]:  # fmt: skip
    """Outputs and inouts as residues (int64 arrays) by name; ``inputs`` is not modified.

    Buffers given in ``inputs`` start with that content, whatever their role; others hold seeded rubbish.
    Raises ``IsamError``: a missing or misshaped array, a size without a value, an index out of range.
    """
    check_sizes(kernel, sizes)
    memory = Memory({}, {b.name: b.dtype for b in kernel.buffers})
    faults: list[Diagnostic] = []
    for b in kernel.buffers:
        shape = sizes_of(b, sizes)
        if b.name in inputs:
            a = np.array(inputs[b.name], dtype=np.int64, order="C")
            if a.shape != shape:
                faults.append(Diagnostic("I504", f"'{b.name}' has shape {a.shape}, but needs {shape}", b.loc))
            memory.arrays[b.name] = np.asarray(a % PRIME)  # a scalar would not be written in place
        elif b.role in ("out", "temp"):
            memory.arrays[b.name] = _random(f"unwritten {b.name}", seed, shape)
        else:
            faults.append(Diagnostic("I503", f"no array for '{b.name}'", b.loc))
    if faults:
        raise IsamError(faults)
    execute(kernel, memory, sizes, Residues(seed, laws))
    return {b.name: memory.arrays[b.name] for b in kernel.buffers if b.role in ("out", "inout")}


def evaluate(kernel: Kernel, sizes: Mapping[str, int], seed: int = 0,
             laws: frozenset[str] = frozenset()) -> dict[str, Array]:  # fmt: skip
    """:func:`run_modular` on :func:`inputs`."""
    return run_modular(kernel, inputs(kernel, sizes, seed), sizes, seed, laws)


def equal(first: Kernel, second: Kernel, sizes: Mapping[str, int], seed: int = 0,
          laws: frozenset[str] = frozenset()) -> bool:  # fmt: skip
    """Whether the kernels agree at these sizes: same arguments (by name, of as many elements: a caller gives memory,
    ADR 22), same outputs, element by element."""
    a, b = evaluate(first, sizes, seed, laws), evaluate(second, sizes, seed, laws)
    return a.keys() == b.keys() and all(np.array_equal(a[n].ravel(), b[n].ravel()) for n in a)


def _random(key: str, seed: int, shape: tuple[int, ...]) -> Array:
    count = prod(shape)
    return (_kept if count <= KEPT else _drawn)(key, seed, count).reshape(shape).copy()


def _drawn(key: str, seed: int, count: int) -> Array:
    start = np.uint64(zlib.crc32(key.encode()) << 32) + np.uint64(seed & 0xFFFFFFFF)
    base = scramble(np.asarray(start, np.uint64))
    with np.errstate(over="ignore"):
        mixed = scramble(base + np.arange(count, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15))
    return ((mixed >> np.uint64(1)) % np.uint64(PRIME)).astype(np.int64)


_kept = lru_cache(maxsize=256)(_drawn)  # a kernel and what becomes of it are evaluated on the same arguments
