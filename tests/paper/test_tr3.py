"""TR-3: depthwise-separable convolution written the way that hides the matrix product. The report says that the
instruction sums where the kernel multiplies; factoring is chosen because of it; matrix products come out."""

from __future__ import annotations

from pathlib import Path

import pytest

from isam.approach.choice import Approach, Trace
from isam.ir import oracle
from isam.ir.text import parse, parse_file, parse_instruction
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from isam.mapper.search import find
from tests.as_it_stands import cover_as_it_stands

SURFACE = Path(__file__).parents[1] / "text" / "surface.isam"
SIZES = {"H": 5, "W": 4, "C": 3, "Q": 2, "K": 6, "R": 3, "S": 2}

GEMM = """
instruction gemm(M, N, K)
  in  A: f32[M, K]
  in  B: f32[K, N]
  out C: f32[M, N]
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""
GEMM_ACC = """
instruction gemm(M, N, K)
  in    A: f32[M, K]
  in    B: f32[K, N]
  inout C: f32[M, N]
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
"""
DOT = """
instruction dot(K)
  in    a: f32[K]
  in    b: f32[K]
  inout c: f32
  forall k < K
    c[] += a[k] * b[k]
"""
ZERO = """
instruction zero(N)
  out D: f32[N]
  forall i < N
    D[i] = 0
"""


ONE_PER_CHANNEL = """
kernel separable()
  in    x: f32[7, 5, 3]
  const d: f32[3, 2, 3]
  const p: f32[3, 6]
  out   y: f32[5, 4, 6]
  forall h < 5, v < 4, k < 6
    y[h, v, k] = 0
  forall h < 5, v < 4, k < 6, c < 3, r < 3, s < 2
    t[h, v, k, c, r, s] = x[h + r, v + s, c] * d[r, s, c]
    u[h, v, k, c, r, s] = t[h, v, k, c, r, s] * p[c, k]
    y[h, v, k] += u[h, v, k, c, r, s]
"""


@pytest.fixture(scope="module")
def sepconv():
    kernel = next(k for k in parse_file(SURFACE.read_text()).kernels if k.name == "sepconv")
    return kernel.with_sizes(SIZES)


def offered(*texts):
    return [parse_instruction(t) for t in texts]


@pytest.fixture(scope="module")
def found(sepconv):
    trace = Trace(Approach())
    return find(sepconv, Demand(offered(GEMM_ACC, DOT, ZERO)), trace), trace


def test_the_report_says_that_the_instruction_sums_where_the_kernel_multiplies(sepconv):
    no = cover_as_it_stands(sepconv, Demand(offered(GEMM_ACC, DOT, ZERO)))
    assert not no
    assert [g.statement for g in no.gaps] == [1]
    first = no.gaps[0].mismatches[0]
    assert first.kind == "operation"
    assert "sums" in first.need
    assert "multiplies" in first.have
    assert (first.about("statement"), first.about("after")) == (2, 1)
    assert "t[h, v, k, c, q, r, s] * p[c, q, k]" in str(no)


def test_factoring_is_chosen_because_of_the_report_and_nothing_is_tried_blindly(found):
    result, trace = found
    assert result.blind_expansions == 0
    first = next(d for d in trace.decisions if d.point == "search")
    assert first.label.startswith("factor (product 2, pulled 1, sum 3) because")
    assert "sums" in first.label
    assert "multiplies" in first.label
    assert "u[h, v, k, c, q, r, s] = t[h, v, k, c, q, r, s] * p[c, q, k]" in first.label
    assert result.paths
    assert result.paths[0].steps[0].because.kind == "operation"


def test_three_statements_become_a_matrix_product_and_the_rest_another_or_a_dot(sepconv):
    """In the paper's two-operand form a matrix product has three statements (t = a; t *= b; c += t), here two."""
    trace = Trace(Approach())
    c = cover(sepconv, Demand(offered(GEMM_ACC, DOT, ZERO)), trace)
    assert c, c
    assert c.steps == ("factor (product 2, pulled 1, sum 3)",)
    into = {m.operand("C").buffer: m for m in c.mappings if m.instruction.name == "gemm"}
    pointwise = into["y"]
    assert len(pointwise.statements) == 2
    assert {c.kernel.statements[i].op for i in pointwise.statements} == {"mul", "add"}
    assert (pointwise.operand("A").buffer, pointwise.operand("B").buffer) == ("z", "p")
    assert dict(pointwise.axes)["j"] == "k"
    depthwise = next(m for m in c.mappings if m.instruction.name in ("gemm", "dot") and m is not pointwise)
    assert {o.buffer for o in depthwise.operands} == {"z", "x", "d"}
    assert [m.instruction.name for m in c.mappings if m not in (pointwise, depthwise)] == ["zero", "zero"]
    assert sorted(i for m in c.mappings for i in m.statements) == list(range(6))


def test_an_overwriting_product_takes_the_initialisation_along():
    """Channel multiplier one: one summed axis is left, so the product that starts from zero fits."""
    kernel = parse(ONE_PER_CHANNEL)
    c = cover(kernel, Demand(offered(GEMM, DOT, ZERO)), Trace(Approach()))
    assert c, c
    (product,) = [m for m in c.mappings if m.instruction.name == "gemm"]
    assert len(product.statements) == 3
    assert product.operand("C").buffer == "y"
    assert {m.instruction.name for m in c.mappings} == {"gemm", "dot", "zero"}
    assert oracle.equal(kernel, c.kernel, {}, 5)


def test_the_rewritten_kernel_means_the_same_and_knows_the_way_back(sepconv, found):
    result, _ = found
    for path in result.paths:
        for seed in range(3):
            assert oracle.equal(sepconv, path.kernel, {}, seed)
        assert path.needs <= {"reassociates", "rounding"}
    back = result.paths[0].back
    assert back.statements[0] == (0,)
    assert {s for of in back.statements for s in of} == {0, 1, 2, 3}
    assert back.meaning("z").startswith("sum of t[")


def test_without_the_permission_to_reassociate_nothing_is_factored(sepconv):
    from dataclasses import replace

    exact = replace(sepconv, permits=frozenset({"exact"}))
    no = cover(exact, Demand(offered(GEMM_ACC, DOT, ZERO)), Trace(Approach()))
    assert not no
    assert "sums" in str(no)


def test_the_search_replays_to_the_same_decisions(sepconv):
    trace = Trace(Approach())
    first = cover(sepconv, Demand(offered(GEMM_ACC, DOT, ZERO)), trace)
    again = Trace.replaying(trace.to_json())
    second = cover(sepconv, Demand(offered(GEMM_ACC, DOT, ZERO)), again)
    assert first.mappings == second.mappings
    assert again.to_json() == trace.to_json()
