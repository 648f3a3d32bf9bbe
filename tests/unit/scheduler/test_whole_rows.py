"""What nests of a group hand on in a near memory that home feeds stays there, where a block has room for whole rows."""

from __future__ import annotations

import pytest

from isam.cost.timeline import timeline
from isam.ir.text import parse_kernel
from isam.system.graph import System
from tests.machines.small import instruction, small
from tests.pipeline import compiled, judge

SOFTMAX = parse_kernel("""kernel softmax(M, N)
  in  x: f32[M, N]
  out y: f32[M, N]
  forall i < M
    m[i] = -inf
  forall i < M, j < N
    m[i] max= x[i, j]
  forall i < M, j < N
    e[i, j] = exp(x[i, j] - m[i])
  forall i < M
    s[i] = 0
  forall i < M, j < N
    s[i] += e[i, j]
  forall i < M, j < N
    y[i, j] = e[i, j] / s[i]
""")


def of_rows(head: str, arguments: str, loops: str, statement: str) -> str:
    text = "".join(f"  {a}\n" for a in arguments.split("; ")) + f"  forall {loops}\n    {statement}\n"
    return instruction(head, text, "homes: [near]", "cost: {issue: 8 cycles, latency: 12 cycles}")


def machine(room: str) -> System:
    """Functions of rows, 8 by 8 elements in a call, and one memory beside home."""
    tile, both = "A: f32[M, N]", "i < M, j < N"
    return small(
        "rows", {"near": f"capacity: {room}, align: 4 B"}, ["dram <-> near"],
        of_rows("fill(M <= 8)", "in S: f32; out D: f32[M]", "i < M", "D[i] = S[]"),
        of_rows("top(M <= 8, N <= 8)", f"in {tile}; inout D: f32[M]", both, "D[i] max= A[i, j]"),
        of_rows("add(M <= 8, N <= 8)", f"in {tile}; inout D: f32[M]", both, "D[i] += A[i, j]"),
        of_rows("less(M <= 8, N <= 8)", f"in {tile}; in B: f32[M]; out D: f32[M, N]", both, "D[i, j] = A[i, j] - B[i]"),
        of_rows("by(M <= 8, N <= 8)", f"in {tile}; in B: f32[M]; out D: f32[M, N]", both, "D[i, j] = A[i, j] / B[i]"),
        of_rows("power(M <= 8, N <= 8)", f"in {tile}; out D: f32[M, N]", both, "D[i, j] = exp(A[i, j])"),
    )  # fmt: skip


@pytest.mark.parametrize(("room", "once"), [("8 KiB", True), ("1 KiB", False)])
def test_exponentials_of_a_row_stay_where_there_is_room(room, once):
    """Of 64 columns and 8 rows 2 KiB are the exponentials: in a loop of their own they went home, for another one to
    bring them back."""
    sizes = {"M": 32, "N": 64}
    job = compiled(SOFTMAX, sizes, machine(room), check=True)
    judge(SOFTMAX, sizes, job)
    assert job.schedule is not None
    left = timeline(job.schedule).edges["near", "dram"].bytes
    assert (left == 32 * 64 * 4) is once
