"""Instances of a family know it: they are counted, shown and named by it."""

from __future__ import annotations

import pytest

import isam
from isam.diagnostics import IsamError
from isam.ir.text import parse_instruction
from isam.system.load import load_system
from isam.system.names import families, named, parameters
from isam.system.show import text

MATMUL = """kernel matmul(M, N, K)
  in  A: f64[K, M]
  in  B: f64[K, N]
  inout C: f64[M, N]
  forall i < M, j < N, k < K
    C[i, j] += A[k, i] * B[k, j]
"""


def test_an_instance_says_what_it_is_an_instance_of() -> None:
    i = load_system("blas").instructions["dgemm_tn"]
    assert i.family == "gemm"
    assert i.values == (("T", "f64"), ("V", "tn"))
    assert i.title == "gemm[T=f64, V=tn]"
    assert load_system("toy").instructions["copy"].title == "copy"


def test_parameters_with_one_value_tell_nobody_apart() -> None:
    i = load_system("x86_amx").instructions["vpdpbusd_vs"]  # Q is always 4
    assert i.title == "vpdpbusd[F=vs]"


def test_printing_is_short_and_the_text_reads_back() -> None:
    i = load_system("blas").instructions["dgemm_tn"]
    assert repr(i) == "<instruction gemm[T=f64, V=tn]: A f64[K, M], B f64[K, N], C f64[M, N]>"
    assert parse_instruction(str(i)).body == i.body
    registered = isam.instruction("instruction twice(J)\n  inout y: f32[J]\n  forall j < J\n    y[j] *= 2\n")(_twice)
    assert repr(registered) == "<instruction twice: y f32[J]> by _twice"


def _twice(y) -> None:
    y *= 2


def test_names_families_and_values_find_instructions() -> None:
    blas = load_system("blas")
    assert [i.name for i in named(blas, "sgemm_nt")] == ["sgemm_nt"]
    assert len(named(blas, "gemm")) == 8
    assert [i.name for i in named(blas, "gemm[T=f32, V=nt]")] == ["sgemm_nt"]
    assert [i.name for i in named(blas, "gemm[ V = nt ]")] == ["sgemm_nt", "dgemm_nt"]
    assert {i.name[:5] for i in named(blas, "sgemm")} == {"sgemm"}  # a part of the name


@pytest.mark.parametrize(("text", "hint"), [
    ("gemmm", "did you mean 'gemm'?"),
    ("gemm[T=f16]", "'gemm' has T: f32 f64; V: nn nt tn tt"),
    ("gemm[t=f32]", "'gemm' has T: f32 f64; V: nn nt tn tt"),
    ("gemm[T", "did you mean 'gemm'?"),
    ("", "lists them"),
    ("[]", "lists them"),
])  # fmt: skip
def test_what_is_not_there_is_refused_with_what_is(text: str, hint: str) -> None:
    with pytest.raises(IsamError) as e:
        named(load_system("blas"), text)
    assert e.value.diagnostics[0].code == "instruction-unknown"
    assert hint in e.value.diagnostics[0].hint


def test_a_family_is_one_row_and_one_count() -> None:
    machine = load_system("blas")
    members = next(f for f in families(machine) if f[0].family == "gemm")
    assert parameters(members) == {"T": ["f32", "f64"], "V": ["nn", "nt", "tn", "tt"]}
    rows = [r for r in text(machine).splitlines() if r.startswith("  gemm[")]
    assert len(rows) == 1
    assert rows[0].split()[0:8] == ["gemm[T:", "f32", "f64;", "V:", "nn", "nt", "tn", "tt]"]
    assert sum(map(len, families(machine))) == len(machine.instructions)


def test_a_family_may_be_demanded_and_explained() -> None:
    fn = isam.compile(MATMUL, on="blas", sizes={"M": 5, "N": 6, "K": 7}, require="gemm")
    assert [m.instruction.name for m in fn.mapping.mappings] == ["dgemm_tn"]
    assert isam.explain(MATMUL, on="blas", instruction="gemm[T=f64]")
    assert not isam.explain(MATMUL, on="blas", instruction="gemm[T=f32]")


def test_extending_a_system_keeps_what_is_known(tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("isam: 1\nsystem: mine\nextends: toy\ninstructions:\n  mm4_f32: {cost: {issue: 9 cycles}}\n")
    i = load_system(str(path)).instructions["mm4_f32"]
    assert i.cost.issue == 9
    assert i.title == "mm4[T=f32]"
