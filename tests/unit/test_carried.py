"""State that goes through rows of a buffer from step to step is a temporary where that takes less time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import isam
from isam.cost.chained import chained
from isam.ir.text import parse_kernel
from isam.schedule.tree import Schedule
from tests.pipeline import compiled, judge, simulated

FILTER = """kernel filtered(T, C)
  in  x: f32[T, C]
  in  k: f32[2]
  out y: f32[T + 1, C]
  forall c < C
    y[0, c] = 0
  loop t < T
    forall c < C
      y[t + 1, c] = k[0] * x[t, c] + k[1] * y[t, c]
"""
TWO_BACK = """kernel two_back(T)
  in  x: i32[T]
  out y: i32[T + 2]
  y[0] = 1
  y[1] = 2
  loop t < T
    y[t + 2] = y[t + 1] - y[t] * x[t]
"""
DISTANCE = """kernel distance(M, N)
  in    x: i32[M]
  in    z: i32[N]
  inout d: i32[M + 1, N + 1]
  loop i < M
    loop j < N
      d[i + 1, j + 1] = min(min(d[i, j + 1], d[i + 1, j]) + 1, d[i, j] + select(x[i] == z[j], 0, 1))
"""
BYTES = """kernel bytes(T, C)
  in    x: i8[T, C]
  inout y: i8[T + 1, C]
  loop t < T
    forall c < C
      y[t + 1, c] += y[t, c] + x[t, c]
"""
ALL = {
    "filter": (FILTER, {"T": 9, "C": 17}), "filter of one": (FILTER, {"T": 5, "C": 1}),
    "no steps": (FILTER, {"T": 0, "C": 3}), "two back": (TWO_BACK, {"T": 9}),
    "two back, once": (TWO_BACK, {"T": 1}), "distance": (DISTANCE, {"M": 4, "N": 7}),
    "bytes": (BYTES, {"T": 2, "C": 9}),
}  # fmt: skip


def made(name: str, on: str = "host-avx512") -> tuple[Any, Any, dict[str, int]]:
    text, sizes = ALL[name]
    kernel = parse_kernel(text)
    return kernel, compiled(kernel, sizes, simulated(on)), sizes


@pytest.mark.parametrize(
    ("name", "on"),
    [
        (n, m)
        for n in ALL
        for m in ("host-avx512", "host-generic", "toy", "casestudy")
        if (n, m) != ("distance", "casestudy")
    ],
)  # the case study's machine compares nothing
def test_what_comes_out_is_right(name: str, on: str) -> None:
    kernel, job, sizes = made(name, on)
    judge(kernel, sizes, job, 5)


@pytest.mark.parametrize(("name", "states"), [("filter", 1), ("two back", 2), ("distance", 2)])
def test_state_is_taken_out_of_rows(name: str, states: int) -> None:
    _, job, _ = made(name)
    assert [s.split(" ")[0] for s in job.taken.cover.steps] == ["scalar-replacement"] * states
    plain, held = (chained(c.answer, {}) for c in job.candidates if isinstance(c.answer, Schedule))
    assert held < plain


def test_what_is_further_back_moves_on_first() -> None:
    """It takes what is nearer before that is replaced."""
    _, job, _ = made("two back")
    *_, one, two = job.taken.cover.kernel.statements
    assert one.op == two.op == "copy"
    assert one.sources[0].buffer == two.dest.buffer


def test_cycles_from_step_to_step_are_what_calls_take() -> None:
    """A product and a sum of 4 cycles, and either a copy or a store and a load of 5 cycles each."""
    _, job, sizes = made("filter")
    plain, held = (chained(c.answer, {}) for c in job.candidates if isinstance(c.answer, Schedule))
    cycle = 1 / job.system.units["core"].clock
    assert plain == pytest.approx(sizes["T"] * (4 + 4 + 5 + 5) * cycle)
    assert held == pytest.approx(sizes["T"] * (4 + 4 + 4) * cycle)


def test_registers_alone_keep_state() -> None:
    """A machine without a memory that is filled ahead keeps it as well."""
    whole = simulated("host-avx512")
    memories = {n: m for n, m in whole.memories.items() if m.home or m.kind != "managed" or m.cells}
    moves = tuple(m for m in whole.moves if memories.keys() >= {m.source, m.target})
    assert len(memories) < len(whole.memories)
    job = compiled(parse_kernel(FILTER), {"T": 9, "C": 17}, replace(whole, memories=memories, moves=moves))
    assert job.taken.cover.steps


def test_long_rows_stay_where_they_are() -> None:
    """Registers do not hold them: a copy would go through memory as well."""
    job = compiled(parse_kernel(FILTER), {"T": 20, "C": 2048}, simulated("host-avx512"))
    assert not job.taken.cover.steps


@pytest.mark.parametrize("sizes", [{"T": 0}, {"T": 1}, {"T": 50}], ids=str)
def test_native_recurrences(sizes: dict[str, int]) -> None:
    x = np.random.default_rng(1).integers(-3, 4, sizes["T"]).astype("i4")
    y = isam.compile(TWO_BACK, sizes=sizes, cache=False)(x)
    want = [1, 2]
    for v in x.tolist():
        want.append((want[-1] - want[-2] * v + 2**31) % 2**32 - 2**31)
    np.testing.assert_array_equal(y, np.array(want, "i4"))
