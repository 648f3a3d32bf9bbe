"""Contenders in turns: what is timed, what is unfit, and what is not run at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import isam
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from isam.tune import measure, timing
from isam.tune.measure import Measurement, run_beside
from isam.tune.timing import alternate

SCALE = """kernel scale(N)
  in  x: f32[N]
  out y: f32[N]
  forall i < N
    y[i] = {} * x[i]
"""
UPDATE = """kernel update(N)
  const w: f32[N]
  in    x: f32[N]
  inout y: f32[N]
  out   z: f32[N]
  forall i < N
    y[i] += w[i] * x[i]
  forall i < N
    z[i] = y[i] + x[i]
"""
N = 300


def entry(text: str) -> Any:
    return isam.compile(text, sizes={"N": N}, cache=False)._only


def kernel(text: str) -> Kernel:
    return parse_kernel(text).with_sizes({"N": N})


def run(entries: list[Any], of: Kernel, **more: Any) -> Measurement:
    found = run_beside(entries, of, seconds=0.02, **more)
    assert isinstance(found, Measurement)
    return found


def test_all_are_timed_and_the_quickest_once_more():
    found = run([entry(SCALE.format(2)) for _ in range(4)], kernel(SCALE.format(2)))
    assert all(0 < r.best <= r.median and not r.unfit for r in found.runs)
    assert found.runs[0].final
    assert 2 <= sum(r.final for r in found.runs) <= 3
    assert found.noise >= 0


@pytest.mark.parametrize("points", [measure.POINTS, 1], ids=["judged", "beside the first"])
def test_what_computes_something_else_is_unfit(monkeypatch: pytest.MonkeyPatch, points: int):
    monkeypatch.setattr(measure, "POINTS", points)
    found = run([entry(SCALE.format(n)) for n in (2, 3, 2)], kernel(SCALE.format(2)))
    assert [bool(r.unfit) for r in found.runs] == [False, True, False]
    assert not found.runs[1].final
    assert found.runs[1].best == 0


def test_the_first_may_be_what_is_wrong(monkeypatch: pytest.MonkeyPatch):
    found = run([entry(SCALE.format(n)) for n in (3, 2)], kernel(SCALE.format(2)))
    assert [bool(r.unfit) for r in found.runs] == [True, False]


def test_sums_in_another_order_are_the_same(monkeypatch: pytest.MonkeyPatch):
    """Too many points to be judged: then results have to be the same, and whole numbers are, in any order."""
    monkeypatch.setattr(measure, "POINTS", 1)
    product = isam.einsum("mk,kn->mn").with_sizes({"M": 5, "N": 20, "K": 40})
    first = isam.compile(product, cache=False)._only

    class Backwards:
        """Sums from the last term to the first."""

        artifact = first.artifact

        def __call__(self, *args: Any, **named: Any) -> None:
            given = dict(zip(["x1", "x2"], args, strict=False)) | named
            total = np.zeros_like(given["y"])
            for k in reversed(range(40)):
                total += given["x1"][:, k : k + 1] * given["x2"][k]
            given["y"][...] = total

    found = run([first, Backwards()], product)
    assert [r.unfit for r in found.runs] == ["", ""]


def test_what_is_less_exact_by_nature_is_compared_only_where_exact_results_are_known(monkeypatch: pytest.MonkeyPatch):
    ways, of = [entry(SCALE.format(n)) for n in (3, 2, 2)], kernel(SCALE.format(2))
    assert [bool(r.unfit) for r in run(ways, of, inexact=(0,)).runs] == [True, False, False]
    monkeypatch.setattr(measure, "POINTS", 1)
    assert not any(r.unfit for r in run(ways, of, inexact=(0,)).runs)
    assert [bool(r.unfit) for r in run(ways, of).runs] == [False, True, True]  # the first is the measure


def test_too_little_memory_is_no_fault(monkeypatch: pytest.MonkeyPatch):
    def none(*given: Any, **named: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(measure, "random_arrays", none)
    assert run_beside([entry(SCALE.format(2))], kernel(SCALE.format(2))) == "there is not enough memory for it"


def test_what_is_updated_in_place_is_given_anew_and_constants_are_bound():
    seen: list[float] = []
    real = entry(UPDATE)

    class Watched:
        def __init__(self, of: Any, bound: bool = False):
            self.of, self.bound = of, bound

        def bind(self, **constants: Any) -> Any:
            assert list(constants) == ["w"]
            return Watched(self.of.bind(**constants), True)

        def __call__(self, *args: Any, **named: Any) -> None:
            if self.bound:
                seen.append(float(args[1][0]))
            self.of(*args, **named)

    found = run([Watched(real), Watched(real)], kernel(UPDATE))
    assert not any(r.unfit for r in found.runs)
    first = max(set(seen), key=seen.count)
    assert seen.count(first) > 2 * measure.LEAST  # at the begin of every sample
    assert len(set(seen)) > 1  # and updated within it


def test_too_much_is_not_run(monkeypatch: pytest.MonkeyPatch):
    one = entry(SCALE.format(2))
    monkeypatch.setattr(measure, "BYTES", 8 * N - 1)
    assert run_beside([one], kernel(SCALE.format(2))) == f"arguments of {8 * N} bytes are more than {8 * N - 1}"
    monkeypatch.undo()
    monkeypatch.setattr(measure, "LONGEST", 0.0)
    assert "one call takes" in str(run_beside([one], kernel(SCALE.format(2))))


# -- turns -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Callable[[], None]]:
    """Makes calls that take so many seconds of a clock that nothing else moves."""
    now = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])

    def taking(seconds: float) -> Callable[[], None]:
        def call() -> None:
            now[0] += seconds

        return call

    return taking


def test_what_is_far_behind_is_left_out(ticking):
    clock = timing.time.perf_counter
    calls = {"slow": ticking(3.0), "quick": ticking(1.0), "near": ticking(1.2)}
    times = alternate(calls, 100.0, 3, clock, behind=1.25)
    assert [times[n].best for n in calls] == pytest.approx([3.0, 1.0, 1.2])
    assert len(times["slow"].samples) == 3
    assert len(times["quick"].samples) == len(times["near"].samples) > 10
    assert len(alternate(calls, 100.0, 3, clock)["slow"].samples) > 10


def test_what_comes_ahead_of_a_sample_is_not_timed(ticking):
    times = alternate({"a": ticking(1.0)}, 50.0, 3, timing.time.perf_counter, ahead={"a": ticking(5.0)})
    assert set(times["a"].samples) == {1.0}
    assert len(times["a"].samples) < 10
