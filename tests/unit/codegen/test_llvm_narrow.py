"""Narrow forms: calls of few elements on part of the lanes. What is emitted, what it computes, what it costs, and which
descriptions of one are refused."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isam
from benchmarks.data import Judge, operands
from benchmarks.kernels import kernel_of
from benchmarks.shapes import Convolution, Gemm
from isam.codegen.llvm import generate, to_ir
from isam.codegen.llvm.irtext import Function, Module
from isam.codegen.llvm.judge import judge
from isam.codegen.llvm.narrow import fitted
from isam.cost.floor import floor
from isam.cost.timeline import timeline
from isam.ir.instruction import Cost, Instruction, Narrow
from isam.runtime.linking import Target
from isam.schedule.tree import Issue, Schedule, distinct
from isam.system.features import lacking
from isam.system.graph import System
from isam.system.load import load_system
from tests.pipeline import compiled, simulated

# Vectors of four, of which every CPU has halves.
HALVES = """isam: 1
system: halves
extends: host-generic
instructions:
  fma_vv_f32: {cost: {issue: 1 cycle, latency: 4 cycles, narrow: {J: {2: 0.5 cycles}}}}
  fma_sv_f32: {cost: {issue: 1 cycle, latency: 4 cycles, narrow: {J: {2: 0.5 cycles}}}}
  fma_vv_f64: {cost: {issue: 2 cycles, latency: 4 cycles, narrow: {J: {2: 1 cycle, 1: 0.5 cycles}}}}
  fma_sv_f64: {cost: {issue: 2 cycles, latency: 4 cycles, narrow: {J: {2: 1 cycle, 1: 0.5 cycles}}}}
"""
WHOLE = re.sub(r", narrow: [^\n]*}}}}", "}}", HALVES).replace("system: halves", "system: wholes")
PRODUCT = """kernel product(M, N, K)
  in  A: {T}[M, K]
  in  B: {T}[K, N]
  out C: {T}[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""
ZEN4 = Target("x86_64-unknown-linux-gnu", "znver4", load_system("host-zen4").needs)


@lru_cache
def machine(tmp: str, text: str) -> System:
    path = f"{tmp}/{'halves' if 'narrow' in text else 'wholes'}.yaml"
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return load_system(path)


@pytest.fixture(scope="module")
def halves(tmp_path_factory) -> System:
    return machine(str(tmp_path_factory.mktemp("narrow")), HALVES)


@pytest.fixture(scope="module")
def wholes(tmp_path_factory) -> System:
    return machine(str(tmp_path_factory.mktemp("whole")), WHOLE)


def products(ir: str) -> dict[int, int]:
    """How many products and sums there are by lanes."""
    found = re.findall(r"= call <(\d+) x \w+> @llvm\.fmuladd", ir)
    return {int(n): found.count(n) for n in dict.fromkeys(found)}


def schedule(text: str, on: System, **sizes: int) -> Schedule:
    got = compiled(isam.parse(text), sizes, on, check=True).schedule
    assert got is not None
    return got


@pytest.mark.parametrize(("n", "forms"), [(8, {4}), (7, {4}), (6, {4, 2}), (5, {4, 2}), (2, {2}), (10, {4, 2})])
def test_the_rest_of_an_axis_is_carried_out_in_the_form_that_holds_it(halves, wholes, n, forms):
    sizes = {"M": 24, "N": n, "K": 40}
    assert set(products(to_ir(schedule(PRODUCT.format(T="f32"), halves, **sizes))[0])) == forms
    assert set(products(to_ir(schedule(PRODUCT.format(T="f32"), wholes, **sizes))[0])) == {4}


def test_the_narrowest_form_that_holds_it(halves):
    ir = [to_ir(schedule(PRODUCT.format(T="f64"), halves, M=24, N=n, K=40))[0] for n in (5, 6, 7)]
    assert [set(products(x)) for x in ir] == [{4, 1}, {4, 2}, {4}]


@pytest.mark.parametrize("shape", [
    Gemm(13, 5, 33), Gemm(30, 10, 7), Gemm(64, 2, 64), Gemm(7, 1, 129), Gemm(20, 17, 50),
    Convolution(9, 5, 6, 3, 1), Convolution(8, 3, 9, 1, 1), Convolution(9, 4, 10, 3, 2),
], ids=lambda s: s.name)  # fmt: skip
def test_results_are_right(halves, shape):
    """Within the bound derived for each element."""
    kernel, sizes = kernel_of(shape, bound=True)
    fn = isam.compile(kernel, on=halves, sizes=sizes, cache=False)
    assert fn.certificate is not None
    a, b = operands(shape)
    found = Judge.product(shape, a, b)
    assert found.wrong(fn(a, b)) is None
    assert found.wrong(fn.bind(**{"B" if isinstance(shape, Gemm) else "w": b})(a)) is None


@pytest.mark.parametrize("T", ["f32", "f64"])
@pytest.mark.parametrize("n", range(1, 12))
def test_integers_are_exact_and_nothing_comes_in_from_behind(halves, T, n):
    """Infinities beside a lane stay there: no sum takes what lies behind the elements of a call."""
    rng = np.random.default_rng(n)
    a, b = (rng.integers(-9, 10, s).astype({"f32": "f4", "f64": "f8"}[T]) for s in ((11, 23), (23, n)))
    fn = isam.compile(isam.parse(PRODUCT.format(T=T)), on=halves, sizes={"M": 11, "N": n, "K": 23}, cache=False)
    np.testing.assert_array_equal(fn(a, b), a @ b)
    a[3, 5], b[7, n - 1] = np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        want = np.stack([sum(a[:, k, None] * b[k] for k in range(23))])[0]
    np.testing.assert_array_equal(fn(a, b), want)


@pytest.mark.skipif(bool(lacking(load_system("host-zen4").needs, None)), reason="not this CPU")
@pytest.mark.parametrize("shape", [Gemm(70, n, 64) for n in (1, 3, 8, 9, 17, 20, 24, 25, 33, 35, 40, 49, 65, 100)],
                         ids=lambda s: s.name)  # fmt: skip
def test_results_on_long_vectors_are_right(shape):
    kernel, sizes = kernel_of(shape)
    a, b = operands(shape)
    fn = isam.compile(kernel, on="host-zen4", sizes=sizes, cache=False)
    assert Judge.product(shape, a, b).wrong(fn(a, b)) is None


@pytest.mark.parametrize("k", [512, 65])
@pytest.mark.parametrize("n", [33, 35, 40])
def test_two_long_vectors_and_a_short_one_in_one_loop(n, k):
    """Code for a CPU that need not be this one: sums stay in registers of both lengths, and nothing moves them."""
    there = replace(load_system("host-zen4"), target=ZEN4)
    text = generate(schedule(PRODUCT.format(T="f32"), there, M=70, N=n, K=k), assembly=True).assembly
    (loop,) = re.findall(r"^\.LBB\w+: +# %loop2$(.*?)^\tjl", text, re.MULTILINE | re.DOTALL)
    long, short = (re.findall(rf"vfmadd\w+\s.*%{r}\d+", loop) for r in ("zmm", "ymm"))
    assert len(long) == 2 * len(short) > 0
    assert "vfmadd213" not in text, "the sum is what is overwritten"
    assert not re.search(r"rsp|vmovap\w\s+%\wmm", loop)
    assert loop.count("vbroadcastss") <= len(short) + 1, "a scalar is read once for both"


@pytest.mark.parametrize(("have", "want"), [(2, 4), (1, 4), (3, 8), (4, 2)])
def test_behind_what_a_narrow_form_makes_lie_zeros(have, want):
    """No shipped instruction reads there: sums across lanes mask what is no element. So only the text tells."""
    fn = Function(Module(), "f", [f"<{have} x float> %x"])
    fitted(fn, "%x", "f32", have, want)
    (line,) = [x for x in fn.lines if "shufflevector" in x]
    assert f"<{have} x float> %x, <{have} x float> zeroinitializer" in line
    picked = [int(i) for i in re.findall(r"i32 (\d+)", line)]
    assert picked[:have] == list(range(min(have, want)))
    assert len(picked) == want
    assert all(have <= i < 2 * have for i in picked[have:])


# prices


def test_times_are_those_of_the_forms():
    """The loop of sums takes 2.5 cycles for a row of 35 where it takes 3 for one of 41 and, without forms, of 35."""
    zen4 = simulated("host-zen4")
    took = {n: timeline(schedule(PRODUCT.format(T="f32"), zen4, M=70, N=n, K=512)).seconds for n in (35, 48)}
    assert took[35] / took[48] == pytest.approx(2.5 / 3, rel=0.05)


@pytest.mark.parametrize("n", [1, 3, 8, 9, 17, 24, 25, 33, 35, 41])
def test_no_schedule_is_faster_than_its_floor(n):
    made = schedule(PRODUCT.format(T="f32"), simulated("host-zen4"), M=6, N=n, K=9)
    assert floor(made).seconds <= timeline(made).seconds * (1 + 1e-12)


FMA = load_system("host-zen4").instructions["fma_sv_f32"]


@given(st.lists(st.integers(1, 16), min_size=1, max_size=9))
def test_an_average_call_takes_no_more_than_calls_do_on_average(sizes):
    mean = sum(sizes) / len(sizes)
    assert FMA.average({"J": mean}) <= sum(FMA.cost.cycles({"J": n}) for n in sizes) / len(sizes) + 1e-12


def test_the_floor_of_whole_calls_is_theirs():
    assert FMA.average({"J": 16}) == FMA.cost.interval == FMA.cost.cycles({"J": 9})
    assert FMA.average({"J": 8}) == FMA.average({"J": 1}) == FMA.cost.shortest == FMA.cost.cycles({"J": 8}) == 0.5


# descriptions


def findings(i: Instruction, *forms: Narrow) -> list[str]:
    system = load_system("host-avx512")
    changed = replace(i, cost=replace(i.cost, narrow=forms))
    return [f.message for f in judge(replace(system, instructions={changed.name: changed}))]


def test_forms_that_no_template_has_are_refused():
    known = load_system("host-avx512").instructions
    assert not findings(known["fma_sv_f32"], Narrow("J", 8, 0.5))
    (found,) = findings(known["fma_sv_f32"], Narrow("J", 16, 0.5))
    assert "no form for 16 elements: 16 lanes are no part" in found
    assert "are no part of its registers" in findings(known["dot4_u8_i8"], Narrow("J", 8, 0.5))[0], "groups"
    sums = next(i for i in known.values() if any(not b.shape and b.role != "in" for b in i.body.arguments) and i.syms)
    assert "is not as long as 'J' says" in findings(sums, Narrow("J", 8, 0.5))[0]
    text = str(known["add_vv_f32"].emission["llvm"]).replace("$f32", "<16 x float>")
    fixed = replace(known["add_vv_f32"], emission={"llvm": text})
    assert not findings(fixed)
    assert "<16 x float>" in findings(fixed, Narrow("J", 8, 0.5))[0]


def test_the_narrowest_form_comes_first():
    cost = load_system("host-zen4").instructions["fma_sv_f64"].cost
    assert cost.narrow == (Narrow("J", 4, 0.5), Narrow("J", 8, 1.0))
    assert [cost.cycles({"J": n}) for n in (1, 4, 5, 8, 9, 16)] == [0.5, 0.5, 1, 1, 2, 2]
    assert Cost(issue=3).form({"J": 1}) is None


def test_calls_stand_in_the_schedule_as_before():
    """Which form a call has follows from its sizes: schedules say those and no more."""
    zen4, plain = simulated("host-zen4"), simulated("host-avx512")
    calls = [{(n.instruction, n.sizes) for n in distinct(schedule(PRODUCT.format(T="f32"), on, M=70, N=35, K=64).call)
              if isinstance(n, Issue)} for on in (zen4, plain)]  # fmt: skip
    assert calls[0] == calls[1]
