"""What fits, what does not, and what the report says (MAP-1 to MAP-8)."""

from __future__ import annotations

import itertools

import pytest

from isam.ir.text import parse_instruction
from isam.mapper import Matches, count, match, near_misses
from isam.mapper.match import BUDGET
from tests.unit.mapper.catalogue import instruction, kernel, named

GEMM = instruction("gemm")


def no(k, i, **options):
    found = match(k, i, **options)
    assert not isinstance(found, Matches), str(list(found))
    return found


# what a mapping holds -------------------------------------------------------------------------------------------------


def test_a_mapping_names_rows_axes_and_what_is_left():
    m = match(named("conv"), GEMM).first
    assert [(o.operand, o.buffer, o.dims, o.steps) for o in m.operands] == [
        ("A", "x", (0, 1), (1, 1)), ("B", "w", (1, 0), (1, 1)), ("C", "y", (0, 1), (1, 1))]  # fmt: skip
    assert m.axis_map == {"i": "n", "j": "k", "k": "c"}
    assert m.outer == ("h", "v", "r", "s")
    assert m.statements == (1, 2)
    assert m.statement_map == ((0, 1), (1, 2))
    assert m.temps == (("t1", "t1"),)
    assert (m.guards, m.whole, m.loops, m.renames) == ((), (), (), ())


def test_transposed_operands_choose_rows_in_another_order():
    k = kernel("mt(M, N, K)\n in A: f32[K, M]\n in B: f32[K, N]\n inout C: f32[N, M]\n forall i < M, j < N, k < K\n"
               "  C[j, i] += A[k, i] * B[k, j]")  # fmt: skip
    m = match(k, GEMM, swap=False).first
    assert [o.dims for o in m.operands] == [(1, 0), (0, 1), (1, 0)]


def test_strides_are_steps_and_only_when_asked():
    k = kernel("s(M, N, K)\n in A: f32[2 * M, 3 * K]\n in B: f32[K, N]\n inout C: f32[M, N]\n"
               " forall i < M, j < N, k < K\n  C[i, j] += A[2 * i + 1, 3 * k] * B[k, j]")  # fmt: skip
    m = match(k, GEMM, strided=True, swap=False).first
    a = m.operand("A")
    assert a.steps == (2, 3)
    assert [str(r) for r in a.index] == ["2*i + 1", "3*k"]
    report = no(k, GEMM)
    assert report.kind == "coefficient"
    assert (report.about("need"), report.about("have")) == (1, 2)
    assert (report.about("buffer"), report.about("row"), report.about("axis")) == ("A", 0, "i")


def test_a_step_must_be_one_number_per_row():
    k = kernel("f(N, R)\n in x: f32[2 * N + R]\n in w: f32[R]\n inout y: f32[N]\n forall i < N, r < R\n"
               "  y[i] += x[2 * i + r] * w[r]")  # fmt: skip
    assert not match(k, instruction("fir"), strided=True)
    k = kernel("f(N, R)\n in x: f32[3 * N + 3 * R]\n in w: f32[R]\n inout y: f32[N]\n forall i < N, r < R\n"
               "  y[i] += x[3 * i + 3 * r] * w[r]")  # fmt: skip
    assert match(k, instruction("fir"), strided=True).first.operand("x").steps == (3,)
    assert no(k, instruction("fir")).kind == "coefficient"


def test_one_buffer_may_play_two_roles():
    found = list(match(named("square"), GEMM))
    assert [[o.buffer for o in m.operands] for m in found] == [["A", "A", "C"]] * 2
    assert found[0].operand("A").index != found[0].operand("B").index


def test_x_times_x_is_one_role_assignment():
    k = kernel("sq(N)\n in x: f32[N]\n out y: f32[N]\n forall i < N\n  y[i] = x[i] * x[i]")
    assert len(match(k, instruction("vmul"))) == 1
    assert len(match(k, instruction("square"))) == 1


def test_scalars_and_numbers_play_operands_of_rank_zero():
    m = match(named("scaled"), instruction("scale")).first
    assert (m.operand("a").buffer, m.operand("a").literal, m.operand("a").index) == ("", 2, ())
    played = match(named("axpys"), instruction("axpy")).first.operand("a")
    assert (played.buffer, [str(r) for r in played.index], played.dims) == ("a", ["i"], ())


def test_tails_come_from_limits_and_never_forbid():
    i = parse_instruction("instruction add(N <= 4)\n  in A: f32[N]\n  in B: f32[N]\n  out D: f32[N]\n  forall i < N\n"
                          "    D[i] = A[i] + B[i]\n")  # fmt: skip
    k = kernel("add(N)\n in a: f32[N]\n in b: f32[N]\n out d: f32[N]\n forall i < N\n  d[i] = a[i] + b[i]")
    assert match(k.with_sizes({"N": 10}), i).first.tails == (("i", 2),)
    assert match(k.with_sizes({"N": 8}), i).first.tails == ()
    assert match(k.with_sizes({"N": 0}), i, normalise=False).first.tails == ()
    assert match(k, i).first.tails == ()
    ragged = kernel("add(N)\n in a: f32[N + 5]\n in b: f32[N + 5]\n out d: f32[N + 5]\n forall i < N + 5\n"
                    "  d[i] = a[i] + b[i]")  # fmt: skip
    assert match(ragged, i).first.tails == ()  # what is left is not known


def test_conditions_on_mapped_axes_are_guards_and_others_are_not():
    found = {m.axis_map["k"]: m for m in match(named("conv_same"), GEMM) if m.axis_map["i"] == "n"}
    assert found["c"].guards == ()
    assert {str(g) for g in found["r"].guards} == {"h + r - 1", "H - h - r"}


def test_a_recurrent_axis_is_always_outside():
    for m in match(named("cumulate"), instruction("vadd")):
        assert m.loops == ("t",)
        assert "t" not in m.axis_map.values()


def test_axes_named_differently_in_each_statement_are_joined_by_the_dataflow():
    m = match(named("mlp"), instruction("gemm_bias_relu")).first
    assert m.axis_map == {"i": "i", "j": "j", "k": "k"}
    assert m.renames == ((0, (("p", "i"), ("q", "j"))), (3, (("u", "i"), ("v", "j"))))
    assert m.whole == ("k",)


def test_a_reduction_that_the_instruction_finishes_is_taken_whole_or_not_at_all():
    text = ("instruction gemm0(M <= 4, N <= 4, K <= 4)\n  in A: f32[M, K]\n  in B: f32[K, N]\n  out C: f32[M, N]\n"
            "  forall i < M, j < N\n    C[i, j] = 0\n  forall i < M, j < N, k < K\n"
            "    C[i, j] += A[i, k] * B[k, j]\n")  # fmt: skip
    i = parse_instruction(text)
    m = match(named("matmul").with_sizes({"M": 9, "N": 9, "K": 4}), i).first
    assert (m.whole, dict(m.tails)) == (("k",), {"i": 1, "j": 1})
    report = no(named("matmul").with_sizes({"M": 9, "N": 9, "K": 5}), i)
    assert (report.kind, report.about("need"), report.about("have")) == ("extent", 4, 5)
    assert report.about("padded") is None  # more steps do not help


def test_a_ragged_axis_of_a_call_that_takes_exactly_so_many_says_what_padding_would_make_of_it():
    i = parse_instruction("instruction four()\n  in A: f32[4]\n  out D: f32[4]\n  forall i < 4\n    D[i] = A[i]\n")
    report = no(kernel("k()\n in a: f32[6]\n out d: f32[6]\n forall i < 6\n  d[i] = a[i]"), i)
    assert (report.kind, report.about("padded"), report.have) == (
        "extent", 8, "6 steps of axis i (padding would make them 8)")  # fmt: skip


def test_a_transposed_use_transposes_the_dimensions():
    k = kernel("k(M, N)\n in x: f32[M, N]\n out e: f32[M, N]\n inout s: f32[N]\n forall i < M, j < N\n"
               "  e[i, j] = exp(x[i, j])\n forall p < N, q < M\n  s[p] += e[q, p]")  # fmt: skip
    m = match(k, instruction("exp_sum")).first
    assert m.axis_map == {"i": "j", "j": "i"}
    assert (m.operand("x").dims, m.operand("e").dims, m.operand("s").dims) == ((1, 0), (1, 0), (0,))


# enumeration ----------------------------------------------------------------------------------------------------------


def test_the_order_is_always_the_same_and_lazy():
    first = [str(m) for m in match(named("conv"), GEMM)]
    assert first == [str(m) for m in match(named("conv"), GEMM)]
    assert len(set(first)) == 14
    found = match(named("conv"), GEMM)
    assert [str(m) for m in itertools.islice(found, 3)] == first[:3]
    assert [str(m) for m in found] == first


@pytest.mark.parametrize("budget", [0, 1, 3, 10, 30])
def test_a_budget_is_told_truthfully(budget: int):
    found = match(named("conv"), GEMM, budget=budget)
    if isinstance(found, Matches):
        assert not found.complete
        assert 1 <= len(found) < 14
    else:
        assert found.kind == "budget"
        assert found.about("need") == budget
    assert match(named("conv"), GEMM, budget=BUDGET).complete


def test_a_search_that_ends_just_in_time_is_complete():
    low, high = 1, 10_000
    while low < high:
        mid = (low + high) // 2
        found = match(named("matmul"), GEMM, budget=mid)
        complete = isinstance(found, Matches) and found.complete
        low, high = (low, mid) if complete else (mid + 1, high)
    assert len(match(named("matmul"), GEMM, budget=low)) == 2
    assert len(match(named("matmul"), GEMM, budget=low - 1) or ()) <= 2


def test_a_region_confines_the_search():
    assert match(named("conv"), GEMM, region=(1, 2))
    assert not match(named("conv"), GEMM, region=(0, 2))
    assert not match(named("conv"), GEMM, region=())


def test_orbits_are_symmetries_of_body_and_contract():
    dots = list(match(named("matmul"), instruction("dot")))
    assert len(dots) == 2
    assert len({m.orbit for m in dots}) == 1
    assert len({m.orbit for m in match(named("matmul"), GEMM)}) == 2  # the exchange transposes row-major operands
    from dataclasses import replace

    from isam.ir.instruction import OperandContract

    free = replace(GEMM, operands={n: OperandContract(strides=(None, None)) for n in "ABC"})
    assert len({m.orbit for m in match(named("matmul"), free)}) == 1
    apart = replace(free, apart=(("A", "C"),))
    assert len({m.orbit for m in match(named("matmul"), apart)}) == 2
    found = match(named("conv"), free)
    assert len(list(found.orbits())) == 7


def test_limits_break_a_symmetry():
    text = ("instruction mm(M <= {m}, N <= 4, K)\n  in A: f32[M, K]\n  in B: f32[N, K]\n  inout C: f32[]\n"
            "  forall i < M, j < N, k < K\n    C[] += A[i, k] * B[j, k]\n")  # fmt: skip
    k = kernel("s(M, N, K)\n in A: f32[M, K]\n in B: f32[N, K]\n inout C: f32[]\n forall i < M, j < N, k < K\n"
               "  C[] += A[i, k] * B[j, k]")  # fmt: skip
    assert [len({x.orbit for x in match(k, parse_instruction(text.format(m=m)))}) for m in (4, 8)] == [1, 2]


# normal form and insensitivity ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [
    "  C[i, j] += A[i, k] * B[k, j]",
    "  C[i, j] += B[k, j] * A[i, k]",
    "  t[i, j, k] = A[i, k]\n  t[i, j, k] *= B[k, j]\n  C[i, j] += t[i, j, k]",
    "  t[k, j, i] = A[i, k] * B[k, j]\n  u[j, i] = exp(D[j, i])\n  C[i, j] += t[k, j, i]",
    "  t[2 * k, j, i] = A[i, k] * B[k, j]\n  C[i, j] += t[2 * k, j, i]",
])  # fmt: skip
def test_spelling_does_not_matter(body: str):
    if "u[" in body:
        body = body.replace("  u[j, i] = exp(D[j, i])", " forall q < N, p < M\n  E[q, p] = exp(D[q, p])\n"
                            " forall j < N, k < K, i < M")  # fmt: skip
    k = kernel("m(M, N, K)\n in A: f32[M, K]\n in B: f32[K, N]\n in D: f32[N, M]\n out E: f32[N, M]\n"
               " inout C: f32[M, N]\n"
               " forall i < M, j < N, k < K\n" + body)  # fmt: skip
    if "E[" not in body:
        assert len(match(k, GEMM)) == 2
    else:
        assert len(match(k, GEMM, region=range(len(k.statements)))) == 2


def test_an_accumulation_may_be_played_in_place_and_back():
    sums = match(named("row_sums"), instruction("vadd"))
    assert {(m.operand("D").buffer, m.axis_map["i"], m.outer) for m in sums} == {("s", "i", ("j",))}
    k = kernel("add(N)\n in x: f32[N]\n inout y: f32[N]\n forall i < N\n  y[i] = x[i] + y[i]")
    acc = parse_instruction("instruction inc(N)\n  in x: f32[N]\n  inout y: f32[N]\n  forall i < N\n    y[i] += x[i]\n")
    assert match(k, acc).first.operand("y").buffer == "y"


def test_a_comparison_may_be_turned_round():
    less = parse_instruction("instruction less(N)\n  in a: f32[N]\n  in b: f32[N]\n  out d: bool[N]\n  forall i < N\n"
                             "    d[i] = a[i] < b[i]\n")  # fmt: skip
    k = kernel("c(N)\n in a: f32[N]\n in b: f32[N]\n out d: bool[N]\n forall i < N\n  d[i] = a[i] > b[i]")
    m = match(k, less).first
    assert (m.operand("a").buffer, m.operand("b").buffer) == ("b", "a")
    k = kernel("c(N)\n in a: f32[N]\n in b: f32[N]\n out d: bool[N]\n forall i < N\n  d[i] = a[i] >= b[i]")
    assert no(k, less).kind == "operation"


# reports --------------------------------------------------------------------------------------------------------------


def test_the_deepest_contradiction_is_the_one_reported():
    k, i = named("conv_strided"), instruction("fir")
    report = no(k, i)
    assert report.depth == max(m.depth for m in near_misses(k, i))
    assert report.depth >= 5


def test_dtype_reports_name_both():
    k = kernel("k(N)\n in a: f32[N]\n in b: f16[N]\n out d: f32[N]\n forall i < N\n  d[i] = a[i] + f32(b[i])")
    i = parse_instruction("instruction w(N)\n  in a: f32[N]\n  in b: bf16[N]\n  out d: f32[N]\n  forall i < N\n"
                          "    d[i] = a[i] + f32(b[i])\n")  # fmt: skip
    report = no(k, i)
    assert (report.kind, report.about("need"), report.about("have")) == ("dtype", "bf16", "f16")
    assert (report.about("operand"), report.about("buffer")) == ("b", "b")
    assert count(k, i) == 1
