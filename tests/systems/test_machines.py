"""One kernel, every machine: the same whole numbers bit by bit, from descriptions alone."""

from __future__ import annotations

import numpy as np
import pytest

import isam
from benchmarks.gemmini import PRODUCT
from isam.system.check import check
from isam.system.load import load_system

MACHINES = ("casestudy", "gemmini", "tpu_v1_like", "systolic", "dual", "toy_pair", "toy_grid",
            "pe_array")


@pytest.mark.parametrize("name", MACHINES)
def test_descriptions_are_whole(name: str) -> None:
    machine = load_system(name)
    assert machine.backend == ("stream" if name == "gemmini" else "simulator")
    assert check(machine, bodies=True) == []
    assert machine.assumed == ()


@pytest.mark.parametrize("sizes", [(1, 1, 1), (16, 16, 16), (37, 50, 41)])
def test_one_source_on_six_machines(sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    rng = np.random.default_rng(m)
    a = rng.integers(-128, 128, (m, k), dtype=np.int8)
    b = rng.integers(-128, 128, (k, n), dtype=np.int8)
    want = a.astype(np.int32) @ b.astype(np.int32)
    for name in MACHINES:
        got = isam.compile(PRODUCT, on=name, sizes={"M": m, "N": n, "K": k})(a, b)
        np.testing.assert_array_equal(got, want, err_msg=name)
