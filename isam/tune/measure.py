"""Compiled kernels run beside each other: which is quickest on this CPU, and whether all compute the same.

Data is random, from a seed, in the kernel's own shapes, and begins with a cache line. Contenders take turns; then the
quickest and the first do once more by themselves, and those times count: the least of many is too good to be true.
There the first takes part twice: by how much those two differ is the noise of the measurement. What a kernel updates in
place is given to every sample anew, outside its time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Protocol

import numpy as np

from isam.classes import dataclass
from isam.ir.bounds import enclose, outside
from isam.ir.data import random_arrays
from isam.ir.dtype import DTYPES, numpy_dtype
from isam.ir.kernel import Kernel
from isam.runtime.aligned import copied, empty
from isam.tune.timing import Clock, Times, alternate

SECONDS = 1.0  # in all, where samples are no longer
LEAST = 5  # samples of each
BEHIND = 1.25  # times as long as the quickest: what is not run any further
POINTS = 1 << 24  # which the judge walks in about a second
BYTES = 1 << 29  # of arguments; about five times as much is needed
LONGEST = 20.0  # seconds for ``LEAST`` samples of everything
FIRST, TWICE = "0", "0 again"  # names of contenders, which are their numbers
FINAL = 2  # of the quickest are run once more

Arrays = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Run:
    """What came of one contender: seconds of a call, the best and the median, or why it takes no part. ``final``: it is
    the first, or one of the quickest, so that it was run once more, and these are the times of that."""

    best: float = 0.0
    median: float = 0.0
    unfit: str = ""
    final: bool = False


@dataclass(frozen=True, slots=True)
class Measurement:
    """``runs``, one per contender; ``noise``: by how much the best samples of the first and of itself differ."""

    runs: tuple[Run, ...]
    noise: float


class Contender(Protocol):
    """A compiled kernel: an ``Entry``, or what is made of several."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def bind(self, /, *placed: Any, **constants: Any) -> Any:
        """With constants fixed."""
        ...


def run_beside(entries: Sequence[Contender], kernel: Kernel, seconds: float = 0.0, seed: int = 0, threads: int = 1,
               inexact: Sequence[int] = ()) -> Measurement | str:  # fmt: skip
    """Contenders for one kernel, whose sizes are numbers, in turns for about so many seconds (``SECONDS``); a sentence
    on why that is not done where it would take too much. One that computes something else than it may is unfit;
    ``inexact``: which of them may be off by more than rounding. The clock is the time of the CPU, which others who use
    it do not lengthen, unless a call has several threads."""
    arguments = sum(prod(d.const for d in b.shape) * numpy_dtype(b.dtype).itemsize for b in kernel.arguments)
    if arguments > BYTES:
        return f"arguments of {arguments} bytes are more than {BYTES}"
    try:
        return _run_beside(entries, kernel, seconds or SECONDS, seed, threads, inexact)
    except MemoryError:
        return "there is not enough memory for it"


def _run_beside(entries: Sequence[Contender], kernel: Kernel, seconds: float, seed: int, threads: int,
                inexact: Sequence[int]) -> Measurement | str:  # fmt: skip
    clock = time.thread_time if threads == 1 else time.perf_counter
    arrays = {n: copied(a, a.dtype) for n, a in random_arrays(kernel, {}, seed).items()}
    results = {b.name: empty(tuple(d.const for d in b.shape), numpy_dtype(b.dtype))
               for b in kernel.arguments if b.role == "out"}  # fmt: skip
    updated = {b.name: copied(arrays[b.name], arrays[b.name].dtype) for b in kernel.arguments if b.role == "inout"}
    ready = [_Ready(e, kernel, arrays, updated, results) for e in entries]
    ready[0].call()
    begin = clock()
    ready[0].call()
    once = clock() - begin
    if once * (LEAST + 2) * (len(entries) + 1) > LONGEST:
        return f"one call takes {once:.3g} s"
    unfit = _unfit(ready, kernel, _whole(kernel, seed), inexact)
    fit = {str(n): r for n, r in enumerate(ready) if not unfit[n]}
    times = _turns(fit, seconds / 2, clock) if fit else {}
    last = {FIRST, *sorted(times, key=lambda n: times[n].best)[:FINAL]} & fit.keys()
    final = _turns({n: fit[n] for n in sorted(last)} | {TWICE: ready[0]}, seconds / 2, clock)
    noise = abs(final[FIRST].best / final[TWICE].best - 1) if FIRST in final else 0.0
    times |= final
    runs = [Run(unfit=why) if why else Run(times[str(n)].best, times[str(n)].median, final=str(n) in last)
            for n, why in enumerate(unfit)]  # fmt: skip
    return Measurement(tuple(runs), noise)


def _turns(ready: Mapping[str, _Ready], seconds: float, clock: Clock) -> dict[str, Times]:
    calls, ahead = {n: r.call for n, r in ready.items()}, {n: r.again for n, r in ready.items()}
    return alternate(calls, seconds, LEAST, clock, BEHIND, ahead)


class _Ready:
    """A contender with constants bound, and the arrays that all of them are called with: where results lie, beside
    what they are made of, may matter as much as the code."""

    def __init__(self, entry: Contender, kernel: Kernel, arrays: Arrays, updated: Arrays, out: Arrays):
        self.entry, self.given, self.updated, self.out = entry, arrays, updated, out
        constants = {b.name: arrays[b.name] for b in kernel.arguments if b.role == "const"}
        self.bound = entry.bind(**constants) if constants else entry
        rest = {n: a for n, a in {**arrays, **updated}.items() if n not in constants}
        self.order = [rest[b.name] for b in kernel.arguments if b.name in rest]

    def again(self) -> None:
        """What is updated in place, as it was given."""
        for n, a in self.updated.items():
            a[...] = self.given[n]

    def call(self) -> None:
        self.bound(*self.order, **self.out)

    def results(self, arrays: Arrays) -> Arrays:
        """Those of a call on other data, constants among them."""
        updated = {n: arrays[n].copy() for n in self.updated}
        out = {n: np.zeros_like(a) for n, a in self.out.items()}
        self.entry(**{**arrays, **updated}, **out)
        return out | updated


def _whole(kernel: Kernel, seed: int) -> Arrays:
    """Random whole numbers: sums of their products are the same in every order, as long as they are not large."""
    rng = np.random.default_rng(seed)
    drawn = random_arrays(kernel, {}, seed)
    return {n: rng.integers(-3, 4, a.shape).astype(a.dtype) if DTYPES[kernel.buffer(n).dtype].kind == "f" else a
            for n, a in drawn.items()}  # fmt: skip


def _unfit(ready: Sequence[_Ready], kernel: Kernel, arrays: Arrays, inexact: Sequence[int]) -> list[str]:
    """Per contender why its results may not be taken: '' where they are within the bounds of the exact ones, or, where
    those take too long to find, the same as those of the first exact one; of an inexact one nothing is known then but
    that it was proved."""
    from isam.ir.signature import points_of

    count = points_of(kernel) or 0
    if count <= POINTS:
        enclosed = enclose(kernel, arrays)
        return [outside(r.results(arrays), enclosed) or "" for r in ready]
    exact = [n for n in range(len(ready)) if n not in inexact]
    why = f"on whole numbers its results are not those of the first, and {count} points are too many to judge it"
    wanted = ready[exact[0]].results(arrays) if len(exact) > 1 else {}
    return [why if n in exact[1:] and not _same(r.results(arrays), wanted) else "" for n, r in enumerate(ready)]


def _same(a: Arrays, b: Arrays) -> bool:
    return all(np.array_equal(a[n], b[n], equal_nan=a[n].dtype.kind not in "iub") for n in a)
