"""Times of alternatives, taken in turns: a machine that slows down slows all of them down.

The clock is the CPU time of this process, all its threads together: on a machine that others use, time on the wall
counts their work too. On an idle one the two are the same for what runs on one thread; for the rest the clock has to be
that on the wall.
"""

from __future__ import annotations

import itertools
import statistics
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SAMPLE = 2e-4  # seconds: shorter calls are timed several at a time
LEAST = 3  # samples per round
PATIENCE, OUTDONE = 0.5, 10  # seconds of a call, and times as long as another takes, from which on it has no turns
PAUSE = 0.01  # seconds in which nothing should run
clock = time.process_time


@dataclass(frozen=True)
class Call:
    """A call as somebody would write it: timed without anything around it, which tiny ones would be lost in."""

    function: Callable[..., Any]
    given: tuple[Any, ...]
    named: dict[str, Any]

    def __call__(self) -> Any:
        return self.function(*self.given, **self.named)


@dataclass(slots=True)
class Times:
    """Seconds per call: the best and the median of each round."""

    best: list[float] = field(default_factory=list)
    median: list[float] = field(default_factory=list)

    @property
    def least(self) -> float:
        return min(self.best)

    @property
    def typical(self) -> float:
        return statistics.median(self.median)

    def per(self, times: int) -> Times:
        """Of one of so many in a call."""
        return Times([t / times for t in self.best], [t / times for t in self.median])


def alternate(
    calls: dict[str, Callable[[], Any]], rounds: int, seconds: float, clock: Callable[[], float] = clock
) -> dict[str, Times]:
    """Every call in each of ``rounds`` turns, ``seconds`` per turn, warm caches; the order turns round each time. One
    that takes very long, and many times as long as another, has no turns: what it took at first counts for each."""
    out = {name: Times() for name in calls}
    batch = {name: _batch(f, clock) for name, f in calls.items()}
    least = min((took for _, took in batch.values()), default=0.0)
    for r in range(rounds):
        for name, f in list(calls.items())[:: -1 if r % 2 else 1]:
            n, took = batch[name]
            samples = [took] if took > max(PATIENCE, OUTDONE * least) else _samples(f, n, seconds, clock)
            out[name].best.append(min(samples))
            out[name].median.append(statistics.median(samples))
    return out


def _written(f: Callable[[], Any], clock: Callable[[], float]) -> Callable[[int], float]:
    """Seconds that so many calls take, one statement each."""
    names: dict[str, Any] = {"f": f}
    text = ""
    if isinstance(f, Call):
        names = {"f": f.function} | {f"x{n}": x for n, x in enumerate(f.given)}
        names |= {f"y_{n}": y for n, y in f.named.items()}
        text = ", ".join([*(f"x{n}" for n in range(len(f.given))), *(f"{n}=y_{n}" for n in f.named)])
    inner: Any = timeit.Timer(f"f({text})", globals=names).inner  # type: ignore[attr-defined]
    return lambda times: inner(itertools.repeat(None, times), clock)


def _batch(f: Callable[[], Any], clock: Callable[[], float]) -> tuple[int, float]:
    """How many calls together take about ``SAMPLE`` at least, and what one of them takes: the quicker of two turns, so
    that one delay is not taken for the call's own time."""
    calls, n = _written(f, clock), 1
    while (took := min(calls(n), calls(n))) < SAMPLE / 2 and n < 1 << 20:
        n *= 2
    return n, took / n


def _samples(f: Callable[[], Any], batch: int, seconds: float, clock: Callable[[], float]) -> list[float]:
    calls = _written(f, clock)
    calls(1)
    out: list[float] = []
    end = time.perf_counter() + seconds
    while len(out) < LEAST or time.perf_counter() < end:
        out.append(calls(batch) / batch)
    return out


def at_rest(clock: Callable[[], float] = clock, wait: Callable[[float], object] = time.sleep) -> bool:
    """Whether nothing of this process runs while it waits. A thread that turns until there is work again would be in
    everybody's time. What is just being finished gets a second."""
    for _ in range(100):
        before = clock()
        wait(PAUSE)
        if clock() - before < PAUSE / 4:
            return True
    return False


def ratio(ours: Times, theirs: Times) -> tuple[float, float]:
    """How many times faster we are: by the best times, and the median of the rounds' ratios of medians."""
    each = [t / o for o, t in zip(ours.median, theirs.median, strict=True)]
    return theirs.least / ours.least, statistics.median(each)
