"""Ranges of batch sizes on disk: what is loaded computes what was saved, without the compiler; what is damaged is
refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isam
from isam.artifact import Artifact, Size, load_artifact
from isam.diagnostics import IsamError
from isam.ir.text import parse_kernel
from isam.runtime.ranged import RangedFunction
from tests.corpus import CASES
from tests.unit.test_ranged import SIZES, UPDATED, judge

PRODUCT = CASES["bias_relu_matmul"].load()


@pytest.fixture(scope="module")
def made() -> RangedFunction:
    return isam.compile_range(PRODUCT, "M", 1, 40, sizes=SIZES, variants=4, cache=False)


@pytest.fixture(scope="module")
def saved(made: RangedFunction, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("range") / "product.isam-range"
    made.save(path)
    return path


def test_what_is_loaded_is_what_was_saved(made: RangedFunction, saved: Path, tmp_path: Path) -> None:
    fn = isam.load(saved)
    assert isinstance(fn, RangedFunction)
    assert list(fn.variants) == list(made.variants)
    for rows in range(1, 41):
        assert fn.spans(rows) == made.spans(rows)
        for _ in range(2):  # the second time as it is known
            judge(PRODUCT, {**SIZES, "M": rows}, lambda given: fn(*given.values()))
    fn.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()
    with pytest.raises(IsamError, match="41 rows are not admitted"):
        fn.spans(41)


def test_the_compiler_is_not_needed(saved: Path) -> None:
    code = f"""import sys, isam, numpy as np
fn = isam.load({str(saved)!r})
fn(*[np.zeros([{{'M': 7}}.get(str(n), n) for n in s], np.float32) for s in {_shapes()}])
print([m for m in sys.modules if m.startswith(('isam.compiler', 'isam.scheduler', 'isam.mapper', 'isam.system'))])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def _shapes() -> list[list[str | int]]:
    sized = PRODUCT.with_sizes(SIZES)
    return [["M" if e.names else e.const for e in b.shape] for b in sized.arguments if b.role != "out"]


def test_what_is_bound_is_not_saved_and_loaded_ranges_bind(made: RangedFunction, saved: Path, tmp_path: Path) -> None:
    constants = {b.name: np.ones([e.const for e in b.shape], np.float32) for b in PRODUCT.with_sizes(SIZES).arguments
                 if b.role == "const"}  # fmt: skip
    with pytest.raises(IsamError, match="before bind"):
        made.bind(**constants).save(tmp_path / "bound")
    assert not list(tmp_path.iterdir())
    fn: Any = isam.load(saved)
    rest = [np.ones((5, e[1]), np.float32) for e in _shapes() if e[0] == "M"]
    assert np.array_equal(fn.bind(**constants)(*rest), made.bind(**constants)(*rest))


def test_rows_that_are_updated_are_updated_once(tmp_path: Path) -> None:
    isam.compile_range(UPDATED, "M", 1, 20, sizes={"N": 7}, variants=3, cache=False).save(tmp_path / "u")
    fn: Any = isam.load(tmp_path / "u")
    for rows in (1, 5, 20):
        judge(UPDATED, {"N": 7, "M": rows}, lambda given: fn(*given.values()))


def test_trips_of_loops_stay_open(tmp_path: Path) -> None:
    kernel = parse_kernel("""kernel steps(M, T, N)
  in    x: f32[T, N]
  inout y: f32[M, N]
  loop t < T
    forall i < M, j < N
      y[i, j] = y[i, j] * 0.5 + x[t, j]
""")
    isam.compile_range(kernel, "M", 1, 9, sizes={"N": 5}, variants=3, cache=False).save(tmp_path / "s")
    fn: Any = isam.load(tmp_path / "s")
    for rows, trip in ((1, 0), (4, 3), (9, 7)):
        judge(kernel, {"M": rows, "T": trip, "N": 5}, lambda given: fn(*given.values()))


def test_functions_of_the_user_are_handed_over(tmp_path: Path) -> None:
    def doubled(y: np.ndarray) -> None:
        y *= 2

    text = "instruction doubled(N)\n  inout y: f32[N]\n  forall i < N\n    y[i] = 2 * y[i]"
    function = isam.instruction(text)(doubled)
    kernel = "kernel f(M)\n  inout y: f32[M]\n  forall i < M\n    y[i] = 2 * y[i]\n"
    machine = isam.load_system("host").extended(function)
    fn = isam.compile_range(kernel, "M", 1, 9, on=machine, sizes={}, variants=2, require="doubled", cache=False)
    fn.save(tmp_path / "f")
    with pytest.raises(IsamError, match="external-missing"):
        isam.load(tmp_path / "f")
    with pytest.raises(IsamError, match="external-unknown"):
        isam.load(tmp_path / "f", functions={"doubled": doubled, "other": doubled})
    loaded: Any = isam.load(tmp_path / "f", functions={"doubled": function})
    y = np.arange(7, dtype=np.float32)
    want = 2 * y
    loaded(y)
    assert np.array_equal(y, want)


# -- what is damaged or forged -----------------------------------------------------------------------------------------
def _said(a: Artifact, **other: Any) -> Artifact:
    said = {**json.loads(a.parts["dispatch.json"]), **other}
    return replace(a, parts={**a.parts, "dispatch.json": json.dumps(said).encode()})


def _without(a: Artifact, part: str) -> Artifact:
    return replace(a, parts={n: b for n, b in a.parts.items() if n != part})


def _swapped(a: Artifact) -> Artifact:
    one, two, *_ = [n for n in a.parts if n.startswith("variants/")]
    return replace(a, parts={**a.parts, one: a.parts[two], two: a.parts[one]})


def _nested(a: Artifact) -> Artifact:
    some = next(n for n in a.parts if n.startswith("variants/"))
    return replace(a, parts={**a.parts, some: a.to_bytes()})


def _times(a: Artifact) -> list[Any]:
    return json.loads(a.parts["dispatch.json"])["times"]


DAMAGED: dict[str, Callable[[Artifact], Artifact]] = {
    "no dispatch": lambda a: _without(a, "dispatch.json"),
    "no text": lambda a: replace(a, parts={**a.parts, "dispatch.json": b"\xff"}),
    "no json": lambda a: replace(a, parts={**a.parts, "dispatch.json": b"{"}),
    "a list": lambda a: replace(a, parts={**a.parts, "dispatch.json": b"[]"}),
    "no variant": lambda a: _without(a, next(n for n in a.parts if n.startswith("variants/"))),
    "variants exchanged": _swapped,
    "a variant that is a range": _nested,
    "a variant that is no artifact": lambda a: replace(a, parts={**a.parts, "variants/1": b"PK"}),
    "another size": lambda a: _said(a, size="N"),
    "a size that is no text": lambda a: _said(a, size=["M"]),
    "fewer rows": lambda a: _said(a, rows=[]),
    "rows that are no names": lambda a: _said(a, rows=[[]]),
    "more than the range": lambda a: _said(a, hi=41),
    "less than the range": lambda a: _said(a, hi=39),
    "far too many": lambda a: replace(_said(a, hi=1 << 40), sizes=(Size("M", 1, 1 << 40),)),
    "another step": lambda a: _said(a, step=2),
    "a step of nothing": lambda a: _said(a, step=0),
    "no times": lambda a: _said(a, times=[]),
    "a time below nothing": lambda a: _said(a, times=[[1, -1.0]]),
    "a time that is no number": lambda a: _said(a, times=[[1, float("nan")]]),
    "no least variant": lambda a: _said(a, times=[t for t in _times(a) if t[0] > 1]),
    "a variant twice": lambda a: _said(a, times=[*_times(a), _times(a)[0]]),
    "rows that are no number": lambda a: _said(a, times=[[True, 1.0]]),
    "no size": lambda a: replace(a, sizes=()),
    "two sizes": lambda a: replace(a, sizes=a.sizes * 2),
    "no end": lambda a: replace(a, sizes=(replace(a.sizes[0], hi=None),)),
    "a begin behind the end": lambda a: replace(a, sizes=(replace(a.sizes[0], lo=41),)),
    "an argument left out": lambda a: replace(a, arguments=a.arguments[1:]),
    "another name": lambda a: replace(a, name="other"),
}


@pytest.mark.parametrize("damage", DAMAGED.values(), ids=DAMAGED.keys())
def test_what_is_damaged_is_refused(saved: Path, tmp_path: Path, damage: Callable[[Artifact], Artifact]) -> None:
    path = tmp_path / "forged"
    damage(load_artifact(saved)).save(path)
    with pytest.raises(IsamError) as e:
        isam.load(path)
    assert {d.code for d in e.value.diagnostics} <= {"artifact-damaged", "artifact-part"}
    assert str(path) in str(e.value)


