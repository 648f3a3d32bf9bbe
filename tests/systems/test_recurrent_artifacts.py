"""REC-1: one artifact runs any number of steps: none, one, two, odd and even ones, native and simulated."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isam
from isam.diagnostics import IsamError
from isam.ir import interp
from isam.ir.bounds import enclose, outside
from isam.ir.text import parse
from tests.corpus import CASES
from tests.pipeline import function

COUNT = parse("""kernel count(T, N)
  in    x: i32[T, N]
  in    a: i32[T, N]
  inout h: i32[N]
  out   ys: i32[T, N]
  loop t < T
    forall j < N
      h[j] = a[t, j] * h[j] + x[t, j]
      ys[t, j] = h[j]
""")
KERNELS = {"count": (COUNT, {"N": 20}), "rnn": (CASES["rnn"].load(), {"B": 3, "X": 20, "H": 20}),
           "lstm": (CASES["lstm"].load(), {"B": 2, "X": 8, "H": 12})}  # fmt: skip
STEPS = (0, 1, 2, 3, 4, 7)


@cache
def artifact(name: str, machine: str, folder: Path) -> Path:
    kernel, sizes = KERNELS[name]
    path = folder / f"{name}-{machine}.isam"
    function(kernel, machine, **sizes).save(str(path))
    return path


def arrays(name: str, steps: int) -> dict[str, np.ndarray[Any, Any]]:
    kernel, sizes = KERNELS[name]
    draw = np.random.default_rng(steps)
    out: dict[str, np.ndarray[Any, Any]] = {}
    for b in kernel.with_sizes({**sizes, "T": steps}).arguments:
        if b.role != "out":
            shape = tuple(int(n) for n in b.shape)
            values = draw.integers(-9, 9, shape) if b.dtype == "i32" else draw.uniform(-1, 1, shape)
            out[b.name] = values.astype(np.int32 if b.dtype == "i32" else np.float32)
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("artifacts")


def called(fn: Any, name: str, given: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """Outputs, and what was updated in place."""
    kernel, _ = KERNELS[name]
    got = fn(**given)
    outs = [b.name for b in kernel.arguments if b.role == "out"]
    made = () if got is None else got if isinstance(got, tuple) else (got,)
    return dict(zip(outs, made, strict=True)) | {b.name: given[b.name] for b in kernel.arguments if b.role == "inout"}


@pytest.mark.parametrize(("name", "machine"), [
    *((name, "host") for name in KERNELS), *((name, "toy") for name in KERNELS if name != "lstm"),
])  # fmt: skip
def test_an_artifact_runs_any_number_of_steps(name: str, machine: str, folder: Path) -> None:
    fn = isam.load(str(artifact(name, machine, folder)))
    kernel, _ = KERNELS[name]
    for steps in STEPS:
        given = arrays(name, steps)
        before = {n: a.copy() for n, a in given.items()}
        got = called(fn, name, given)
        if name == "count":
            for buffer, want in interp.run(kernel, before).items():
                np.testing.assert_array_equal(got[buffer], want, err_msg=f"{steps} steps: {buffer}")
        else:
            assert outside(got, enclose(kernel, before)) is None, steps
        if not steps:
            assert all(np.array_equal(given[n], before[n]) for n in before)


@pytest.mark.parametrize("machine", ["host", "toy"])
def test_a_step_more_or_less_in_one_array_is_refused(machine: str, folder: Path) -> None:
    fn = isam.load(str(artifact("count", machine, folder)))
    given = arrays("count", 3)
    for steps in (0, 2, 4):
        with pytest.raises(IsamError):
            fn(**{**given, "a": arrays("count", steps)["a"]})
