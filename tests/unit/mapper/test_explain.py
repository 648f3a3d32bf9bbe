"""Explanations: carets into both texts, near misses, and changes that were checked to help (MAP-8)."""

from __future__ import annotations

import json

from isam.approach.choice import Approach, Trace
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.normal import normal_form
from isam.ir.text import parse, parse_instruction, parse_kernel
from isam.mapper import explain
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from isam.mapper.nearest import closest, nearest
from isam.mapper.spelt import spelt
from tests.corpus import CASES
from tests.unit.mapper.catalogue import instruction, kernel, named

GEMM = instruction("gemm")


def changes(k: Kernel, i: Instruction) -> list[str]:
    return [str(r) for r in explain(k, i).repairs]


def test_an_explanation_points_into_both_texts():
    one = ("kernel depthwise(N, C, H, R)\n  in x: f32[N, C, H + R]\n  in w: f32[C, R]\n  inout y: f32[N, C, H]\n"
           "  forall n < N, c < C, h < H, r < R\n    y[n, c, h] += x[n, c, h + r] * w[c, r]\n")  # fmt: skip
    two = ("instruction gemm(M, N, K)\n  in A: f32[M, K]\n  in B: f32[K, N]\n  inout C: f32[M, N]\n"
           "  forall i < M, j < N, k < K\n    C[i, j] += A[i, k] * B[k, j]\n")  # fmt: skip
    why = explain(parse(one), parse_instruction(two), sources=(one, two))
    assert not why
    lines = str(why).split("\n")
    for text, pointed in ((one, "x[n"), (two, "A[i")):
        at = next(n for n, line in enumerate(lines) if line.strip() == text.split("\n")[5].strip())
        assert lines[at][lines[at + 1].index("^") :].startswith(pointed)
    assert why.reason is not None
    assert why.reason.kind == "extra-dependence"


def test_texts_are_read_from_files(tmp_path):
    text = "kernel k(N)\n  in x: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = exp(x[i])\n"
    (tmp_path / "k.isam").write_text(text)
    why = str(explain(parse(text, file=str(tmp_path / "k.isam")), instruction("vadd")))
    assert "k.isam:5:" in why
    assert "          y[i] = exp(x[i])" in why


def test_without_texts_statements_are_printed_anew():
    text = str(explain(named("softmax"), instruction("gemm0")))
    assert "t1[i, j, k] = A[i, k] * B[k, j]" in text
    assert "other near misses" in text


def test_what_fits_is_listed():
    fits = explain(named("conv"), GEMM)
    assert fits
    assert fits.reason is None
    assert "in 14 way(s)" in str(fits)
    assert "and 6 more" in str(fits)
    assert {r.currency for r in fits.repairs} <= {"shape"}


def test_how_much_an_instruction_carries_out_is_said():
    assert str(explain(named("conv"), GEMM)).startswith("gemm carries out 2 of 4 statements of conv in 14 way(s):")
    assert str(explain(GEMM.body, GEMM)).startswith("gemm carries out gemm in ")


def test_json_has_a_version_and_no_infinities():
    data = json.loads(explain(named("softmax"), instruction("gemm0")).to_json(), parse_constant=lambda c: 1 / 0)
    assert data["schema"] == "isam.explanation/2"
    assert data["fits"] is False
    assert data["near"][0]["kind"] == "operation"
    assert all(m["depth"] <= data["near"][0]["depth"] for m in data["near"])
    assert json.loads(explain(named("conv"), GEMM).to_json())["fits"] is True


def test_strides_are_offered_when_they_are_all_that_is_missing():
    k = kernel("s(M, N, K)\n in A: f32[2 * M, K]\n in B: f32[K, N]\n inout C: f32[M, N]\n forall i < M, j < N, k < K\n"
               "  C[i, j] += A[2 * i, k] * B[k, j]")  # fmt: skip
    assert "accept a strided operand: A (here A) with step 2" in changes(k, GEMM)
    sized = changes(k.with_sizes({"M": 4, "N": 5, "K": 6}), GEMM)
    assert "declare A: f32[4, 2, 6]" in sized


def test_types_are_offered_when_they_are_all_that_is_wrong():
    k = kernel("m(M, N, K)\n in A: f64[M, K]\n in B: f64[K, N]\n inout C: f64[M, N]\n forall i < M, j < N, k < K\n"
               "  C[i, j] += A[i, k] * B[k, j]")  # fmt: skip
    each = "; ".join(f"{o} of f64 instead of f32" for o in "ABC")
    assert changes(k, GEMM) == [f"accept other element types: {each}"]


def test_rewriting_is_offered_with_its_steps():
    found = explain(CASES["sepconv"].load(), GEMM).repairs
    assert found[0].currency == "program"
    assert found[0].steps[0].split()[0] == "factor"
    k = kernel("v(M, K)\n in A: f32[M, K]\n in x: f32[K]\n inout y: f32[M]\n forall i < M, k < K\n"
               "  y[i] += A[i, k] * x[k]")  # fmt: skip
    found = explain(k, GEMM).repairs
    assert [s.split()[0] for s in found[0].steps] == ["add-unit-axis"] * 2
    assert "program: rewrite the kernel" in str(explain(k, GEMM))


def test_nothing_is_offered_that_does_not_help():
    k = kernel("e(N)\n in x: f32[N]\n out y: f32[N]\n forall i < N\n  y[i] = exp(x[i])")
    assert changes(k, instruction("vadd")) == []
    top = kernel("t(N)\n in x: f32[N]\n out y: f32\n y[] = -inf\n forall i < N\n  y[] max= x[i]")
    assert changes(top, GEMM) == []


def test_values_that_nobody_named_are_written_out():
    """Of different element types, of a product of casts: what was written, where, and what would do."""
    text = ("{} mm(M, N, K)\n  in A: {a}[M, K]\n  in B: {b}[K, N]\n  inout C: i32[M, N]\n  forall i < M, j < N, k < K\n"
            "    C[i, j] += i32(A[i, k]) * i32(B[k, j])\n")  # fmt: skip
    k = parse_kernel(text.format("kernel", a="i8", b="i8").replace("A", "x").replace("B", "w").replace("C", "y"))
    i = parse_instruction(text.format("instruction", a="i16", b="i16").replace("i32", "f32"))
    why = explain(k, i)
    assert (why.reason.have, why.reason.need) == ("x: i8, w: i8, y: i32", "A: i16, B: i16, C: f32")
    assert why.near[1].have == "i32(x[i, k]) * i32(w[k, j]): i32"
    assert why.near[1].need == "f32(A[i, k]) * f32(B[k, j]): f32"
    assert all(m.kernel_loc.line == m.instruction_loc.line == 6 for m in why.near[:2])
    assert not any("t1" in str(m) or "t3" in str(m) for m in why.near)
    assert changes(k, i) == ["accept other element types: A of i8 instead of i16; B of i8 instead of i16; "
                             "C of i32 instead of f32"]  # fmt: skip
    half = parse_instruction(text.format("instruction", a="i8", b="u8"))
    assert changes(k, half) == ["accept other element types: B of i8 instead of u8"]


def test_a_name_that_the_text_gives_stays():
    k = parse_kernel("kernel k(M)\n  in x: f32[M]\n  out y: f32[M]\n  forall i < M\n    t[i] = x[i] * x[i]\n"
                     "  forall i < M\n    y[i] = sqrt(t[i] + -(x[i] * 2))\n")  # fmt: skip
    told = [spelt(s, k) for s in k.statements]
    last = "t[i] + -(x[i] * 2)"
    assert told == ["t[i] = x[i] * x[i]", "x[i] * 2", "-(x[i] * 2)", last, f"y[i] = sqrt({last})"]


def test_what_stands_in_the_way_is_what_a_machine_says():
    """A machine may lay operands out with steps: a coefficient is the reason only where nothing else is."""
    text = ("{} {}\n  in A: f32[{m}, K]\n  in B: f32[K, N]\n  inout C: f32[M, N]\n  forall i < M, j < N, k < K\n"
            "    C[i, j] += A[{i}, k] * B[k, j]\n")  # fmt: skip
    k = parse_kernel(text.format("kernel", "mm(M, N, K)", m="2 * M", i="2 * i"))
    exact = parse_instruction(text.format("instruction", "mm(M == 8, N, K)", m="M", i="i"))
    free = parse_instruction(text.format("instruction", "mm(M, N, K)", m="M", i="i"))
    sized = k.with_sizes({"M": 13, "N": 4, "K": 4})
    (gap, *_) = cover(normal_form(sized), Demand([exact]), Trace(Approach())).gaps
    assert nearest(sized, exact)[0].have == gap.mismatches[0].have == explain(sized, exact).reason.have
    assert gap.mismatches[0].kind == "extent"
    assert nearest(sized, free)[0].kind == explain(sized, free).reason.kind == "coefficient"
    assert nearest(sized, free, strided=True) == []
    assert closest(sized, [exact, free]) is exact
    assert closest(sized, [free]) is free
