"""Elimination, triangles, bands, sums, paths, counts: arguments in which they are well conditioned, what must come out.

A bound on a whole elimination would be worth nothing: it grows with every step. So each element of a result is judged
from the others of the same result that it is made of, as the backward error of these methods is derived: that holds in
whatever order, and in whatever blocks, they were computed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from isam.ir.bounds import products

from .near import Array, Near, rounded

Given = dict[str, Array]
DIVIDED = 2.0  # roundings of a division: by a number, or with one over it


def fitting(kernel: str, given: Given) -> Given:
    """Random arguments made such that nothing needs rows to change places, and nothing grows."""
    made = FITTING.get(kernel)
    return given | {n: a.astype(np.float32) for n, a in made(given).items()} if made else given


def _dominant(given: Given) -> Given:
    """Of each column the diagonal is larger than all the rest: libraries that look for a pivot find it there."""
    a = given["A"].copy()
    np.fill_diagonal(a, abs(a).sum(0) + 1)
    return {"A": a}


def _definite(given: Given) -> Given:
    a = given["A"].astype(np.float64)
    made = a @ a.T / len(a) + np.eye(len(a))
    return {"A": (made + made.T) / 2}


def _triangle(given: Given) -> Given:
    factor = given["L"] * len(given["L"]) ** -0.5
    np.fill_diagonal(factor, 1 + abs(np.diag(given["L"])))
    return {"L": factor}


def _counted(given: Given) -> Given:
    bins = len(given["b"])
    return {"X": np.floor(abs(given["X"]) * 1e4) % bins, "b": np.arange(bins)}


FITTING: dict[str, Callable[[Given], Given]] = {
    "lu": _dominant, "cholesky": _definite, "substitution": _triangle, "substitutions": _triangle,
    "histogram": _counted,
}  # fmt: skip


def lu(given: Given, y: Array, ulp: float) -> Near:
    n = len(y)
    left, right = np.tril(y, -1), np.triu(y, 1)
    rest = _rest(given["A"], left, right, np.minimum.outer(np.arange(n), np.arange(n)))
    below = _over(rest, np.diag(y)[None], DIVIDED)
    lower = np.tri(n, k=-1, dtype=bool)
    return Near(np.where(lower, below.value, rest.value), np.where(lower, below.bound, rest.bound))


def cholesky(given: Given, y: Array, ulp: float) -> Near:
    """Of a factor above the diagonal; below it is what was given. One over a root may be off by ``ulp``, here of the
    diagonal and there of the other elements."""
    n = len(y)
    above = np.triu(y, 1)
    rest = _rest(given["A"], above.T, above, np.minimum.outer(np.arange(n), np.arange(n)))
    root = rest.through(lambda x: np.sqrt(x.clip(0)), ulp)
    root = rounded(root.value, root.bound, DIVIDED)
    other = _over(rest, np.diag(y)[:, None], 4 * ulp + DIVIDED)
    lower, diagonal = np.tri(n, k=-1, dtype=bool), np.eye(n, dtype=bool)
    return Near(np.select([lower, diagonal], [given["A"], root.value], other.value),
                np.select([lower, diagonal], [np.zeros((n, n)), root.bound], other.bound))  # fmt: skip


def substitution(given: Given, y: Array, ulp: float) -> Near:
    factor, found = given["L"].astype(np.float64), y.reshape(len(y), -1)
    b = given["b"].reshape(found.shape)
    rest = _rest(b, np.tril(factor, -1), found, np.arange(len(y))[:, None])
    made = _over(rest, np.diag(factor)[:, None], DIVIDED)
    return Near(made.value.reshape(y.shape), made.bound.reshape(y.shape))


def trmm(given: Given, y: Array, ulp: float) -> Near:
    return _product(np.tril(given["L"]), given["B"], np.arange(1, len(y) + 1)[:, None])


def syrk(given: Given, y: Array, ulp: float) -> Near:
    made = _product(given["A"], given["A"].T, np.full(y.shape, given["A"].shape[1]))
    return Near(np.tril(made.value), np.tril(made.bound))


def band(given: Given, y: Array, ulp: float) -> Near:
    parts = given["D"] * windows(given["D"], given["x"])
    return Near(*products(parts.sum(0), abs(parts).sum(0), len(parts)))


def windows(diagonals: Array, x: Array) -> Array:
    """What of a vector, zeros around it, is multiplied with each element of the diagonals: a view, in f64."""
    side = len(diagonals) // 2
    return np.lib.stride_tricks.sliding_window_view(np.pad(x.astype(np.float64), side), len(x))


def prefix_sum(given: Given, y: Array, ulp: float) -> Near:
    x = given["X"].astype(np.float64)
    return Near(*_sums(x.cumsum(), abs(x).cumsum(), np.arange(1, len(x) + 1)))


def viterbi(given: Given, y: Array, ulp: float) -> Near:
    """One order of roundings: sums of two numbers, and the largest of them."""
    best = given["g"]
    for step in given["X"]:
        best = (best[:, None] + given["A"]).max(0) + step
    return Near.exactly(best)


def histogram(given: Given, y: Array, ulp: float) -> Near:
    return Near.exactly(np.bincount(given["X"].astype(np.int64), minlength=len(given["b"])))


RIGHT: dict[str, Callable[[Given, Array, float], Near]] = {
    "lu": lu, "cholesky": cholesky, "substitution": substitution, "substitutions": substitution, "trmm": trmm,
    "syrk": syrk, "band": band, "prefix_sum": prefix_sum, "viterbi": viterbi,
    "histogram": histogram,
}  # fmt: skip


class Algebra:
    """What each element of a result must be, from others of it where it is made of them."""

    def __init__(self, kernel: str, given: Given, ulp: float):
        self.kernel, self.given, self.ulp = kernel, given, ulp

    def of(self, y: Array) -> Near:
        made = RIGHT[self.kernel](self.given, y.astype(np.float64), self.ulp)
        return Near(made.value, np.broadcast_to(made.bound, made.value.shape))


def _rest(a: Array, left: Array, right: Array, terms: Array) -> Near:
    """What is left of ``a`` when a product is taken off, of so many terms each."""
    a = a.astype(np.float64)
    return Near(*_sums(a - left @ right, abs(a) + abs(left) @ abs(right), terms + 1))


def _product(left: Array, right: Array, terms: Array) -> Near:
    left, right = left.astype(np.float64), right.astype(np.float64)
    return Near(*_sums(left @ right, abs(left) @ abs(right), terms))


def _sums(value: Array, magnitude: Array, terms: Array) -> tuple[Array, Array]:
    """As of ``products``, of each element's own number of terms."""
    _, one = products(value, magnitude, 1)
    _, two = products(value, magnitude, 2)
    return value, one + (terms - 1) * (two - one)


def _over(a: Near, by: Array, units: float) -> Near:
    """Divided by what is taken as it was computed."""
    return rounded(a.value / by, a.bound / abs(by), units)
