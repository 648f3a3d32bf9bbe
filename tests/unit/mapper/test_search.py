"""The search (TR-2): steps asked for by mismatches, blind ones counted, truthful budgets, permissions kept."""

from __future__ import annotations

from dataclasses import replace

from isam.approach.choice import Approach, Trace
from isam.ir import oracle
from isam.ir.text import parse, parse_instruction
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from isam.mapper.search import Budget, find
from tests.as_it_stands import cover_as_it_stands

GEMM = parse_instruction("""instruction gemm(M, N, K)
  in    A: f32[M, K]
  in    B: f32[K, N]
  inout C: f32[M, N]
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * B[k, j]
""")
VNNI = parse_instruction("""instruction vnni()
  in    A: f32[2, 4]
  in    B: f32[2, 8, 4]
  inout C: f32[8]
  forall j < 8, a < 2, b < 4
    C[j] += A[a, b] * B[a, j, b]
""")
ZERO = parse_instruction("instruction zero(N)\n  out D: f32[N]\n  forall i < N\n    D[i] = 0\n")
COPY = parse_instruction("instruction copy()\n  in S: f32\n  out D: f32\n  D = S\n")
GEMV = parse("""kernel mv()
  in A: f32[6, 8]
  in x: f32[8]
  out y: f32[6]
  forall i < 6
    y[i] = 0
  forall i < 6, k < 8
    y[i] += A[i, k] * x[k]
""")
ROW = parse("""kernel row()
  in A: f32[8]
  in B: f32[8, 8]
  out y: f32[8]
  forall i < 8
    y[i] = 0
  forall i < 8, k < 8
    y[i] += A[k] * B[k, i]
""")


NEG = parse_instruction("instruction neg(N)\n  in S: f32[N]\n  out D: f32[N]\n  forall i < N\n    D[i] = -S[i]\n")


def binary(name: str, sign: str):
    return parse_instruction(f"""instruction {name}(N)
  in A: f32[N]
  in B: f32[N]
  out D: f32[N]
  forall i < N
    D[i] = A[i] {sign} B[i]
""")


def laws(c) -> list[str]:
    return [s.split(" ")[0] for s in c.steps]


def test_a_matrix_vector_product_on_a_matrix_product_gets_a_column_of_its_own():
    c = cover(GEMV, Demand([GEMM, ZERO, COPY]), Trace(Approach()))
    assert c, c
    assert set(laws(c)) == {"add-unit-axis"}
    assert [m.instruction.name for m in c.mappings].count("gemm") == 1
    assert oracle.equal(GEMV, c.kernel, {}, 1)
    assert c.notes["blind expansions"] == 0
    assert c.original is GEMV


def test_packed_operands_are_reached_by_splitting_an_axis_and_dimensions():
    """IR-11: the instruction stays linear, the kernel comes to it."""
    c = cover(ROW, Demand([VNNI, ZERO, COPY]), Trace(Approach()))
    assert c, c
    assert laws(c)[0] == "split-axis"
    assert set(laws(c)[1:]) == {"split-dimension"}
    (m,) = [m for m in c.mappings if m.instruction.name == "vnni"]
    assert not m.outer
    assert dict(m.axes) == {"j": "i", "a": "k_o", "b": "k_i"}
    back = c.back[0]
    assert back.new_axes("k") == ("k_o", "k_i")
    assert back.meaning("k_i") == "k % 4"
    assert oracle.equal(ROW, c.kernel, {}, 1)


def test_a_missing_operation_is_made_of_others():
    text = "kernel d()\n  in a: f32[9]\n  in b: f32[9]\n  out y: f32[9]\n  forall i < 9\n    y[i] = a[i] - b[i]\n"
    kernel = parse(text)
    ops = [binary("add", "+"), NEG]
    c = cover(kernel, Demand(ops), Trace(Approach()))
    assert c, c
    assert c.steps == ("sub-by-add (statement 0)",)
    assert {m.instruction.name for m in c.mappings} == {"add", "neg"}
    assert not cover_as_it_stands(kernel, Demand(ops))


def test_conversions_that_round_need_the_permission():
    text = "kernel q()\n  in a: f32[9]\n  in b: f32[9]\n  out y: f32[9]\n  forall i < 9\n    y[i] = a[i] / b[i]\n"
    inverse = parse_instruction(
        "instruction inv(N)\n  in S: f32[N]\n  out D: f32[N]\n  forall i < N\n    D[i] = 1 / S[i]\n"
    )
    kernel = parse(text)
    c = cover(kernel, Demand([inverse, binary("mul", "*")]), Trace(Approach()))
    assert c.steps == ("div-by-reciprocal (statement 0)",)
    assert c.notes["numerics"] == ["rounding"]
    exact = replace(kernel, permits=frozenset({"exact"}))
    assert not cover(exact, Demand([inverse, binary("mul", "*")]), Trace(Approach()))


def test_a_statement_no_law_can_help_ends_the_search_at_once():
    kernel = parse("kernel e()\n  in a: f32[9]\n  out y: f32[9]\n  forall i < 9\n    y[i] = erf(a[i])\n")
    r = find(kernel, Demand([GEMM, ZERO]), Trace(Approach()))
    assert not r
    assert (r.states, r.blind_expansions, r.complete) == (1, 0, True)
    assert "do 'erf' on f32 (" in str(r.uncovered)
    kernel = parse("kernel e()\n  in a: f32[9]\n  out y: bool[9]\n  forall i < 9\n    y[i] = a[i] < 2\n")
    assert "do 'lt' on f32 giving bool (" in str(find(kernel, Demand([GEMM, ZERO]), Trace(Approach())).uncovered)


def test_budgets_end_the_search_truthfully():
    r = find(GEMV, Demand([GEMM, ZERO, COPY]), Trace(Approach()), Budget(states=2))
    assert not r
    assert not r.complete
    assert r.states == 2
    shallow = find(GEMV, Demand([GEMM, ZERO, COPY]), Trace(Approach()), Budget(depth=1))
    assert not shallow
    assert not shallow.complete


def test_blind_steps_are_a_counted_last_resort():
    """(a * b) * c with an instruction that wants the inner product of the last two: nothing asks for regrouping."""
    text = "kernel c()\n  in a: f32[6]\n  in b: f32[6]\n  in c: f32[6]\n  out y: f32[6]\n  forall i < 6\n" \
           "    y[i] = (exp(a[i]) * b[i]) * c[i]\n"  # fmt: skip
    fused = parse_instruction("""instruction scaled(N)
  in A: f32[N]
  in B: f32[N]
  in C: f32[N]
  out D: f32[N]
  forall i < N
    D[i] = exp(A[i]) * (B[i] * C[i])
""")
    kernel = parse(text)
    r = find(kernel, Demand([fused]), Trace(Approach()))
    assert r, r.uncovered
    assert r.paths[0].steps[0].transform.law == "reassociate"
    assert r.blind_expansions == sum(s.because is None for p in r.paths for s in p.steps)
    none = find(kernel, Demand([fused]), Trace(Approach()), Budget(blind=0))
    assert bool(none) == (r.blind_expansions == 0)


def test_require_drives_the_search_too():
    dot = parse_instruction("""instruction dot(K)
  in    a: f32[K]
  in    b: f32[K]
  inout c: f32
  forall k < K
    c[] += a[k] * b[k]
""")
    plain = cover(GEMV, Demand([GEMM, dot, ZERO, COPY]), Trace(Approach()))
    assert plain.steps == ()
    demanded = cover(GEMV, Demand([GEMM, dot, ZERO, COPY], require=["gemm"]), Trace(Approach()))
    assert demanded, demanded
    assert "gemm" in {m.instruction.name for m in demanded.mappings}
    assert set(laws(demanded)) == {"add-unit-axis"}


def test_the_approach_picks_the_order_of_steps_and_the_kernel():
    class Last(Approach):
        def search(self, choice):
            return choice.options[-1]

    trace = Trace(Last())
    c = cover(GEMV, Demand([GEMM, ZERO, COPY]), trace)
    assert c
    assert oracle.equal(GEMV, c.kernel, {}, 1)
    again = Trace.replaying(trace.to_json())
    assert cover(GEMV, Demand([GEMM, ZERO, COPY]), again).kernel == c.kernel


def test_stride_two_rows_are_free_where_the_leading_dimension_is():
    """NHWC convolution at stride 2 on a row-major matrix product: no copy, only a larger leading dimension (MAP-7)."""
    kernel = parse("""kernel conv()
  in    x: f32[1, 9, 9, 3]
  const w: f32[3, 3, 3, 5]
  out   y: f32[1, 4, 4, 5]
  forall n < 1, h < 4, v < 4, k < 5
    y[n, h, v, k] = 0
  forall n < 1, h < 4, v < 4, k < 5, r < 3, s < 3, c < 3
    y[n, h, v, k] += x[n, 2 * h + r, 2 * v + s, c] * w[r, s, c, k]
""")
    c = cover(kernel, Demand([GEMM, ZERO]), Trace(Approach()))
    assert c
    (m,) = [m for m in c.mappings if m.instruction.name == "gemm"]
    assert dict(m.axes)["k"] == "c"
    assert m.operand("A").buffer == "x"
    assert m.operand("A").steps[0] in (1, 2)
    assert dict(m.axes)["j"] == "k"


def test_padding_answers_a_condition_the_instruction_cannot_respect_when_values_are_finite():
    """A dot product that starts from zero takes its whole sum at once: a ragged window must be padded first."""
    whole = parse_instruction("""instruction whole(K)
  in  a: f32[K]
  in  b: f32[K]
  out c: f32
  c[] = 0
  forall k < K
    c[] += a[k] * b[k]
""")
    copy = parse_instruction("instruction move(N)\n  in S: f32[N]\n  out D: f32[N]\n  forall i < N\n    D[i] = S[i]\n")
    text = """kernel ragged()
  in  x: f32[6]
  in  w: f32[3]
  out y: f32[6]
{permits}  forall i < 6
    y[i] = 0
  forall i < 6, r < 3 where 0 <= i + r - 1, i + r - 1 < 6
    y[i] += x[i + r - 1] * w[r]
"""
    kernel = parse(text.format(permits="  permits reassociate, contract, finite\n"))
    c = cover(kernel, Demand([whole, ZERO, copy]), Trace(Approach()))
    assert c, c
    assert laws(c) == ["pad"]
    assert c.notes["numerics"] == ["finite"]
    assert "other conditions" in c.notes["because"][0]
    assert oracle.equal(kernel, c.kernel, {}, 3)
    no = cover(parse(text.format(permits="")), Demand([whole, ZERO, copy]), Trace(Approach()))
    assert not no
    assert no.notes["complete"]


def test_an_output_that_lies_the_other_way_is_turned_explicitly():
    """Used in place, a product needs contiguous rows of C: with C transposed a copy is a statement, not a surprise."""
    text = """kernel turned()
  in    a: f32[3, 4, 2]
  in    b: f32[3, 2, 5]
  out   c: f32[4, 5, 3]
  forall z < 3, i < 4, j < 5
    c[i, j, z] = 0
  forall z < 3, i < 4, j < 5, k < 2
    c[i, j, z] += a[z, i, k] * b[z, k, j]
"""
    kernel = parse(text)
    one = parse_instruction("instruction one()\n  in S: f32\n  out D: f32\n  D = S\n")
    c = cover(kernel, Demand([GEMM, ZERO, one], require=["gemm"]), Trace(Approach()))
    assert c, c
    assert set(laws(c)) == {"permute-dimensions"}
    (m,) = [m for m in c.mappings if m.instruction.name == "gemm"]
    assert (m.operand("A").buffer, m.operand("B").buffer, m.outer) == ("a", "b", ("z",))
    assert oracle.equal(kernel, c.kernel, {}, 3)
