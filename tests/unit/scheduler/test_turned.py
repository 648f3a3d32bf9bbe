"""What a call takes along a dimension that is not the last one lies turned where it is read again and again."""

from __future__ import annotations

import pytest

from isam.ir.text import parse_kernel
from isam.schedule.tree import Issue, distinct
from isam.system.graph import System
from isam.system.load import parse_system
from tests.pipeline import compiled, judge

DOT = """
isam: 1
system: dot
memories:
  ram: {{kind: managed, capacity: 16 MiB, home: true}}
  {cache}
  x:   {{kind: counted, cells: 28, cell: 4 B, lanes: 4}}
units:
  hart: {{runs: ["*"], clock: 200 MHz}}
moves:
  - {{from: ram, to: x, by: [lw, lb4], issuer: hart}}
  - {{from: x, to: ram, by: [sw, sb4], issuer: hart}}
instructions:
  dot4:
    body: |
      instruction dot4(K <= 4)
        in A: i8[K]
        in B: i8[K]
        inout C: i32
        forall k < K
          C[] += i32(A[k]) * i32(B[k])
    homes: [x]
    cost: {{issue: 1 cycle, latency: 2 cycles}}
  mv:
    body: |
      instruction mv()
        in A: i32
        out D: i32
        D[] = A[]
    homes: [x]
    cost: {{issue: 1 cycle, latency: 1 cycle}}
  "{{n}}w":
    for: {{n: [l, s]}}
    body: |
      instruction {{n}}w()
        in S: any
        out D: any
        D[] = S[]
    cost: {{issue: 1 cycle, latency: 2 cycles}}
  "{{n}}b4":
    for: {{n: [l, s]}}
    body: |
      instruction {{n}}b4(J <= 4)
        in S: i8[J]
        out D: i8[J]
        forall j < J
          D[j] = S[j]
    {strides}
    cost: {{issue: 1 cycle, latency: 2 cycles}}
"""
CACHE = "d1: {kind: cached, capacity: 16 KiB, of: ram}"
PRODUCT = """kernel product(M, N, K)
  in    x: i8[M, K]
  {role} w: i8[K, N]
  out   y: i32[M, N]
  forall i < M, j < N
    y[i, j] = 0
  forall i < M, j < N, k < K
    y[i, j] += i32(x[i, k]) * i32(w[k, j])
"""
SIZES = {"M": 8, "N": 6, "K": 12}


def machine(cache: str = CACHE, strides: str = "") -> System:
    return parse_system(DOT.format(cache=cache, strides=strides))


def lengths(role: str, system: System, sizes: dict[str, int]) -> set[int]:
    """How much of the sum calls take, which the judges find right."""
    kernel = parse_kernel(PRODUCT.format(role=role))
    job = compiled(kernel, sizes, system, check=True)
    judge(kernel, sizes, job)
    assert job.schedule is not None
    issues = (n for n in distinct(job.schedule.call) if isinstance(n, Issue) and n.instruction == "dot4")
    return {dict(n.sizes)["K"] for n in issues}


@pytest.mark.parametrize("cache", [CACHE, ""])
@pytest.mark.parametrize("role", ["const", "in"])
def test_calls_are_whole(role: str, cache: str) -> None:
    assert lengths(role, machine(cache), SIZES) == {4}


@pytest.mark.parametrize(
    "sizes", [{"M": 5, "N": 3, "K": 11}, {"M": 9, "N": 1, "K": 3}, {"M": 1, "N": 7, "K": 4}], ids=str
)
@pytest.mark.parametrize("role", ["const", "in"])
def test_sizes_that_do_not_fit(role: str, sizes: dict[str, int]) -> None:
    lengths(role, machine(), sizes)


def test_what_is_read_once_stays_as_it_lies() -> None:
    assert lengths("in", machine(), {"M": 1, "N": 6, "K": 12}) == {1}


def test_a_move_that_takes_elements_apart_needs_no_copy() -> None:
    kernel = parse_kernel(PRODUCT.format(role="const"))
    job = compiled(kernel, SIZES, machine(strides="strides: {S: [free], D: [1]}"), check=True)
    judge(kernel, SIZES, job)
    assert job.schedule is not None
    assert not any(s.bound and s.literal is None for s in job.schedule.workspace)
