"""The kernels of the suite are well-formed and compute what their references say."""

from __future__ import annotations

import numpy as np
import pytest

from isam.ir.bounds import enclose, outside
from isam.ir.interp import run
from isam.ir.verify import verify
from tests.corpus import random_arrays
from tests.suite import SUITE


def test_there_are_enough_and_every_one_has_a_reference():
    assert len({m.kernel for m in SUITE.values()}) >= 60
    assert [m.name for m in SUITE.values() if m.reference is None] == []


@pytest.mark.parametrize("name", SUITE)
def test_the_interpreter_agrees_with_the_reference(name: str):
    member = SUITE[name]
    kernel = member.load()
    assert not verify(kernel), [str(d) for d in verify(kernel)]
    arrays = random_arrays(kernel, member.sizes, 7)
    got = run(kernel, arrays, member.sizes)
    wide = {n: np.asarray(a, np.float64) for n, a in arrays.items()}
    want = member.reference(wide, member.sizes, dict(kernel.params))
    for n in want:
        assert np.asarray(want[n]).shape == got[n].shape, n
        assert np.isfinite(want[n]).all(), n
    enclosed = enclose(kernel, arrays, member.sizes)
    assert outside({n: np.asarray(want[n]) for n in want}, {n: enclosed[n] for n in want}) is None
    assert outside(got, enclosed) is None
