"""The corpus: every kernel that tests and benchmarks share, with sizes and, where easy, an independent reference.

``CASES`` maps a case's name to a :class:`Case`; a kernel with compile-time constants is several cases
(``conv2d/stride=2``). Every kernel of ``surface.md`` is here. Sizes include 0, 1, primes and numbers larger than any
tile; ``case.small`` are those whose domains stay below 10,000 points.

>>> CASES["matmul"].load().name
'matmul'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from isam.ir.bounds import products
from isam.ir.dtype import DTYPES, numpy_dtype
from isam.ir.kernel import Kernel
from isam.ir.text import parse_file
from tests.corpus.references import REFERENCES

FOLDER = Path(__file__).parent
Reference = Callable[[dict[str, Any], dict[str, int], dict[str, int]], dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A kernel (by name), values of its compile-time constants, and sizes to try it at."""

    name: str
    kernel: str
    params: tuple[tuple[str, int], ...]
    sizes: tuple[dict[str, int], ...]
    reference: Reference | None

    def load(self) -> Kernel:
        return sources()[self.kernel].with_params(**dict(self.params))

    @property
    def small(self) -> tuple[dict[str, int], ...]:
        k = self.load()
        return tuple(s for s in self.sizes if points(k, s) <= 10_000)

    def expected(self, arrays: Mapping[str, Any], sizes: dict[str, int]) -> dict[str, Any] | None:
        """The outputs by the independent reference, or ``None`` where there is none."""
        if self.reference is None:
            return None
        with np.errstate(all="ignore"):
            return self.reference(dict(arrays), sizes, dict(self.load().params))


def multilinear_bounds(case: Case, arrays: Mapping[str, Any], sizes: dict[str, int], terms: int) -> dict[str, Any]:
    """Values in f64 with bounds, as ``isam.ir.bounds.enclose`` gives them, from the reference alone: for large sizes.

    For kernels that are sums of at most ``terms`` products of f32 inputs (bias and relu may follow): every order of
    summation lies within ``2 * (terms + 2)`` roundings of the sum of magnitudes.
    """
    wide = {n: np.asarray(a, np.float64) for n, a in arrays.items()}
    value = case.expected(wide, sizes)
    size = case.expected({n: abs(a) for n, a in wide.items()}, sizes)
    assert value is not None
    assert size is not None
    return {n: products(value[n], size[n], terms) for n in value}


def points(kernel: Kernel, sizes: Mapping[str, int]) -> int:
    """Points of the largest box of a statement, recurrent trips included."""
    most = max((prod(max(0, a.extent.evaluate(sizes)) for a in s.domain.axes) for s in kernel.statements), default=0)
    return most * max([1, *(sizes[t] for t in kernel.trips)])


@cache
def sources() -> dict[str, Kernel]:
    """Every kernel of the corpus and of ``surface.md`` by name."""
    found: dict[str, Kernel] = {}
    for path in [FOLDER.parent / "text" / "surface.isam", *sorted(FOLDER.glob("*.isam"))]:
        for k in parse_file(path.read_text(encoding="utf-8"), path.name).kernels:
            assert k.name not in found, k.name
            found[k.name] = k
    return found


def random_arrays(kernel: Kernel, sizes: Mapping[str, int], seed: int = 0, *, whole: bool = False) -> dict[str, Any]:
    """Random data for ``in``, ``const`` and ``inout``, never constant.

    ``whole``: small whole numbers in float buffers too, so that sums and products are exact in every dtype.
    """
    rng = np.random.default_rng(seed)
    out: dict[str, Any] = {}
    for b in kernel.arguments:
        if b.role == "out":
            continue
        shape = tuple(max(0, d.evaluate(sizes)) for d in b.shape)
        kind = DTYPES[b.dtype].kind
        if kind == "f" and not whole:
            a = rng.standard_normal(shape)
            a = abs(a) + 0.5 if b.name in ("var", "count") else a
        elif kind == "b":
            a = rng.integers(0, 2, shape)
        else:
            a = rng.integers(0 if kind == "u" else -4, 5, shape)
        out[b.name] = np.asarray(a).astype(numpy_dtype(b.dtype))
    return out


_MNK = ({"M": 4, "N": 5, "K": 3}, {"M": 1, "N": 1, "K": 1}, {"M": 0, "N": 3, "K": 2}, {"M": 3, "N": 2, "K": 0},
        {"M": 16, "N": 16, "K": 16}, {"M": 37, "N": 41, "K": 29})  # fmt: skip
_ROWS = ("conv1d", "transposed_conv1d")


def _images(kernel: Kernel) -> tuple[dict[str, int], ...]:
    """Sizes for anything with images in it: small odd ones, all ones, an empty axis, one with a longer row."""
    names = [s.name for s in kernel.syms]
    first = {"N": 2, "C": 3, "H": 5, "W": 4, "K": 4, "R": 3, "S": 2, "D": 3, "Q": 2, "G": 2}
    long = {"N": 1, "C": 5, "H": 3, "W": 23, "K": 7, "R": 2, "S": 3, "D": 2, "Q": 3, "G": 3}
    rows = [first, dict.fromkeys(names, 1), {**first, "C": 0}, {**first, "N": 0, "H": 0}, {**first, "W": 0}, long]
    if "R" not in names and "S" not in names:
        rows.append({**first, "C": 19, "K": 18, "H": 7, "W": 7})
    return tuple({n: row[n] for n in names} for row in rows)


def _sizes(kernel: Kernel) -> tuple[dict[str, int], ...]:
    names = [s.name for s in kernel.syms]
    if names == ["M", "N", "K"]:
        return _MNK
    if kernel.name in _ROWS or ("H" in names and not {"T", "B"} & set(names)):
        return _images(kernel)
    if "T" in names:
        rest = {"B": 2, "X": 5, "H": 3, "N": 7}
        rows = [{**rest, "T": t} for t in (4, 0, 1, 2, 7)] + [{"B": 1, "X": 17, "H": 19, "N": 33, "T": 3}]
        return tuple({n: row[n] for n in names} for row in rows)
    primes = dict(zip(names, (7, 5, 11, 3), strict=False))
    large = dict(zip(names, (23, 19, 37, 17), strict=False))
    if len(names) == 1:
        large = {names[0]: 67}
    rows = [primes, dict.fromkeys(names, 1), large, *({**primes, n: 0} for n in names)]
    return tuple(rows)


def _variants(kernel: Kernel) -> tuple[tuple[tuple[str, int], ...], ...]:
    names = [n for n, _ in kernel.params]
    if not names:
        return ((),)
    if kernel.name == "transposed_conv1d":
        return ((), (("stride", 3),))
    values = product((1, 2), repeat=len(names))
    return tuple(tuple((n, v) for n, v in zip(names, c, strict=True) if v != 1) for c in values)


def _cases() -> dict[str, Case]:
    out: dict[str, Case] = {}
    for name, k in sources().items():
        for params in _variants(k):
            label = "/".join([name, ",".join(f"{n}={v}" for n, v in params)]) if params else name
            out[label] = Case(label, name, params, _sizes(k), REFERENCES.get(name))
    return out


CASES = _cases()
SURFACE = ("matmul", "conv2d", "sepconv", "softmax", "rnn", "conv_same")
