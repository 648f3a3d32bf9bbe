"""Which sizes of a batch are compiled so that every size of a range is made of them, and of which ones it is.

A batch of ``m`` rows is carried out as calls of variants, each for so many rows as it was compiled for: those of which
the times add up to the least (a knapsack without limits). Where rows may be computed twice, the last call may begin
with rows that the one before computed, too. Variants are chosen one after the other, each time that which lowers the
mean regret most: the time over that with every variant there might be. The idea of variants that shapes share is
DietCode's (MLSys 2022), where a decision tree dispatches to one of them; here a table does, to several.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from isam.diagnostics import InternalError

WORTH = 1.002  # times less regret than before, in the mean: what another variant has to give
Array = np.ndarray[Any, Any]


class Parts:
    """``times``: rows of each variant, and the seconds of a call; the least makes up every size that is asked for.
    ``step``: divides all of them. ``hi``: the most rows that are asked for, a multiple of it. ``twice``: rows may be
    computed twice. ``several``: seconds that it takes to call more than one variant, beside what they take."""

    def __init__(self, times: Mapping[int, float], step: int, hi: int, twice: bool = False, several: float = 0.0):
        self.times, self.step, self.hi = dict(sorted(times.items())), step, hi
        self.twice, self.several = twice, several

    def some(self, rows: Iterable[int]) -> Parts:
        """With these variants alone."""
        return Parts({p: self.times[p] for p in rows}, self.step, self.hi, self.twice, self.several)

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


def covers(spans: Iterable[tuple[int, int]], rows: int, twice: bool) -> bool:
    """Whether spans, in order, hold every row up to ``rows`` and none beyond; but for ``twice`` each of them once."""
    end = 0
    for begin, to in spans:
        if not 0 <= begin <= end < to <= rows or (begin < end and not twice):
            return False
        end = to
    return end == rows


def _with(table: Array, rows: int, seconds: float) -> Array:
    """The least times when a variant of so many rows may be called any number of times besides."""
    turns = -(-len(table) // rows)
    padded = np.full(turns * rows, np.inf)
    padded[: len(table)] = table
    taken = np.arange(turns)[:, None] * seconds
    least = np.minimum.accumulate(padded.reshape(turns, rows) - taken, axis=0) + taken
    return least.reshape(-1)[: len(table)]


def chosen(all_: Parts, weights: Mapping[int, float], most: int) -> Parts:
    """Some of these variants, at most so many, the least among them. ``weights``: how often each size of the range is
    met."""
    rows = np.array([m // all_.step for m in weights])
    weighed = np.array(list(weights.values())) / np.maximum(all_.all[rows], 1e-12)

    def regret(taken: Iterable[int]) -> float:
        return float(all_.some(taken).all[rows] @ weighed)

    taken = [min(all_.times)]
    least = regret(taken)
    while len(taken) < most:
        others = [(regret([*taken, p]), p) for p in all_.times if p not in taken]
        if not others or min(others)[0] * WORTH > least:
            break
        least, best = min(others)
        taken.append(best)
    return all_.some(taken)


def candidates(least: int, hi: int, step: int, likely: Iterable[int]) -> list[int]:
    """Sizes of which variants may be made: powers of two and half as much again, the ends, and what is likely."""
    out = {least, hi, *likely}
    n = 1
    while n * step <= hi:
        out |= {n * step, 3 * n * step}
        n *= 2
    return sorted(n for n in out if least <= n <= hi)
