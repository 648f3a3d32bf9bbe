"""Instructions that take a fixed number of elements, or a multiple: what they cannot carry out is refused by the
mapper, and everything else is scheduled, proved and right."""

from __future__ import annotations

import pytest

from isam.compiler import Refused
from isam.ir.text import parse_kernel
from isam.proof import check_flat
from isam.system.graph import System
from tests.machines.small import SAME, SAME_ROW, ZERO, ZERO_ROW, instruction, small
from tests.pipeline import compiled, judge

GEMM = """
  in    A: f32[M, K]
  in    W: f32[N, K]
  inout C: f32[M, N]
  forall i < M, j < N, k < K
    C[i, j] += A[i, k] * W[j, k]
"""
ACT = """
  inout D: f32[M, N]
  forall i < M, j < N
    D[i, j] = max(D[i, j], 0)
"""
KERNEL = parse_kernel("""kernel mt(M, N, K)
  in    x: f32[M, K]
  const w: f32[N, K]
  out   y: f32[M, N]
  forall i < M, j < N
    y[i, j] = 0
  forall i < M, j < N, k < K
    y[i, j] += x[i, k] * w[j, k]
  forall i < M, j < N
    y[i, j] = max(y[i, j], 0)
""")


def machine(head: str, act: str, moved: str = "M, N") -> System:
    """``head``, ``act``, ``moved``: how many columns, or of what, a product, an activation and a copy take."""
    return small(
        "strict",
        {"q": "cells: 8, cell: 4 KiB"},
        ["dram <-> q"],
        instruction(f"gemm(M <= 8, {head}, K)", GEMM, "homes: [q]"),
        instruction(f"act(M <= 8, {act})", ACT, "homes: [q]"),
        instruction("zero(M <= 8, N <= 12)", ZERO, "homes: [q]"),
        copy=instruction(f"copy({moved})", SAME),
    )


@pytest.mark.parametrize(
    ("head", "act", "step"),
    [
        ("N == 8", "N <= 8", 8),
        ("N == 8", "N == 12", 24),
        ("N % 8", "N <= 12", 8),
        ("N % 4 <= 12", "N == 6", 12),
        ("8 <= N % 8 <= 16", "N % 3", 24),
    ],
)
@pytest.mark.parametrize("n", [1, 6, 8, 12, 16, 20, 24, 48])
def test_scheduled_or_refused_by_extent(head, act, step, n):
    sizes = {"M": 7, "N": n, "K": 5}
    if n % step:
        with pytest.raises(Refused) as no:
            compiled(KERNEL, sizes, machine(head, act))
        assert {m.kind for m in no.value.answer.mismatches if m.instruction in ("gemm", "act")} == {"extent"}
        return
    job = compiled(KERNEL, sizes, machine(head, act), check=True)
    assert check_flat(job.schedule) == []
    judge(KERNEL, sizes, job)


def test_what_is_lacking_is_said_with_its_answer():
    with pytest.raises(Refused) as no:
        compiled(KERNEL, {"M": 12, "N": 12, "K": 8}, machine("N == 8", "N <= 8"))
    (m,) = {m for m in no.value.answer.mismatches if m.instruction == "gemm"}
    assert m.need == "exactly 8 along j in every call"
    assert m.have == "12 steps of axis j (padding would make them 16)"
    assert (m.about("axis"), m.about("need"), m.about("have"), m.about("padded")) == ("j", 8, 12, 16)


def test_moves_take_what_they_admit():
    job = compiled(KERNEL, {"M": 8, "N": 8, "K": 8}, machine("N <= 8", "N <= 8", "M == 4, N % 4"), check=True)
    assert check_flat(job.schedule) == []
    with pytest.raises(Refused, match="copy takes exactly 4 along i, exactly 8 along j"):
        compiled(KERNEL, {"M": 4, "N": 6, "K": 8}, machine("N <= 8", "N <= 8", "M == 4, N == 8"))


def test_a_condition_leaves_no_fixed_number():
    kernel = parse_kernel("kernel tri(N)\n  inout y: f32[N, N]\n  forall i < N, j < N where j <= i\n"
                          "    y[i, j] = max(y[i, j], 0)\n")  # fmt: skip
    with pytest.raises(Refused) as no:
        compiled(kernel, {"N": 16}, machine("N <= 8", "N == 8"))
    assert "domain" in {m.kind for m in no.value.answer.mismatches}
    job = compiled(kernel, {"N": 16}, machine("N <= 8", "N <= 8"), check=True)
    judge(kernel, {"N": 16}, job)


POLY = """
  in  A: f32[J]
  in  B: f32[J]
  out D: f32[J]
  forall j < J
    D[j] = A[j] * B[j] + A[j]
"""
KEEP = """
  in  S: f32[J]
  out D: f32[J]
  forall j < J
    D[j] = S[j]
"""


def test_the_search_pads_where_the_machine_can():
    kernel = parse_kernel("kernel p(N)\n  in a: f32[N]\n  in b: f32[N]\n  out y: f32[N]\n  forall i < N\n"
                          "    y[i] = a[i] * b[i] + a[i]\n")  # fmt: skip
    eights = small(
        "eights",
        {"q": "cells: 3, cell: 128 B"},
        ["dram <-> q"],
        instruction("poly(J % 8)", POLY, "homes: [q]"),
        instruction("zero(J)", ZERO_ROW, "homes: [q]"),
        instruction("keep(J)", KEEP, "homes: [q]"),
        copy=instruction("copy(N)", SAME_ROW),
    )
    job = compiled(kernel, {"N": 20}, eights, check=True)
    assert [s.split(" (")[0] for s in job.cover.steps] == ["round-up"]
    judge(kernel, {"N": 20}, job)
