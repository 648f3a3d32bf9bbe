"""Reports that lead on: an axis with another step, one axis needed twice, a sum that starts from something, nothing
left to pair; and the chains of laws that they ask for."""

from __future__ import annotations

from isam.ir import oracle
from isam.ir.mismatch import Mismatch
from isam.ir.text import parse_instruction, parse_kernel
from isam.mapper import match
from isam.mapper.dataflow import pattern_of
from isam.mapper.search import reach
from tests.unit.mapper.catalogue import instruction

TILE = parse_instruction("""instruction tile(M <= 16, N <= 16, K <= 16)
  in    A: f32[M, 2 * K]
  in    B: f32[K, N, 2]
  inout C: f32[M, N]
  forall i < M, j < N, k < K, q < 2
    C[i, j] += A[i, 2 * k + q] * B[k, j, q]
""")
GROUPS = parse_instruction("""instruction groups(M <= 16, N <= 16, K <= 16)
  in    A: f32[M, K, 2]
  in    B: f32[K, N, 2]
  inout C: f32[M, N]
  forall i < M, j < N, k < K, q < 2
    C[i, j] += A[i, k, q] * B[k, j, q]
""")
LAYER = parse_kernel("""kernel layer()
  in    x: f32[2, 3, 4, 4]
  const w: f32[5, 4]
  inout y: f32[2, 5, 3, 4]
  forall n < 2, k < 5, h < 3, v < 4, c < 4
    y[n, k, h, v] += x[n, h, v, c] * w[k, c]
""")
GEMV = parse_kernel("""kernel mv()
  in  A: f32[3, 4]
  in  x: f32[4]
  out y: f32[3]
  forall i < 3
    y[i] = 0
  forall i < 3, k < 4
    y[i] += A[i, k] * x[k]
""")


def laws(found) -> list[list[str]]:
    return [[s.transform.law for s in p.steps] for p in found.paths]


def test_one_axis_needed_twice_is_told_and_split():
    no = match(LAYER, GROUPS)
    assert isinstance(no, Mismatch)
    assert (no.kind, no.about("axis")) == ("axis-missing", "c")
    assert no.about("instruction_axis") in ("k", "q")
    assert "needed for another axis already" in no.have


def test_packed_factors_are_reached_by_splitting():
    found = reach(LAYER, TILE)
    assert ["split-axis", "split-dimension"] in laws(found)
    assert found.blind_expansions == 0
    for path in found.paths:
        assert oracle.equal(LAYER, path.kernel, {}, 3)


def test_an_axis_of_the_right_arrays_with_another_step_is_a_coefficient():
    every_other = parse_instruction("instruction e(N)\n  in A: f32[2 * N]\n  out D: f32[N]\n  forall i < N\n"
                                    "    D[i] = sqrt(A[2 * i])\n")  # fmt: skip
    root = parse_kernel("kernel r()\n  in x: f32[8]\n  out y: f32[8]\n  forall i < 8\n    y[i] = sqrt(x[i])\n")
    no = match(root, every_other)
    assert isinstance(no, Mismatch)
    assert (no.kind, no.about("need"), no.about("have"), no.about("axis")) == ("coefficient", 2, 1, "i")


def test_what_a_sum_starts_from_gets_the_unit_axis_too():
    found = reach(GEMV, instruction("gemm0"))
    assert found
    path = next(p for p in found.paths if {s.transform.law for s in p.steps} == {"add-unit-axis"})
    assert len(path.found[0].statements) == 3  # the zero, the product, the sum
    assert oracle.equal(GEMV, path.kernel, {}, 3)


def test_nothing_left_to_pair_is_said():
    kernel = parse_kernel("kernel m()\n  in x: f32[8]\n  inout y: f32[8]\n  forall i < 8\n    y[i] max= x[i]\n")
    both = parse_instruction("instruction b(N)\n  in A: f32[N]\n  in B: f32[N]\n  out D: f32[N]\n  forall i < N\n"
                             "    D[i] = A[i]\n  forall i < N\n    D[i] = max(D[i], B[i])\n")  # fmt: skip
    no = match(kernel, both)
    assert isinstance(no, Mismatch)
    assert no.kind == "operation"
    assert "nothing else that touches" in no.have


def test_plans_begin_with_the_statement_that_has_most_axes_and_arrays():
    pattern = pattern_of(instruction("gemm0"))
    first = pattern.flow.nodes[pattern.order[0]].statement
    assert (first.op, len(first.domain.axes)) == ("mul", 3)
