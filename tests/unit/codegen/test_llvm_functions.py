"""Approximated functions over the whole range of their dtype: the declared error in ulp holds."""

from __future__ import annotations

import re

import numpy as np
import pytest

from isam.ir.dtype import numpy_dtype
from isam.system.features import lacking
from isam.system.graph import System
from isam.system.load import load_system
from tests import campaign_functions
from tests.campaign_functions import FUNCTIONS, doubles, exact, main, missed, parts, worst
from tests.erf_table import table
from tests.native import run
from tests.values import special, ulps
from tests.vectors import mapped


def samples(name: str, dtype: str) -> np.ndarray:
    """Random bits (each exponent equally often), dense where the function bends, the ends of the range."""
    rng = np.random.default_rng(3)
    if dtype == "f64":
        limits = np.array([-745.1332191019412, -708.3964185322641, 709.782712893384, 710, -746, 22, 2**-0.5, 2**0.5])
        near = [np.nextafter(limits, q) for q in (-999, 999)]
        return np.concatenate([*doubles(1, 1 << 13), *near, special("f64")])
    if dtype in ("f16", "bf16"):
        return np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype(dtype))  # all of them
    bits = rng.integers(0, 2**32, 1 << 18, np.uint64).astype(np.uint32)
    dense = [rng.uniform(-a, a, 1 << 15).astype(np.float32) for a in (1e-3, 1, 10, 110)]
    limits = np.array([-104, -103.97208, -87.33655, 88.72284, 89], np.float32)
    near = [np.nextafter(limits, np.float32(q)) for q in (-999, 999)]
    around_one = rng.uniform(0.7, 1.45, 1 << 15).astype(np.float32)
    # of all f32 those that exp, then sigmoid, is or was farthest off at (python -m tests.campaign_functions)
    farthest = np.array([-5.8570795, -59.92188, 26.728634, -3.436106], np.float32)
    return np.concatenate([bits.view(np.float32), *dense, *near, special("f32"), farthest, around_one])


@pytest.mark.parametrize("dtype", ["f64", "f32", "f16", "bf16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_declared_error(name: str, dtype: str) -> None:
    system = load_system("host")
    instruction = system.instructions[f"{name}_v_{dtype}"]
    x = samples(name, dtype)
    got = run(mapped(system, instruction, len(x)), {"A": x, "D": np.zeros_like(x)})["D"]
    with np.errstate(all="ignore"):
        want = exact(name, x.astype(np.longdouble if dtype == "f64" else np.float64))
    away = np.where(missed(got, want), np.inf, ulps(got, want, dtype))
    at = int(np.argmax(away))
    assert 0 < instruction.ulp <= 3
    assert away[at] <= instruction.ulp, f"{name}({x[at]!r}) = {got[at]!r}: {away[at]:.2f} ulp"
    assert away[at] > 0.3, "nothing was measured"


def test_the_numbers_that_exp_looks_up():
    """Powers of two to multiples of 1/16, rounded once."""
    text = load_system("host-avx512").facts["snippets_exp"]["exp.f32"]
    (looked_up,) = re.findall(r"permvar\S+\(\$f32 \$f32\(([^)]*)\)", text)
    have = np.array([float(v) for v in looked_up.split(",")]).astype(np.float32)
    assert np.array_equal(have, np.exp2(np.arange(16) / 16).astype(np.float32))


NARROW = [*((n, "f32") for n in FUNCTIONS if n != "rsqrt"), *((n, "f64") for n in FUNCTIONS if n != "rsqrt")]


@pytest.mark.parametrize(("name", "dtype"), NARROW)
@pytest.mark.parametrize("system_name", ["host-avx2", "host-generic"])
def test_narrower_vectors_keep_the_error(name: str, dtype: str, system_name: str) -> None:
    system = _able(system_name)
    instruction = system.instructions[f"{name}_v_{dtype}"]
    x = samples(name, dtype)[-150_001:]
    got = run(mapped(system, instruction, len(x)), {"A": x, "D": np.zeros_like(x)})["D"]
    with np.errstate(all="ignore"):
        want = exact(name, x.astype(np.longdouble if dtype == "f64" else np.float64))
    assert not missed(got, want).any()
    assert ulps(got, want, dtype).max() <= instruction.ulp


def _able(name: str) -> System:
    system = load_system(name)
    if missing := lacking(system.needs):
        pytest.skip(f"this CPU lacks {', '.join(missing)}")
    return system


@pytest.mark.parametrize(("dtype", "bits", "wide"), [("f32", 32, np.float64), ("f64", 64, np.longdouble)])
@pytest.mark.parametrize("system_name", ["host", "host-avx2", "host-generic"])
def test_powers(system_name: str, dtype: str, bits: int, wide: type) -> None:
    """Bases and exponents that C has special cases for, each with each; random bits; results all over the range."""
    system, rng, n, to = _able(system_name), np.random.default_rng(4), 1 << 14, numpy_dtype(dtype).type
    more, last = [4, 5, 2**31, 1.5, 1 / 3], 2 ** (24 if bits == 32 else 53)
    near_one = [1 - to(1) / last, 1 + to(2) / last]
    edges = np.array([*special(dtype), *more, last - 1, last, last + 2, last / 2 + 1, last / 2 - 0.5, *near_one], to)
    edges = np.concatenate([edges, -edges])
    drawn = rng.integers(0, 2**bits, (2, n), np.uint64).astype(f"u{bits // 8}").view(to)
    low, high = (-150, 130) if bits == 32 else (-1080, 1026)
    base = np.exp(rng.uniform(low, high, n) * 0.6 * np.exp2(-rng.integers(0, 50, n))).astype(to)
    base[base == 1] = near_one[0]
    exponent = (rng.uniform(low, high, n) / np.log2(base.astype(wide))).astype(to)
    x = np.concatenate([np.repeat(edges, len(edges)), drawn[0], base, -base])
    y = np.concatenate([np.tile(edges, len(edges)), drawn[1], exponent, rng.integers(-20, 20, n).astype(to)])
    instruction = system.instructions[f"pow_vv_{dtype}"]
    got = run(mapped(system, instruction, len(x)), {"A": x, "B": y, "D": np.zeros_like(x)})["D"]
    with np.errstate(all="ignore"):
        want = np.power(x.astype(wide), y.astype(wide))
    assert not missed(got, want).any()
    assert ulps(got, want, dtype).max() <= instruction.ulp


def test_the_table_of_the_error_function_is_what_was_fitted() -> None:
    rows = (f"$f32({', '.join(map(str, half))})" for row in table() for half in (row[:16], row[16:]))
    text = "".join(load_system("host-avx512").facts["snippets_erf"].values())
    assert [r for r in rows if r not in text] == []


def test_the_measure_itself() -> None:
    one = np.float32(1)
    up = np.nextafter(one, np.float32(2))
    assert ulps(np.array([up]), np.array([1.0]), "f32")[0] == 1
    assert ulps(np.array([np.inf], np.float32), np.array([3.4028235e38]), "f32")[0] > 0
    assert ulps(np.array([np.inf], np.float32), np.array([1e39]), "f32")[0] == 0
    assert ulps(np.array([np.nan], np.float32), np.array([1.0]), "f32")[0] == np.inf
    assert ulps(np.array([1.4e-45], np.float32), np.array([0.0]), "f32")[0] == pytest.approx(1, rel=0.01)


def test_zeros_of_the_other_sign_infinities_and_nan_are_missed() -> None:
    want = np.array([0.0, -0.0, -1e-99, np.inf, -np.inf, np.nan, 1.0, 1.0, np.nan, np.inf])
    with np.errstate(all="ignore"):
        assert not missed(want.astype(np.float32), want).any()
    other = np.array([-0.0, 0.0, 0.0, 3.4e38, np.inf, 1.0, np.nan, 2.0, np.nan, np.nan], np.float32)
    assert missed(other, want).tolist() == [True] * 7 + [False, False, True]


def test_the_campaign_finds_the_one_argument_that_is_far_off(monkeypatch: pytest.MonkeyPatch) -> None:
    at = np.float32(1.5)
    bits = range(0x3FBF0000, 0x3FC00001)

    def off(x: np.ndarray) -> np.ndarray:
        y = exact("exp", x.astype(np.float64)).astype(np.float32)
        return np.where(x == at, y + 5 * np.spacing(y), y)

    found = worst("exp", off, parts(bits))
    assert found.x == at
    assert 4.5 < found.off < 5.5
    assert main(["exp", "--bits", "0x3FBF0000:0x3FC00001"]) == 0
    monkeypatch.setattr(campaign_functions, "compiled", lambda name, on, dtype: off)
    assert main(["exp", "--bits", "0x3FBF0000:0x3FC00001"]) == 1
    assert main(["exp", "--bits", "0x3FBF0000:0x3FC00000"]) == 0, "what a part is filled up with is none of these"
