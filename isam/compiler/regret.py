"""What is lost where a size is made of variants: beside code that is compiled for just that size, on this CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from isam.approach.choice import Approach
from isam.classes import dataclass
from isam.compiler.function import Function
from isam.compiler.watch import told
from isam.diagnostics import InternalError
from isam.ir.kernel import USUAL_TRIP, Kernel
from isam.runtime.cache import Cache
from isam.runtime.ranged import RangedFunction
from isam.system.graph import System

SECONDS = 0.3  # for each size


@dataclass(frozen=True, slots=True)
class Regret:
    """Of so many ``rows``: the variants that make them up, seconds of a call, the best, and of a call of code for just
    that size. ``left``: why they were not measured; '' where they were."""

    rows: int
    parts: tuple[int, ...]
    seconds: float = 0.0
    own: float = 0.0
    left: str = ""

    @property
    def ratio(self) -> float:
        return self.seconds / self.own if self.own else 0.0


def regrets(fn: RangedFunction, kernel: Kernel, system: System, sizes: Mapping[str, int], at: Sequence[int],
            approach: Approach | None = None, cache: Cache | None = None, seconds: float = SECONDS,
            **options: Any) -> Iterator[Regret]:  # fmt: skip
    """Of each of these numbers of rows, one after the other; both are called with the same arrays, constants bound, in
    turns, and what they compute is judged. ``fn`` and all else: as it was compiled. Raises ``InternalError`` where
    results are wrong."""
    from isam.tune.measure import run_beside

    for n, rows in enumerate(at):
        known, parts = {**sizes, fn.batch.size: rows}, fn.parts(rows)
        own = Function(kernel, system, known, approach, None, cache, **options).specialise({})
        sized = kernel.with_sizes({**kernel.usual(USUAL_TRIP), **known})
        found = run_beside([own, fn], sized, seconds, threads=options.get("threads", 1))
        if isinstance(found, str):
            yield Regret(rows, parts, left=found)
        else:
            mine, made = found.runs
            if wrong := mine.unfit or made.unfit:
                what = f"{kernel.name} with {rows} rows of {parts} computes something else"
                raise InternalError(f"{what}: {wrong}\n{kernel}")
            yield Regret(rows, parts, made.best, mine.best)
        told("sizes measured", n + 1, len(at))


def spread(lo: int, hi: int, step: int, count: int) -> list[int]:
    """Up to so many sizes of a range: the ends, and what lies between them, each about as many times the one before."""
    first = max(step, lo)
    ratio = (hi / first) ** (1 / max(1, count - 1))
    near = (round(first * ratio**n / step) * step for n in range(count))
    return sorted({min(max(m, first), hi) for m in near})
