"""Instructions that take a fixed number of elements, or a multiple: what they cannot carry out is refused by the
mapper, and everything else is scheduled, proved and right."""

from __future__ import annotations

import pytest

from isam.compiler import Refused
from isam.ir.text import parse_kernel
from isam.proof import check_flat
from isam.system.graph import System
from isam.system.load import parse_system
from tests.pipeline import compiled, judge

MACHINE = """isam: 1
system: strict
memories:
  hbm: {kind: managed, capacity: 1 GiB, home: true}
  q:   {kind: managed, cells: 8, cell: 4 KiB}
units:
  pe: {runs: [gemm, act, zero], clock: 1 GHz}
  dma: {runs: [copy], clock: 1 GHz}
moves:
  - {from: hbm, to: q, by: copy, issuer: dma, both_ways: true}
instructions:
  gemm:
    body: |
      instruction gemm(M <= 8, HEAD, K)
        in    A: f32[M, K]
        in    W: f32[N, K]
        inout C: f32[M, N]
        forall i < M, j < N, k < K
          C[i, j] += A[i, k] * W[j, k]
    homes: [q]
  act:
    body: |
      instruction act(M <= 8, ACT)
        inout D: f32[M, N]
        forall i < M, j < N
          D[i, j] = max(D[i, j], 0)
    homes: [q]
  zero:
    body: |
      instruction zero(M <= 8, N <= 12)
        out D: f32[M, N]
        forall i < M, j < N
          D[i, j] = 0
    homes: [q]
  copy:
    body: |
      instruction copy(MOVED)
        in  S: any[M, N]
        out D: any[M, N]
        forall i < M, j < N
          D[i, j] = S[i, j]
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
    return parse_system(MACHINE.replace("HEAD", head).replace("ACT", act).replace("MOVED", moved))


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
        compiled(KERNEL, {"M": 8, "N": 6, "K": 8}, machine("N <= 8", "N <= 8", "M == 4, N == 8"))


def test_a_condition_leaves_no_fixed_number():
    kernel = parse_kernel("kernel tri(N)\n  inout y: f32[N, N]\n  forall i < N, j < N where j <= i\n"
                          "    y[i, j] = max(y[i, j], 0)\n")  # fmt: skip
    with pytest.raises(Refused) as no:
        compiled(kernel, {"N": 16}, machine("N <= 8", "N == 8"))
    assert "domain" in {m.kind for m in no.value.answer.mismatches}
    job = compiled(kernel, {"N": 16}, machine("N <= 8", "N <= 8"), check=True)
    judge(kernel, {"N": 16}, job)


EIGHTS = """isam: 1
system: eights
memories:
  hbm: {kind: managed, capacity: 1 GiB, home: true}
  q:   {kind: managed, cells: 3, cell: 128 B}
units:
  lane: {runs: [poly, zero, keep], clock: 1 GHz}
  dma:  {runs: [copy], clock: 1 GHz}
moves:
  - {from: hbm, to: q, by: copy, issuer: dma, both_ways: true}
instructions:
  poly:
    body: |
      instruction poly(J % 8)
        in  A: f32[J]
        in  B: f32[J]
        out D: f32[J]
        forall j < J
          D[j] = A[j] * B[j] + A[j]
    homes: [q]
  zero:
    body: |
      instruction zero(J)
        out D: f32[J]
        forall j < J
          D[j] = 0
    homes: [q]
  keep:
    body: |
      instruction keep(J)
        in  S: f32[J]
        out D: f32[J]
        forall j < J
          D[j] = S[j]
    homes: [q]
  copy:
    body: |
      instruction copy(J)
        in  S: any[J]
        out D: any[J]
        forall j < J
          D[j] = S[j]
"""


def test_the_search_pads_where_the_machine_can():
    kernel = parse_kernel("kernel p(N)\n  in a: f32[N]\n  in b: f32[N]\n  out y: f32[N]\n  forall i < N\n"
                          "    y[i] = a[i] * b[i] + a[i]\n")  # fmt: skip
    job = compiled(kernel, {"N": 20}, parse_system(EIGHTS), check=True)
    assert [s.split(" (")[0] for s in job.cover.steps] == ["round-up"]
    judge(kernel, {"N": 20}, job)
