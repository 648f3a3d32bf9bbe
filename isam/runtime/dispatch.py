"""Of which variants every size of a range is made, and which rows each call takes.

A batch of ``m`` rows is carried out as calls of variants, each for so many rows as it was compiled for: those of which
the times add up to the least (a knapsack without limits). Where rows may be computed twice, the last call may begin
with rows that the one before computed, too. DietCode (MLSys 2022) dispatches to one variant by a decision tree; here a
table does, to several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from isam.diagnostics import InternalError

Array = np.ndarray[Any, Any]
LARGEST = 1 << 16  # rows in steps: those of the largest range


class Dispatch:
    """``times``: rows of each variant, and the seconds of a call; the least makes up every size that is asked for.
    ``step``: divides all of them. ``hi``: the most rows that are asked for, a multiple of it. ``twice``: rows may be
    computed twice. ``several``: seconds that it takes to call more than one variant, beside what they take."""

    def __init__(self, times: Mapping[int, float], step: int, hi: int, twice: bool = False, several: float = 0.0):
        self.times, self.step, self.hi = dict(sorted(times.items())), step, hi
        self.twice, self.several = twice, several

    def some(self, rows: Iterable[int]) -> Dispatch:
        """With these variants alone."""
        return Dispatch({p: self.times[p] for p in rows}, self.step, self.hi, self.twice, self.several)

    def of(self, rows: int) -> tuple[int, ...]:
        """The variants that make up so many rows, the largest first."""
        if not 0 <= rows <= self.hi or rows % self.step:
            raise InternalError(f"{rows} rows are asked for, of up to {self.hi} by {self.step}")
        if rows in self.times and self.times[rows] <= self.all[rows // self.step]:
            return (rows,)
        fits = [p for p in self.times if p <= rows]
        exact = self._tables[len(fits)]
        at = rows // self.step
        if self.twice:
            at += int(np.argmin(exact[at:]))  # as many or more, of variants that are no larger than the batch
        out: list[int] = []
        while at:
            best = min((p for p in fits if p // self.step <= at),
                       key=lambda p: (exact[at - p // self.step] + self.times[p], -p))  # fmt: skip
            out.append(best)
            at -= best // self.step
        return tuple(sorted(out, reverse=True))

    def spans(self, rows: int) -> tuple[tuple[int, int], ...]:
        """The rows of each call, begin and end: together all of them, and none outside. Raises ``InternalError`` if
        they were not."""
        parts, out, begin = self.of(rows), list[tuple[int, int]](), 0
        for part in parts:
            begin = min(begin, rows - part)
            out.append((begin, begin + part))
            begin += part
        if not covers(out, rows, self.twice):
            raise InternalError(f"{rows} rows are not made of {out}")
        return tuple(out)

    def seconds(self, rows: int) -> float:
        """What so many rows take."""
        return float(self.all[rows // self.step])

    def reaches(self, lo: int) -> bool:
        """Whether every size from ``lo`` on is made of these variants."""
        return bool(np.isfinite(self.all[-(-lo // self.step) :]).all())

    @cached_property
    def all(self) -> Array:
        """The least seconds, by rows in steps of ``step``."""
        out = np.zeros(self.hi // self.step + 1)
        ends = [*(p // self.step for p in self.times), len(out)]
        for n in range(1, len(ends)):
            table = self._tables[n]
            least = np.minimum.accumulate(table[::-1])[::-1] if self.twice else table
            out[ends[n - 1] : ends[n]] = least[ends[n - 1] : ends[n]] + self.several
        for rows, seconds in self.times.items():
            out[rows // self.step] = min(out[rows // self.step], seconds)
        out[1 : ends[0]] = inf
        return out

    @cached_property
    def _tables(self) -> list[Array]:
        """With the first ``n`` variants, for each ``n``: the least seconds for just so many rows, in steps; beyond the
        most as far as one variant goes, for what is computed twice."""
        beyond = max(self.times) // self.step if self.twice else 0
        table = np.full(self.hi // self.step + 1 + beyond, np.inf)
        table[0] = 0.0
        out = [table]
        for rows, seconds in self.times.items():
            out.append(_with(out[-1], rows // self.step, seconds))
        return out

    def to_json(self) -> dict[str, Any]:
        """As :meth:`from_json` reads it."""
        times = [[rows, seconds] for rows, seconds in self.times.items()]
        return {"step": self.step, "hi": self.hi, "twice": self.twice, "several": self.several, "times": times}

    @staticmethod
    def from_json(said: Any) -> Dispatch:
        """Raises ``ValueError`` where it is none: what is read may be anybody's."""
        step, hi, twice, several, times = (said[n] for n in ("step", "hi", "twice", "several", "times"))
        if not _whole(step, 1, 1 << 62) or not _whole(hi, step, LARGEST * step) or hi % step:
            raise ValueError(f"{hi} rows at most, in steps of {step}")
        if not isinstance(twice, bool) or not _seconds(several, 0.0):
            raise ValueError(f"twice is {twice!r}, several {several!r}")
        for rows, seconds in times:
            if not _whole(rows, step, hi) or rows % step or not _seconds(seconds, 5e-324):
                raise ValueError(f"{rows!r} rows in {seconds!r} s")
        if len(dict(times)) < len(times) or not times:
            raise ValueError("there are no variants, or two for as many rows")
        return Dispatch(dict(times), step, hi, twice, float(several))


def covers(spans: Iterable[tuple[int, int]], rows: int, twice: bool) -> bool:
    """Whether spans, in order, hold every row up to ``rows`` and none beyond; but for ``twice`` each of them once."""
    end = 0
    for begin, to in spans:
        if not 0 <= begin <= end < to <= rows or (begin < end and not twice):
            return False
        end = to
    return end == rows


def _whole(v: Any, least: int, most: int) -> bool:
    return type(v) is int and least <= v <= most


def _seconds(v: Any, least: float) -> bool:
    return type(v) in (int, float) and least <= v < inf


def _with(table: Array, rows: int, seconds: float) -> Array:
    """The least times when a variant of so many rows may be called any number of times besides."""
    turns = -(-len(table) // rows)
    padded = np.full(turns * rows, np.inf)
    padded[: len(table)] = table
    taken = np.arange(turns)[:, None] * seconds
    least = np.minimum.accumulate(padded.reshape(turns, rows) - taken, axis=0) + taken
    return least.reshape(-1)[: len(table)]
