"""Sums of several products are made product by product, natively and where an instruction takes one product only."""

from __future__ import annotations

import pytest

from isam.compiler.offers.by_terms import each_term
from isam.ir.normal import normal_form
from isam.ir.text import parse_kernel
from tests.pipeline import compiled, judge, simulated
from tests.subjects import uncovered

GATES = """kernel gates(M, N, K)
  in    x: f32[M, K]
  in    h: f32[M, K]
  const w: f32[K, N]
  const u: f32[K, N]
  const b: f32[N]
  out   y: f32[M, N]
  forall i < M, j < N
    y[i, j] = b[j]
  forall i < M, j < N, k < K
    y[i, j] += x[i, k] * w[k, j] + h[i, k] * u[k, j]
  forall i < M, j < N
    y[i, j] = max(y[i, j], 0)
"""
FOURIER = """kernel fourier(M, N)
  in  a: f32[M, N]
  in  b: f32[M, N]
  in  c: f32[N, N]
  in  s: f32[N, N]
  out re: f32[M, N]
  out im: f32[M, N]
  forall i < M, j < N
    re[i, j] = 0
    im[i, j] = 0
  forall i < M, j < N, k < N
    re[i, j] += a[i, k] * c[k, j] + b[i, k] * s[k, j]
    im[i, j] += b[i, k] * c[k, j] - a[i, k] * s[k, j]
"""
BYTES = """kernel bytes(M, N, K)
  in  a: i8[M, K]
  in  b: i8[K, N]
  in  c: i8[M, K]
  in  d: i8[K, N]
  out y: i32[M, N]
  forall i < M, j < N
    y[i, j] = 0
  forall i < M, j < N, k < K
    y[i, j] += i32(a[i, k]) * i32(b[k, j]) {sign} i32(c[i, k]) * i32(d[k, j])
"""
THREE = """kernel three(M, K)
  in  a: f32[M, K]
  in  b: f32[M, K]
  out y: f32[M]
  forall i < M
    y[i] = 0
  forall i < M, k < K
    y[i] += a[i, k] * b[i, k] + a[i, k] - b[i, k]
"""
SIZES = {"M": 12, "N": 37, "K": 21}


def called(job) -> set[str]:
    return {m.instruction.name.rsplit("_", 1)[0] for m in job.schedule.cover.mappings}


@pytest.mark.parametrize("text", [GATES, FOURIER], ids=["gates", "complex"])
@pytest.mark.parametrize("on", ["host-avx512", "host-avx2"])
def test_vectors_multiply_and_add_each_product(text: str, on: str) -> None:
    """Not apart and summed across lanes, which takes eight times as long."""
    kernel = parse_kernel(text)
    sizes = {s.name: SIZES[s.name] for s in kernel.syms}
    job = compiled(kernel, sizes, simulated(on))
    assert {s.split(" ")[0] for s in job.schedule.cover.steps} == {"sum-apart"}
    assert called(job) >= ({"fma_sv", "fnma_sv"} if text == FOURIER else {"fma_sv"})
    judge(kernel, sizes, job, 3)


@pytest.mark.parametrize(("on", "sign"), [*((m, "+") for m in ("gemmini", "pe_array", "systolic", "tpu_v1_like")),
                                          ("pe_array", "-")])  # fmt: skip
def test_machines_that_take_one_product(on: str, sign: str) -> None:
    """No instruction of theirs makes a product and leaves it; what is subtracted is summed first."""
    kernel = parse_kernel(BYTES.format(sign=sign))
    job = compiled(kernel, SIZES, simulated(on))
    assert "sum-apart" in {s.split(" ")[0] for s in job.schedule.cover.steps}
    judge(kernel, SIZES, job, 3)


@pytest.mark.parametrize("sizes", [SIZES, {"M": 5, "N": 16, "K": 8}])
def test_what_is_subtracted_together_is_apart_too(sizes: dict[str, int]) -> None:
    """Also where a cover would take the first product out alone, and be carried out several times as fast so."""
    text = GATES.replace("+ h[i, k] * u[k, j]", "- (h[i, k] * u[k, j] + x[i, k] * u[k, j])")
    job = compiled(parse_kernel(text), sizes, simulated("host-avx512"))
    assert [s.split(" ")[0] for s in job.schedule.cover.steps].count("sum-apart") == 2
    assert called(job) >= {"fma_sv", "fnma_sv"}
    judge(parse_kernel(text), sizes, job, 3)


def test_a_permission_is_needed() -> None:
    """Terms are not added up in another order where the kernel does not say that they may be."""
    exact = GATES.replace("out   y: f32[M, N]", "out   y: f32[M, N]\n  permits nothing")
    assert any(each_term(uncovered(parse_kernel(GATES).with_sizes(SIZES))))
    assert not any(each_term(uncovered(parse_kernel(exact).with_sizes(SIZES))))


def test_each_of_three() -> None:
    (steps,) = each_term(uncovered(parse_kernel(THREE).with_sizes({"M": 4, "K": 9})))
    assert len(steps) == 2


def test_what_has_no_product_stays() -> None:
    text = THREE.replace("a[i, k] * b[i, k] + a[i, k] - b[i, k]", "a[i, k] + b[i, k]")
    assert not any(each_term(uncovered(parse_kernel(text).with_sizes({"M": 4, "K": 9}))))


LESS = """kernel less(M, N, K)
  in  a: {0}[M, K]
  in  b: {0}[K, N]
  in  c: {0}[M, K]
  in  d: {0}[K, N]
  out y: {1}[M, N]
  forall i < M, j < N
    y[i, j] = 0
  forall i < M, j < N, k < K
    y[i, j] += {1}(a[i, k]) * {1}(b[k, j]) - {2}
"""


@pytest.mark.parametrize("what", ["c[i, k]", "d[k, j]", "c[i, k] * c[i, k]"])
@pytest.mark.parametrize("sizes", [SIZES, {"M": 5, "N": 16, "K": 8}, {"M": 64, "N": 64, "K": 64}], ids=str)
def test_what_lacks_an_axis_is_negated_once_along_it(what: str, sizes: dict[str, int]) -> None:
    """Not once more for each result, which no vector instruction sums up."""
    text = LESS.format("f32", "f32", what)
    job = compiled(parse_kernel(text), sizes, simulated("host-avx2"))
    assert called(job) >= {"fma_sv"}
    assert not any(name.startswith(("dot", "sum_add")) for name in called(job))
    kernel = job.schedule.cover.kernel
    (negated,) = (s.dest.buffer for s in kernel.statements if s.op == "neg")
    assert len(kernel.buffer(negated).shape) == 2
    if sizes is SIZES:
        judge(parse_kernel(text), sizes, job, 3)


@pytest.mark.parametrize(("narrow", "wide"), [
    ("i32", "i32"), ("i16", "i16"), ("i64", "i64"), ("u8", "u8"), ("i8", "i32"), ("u8", "i32"), ("i16", "i32"),
    ("f16", "f32"), ("f32", "f64"),
])  # fmt: skip
def test_products_of_all_types_are_subtracted(narrow: str, wide: str) -> None:
    """As they are added, where no groups of them are: without a temporary for what is negated, and not summed across
    lanes."""
    text = LESS.format(narrow, wide, f"{wide}(c[i, k]) * {wide}(d[k, j])")
    job = compiled(parse_kernel(text), SIZES, simulated("host-avx2"))
    names = {m.instruction.name for m in job.schedule.cover.mappings}
    assert any(n.startswith("fnma_sv_") for n in names)
    assert any(n.startswith(("fma_sv_", "dot2_", "dot4_")) for n in names)
    assert not any(n.startswith(("neg_", "dot_", "sum_")) for n in names)
    judge(parse_kernel(text), SIZES, job, 3)


@pytest.mark.parametrize("sizes", [SIZES, {"M": 64, "N": 64, "K": 64}], ids=str)
def test_what_a_term_is_made_of_lies_as_it_is_made(sizes: dict[str, int]) -> None:
    """Not as the axes of its block stand, by which vectors of it would be written element by element."""
    text = LESS.format("f32", "f32", "c[i, k] * (d[k, j] * b[k, j])").replace(" - ", " + ")
    job = compiled(parse_kernel(text), sizes, simulated("host-avx2"))
    assert {s.split(" ")[0] for s in job.schedule.cover.steps} == {"sum-apart", "permute-dimensions"}
    made = next(m for m in job.schedule.cover.mappings if m.instruction.name == "mul_vv_f32")
    assert [str(e) for e in next(o for o in made.operands if o.operand == "D").index] == ["k", "j"]
    if sizes is SIZES:
        judge(parse_kernel(text), sizes, job, 3)


@pytest.mark.parametrize("what", [
    "c[i, k] * (d[k, j] * c[j, k])", "c[i, k] * (d[j, k] * c[j, k])", "c[i, k] * exp(a[i, k])",
])  # fmt: skip
def test_what_lies_as_it_is_made_stays(what: str) -> None:
    """And so does what is made of what lies along different axes."""
    square = {"M": 16, "N": 16, "K": 16}
    text = LESS.format("f32", "f32", what)
    assert len(list(each_term(uncovered(normal_form(parse_kernel(text).with_sizes(square)))))) == 1


def test_panels_are_made_of_the_factors_of_every_product() -> None:
    """Not only of the first one's: rows of a second one far apart would fall on the same sets of a cache."""
    sizes = {"M": 48, "N": 64, "K": 64}
    job = compiled(parse_kernel(GATES), sizes, simulated("host-avx2"))
    made = {s.name.split(".")[0] for s in job.schedule.workspace if s.bytes == 4 * 64 * 64}
    assert made == {"w", "u"}
    judge(parse_kernel(GATES), sizes, job, 3)
