"""The benchmark's own arithmetic: ratios, both readings of "weighted", verdicts, the page; and that it refuses a wrong
result. Times are made up here: nothing depends on how fast this machine is."""

from __future__ import annotations

import itertools
import json
import os

import numpy as np
import pytest

from benchmarks import measure, peers, run
from benchmarks.data import Judge, exact, operands, windows
from benchmarks.kernels import kernel_of
from benchmarks.shapes import DEEPBENCH, RESNET50, SQUARES, Convolution, Gemm
from benchmarks.table import page
from benchmarks.timing import Times, alternate, ratio


def row(name, flops, ours, theirs, count=1, library="onednn"):
    times = {"isam": Times([ours], [ours]), f"{library} plain": Times([theirs * 2], [theirs * 2]),
             f"{library} packed": Times([theirs], [theirs])}  # fmt: skip
    return {"name": name, "flops": flops, "count": count, "against": measure.against(times),
            "times": {n: {"best": t.least, "median": t.typical} for n, t in times.items()},
            "compile": {"total": 0.2, "wall": 0.3}, "bound used": 0.1}  # fmt: skip


def test_the_lists_are_complete():
    assert len(RESNET50) == 23
    assert sum(c.count for c in RESNET50) == 53
    assert len(DEEPBENCH) == 15
    assert len({s.name for s in (*RESNET50, *DEEPBENCH, *SQUARES)}) == 23 + 15 + len(SQUARES)
    assert round(sum(c.count * c.flops for c in RESNET50) / 1e9, 2) == 8.17  # the usual figure for its convolutions


def test_the_best_form_of_a_peer_counts():
    got = row("a", 10, ours=2.0, theirs=1.0)["against"]["onednn"]
    assert got == {"form": "onednn packed", "best": 0.5, "median": 0.5}


def test_both_readings_of_weighted():
    rows = [row("a", 100, ours=1.0, theirs=2.0, count=3), row("b", 300, ours=4.0, theirs=1.0)]
    w = measure.weighted(rows, "onednn")
    assert w["mean of ratios"] == pytest.approx((300 * 2.0 + 300 * 0.25) / 600)
    assert w["total over total"] == pytest.approx((3 * 2.0 + 1.0) / (3 * 1.0 + 4.0))
    assert measure.weighted(rows, "numpy") == {}


def test_ratios_are_of_bests_and_of_medians_per_round():
    ours, theirs = Times([1.0, 2.0, 4.0], [2.0, 2.0, 4.0]), Times([3.0, 5.0, 2.0], [4.0, 6.0, 2.0])
    assert ratio(ours, theirs) == (2.0, 2.0)


def test_contenders_take_turns():
    order = []
    calls = {n: (lambda n=n: (order.append(n), sum(range(40_000)))) for n in "ab"}
    times = alternate(calls, rounds=2, seconds=0.0)
    assert all(len(t.best) == 2 and t.least > 0 for t in times.values())
    turns = "".join(c for c, before in zip(order, [None, *order], strict=False) if c != before)
    assert turns == "ab" + "ab" + "ba"[1:]


def test_a_delay_does_not_decide_how_many_calls_are_timed_together():
    now, calls, read = [0.0], itertools.count(), itertools.count()

    def call():
        now[0] += 1e-2 if next(calls) == 3 else 1e-7  # others use the machine, too

    def clock():
        next(read)
        return now[0]

    times = alternate({"a": call}, rounds=1, seconds=0.0, clock=clock)
    assert times["a"].least == pytest.approx(1e-7)
    assert next(calls) > 100 * next(read), "many calls between two looks at the clock"


@pytest.mark.parametrize("shape", [Convolution(3, 11, 5, 7, 2), Convolution(4, 8, 3, 1, 2), Convolution(2, 7, 3, 3, 1)])
def test_windows_and_the_kernel_mean_the_same_convolution(shape):
    from isam.ir import interp

    x, w = operands(shape)
    direct = np.einsum("hvrsc,rsck->hvk", windows(shape, x).astype(float), w.astype(float))
    np.testing.assert_allclose(exact(shape, x, w), direct, rtol=1e-12, atol=1e-12)
    kernel, sizes = kernel_of(shape)
    params = {n: v for n, v in sizes.items() if n in dict(kernel.params)}
    rest = {n: v for n, v in sizes.items() if n not in params}
    got = interp.run(kernel.with_params(**params), {"x": x, "w": w}, rest)["y"]
    assert Judge.product(shape, x, w).wrong(got) is None


@pytest.mark.parametrize("shape", [Gemm(5, 7, 3), Convolution(3, 9, 5, 3, 1), Convolution(3, 9, 5, 1, 2)])
def test_every_peer_answers_rightly(shape):
    a, b = operands(shape)
    judge = Judge.product(shape, a, b)
    for name, call in peers.of(shape, a, b).items():
        assert judge.wrong(peers.plain(call())) is None, name


def test_a_wrong_result_is_never_published(monkeypatch):
    def spoiled(shape, a, b):
        good = a @ b
        good[0, 0] += 1
        return {"numpy": lambda: good}

    monkeypatch.setattr(peers, "of", spoiled)
    with pytest.raises(measure.Wrong, match=r"numpy, 4x5x6: element \(0, 0\)"):
        measure.measure(Gemm(4, 5, 6), measure.Settings(1, 0.0))


def test_targets_and_the_page():
    results = {
        "square": [row("512x512x512", 2 * 512**3, 1.0, 0.8, library="numpy"),
                   row("64x64x64", 2 * 64**3, 9.0, 1.0, library="numpy")],
        "deepbench": [row("2x512x512", 2 * 2 * 512**2, 1.0, 1.2, library="numpy")],
        "resnet50": [row("c", 10, 1.0, 0.98)],
        "compile": [{"name": "512x512x512", "best": dict.fromkeys(STEPS, 0.01), "median": dict.fromkeys(STEPS, 0.02)}],
        "weighted": {"resnet50 against onednn": measure.weighted([row("c", 10, 1.0, 0.98)], "onednn")},
        "machine": {"cpu": "x", "cpus": 2, "features": ["fma"], "caches": {"L2": "1M"}, "load": 1, "python": "3",
                    "load at the end": 2},
        "versions": {"isam": "0"}, "settings": {"rounds": 1, "seconds": 0.1, "on": "host", "threads": 1},
    }  # fmt: skip
    results["targets"] = run.targets(results)
    verdicts = {t["what"]: t["reached"] for t in results["targets"]}
    assert verdicts["large products against NumPy, geometric mean"] is False
    assert verdicts["products of up to 4 rows against NumPy, geometric mean"] is True
    assert verdicts["slowest of all products against NumPy"] is False
    assert verdicts["ResNet-50 convolutions against oneDNN, mean of ratios"] is True
    text = page(json.loads(json.dumps(results)))
    assert "| slowest of all products against NumPy | at least 0.9 | 0.8 | **no** |" in text
    assert "| c | 1 | 1e-08 | 1.02e-08 | packed | 0.98 (0.98) |" in text
    assert os.sep + "work" not in text


STEPS = ("import", "load the machine", "compile", "cover", "schedule", "prove", "emit", "wall", "again",
         "mapping again", "kept", "load")  # fmt: skip


def test_one_shape_from_end_to_end_with_a_peer_held_back(monkeypatch, tmp_path):
    """The measuring process does not inherit what would slow NumPy down, and says so."""
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    results = run.run(measure.Settings(1, 0.0), ("square",), ("16x16x16",), quiet=True)
    assert [r["name"] for r in results["square"]] == ["16x16x16"]
    assert "OPENBLAS_CORETYPE" in results["settings"]["removed from the environment"]
    blas = results["versions"].get("numpy's BLAS", "")
    assert "Prescott" not in blas
    assert results["square"][0]["bound used"] <= 1
    assert set(results["square"][0]["times"]) == {"isam", "isam bound", "numpy", "numpy dot"}
