"""One kernel, every machine: the same whole numbers bit by bit, from descriptions alone."""

from __future__ import annotations

import numpy as np
import pytest

import isam
from benchmarks.gemmini import PRODUCT
from isam.ir.text import parse_kernel
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


STRIDED = """kernel strided(H, V, C, K, step=2)
  in    x: i8[step * H + 1, step * V + 1, C]
  const w: i8[2, 2, C, K]
  out   y: i32[H, V, K]
  forall h < H, v < V, k < K
    y[h, v, k] = 0
  forall h < H, v < V, k < K, r < 2, s < 2, c < C
    y[h, v, k] += i32(x[step * h + r, step * v + s, c]) * i32(w[r, s, c, k])
"""
PRODUCTS = {"casestudy": "mma_", "gemmini": "compute_", "dual": "b_mm_i8", "pe_array": "mac_i8", "toy_pair": "mm4_i8"}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize(("step", "sizes"), [(2, (7, 6, 16, 9)), (2, (4, 5, 5, 8)), (3, (4, 3, 3, 20)),
                                             (4, (3, 5, 8, 4))])  # fmt: skip
def test_bytes_that_are_read_some_apart_go_through_blocks(name: str, step: int, sizes: tuple[int, ...]) -> None:
    """Rows of a block lie a whole number of bytes apart per element of the image, with gaps where that does not fill
    them."""
    h, v, c, k = sizes
    rng = np.random.default_rng(step)
    x = rng.integers(-128, 128, (step * h + 1, step * v + 1, c), dtype=np.int8)
    w = rng.integers(-128, 128, (2, 2, c, k), dtype=np.int8)
    want = sum(np.einsum("hvc,ck->hvk", x[r : r + step * h : step, s : s + step * v : step].astype(np.int32),
                         w[r, s].astype(np.int32)) for r in range(2) for s in range(2))  # fmt: skip
    kernel = parse_kernel(STRIDED.replace("step=2", f"step={step}"))
    fn = isam.compile(kernel, on=name, sizes={"H": h, "V": v, "C": c, "K": k}, cache=False)
    assert f"\n  {PRODUCTS[name]}" in fn.report()
    np.testing.assert_array_equal(fn(x, w), want)
