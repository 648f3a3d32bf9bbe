"""Explanations: carets into both texts, near misses, and changes that were checked to help (MAP-8)."""

from __future__ import annotations

import json

from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.text import parse, parse_instruction
from isam.mapper import explain
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
