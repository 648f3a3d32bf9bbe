"""Rows that are brought to tiles: copied to whole lines, unless they lie so, and those of one step of a recurrence."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_kernel
from tests.pipeline import compiled, judge, simulated
from tests.unit.scheduler.test_pipelining import Told

LAYERS = parse_kernel("""
kernel f(M, N, K)
  in    A: bf16[M, K]
  const B: bf16[K, K]
  const D: bf16[K, N]
  out   C: f32[M, N]
  temp  S: f32[M, K]
  temp  H: bf16[M, K]
  permits contract, reassociate, flush
  forall i < M, j < K
    S[i, j] = 0
  forall i < M, j < K, k < K
    S[i, j] += f32(A[i, k]) * f32(B[k, j])
  forall i < M, j < K
    H[i, j] = bf16(max(S[i, j], 0))
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += f32(H[i, k]) * f32(D[k, j])
""")


@pytest.mark.parametrize(("terms", "copied"), [(64, False), (96, False), (80, True)])
def test_rows_of_a_temporary_are_copied_unless_they_are_whole_lines(terms: int, copied: bool) -> None:
    sizes = {"M": 64, "N": 512, "K": terms}
    job = compiled(LAYERS, sizes, simulated("sapphire-rapids"), None, check=True)
    assert job.schedule is not None
    slots = {s.name for s in job.schedule.workspace}
    assert any(n.startswith("H.") for n in slots) is copied
    judge(LAYERS, sizes, job)


def test_rows_of_a_step_are_those_of_the_step() -> None:
    """A product by tiles whose rows the recurrent loop counts: its axis has no block."""
    k = parse_kernel("""
kernel f(T, M, N, K)
  in    A: bf16[T, M, K]
  const B: bf16[K, N]
  out   h: bf16[T, M, N]
  temp  S: f32[M, N]
  permits contract, reassociate, flush
  loop t < T
    forall i < M, j < N
      S[i, j] = 0
    forall i < M, j < N, k < K
      S[i, j] += f32(A[t, i, k]) * f32(B[k, j])
    forall i < M, j < N
      h[t, i, j] = bf16(S[i, j])
""")
    sizes = {"T": 3, "M": 32, "N": 64, "K": 64}
    job = compiled(k, sizes, simulated("sapphire-rapids"), Told(1), check=True)
    assert not job.unproved
    judge(k, sizes, job)
