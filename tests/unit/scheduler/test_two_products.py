"""Groups with two products: each has its register block and its panels; nests go where they share most loops."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import isam
from benchmarks.kernels import kernel_of
from benchmarks.shapes import ATTENTION
from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, Loop, Schedule, distinct
from isam.system.features import lacking
from isam.system.load import load_system
from tests.pipeline import compiled as compiled_kernel
from tests.pipeline import judge, simulated

TEXT = """
kernel weighted(H, M, N, D, V)
  in  Q: {T}[H, M, D]
  in  K: {T}[H, N, D]
  in  X: {T}[H, N, V]
  out Y: f32[H, M, V]
  temp p: f32[H, M, N]
  temp e: f32[H, M, N]
  temp w: {T}[H, M, N]
  temp s: f32[H, M]
  temp a: f32[H, M, V]
  permits reassociate, contract
  forall h < H, i < M, j < N
    p[h, i, j] = 0
  forall h < H, i < M, j < N, d < D
    p[h, i, j] += f32(Q[h, i, d]) * f32(K[h, j, d])
  forall h < H, i < M, j < N
    e[h, i, j] = max(p[h, i, j], 0) + 1
  forall h < H, i < M
    s[h, i] = 0
  forall h < H, i < M, j < N
    s[h, i] += e[h, i, j]
  forall h < H, i < M, j < N
    w[h, i, j] = {T}(e[h, i, j])
  forall h < H, i < M, v < V
    a[h, i, v] = 0
  forall h < H, i < M, v < V, j < N
    a[h, i, v] += f32(w[h, i, j]) * f32(X[h, j, v])
  forall h < H, i < M, v < V
    Y[h, i, v] = a[h, i, v] / s[h, i]
"""
DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16}
BITS = {"f32": 24, "bf16": 8}


def compiled(dtype: str, **sizes: int) -> isam.Function:
    return isam.compile(TEXT.replace("{T}", dtype), on="host", sizes=sizes, cache=False)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [
    {"H": 3, "M": 96, "N": 160, "D": 32, "V": 64}, {"H": 2, "M": 65, "N": 93, "D": 17, "V": 70},
    {"H": 1, "M": 5, "N": 300, "D": 8, "V": 16}, {"H": 2, "M": 128, "N": 128, "D": 1, "V": 1},
])  # fmt: skip
def test_two_products_are_as_in_double_precision(dtype, sizes):
    f = compiled(dtype, **sizes)
    draw = np.random.default_rng(1)
    q, k, x = (draw.uniform(-1, 1, [sizes[n] for n in names]).astype(DTYPES[dtype]) for names in ("HMD", "HND", "HNV"))
    p = np.einsum("hid,hjd->hij", q.astype(float), k.astype(float))
    e = np.maximum(p, 0) + 1
    share = e / e.sum(axis=2, keepdims=True)
    terms = np.einsum("hij,hjv->hiv", share, abs(x.astype(float)))
    bound = 2 * terms * (2.0 ** -BITS[dtype] + 2.0**-24 * sum(sizes.values()))
    got = np.asarray(f(q, k, x))
    assert (abs(got - np.einsum("hij,hjv->hiv", share, x.astype(float))) <= bound).all()


def schedule(dtype: str) -> Schedule:
    """With so many rows that all nests share loops."""
    if missing := lacking(load_system("host-avx512").needs):
        pytest.skip(f"this CPU lacks {', '.join(missing)}")
    sizes = {"H": 2, "M": 512, "N": 512, "D": 64, "V": 64}
    kernel = TEXT.replace("{T}", dtype)
    return isam.compile(kernel, on="host-avx512", sizes=sizes, cache=False).schedule


def test_the_second_product_keeps_as_many_sums_as_hide_their_latency():
    issues = [n for n in distinct(schedule("f32").call) if isinstance(n, Issue)]
    sums = {x.tile for n in issues for x in n.operands if n.instruction.startswith("fma") and x.tile.buffer == "a"}
    assert len(sums) > 8


def test_panels_of_a_batch_are_made_for_one_of_it_at_a_time():
    (size,) = re.findall(r"^  K\.\d+ +ram +(\d+)", str(schedule("f32")), re.M)
    assert int(size) <= 512 * (64 + 16) * 4, "all of K is twice as much"


def test_what_a_last_nest_does_not_need_joins_the_loop_before_it():
    """``w`` is made of ``e`` in the loop that makes it, and widened there for the second product, before the sums of
    lanes are added up: ``e`` and ``w`` are nowhere, but what ``w`` is widened to is."""
    text = str(schedule("bf16"))
    (wide,) = re.findall(r"cast_v_bf16_f32 +A=w, D=(\w+)", text)[:1]
    assert re.search(rf"^  {wide} +ram", text, re.M)
    assert not re.search(r"^  [ew] +ram", text, re.M)


def test_what_an_iteration_does_not_change_it_does_not_send_home():
    """Scores that wait in registers are stored before the loop that reads them, not in each of its iterations."""
    kernel, sizes = kernel_of(ATTENTION[0])
    call = compiled_kernel(kernel, sizes, simulated("host-avx512")).schedule.call
    loops = [n for n in distinct(call) if isinstance(n, Loop)]
    for loop in loops:
        inside = [n for n in distinct(loop.body) if isinstance(n, Issue)]
        made = {x.tile for n in inside for x in n.operands[-1:] if x.place.memory == "v"}
        sent = {x.tile for n in inside if n.is_move for x in n.operands[:1] if x.place.memory == "v"}
        assert sent <= made, loop.var
    assert loops


COMPLEX = """kernel complex(M, N, K)
  in  a: f32[2, M, K]
  in  b: f32[2, K, N]
  out y: f32[2, M, N]
  forall p < 2, i < M, j < N
    y[p, i, j] = 0
  forall i < M, j < N, k < K
    y[0, i, j] += a[0, i, k] * b[0, k, j]
  forall i < M, j < N, k < K
    y[0, i, j] += -(a[1, i, k] * b[1, k, j])
  forall i < M, j < N, k < K
    y[1, i, j] += a[0, i, k] * b[1, k, j]
  forall i < M, j < N, k < K
    y[1, i, j] += a[1, i, k] * b[0, k, j]
"""


@pytest.mark.parametrize("sizes", [{"M": 24, "N": 64, "K": 40}, {"M": 5, "N": 37, "K": 9}])
def test_two_products_have_a_loop_of_their_sum_each(sizes: dict[str, int]) -> None:
    """Results of one fill the registers: those of two in one loop came and went with every step, twice the time."""
    kernel = parse_kernel(COMPLEX)
    job = compiled_kernel(kernel, sizes, simulated("host-avx512"))
    judge(kernel, sizes, job)
    for loop in (n for n in distinct(job.schedule.call) if isinstance(n, Loop) and n.axis.startswith("k")):
        calls = (n for n in distinct(loop.body) if isinstance(n, Issue) and n.instruction.startswith(("fma", "fnma")))
        results = {(o.tile.start[0], o.tile.buffer) for c in calls for o in c.operands if o.name == "C"}
        assert len(results) == 1, loop.axis
