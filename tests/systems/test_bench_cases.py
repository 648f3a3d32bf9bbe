"""Blocks, attention and recurrent units as the benchmarks judge them: whole arrays at a time, no further off than the
analysis that looks at every term, and what lies outside is seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import isam
from benchmarks import near
from benchmarks.data import Judge, arrays_of
from benchmarks.kernels import kernel_of
from benchmarks.shapes import Case
from isam.ir.bounds import enclose

CASES = {
    "block": Case("block", tuple({"H": 3, "W": 3, "C": 17, "K": 18, "R": 3, "S": 3, "stride": 2}.items()), 5),
    "attention": Case("attention", tuple({"H": 2, "M": 6, "N": 19, "D": 17, "V": 5}.items()), 6),
    "gru": Case("gru", tuple({"T": 3, "B": 2, "X": 18, "H": 17}.items()), 7),
}
NARROW = {f"{name} in bf16": replace(case, kind="bf16") for name, case in CASES.items()}


@pytest.mark.parametrize("name", [*CASES, *NARROW])
def test_results_lie_within_bounds_and_others_do_not(name: str):
    case = {**CASES, **NARROW}[name]
    kernel, sizes = kernel_of(case)
    arrays = arrays_of(case)
    judge = Judge.case(case, arrays)
    got = isam.compile(kernel, on="host", sizes=sizes)(**arrays)
    assert judge.wrong(got) is None
    value, bound = judge.expected(got)
    off = got.copy()
    at = np.unravel_index(int(np.argmin(bound)), bound.shape)
    off[at] = value[at] + 2 * bound[at]
    assert judge.wrong(off) is not None
    off = got.copy()
    off[at] = np.nan
    assert judge.wrong(off) is not None


@pytest.mark.parametrize("name", ["block", "attention"])
def test_bounds_are_those_of_the_analysis_term_by_term(name: str):
    case = CASES[name]
    kernel, sizes = kernel_of(case)
    arrays = arrays_of(case)
    want, most = enclose(kernel, arrays, sizes)["Y"]
    value, bound = Judge.case(case, arrays).expected(want)
    assert np.allclose(value, want, rtol=1e-12, atol=1e-12)
    inside = most > 0
    assert (bound[inside] <= 2 * most[inside]).all()
    assert (most[inside] <= 4 * bound[inside]).all()


def test_every_step_is_judged_from_the_state_before_it():
    """Of one step the bounds are those of the analysis term by term; a wrong state is seen where it arises."""
    case = Case("gru", tuple({"T": 1, "B": 2, "X": 18, "H": 17}.items()), 7)
    kernel, sizes = kernel_of(case)
    arrays = arrays_of(case)
    want, most = enclose(kernel, arrays, sizes)["Y"]
    made = near.Gru(arrays, 4.0).of(want.astype(np.float32))
    assert np.allclose(made.value, want, rtol=1e-12, atol=1e-12)
    assert (made.bound <= 2 * most).all()
    assert (most <= 4 * made.bound).all()

    case = CASES["gru"]
    kernel, sizes = kernel_of(case)
    arrays = arrays_of(case)
    got = isam.compile(kernel, on="host", sizes=sizes)(**arrays)
    got[1, 1, 3] += 1e-3
    value, bound = Judge.case(case, arrays).expected(got)
    assert [tuple(map(int, at)) for at in np.argwhere(abs(got - value)[:2] > bound[:2])] == [(1, 1, 3)]
