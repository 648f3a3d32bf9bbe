"""Awkward sizes on toy: 0, 1, primes, larger than any tile; other Approaches; run-time trips; integers bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import isam
from isam.approach.choice import Approach
from isam.codegen.simulator import simulate
from isam.diagnostics import IsamError
from isam.ir import interp
from isam.ir.dtype import numpy_dtype
from tests.corpus import CASES
from tests.pipeline import compiled, judge, simulated

TOY = simulated("toy")
ODD = ["matmul", "conv2d/stride=2,dilation=2", "softmax", "rnn", "conv_same", "cumulative", "lower_triangle"]
PAIRS = [(n, k) for n in ODD for k in range(1, len(CASES[n].small))]


@pytest.mark.parametrize(("name", "number"), PAIRS)
def test_awkward_sizes(name, number):
    case = CASES[name]
    sizes = case.small[number]
    judge(case.load(), sizes, compiled(case.load(), sizes, TOY), seed=number)


@pytest.mark.parametrize("name", ["matmul", "conv2d", "gelu_tanh", "gru_step"])
def test_first_fit_is_as_right(name):
    case = CASES[name]
    judge(case.load(), case.small[0], compiled(case.load(), case.small[0], TOY, Approach()))


def test_run_time_trips():
    rnn = CASES["rnn"].load()
    sizes = {"B": 2, "X": 5, "H": 3}
    job = compiled(rnn, sizes, TOY)
    assert [s.name for s in job.schedule.kernel.given] == ["T"]
    steps = [judge(rnn, sizes, job, seed=t, run_time={"T": t}).steps for t in (0, 1, 2, 3, 6)]
    grown = np.diff(steps)
    assert grown[0] > 0
    assert grown[1] == grown[2] == grown[3] // 3


@pytest.mark.parametrize("name", ["matmul_i8", "matmul_u8i8", "reductions_i32", "clamp_i8", "requantised_matmul"])
def test_integers_are_exact(name):
    case = CASES[name]
    kernel, sizes = case.load(), case.small[0]
    rng = np.random.default_rng(5)
    arrays = {}
    for b in kernel.with_sizes(sizes).arguments:
        if b.role != "out":
            d = numpy_dtype(b.dtype)
            low, high = (np.iinfo(d).min, np.iinfo(d).max) if d.kind in "iu" else (-4, 4)
            arrays[b.name] = rng.integers(low, high, [int(n) for n in b.shape]).astype(d)
    got = simulate(compiled(kernel, sizes, TOY).schedule, arrays)
    want = interp.run(kernel, arrays, sizes)
    for n, expected in want.items():
        np.testing.assert_array_equal(got[n], expected)


def test_what_no_instruction_does_is_refused_with_the_reason():
    with pytest.raises(IsamError) as e:
        isam.compile(CASES["matmul"].load(), on="tiny", sizes={"M": 4, "N": 4, "K": 4})
    assert e.value.diagnostics[0].code == "uncovered"
    assert "write a constant" in str(e.value)
    assert "instruction" in str(e.value)


def test_replaying_a_trace_gives_the_same_bytes():
    case = CASES["conv2d"]
    fn = isam.compile(case.load(), on=TOY, sizes=case.small[0], check=False)
    again = isam.compile(case.load(), on=TOY, sizes=case.small[0], check=False, replay=fn.trace)
    assert again.artifact.to_bytes() == fn.artifact.to_bytes()
    with pytest.raises(IsamError, match="trace-differs"):
        isam.compile(CASES["matmul"].load(), on=TOY, sizes=CASES["matmul"].small[0], check=False, replay=fn.trace)


def test_loaded_artifacts_of_simulated_machines_run(tmp_path):
    case = CASES["matmul"]
    sizes = case.small[0]
    fn = isam.compile(case.load(), on=TOY, sizes=sizes, check=False)
    fn.save(tmp_path / "m.isa")
    r = np.random.default_rng(1)
    a = r.normal(size=(sizes["M"], sizes["K"])).astype(np.float32)
    b = r.normal(size=(sizes["K"], sizes["N"])).astype(np.float32)
    np.testing.assert_array_equal(isam.load(tmp_path / "m.isa")(a, b), fn(a, b))
