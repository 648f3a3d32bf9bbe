"""Sums across lanes become partial sums in lanes: where that pays, what it computes, where it is not offered."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import isam
from isam.compiler.offers.partial import in_lanes
from isam.cost.timeline import timeline
from isam.ir.dtype import numpy_dtype
from isam.ir.kernel import Kernel
from isam.ir.text import parse_kernel
from tests.pipeline import compiled, judge, simulated
from tests.subjects import of_job, summed

SUM = """kernel total(M, N)
  in  X: {T}[M, N]
  out s: {T}[M]
  permits {permits}
  forall i < M
    s[i] = {zero}
  forall i < M, j < N
    s[i] {op}= X[i, j]
"""
DOT = """kernel dot(M, N)
  in  A: f32[M, N]
  in  x: f32[N]
  out y: f32[M]
  permits reassociate, contract
  forall i < M
    y[i] = 0
  forall i < M, j < N
    y[i] += A[i, j] * x[j]
"""
SOFTMAX = """kernel softmax(M, N)
  in X: f32[M, N]
  out Y: f32[M, N]
  temp m: f32[M]
  temp s: f32[M]
  temp e: f32[M, N]
  permits reassociate, contract
  forall i < M
    m[i] = -inf
  forall i < M, j < N
    m[i] max= X[i, j]
  forall i < M, j < N
    e[i, j] = exp(X[i, j] - m[i])
  forall i < M
    s[i] = 0
  forall i < M, j < N
    s[i] += e[i, j]
  forall i < M, j < N
    Y[i, j] = e[i, j] / s[i]
"""


FLAT = """kernel flat(M, N={N})
  in   x: f32[M, N]
  out  s: f32[M]
  out  y: f32[M, N]
  temp t: f32[N*M]
  permits reassociate
  forall i < M, j < N
    t[N*i + j] = 2 * x[i, j]
  forall i < M
    s[i] = 0
  forall i < M, j < N
    s[i] += t[N*i + j]
  forall i < M, j < N
    y[i, j] = t[N*i + j] - s[i]
"""


def total(op: str = "+", T: str = "f32", permits: str = "reassociate", zero: str = "0") -> str:
    return SUM.format(op=op, T=T, permits=permits, zero=zero)


def vectors(text: str, sizes: dict[str, int]) -> Any:
    """The kernel on vectors of sixteen."""
    return compiled(parse_kernel(text), sizes, simulated("host-avx512"))


def laws(job: Any) -> list[str]:
    return [re.split(r"[ (]", s)[0] for s in job.cover.steps]


@pytest.mark.parametrize("sizes", [{"M": 64, "N": 256}, {"M": 1, "N": 4096}, {"M": 3, "N": 97}])
@pytest.mark.parametrize(
    ("text", "make"),
    [
        (total(), lambda X: X.sum(1)),
        (total("max", zero="-inf"), lambda X: X.max(1)),
        (total("+", "i32", "exact"), lambda X: X.sum(1)),
        (total("min", permits="exact", zero="inf"), lambda X: X.min(1)),
    ],
)
def test_what_is_summed_in_lanes_is_right_and_proved(sizes, text, make):
    f = isam.compile(text, sizes=sizes, cache=False)
    assert f.certificate is not None
    r = np.random.default_rng(0)
    X = r.integers(-9, 9, (sizes["M"], sizes["N"])).astype("i4" if "i32" in text else "f4")
    assert np.array_equal(f(X), make(X)), "small whole numbers are summed exactly in any order"


@pytest.mark.parametrize("dtype", ["i32", "i16", "u8"])
@pytest.mark.parametrize("op", ["max", "min"])
def test_extrema_of_whole_numbers_begin_with_what_was_there(op, dtype):
    """No literal is the least number of every dtype; what is compared twice is no other number."""
    text = total(op, dtype).replace("out s", "inout s").replace("  forall i < M\n    s[i] = 0\n", "")
    made = vectors(text, {"M": 16, "N": 512})
    assert laws(made) == ["nest-extremum"]
    f = isam.compile(text, sizes={"M": 16, "N": 512}, cache=False)
    assert f.certificate is not None
    r, info = np.random.default_rng(0), np.iinfo(numpy_dtype(dtype))
    X = r.integers(info.min, info.max, (16, 512), endpoint=True).astype(info.dtype)
    s = r.integers(info.min, info.max, 16, endpoint=True).astype(info.dtype)
    want = getattr(np, op + "imum")(getattr(X, op)(1), s)
    f(X, s)
    assert np.array_equal(s, want)


THREE = """kernel moments(M, N)
  in  X: f32[M, N]
  out s: f32[2, M]
  permits reassociate
  forall d < 2, i < M
    s[d, i] = 0
  forall i < M, j < N
    s[0, i] += X[i, j]
    s[1, i] += abs(X[i, j])
"""


def test_every_sum_into_a_buffer_has_partial_results():
    made = vectors(THREE, {"M": 32, "N": 512})
    assert laws(made).count("nest-sum") == 2
    kernel: Kernel = made.cover.kernel
    into = [s for s in kernel.statements if s.dest.buffer == "s" and s.accumulate]
    assert len(into) == 2
    assert all(kernel.buffer(s.sources[0].buffer).role == "temp" for s in into), "each adds up partial results only"


def test_it_is_taken_where_it_takes_less_time():
    made, plain = (vectors(total(permits=p), {"M": 64, "N": 256}) for p in ("reassociate", "contract"))
    assert laws(made) == ["nest-sum"]
    assert "nest-sum" not in laws(plain)
    assert any(d.point == "variant" and d.label.startswith("nest-sum") for d in made.trace.decisions)
    assert timeline(made.schedule).seconds < 0.5 * timeline(plain.schedule).seconds


@pytest.mark.parametrize(("op", "zero", "law"), [("+", "0", "peel-sum"), ("max", "-inf", "peel")])
def test_what_is_left_over_is_summed_ahead(op, zero, law):
    text = total(op, zero=zero)
    whole, ragged = (vectors(text, {"M": 64, "N": n}) for n in (240, 250))
    assert laws(ragged)[0].startswith(law)
    assert len(laws(ragged)) == 2
    assert timeline(ragged.schedule).seconds < 1.5 * timeline(whole.schedule).seconds


def test_all_sums_of_a_kernel_and_their_temporaries():
    job = vectors(SOFTMAX, {"M": 32, "N": 128})
    assert laws(job)[:2] == ["in-place", "nest-extremum"]
    assert "nest-sum" in laws(job)
    kernel: Kernel = job.cover.kernel
    assert all(len(row.terms) <= 1 for s in kernel.statements if kernel.buffer(s.dest.buffer).role == "temp"
               for row in s.dest.index), "temporaries keep one dimension per axis"  # fmt: skip
    f = isam.compile(SOFTMAX, sizes={"M": 32, "N": 128}, cache=False)
    X = np.random.default_rng(1).normal(size=(32, 128)).astype("f4")
    e = np.exp(X.astype("f8") - X.max(1, keepdims=True))
    assert np.allclose(f(X), e / e.sum(1, keepdims=True), rtol=1e-5, atol=0)


@pytest.mark.parametrize("sizes", [{"M": 1, "N": 4096}, {"M": 3, "N": 256}, {"M": 64, "N": 128}])
def test_what_is_summed_and_becomes_the_result_lies_where_that_will(sizes):
    """Few rows have more partial results than lanes: blocks of them go through all of a row, and are proved, too."""
    job = vectors(SOFTMAX, sizes)
    assert laws(job)[0] == "in-place"
    assert not [b for b in job.schedule.workspace if b.bytes >= 4 * sizes["M"] * sizes["N"]]
    f = isam.compile(SOFTMAX, sizes=sizes, cache=False)
    assert f.certificate is not None
    X = np.random.default_rng(1).normal(size=tuple(sizes.values())).astype("f4")
    e = np.exp(X.astype("f8") - X.max(1, keepdims=True))
    assert np.allclose(f(X), e / e.sum(1, keepdims=True), rtol=1e-5, atol=0)


def test_what_is_left_over_is_cut_off_with_all_that_is_summed():
    """What whole vectors take shares its loops: a row is gone through as often as where nothing is left over."""
    whole, ragged = (vectors(SOFTMAX, {"M": 64, "N": n}) for n in (240, 250))
    assert timeline(ragged.schedule).seconds < 1.25 * timeline(whole.schedule).seconds
    kernel: Kernel = ragged.cover.kernel
    parts = {tuple(n.const for n in b.shape[1:]) for b in kernel.buffers if b.name.startswith("t")}
    assert parts == {(10,), (15, 16)}
    f = isam.compile(SOFTMAX, sizes={"M": 64, "N": 250}, cache=False)
    X = np.random.default_rng(1).normal(size=(64, 250)).astype("f4")
    e = np.exp(X.astype("f8") - X.max(1, keepdims=True))
    assert np.allclose(f(X), e / e.sum(1, keepdims=True), rtol=1e-5, atol=0)


@pytest.mark.parametrize(("M", "N"), [(8, 33), (2, 97), (7, 33), (8, 32)])
@pytest.mark.parametrize("on", ["host-avx512", "host-generic"])
def test_rows_that_lie_end_to_end_are_made_whole(M, N, on):
    """Only the sum is cut where its terms lie so, and what it sums is proved to be there."""
    kernel = parse_kernel(FLAT.format(N=N))
    job = compiled(kernel, {"M": M}, simulated(on), check=True)
    judge(kernel, {"M": M}, job)
    assert "peel-sum" in laws(job) or not N % 16


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        (total(permits="contract"), {"M": 8, "N": 64}),  # sums may not be taken in another order
        (total(), {"M": 8, "N": 16}),  # one vector is one call
        (total(), {"M": 8, "N": 31}),  # and what is left over another
    ],
)
def test_where_it_is_not_offered(text, sizes):
    job = vectors(text, sizes)
    assert "sum_add_f32" in [m.instruction.name for m in job.cover.mappings] or "reassociate" not in text
    assert in_lanes(of_job(job)) == ()


@pytest.mark.parametrize(("rows", "parts"), [(1, 128), (4, 32), (64, 16)])
def test_few_sums_have_more_partial_results_than_lanes(rows, parts):
    """Additions of a single chain would wait for each other."""
    kernel = vectors(total(), {"M": rows, "N": 4096}).cover.kernel
    assert [b.shape[-1].const for b in kernel.buffers if b.role == "temp"] == [parts]


def test_dot_products_too():
    f = isam.compile(DOT, sizes={"M": 33, "N": 512}, cache=False)
    r = np.random.default_rng(2)
    A, x = r.normal(size=(33, 512)).astype("f4"), r.normal(size=512).astype("f4")
    assert np.allclose(f(A, x), A.astype("f8") @ x, rtol=1e-4, atol=1e-4)
    assert "nest-sum" in laws(vectors(DOT, {"M": 33, "N": 512}))


COMPUTED = """kernel computed(Q, P, D)
  in  q: f32[Q, D]
  in  p: f32[P, D]
  in  w: f32[D]
  out y: f32[Q, P]
  permits reassociate, contract
  forall i < Q, j < P
    y[i, j] = 0
  forall i < Q, j < P, k < D
    y[i, j] += {term}
"""
TERMS = ("abs(q[i, k] - p[j, k])", "(q[i, k] - p[j, k]) * (q[i, k] + p[j, k])", "min(q[i, k], p[j, k]) * w[k]",
         "w[k] * (q[i, k] - p[j, k]) * (q[i, k] - p[j, k])", "exp(q[i, k] * p[j, k]) + abs(p[j, k])",
         "(q[i, k] - p[j, k]) * (q[i, k] + p[j, k]) * (w[k] - p[j, k]) * (w[k] + q[i, k])")  # fmt: skip


@pytest.mark.parametrize("on", ["host-avx512", "host-generic"])
@pytest.mark.parametrize("depth", [64, 63])
@pytest.mark.parametrize("term", TERMS)
def test_what_is_summed_in_lanes_is_made_where_it_is_summed(term: str, depth: int, on: str) -> None:
    """No temporary has the size of a sum's domain (IR-5), however many there are in a term: at most that of an operand
    or of a block."""
    kernel, sizes = parse_kernel(COMPUTED.format(term=term)), {"Q": 300, "P": 400, "D": depth}
    job = compiled(kernel, sizes, simulated(on))
    assert job.schedule is not None
    assert all(slot.bytes <= 4 * 400 * depth for slot in job.schedule.workspace)


@pytest.mark.parametrize("on", ["host-avx512", "host-generic", "casestudy"])
@pytest.mark.parametrize("depth", [32, 21])
@pytest.mark.parametrize("term", [t for t in TERMS if "exp" not in t])
def test_what_is_made_where_it_is_summed_is_right(term: str, depth: int, on: str) -> None:
    kernel, sizes = parse_kernel(COMPUTED.format(term=term)), {"Q": 3, "P": 5, "D": depth}
    judge(kernel, sizes, compiled(kernel, sizes, simulated(on), check=True))


NORMED = """kernel normed(M, N)
  in  X: f32[M, N]
  out D: f32[M, N]
  permits reassociate, contract
  forall i < M
    q[i] = 0
  forall i < M, j < N
    q[i] += X[i, j] * X[i, j]
  forall i < M, j < N
    D[i, j] = X[i, j] * q[i]
"""


@pytest.mark.parametrize(
    ("text", "rows", "columns", "parts"),
    [
        (NORMED, 4096, 768, 32),
        (NORMED, 1024, 768, 16),  # half the cache holds it
        (NORMED, 1024, 4096, 16),  # a row is a stream of its own
        (NORMED, 32768, 128, 16),  # too short
        (NORMED.replace("= X[i, j] * q[i]", "= q[i]"), 4096, 768, 16),  # gone through once
    ],
    ids=["alone", "near", "long", "short", "once"],
)
def test_rows_that_come_one_after_the_other_are_summed_in_two_vectors(text, rows, columns, parts):
    """While the sum of one goes on, that of the next begins: it has to be done sooner."""
    kernel = parse_kernel(text).with_sizes({"M": rows, "N": columns})
    first = next(s for s in in_lanes(summed(kernel, {"q": 16}, 8 << 20)) if s.transform.law.startswith("nest"))
    assert first.site["factor"] == parts


def test_a_machine_without_caches_has_rows_beside_each_other():
    kernel = parse_kernel(NORMED).with_sizes({"M": 4096, "N": 768})
    first = next(s for s in in_lanes(summed(kernel, {"q": 16})) if s.transform.law.startswith("nest"))
    assert first.site["factor"] == 16
