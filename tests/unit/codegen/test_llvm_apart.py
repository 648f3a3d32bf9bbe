"""Elements a few apart: whole vectors and shuffles, stores under masks, results woven; what is beside them stays."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import ml_dtypes
import numpy as np
import pytest

from isam.codegen.llvm import to_ir
from isam.codegen.llvm.lanes import lanes_of
from isam.codegen.llvm.tiles import whole_steps
from isam.ir import interp
from isam.ir.affine import Affine
from isam.ir.text import parse_kernel
from isam.proof import prove
from isam.schedule.tree import Seq
from isam.system.features import lacking
from isam.system.load import load_system
from tests.native import run
from tests.pipeline import compiled, simulated
from tests.unit.codegen.test_llvm_trees import Trees, buffer, loop

HOSTS = [n for n in ("host-generic", "host-avx2", "host-avx512") if not lacking(load_system(n).needs)]
NUMPY = {"f64": np.float64, "f32": np.float32, "bf16": ml_dtypes.bfloat16, "i16": np.int16, "i8": np.int8}
V = Affine.of


def numbers(n: int, dtype: str) -> np.ndarray:
    return (np.arange(n) % 120 + 1).astype(NUMPY[dtype])


@pytest.mark.parametrize("on", HOSTS)
@pytest.mark.parametrize("dtype", NUMPY)
def test_elements_apart_at_the_ends_of_buffers(on: str, dtype: str) -> None:
    """The buffer ends with the last element, or with a whole step; so it begins. Both lie beside pages of nobody."""
    system = load_system(on)
    lanes = lanes_of(system)
    for step, start, count, rest in product((2, 3, 4, 7), (0, 1), {2, lanes - 1, lanes}, (0, 1)):
        n = start + (count - 1) * step + 1
        n = -(-n // step) * step if rest else n
        t = Trees(buffer("A", "in", n, dtype=dtype), buffer("D", "inout", n, dtype=dtype))
        call = Seq((t.move("load_strided", t.at("A", (start,), 0, count, step), 0),
                    t.move("store_strided", t.at("D", (start,), 0, count, step), 0)))  # fmt: skip
        a, d = numbers(n, dtype), np.full(n, 125, NUMPY[dtype])
        index = start + step * np.arange(count)
        schedule = replace(t.schedule(call), system=system)
        for at_end in (True, False):
            got = run(schedule, {"A": a, "D": d}, at_end=at_end)["D"]
            want = d.copy()
            want[index] = a[index]
            assert np.array_equal(got, want), (step, start, count, rest)


@pytest.mark.parametrize("on", HOSTS)
def test_what_is_behind_a_short_vector_is_zero(on: str) -> None:
    system = load_system(on)
    lanes = lanes_of(system)
    for count, step in product((2, 3, lanes - 1), (2, 3)):
        t = Trees(buffer("A", "in", step * lanes), buffer("D", "out", lanes))
        call = Seq((t.move("load_strided", t.at("A", (0,), 0, count, step), 0),
                    t.move("store", t.at("D", (0,), 0, lanes), 0)))  # fmt: skip
        a = numbers(step * lanes, "f32")
        got = run(replace(t.schedule(call), system=system), {"A": a, "D": np.zeros(lanes, np.float32)})["D"]
        assert np.array_equal(got[:count], a[: count * step : step])
        assert not got[count:].any()


@pytest.mark.parametrize("on", HOSTS)
@pytest.mark.parametrize("dtype", ["f64", "f32", "i16", "i8"])
@pytest.mark.parametrize("step", [2, 3, 4])
def test_results_between_each_other_are_woven(on: str, dtype: str, step: int) -> None:
    system = load_system(on)
    lanes = lanes_of(system)
    for count in {lanes, lanes - 1, 5} & set(range(2, lanes + 1)):
        sources = [buffer(f"A{k}", "in", 3 * count, dtype=dtype) for k in range(step)]
        t = Trees(*sources, buffer("D", "inout", 3 * count, step, dtype=dtype))
        body = [t.move("load", t.at(f"A{k}", (V("i"),), 0, count), k) for k in range(step)]
        body += [t.move("store_strided", t.at("D", (V("i"), k), 0, count), k) for k in (1, 0, *range(2, step))]
        schedule = replace(t.schedule(loop("i", 0, 3 * count, count, *body)), system=system)
        given = {b.name: numbers(3 * count, dtype) + k for k, b in enumerate(sources)}
        got = run(schedule, {**given, "D": np.zeros((3 * count, step), NUMPY[dtype])})["D"]
        assert np.array_equal(got, np.stack(list(given.values()), 1)), count
        if count == lanes:
            assert "masked" not in to_ir(schedule)[0]


def test_what_is_read_or_written_meanwhile_is_not_woven() -> None:
    system = load_system(HOSTS[-1])
    n = lanes_of(system)
    t = Trees(buffer("A", "in", n), buffer("B", "in", n), buffer("D", "inout", n, 2), buffer("E", "out", n))
    even, odd = t.at("D", (0, 0), 0, n), t.at("D", (0, 1), 0, n)
    loads = (t.move("load", t.at("A", (0,), 0, n), 0), t.move("load", t.at("B", (0,), 0, n), 1))
    a, b = numbers(n, "f32"), numbers(n, "f32") * 2
    read = Seq((*loads, t.move("store_strided", even, 0), t.move("load_strided", even, 2),
                t.move("store_strided", odd, 1), t.move("store", t.at("E", (0,), 0, n), 2)))  # fmt: skip
    written = Seq((*loads, t.move("store_strided", even, 0), t.move("store_strided", even, 1),
                   t.move("store_strided", odd, 0), t.move("store", t.at("E", (0,), 0, n), 0)))  # fmt: skip
    for call, wanted in ((read, np.stack((a, b), 1)), (written, np.stack((b, a), 1))):
        schedule = replace(t.schedule(call), system=system)
        zeros = {"D": np.zeros((n, 2), np.float32), "E": np.zeros(n, np.float32)}
        got = run(schedule, {"A": a, "B": b, **zeros})
        assert np.array_equal(got["D"], wanted)
        assert np.array_equal(got["E"], a)


def test_whole_steps() -> None:
    i = V("i")
    assert whole_steps(8 * i + 4, 8, 4, 64) == (4, 0)
    assert whole_steps(24 * i + 4, 12, 4, 48) == (4, 4)
    assert whole_steps(8 * i + 4, 8, 4, 60) == (0, 0), "the buffer ends within a step"
    assert whole_steps(4 * i, 8, 4, 64) == (0, 0), "where an element lies in its step depends on a loop"
    assert whole_steps(Affine((), 6), 8, 4, 64) == (0, 0), "an element of two steps"
    assert whole_steps(Affine((), 8), -8, 4, 64) == (0, 0), "backwards"


KERNELS = {
    "product": """kernel product(N)
  in  A: {T}[N, 2]
  in  B: {T}[N, 2]
  out Y: {T}[N, 2]
  forall i < N
    Y[i, 0] = A[i, 0] * B[i, 0] - A[i, 1] * B[i, 1]
  forall i < N
    Y[i, 1] = A[i, 0] * B[i, 1] + A[i, 1] * B[i, 0]
""",
    "colours": """kernel colours(N)
  in    X: {T}[N, 3]
  inout Y: {T}[N, 3]
  forall i < N
    Y[i, 0] = X[i, 1] + X[i, 2]
  forall i < N
    Y[i, 2] = max(X[i, 0], X[i, 2])
""",
    "pooled": """kernel pooled(N)
  in  X: {T}[6, 2 * N + 1]
  out Y: {T}[3, N]
  forall h < 3, w < N
    Y[h, w] = max(max(X[2 * h, 2 * w], X[2 * h, 2 * w + 1]), max(X[2 * h + 1, 2 * w], X[2 * h + 1, 2 * w + 2]))
""",
    "doubled": """kernel doubled(N)
  in  X: {T}[N]
  out Y: {T}[2 * N]
  forall i < N
    Y[2 * i] = X[i]
  forall i < N
    Y[2 * i + 1] = X[i] + X[i]
""",
    "fourth": """kernel fourth(N)
  in  X: {T}[4 * N - 3]
  out Y: {T}[N]
  forall i < N
    Y[i] = X[4 * i]
""",
}


CASES = (("f32", 33), ("i8", 100), ("f32", 1), ("f64", 7), ("bf16", 50), ("i16", 37))


@pytest.mark.parametrize("on", HOSTS)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_elements_apart(name: str, on: str) -> None:
    """Proved, between pages of nobody, bit for bit the interpreter's, in ragged sizes."""
    for dtype, n in CASES if on == HOSTS[-1] else CASES[:2]:
        kernel = parse_kernel(KERNELS[name].format(T=dtype))
        schedule = compiled(kernel, {"N": n}, load_system(on)).schedule
        assert schedule is not None
        prove(schedule)
        rng = np.random.default_rng(n)
        sized = kernel.with_sizes({"N": n})
        shapes = {b.name: [int(s) for s in b.shape] for b in sized.arguments}
        given = {b.name: rng.integers(-60, 60, shapes[b.name]).astype(NUMPY[dtype])
                 for b in sized.arguments if b.role != "out"}  # fmt: skip
        wanted = interp.run(kernel, given, {"N": n})["Y"]
        for at_end in (True, False):
            got = run(schedule, {"Y": np.zeros(shapes["Y"], NUMPY[dtype]), **given}, at_end=at_end)["Y"]
            assert np.array_equal(got, wanted), (dtype, n)


def test_vectors_are_taken_where_moves_reach_them() -> None:
    kernel = parse_kernel(KERNELS["product"].format(T="f32"))
    schedule = compiled(kernel, {"N": 256}, simulated("host-avx512")).schedule
    assert schedule is not None
    assert {"load_every_2", "store_every_2", "mul_vv_f32"} <= schedule.called()
    assert "mul_ss_f32" not in schedule.called()
