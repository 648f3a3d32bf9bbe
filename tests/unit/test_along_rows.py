"""Recurrences along the rows of an array: running sums, filters, sweeps there and back, as they are typed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import isam
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.schedule.tree import Loop, distinct
from tests.pipeline import compiled, judge, simulated


def kernel(body: str, sizes: str = "M, 1 <= N", arguments: str = "  in  x: f32[M, N]\n  out y: f32[M, N]\n") -> Kernel:
    return parse_kernel(f"kernel rows({sizes})\n{arguments}{body}")


RUNNING = kernel("""  forall i < M
    y[i, 0] = x[i, 0]
  loop j < N - 1
    forall i < M
      y[i, j + 1] = y[i, j] + x[i, j + 1]
""")
RESET = kernel("""  forall i < M
    y[i, 0] = x[i, 0]
  loop j < N - 1
    forall i < M
      y[i, j + 1] = select(x[i, j + 1] > 0, y[i, j] + x[i, j + 1], x[i, j + 1])
""")
FILTER = kernel("""  forall i < M
    y[i, 0] = x[i, 0]
    y[i, 1] = x[i, 1]
  loop j < N - 2
    forall i < M
      y[i, j + 2] = 0.5 * y[i, j + 1] + 0.25 * y[i, j] + x[i, j + 2]
""", "M, 2 <= N")
BACK = kernel("""  forall i < M
    y[i, N - 1] = x[i, N - 1]
  loop j < N - 1
    forall i < M
      y[i, N - 2 - j] = 0.5 * y[i, N - 1 - j] + x[i, N - 2 - j]
""")
BATCHED = kernel("""  forall b < B, i < M
    y[b, i, 0] = x[b, i, 0]
  loop j < N - 1
    forall b < B, i < M
      y[b, i, j + 1] = 0.5 * y[b, i, j] + x[b, i, j + 1]
""", "B == 2, M, 1 <= N", "  in  x: f32[B, M, N]\n  out y: f32[B, M, N]\n")
SWEEPS = kernel("""  loop j < N - 1
    forall i < M
      y[i, j + 1] += y[i, j] * x[i, j + 1]
  loop j < N - 1
    forall i < M
      y[i, N - 2 - j] += y[i, N - 1 - j] * x[i, N - 1 - j]
""", arguments="  in    x: f32[M, N]\n  inout y: f32[M, N]\n")


def recurrence(step: Callable[[Any, np.ndarray, int], Any], begins: int = 1) -> Callable[[np.ndarray], np.ndarray]:
    def wanted(x: np.ndarray) -> np.ndarray:
        y = x.astype(float)
        for j in range(begins, x.shape[-1]):
            y[..., j] = step(y, x, j)
        return y
    return wanted


def swept(x: np.ndarray) -> np.ndarray:
    y, last = np.ones(x.shape), x.shape[1] - 1
    for j in range(last):
        y[:, j + 1] += y[:, j] * x[:, j + 1]
    for j in range(last, 0, -1):
        y[:, j - 1] += y[:, j] * x[:, j]
    return y


WANTED: dict[str, tuple[Kernel, Callable[[np.ndarray], np.ndarray]]] = {
    "running": (RUNNING, lambda x: np.cumsum(x, 1, dtype=float)),
    "reset": (RESET, recurrence(lambda y, x, j: np.where(x[..., j] > 0, y[..., j - 1], 0) + x[..., j])),
    "filter": (FILTER, recurrence(lambda y, x, j: 0.5 * y[..., j - 1] + 0.25 * y[..., j - 2] + x[..., j], 2)),
    "back": (BACK, lambda x: WANTED["batched"][1](x[:, ::-1])[:, ::-1]),
    "batched": (BATCHED, recurrence(lambda y, x, j: 0.5 * y[..., j - 1] + x[..., j])),
    "sweeps": (SWEEPS, swept),
}


def rows_inside(job: Any) -> set[str]:
    """The steps of recurrent loops that go through all rows before the next step."""
    loops = [n for n in distinct(job.schedule.call) if isinstance(n, Loop) and n.axis == "j"]
    return {m.axis for n in loops for m in distinct(n.body) if isinstance(m, Loop)}


@pytest.mark.parametrize("name", WANTED)
@pytest.mark.parametrize("on", ["host-avx512", "host-avx2", "toy"])
def test_what_comes_out_is_right(name: str, on: str) -> None:
    rows = WANTED[name][0]
    sizes = {"M": 35, "N": 9} | ({"B": 2} if name == "batched" else {})
    judge(rows, sizes, compiled(rows, sizes, simulated(on), check=True), 3)


@pytest.mark.parametrize("name", WANTED)
@pytest.mark.parametrize(("m", "n"), [(64, 64), (50, 37), (17, 2), (3, 40)])
def test_native_code_agrees(name: str, m: int, n: int) -> None:
    rows, wanted = WANTED[name]
    x = np.random.default_rng(m).uniform(-0.5, 0.5, ((2,) if name == "batched" else ()) + (m, n)).astype("f4")
    fn, both = isam.compile(rows, check=False, cache=False), np.ones_like(x)
    got = (fn(x, both), both)[1] if name == "sweeps" else fn(x)
    np.testing.assert_allclose(got, wanted(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", WANTED)
@pytest.mark.parametrize("on", ["host-avx512", "host-avx2"])
def test_some_rows_are_taken_from_the_first_step_to_the_last(name: str, on: str) -> None:
    """In vectors across them; what a step leaves stays in a register."""
    job = compiled(WANTED[name][0], {"M": 64, "N": 64} | ({"B": 2} if name == "batched" else {}), simulated(on))
    assert rows_inside(job) <= {"b"}
    inside = [m for m in job.cover.mappings if "j" in m.loops]
    assert all(m.axes for m in inside)
    assert any(s.startswith("scalar-replacement") for s in job.taken.cover.steps)


def test_calls_that_take_one_row_each_go_outside_as_well() -> None:
    """No vectors divide whole numbers: eight rows at a time, behind whose steps others hide."""
    divided = parse_kernel(str(BACK).replace("f32", "i32").replace("0.5", "2").replace(" * ", " / "))
    job = compiled(divided, {"M": 64, "N": 64}, simulated("host-avx2"))
    assert not rows_inside(job)
    (asked, *_) = [d for d in job.trace.decisions if d.point == "interchange"]
    assert asked.context["block"] == 8
