"""Times of callables side by side: they take turns, so that a noisy machine is noisy for all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import inf
from statistics import median

from isam.classes import dataclass

Clock = Callable[[], float]
SAMPLE = 2e-3  # seconds: shorter calls are repeated within a sample


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds per call, one value per sample."""

    samples: tuple[float, ...]

    @property
    def best(self) -> float:
        return min(self.samples)

    @property
    def median(self) -> float:
        return median(self.samples)


def alternate(
    calls: Mapping[str, Callable[[], object]], seconds: float = 1.0, least: int = 5, clock: Clock = time.perf_counter,
    behind: float = inf, ahead: Mapping[str, Callable[[], object]] | None = None,
) -> dict[str, Times]:  # fmt: skip
    """Samples of every callable in turns, until ``seconds`` have passed and each has ``least`` samples. One whose
    quickest takes more than ``behind`` times as long as the quickest of all is left out from its ``least``-th on.
    ``ahead``: what is called before each sample, outside its time."""
    inner = {n: _inner(f, clock) for n, f in calls.items()}
    samples: dict[str, list[float]] = {n: [] for n in calls}
    going, end, turns = dict(calls), time.perf_counter() + seconds, 0
    while time.perf_counter() < end or turns < least:
        for n, f in going.items():
            if ahead:
                ahead[n]()
            samples[n].append(_sample(f, inner[n], clock))
        turns += 1
        if turns == least and behind < inf:
            most = behind * min(map(min, samples.values()))
            going = {n: f for n, f in going.items() if min(samples[n]) <= most}
    return {n: Times(tuple(s)) for n, s in samples.items()}


def repeated(call: Callable[[], object], count: int) -> Times:
    """``count`` calls, each timed on its own, after one that is not."""
    call()
    return Times(tuple(_sample(call, 1, time.perf_counter) for _ in range(count)))


def _inner(call: Callable[[], object], clock: Clock) -> int:
    call()
    once = _sample(call, 1, clock)
    return max(1, min(100_000, int(SAMPLE / max(once, 1e-9))))


def _sample(call: Callable[[], object], times: int, clock: Clock) -> float:
    start = clock()
    for _ in range(times):
        call()
    return (clock() - start) / times


def shown(seconds: float) -> str:
    """``1.34 ms`` and the like."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1 or unit == "us":
            return f"{seconds * factor:.3g} {unit}" if seconds * factor < 1000 else f"{seconds * factor:.0f} {unit}"
    return f"{seconds} s"
