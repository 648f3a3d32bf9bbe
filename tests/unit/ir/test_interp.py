"""The interpreter against independent references, and the small print of its semantics."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from isam.diagnostics import IsamError
from isam.ir.bounds import enclose, outside
from isam.ir.interp import run
from isam.ir.kernel import Kernel
from isam.ir.text import parse
from tests.clock import quickest
from tests.corpus import CASES, SURFACE, random_arrays


def in_f64(k: Kernel) -> Kernel:
    """The same kernel with f64 for f32: rounding is then no excuse."""
    return replace(k, buffers=tuple(replace(b, dtype="f64") if b.dtype == "f32" else b for b in k.buffers))


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if c.reference])
def test_corpus_equals_reference(name):
    case = CASES[name]
    k = in_f64(case.load())
    for seed, sizes in enumerate(case.sizes):
        arrays = random_arrays(k, sizes, seed)
        before = {n: a.copy() for n, a in arrays.items()}
        got, want = run(k, arrays, sizes), case.expected(arrays, sizes)
        assert want is not None
        assert got.keys() == want.keys()
        # what is enclosed lies within the bound of the true value, and so does the reference, whatever its order
        near = {n: (value, 2 * bound) for n, (value, bound) in enclose(k, arrays, sizes).items()}
        for n, w in want.items():
            assert got[n].shape == np.shape(w), (sizes, n)
            if got[n].dtype == np.float64:
                assert outside({n: w}, {n: near[n]}) is None, (sizes, n)
                assert outside({n: got[n]}, {n: near[n]}) is None, (sizes, n)
            else:
                np.testing.assert_array_equal(got[n].astype(np.float64), w)
        for n, a in arrays.items():
            np.testing.assert_array_equal(a, before[n])  # inputs are never modified


@pytest.mark.parametrize("name", ["matmul", "conv2d", "sepconv", "conv_same", "padded_conv2d_temp", "conv2d_bf16",
                                  "triangular", "max_pool", "reductions", "transposed_conv1d"])  # fmt: skip
def test_whole_numbers_are_exact_in_f32(name):
    case = CASES[name]
    sizes = case.sizes[0]
    arrays = random_arrays(case.load(), sizes, 3, whole=True)
    want = case.expected({n: a.astype(np.float64) for n, a in arrays.items()}, sizes)
    assert want is not None
    for n, w in run(case.load(), arrays, sizes).items():
        np.testing.assert_array_equal(w.astype(np.float64), want[n])


def test_every_surface_example_is_in_the_corpus():
    assert {c.kernel for c in CASES.values()} >= set(SURFACE)


def test_accumulation_takes_terms_in_lexicographic_order_with_one_rounding_each():
    k = parse("""
kernel k(M, N)
  in x: f32[N, M]
  inout s: f32[]
  forall i < M, j < N
    s[] += x[j, i]
""")
    assert isinstance(k, Kernel)
    x = (10.0 ** np.random.default_rng(0).uniform(-6, 6, (13, 11))).astype(np.float32)
    want = np.float32(3)
    for i in range(11):
        for j in range(13):
            want = np.float32(want + x[j, i])
    assert run(k, {"x": x, "s": np.float32(3) * np.ones((), np.float32)})["s"] == want


def test_order_holds_across_chunks(monkeypatch):
    import isam.ir.points as points

    case = CASES["matmul"]
    arrays = random_arrays(case.load(), case.sizes[-1], 1)
    whole = run(case.load(), arrays)["C"]
    for chunk in (7, 100, 1000):
        monkeypatch.setattr(points, "CHUNK", chunk)
        np.testing.assert_array_equal(run(case.load(), arrays)["C"], whole)
    tri = CASES["triangular"]
    arrays = random_arrays(tri.load(), tri.sizes[0], 1)
    want = run(tri.load(), arrays)["C"]
    monkeypatch.setattr(points, "CHUNK", 5)
    np.testing.assert_array_equal(run(tri.load(), arrays)["C"], want)


def unary(op: str, source: str, target: str, x) -> np.ndarray:
    k = parse(f"kernel k(N)\n  in x: {source}[N]\n  out y: {target}[N]\n  forall i < N\n    y[i] = {op}\n")
    assert isinstance(k, Kernel)
    return run(k, {"x": np.asarray(x)})["y"]


def test_integers_wrap_and_divide_towards_zero():
    x = np.array([-128, -7, -1, 0, 1, 7, 127], np.int8)
    np.testing.assert_array_equal(unary("x[i] + 1", "i8", "i8", x), [-127, -6, 0, 1, 2, 8, -128])
    np.testing.assert_array_equal(unary("-x[i]", "i8", "i8", x), [-128, 7, 1, 0, -1, -7, -127])
    np.testing.assert_array_equal(unary("x[i] / 2", "i8", "i8", x), [-64, -3, 0, 0, 0, 3, 63])
    np.testing.assert_array_equal(unary("x[i] / -1", "i8", "i8", x), [-128, 7, 1, 0, -1, -7, -127])
    np.testing.assert_array_equal(unary("9 / x[i]", "i8", "i8", x), [0, -1, -9, 0, 9, 1, 0])


def test_casts_wrap_or_saturate():
    x = np.array([-1e30, -129.9, -0.5, 2.5, 127.9, 300.7, 1e30, np.nan, np.inf], np.float32)
    np.testing.assert_array_equal(unary("i8(x[i])", "f32", "i8", x), [0, 127, 0, 2, 127, 44, 0, 0, 0])
    np.testing.assert_array_equal(unary("sat_i8(x[i])", "f32", "i8", x), [-128, -128, 0, 2, 127, 127, 127, 0, 127])
    np.testing.assert_array_equal(unary("sat_u8(x[i])", "f32", "u8", x), [0, 0, 0, 2, 127, 255, 255, 0, 255])
    y = np.array([-(2**31), -200, 200, 2**31 - 1], np.int32)
    np.testing.assert_array_equal(unary("i8(x[i])", "i32", "i8", y), [0, 56, -56, -1])
    np.testing.assert_array_equal(unary("sat_i8(x[i])", "i32", "i8", y), [-128, -128, 127, 127])


def test_narrow_floats_are_rounded_once():
    # 1 + 2^-8 + 2^-40: rounding to f32 first would make it a tie, and the tie would go down
    tie, bit = 1 + 2.0**-8, 2.0**-40
    x = np.array([tie + bit, -tie - bit, tie - bit, tie, np.inf, 1e300, 0, 1e-320])
    got = unary("bf16(x[i])", "f64", "bf16", x).astype(np.float64)
    np.testing.assert_array_equal(got, [1 + 2**-7, -1 - 2**-7, 1, 1, np.inf, np.inf, 0, 0])
    big = np.array([2**62 + 2**54 + 1, -(2**62 + 2**54 + 1), 2**62 + 2**54 - 1, 5, -1, 0], np.int64)
    got = unary("bf16(x[i])", "i64", "bf16", big).astype(np.float64)
    np.testing.assert_array_equal(got, [2**62 + 2**55, -(2**62 + 2**55), 2**62, 5, -1, 0])


@pytest.mark.parametrize("op", ["exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "sqrt", "rsqrt"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_functions_are_rounded_once(op, dtype):
    name = {np.float32: "f32", np.float16: "f16"}.get(dtype, "bf16")
    x = np.random.default_rng(1).uniform(0.1, 5, 200).astype(dtype)
    wide = unary(f"{op}(x[i])", "f64", "f64", x.astype(np.float64))
    np.testing.assert_array_equal(unary(f"{op}(x[i])", name, name, x), wide.astype(dtype))


def test_sigmoid_does_not_overflow():
    np.testing.assert_array_equal(unary("sigmoid(x[i])", "f64", "f64", np.array([-1000.0, 1000.0])), [0, 1])


def test_unwritten_elements_are_marked():
    k = parse("kernel k(N)\n  in x: f32[N]\n  out y: f32[N]\n  out z: i32[N]\n  forall i < N where 1 <= i\n"
              "    y[i] = x[i]\n    z[i] = 7\n")  # fmt: skip
    assert isinstance(k, Kernel)
    got = run(k, {"x": np.arange(3, dtype=np.float32)})
    assert np.isnan(got["y"][0])
    assert got["z"][0] == 0x5A5A5A5A
    held = run(k, {"x": np.arange(3, dtype=np.float32), "y": np.full(3, 9, np.float32)})
    np.testing.assert_array_equal(held["y"], [9, 1, 2])


def test_statement_reads_what_was_there_before_it():
    k = parse("kernel k(N)\n  inout x: f32[N]\n  forall i < N where 1 <= i\n    x[i] = x[i - 1]\n")
    assert isinstance(k, Kernel)
    np.testing.assert_array_equal(run(k, {"x": np.arange(5, dtype=np.float32)})["x"], [0, 0, 1, 2, 3])


@pytest.mark.parametrize(("arrays", "code"), [
    ({"A": np.zeros((2, 3), "f4")}, "I501"),
    ({"A": np.zeros((2, 3), "f4"), "B": np.zeros((4, 2), "f4")}, "I504"),
    ({"A": np.zeros((2, 3), "f8"), "B": np.zeros((3, 2), "f4")}, "I505"),
    ({"A": np.zeros((2, 3), "f4"), "B": np.zeros((3, 2), "f4"), "Q": np.zeros(1)}, "I506"),
])  # fmt: skip
def test_wrong_arrays_are_refused(arrays, code):
    with pytest.raises(IsamError) as e:
        run(CASES["matmul"].load(), arrays)
    assert code in {d.code for d in e.value.diagnostics}


STEPS = """kernel k(N, s=2)
  in x: f32[s * N]
  out y: f32[N]
  forall i < N
    y[i] = x[s * i]
"""


@pytest.mark.parametrize(("sizes", "hint"), [
    ({"N": 4, "s": 3}, "kernel.with_params(s=3)"), ({"N": 4, "n": 4}, "did you mean 'N'?"),
    ({"N": 4, "zzz": 1}, "open sizes: N"), ({5: 4}, "open sizes: N"),
])  # fmt: skip
def test_numbers_that_would_have_no_effect_are_refused(sizes, hint):
    k, x = parse(STEPS), np.arange(8, dtype=np.float32)
    for judge in (run, enclose):
        with pytest.raises(IsamError) as e:
            judge(k, {"x": x}, sizes)
        assert [(d.code, hint in d.hint) for d in e.value.diagnostics] == [("I509", True)]


def test_a_constant_is_no_size():
    k = parse(STEPS)
    np.testing.assert_array_equal(run(k, {"x": np.arange(8, dtype=np.float32)}, {"s": 2})["y"], [0, 2, 4, 6])
    assert k.with_sizes({"N": 4, "s": 2}) == k.with_sizes({"N": 4}) == k.with_sizes({"N": 4}).with_sizes({"N": 4})
    with pytest.raises(IsamError, match=r"I509.*'s' is a constant of kernel 'k' with the value 2, not 3"):
        k.with_sizes({"N": 4, "s": 3})


def test_sizes_that_follow_from_others_are_worked_out():
    k = parse("kernel k(T, Q = T // 4, R)\n  in x: f32[T]\n  in z: f32[Q + R]\n  out y: f32[Q]\n  forall i < Q\n"
              "    y[i] = x[4 * i] + z[i]\n")  # fmt: skip
    given = {"x": np.arange(9, dtype=np.float32), "z": np.ones(5, np.float32)}
    for sizes in ({}, {"Q": 2}, {"T": 9, "R": 3}):
        np.testing.assert_array_equal(run(k, given, sizes)["y"], [1, 5])
    y = np.zeros(3, np.float32)
    for wrong, sizes, code in (({}, {"T": 9, "Q": 3}, "I502"), ({}, {"Q": 1}, "I502"), ({"y": y}, {}, "I504")):
        with pytest.raises(IsamError) as e:
            run(k, {**given, **wrong}, sizes)
        assert [d.code for d in e.value.diagnostics] == [code]


def test_wrong_sizes_and_indices_are_refused():
    k = parse("kernel k(2 <= N <= 8)\n  in x: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = x[i + 1]\n")
    assert isinstance(k, Kernel)
    for n, code in ((1, "I502"), (9, "I502"), (4, "I507")):
        with pytest.raises(IsamError) as e:
            run(k, {"x": np.zeros(n, np.float32)})
        assert e.value.diagnostics[0].code == code
    assert e.value.diagnostics[0].loc.line == 5


def test_a_million_points_take_about_a_second_at_most():
    k = CASES["matmul"].load()
    sizes = {"M": 100, "N": 100, "K": 100}
    arrays = random_arrays(k, sizes)
    assert quickest(lambda: run(k, arrays), 1.0) < 1.0
