"""Where element types are all that stands in the way, they are the reason: operands as the instruction has them."""

from __future__ import annotations

import re

import pytest

from isam.compiler.feasible import as_far
from isam.compiler.stages import new_job
from isam.ir.text import parse_instruction, parse_kernel
from isam.mapper import explain
from isam.mapper.match import match, near_misses
from isam.mapper.retyped import retyped
from isam.mapper.uncovered import Uncovered
from isam.system.load import load_system
from tests.unit.mapper.test_repairs import works

WIDENING = """instruction mm(M <= 8, N <= 16, K <= 16)
  in    A: bf16[M, K]
  in    W: bf16[K, N]
  inout C: f32[M, N]
  forall i < M, j < N, k < K
    C[i, j] += f32(A[i, k]) * f32(W[k, j])
"""
LAYER = """kernel layer(M, N, K)
  in    x: {x}[M, K]
  const w: f32[K, N]
  out   y: f32[M, N]
  forall i < M, j < N
    y[i, j] = 0
  forall i < M, j < N, k < K
    y[i, j] += {read} * w[k, j]
  forall i < M, j < N
    y[i, j] = max(y[i, j], 0)
"""
PLAIN = LAYER.format(x="f32", read="x[i, k]")
CELL = """kernel cell(B, D, H)
  in    x: f32[B, D]
  const w: f32[D, H]
  inout h: f32[B, H]
  temp  f: f32[B, H]
  forall b < B, j < H
    f[b, j] = 0
  forall b < B, j < H, k < D
    f[b, j] += x[b, k] * w[k, j]
  forall b < B, j < H
    h[b, j] = (1 - f[b, j]) * h[b, j]
"""
MACHINE = f"""
isam: 1
system: widening
backend: simulator
memories:
  ddr: {{kind: managed, capacity: 1 MiB, home: true}}
units:
  all: {{runs: ["*"], clock: 1 GHz}}
instructions:
  mm:
    body: |
{re.sub("(?m)^", "      ", WIDENING).rstrip()}
  fill:
    body: |
      instruction fill(N)
        out D: f32[N]
        forall i < N
          D[i] = 0
  mul:
    body: |
      instruction mul(M, N)
        in  A: f32[M, N]
        in  B: f32[M, N]
        out D: f32[M, N]
        forall i < M, j < N
          D[i, j] = A[i, j] * B[i, j]
"""
MM = parse_instruction(WIDENING)


def test_the_reason_is_the_type_of_the_operands_as_they_are_written():
    why = explain(parse_kernel(PLAIN), MM, sources=(PLAIN, WIDENING))
    assert why.reason.kind == "dtype"
    assert (why.reason.have, why.reason.need) == ("x: f32, w: f32", "A: bf16, W: bf16, which it makes f32")
    lines = str(why).split("\n")
    for line, pointed in (("y[i, j] += x[i, k] * w[k, j]", "x["), ("C[i, j] += f32(A[i, k]) * f32(W[k, j])", "A[")):
        at = next(n for n, text in enumerate(lines) if text.strip() == line)
        assert lines[at][lines[at + 1].index("^") :].startswith(pointed)
    assert all(m.depth <= why.reason.depth for m in why.near)


def test_no_report_names_what_no_text_does():
    k = parse_kernel(PLAIN)
    for m in near_misses(k, MM):
        assert not re.search(r"\bt\d", m.have + m.need), str(m)
    assert any(m.need == "f32(A[i, k]) there, made in the same call for nothing else" for m in near_misses(k, MM))


def test_program_and_hardware_are_repaired():
    why = explain(parse_kernel(PLAIN), MM)
    for r in why.repairs:
        works(r)
    assert [(r.currency, r.change) for r in why.repairs] == [
        ("program", "declare x: bf16, w: bf16 and read f32(x), f32(w)"),
        ("hardware", "accept other element types: A of f32 instead of bf16; W of f32 instead of bf16"),
    ]


def test_one_operand_of_two():
    why = explain(parse_kernel(LAYER.format(x="bf16", read="f32(x[i, k])")), MM)
    assert (why.reason.have, why.reason.need) == ("w: f32", "W: bf16, which it makes f32")
    assert [r.change for r in why.repairs] == ["declare w: bf16 and read f32(w)",
                                               "accept other element types: W of f32 instead of bf16"]  # fmt: skip
    half = explain(parse_kernel(LAYER.format(x="f16", read="f32(x[i, k])")), MM)
    assert (half.reason.have, half.reason.need) == ("x: f16, w: f32", "A: bf16, W: bf16, which it makes f32")


def test_what_is_made_in_the_kernel_is_rounded_where_it_is_read():
    text = PLAIN.replace("  const", "  inout x2: f32[M, K]\n  const").replace("+= x[", "+= x2[")
    k = parse_kernel(text.replace("  in    x: f32[M, K]\n", ""))
    (program, _) = explain(k, MM).repairs
    assert program.change == "declare w: bf16 and read f32(bf16(x2)), f32(w)"
    works(program)


@pytest.mark.parametrize(("shape", "value"), [("K, N", "x[i, k] + w[k, j]"), ("N, N", "x[i, k] * w[j, j]")])
def test_where_more_is_in_the_way_types_are_not_the_reason(shape, value):
    k = parse_kernel(PLAIN.replace("f32[K, N]", f"f32[{shape}]").replace("x[i, k] * w[k, j]", value))
    assert retyped(k, MM) is None
    assert explain(k, MM).reason.kind != "dtype"


def test_what_fits_has_no_types_in_the_way():
    k = parse_kernel(PLAIN.replace("f32[M, K]", "bf16[M, K]").replace("f32[K, N]", "bf16[K, N]")
                     .replace("x[i, k] * w[k, j]", "f32(x[i, k]) * f32(w[k, j])"))  # fmt: skip
    assert match(k, MM)
    assert retyped(k, MM) is None


def test_a_refusal_says_of_each_statement_what_stands_in_its_own_way(tmp_path):
    (tmp_path / "widening.yaml").write_text(MACHINE)
    k, system = parse_kernel(CELL), load_system(tmp_path / "widening.yaml")
    _, no = as_far(new_job(k, system, {}, None), "cover")
    assert isinstance(no, Uncovered)
    gap = next(g for g in no.gaps if no.kernel.statements[g.statement].op == "mul" and len(g.mismatches) > 1)
    assert (gap.mismatches[0].instruction, gap.mismatches[0].kind) == ("mm", "dtype")
    assert gap.mismatches[0].need == "A: bf16, W: bf16, which it makes f32"
    assert not any("1 - f" in m.have for m in gap.mismatches)
    (like,) = gap.remedies
    assert [b.dtype for b in like.body.arguments] == ["f32"] * 3
    assert match(no.kernel, like, region=(gap.statement, gap.statement + 1), normalise=False)
    told = str(no)
    assert "instruction mm_f32(M <= 8, N <= 16, K <= 16)\n" in told
    assert "C[i, j] += A[i, k] * W[k, j]\n" in told
    assert not re.search(r"\bt\d", told.partition("rewritten by")[0])
