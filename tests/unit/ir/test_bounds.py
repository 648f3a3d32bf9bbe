"""Derived error bounds: wide enough for every legal evaluation, narrow enough to notice a wrong one."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from isam.ir.arithmetic import Numbers
from isam.ir.bounds import Rounding, enclose, outside
from isam.ir.dtype import numpy_dtype
from isam.ir.interp import run
from isam.ir.kernel import Kernel
from isam.ir.points import Memory, execute
from isam.ir.text import parse
from tests.corpus import CASES, multilinear_bounds, random_arrays
from tests.mutators import permute_axes, reorder_statements, swap_operands
from tests.random_kernels import Seeded, random_kernel, show


def narrowed(k: Kernel, dtype: str) -> Kernel:
    return replace(k, buffers=tuple(replace(b, dtype=dtype) if b.dtype == "f32" else b for b in k.buffers))


@pytest.mark.parametrize("name", [n for n in CASES if "dilation" not in n])
def test_the_interpreter_and_any_order_lie_within(name):
    for seed, sizes in enumerate(CASES[name].sizes):
        k = CASES[name].load()
        arrays = random_arrays(k, sizes, seed)
        box = enclose(k, arrays, sizes)
        assert outside(run(k, arrays, sizes), box) is None
        if "exact" not in k.permits:
            for mutate in (permute_axes, swap_operands, reorder_statements):
                assert outside(run(mutate(k, Seeded(seed)).kernel, arrays, sizes), box) is None


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("name", ["matmul", "softmax", "layer_norm", "gelu_tanh", "gru_step", "chain", "reductions"])
def test_narrow_dtypes_lie_within(name, dtype):
    k, sizes = narrowed(CASES[name].load(), dtype), CASES[name].sizes[0]
    arrays = random_arrays(k, sizes, 2)
    assert outside(run(k, arrays, sizes), enclose(k, arrays, sizes)) is None


def test_random_kernels_lie_within():
    for seed in range(300):
        k, sizes = random_kernel(seed)
        arrays = random_arrays(k, sizes, seed)
        with np.errstate(all="ignore"):
            fault = outside(run(k, arrays, sizes), enclose(k, arrays, sizes))
        assert fault is None, fault + "\n" + show(k, sizes)


@pytest.mark.parametrize(("name", "most"), [("matmul", 1e-4), ("conv2d", 1e-4), ("softmax", 1e-4), ("attention", 1e-3),
                                            ("gru", 1e-3), ("layer_norm", 1e-3), ("gelu_erf", 1e-5)])  # fmt: skip
def test_bounds_are_useful(name, most):
    k, sizes = CASES[name].load(), CASES[name].sizes[0]
    found = enclose(k, random_arrays(k, sizes, 4), sizes)
    assert set(found) == {b.name for b in k.arguments if b.role in ("out", "inout")} != set()
    for value, bound in found.values():
        assert bound.max() < most * max(1, abs(value).max())


@pytest.mark.parametrize("name", ["matmul", "conv2d", "softmax", "attention", "gru", "lstm_step", "conv_same"])
def test_one_wrong_element_is_noticed(name):
    k, sizes = CASES[name].load(), CASES[name].sizes[0]
    arrays = random_arrays(k, sizes, 5)
    box = enclose(k, arrays, sizes)
    for buffer, a in run(k, arrays, sizes).items():
        bad = a.copy()
        bad.reshape(-1)[a.size // 2] += np.float32(0.01)
        fault = outside({**run(k, arrays, sizes), buffer: bad}, box)
        assert fault is not None
        assert buffer in fault
        assert "1 of" in fault


def one(text: str, **arrays):
    k = parse(text)
    assert isinstance(k, Kernel)
    (found,) = enclose(k, {n: np.asarray(a) for n, a in arrays.items()}).values()
    return found


def test_whole_numbers_need_no_bound():
    k, sizes = CASES["matmul_i8"].load(), CASES["matmul_i8"].sizes[0]
    arrays = random_arrays(k, sizes, 1)
    value, bound = enclose(k, arrays, sizes)["C"]
    assert not bound.any()
    assert np.array_equal(value, run(k, arrays)["C"])
    text = "kernel k(N)\n in x: i8[N]\n out y: i8[N]\n forall i < N\n  y[i] = x[i] * 3\n"
    wrapped = one(text, x=np.array([100, -50], np.int8))
    assert wrapped[0].tolist() == [44, 106]


def test_doubt_is_kept():
    """A comparison of what is only nearly known, a rounding at a half, a division by what may be zero."""
    head = "kernel k(N)\n in x: f32[N]\n out y: f32[N]\n forall i < N\n"
    x = np.array([0.1, 5], np.float32)
    value, bound = one(head + "  t[i] = x[i] * 10\n  y[i] = select(t[i] < 1.0000000149011612, 7, 3)\n", x=x)
    assert bound[0] >= 4
    assert (value[1], bound[1]) == (3, 0)
    value, bound = one(head + "  t[i] = x[i] * 5\n  y[i] = round(t[i])\n", x=x)
    assert bound[0] >= 1  # 0.5 or a little more
    assert bound[1] < 1e-4
    value, bound = one(head + "  t[i] = x[i] * 3\n  y[i] = 1 / (t[i] - 15)\n", x=x)
    assert np.isfinite(bound[0])
    assert bound[1] == np.inf
    big = one(head + "  y[i] = exp(x[i]) * exp(x[i])\n", x=np.array([50.0, 1], np.float32))
    assert big[1][0] == np.inf
    assert big[1][1] < 1e-4


@pytest.mark.parametrize(("name", "over"), [("matmul", "K"), ("conv2d", "CRS"), ("conv2d_nhwc/stride=2", "CRS"),
                                            ("batched_matmul", "K"), ("bias_relu_matmul", "K")])  # fmt: skip
def test_bounds_from_references_agree_with_the_walk(name, over):
    case = CASES[name]
    for sizes in (case.sizes[0], case.sizes[-1]):
        arrays = random_arrays(case.load(), sizes, 6)
        terms = int(np.prod([sizes[n] for n in over]))
        quick, slow = multilinear_bounds(case, arrays, sizes, terms), enclose(case.load(), arrays, sizes)
        assert outside(run(case.load(), arrays, sizes), quick) is None
        for n, (value, bound) in quick.items():
            assert (abs(value - slow[n][0]) <= bound * 2.0**-29).all()  # the bound of f32, for sums in f64
            assert (bound >= slow[n][1] / 4).all()
            assert (bound < 1e-4 * max(1, abs(value).max())).all()


def test_integers_wrap_as_the_machine_does():
    """Negation and abs leave the range of narrow integers: -2 in u8 is 254, abs(-128) in i8 is -128."""
    k = parse("kernel k(N)\n  in x: u8[N]\n  in s: i8[N]\n  out y: u8[N]\n  out z: i8[N]\n  forall i < N\n"
              "    y[i] = -x[i]\n    z[i] = abs(s[i])\n")  # fmt: skip
    assert isinstance(k, Kernel)
    arrays = {"x": np.array([0, 2, 255], np.uint8), "s": np.array([-128, 5, -5], np.int8)}
    box = enclose(k, arrays, {"N": 3})
    assert outside(run(k, arrays, {"N": 3}), box) is None
    assert box["y"][0].tolist() == [0, 254, 1]
    assert box["z"][0].tolist() == [-128, 5, 5]


def test_integer_products_wrap_exactly():
    """A campaign's finding: 39 to the 78th leaves f64 long before it has wrapped."""
    k = parse("kernel p(N)\n  in  x: i32[N]\n  out y: i32[1]\n  forall i < 1\n    y[i] = 1\n"
              "  forall i < 1, j < N\n    y[i] *= x[j]\n")  # fmt: skip
    arrays = {"x": np.full(78, -39, np.int32) + np.arange(78, dtype=np.int32) % 2 * 2}
    value, bound = enclose(k, arrays)["y"]
    assert value[0] == run(k, arrays)["y"][0] != 0
    assert bound[0] == 0


def totals(op: str, first: float, dtype: str, *terms: float):
    """Value and bound of the terms reduced in one go."""
    head = f"kernel t(N)\n  in x: {dtype}[N]\n  out y: {dtype}[1]\n"
    text = f"{head}  y[0] = {first}\n  forall i < N\n    y[0] {op}= x[i]\n"
    value, bound = one(text, x=np.array(terms, numpy_dtype(dtype)))
    return float(value[0]), float(bound[0])


def test_what_every_order_makes_infinite_or_nan_is_demanded():
    inf = np.inf
    for op, first, terms, want in (
        ("+", 0, (1, inf, -5), inf), ("+", 0, (1, -inf), -inf), ("+", 0, (inf, -inf), np.nan),
        ("+", 0, (np.nan, 1), np.nan), ("*", 1, (2, -inf, 3), -inf), ("*", 1, (0, 3, inf), np.nan),
        ("*", 1, (np.nan, 2), np.nan),
    ):  # fmt: skip
        value, bound = totals(op, first, "f32", *terms)
        assert np.isfinite(bound)
        box = {"y": (np.array([value]), np.array([bound]))}
        assert outside({"y": np.array([want], np.float32)}, box) is None
        for wrong in {inf, -inf, 7.0, np.nan} - {want}:
            if not (np.isnan(wrong) and np.isnan(want)):
                assert outside({"y": np.array([wrong], np.float32)}, box) is not None


@pytest.mark.parametrize(("op", "first", "dtype", "terms"), [
    ("+", 0, "f32", (3e38, -3e38, 3e38, -3e38)), ("+", 0, "f16", (60000, 60000, -60000)),
    ("*", 1, "f32", (1e30, 1e30, 1e-30, 1e-30)), ("*", 1, "f64", (1e-200, 1e-200, 1e200, 1e200)),
    ("*", 1, "f32", (1e30, 0, 1e30))])  # fmt: skip
def test_an_order_that_leaves_the_range_leaves_everything_open(op, first, dtype, terms):
    assert totals(op, first, dtype, *terms)[1] == np.inf


def test_what_may_be_anything_may_be_nan():
    head = "kernel t(N)\n  in x: f32[N]\n  out y: f32[N]\n  forall i < N\n"
    text = head + "    y[i] = sigmoid(1 / (x[i] * 0.1 - x[i] * 0.1))\n"
    assert not np.isfinite(one(text, x=np.ones(1, np.float32))[1]).any()


def test_exact_products_of_infinities_are_demanded():
    text = "kernel t(N)\n  in x: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = x[i] * 2\n"
    value, bound = one(text, x=np.array([np.inf, -np.inf, np.nan, 1], np.float32))
    np.testing.assert_array_equal(value, [np.inf, -np.inf, np.nan, 2])
    assert np.isfinite(bound).all()


def test_a_product_that_overflows_may_stay_finite_where_it_is_contracted():
    text = "kernel t(N)\n  in x: f64[N]\n  out y: f64[N]\n  forall i < N\n    y[i] = x[i] * x[i]\n"
    assert one(text, x=np.array([1e200, 2]))[1][0] == np.inf


def test_operands_below_the_normal_numbers_count_as_zero_where_that_is_permitted():
    text = "kernel t()\n{0}  in x: f32[1]\n  in y: f32[1]\n  out z: f32[1]\n  z[0] = x[0] * y[0]\n"
    given = {"x": np.array([1e-39], np.float32), "y": np.array([1e38], np.float32)}
    value, bound = one(text.format(""), **given)
    assert bound[0] < 1e-6 < abs(value[0])
    value, bound = one(text.format("  permits flush, contract\n"), **given)
    assert abs(value[0]) <= bound[0] < 1


def test_a_product_rounded_once_lies_within_the_bound_of_doubles_too():
    """The value that the bound stands around is a double as well, and rounded twice."""
    kernel = parse("kernel k(N)\n  in  a: f64[N]\n  in  b: f64[N]\n  out y: f64[N]\n"
                          "  forall i < N\n    y[i] = a[i] * b[i] + a[i]\n")  # fmt: skip
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 3000))
    once = [float(Fraction(x) * Fraction(y) + Fraction(x)) for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    enclosed = enclose(kernel, {"a": a, "b": b})
    assert outside({"y": np.array(once)}, enclosed) is None
    assert outside({"y": np.array(once) * (1 + 2.0**-50)}, enclosed) is not None


LARGE = np.array([2**53 + 1, -(2**53) - 3, 2**62 + 1, -(2**63), 2**63 - 1, 7, -1, 0], np.int64)
WIDE = {
    "wraps": "  out y: i64[N]\n  forall i < N\n    y[i] = x[i] * 31 + 1\n",
    "negated": "  out y: i64[N]\n  forall i < N\n    y[i] = abs(x[i]) - -x[i] / 3\n",
    "selected": "  out y: i64[N]\n  forall i < N\n    y[i] = select(x[i] > 400000000000000000, x[i], max(x[i], 3))\n",
    "sum": "  out y: i64\n  y[] = 0\n  forall i < N\n    y[] += x[i] * x[i]\n",
    "product": "  out y: i64\n  y[] = 1\n  forall i < N - 3\n    y[] *= x[i] + 2\n",
    "greatest": "  out y: i64\n  y[] = 5\n  forall i < N\n    y[] max= x[i]\n",
    "hash": "  out y: i64\n  y[] = 7\n  loop t < N\n    y[] = y[] * 31 + x[t]\n",
    "running": "  out y: i64[N]\n  temp s: i64\n  s[] = 1\n  loop t < N - 1\n    s[] *= 2 * x[t] + 1\n    y[t] = s[]\n"
    "  y[N - 1] = s[]\n",
    "prefix": "  out y: i64[N]\n  forall i < N\n    y[i] = x[i]\n  loop t < N - 1\n    y[t + 1] += y[t]\n",
    "narrowed": "  out y: i32[N]\n  forall i < N\n    y[i] = i32(x[i]) * 3\n",
    "saturated": "  out y: i32[N]\n  forall i < N\n    y[i] = sat_i32(x[i] + 1)\n",
    "there and back": "  out y: i64[N]\n  forall i < N\n    y[i] = i64(f64(x[i])) + 1\n",
    "narrow sums": "  out y: i32\n  y[] = 2147483647\n  forall i < N\n    y[] += i32(x[i])\n",
    "there and back of 32 bits": "  out y: i32[N]\n  forall i < N\n    y[i] = i32(f64(i32(x[i]))) + 1\n",
}  # fmt: skip


@pytest.mark.parametrize("name", WIDE)
def test_integers_are_exact_and_wrap(name):
    """A user's finding: beyond 2^53 correct code was accused, and code with a wrong last digit was not."""
    k = parse("kernel k(4 <= N)\n  in x: i64[N]\n" + WIDE[name])
    assert isinstance(k, Kernel)
    want = run(k, {"x": LARGE})
    box = enclose(k, {"x": LARGE})
    assert not box["y"][1].any()
    assert np.array_equal(box["y"][0], want["y"])
    assert outside(want, box) is None
    for last in {1, 2**20}:
        bad = want["y"].copy()
        bad.reshape(-1)[-1] ^= last
        wrong, right = bad.reshape(-1)[-1], want["y"].reshape(-1)[-1]
        assert f"is {wrong}, expected {right}; 1 of" in str(outside({"y": bad}, box))


def test_an_integer_in_doubt_that_may_wrap_is_any():
    head = "kernel t(N)\n  in x: f32[N]\n  in w: i64[N]\n  out y: i64[N]\n  forall i < N\n"
    x, w = np.array([0.3, 0.3, 5], np.float32), np.array([2**62 + 1, 3, 2**40 + 1], np.int64)
    text = head + "    t[i] = i64(round(x[i] * 5))\n    y[i] = t[i] * w[i]\n"  # 1.5, or a little more; 25
    value, bound = one(text, x=x, w=w)
    assert value[2] == 25 * (2**40 + 1)
    assert bound.tolist() == [np.inf, bound[1], 0]
    assert 3 <= bound[1] < 4
    value, bound = one(head + "    t[i] = i64(round(x[i] * 5))\n    y[i] = t[i] + w[i]\n", x=x, w=w)
    assert value[2] == 2**40 + 26
    assert (bound[:2] == 1).all()
    value, bound = one(head + "    t[i] = i64(round(x[i] * 5))\n    y[i] = t[i] + w[i]\n", x=x[:1], w=LARGE[4:5] - 1)
    assert bound[0] == np.inf


def test_integers_as_floats_are_rounded_once_or_not_at_all():
    head = "kernel t(N)\n  in x: i64[N]\n  out y: {0}[N]\n  forall i < N\n    y[i] = {0}(x[i])\n"
    x = np.array([2**53 + 1, 2**24 + 1, 2**24, 0], np.int64)
    value, bound = one(head.format("f64"), x=x)
    assert value.tolist() == [2.0**53, 2**24 + 1, 2**24, 0]
    assert not bound.any()
    value, bound = one(head.format("f32"), x=x)
    assert bound[1] >= 1
    assert not bound[2:].any()


def test_what_nobody_wrote_is_demanded_of_no_integer():
    text = "kernel t(N)\n  in x: i64[N]\n  out y: i64[N + 1]\n  forall i < N\n    y[i] = x[i]\n"
    value, bound = one(text, x=LARGE[:2])
    assert value[:2].tolist() == LARGE[:2].tolist()
    assert bound.tolist() == [0, 0, np.inf]


@pytest.mark.parametrize("numbers", [Numbers(), Rounding(4.0)], ids=["interpreter", "bounds"])
def test_a_step_costs_what_it_touches(numbers):
    """However large the arrays are: a loop over all elements was quadratic."""
    k = parse("kernel t(N, T)\n  in x: i64[N]\n  inout y: i64[N]\n  loop t < T\n    y[t + 1] += y[t]\n"
              "    y[t + 1] = y[t + 1] * x[t]\n")  # fmt: skip
    assert isinstance(k, Kernel)
    n = 1 << 18
    kept = np.complex128 if isinstance(numbers, Rounding) else np.int64
    memory = Memory({"x": np.zeros(n, kept), "y": np.zeros(n, kept)}, {"x": "i64", "y": "i64"})
    tracemalloc.start()
    execute(k, memory, {"N": n, "T": 3}, numbers)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n
