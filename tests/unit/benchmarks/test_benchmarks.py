"""The benchmark's own arithmetic: ratios, both readings of "weighted", verdicts, the page; and that it refuses a wrong
result. Times are made up here: nothing depends on how fast this machine is."""

from __future__ import annotations

import itertools
import json
import os

import numpy as np
import pytest

from benchmarks import algebra, measure, peers, run
from benchmarks.data import Judge, arrays_of, exact, operands, windows
from benchmarks.kernels import kernel_of
from benchmarks.peers import Form, Library, libxsmm
from benchmarks.shapes import DEEPBENCH, GROUPS, RESNET50, SQUARES, Case, Convolution, Gemm
from benchmarks.table import left_out, page
from benchmarks.targets import targets
from benchmarks.timing import Times, alternate, at_rest, ratio


def row(name, flops, ours, theirs, count=1, library="onednn"):
    times = {"isam": Times([ours], [ours]), f"{library} plain": Times([theirs * 2], [theirs * 2]),
             f"{library} packed": Times([theirs], [theirs])}  # fmt: skip
    return {"name": name, "flops": flops, "count": count, "compared": "isam", **measure.compare(times),
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


def test_the_best_peer_of_a_row_counts_and_a_reference_is_none():
    times = {n: Times([t], [t]) for n, t in (("isam", 2.0), ("numpy dot", 4.0), ("mkl jit", 3.0), ("libxsmm x", 1.0))}
    got = measure.compare(times)
    assert got["peer"] == got["against"]["mkl"] == {"form": "mkl jit", "best": 1.5, "median": 1.5}
    assert set(got["against"]) == {"numpy", "mkl"}
    assert got["references"] == {"libxsmm": {"form": "libxsmm x", "best": 0.5, "median": 0.5}}
    assert measure.ratio_to(got, measure.BEST) == got["peer"]
    assert measure.ratio_to(got, "libxsmm")["best"] == 0.5
    assert measure.ratio_to(got, "jax") is None


def test_both_readings_of_weighted():
    rows = [row("a", 100, ours=1.0, theirs=2.0, count=3), row("b", 300, ours=4.0, theirs=1.0)]
    w = measure.weighted(rows, "onednn")
    assert w["mean of ratios"] == pytest.approx((300 * 2.0 + 300 * 0.25) / 600)
    assert w["total over total"] == pytest.approx((3 * 2.0 + 1.0) / (3 * 1.0 + 4.0))
    assert measure.weighted(rows, "numpy") == {}
    assert measure.weighted(rows, measure.BEST)["total over total"] == w["total over total"]


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


SIZES = {
    "softmax": {"M": 5, "N": 33}, "layer_norm": {"M": 5, "N": 33}, "bias_gelu": {"M": 5, "N": 33},
    "transpose": {"M": 5, "N": 33}, "running_sum": {"M": 5, "N": 33}, "recursive_filter": {"M": 5, "N": 33},
    "channels_last": {"C": 5, "P": 33},
    "depthwise": {"H": 5, "W": 5, "C": 16, "R": 3, "S": 3, "stride": 2},
    "block": {"H": 5, "W": 5, "C": 16, "K": 24, "R": 3, "S": 3, "stride": 1},
    "lu": {"N": 33}, "cholesky": {"N": 33}, "substitution": {"N": 33}, "substitutions": {"N": 33, "M": 5},
    "trmm": {"M": 33, "N": 17}, "syrk": {"M": 33, "K": 17}, "band": {"N": 37, "H": 3}, "prefix_sum": {"N": 65},
    "viterbi": {"T": 3, "N": 19},
    "histogram": {"N": 99, "B": 8}, "complex_product": {"N": 37}, "brightness": {"N": 37},
    "pooled": {"C": 3, "H": 5, "W": 19}, "every_other": {"N": 37},
    "attention": {"H": 2, "M": 5, "N": 5, "D": 64, "V": 64}, "gru": {"T": 3, "B": 2, "X": 16, "H": 16},
}  # fmt: skip
CASES = [Case(k, tuple(s.items()), 1000, kind) for k, s in SIZES.items() for kind in ("f32", "bf16")
         if kind == "f32" or k in ("block", "attention", "gru")]  # fmt: skip
SHAPES = [Gemm(5, 7, 3), Gemm(48, 32, 160), Gemm(32, 48, 64, "bf16"), Gemm(32, 48, 64, "int8"),
          Convolution(3, 9, 5, 3, 1), Convolution(3, 9, 5, 1, 2), Convolution(16, 8, 32, 3, 2, batch=2),
          Convolution(16, 8, 32, 3, 1, kind="bf16")]  # fmt: skip


@pytest.mark.parametrize("shape", [*SHAPES, *CASES], ids=lambda s: s.name)
def test_every_peer_answers_rightly(shape):
    arrays = arrays_of(shape)
    _, theirs = Judge.both(shape, arrays, measure.THEIR_ULP)
    for name, form in peers.of(shape, arrays).items():
        assert theirs.wrong(form()) is None, name


def test_what_is_only_moved_is_exact():
    shape = Case("transpose", (("M", 3), ("N", 5)), 15)
    arrays = arrays_of(shape)
    judge = Judge.case(shape, arrays)
    right = arrays["X"].T.copy()
    assert judge.wrong(right) is None
    assert judge.used(right) == 0
    for spoiled in (np.nextafter(right, np.float32(9)), right * np.float32(np.nan)):
        assert judge.wrong(spoiled) is not None
    one = right.copy()
    one[2, 1] = np.nextafter(one[2, 1], np.float32(9))
    assert "(2, 1)" in str(judge.wrong(one))


@pytest.mark.parametrize("kernel", sorted(algebra.RIGHT))
def test_an_element_is_judged_from_those_that_it_is_made_of(kernel):
    """One that is off by a thousandth is found, wherever it is: the first one, the last one, one in between."""
    from isam.ir import interp

    shape = Case(kernel, tuple(SIZES[kernel].items()), 1000)
    arrays = arrays_of(shape)
    judge, _ = Judge.both(shape, arrays, measure.THEIR_ULP)
    program, sizes = kernel_of(shape)
    right = interp.run(program, arrays, sizes)["Y"]
    assert judge.wrong(right) is None
    assert judge.used(right) < 0.5
    for at in (0, right.size // 2, right.size - 1):
        wrong = right.copy()
        wrong.flat[at] = wrong.flat[at] * np.float32(1.001) + np.float32(1e-4)
        assert judge.wrong(wrong) is not None, at


def test_rows_that_changed_places_are_no_elimination_without():
    shape = Case("lu", (("N", 17),), 1000)
    arrays = {"A": np.random.default_rng(5).standard_normal((17, 17), np.float32)}
    _, theirs = Judge.both(shape, arrays, measure.THEIR_ULP)
    made = [theirs.wrong(form()) for name, form in peers.of(shape, arrays).items() if "getrfnp" not in name]
    assert all(made)


def test_a_wrong_result_of_a_peer_is_never_timed_and_named(monkeypatch):
    def spoiled(shape, given):
        good = given["A"] @ given["B"]
        off = good.copy()
        off[0, 0] += 1
        return {"dot": Form(lambda: off), "matmul": Form(lambda: good)}

    monkeypatch.setattr(peers, "LIBRARIES", (Library("numpy", "NumPy", lambda: "1", spoiled),))
    row = measure.measure(Gemm(4, 5, 6), measure.Settings(1, 0.0))
    assert row["wrong"].keys() == {"numpy dot"}
    assert "element (0, 0)" in row["wrong"]["numpy dot"]
    assert "numpy dot" not in row["times"]
    assert row["peer"]["form"] == "numpy matmul"
    assert "wrong, not counted: numpy dot (element (0, 0)" in run.line(row)
    assert "lie outside the bounds: numpy dot (4x5x6)" in left_out({"square": [row]})
    assert left_out({"square": [{"name": "4x5x6"}]}) == ""


def test_a_wrong_result_of_ours_is_never_published(monkeypatch):
    monkeypatch.setattr(measure.Judge, "wrong", lambda self, y: "off")
    with pytest.raises(measure.Wrong, match="isam, 4x5x6: off"):
        measure.measure(Gemm(4, 5, 6), measure.Settings(1, 0.0))


def test_a_peer_that_does_not_rest_is_never_published(monkeypatch):
    monkeypatch.setattr(measure, "at_rest", lambda: False)
    with pytest.raises(measure.Wrong, match="its threads go on"):
        measure.measure(Gemm(4, 5, 6), measure.Settings(1, 0.0))


def test_at_rest_is_when_no_time_is_used_while_waiting():
    now = itertools.count(0.0, 1.0)  # a second of the CPU between two looks at the clock
    assert not at_rest(lambda: next(now), lambda seconds: None)
    assert at_rest(lambda: 0.0, lambda seconds: None)


def test_an_absent_library_is_listed_and_asked_for_nothing(monkeypatch):
    def missing():
        raise ImportError

    library = Library("jax", "JAX", missing, lambda shape, given: pytest.fail("asked"))
    monkeypatch.setattr(peers, "LIBRARIES", (library,))
    assert peers.absent() == ["jax"]
    assert peers.present() == []
    assert peers.of(Gemm(4, 5, 6), {}) == {}


def test_the_libraries_are_listed_once_and_one_is_a_reference():
    names = [x.name for x in peers.LIBRARIES]
    assert len(set(names)) == len(names)
    assert [x.name for x in peers.LIBRARIES if x.reference] == ["libxsmm"]
    assert [peers.printed(n) for n in ("onednn plain", "numpy", measure.BEST)] == ["oneDNN", "NumPy", measure.BEST]
    assert peers.library_of("isam bound") is None
    assert not set(peers.absent()) & set(peers.versions())


def test_a_reference_that_cannot_be_compiled_is_absent(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    libxsmm._built.cache_clear()
    with pytest.raises(ImportError, match="cannot be compiled"):
        libxsmm.library()
    libxsmm._built.cache_clear()


@pytest.mark.parametrize(("size", "most", "even", "block"),
                         [(5124, 64, 16, 61), (2560, 64, 16, 64), (80, 64, 16, 16), (35, 64, 1, 35)])
def test_blocks_divide_the_sizes(size, most, even, block):
    assert libxsmm._block(size, most, even) == block


def test_isam_bench_knows_every_group():
    from isam.cli import bench

    assert sorted(bench.GROUPS) == sorted([*GROUPS, "compile"])


def test_targets_and_the_page():
    results = {
        "square": [row("512x512x512", 2 * 512**3, 1.0, 0.8, library="numpy"),
                   row("64x64x64", 2 * 64**3, 9.0, 9.0, library="numpy")],
        "tiny": [row("16x16x16", 2 * 16**3, 1.0, 4.0, library="mkl")],
        "gru": [row(f"gru 128x{b}x512x512", 10, 1.0, r) for b, r in ((1, 1.1), (4, 1.1), (32, 1.4))],
        "resnet50x28": [row("d", 10, 1.0, 1.1, library="libxsmm")],
        "deepbench": [row("2x512x512", 2 * 2 * 512**2, 1.0, 1.2, library="numpy")],
        "resnet50": [row("c", 10, 1.0, 0.98)],
        "compile": [{"name": "512x512x512", "best": dict.fromkeys(STEPS, 0.01), "median": dict.fromkeys(STEPS, 0.02)}],
        "weighted": {"resnet50 against onednn": measure.weighted([row("c", 10, 1.0, 0.98)], "onednn"),
                     "resnet50x28 against libxsmm": measure.weighted([row("d", 10, 1.0, 1.1, library="libxsmm")],
                                                                     "libxsmm")},
        "machine": {"cpu": "x", "cpus": 2, "features": ["fma"], "caches": {"L2": "1M"}, "load": 1, "python": "3",
                    "load at the end": 2},
        "versions": {"isam": "0"}, "absent": ["jax"],
        "settings": {"rounds": 1, "seconds": 0.1, "on": "host", "threads": 1},
    }  # fmt: skip
    results["targets"] = targets(results)
    verdicts = {t["what"]: t["reached"] for t in results["targets"]}
    assert verdicts["large products against the best peer, geometric mean"] is False
    assert verdicts["products of up to 4 rows against the best peer, geometric mean"] is True
    assert verdicts["slowest of all products against the best peer"] is False
    assert verdicts["tiny products against the best peer, geometric mean"] is True
    assert verdicts["convolutions of ResNet-50 against oneDNN, mean of ratios"] is True
    assert verdicts["convolutions of ResNet-50 of 28 images against LIBXSMM, total over total"] is True
    assert [verdicts[f"gru of batch {b} against the best peer, geometric mean"] for b in (1, 4, 32)] == [
        True, False, True]  # fmt: skip
    text = page(json.loads(json.dumps(results)))
    assert "| slowest of all products against the best peer | at least 0.9 | 0.8 | **no** |" in text
    assert "| c | 1e-08 | 1.02e-08 | onednn packed | 0.98 (0.98) |" in text
    assert "| d | 1e-08 |  |  |  | 9.09e-09 | 1.10 (1.10) |" in text
    assert "Absent: jax." in text
    assert "Peers of this run: NumPy, MKL, oneDNN. References: LIBXSMM." in text
    assert os.sep + "work" not in text


STEPS = ("import", "load the machine", "compile", "cover", "schedule", "prove", "emit", "wall", "again",
         "mapping again", "kept", "load")  # fmt: skip


def test_one_shape_from_end_to_end_with_a_peer_held_back(monkeypatch, tmp_path):
    """The measuring process does not inherit what would slow NumPy down, and says so."""
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    results = run.run(measure.Settings(1, 0.0), ("square",), ("16x16x16",), quiet=True)
    assert [r["name"] for r in results["square"]] == ["16x16x16"]
    assert "OPENBLAS_CORETYPE" in results["settings"]["removed from the environment"]
    assert "Prescott" not in results["versions"]["numpy"]
    assert results["square"][0]["bound used"] <= 1
    assert {"isam", "isam bound", "numpy matmul", "numpy dot"} <= set(results["square"][0]["times"])
    assert results["square"][0]["peer"]["best"] == min(r["best"] for r in results["square"][0]["against"].values())
    assert set(results["absent"]) == set(peers.absent())
