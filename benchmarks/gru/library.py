"""A step of a GRU by the library's kernels called one by one: products at the best of their three tilings, element-wise
kernels at the better of their two grids, every kernel from main memory to main memory.

Two callers: products gate by gate, input products in every step; or the gates of a product side by side and the
input products of all steps at once before the first. The quicker counts. No price is put on a call itself, and the
last sum of a step is written straight to where the caller wants it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.casestudy.tilings import best
from isam.cost.timeline import timeline
from isam.system.graph import System

from .elementwise import ADD, BIAS, CAST, MUL, SIGMOID, SUB, TANH, Op, grids, written


@dataclass
class Kernels:
    """Seconds and bytes through main memory of the library's kernels, each worked out once."""

    system: System
    known: dict[tuple[str, int, int, int], tuple[float, int]] = field(default_factory=dict)

    def product(self, m: int, n: int, k: int) -> tuple[float, int]:
        key = ("product", m, n, k)
        if key not in self.known:
            _, _, t = best(m, n, k, self.system)
            self.known[key] = t.seconds, _traffic(t.edges)
        return self.known[key]

    def each(self, op: Op, m: int, n: int) -> tuple[float, int]:
        key = (op.name, m, n, 0)
        if key not in self.known:
            made = [timeline(written(op, g, self.system)) for g in grids(m, n)]
            t = min(made, key=lambda t: t.ticks)
            self.known[key] = t.seconds, _traffic(t.edges)
        return self.known[key]


def _traffic(edges: dict) -> int:
    return sum(w.bytes for (a, b), w in edges.items() if "hbm" in (a, b))


@dataclass(frozen=True, slots=True)
class Called:
    """What a caller's kernels take together: ``launches`` of them, in ``seconds``, with ``bytes`` through main memory,
    of which ``elementwise`` seconds were not in products."""

    caller: str
    launches: int
    seconds: float
    elementwise: float
    bytes: int


def callers(steps: int, b: int, h: int, kernels: Kernels) -> list[Called]:
    """Every caller, the quickest first."""
    out = []
    for apart in (True, False):
        gates, ahead = (3, False) if apart else (1, True)
        wide, rows = 3 * h // gates, steps * b if ahead else b
        inputs = [kernels.product(rows, wide, h)] * gates + [kernels.each(BIAS, rows, wide)] * gates
        each = [kernels.product(b, wide, h)] * gates + _cell(b, h, apart, kernels)
        calls = inputs * (1 if ahead else steps) + each * steps
        rest = sum(s for s, _ in _cell(b, h, apart, kernels)) * steps
        rest += kernels.each(BIAS, rows, wide)[0] * gates * (1 if ahead else steps)
        name = "gate by gate, inputs step by step" if apart else "gates side by side, inputs at once"
        out.append(Called(name, len(calls), sum(s for s, _ in calls), rest, sum(n for _, n in calls)))
    return sorted(out, key=lambda c: c.seconds)


def _cell(b: int, h: int, apart: bool, kernels: Kernels) -> list[tuple[float, int]]:
    """The element-wise kernels of a step but for the bias: cast, two gates, candidate, new state."""
    two = [(op, h) for op in (ADD, SIGMOID)] * 2 if apart else [(ADD, 2 * h), (SIGMOID, 2 * h)]
    one = [(op, h) for op in (CAST, MUL, ADD, TANH, SUB, MUL, ADD)]
    return [kernels.each(op, b, n) for op, n in (*two, *one)]
