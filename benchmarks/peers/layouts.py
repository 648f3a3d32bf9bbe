"""Matrices as BLAS and LAPACK have them: by columns, bands by diagonals; and what is computed in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..data import room
from .library import Array


def columns(a: Array) -> Array:
    """A copy of a matrix that lies by columns."""
    out = room(a.shape[::-1]).T
    out[...] = a
    return out


def copied(a: Array) -> Array:
    """A copy that lies as it does."""
    if a.flags.c_contiguous:
        out = room(a.shape)
        out[...] = a
        return out
    return columns(a)


def lower(a: Array) -> Array:
    """What is not above the diagonal, zeros there."""
    return copied(np.tril(a))


def band_of(diagonals: Array) -> Array:
    """Diagonals, the lowest first and each element beside its row, as ``gbmv`` has them: the highest first, each
    element beside its column, zeros where there is none."""
    n, side = diagonals.shape[1], len(diagonals) // 2
    out = np.zeros(diagonals.shape, np.float32)
    for d, row in enumerate(diagonals):
        away = d - side
        begin, end = max(0, -away), n - max(0, away)
        out[2 * side - d, begin + away : end + away] = row[begin:end]
    return out


def refilled(work: Array, source: Array, call: Callable[[], Any]) -> Callable[[], Any]:
    """What works in place, on a copy that is made anew before: both are timed, as our result is not our argument."""

    def run() -> Any:
        np.copyto(work, source)
        return call()

    return run
